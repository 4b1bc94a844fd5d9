/*
 * What the machine's memory allows: ./limit N COLLECTIVE BYTES,BYTES,..
 *
 * Threads that see each other's buffers do only what the result needs: each reads what it
 * must and writes what it must, once, between two barriers: with plain stores and with
 * stores past the caches, of which the faster counts. No library could do with fewer
 * bytes; a better kernel or fewer barriers can still beat it at small sizes.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "method.h"

enum { TILE = 4096, SPINS = 100, LINE = 16 /* floats */ };

static int ranks, coll, size_count;
static bool crowded; /* more ranks than cores: a waiting one must let others run */
static size_t sizes[METHOD_SIZES_MAX];
static float *sends[METHOD_RANKS_MAX], *recvs[METHOD_RANKS_MAX];
static double times[METHOD_RANKS_MAX];
static _Thread_local bool streaming; /* stores go past the caches */

/* One line per rank: everyone looks at everyone's count. */
static struct {
	_Alignas(64) atomic_uint count;
} arrivals[METHOD_RANKS_MAX];

static void barrier(int me)
{
	unsigned mine = atomic_load_explicit(&arrivals[me].count, memory_order_relaxed) +
			1;

	atomic_store_explicit(&arrivals[me].count, mine, memory_order_release);
	for (int i = 0; i < ranks; i++) {
		int spins = 0;

		while ((int)(atomic_load_explicit(
				     &arrivals[i].count, memory_order_acquire) -
			       mine) < 0)
			if (++spins > SPINS && crowded)
				sched_yield();
	}
}

/* A plain store first reads the line that it overwrites. */
static void copy(float *out, const float *in, size_t count)
{
#ifdef __SSE2__
	if (streaming && !((uintptr_t)out % 16)) {
		size_t at = 0;

		for (; at + 4 <= count; at += 4)
			_mm_stream_ps(out + at, _mm_loadu_ps(in + at));
		for (; at < count; at++)
			out[at] = in[at];
		_mm_sfence();
		return;
	}
#endif
	memcpy(out, in, count * sizeof(float));
}

/* Sum everyone's floats first..first+count into `out`. */
static void sum(float *restrict out, size_t first, size_t count)
{
	memcpy(out, sends[0] + first, count * sizeof(float));
	for (int i = 1; i < ranks; i++) {
		const float *restrict in = sends[i] + first;

		for (size_t j = 0; j < count; j++)
			out[j] += in[j];
	}
}

static void all_reduce(int me, size_t floats)
{
	size_t lines = (floats + LINE - 1) / LINE;
	size_t share = (lines + (size_t)ranks - 1) / (size_t)ranks * LINE;
	size_t first = share * (size_t)me, last = first + share;
	float tile[TILE];

	first = first < floats ? first : floats;
	last = last < floats ? last : floats;
	for (size_t at = first; at < last; at += TILE) {
		size_t count = last - at < TILE ? last - at : TILE;

		sum(tile, at, count);
		for (int i = 0; i < ranks; i++)
			copy(recvs[i] + at, tile, count);
	}
}

static void reduce_scatter(int me, size_t block)
{
	float tile[TILE];

	for (size_t at = 0; at < block; at += TILE) {
		size_t count = block - at < TILE ? block - at : TILE;
		float *out = streaming ? tile : recvs[me] + at;

		sum(out, (size_t)me * block + at, count);
		if (streaming)
			copy(recvs[me] + at, tile, count);
	}
}

static void call(int me, size_t bytes)
{
	size_t block = method_block(bytes, ranks);

	barrier(me);
	if (coll == ALL_REDUCE)
		all_reduce(me, bytes / sizeof(float));
	if (coll == REDUCE_SCATTER)
		reduce_scatter(me, block);
	if (coll == BROADCAST && me)
		copy(sends[me], sends[0], bytes / sizeof(float));
	for (int i = 0; i < ranks && (coll == ALL_GATHER || coll == ALLTOALL); i++)
		copy(recvs[me] + (size_t)i * block,
			sends[i] + (coll == ALLTOALL ? (size_t)me * block : 0), block);
	barrier(me);
}

static double loop(int me, size_t bytes, int iters)
{
	double start, slowest = 0;

	barrier(me);
	start = method_now();
	for (int i = 0; i < iters; i++)
		call(me, bytes);
	times[me] = (method_now() - start) / iters;
	barrier(me);
	for (int i = 0; i < ranks; i++)
		slowest = times[i] > slowest ? times[i] : slowest;
	barrier(me);
	return slowest;
}

/* A core each, as mpirun gives its ranks. */
static void pin(int me)
{
	cpu_set_t allowed, mine;
	int seen = 0;

	if (crowded || sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	CPU_ZERO(&mine);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && seen++ == me)
			CPU_SET(cpu, &mine);
	sched_setaffinity(0, sizeof(mine), &mine);
}

static void *rank_main(void *argument)
{
	int me = (int)(size_t)argument;
	size_t room = method_buffer(method_largest(sizes, size_count), ranks);

	pin(me);
	sends[me] = aligned_alloc(4096, room);
	recvs[me] = aligned_alloc(4096, room);
	if (!sends[me] || !recvs[me])
		exit(1);
	memset(sends[me], 0, room);
	memset(recvs[me], 0, room);
	for (int i = 0; i < size_count; i++) {
		double warm = loop(me, sizes[i], method_warm(sizes[i])), best = 0;
		int iters = method_loop(sizes[i], warm);

		for (int j = 0; j < 2 * METHOD_LOOPS; j++) {
			double seconds;

			streaming = j % 2;
			seconds = loop(me, sizes[i], iters);
			best = j && best < seconds ? best : seconds;
		}
		if (!me)
			method_print(coll, ranks, sizes[i], best);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[METHOD_RANKS_MAX];

	ranks = argc == 4 ? atoi(argv[1]) : 0;
	coll = argc == 4 ? method_find(argv[2]) : METHOD_COLLS;
	if (ranks < 1 || ranks > METHOD_RANKS_MAX || coll == METHOD_COLLS) {
		fprintf(stderr, "usage: limit N COLLECTIVE BYTES[,BYTES..]\n");
		return 2;
	}
	size_count = method_sizes(argv[3], sizes);
	crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
	for (int i = 0; i < ranks; i++)
		if (pthread_create(&threads[i], NULL, rank_main, (void *)(size_t)i))
			return 1;
	for (int i = 0; i < ranks; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
