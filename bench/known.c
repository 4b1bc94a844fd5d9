/*
 * What libnccl-net-ofi.so pays to find memory that a provider knows already: BUFFERS are
 * registered once and held, then asked for again in an order without a pattern, each with
 * its lock as the plugin does. Registering itself costs nothing here.
 *
 * usage: known [BUFFERS]
 */
#include "ofi/known.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BUFFERS = 1000, BUFFERS_MAX = 1 << 20, BYTES = 64 << 10, ROUNDS = 5 };
enum { HITS = 1000000 };

static int reg(void *context, const struct known_range *range, void **made)
{
	(void)context;
	*made = range->data;
	return 0;
}

static void dereg(void *context, void *made)
{
	(void)context;
	(void)made;
}

static double now_ns(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

/* Far apart, so that none covers another. */
static char *buffer(uint32_t index)
{
	return (char *)((uintptr_t)index * 2 * BYTES + BYTES);
}

/* ns for one registration and its end, all of them found. */
static double round_time(struct known_cache *cache, uint32_t count)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	double start = now_ns();
	uint32_t at = 1;

	for (uint32_t i = 0; i < HITS; i++) {
		struct known *known;

		at = at * 1664525 + 1013904223;
		pthread_mutex_lock(&lock);
		if (known_get(cache,
			    &(struct known_range){.data = buffer((at >> 8) % count) + 100,
				    .bytes = BYTES / 2},
			    &known))
			exit(1);
		known_put(cache, known);
		pthread_mutex_unlock(&lock);
	}
	return (now_ns() - start) / HITS;
}

int main(int argc, char **argv)
{
	static const struct known_ops ops = {reg, dereg};
	struct known_cache cache = {.ops = &ops};
	uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : BUFFERS;
	double best = 0;

	if (argc > 2 || !count || count > BUFFERS_MAX) {
		fprintf(stderr, "usage: known [BUFFERS], up to %d\n", BUFFERS_MAX);
		return 2;
	}
	for (uint32_t i = 0; i < count; i++) {
		struct known *known;

		if (known_get(&cache,
			    &(struct known_range){.data = buffer(i), .bytes = BYTES},
			    &known))
			return 1;
	}
	for (int i = 0; i < ROUNDS; i++) {
		double ns = round_time(&cache, count);

		best = !i || ns < best ? ns : best;
	}
	printf("%u buffers known: %.0f ns a hit, the best of %d rounds of %d\n", count,
		best, ROUNDS, HITS);
	if (cache.hits != (uint64_t)ROUNDS * HITS) {
		fprintf(stderr, "known: only %llu were hits\n",
			(unsigned long long)cache.hits);
		return 1;
	}
	known_forget(&cache);
	return 0;
}
