/*
 * method.h - how every contender is timed: the same sizes, counts and best-of rule.
 *
 * A timer is called `timer COLLECTIVE BYTES[,BYTES..]` (plus its own words in front) and
 * prints `COLLECTIVE RANKS BYTES MICROSECONDS` per size: the best of a few loops, each
 * loop's time being that of its slowest rank. C and C++.
 */
#ifndef BENCH_METHOD_H
#define BENCH_METHOD_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum method_coll {
	ALL_REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	BROADCAST,
	ALLTOALL,
	METHOD_COLLS
};

enum { METHOD_LOOPS = 3, METHOD_SIZES_MAX = 32, METHOD_RANKS_MAX = 256 };

static inline const char *method_name(int coll)
{
	static const char *const names[] = {
		"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall"};

	return names[coll];
}

/* METHOD_COLLS for an unknown name. */
static inline int method_find(const char *name)
{
	int coll = 0;

	while (coll < METHOD_COLLS && strcmp(name, method_name(coll)))
		coll++;
	return coll;
}

/* Calls per loop, the same for everyone .. */
static inline int method_iters(size_t bytes)
{
	if (bytes <= 32768)
		return 400;
	if (bytes <= 262144)
		return 100;
	if (bytes <= 2097152)
		return 30;
	return bytes <= 16777216 ? 8 : 4;
}

static inline int method_warm(size_t bytes)
{
	return method_iters(bytes) / 20 + 2;
}

/* .. but for who is so slow (`seconds` per call when warming up) that a loop would take
 * much longer than a tenth of a second. All ranks must pass the same time. */
static inline int method_loop(size_t bytes, double seconds)
{
	int iters = method_iters(bytes);
	double fit = 0.1 / (seconds > 1e-9 ? seconds : 1e-9);

	if (fit >= iters)
		return iters;
	return fit > 3 ? (int)fit : 3;
}

/* A size is the larger buffer; collectives of blocks move this many floats per rank. */
static inline size_t method_block(size_t bytes, int ranks)
{
	size_t floats = bytes / sizeof(float) / (size_t)ranks;

	return floats ? floats : 1;
}

/* Buffers hold the largest size and, for tiny ones, one float per rank. */
static inline size_t method_buffer(size_t bytes, int ranks)
{
	size_t least = (size_t)ranks * sizeof(float);
	size_t need = bytes > least ? bytes : least;

	return (need + 4095) / 4096 * 4096;
}

/* "8,4096,.." into sizes; how many. */
static inline int method_sizes(const char *text, size_t *sizes)
{
	int count = 0;

	while (*text && count < METHOD_SIZES_MAX) {
		char *end;

		sizes[count++] = strtoull(text, &end, 10);
		text = *end ? end + 1 : end;
	}
	return count;
}

static inline size_t method_largest(const size_t *sizes, int count)
{
	size_t largest = 0;

	for (int i = 0; i < count; i++)
		largest = sizes[i] > largest ? sizes[i] : largest;
	return largest;
}

static inline double method_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Processor time of this process, the kernel's on its behalf included. */
static inline double method_cpu(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline void method_print(int coll, int ranks, size_t bytes, double seconds)
{
	printf("%s %d %zu %.3f\n", method_name(coll), ranks, bytes, seconds * 1e6);
	fflush(stdout);
}

/* .. with the processor time of all ranks together. */
static inline void method_print_cpu(
	int coll, int ranks, size_t bytes, double seconds, double cpu)
{
	printf("%s %d %zu %.3f %.3f\n", method_name(coll), ranks, bytes, seconds * 1e6,
		cpu * 1e6);
	fflush(stdout);
}

#endif
