#include "sched/family.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/pair.h"
#include "sched/stage.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct family *shared; /* guarded by lock, as are the users of all families */

static uint32_t lane_length(const struct prog *prog)
{
	uint32_t length = 0;

	for (uint32_t i = 0; i < prog->count; i++)
		length += insn_turns(&prog->insns[i]);
	return length;
}

/* Chunks of the largest message a lane of the rank sends to another host. */
static uint32_t lane_sent_chunks(
	const struct prog *prog, const struct lower_args *args, uint32_t rank)
{
	uint32_t chunks = 0;

	for (uint32_t tx = 0; args->hosts && tx < prog->tx_count; tx++) {
		struct walk walk = {.prog = prog, .sends = true, .conn = tx};

		if (!ranks_are_apart(args->hosts, rank, prog->tx_peers[tx]))
			continue;
		while (walk_on(&walk)) {
			if (walk.insn->count > chunks)
				chunks = walk.insn->count;
			walk.left = 0;
		}
	}
	return chunks;
}

static void note_max(uint32_t *max, uint32_t value)
{
	if (value > *max)
		*max = value;
}

/* What decides a tile size that all ranks can run, and how long their programs are. */
static enum err family_measure(struct family *family)
{
	struct lower_args each = family->key;
	struct stage stage = {0};
	enum err e = OK;

	for (uint32_t rank = 0; rank < each.rank_count && !e; rank++)
		e = sched_fits(&family->scheds[rank]);
	for (each.rank = 0; each.rank < each.rank_count && !e; each.rank++) {
		e = stage_fill(&stage, family->scheds, &each);
		note_max(&family->slot_count_max, stage.slot_count);
		for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
			const struct prog *prog = &family->scheds[each.rank].lanes[lane];

			note_max(&family->slot_chunks, stage.lanes[lane].chunks);
			note_max(&family->inbox_chunks,
				lane_sent_chunks(prog, &each, each.rank));
			family->lengths[each.rank * SCHED_LANES_MAX + lane] = lane_length(
				prog);
		}
	}
	stage_fini(&stage);
	return e;
}

static void family_destroy(struct family *family)
{
	for (uint32_t i = 0; family->written && i < family->key.rank_count; i++)
		sched_fini(&family->written[i]);
	free(family->written);
	free(family->lengths);
	sched_hosts_destroy(family->hosts);
	free((void *)family->key.hosts);
	free(family);
}

static enum err family_write(struct family *family)
{
	const struct lower_args *key = &family->key;
	enum err e = OK;

	family->written = calloc(key->rank_count, sizeof(*family->written));
	if (!family->written)
		return err_set(ERR_SYSTEM, "no memory for %u schedules", key->rank_count);
	family->scheds = family->written;
	if (key->hosts)
		e = sched_hosts_create(key->hosts, key->rank_count, &family->hosts);
	for (uint32_t rank = 0; rank < key->rank_count && !e; rank++)
		e = family->hosts ? catalog_write_hosts(key->kind, family->hosts, rank,
					    key->root, &family->written[rank])
				  : catalog_write(key->kind, key->rank_count, rank,
					    key->root, &family->written[rank]);
	return e;
}

static enum err family_take_hosts(struct family *family, const uint16_t *hosts)
{
	size_t bytes = family->key.rank_count * sizeof(*hosts);
	uint16_t *copy;

	if (!hosts)
		return OK;
	copy = malloc(bytes);
	if (!copy)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	memcpy(copy, hosts, bytes);
	family->key.hosts = copy;
	return OK;
}

/* Written here unless `scheds` are given. */
static enum err family_create(
	const struct sched *scheds, const struct lower_args *args, struct family **family)
{
	struct family *made;
	enum err e = OK;

	if (!args->depth || !args->rank_count)
		return err_set(ERR_INTERNAL, "lowering for %u ranks at depth %u",
			args->rank_count, args->depth);
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	*made = (struct family){
		.scheds = scheds, .key = *args, .users = 1, .slot_chunks = 1};
	made->key.hosts = NULL;
	e = family_take_hosts(made, args->hosts);
	made->lengths = calloc(
		(size_t)args->rank_count * SCHED_LANES_MAX, sizeof(*made->lengths));
	if (!e && !made->lengths)
		e = err_set(ERR_SYSTEM, "no memory to lower a schedule");
	if (!e && !scheds)
		e = family_write(made);
	if (!e)
		e = family_measure(made);
	if (e) {
		family_destroy(made);
		return e;
	}
	*family = made;
	return OK;
}

static bool is_same_hosts(const uint16_t *a, const uint16_t *b, uint32_t rank_count)
{
	return a && b ? !memcmp(a, b, rank_count * sizeof(*a)) : a == b;
}

static bool is_same(const struct lower_args *a, const struct lower_args *b)
{
	return a->kind == b->kind && a->rank_count == b->rank_count &&
	       a->root == b->root && a->mode == b->mode && a->depth == b->depth &&
	       is_same_hosts(a->hosts, b->hosts, a->rank_count);
}

enum err family_get(const struct lower_args *args, struct family **family)
{
	struct family *found;
	enum err e = OK;

	pthread_mutex_lock(&lock);
	for (found = shared; found && !is_same(&found->key, args);)
		found = found->next;
	if (found) {
		found->users++;
	} else {
		e = family_create(NULL, args, &found);
		if (!e) {
			found->next = shared;
			shared = found;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!e)
		*family = found;
	return e;
}

enum err family_of(
	const struct sched *scheds, const struct lower_args *args, struct family **family)
{
	return family_create(scheds, args, family);
}

void family_share(struct family *family)
{
	pthread_mutex_lock(&lock);
	family->users++;
	pthread_mutex_unlock(&lock);
}

void family_put(struct family *family)
{
	struct family **link;

	if (!family)
		return;
	pthread_mutex_lock(&lock);
	if (--family->users) {
		pthread_mutex_unlock(&lock);
		return;
	}
	for (link = &shared; *link && *link != family;)
		link = &(*link)->next;
	if (*link)
		*link = family->next;
	pthread_mutex_unlock(&lock);
	family_destroy(family);
}
