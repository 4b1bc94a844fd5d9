/*
 * Small calls with a root, one after the other between hosts: their messages may go
 * together (src/exec/host/remote.c), which shows in the sockets of who sends. In calls in
 * which a rank waits for one that waits for it, each leaves at once, from the first on.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "ranks.h"

enum { STREAM = 40, FEW = 4, FDS = 256, LARGE = 1 << 20 };

/* Connections of this process whose short messages wait for answers. */
static int bunching(void)
{
	int count = 0;

	for (int fd = 3; fd < FDS; fd++) {
		struct sockaddr_in6 peer;
		socklen_t bytes = sizeof(peer), size = sizeof(int);
		int at_once = 1;

		if (!getpeername(fd, (struct sockaddr *)&peer, &bytes) &&
			!getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &at_once, &size))
			count += !at_once;
	}
	return count;
}

static void broadcasts(ncclComm_t comm, int rank, int32_t *data, size_t words, int calls)
{
	for (int i = 0; i < calls; i++) {
		data[0] = rank ? -1 : i;
		OK(ncclBroadcast(data, data, words, ncclInt32, 0, comm, NULL));
		HOLDS(data[0] == i);
	}
}

static void rank_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int32_t *data = calloc(LARGE, sizeof(*data));
	int32_t sum;

	HOLDS(data);
	broadcasts(comm, rank->rank, data, 2, FEW);
	HOLDS(bunching() == 0);
	broadcasts(comm, rank->rank, data, 2, STREAM);
	HOLDS((bunching() > 0) == (rank->rank == 0));
	rank_meet(rank);
	sum = rank->rank;
	OK(ncclAllReduce(&sum, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	HOLDS(sum == rank->rank_count * (rank->rank_count - 1) / 2);
	HOLDS(bunching() == 0);
	broadcasts(comm, rank->rank, data, 2, STREAM);
	HOLDS((bunching() > 0) == (rank->rank == 0));
	broadcasts(comm, rank->rank, data, LARGE, 1);
	HOLDS(bunching() == 0);
	free(data);
	OK(ncclCommDestroy(comm));
}

int main(void)
{
	static const char *const hosts[] = {"WEFT_TEST_HOSTS", "2", NULL};
	struct ranks ranks = {.processes = 2,
		.threads = 1,
		.function = rank_main,
		.environment = hosts};

	ranks_run(&ranks);
	return 0;
}
