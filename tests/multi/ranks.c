#include "ranks.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 60, POLL_US = 300 };

static _Thread_local char context[256];
static _Thread_local int own_rank;

uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

void rank_raise(struct rank *rank, uint64_t value)
{
	uint64_t now = atomic_load(&rank->page->result);

	while (value > now &&
		!atomic_compare_exchange_weak(&rank->page->result, &now, value))
		;
}

void error_note(ncclResult_t *first, ncclResult_t got)
{
	if (got != ncclInProgress && !*first)
		*first = got;
}

void error_note_state(ncclResult_t *first, ncclComm_t comm)
{
	ncclResult_t state = ncclSuccess;

	OK(ncclCommGetAsyncError(comm, &state));
	error_note(first, state);
}

int rank_of_thread(void)
{
	return own_rank;
}

/* ---- checks ---- */

void rank_context(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(context, sizeof(context), format, arguments);
	va_end(arguments);
}

void gives(
	ncclResult_t got, ncclResult_t want, const char *text, const char *file, int line)
{
	if (got == want)
		return;
	fprintf(stderr, "%s:%d: %s gives %d (%s), not %d: %s [%s]\n", file, line, text,
		got, ncclGetErrorString(got), want, ncclGetLastError(NULL), context);
	_exit(1);
}

void holds(bool is_true, const char *text, const char *file, int line)
{
	if (is_true)
		return;
	fprintf(stderr, "%s:%d: %s does not hold [%s]\n", file, line, text, context);
	_exit(1);
}

bool is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

bool has_option(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return false;
}

/* ---- inside a process ---- */

struct seat {
	struct rank rank;
	rank_function *function;
	pthread_t thread;
};

static void *seat_main(void *argument)
{
	struct seat *seat = argument;

	rank_context("rank %d of %d", seat->rank.rank, seat->rank.rank_count);
	own_rank = seat->rank.rank;
	seat->function(&seat->rank);
	return NULL;
}

/* With WEFT_TEST_HOSTS=n the processes are on n hosts, as far as the library can tell:
 * they share no memory and talk over the loopback interface. A job of one process is on
 * one host. */
static int host_count(void)
{
	const char *text = getenv("WEFT_TEST_HOSTS");

	return text ? atoi(text) : 0;
}

int entries(const char *path)
{
	DIR *folder = opendir(path);
	int count = 0;

	HOLDS(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

bool has_hosts(void)
{
	return host_count() > 1;
}

static void host_pretend(int process, int process_count)
{
	int count = host_count();
	char name[32];

	if (count < 1)
		return;
	snprintf(name, sizeof(name), "host%d", process * count / process_count);
	setenv("NCCL_HOSTID", name, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
}

/* exit() and not _exit(): the leak checker runs there. */
static void process_main(const struct ranks *ranks, int process)
{
	struct seat seats[RANKS_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stderr, NULL, _IOLBF, 0); /* whole lines of several processes */
	for (const char *const *e = ranks->environment; e && *e; e += 2)
		setenv(e[0], e[1], 1);
	host_pretend(process, ranks->processes);
	for (int i = 0; i < ranks->threads; i++) {
		seats[i] = (struct seat){.function = ranks->function};
		seats[i].rank = (struct rank){.rank = process * ranks->threads + i,
			.rank_count = ranks->processes * ranks->threads,
			.process = process,
			.thread = i,
			.page = ranks->page,
			.argument = ranks->argument};
	}
	if (ranks->threads == 1) {
		seat_main(&seats[0]);
		exit(0);
	}
	for (int i = 0; i < ranks->threads; i++)
		EQ(pthread_create(&seats[i].thread, NULL, seat_main, &seats[i]), 0);
	for (int i = 0; i < ranks->threads; i++)
		EQ(pthread_join(seats[i].thread, NULL), 0);
	exit(0);
}

/* ---- around the processes ---- */

static struct ranks_page *page_create(int rank_count)
{
	struct ranks_page *page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_barrierattr_t shared;

	TRUE(page != MAP_FAILED);
	pthread_barrierattr_init(&shared);
	pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	EQ(pthread_barrier_init(&page->barrier, &shared, (unsigned)rank_count), 0);
	pthread_barrierattr_destroy(&shared);
	return page;
}

void ranks_start(struct ranks *ranks)
{
	fflush(NULL);
	TRUE(ranks->processes <= RANKS_MAX && ranks->threads <= RANKS_MAX);
	ranks->page = page_create(ranks->processes * ranks->threads);
	for (int i = 0; i < ranks->processes; i++) {
		ranks->pids[i] = fork();
		TRUE(ranks->pids[i] >= 0);
		if (ranks->pids[i] == 0)
			process_main(ranks, i);
	}
}

static void give_up(struct ranks *ranks, int process, const char *why, int status)
{
	fprintf(stderr, "process %d of %d: %s (status %#x)\n", process, ranks->processes,
		why, (unsigned)status);
	for (int i = 0; i < ranks->processes; i++)
		if (ranks->pids[i]) {
			kill(ranks->pids[i], SIGKILL);
			waitpid(ranks->pids[i], NULL, 0);
		}
	exit(1);
}

/* True when process i has ended, as it should have. */
static bool reap(struct ranks *ranks, int i, bool killed)
{
	int status;
	pid_t pid = waitpid(ranks->pids[i], &status, WNOHANG);

	if (pid == 0)
		return false;
	ranks->pids[i] = 0;
	if (killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return true;
	if (killed || !WIFEXITED(status) || WEXITSTATUS(status))
		give_up(ranks, i, "ended badly", status);
	return true;
}

void ranks_wait(struct ranks *ranks, unsigned killed)
{
	int limit_s = ranks->limit_s ? ranks->limit_s : LIMIT_S, left = ranks->processes;
	uint64_t end = patient_us() + (uint64_t)limit_s * 1000000u;

	while (left) {
		left = 0;
		for (int i = 0; i < ranks->processes; i++)
			if (ranks->pids[i] && !reap(ranks, i, killed >> i & 1))
				left++;
		for (int i = 0; left && patient_us() > end && i < ranks->processes; i++)
			if (ranks->pids[i])
				give_up(ranks, i, "did not end in time", 0);
		if (left)
			usleep(POLL_US);
	}
	ranks->result = atomic_load(&ranks->page->result);
	pthread_barrier_destroy(&ranks->page->barrier);
	munmap(ranks->page, sizeof(*ranks->page));
}

void ranks_run(struct ranks *ranks)
{
	ranks_start(ranks);
	ranks_wait(ranks, 0);
}

/* ---- for ranks ---- */

ncclUniqueId rank_id(struct rank *rank, int index)
{
	struct ranks_page *page = rank->page;

	HOLDS(index < RANKS_IDS);
	if (rank->rank == 0) {
		OK(ncclGetUniqueId(&page->ids[index]));
		atomic_store(&page->id_ready[index], 1);
	}
	while (!atomic_load(&page->id_ready[index]))
		usleep(20);
	return page->ids[index];
}

ncclComm_t rank_comm(struct rank *rank, int index)
{
	ncclComm_t comm;

	OK(ncclCommInitRank(&comm, rank->rank_count, rank_id(rank, index), rank->rank));
	return comm;
}

void rank_meet(struct rank *rank)
{
	pthread_barrier_wait(&rank->page->barrier);
}
