/*
 * Ours, timed as the peers are:
 *     ./ours threads|processes|malloc|hosts=K|loopback=K N COLLECTIVE BYTES,..
 *
 * `threads` and `processes` use ncclMemAlloc, `malloc` is processes with plain memory.
 * `hosts=K` is processes spread over the first K of the hosts weft0, weft1, .. that were
 * made of namespaces on this machine; `hosts=K,malloc` with plain memory. `loopback=K`
 * only pretends to be on so many: sockets, but no network between them. A rank has a
 * core; with `,cores=C` it has so many, for the threads that move its large calls.
 * `./ours call 1` prints what one call costs that has nobody to wait for.
 */
#include <nccl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "host.h"
#include "method.h"

/* One page that all ranks see, processes too. */
struct shared {
	ncclUniqueId id;
	atomic_uint arrived, round;
	double seconds[METHOD_RANKS_MAX], cpu[METHOD_RANKS_MAX];
};

struct job {
	struct shared *shared;
	int rank, ranks, coll, size_count;
	bool plain_memory;
	int host; /* to be on, or -1 .. */
	bool pretends;
	int cores; /* of each rank; 0: one */
	const size_t *sizes;
};

static void fail(ncclResult_t result, const char *what)
{
	fprintf(stderr, "ours: %s: %s / %s\n", what, ncclGetErrorString(result),
		ncclGetLastError(NULL));
	exit(1);
}

static void meet(struct shared *shared, int ranks)
{
	unsigned round = atomic_load(&shared->round);

	if (atomic_fetch_add(&shared->arrived, 1) + 1 == (unsigned)ranks) {
		atomic_store(&shared->arrived, 0);
		atomic_fetch_add(&shared->round, 1);
		return;
	}
	while (atomic_load(&shared->round) == round)
		sched_yield();
}

static void *memory(const struct job *job, size_t bytes)
{
	void *pointer = NULL;

	if (job->plain_memory)
		pointer = aligned_alloc(4096, bytes);
	else if (ncclMemAlloc(&pointer, bytes))
		pointer = NULL;
	if (!pointer)
		fail(ncclSystemError, "no memory");
	memset(pointer, 0, bytes);
	return pointer;
}

static ncclResult_t call(
	const struct job *job, ncclComm_t comm, float *send, float *recv, size_t bytes)
{
	size_t all = bytes / sizeof(float), block = method_block(bytes, job->ranks);

	switch (job->coll) {
	case ALL_REDUCE:
		return ncclAllReduce(send, recv, all, ncclFloat, ncclSum, comm, NULL);
	case ALL_GATHER:
		return ncclAllGather(send, recv, block, ncclFloat, comm, NULL);
	case REDUCE_SCATTER:
		return ncclReduceScatter(
			send, recv, block, ncclFloat, ncclSum, comm, NULL);
	case BROADCAST: /* one buffer, as MPI_Bcast has */
		return ncclBroadcast(send, send, all, ncclFloat, 0, comm, NULL);
	default:
		return ncclAlltoAll(send, recv, block, ncclFloat, comm, NULL);
	}
}

/* Seconds per call: of the slowest rank, and of all processors together. */
struct taken {
	double seconds, cpu;
};

static struct taken loop(const struct job *job, ncclComm_t comm, float *buffers[2],
	size_t bytes, int iters)
{
	struct shared *shared = job->shared;
	ncclResult_t result = ncclSuccess;
	struct taken taken = {0};
	double start, used;

	meet(shared, job->ranks);
	start = method_now();
	used = method_cpu();
	for (int i = 0; !result && i < iters; i++)
		result = call(job, comm, buffers[0], buffers[1], bytes);
	shared->seconds[job->rank] = (method_now() - start) / iters;
	shared->cpu[job->rank] = (method_cpu() - used) / iters;
	if (result)
		fail(result, method_name(job->coll));
	meet(shared, job->ranks);
	for (int i = 0; i < job->ranks; i++) {
		if (shared->seconds[i] > taken.seconds)
			taken.seconds = shared->seconds[i];
		taken.cpu += shared->cpu[i];
	}
	meet(shared, job->ranks);
	return taken;
}

