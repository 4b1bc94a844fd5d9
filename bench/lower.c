/*
 * What one rank pays to lower its program: time and memory, for every schedule of the
 * catalog, in each mode, on one host and with eight ranks on each, of which it is the
 * first and drives. Each case runs in a child of its own, so that nothing is there yet
 * and the peak is its own.
 *
 * usage: lower RANKS...
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sched/lower.h"

enum { RANKS_PER_HOST = 8, DEPTH = 2 };

static double now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

static long peak_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

static int measure(const struct lower_args *args)
{
	long before = peak_kb();
	double start = now_ms();
	struct program *program;

	if (program_lower(args, &program)) {
		fprintf(stderr, "lower: %s\n", err_last());
		return 1;
	}
	printf("%-15s %-15s %6u  %-6s  %-5s %8.2f ms %6ld KiB\n",
		coll_name(args->kind->coll), args->kind->name, args->rank_count,
		lower_mode_name(args->mode), args->hosts ? "hosts" : "host",
		now_ms() - start, peak_kb() - before);
	fflush(stdout);
	program_destroy(program);
	return 0;
}

static int measure_apart(const struct lower_args *args)
{
	pid_t child = fork();
	int status = 0;

	if (!child)
		_exit(measure(args));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	return status;
}

static int measure_kind(const struct sched_kind *kind, uint32_t ranks)
{
	uint32_t host = ranks / 3 / RANKS_PER_HOST;
	struct lower_args args = {.kind = kind,
		.rank_count = ranks,
		.rank = host * RANKS_PER_HOST,
		.depth = DEPTH};
	uint16_t *hosts = calloc(ranks, sizeof(*hosts));
	int failed = !hosts;

	for (uint32_t i = 0; hosts && i < ranks; i++)
		hosts[i] = (uint16_t)(i / RANKS_PER_HOST);
	for (int i = 0; i < 2 * LOWER_MODES && !failed; i++) {
		args.mode = (enum lower_mode)(i % LOWER_MODES);
		args.hosts = i < LOWER_MODES ? NULL : hosts;
		failed = measure_apart(&args);
	}
	free(hosts);
	return failed;
}

int main(int argc, char **argv)
{
	const struct sched_kind *kind;

	for (int i = 1; i < argc; i++) {
		long ranks = strtol(argv[i], NULL, 10);

		for (uint32_t k = 0; (kind = catalog_at(k)); k++)
			if (ranks > 1 && ranks <= kind->rank_max &&
				measure_kind(kind, (uint32_t)ranks))
				return 1;
	}
	return 0;
}
