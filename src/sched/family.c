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

/* What one rank adds; what its stage needs is written. */
static enum err measure_rank(struct family *family, const struct lower_args *as,
	struct stage *stage, uint32_t rank)
{
	struct lower_args each = *as;
	struct family_size *size = &family->size;
	enum err e;

	each.rank = rank;
	e = stage_fill(stage, family->scheds, &each);
	note_max(&size->slot_count_max, stage->slot_count);
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
		const struct prog *prog = &family->scheds[rank].lanes[lane];

		note_max(&size->slot_chunks, stage->lanes[lane].chunks);
		note_max(&size->inbox_chunks, lane_sent_chunks(prog, &family->key, rank));
		note_max(&size->length_max, lane_length(prog));
	}
	return e;
}

static enum err measure_all(struct family *family)
{
	struct stage stage = {0};
	enum err e = OK;

	for (uint32_t rank = 0; rank < family->key.rank_count && !e; rank++)
		e = measure_rank(family, &family->key, &stage, rank);
	stage_fini(&stage);
	return e;
}

/* Check a schedule, and note how long it is. */
static enum err sched_note(struct family *family, uint32_t rank)
{
	const struct sched *sched = &family->scheds[rank];

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		family->lengths[rank * SCHED_LANES_MAX + lane] = lane_length(
			&sched->lanes[lane]);
	return sched_fits(sched);
}

/* Have the schedule of a rank. It is never written again, so that others may read it. */
static enum err sched_have(struct family *family, uint32_t rank)
{
	const struct lower_args *key = &family->key;
	enum err e;

	if (family->scheds[rank].lane_count)
		return OK;
	e = family->hosts ? catalog_write_hosts(key->kind, family->hosts, rank, key->root,
				    &family->written[rank])
			  : catalog_write(key->kind, key->rank_count, rank, key->root,
				    &family->written[rank]);
	if (!e)
		e = sched_note(family, rank);
	if (e)
		sched_fini(&family->written[rank]);
	family->written[rank].lane_count = e ? 0 : family->written[rank].lane_count;
	return e;
}

/* .. and of those of its host it sends to, where what is staged depends on who receives
 * it. */
static enum err stage_have(struct family *family, enum lower_mode mode, uint32_t rank)
{
	enum err e = sched_have(family, rank);

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX && !e; lane++) {
		const struct prog *prog = &family->scheds[rank].lanes[lane];
		uint32_t count = mode == MODE_STAGED || !lane_may_stage(prog)
					 ? 0
					 : prog->tx_count;

		for (uint32_t i = 0; i < count && !e; i++)
			if (!ranks_are_apart(family->key.hosts, rank, prog->tx_peers[i]))
				e = sched_have(family, prog->tx_peers[i]);
	}
	return e;
}

/* What a rank has to know of one it receives from: of its stage, only on its own host. */
static enum err sender_have(struct family *family, uint32_t rank, uint32_t from)
{
	if (ranks_are_apart(family->key.hosts, rank, from))
		return sched_have(family, from);
	return stage_have(family, family->key.mode, from);
}

/* All that the program of a rank is made of. */
static enum err program_have(struct family *family, uint32_t rank)
{
	enum err e = sched_have(family, rank);

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX && !e; lane++) {
		const struct prog *prog = &family->scheds[rank].lanes[lane];

		for (uint32_t i = 0; i < prog->tx_count && !e; i++)
			e = sched_have(family, prog->tx_peers[i]);
		for (uint32_t i = 0; i < prog->rx_count && !e; i++)
			e = sender_have(family, rank, prog->rx_peers[i]);
	}
	return e;
}

static enum err all_have(struct family *family)
{
	enum err e = OK;

	for (uint32_t rank = 0; rank < family->key.rank_count && !e; rank++)
		e = sched_have(family, rank);
	return e;
}

static uint32_t largest_power(uint32_t n)
{
	uint32_t power = 1;

	while (power * 2 <= n)
		power *= 2;
	return power;
}

enum {
	NEAR = 4,
	MIDDLES = 4,
	PER_START = 2 * NEAR + 2 * MIDDLES,
	MEMBERS = 5,
	SAMPLE_MAX = 2 * PER_START * MEMBERS
};

/* Ranks that differ from their neighbours in some schedule: number `at` of those counted
 * from rank 0, then of those counted from the root; the rank count past the last. */
static uint32_t sample_rank(uint32_t n, uint32_t root, uint32_t at)
{
	uint32_t power = largest_power(n), offset = at % PER_START;
	const uint32_t middles[MIDDLES] = {n / 2, power / 2, power, 2 * (n - power)};

	if (at >= 2 * PER_START)
		return n;
	if (offset >= 2 * NEAR)
		offset = middles[(offset - 2 * NEAR) / 2] + n - offset % 2;
	else if (offset >= NEAR)
		offset = n - 1 - (offset - NEAR);
	return (offset + (at >= PER_START ? root : 0)) % n;
}

/* Of a schedule that knows hosts, such hosts, and of each its first, second, middle and
 * last rank, and the one in the root's place: the others do as these do. */
static uint32_t sample_hosts_rank(
	const struct sched_hosts *hosts, uint32_t root, uint32_t at)
{
	uint32_t size = hosts->local_max;
	const uint32_t members[MEMBERS] = {
		0, size > 1, size / 2, size - 1, hosts->local[root]};
	uint32_t host = sample_rank(hosts->host_count, hosts->host[root], at / MEMBERS);

	if (host == hosts->host_count)
		return hosts->rank_count;
	return sched_hosts_rank(hosts, host, members[at % MEMBERS]);
}

