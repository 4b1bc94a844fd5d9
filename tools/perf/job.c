#include "perf/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft.h>

/* The communicator of the processes; one thread of each at a time uses it. */
static ncclComm_t together;

static bool went_wrong(const char *call, ncclResult_t result)
{
	fprintf(stderr, "the processes of this job no longer meet: %s: %s / %s\n", call,
		ncclGetErrorString(result), ncclGetLastError(together));
	return false;
}

static bool others_combine(void *arg, enum combine how, double *value)
{
	static const ncclRedOp_t ops[] = {[COMBINE_MIN] = ncclMin,
		[COMBINE_MAX] = ncclMax,
		[COMBINE_SUM] = ncclSum};
	ncclResult_t result;

	(void)arg;
	if (how == COMBINE_FIRST)
		result = ncclBroadcast(value, value, 1, ncclDouble, 0, together, NULL);
	else
		result = ncclAllReduce(
			value, value, 1, ncclDouble, ops[how], together, NULL);
	return !result || went_wrong("ncclAllReduce", result);
}

static bool others_share(void *arg, void *data, size_t bytes)
{
	ncclResult_t result = ncclBroadcast(
		data, data, bytes, ncclChar, 0, together, NULL);

	(void)arg;
	return !result || went_wrong("ncclBroadcast", result);
}

int job_find(struct run *run)
{
	weftLaunch_t launch;
	ncclResult_t result = weftGetLaunch(&launch);

	run->process_count = 1;
	if (result) {
		fprintf(stderr, "%s: %s\n", run->program, ncclGetLastError(NULL));
		return TEST_USAGE;
	}
	if (launch.nRanks == 1)
		return TEST_OK;
	run->launcher = launch.launcher;
	run->process = (uint32_t)launch.rank;
	run->process_count = (uint32_t)launch.nRanks;
	run->local_rank = launch.localRank < 0 ? 0 : (uint32_t)launch.localRank;
	run->local_count = launch.nLocalRanks < 1 ? run->process_count
						  : (uint32_t)launch.nLocalRanks;
	if (run->options.procs == 1)
		return TEST_OK;
	if (!run->process)
		fprintf(stderr,
			"%s: -p %d starts processes, and %s has started %u already: "
			"leave -p out, or set WEFT_LAUNCHER=none\n",
			run->program, run->options.procs, run->launcher,
			run->process_count);
	return TEST_USAGE;
}

/* Where each process is, to everybody. */
static int places_gather(struct run *run)
{
	struct place *mine = &run->places[run->process];
	ncclResult_t result;

	mine->pid = getpid();
	mine->local_rank = run->local_rank;
	snprintf(mine->host, sizeof(mine->host), "%s", run->machine.host);
	result = ncclAllGather(
		mine, run->places, sizeof(*mine), ncclChar, together, NULL);
	if (!result)
		return TEST_OK;
	went_wrong("ncclAllGather", result);
	return TEST_NCCL;
}

int job_open(struct run *run)
{
	struct meet_others others = {.process = run->process,
		.process_count = run->process_count,
		.combine = others_combine,
		.share = others_share};
	double bytes = (double)run->max_bytes;
	ncclResult_t result;
	int status;

	run->places = calloc(run->process_count, sizeof(*run->places));
	if (!run->places)
		return TEST_INTERNAL;
	if (run->process_count == 1)
		return TEST_OK;
	result = weftInitFromEnv(&together);
	if (result) {
		fprintf(stderr, "%s: process %u of %u, started by %s: %s / %s\n",
			run->machine.host, run->process, run->process_count,
			run->launcher, ncclGetErrorString(result),
			ncclGetLastError(NULL));
		return TEST_NCCL;
	}
	status = places_gather(run);
	if (status)
		return status;
	/* the host with the least memory sets the largest size */
	if (!others_combine(NULL, COMBINE_MIN, &bytes))
		return TEST_NCCL;
	run->max_bytes = (uint64_t)bytes;
	meet_join(run->meet, &others, TEST_NCCL);
	return TEST_OK;
}

void job_close(struct run *run)
{
	if (together)
		ncclCommDestroy(together);
	together = NULL;
	free(run->places);
	run->places = NULL;
}
