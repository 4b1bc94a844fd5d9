/* Buffers that are the same as in the last call, and buffers that only look so: other
 * offsets, memory that was freed and allocated again in the same place, plain memory in
 * between. Ranks change theirs independently of each other; every value is looked at. */
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

enum { ROUNDS = 240, BLOCK = 1024, ELEMS = BLOCK * RANKS_MAX, HALF = ELEMS };

/* Room for two buffers, from ncclMemAlloc or not. */
struct memory {
	int *base;
	bool is_plain;
	int half; /* which of the two the last call had */
};

static void memory_get(struct memory *memory, bool is_plain)
{
	size_t bytes = 2 * HALF * sizeof(int);
	void *base = is_plain ? malloc(bytes) : NULL;

	if (!is_plain)
		OK(ncclMemAlloc(&base, bytes));
	HOLDS(base);
	memory->base = base;
	memory->is_plain = is_plain;
}

static void memory_put(struct memory *memory)
{
	if (memory->is_plain)
		free(memory->base);
	else
		OK(ncclMemFree(memory->base));
}

/* Mostly the same again; else its other half, a new one, or for one call plain memory. */
static int *memory_next(struct memory *memory, unsigned *seed)
{
	unsigned dice = (unsigned)rand_r(seed) % 64;

	if (memory->is_plain || dice < 9) {
		bool is_plain = !memory->is_plain && !dice;

		memory_put(memory);
		memory_get(memory, is_plain);
	} else if (dice < 18) {
		memory->half = !memory->half;
	}
	return memory->base + memory->half * HALF;
}

static int value(int round, int from, int to, int elem)
{
	return round * 1000003 + from * 50021 + to * 1009 + elem;
}

static void exchange(
	const struct rank *rank, ncclComm_t comm, int round, int *in, int *out)
{
	int n = rank->rank_count, me = rank->rank;

	for (int i = 0; i < n * BLOCK; i++)
		in[i] = value(round, me, i / BLOCK, i % BLOCK);
	memset(out, 0, (size_t)n * BLOCK * sizeof(int));
	OK(ncclAlltoAll(in, out, BLOCK, ncclInt, comm, NULL));
	for (int i = 0; i < n * BLOCK; i++)
		HOLDS(out[i] == value(round, i / BLOCK, me, i % BLOCK));
}

/* Here the others write what they have into our memory. */
static void gather(const struct rank *rank, ncclComm_t comm, int round, int *in, int *out)
{
	int n = rank->rank_count;

	for (int i = 0; i < BLOCK; i++)
		in[i] = value(round, rank->rank, 0, i);
	OK(ncclAllGather(in, out, BLOCK, ncclInt, comm, NULL));
	for (int i = 0; i < n * BLOCK; i++)
		HOLDS(out[i] == value(round, i / BLOCK, 0, i % BLOCK));
}

static void changing(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	unsigned seed = 77u + (unsigned)rank->rank;
	struct memory in = {0}, out = {0};

	memory_get(&in, false);
	memory_get(&out, false);
	for (int round = 0; round < ROUNDS; round++) {
		int *from = memory_next(&in, &seed), *to = memory_next(&out, &seed);

		rank_context("rank %d, round %d", rank->rank, round);
		if (round % 3 == 2)
			gather(rank, comm, round, from, to);
		else
			exchange(rank, comm, round, from, to);
	}
	OK(ncclCommDestroy(comm));
	memory_put(&in);
	memory_put(&out);
}

int main(void)
{
	static const struct {
		int processes, threads;
	} jobs[] = {{2, 1}, {5, 1}, {2, 2}, {1, 3}};

	for (unsigned i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		ranks_run(&(struct ranks){.processes = jobs[i].processes,
			.threads = jobs[i].threads,
			.function = changing});
	return 0;
}
