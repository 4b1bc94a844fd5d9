/* Four ranks, one thread each, sum two numbers in ordinary memory. */
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>

static void *rank_main(void *comm)
{
	float x[2] = {1, 0};
	int rank = 0;

	ncclCommUserRank(comm, &rank);
	x[1] = (float)rank;
	if (ncclAllReduce(x, x, 2, ncclFloat, ncclSum, comm, NULL) != ncclSuccess)
		fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(comm));
	printf("rank %d: %g %g\n", rank, x[0], x[1]);
	return NULL;
}

int main(void)
{
	ncclComm_t comms[4];
	pthread_t threads[4];

	if (ncclCommInitAll(comms, 4, NULL) != ncclSuccess) {
		fprintf(stderr, "%s\n", ncclGetLastError(NULL));
		return 1;
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, rank_main, comms[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		ncclCommDestroy(comms[i]);
	return 0;
}