/* List the ranks of the sample, each once, and say how many they are. */
static uint32_t sample_list(const struct family *family, uint32_t *ranks)
{
	uint32_t n = family->key.rank_count, root = family->key.root, count = 0;

	for (uint32_t i = 0, rank = 0; rank < n; i++) {
		uint32_t at = 0;

		rank = family->hosts ? sample_hosts_rank(family->hosts, root, i)
				     : sample_rank(n, root, i);
		while (at < count && ranks[at] != rank)
			at++;
		if (rank < n && at == count)
			ranks[count++] = rank;
	}
	return count;
}

/* Nobody else knows the family yet. */
static void sched_forget(struct family *family, uint32_t rank)
{
	sched_fini(&family->written[rank]);
	family->written[rank].lane_count = 0;
}

/* Between hosts, what is staged where is not asked: all of it is. So each schedule is
 * looked at alone, and few of them are this rank's affair later. */
static enum err measure_sample(struct family *family)
{
	struct lower_args as = family->key;
	uint32_t ranks[SAMPLE_MAX], count = sample_list(family, ranks);
	struct stage stage = {0};
	enum err e = OK;

	if (as.hosts) {
		as.mode = MODE_STAGED;
		as.hosts = NULL;
	}
	for (uint32_t i = 0; i < count && !e; i++) {
		e = stage_have(family, as.mode, ranks[i]);
		if (!e)
			e = measure_rank(family, &as, &stage, ranks[i]);
		if (!e && family->key.hosts)
			sched_forget(family, ranks[i]);
	}
	if (family->key.hosts)
		family->size.inbox_chunks = family->size.slot_chunks;
	stage_fini(&stage);
	return e;
}

static void family_destroy(struct family *family)
{
	for (uint32_t i = 0; family->written && i < family->key.rank_count; i++)
		if (family->written[i].lane_count)
			sched_fini(&family->written[i]);
	free(family->written);
	free(family->lengths);
	sched_hosts_destroy(family->hosts);
	free((void *)family->key.hosts);
	free(family);
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
	return family->key.kind && family->key.kind->drivers != DRIVERS_NONE
		       ? sched_hosts_create(hosts, family->key.rank_count, &family->hosts)
		       : OK;
}

/* Room for a family; schedules are to be written unless they are given. */
static enum err family_create(
	const struct sched *scheds, const struct lower_args *args, struct family **family)
{
	size_t n = args->rank_count;
	struct family *made;
	enum err e;

	if (!args->depth || !n)
		return err_set(ERR_INTERNAL, "lowering for %zu ranks at depth %u", n,
			args->depth);
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	*made = (struct family){
		.scheds = scheds, .key = *args, .users = 1, .size = {.slot_chunks = 1}};
	made->key.hosts = NULL;
	e = family_take_hosts(made, args->hosts);
	made->lengths = calloc(n * SCHED_LANES_MAX, sizeof(*made->lengths));
	if (!scheds)
		made->scheds = made->written = calloc(n, sizeof(*made->written));
	if (!e && (!made->lengths || !made->scheds))
		e = err_set(ERR_SYSTEM, "no memory for %zu schedules", n);
	if (e) {
		family_destroy(made);
		return e;
	}
	*family = made;
	return OK;
}

static enum err family_fill(struct family *family, bool sample)
{
	enum err e;

	if (sample && (!family->hosts || sched_hosts_regular(family->hosts)))
		return measure_sample(family);
	e = all_have(family);
	return e ? e : measure_all(family);
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

/* With `rank` below the rank count, what its program needs is written, else everything.
 */
static enum err family_find(
	const struct lower_args *args, uint32_t rank, struct family **family)
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
		if (!e)
			e = family_fill(found, args->rank_count > FAMILY_WHOLE_MAX);
		if (!e) { /* others find only what is whole */
			found->next = shared;
			shared = found;
		}
	}
	if (!e)
		e = rank < args->rank_count ? program_have(found, rank) : all_have(found);
	pthread_mutex_unlock(&lock);
	if (e)
		family_put(found);
	else
		*family = found;
	return e;
}

enum err family_get(const struct lower_args *args, struct family **family)
{
	if (args->rank >= args->rank_count)
		return err_set(ERR_ARGUMENT, "rank %u of %u ranks", args->rank,
			args->rank_count);
	return family_find(args, args->rank, family);
}

enum err family_get_all(const struct lower_args *args, struct family **family)
{
	return family_find(args, args->rank_count, family);
}

enum err family_of(
	const struct sched *scheds, const struct lower_args *args, struct family **family)
{
	struct family *made = NULL;
	enum err e = family_create(scheds, args, &made);

	for (uint32_t rank = 0; !e && rank < args->rank_count; rank++)
		e = sched_note(made, rank);
	if (!e)
		e = measure_all(made);
	if (e)
		family_put(made);
	else
		*family = made;
	return e;
}

enum err family_measure(
	const struct lower_args *args, bool sample, struct family_size *size)
{
	struct family *family = NULL;
	enum err e = family_create(NULL, args, &family);

	if (!e)
		e = family_fill(family, sample);
	if (!e)
		*size = family->size;
	family_put(family);
	return e;
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
