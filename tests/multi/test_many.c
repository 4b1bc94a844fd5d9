/*
 * Very many ranks, all threads of one process: small collectives are right, and what the
 * process takes grows with the ranks and not with their square or cube.
 */
#include "ranks.h"

enum { RANKS = 256, RANKS_LEAN = 32, PEAK_MB = 200 };

struct job {
	pthread_t thread;
	ncclComm_t comm;
	int rank, rank_count;
};

/* Each of the five, with values that tell the ranks apart. */
static void *job_main(void *argument)
{
	const struct job *job = argument;
	int n = job->rank_count, last = n - 1;
	int64_t *in = calloc((size_t)n, sizeof(*in)),
		*out = calloc((size_t)n, sizeof(*out));

	for (int i = 0; i < n; i++)
		in[i] = job->rank + i;
	OK(ncclAllReduce(in, out, 1, ncclInt64, ncclSum, job->comm, NULL));
	HOLDS(out[0] == (int64_t)n * (n - 1) / 2);
	OK(ncclBroadcast(in, out, 1, ncclInt64, last, job->comm, NULL));
	HOLDS(out[0] == last);
	OK(ncclReduce(in, out, 1, ncclInt64, ncclMax, 0, job->comm, NULL));
	HOLDS(job->rank || out[0] == last);
	OK(ncclAllGather(in, out, 1, ncclInt64, job->comm, NULL));
	for (int i = 0; i < n; i++)
		HOLDS(out[i] == i);
	OK(ncclReduceScatter(in, out, 1, ncclInt64, ncclSum, job->comm, NULL));
	HOLDS(out[0] == (int64_t)n * (n - 1) / 2 + (int64_t)n * job->rank);
	free(in);
	free(out);
	return NULL;
}

static long peak_kb(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long peak = 0;

	TRUE(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &peak) == 1)
			break;
	fclose(file);
	return peak;
}

static void run(int n)
{
	struct job *jobs = calloc((size_t)n, sizeof(*jobs));
	ncclComm_t *comms = calloc((size_t)n, sizeof(*comms));

	OK(ncclCommInitAll(comms, n, NULL));
	for (int i = 0; i < n; i++) {
		jobs[i] = (struct job){.comm = comms[i], .rank = i, .rank_count = n};
		EQ(pthread_create(&jobs[i].thread, NULL, job_main, &jobs[i]), 0);
	}
	for (int i = 0; i < n; i++)
		EQ(pthread_join(jobs[i].thread, NULL), 0);
	for (int i = 0; i < n; i++)
		OK(ncclCommDestroy(comms[i]));
	free(comms);
	free(jobs);
}

int main(int argc, char **argv)
{
	int n = has_option(argc, argv, "--lean") ? RANKS_LEAN : RANKS;

	if (has_option(argc, argv, "--more"))
		n = 2 * RANKS + 3;
	run(n);
	if (!is_sanitized())
		TRUE(peak_kb() < (long)PEAK_MB << 10);
	return 0;
}
