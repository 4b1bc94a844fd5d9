/* A job that hangs, for `weft ps` to look at: each process is a rank of one communicator
 * called "stuck". All make a first call together; of the second one rank stays away. It
 * runs until it is killed.
 *
 * usage: stuck RANKS AWAY
 */
#include <nccl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static int fail(const char *what)
{
	fprintf(stderr, "stuck: %s: %s\n", what, ncclGetLastError(NULL));
	return 1;
}

static int run_rank(const ncclUniqueId *id, int rank_count, int rank, int away)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	float numbers[5] = {1, 2, 3, 4, 5};
	ncclComm_t comm;

	config.commName = "stuck";
	if (ncclCommInitRankConfig(&comm, rank_count, *id, rank, &config))
		return fail("init");
	if (ncclAllReduce(numbers, numbers, 5, ncclFloat, ncclSum, comm, NULL))
		return fail("first call");
	if (rank == away)
		for (;;)
			pause();
	if (ncclBroadcast(numbers, numbers, 3, ncclInt32, away, comm, NULL))
		return fail("second call");
	return 0;
}

int main(int argc, char **argv)
{
	int rank_count = argc > 2 ? atoi(argv[1]) : 0,
	    away = argc > 2 ? atoi(argv[2]) : 0;
	ncclUniqueId id;

	if (rank_count < 2 || away < 0 || away >= rank_count)
		return 2;
	if (ncclGetUniqueId(&id))
		return fail("id");
	for (int rank = 1; rank < rank_count; rank++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			return run_rank(&id, rank_count, rank, away);
		}
	return run_rank(&id, rank_count, 0, away);
}
