/*
 * How long many processes take to make a communicator and to destroy it, and what that
 * costs all of them together in processor time:
 *     build/bench/crowd PROCESSES [PER_HOST]
 *
 * The hosts are only so called: all are on the loopback of this machine. A time is from
 * when all may begin to when the last is done.
 */
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host.h"
#include "method.h"

struct shared {
	ncclUniqueId id;
	pthread_barrier_t barrier; /* of all ranks and the parent */
	_Atomic uint64_t made_us, gone_us;
};

static void fail(int rank, const char *what)
{
	fprintf(stderr, "crowd: rank %d: %s: %s\n", rank, what, ncclGetLastError(NULL));
	exit(1);
}

static uint64_t used_us(void)
{
	return (uint64_t)(method_cpu() * 1e6);
}

static void rank_run(struct shared *shared, int rank, int ranks, int per_host)
{
	uint64_t before;
	ncclComm_t comm;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	host_pretend(rank / per_host);
	if (!rank && ncclGetUniqueId(&shared->id))
		fail(rank, "ncclGetUniqueId");
	pthread_barrier_wait(&shared->barrier);
	before = used_us();
	if (ncclCommInitRank(&comm, ranks, shared->id, rank))
		fail(rank, "ncclCommInitRank");
	atomic_fetch_add(&shared->made_us, used_us() - before);
	pthread_barrier_wait(&shared->barrier);
	pthread_barrier_wait(&shared->barrier);
	before = used_us();
	if (ncclCommDestroy(comm))
		fail(rank, "ncclCommDestroy");
	atomic_fetch_add(&shared->gone_us, used_us() - before);
	pthread_barrier_wait(&shared->barrier);
	_exit(0);
}

/* Nobody waits for a rank that has failed: its siblings end with this process. */
static void on_child(int signal)
{
	int status;

	(void)signal;
	while (waitpid(-1, &status, WNOHANG) > 0)
		if (status)
			_exit(1);
}

static void shared_init(struct shared *shared, int ranks)
{
	pthread_barrierattr_t among;

	pthread_barrierattr_init(&among);
	pthread_barrierattr_setpshared(&among, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&shared->barrier, &among, (unsigned)ranks + 1);
	pthread_barrierattr_destroy(&among);
	signal(SIGCHLD, on_child);
}

/* From when all are here to when they are here again. */
static double phase(struct shared *shared)
{
	double begin;

	pthread_barrier_wait(&shared->barrier);
	begin = method_now();
	pthread_barrier_wait(&shared->barrier);
	return method_now() - begin;
}

int main(int argc, char **argv)
{
	int ranks = argc > 1 ? atoi(argv[1]) : 64;
	int per_host = argc > 2 ? atoi(argv[2]) : (ranks + 3) / 4;
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	double made, gone;

	if (shared == MAP_FAILED || ranks < 1 || per_host < 1)
		return 2;
	shared_init(shared, ranks);
	for (int rank = 0; rank < ranks; rank++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			rank_run(shared, rank, ranks, per_host);
	}
	made = phase(shared);
	gone = phase(shared);
	printf("%d processes, %d a host: made in %.2f s (%.2f s of processor time), "
	       "destroyed in %.2f s (%.2f)\n",
		ranks, per_host, made, (double)shared->made_us / 1e6, gone,
		(double)shared->gone_us / 1e6);
	return 0;
}
