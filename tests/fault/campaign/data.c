#include "data.h"

#include <stdlib.h>
#include <string.h>

enum {
	GUARD = 64,	     /* elements in front and behind */
	MASK = (1 << 20) - 1 /* sums of 16 ranks stay below 2^31 */
};
static const int32_t guard_value = 0x3c3c3c3c, claim_value = 0x5aa55aa5;

static void run_set(int32_t *at, size_t count, int32_t value)
{
	for (size_t i = 0; i < count; i++)
		at[i] = value;
}

static bool run_is(const int32_t *at, size_t count, int32_t value)
{
	int32_t other = 0;

	for (size_t i = 0; i < count; i++)
		other |= at[i] ^ value;
	return !other;
}

bool data_create(struct data *data, const struct job *job)
{
	size_t elems = job->bytes / 4, bytes = (elems + 2 * GUARD) * 4;

	*data = (struct data){.job = job, .elems = elems};
	for (int i = 0; i < 2; i++) {
		if (job->nccl_memory && ncclMemAlloc((void **)&data->base[i], bytes))
			data->base[i] = NULL;
		else if (!job->nccl_memory)
			data->base[i] = malloc(bytes);
		if (!data->base[i])
			return false;
		run_set((int32_t *)(void *)data->base[i], elems + 2 * GUARD, guard_value);
	}
	data->in = (int32_t *)(void *)data->base[0] + GUARD;
	data->out = (int32_t *)(void *)data->base[1] + GUARD;
	return true;
}

void data_destroy(struct data *data)
{
	for (int i = 0; i < 2; i++) {
		if (data->base[i] && data->job->nccl_memory)
			ncclMemFree(data->base[i]);
		else
			free(data->base[i]);
		data->base[i] = NULL;
	}
}

/* A run of what one rank gives in one call, or of the sum of all. */
struct wave {
	int32_t base, factor;
	int call;
};

static struct wave wave_of(int rank, int call)
{
	return (struct wave){rank << 20, 1, call};
}

static struct wave wave_sum(const struct group *group, int call)
{
	struct wave wave = {0, group->count, call};

	for (int i = 0; i < group->count; i++)
		wave.base += group->members[i] << 20;
	return wave;
}

static int32_t wave_at(struct wave wave, uint32_t index)
{
	return wave.base +
	       wave.factor * (int32_t)((index + 37u * (uint32_t)wave.call) & MASK);
}

static void wave_fill(int32_t *at, size_t count, struct wave wave, size_t first)
{
	for (size_t i = 0; i < count; i++)
		at[i] = wave_at(wave, (uint32_t)(first + i));
}

static bool wave_matches(const int32_t *at, size_t count, struct wave wave, size_t first)
{
	int32_t other = 0;

	for (size_t i = 0; i < count; i++)
		other |= at[i] ^ wave_at(wave, (uint32_t)(first + i));
	return !other;
}

static bool has_blocks(int collective)
{
	return collective >= ALL_GATHER && collective <= SCATTER;
}

/* Elements a call speaks of: all, or those of one block. */
static size_t count_of(const struct data *data, const struct group *group)
{
	return has_blocks(data->job->collective) ? data->elems / (size_t)group->count
						 : data->elems;
}

/* Where a call sends from and receives to. */
struct ends {
	int32_t *in, *out;
	bool in_place;
};

static struct ends ends_of(const struct data *data, const struct group *group)
{
	size_t mine = (size_t)group->me * count_of(data, group);
	struct ends ends = {data->in, data->out, data->job->in_place};

	if (!ends.in_place)
		return ends;
	switch (data->job->collective) {
	case ALL_REDUCE:
	case BROADCAST:
	case REDUCE:
		ends.in = ends.out;
		break;
	case ALL_GATHER:
		ends.in = ends.out + mine;
		break;
	case REDUCE_SCATTER:
		ends.out = ends.in + mine;
		break;
	default:
		ends.in_place = false;
	}
	return ends;
}