static void time_size(
	const struct job *job, ncclComm_t comm, float *buffers[2], size_t bytes)
{
	struct taken best = loop(job, comm, buffers, bytes, method_warm(bytes));
	int iters = method_loop(bytes, best.seconds);

	for (int i = 0; i < METHOD_LOOPS; i++) {
		struct taken taken = loop(job, comm, buffers, bytes, iters);

		if (!i || taken.seconds < best.seconds)
			best = taken;
	}
	if (job->rank)
		return;
	if (job->host >= 0)
		method_print_cpu(job->coll, job->ranks, bytes, best.seconds, best.cpu);
	else
		method_print(job->coll, job->ranks, bytes, best.seconds);
}

static void *rank_main(void *argument)
{
	const struct job *job = argument;
	size_t room = method_buffer(
		method_largest(job->sizes, job->size_count), job->ranks);
	float *buffers[2];
	ncclComm_t comm;
	ncclResult_t result;

	if (job->cores)
		host_bind_to(job->rank, job->ranks, job->cores);
	else
		host_bind(job->rank, job->ranks);
	if (job->pretends)
		host_pretend(job->host);
	else if (job->host >= 0)
		host_enter(job->host);
	if (!job->rank) {
		result = ncclGetUniqueId(&job->shared->id);
		if (result)
			fail(result, "ncclGetUniqueId");
	}
	meet(job->shared, job->ranks);
	result = ncclCommInitRank(&comm, job->ranks, job->shared->id, job->rank);
	if (result)
		fail(result, "ncclCommInitRank");
	buffers[0] = memory(job, room);
	buffers[1] = memory(job, room);
	for (int i = 0; i < job->size_count; i++)
		time_size(job, comm, buffers, job->sizes[i]);
	meet(job->shared, job->ranks);
	ncclCommDestroy(comm);
	return NULL;
}

static int run_threads(struct job *jobs, int ranks)
{
	pthread_t threads[METHOD_RANKS_MAX];

	for (int i = 0; i < ranks; i++)
		if (pthread_create(&threads[i], NULL, rank_main, &jobs[i]))
			return 1;
	for (int i = 0; i < ranks; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int run_processes(struct job *jobs, int ranks)
{
	int status, failed = 0;

	for (int i = 0; i < ranks; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rank_main(&jobs[i]);
		_exit(0);
	}
	/* A rank that fails leaves the others in meet(): end them by ending ourselves. */
	while (!failed && wait(&status) > 0)
		failed = status != 0;
	return failed;
}

/* What is left of a call when there is nothing to wait for. */
static int run_call(struct job *job)
{
	ncclComm_t comm;
	float value[2] = {0};
	double best = 1, start;

	if (ncclGetUniqueId(&job->shared->id) ||
		ncclCommInitRank(&comm, 1, job->shared->id, 0))
		fail(ncclSystemError, "one rank");
	for (int i = 0; i < 20; i++) {
		start = method_now();
		for (int j = 0; j < 10000; j++)
			ncclAllReduce(value, value, 2, ncclFloat, ncclSum, comm, NULL);
		start = (method_now() - start) / 10000;
		best = start < best ? start : best;
	}
	method_print(ALL_REDUCE, 1, 8, best);
	ncclCommDestroy(comm);
	return 0;
}

int main(int argc, char **argv)
{
	static struct job jobs[METHOD_RANKS_MAX];
	static size_t sizes[METHOD_SIZES_MAX];
	const char *mode = argc > 1 ? argv[1] : "";
	int ranks = argc > 2 ? atoi(argv[2]) : 0;
	int hosts = host_count(mode);
	const char *cores = strstr(mode, ",cores=");
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return 1;
	jobs[0].shared = shared;
	if (!strcmp(mode, "call"))
		return run_call(&jobs[0]);
	if (argc != 5 || ranks < 1 || ranks > METHOD_RANKS_MAX ||
		method_find(argv[3]) == METHOD_COLLS) {
		fprintf(stderr, "usage: ours threads|processes|malloc|hosts=K|loopback=K "
				"N COLLECTIVE BYTES,..\n");
		return 2;
	}
	for (int i = 0; i < ranks; i++)
		jobs[i] = (struct job){.shared = shared,
			.rank = i,
			.ranks = ranks,
			.coll = method_find(argv[3]),
			.size_count = method_sizes(argv[4], sizes),
			.plain_memory = strstr(mode, "malloc"),
			.host = hosts ? host_of(i, ranks, hosts) : -1,
			.pretends = host_is_pretended(mode),
			.cores = cores ? atoi(cores + 7) : 0,
			.sizes = sizes};
	return !strcmp(mode, "threads") ? run_threads(jobs, ranks)
					: run_processes(jobs, ranks);
}
