/*
 * How long a cluster's decisions take, and how much memory: machine file to model, on one
 * core, for 1, 16 and 1024 hosts. Each case runs in a child of its own, so that the peak
 * is its own.
 *
 * usage: decide FILE.xml [HOSTS...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "weft/graph_job.h"

enum { ROUNDS = 5 };

static double now_ms(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e3 + (double)at.tv_nsec / 1e6;
}

/* One decision; its time, or a negative number. */
static double once(char *name, uint32_t hosts, int *ranks, int *channels)
{
	double start = now_ms(), took = -1;
	struct graph_job job;

	graph_job_init(&job);
	job.args.host_count = hosts;
	if (!graph_job_load(&job, 1, &name) && !graph_job_run(&job)) {
		took = now_ms() - start;
		*ranks = job.decision->cluster->rank_count;
		*channels = job.decision->cluster->channel_count;
	}
	graph_job_fini(&job);
	return took;
}

static int measure(char *name, uint32_t hosts)
{
	double best = -1, first = -1;
	int ranks = 0, channels = 0;
	struct rusage usage;

	for (int i = 0; i < ROUNDS; i++) {
		double took = once(name, hosts, &ranks, &channels);

		if (took < 0) {
			fprintf(stderr, "decide: %s\n", err_last());
			return 1;
		}
		if (!i)
			first = took;
		if (best < 0 || took < best)
			best = took;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%6u %8d %9d %10.1f %10.1f %10.1f\n", hosts, ranks, channels, first, best,
		(double)usage.ru_maxrss / 1024);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static char *usual[] = {"1", "16", "1024"};
	char **hosts = argc > 2 ? argv + 2 : usual;
	int count = argc > 2 ? argc - 2 : 3, bad = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: decide FILE.xml [HOSTS...]\n");
		return 2;
	}
	printf("%6s %8s %9s %10s %10s %10s\n", "hosts", "ranks", "channels", "first ms",
		"best ms", "peak MiB");
	fflush(stdout);
	for (int i = 0; i < count; i++) {
		long value = strtol(hosts[i], NULL, 10);
		pid_t child;
		int status = 1;

		if (value < 1 || value > 65536) {
			fprintf(stderr, "decide: '%s' is no number of hosts\n", hosts[i]);
			return 2;
		}
		child = fork();
		if (!child)
			_exit(measure(argv[1], (uint32_t)value));
		if (child < 0 || waitpid(child, &status, 0) < 0)
			return 1;
		bad |= status;
	}
	return bad ? 1 : 0;
}
