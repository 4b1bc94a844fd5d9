/*
 * Communicators across hosts come, are used and go, and leave nothing behind:
 * descriptors, threads, memory. Two processes on two hosts; the argument is how many
 * communicators.
 */
#include <malloc.h>
#include <unistd.h>

#include "ranks.h"

enum {
	WARM = 20, /* what is made once is made by then */
	FLOATS = 70000,
	SETTLE_MS = 2000,
	HEAP_SLACK = 512,    /* and one more byte for each communicator is none */
	RSS_SLACK_KIB = 2048 /* the allocator's */
};

struct census {
	int descriptors, threads;
	size_t heap_bytes;
	long rss_kib;
};

static long rss_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	HOLDS(file && fscanf(file, "%*d %ld", &pages) == 1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static struct census census_take(void)
{
	return (struct census){.descriptors = entries("/proc/self/fd"),
		.threads = entries("/proc/self/task"),
		.heap_bytes = mallinfo2().uordblks,
		.rss_kib = rss_kib()};
}

/* One after the other through the same place. */
static ncclUniqueId next_id(struct rank *rank, int turn)
{
	struct ranks_page *page = rank->page;

	if (rank->rank == 0) {
		OK(ncclGetUniqueId(&page->ids[0]));
		atomic_store(&page->words[0], (uint64_t)turn + 1);
	}
	while (atomic_load(&page->words[0]) < (uint64_t)turn + 1)
		usleep(20);
	return page->ids[0];
}

/* Collectives, small and large, and messages: each has connections of its own. */
static void use(struct rank *rank, ncclComm_t comm, float *data)
{
	int other = !rank->rank;

	data[0] = 1;
	OK(ncclAllReduce(data, data, 1, ncclFloat, ncclSum, comm, NULL));
	HOLDS(data[0] == 2);
	OK(ncclAllReduce(data, data, FLOATS, ncclFloat, ncclMax, comm, NULL));
	OK(ncclGroupStart());
	OK(ncclSend(data, 10, ncclFloat, other, comm, NULL));
	OK(ncclRecv(data + 100, 10, ncclFloat, other, comm, NULL));
	OK(ncclGroupEnd());
}

static void turn_make(struct rank *rank, int turn, float *data)
{
	ncclComm_t comm, child;

	OK(ncclCommInitRank(&comm, 2, next_id(rank, turn), rank->rank));
	use(rank, comm, data);
	if (turn % 8 == 0) {
		OK(ncclCommSplit(comm, 0, 0, &child, NULL));
		use(rank, child, data);
		OK(ncclCommDestroy(child));
	}
	rank_meet(rank);
	OK(turn % 3 ? ncclCommDestroy(comm) : ncclCommAbort(comm));
	rank_meet(rank);
}

static bool is_settled(const struct census *before, const struct census *now, int turns)
{
	return now->descriptors <= before->descriptors &&
	       now->threads <= before->threads &&
	       now->heap_bytes <= before->heap_bytes + HEAP_SLACK + (size_t)turns &&
	       now->rss_kib <= before->rss_kib + RSS_SLACK_KIB;
}

static void leaks_main(struct rank *rank)
{
	const int *turns = rank->argument;
	float *data = calloc(FLOATS, sizeof(*data));
	struct census before = {0}, now;

	for (int turn = 0; turn < WARM + *turns; turn++) {
		if (turn == WARM)
			before = census_take();
		turn_make(rank, turn, data);
	}
	now = census_take();
	for (int ms = 0; ms < SETTLE_MS && !is_settled(&before, &now, *turns); ms++) {
		usleep(1000); /* threads of the last meeting go */
		now = census_take();
	}
	rank_context("rank %d after %d: descriptors %d were %d, threads %d were %d, heap "
		     "%zu was %zu, resident KiB %ld was %ld",
		rank->rank, *turns, now.descriptors, before.descriptors, now.threads,
		before.threads, now.heap_bytes, before.heap_bytes, now.rss_kib,
		before.rss_kib);
	HOLDS(is_settled(&before, &now, *turns) || is_sanitized());
	if (rank->rank == 0)
		printf("%d communicators: %d descriptors, %d threads, heap %+ld bytes, "
		       "resident %+ld KiB\n",
			*turns, now.descriptors - 2, now.threads - 2,
			(long)now.heap_bytes - (long)before.heap_bytes,
			now.rss_kib - before.rss_kib);
	free(data);
}

int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 60;
	const char *tunables = "GLIBC_TUNABLES";
	struct ranks ranks = {.processes = 2,
		.threads = 1,
		.function = leaks_main,
		.argument = &turns,
		.limit_s = 300};

	/* As used would count: what a thread keeps of freed memory for itself; the arena
	 * (2,256 bytes) and the table beside a kept stack (352) that a thread gets when
	 * one more than ever before lives at the same time. */
	if (!getenv(tunables)) {
		setenv(tunables,
			"glibc.malloc.tcache_count=0:glibc.malloc.arena_max=1:"
			"glibc.pthread.stack_cache_size=0",
			1);
		execv("/proc/self/exe", argv);
	}
	setenv("WEFT_TEST_HOSTS", "2", 1);
	ranks_run(&ranks);
	return 0;
}