static size_t input_count(const struct data *data, const struct group *group)
{
	int collective = data->job->collective;
	size_t count = count_of(data, group);
	bool all = collective == REDUCE_SCATTER || collective == ALL_TO_ALL ||
		   collective == SCATTER;

	return all ? count * (size_t)group->count : count;
}

void data_fill(struct data *data, const struct group *group, int call)
{
	wave_fill(ends_of(data, group).in, input_count(data, group),
		wave_of(group->members[group->me], call), 0);
}

ncclResult_t data_call(struct data *data, const struct group *group, int call)
{
	const struct ends ends = ends_of(data, group);
	const struct collective_call made = {.collective = data->job->collective,
		.in = ends.in,
		.out = ends.out,
		.count = count_of(data, group),
		.type = ncclInt,
		.op = ncclSum,
		.root = call % group->count,
		.comm = group->comm};

	return made.collective == SEND_RECV ? ring_call(&made, group->me, group->count)
					    : collective_call(&made);
}

/* Block j of the output is rank j's input from element `first` on. */
static bool blocks_match(const int32_t *out, size_t count, const struct group *group,
	int call, size_t first)
{
	for (int j = 0; j < group->count; j++)
		if (!wave_matches(out + (size_t)j * count, count,
			    wave_of(group->members[j], call), first))
			return false;
	return true;
}

static bool output_matches(const struct data *data, const struct group *group, int call)
{
	const int32_t *out = ends_of(data, group).out;
	size_t count = count_of(data, group), mine = (size_t)group->me * count;
	int root = call % group->count, n = group->count;
	struct wave of_root = wave_of(group->members[root], call);
	bool is_root = group->me == root;

	switch (data->job->collective) {
	case ALL_REDUCE:
		return wave_matches(out, count, wave_sum(group, call), 0);
	case BROADCAST:
		return wave_matches(out, count, of_root, 0);
	case REDUCE:
		return !is_root || wave_matches(out, count, wave_sum(group, call), 0);
	case REDUCE_SCATTER:
		return wave_matches(out, count, wave_sum(group, call), mine);
	case ALL_GATHER:
		return blocks_match(out, count, group, call, 0);
	case GATHER:
		return !is_root || blocks_match(out, count, group, call, 0);
	case ALL_TO_ALL:
		return blocks_match(out, count, group, call, mine);
	case SCATTER:
		return wave_matches(out, count, of_root, mine);
	default:
		return wave_matches(out, count,
			wave_of(group->members[(group->me + n - 1) % n], call), 0);
	}
}

static bool guards_hold(const struct data *data)
{
	bool hold = true;

	for (int i = 0; i < 2; i++) {
		const int32_t *base = (const int32_t *)(const void *)data->base[i];

		hold = hold && run_is(base, GUARD, guard_value) &&
		       run_is(base + GUARD + data->elems, GUARD, guard_value);
	}
	return hold;
}

const char *data_check(const struct data *data, const struct group *group, int call)
{
	const struct ends ends = ends_of(data, group);

	if (!guards_hold(data))
		return "wrote beside a buffer";
	if (data->job->fault == FAULT_GARBLE)
		return NULL;
	if (!output_matches(data, group, call))
		return "success with wrong data";
	if (!ends.in_place && !wave_matches(ends.in, input_count(data, group),
				      wave_of(group->members[group->me], call), 0))
		return "changed what is sent";
	return NULL;
}

void data_claim(struct data *data)
{
	run_set(data->in, data->elems, claim_value);
	run_set(data->out, data->elems, claim_value);
}

const char *data_check_claim(const struct data *data)
{
	if (!guards_hold(data))
		return "wrote beside a buffer";
	if (!run_is(data->out, data->elems, claim_value))
		return "wrote into a receive buffer that was given back";
	if (!run_is(data->in, data->elems, claim_value))
		return "wrote into a send buffer that was given back";
	return NULL;
}
