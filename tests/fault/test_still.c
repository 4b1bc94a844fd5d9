/*
 * A rank stands still late in the making of the first communicator across hosts, where
 * the root would wait for it as long as it waits for anybody: the others name it as soon
 * as it has been silent for too long. Ranks are processes that believe to be on different
 * hosts. On one host it is rank 0, in whose process they meet: the others name it when
 * their time is over. This program has a send() of its own, in which the victim stops.
 */
#include <dlfcn.h>
#include <nccl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { RANKS = 3, NOBODY = -1 };

static _Thread_local int sends;	    /* so far */
static _Thread_local int last_send; /* before which it stops; 0: it does not */

__attribute__((visibility("default"))) ssize_t send(
	int fd, const void *bytes, size_t size, int flags)
{
	static ssize_t (*_Atomic real)(int, const void *, size_t, int);

	if (!real) /* a function is no object; this is how POSIX has it */
		*(void **)&real = dlsym(RTLD_NEXT, "send");
	if (++sends == last_send)
		raise(SIGSTOP);
	return real(fd, bytes, size, flags);
}

static struct shared {
	ncclUniqueId id;
	atomic_bool has_id;
	atomic_uint told;
	int sends[RANKS]; /* by the rank's own thread, until it is in */
} * shared;

static bool on_one_host;

static void victim_is_named(int victim)
{
	char name[32];

	snprintf(name, sizeof(name),
		on_one_host ? "rank %d (process " : "rank %d was lost", victim);
	if (!strstr(ncclGetLastError(NULL), name) ||
		!strstr(ncclGetLastError(NULL), on_one_host ? "did not answer in time"
							    : "nothing was heard of it"))
		EQ_STR(ncclGetLastError(NULL), name);
}

static void rank_run(int rank, int victim, int moment)
{
	char host[16];
	ncclComm_t comm;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(host, sizeof(host), "host%d", on_one_host ? 0 : rank);
	setenv("NCCL_HOSTID", host, 1);
	if (!rank) {
		EQ(ncclGetUniqueId(&shared->id), ncclSuccess);
		atomic_store(&shared->has_id, true);
	}
	while (!atomic_load(&shared->has_id))
		usleep(1000);
	last_send = rank == victim ? moment : 0;
	sends = 0;
	if (victim == NOBODY) {
		EQ(ncclCommInitRank(&comm, RANKS, shared->id, rank), ncclSuccess);
		shared->sends[rank] = sends;
		EQ(ncclCommDestroy(comm), ncclSuccess);
		_exit(0);
	}
	EQ(ncclCommInitRank(&comm, RANKS, shared->id, rank),
		on_one_host ? ncclTimeout : ncclRemoteError);
	victim_is_named(victim);
	/* whose process has the root stays until all have heard */
	atomic_fetch_add(&shared->told, 1);
	while (atomic_load(&shared->told) < RANKS - 1)
		usleep(1000);
	_exit(0);
}

static void job_run(int victim, int moment)
{
	pid_t pids[RANKS];
	int status;

	atomic_store(&shared->has_id, false);
	atomic_store(&shared->told, 0);
	for (int rank = 0; rank < RANKS; rank++) {
		pids[rank] = fork();
		TRUE(pids[rank] >= 0);
		if (!pids[rank])
			rank_run(rank, victim, moment);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		if (rank == victim)
			continue;
		EQ(waitpid(pids[rank], &status, 0), pids[rank]);
		EQ(status, 0);
	}
	if (victim == NOBODY)
		return;
	EQ(kill(pids[victim], SIGKILL), 0);
	EQ(waitpid(pids[victim], &status, 0), pids[victim]);
	TRUE(WIFSIGNALED(status)); /* it stood still */
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
	setenv("WEFT_SILENCE_SEC", "2", 1);
	setenv("WEFT_BOOT_TIMEOUT_SEC", "60", 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(shared != MAP_FAILED);
	job_run(NOBODY, 0);
	/* the last that a rank says before it is in is that all is well; the one before,
	 * that it has seen the others. Rank 0 has the root. */
	for (int victim = 0; victim < 2; victim++)
		for (int before = 0; before < 2; before++)
			job_run(victim, shared->sends[victim] - before);
	setenv("WEFT_BOOT_TIMEOUT_SEC", "2", 1);
	on_one_host = true;
	job_run(NOBODY, 0);
	job_run(0, shared->sends[0]);
	return 0;
}
