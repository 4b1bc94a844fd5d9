/*
 * With too few descriptors or too little address space everything fails with a code and a
 * sentence; nothing crashes, hangs or leaks, and with room again everything works.
 */
#include <sys/resource.h>
#include <unistd.h>

#include "ranks.h"
#include "weft.h"

enum { RANKS = 3, DESCRIPTORS = 24, BYTES = 8 << 20 };

static void limit(int what, rlim_t soft)
{
	struct rlimit now;

	EQ(getrlimit(what, &now), 0);
	now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
	EQ(setrlimit(what, &now), 0);
}

static rlim_t limit_now(int what)
{
	struct rlimit now;

	EQ(getrlimit(what, &now), 0);
	return now.rlim_cur;
}

/* The lowest descriptor that is free: limits count from there. */
static rlim_t first_free(void)
{
	int fd = dup(0);

	HOLDS(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* A code that says what is short or who failed, with its sentence. */
static bool is_clean(ncclResult_t got)
{
	bool clean = got == ncclSuccess ||
		     ((got == ncclSystemError || got == ncclRemoteError ||
			      got == ncclTimeout) &&
			     ncclGetLastError(NULL)[0]);

	if (!clean)
		fprintf(stderr, "%s: '%s'\n", ncclGetErrorString(got),
			ncclGetLastError(NULL));
	return clean;
}

/* A whole life in one process; every step may fail. True when none did. */
static bool live(void)
{
	ncclComm_t comms[RANKS] = {NULL}, children[RANKS] = {NULL};
	cudaStream_t stream = NULL;
	void *data = NULL;
	ncclResult_t got = ncclMemAlloc(&data, BYTES);
	bool good = got == ncclSuccess;

	HOLDS(is_clean(got));
	got = ncclCommInitAll(comms, RANKS, NULL);
	HOLDS(is_clean(got));
	HOLDS(!got == !!comms[0]);
	good = good && !got;
	got = weftStreamCreate(&stream);
	HOLDS(is_clean(got));
	good = good && !got;
	if (good) {
		OK(ncclGroupStart());
		for (int i = 0; i < RANKS; i++)
			OK(ncclBroadcast(data, (char *)data + i * 100000, 100000,
				ncclInt8, 0, comms[i], NULL));
		got = ncclGroupEnd();
		HOLDS(is_clean(got));
		good = !got;
	}
	if (good) {
		OK(ncclGroupStart());
		for (int i = 0; i < RANKS; i++)
			OK(ncclCommSplit(comms[i], 0, i, &children[i], NULL));
		got = ncclGroupEnd();
		HOLDS(is_clean(got));
		good = !got;
	}
	for (int i = 0; i < RANKS; i++) {
		OK(ncclCommAbort(children[i]));
		OK(ncclCommAbort(comms[i]));
	}
	OK(weftStreamDestroy(stream));
	if (data)
		OK(ncclMemFree(data));
	return good;
}

static void settle_threads(void)
{
	for (int i = 0; i < 1000 && entries("/proc/self/task") > 3; i++)
		usleep(5000);
}

static void descriptors_main(struct rank *rank)
{
	rlim_t before = limit_now(RLIMIT_NOFILE);
	int failures = 0, fds;

	(void)rank;
	HOLDS(live());
	settle_threads();
	fds = entries("/proc/self/fd");
	for (rlim_t more = 0; more < DESCRIPTORS; more++) {
		rank_context("%lu descriptors more", (unsigned long)more);
		limit(RLIMIT_NOFILE, first_free() + more);
		failures += !live();
		limit(RLIMIT_NOFILE, before);
		settle_threads();
		for (int i = 0; i < 1000 && entries("/proc/self/fd") > fds; i++)
			usleep(5000);
		if (entries("/proc/self/fd") > fds)
			fprintf(stderr, "%d descriptors were %d\n",
				entries("/proc/self/fd"), fds);
		HOLDS(entries("/proc/self/fd") <= fds);
	}
	HOLDS(failures > 5);
	HOLDS(live());
}

static rlim_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	HOLDS(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void memory_main(struct rank *rank)
{
	rlim_t before = limit_now(RLIMIT_AS);
	int failures = 0;
	void *data;

	(void)rank;
	HOLDS(live());
	settle_threads();
	for (rlim_t more = 0; more < 48; more++) {
		rank_context("%lu MB more", (unsigned long)more);
		limit(RLIMIT_AS, address_space() + (more << 20) + (more << 14));
		failures += !live();
		limit(RLIMIT_AS, before);
		settle_threads();
	}
	HOLDS(failures > 5);
	HOLDS(live());
	GIVES(ncclMemAlloc(&data, (size_t)1 << 60), ncclSystemError);
	HOLDS(ncclMemAlloc(&data, SIZE_MAX) != ncclSuccess);
}

/* Only rank 1 is short; rank 0 hears of it, or its patience ends. */
static void one_short_main(struct rank *rank)
{
	rlim_t before = limit_now(RLIMIT_NOFILE);
	int failures = 0, data = 1;

	for (int more = 0; more < 8; more++) {
		ncclUniqueId id = rank_id(rank, more);
		ncclComm_t comm = NULL;
		ncclResult_t got;
		const char *why;

		rank_context("rank %d: %d descriptors more", rank->rank, more);
		rank_meet(rank);
		if (rank->rank == 1)
			limit(RLIMIT_NOFILE, first_free() + (rlim_t)more);
		got = ncclCommInitRank(&comm, rank->rank_count, id, rank->rank);
		HOLDS(is_clean(got));
		if (!got)
			got = ncclAllReduce(
				&data, &data, 1, ncclInt, ncclSum, comm, NULL);
		HOLDS(is_clean(got));
		failures += got != ncclSuccess;
		limit(RLIMIT_NOFILE, before);
		why = ncclGetLastError(comm);
		if (strstr(why, "Too many open files") && strstr(why, "/proc/"))
			HOLDS(strstr(why, "see ulimit -n"));
		rank_meet(rank);
		OK(ncclCommAbort(comm));
	}
	HOLDS(failures > 0);
}

/* The same between hosts: both are told what rank 1 lacks, and not that it is lost. With
 * one more it can say so. */
static void far_short_main(struct rank *rank)
{
	rlim_t before = limit_now(RLIMIT_NOFILE);
	int failures = 0, data = 1;

	for (int more = 1; more < 12; more++) {
		ncclUniqueId id = rank_id(rank, more);
		ncclComm_t comm = NULL;
		ncclResult_t got;
		const char *why;

		rank_context(
			"rank %d: %d descriptors more on another host", rank->rank, more);
		rank_meet(rank);
		if (rank->rank == 1)
			limit(RLIMIT_NOFILE, first_free() + (rlim_t)more);
		got = ncclCommInitRank(&comm, rank->rank_count, id, rank->rank);
		if (!got)
			got = ncclAllReduce(
				&data, &data, 1, ncclInt, ncclSum, comm, NULL);
		limit(RLIMIT_NOFILE, before);
		HOLDS(is_clean(got));
		why = ncclGetLastError(comm);
		if (got && !strstr(why, "Too many open files"))
			fprintf(stderr, "%s\n", why);
		HOLDS(!got || strstr(why, "Too many open files"));
		failures += got != ncclSuccess;
		rank_meet(rank);
		OK(ncclCommAbort(comm));
		settle_threads();
		rank_meet(rank);
	}
	HOLDS(failures > 0);
}

/* The process where all meet is short for good: everybody hears that it is that. */
static void root_short_main(struct rank *rank)
{
	const int *more = rank->argument;
	ncclUniqueId id = rank_id(rank, 0);
	ncclComm_t comm = NULL;
	ncclResult_t got;

	rank_context("rank %d: %d descriptors more at rank 0", rank->rank, *more);
	if (rank->rank == 0) {
		rlim_t fds = first_free() + (rlim_t)*more;

		EQ(setrlimit(RLIMIT_NOFILE, &(struct rlimit){fds, fds}), 0);
	}
	rank_meet(rank);
	got = ncclCommInitRank(&comm, rank->rank_count, id, rank->rank);
	HOLDS(is_clean(got));
	if (got && !strstr(ncclGetLastError(NULL), "Too many open files"))
		fprintf(stderr, "%s\n", ncclGetLastError(NULL));
	HOLDS(!got || strstr(ncclGetLastError(NULL), "Too many open files"));
	rank_meet(rank);
	OK(ncclCommAbort(comm));
}

static void root_short(void)
{
	for (int more = 0; more < 6; more++) {
		struct ranks ranks = {.processes = RANKS,
			.threads = 1,
			.function = root_short_main,
			.argument = &more};

		ranks_run(&ranks);
	}
	printf("descriptors where all meet\n");
}

int main(void)
{
	static const char *const environment[] = {"WEFT_BOOT_TIMEOUT_SEC", "1", NULL};
	static const char *const hosts[] = {"WEFT_TEST_HOSTS", "2", NULL};
	struct ranks ranks = {.processes = 1,
		.threads = 1,
		.environment = environment,
		.function = descriptors_main};

	setvbuf(stdout, NULL, _IOLBF, 0);
	ranks_run(&ranks);
	printf("descriptors\n");
	ranks.processes = 2;
	ranks.function = one_short_main;
	ranks_run(&ranks);
	printf("descriptors of one rank\n");
	ranks.environment = hosts;
	ranks.function = far_short_main;
	ranks_run(&ranks);
	ranks.environment = environment;
	printf("descriptors of one rank on another host\n");
	root_short();
	if (is_sanitized()) /* they reserve terabytes themselves */
		return 0;
	ranks.processes = 1;
	ranks.function = memory_main;
	ranks_run(&ranks);
	printf("address space\n");
	return 0;
}
