/* A program for any launcher: mpirun, mpiexec, srun, torchrun, weft run, a Kubernetes
 * Job. Every process is one rank, and all of them add up their ranks. */
#include <stdio.h>
#include <weft.h>

static int fail(const char *what, ncclResult_t result)
{
	fprintf(stderr, "%s: %s: %s\n", what, ncclGetErrorString(result),
		ncclGetLastError(NULL));
	return 1;
}

int main(void)
{
	weftLaunch_t launch;
	ncclComm_t comm;
	int sum;
	ncclResult_t result = weftGetLaunch(&launch);

	if (result)
		return fail("weftGetLaunch", result);
	result = weftInitFromEnv(&comm);
	if (result)
		return fail("weftInitFromEnv", result);
	result = ncclAllReduce(&launch.rank, &sum, 1, ncclInt, ncclSum, comm, NULL);
	if (result)
		return fail("ncclAllReduce", result);
	printf("rank %d of %d, started by %s: the ranks add up to %d\n", launch.rank,
		launch.nRanks, launch.launcher, sum);
	result = ncclCommDestroy(comm);
	return result ? fail("ncclCommDestroy", result) : 0;
}
