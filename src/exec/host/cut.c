#include "exec/host/cut.h"

#include <stdlib.h>

#include "base/futex.h"
#include "exec/host/p2p_far.h"
#include "exec/host/remote.h"
#include "exec/host/squad.h"

/* Sets of wires beside those that collectives have; pieces of whole lines. */
enum { SET_FIRST = SQUAD_MAX, LINE_BYTES = 64 };

_Static_assert((int)SET_FIRST + (int)SQUAD_MAX <= (int)WIRE_SETS_MAX, "there are sets");

/* ---- a share ---- */

size_t cut_piece(const struct p2p *p2p)
{
	size_t even;

	if (!p2p->share.cut || p2p->piece_bytes)
		return p2p->piece_bytes;
	even = (p2p->bytes + p2p->shares - 1) / p2p->shares;
	return (even + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

uint64_t cut_tell(const struct p2p *p2p, uint64_t pieces)
{
	struct p2p_cut *cut = p2p->share.cut;
	uint64_t least = UINT64_MAX;

	/* who comes last sees what all have stored */
	atomic_store(&cut->pieces[p2p->share.number], pieces);
	atomic_fetch_add(&cut->stamp, 1);
	atomic_store(&cut->blocked, 0);
	for (uint32_t i = 0; i < p2p->shares; i++) {
		uint64_t until = atomic_load(&cut->pieces[i]) * p2p->shares + i;

		least = until < least ? until : least;
	}
	return least;
}

void cut_look(struct p2p *p2p)
{
	if (!p2p->share.number)
		p2p->share.seen = atomic_load(&p2p->share.cut->stamp);
}

enum err cut_join(struct p2p *p2p)
{
	struct p2p_cut *cut = p2p->share.cut;

	if (!p2p->share.is_over) {
		p2p->share.is_over = true;
		atomic_fetch_add(&cut->stamp, 1);
		if (atomic_fetch_sub(&cut->left, 1) == 1)
			futex_wake(&cut->left);
	}
	return p2p->share.number || !atomic_load(&cut->left) ? OK : ERR_AGAIN;
}

void cut_sleep(const struct p2p *p2p, uint32_t timeout_us)
{
	uint32_t left = atomic_load(&p2p->share.cut->left);

	if (left && !squad_has_stopped(p2p->engine))
		futex_wait(&p2p->share.cut->left, left, timeout_us);
}

void cut_block(const struct p2p *p2p)
{
	atomic_store(&p2p->share.cut->blocked, !p2p->tide || !far_awaits_tide(p2p));
}

bool cut_awaits_tide(const struct p2p *p2p)
{
	return !atomic_load(&p2p->share.cut->blocked);
}

/* ---- all shares of a group ---- */

struct cut_group {
	uint32_t message_count, share_count, mine_count;
	struct p2p_cut *cuts;	      /* owned: of each message that is cut */
	struct host_job *firsts;      /* owned: share 0 of each */
	struct host_job *shares;      /* owned: the others */
	const struct host_job **mine; /* owned: what the calling thread runs */
};

static uint32_t shares_of(const struct host_job *job)
{
	return job->kind == JOB_P2P && job->p2p.shares > 1 ? job->p2p.shares : 1;
}

uint32_t cut_count(const struct host_job *const *jobs, uint32_t count)
{
	uint32_t more = 0;

	for (uint32_t i = 0; i < count; i++)
		more += shares_of(jobs[i]) - 1;
	return more;
}

static enum err group_alloc(
	struct cut_group *group, const struct host_job *const *jobs, uint32_t count)
{
	uint32_t shares = cut_count(jobs, count), messages = 0;

	for (uint32_t i = 0; i < count; i++)
		messages += shares_of(jobs[i]) > 1;
	group->cuts = calloc(messages, sizeof(*group->cuts));
	group->firsts = calloc(messages, sizeof(*group->firsts));
	group->shares = calloc(shares, sizeof(*group->shares));
	group->mine = calloc(count + shares, sizeof(*group->mine));
	return group->cuts && group->firsts && group->shares && group->mine
		       ? OK
		       : err_set(ERR_SYSTEM, "no memory for %u calls", count + shares);
}

static void group_free(struct cut_group *group)
{
	free(group->cuts);
	free(group->firsts);
	free(group->shares);
	free(group->mine);
}

/* Threads beside the first that may run shares of this engine's messages: none where a
 * collective of the group may have them. */
static enum err helpers_of(struct host_engine *engine, const struct host_job *const *jobs,
	uint32_t count, uint32_t *helpers)
{
	*helpers = 0;
	for (uint32_t i = 0; i < count; i++)
		if (jobs[i]->engine == engine && jobs[i]->kind == JOB_COLL)
			return OK;
	return squad_helpers(engine, helpers);
}

static enum err message_cut(
	struct cut_group *group, const struct host_job *job, uint32_t helpers)
{
	struct p2p_cut *cut = &group->cuts[group->message_count];
	struct host_job *first = &group->firsts[group->message_count++];
	enum err e = OK;

	*first = *job;
	first->p2p.share.cut = cut;
	atomic_store(&cut->left, job->p2p.shares);
	group->mine[group->mine_count++] = first;
	for (uint32_t i = 1; i < job->p2p.shares && !e; i++) {
		struct host_job *share = &group->shares[group->share_count++];
		uint32_t runner = i % (helpers + 1);

		*share = *first;
		share->p2p.share.number = i;
		share->p2p.told = NULL; /* whoever listens is told by one thread */
		if (runner)
			share->engine = squad_engine(job->engine, runner);
		share->p2p.engine = share->engine;
		e = wires_set(remote_wires(job->engine->remote), SET_FIRST + i,
			&share->p2p.share.wires);
	}
	return e;
}

/* The first in the group that is cut and this engine's. */
static bool is_first_of(const struct host_job *const *jobs, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++)
		if (jobs[i]->engine == jobs[index]->engine && shares_of(jobs[i]) > 1)
			return false;
	return shares_of(jobs[index]) > 1;
}

static enum err group_make(
	struct cut_group *group, const struct host_job *const *jobs, uint32_t count)
{
	const struct host_engine *asked = NULL;
	enum err e = group_alloc(group, jobs, count);
	uint32_t helpers = 0;

	for (uint32_t i = 0; i < count && !e; i++) {
		if (shares_of(jobs[i]) == 1) {
			group->mine[group->mine_count++] = jobs[i];
			continue;
		}
		if (!asked || jobs[i]->engine != asked)
			e = helpers_of(jobs[i]->engine, jobs, count, &helpers);
		asked = jobs[i]->engine;
		if (!e)
			e = message_cut(group, jobs[i], helpers);
	}
	for (uint32_t i = 0; i < group->share_count; i++)
		if (!group->shares[i].engine->calls.share)
			group->mine[group->mine_count++] = &group->shares[i];
	return e;
}

enum err cut_run(const struct host_job *const *jobs, uint32_t count, cut_runner *run)
{
	struct cut_group group = {0};
	enum err e = group_make(&group, jobs, count);

	if (e) {
		group_free(&group);
		return e;
	}
	for (uint32_t i = 0; i < count; i++)
		if (is_first_of(jobs, i))
			squad_hand(jobs[i]->engine, group.shares, group.share_count);
	e = run(group.mine, group.mine_count);
	for (uint32_t i = 0; i < count; i++)
		if (is_first_of(jobs, i))
			e = squad_take_back(jobs[i]->engine, e);
	for (uint32_t i = 0; i < group.share_count && e; i++)
		wires_rest(group.shares[i].p2p.share.wires);
	group_free(&group);
	return e;
}
