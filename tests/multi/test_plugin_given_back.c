/*
 * A receive that a network plugin has under way when the call fails: as soon as the call
 * has returned its memory is the program's, which gives it back before it ends the
 * communicator. The test plugin ends the process when it hears of such memory later.
 */
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ranks.h"

enum { BYTES = 4 << 20, DELAY_US = 200000 };

static void main_of(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	char *data = mmap(
		NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int sum = 1;

	HOLDS(data != MAP_FAILED);
	OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, NULL));
	EQ(sum, rank->rank_count);
	if (rank->rank == 1) {
		usleep(DELAY_US);
		raise(SIGKILL);
	}
	GIVES(rank->argument ? ncclRecv(data, BYTES, ncclUint8, 1, comm, NULL)
			     : ncclBroadcast(data, data, BYTES, ncclUint8, 1, comm, NULL),
		ncclRemoteError);
	HOLDS(strstr(ncclGetLastError(comm), "rank 1"));
	EQ(munmap(data, BYTES), 0);
	GIVES(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, NULL),
		ncclRemoteError);
	OK(ncclCommAbort(comm));
}

int main(void)
{
	for (int is_message = 0; is_message < 2; is_message++) {
		struct ranks ranks = {.processes = 2,
			.threads = 1,
			.function = main_of,
			.argument = is_message ? "message" : NULL};

		ranks_start(&ranks);
		ranks_wait(&ranks, 1u << 1);
	}
	return 0;
}
