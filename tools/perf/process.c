/*
 * Rank processes. The program that was started only watches: when a rank process ends
 * badly it tells the others, gives them a moment to say what they see, and stops them.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/output.h"
#include "perf/run.h"

enum { GRACE_MS = 3000, POLL_MS = 20, WATCH_MS = 100 };

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&time, NULL);
}

/* ---- threads of one process ---- */

static void *worker_main(void *argument)
{
	struct worker *worker = argument;

	worker->status = worker_run(worker);
	atomic_store(&worker->done, true);
	return NULL;
}

static bool all_done(const struct worker *workers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!atomic_load(&workers[i].done))
			return false;
	return true;
}

static bool one_timed_out(
	const struct run *run, const struct worker *workers, uint32_t count)
{
	uint64_t limit_ns = (uint64_t)run->options.timeout_s * 1000000000u,
		 now = now_ns();

	for (uint32_t i = 0; limit_ns && i < count; i++) {
		uint64_t since = atomic_load(&workers[i].busy_since_ns);
		if (since && now > since && now - since > limit_ns)
			return true;
	}
	return false;
}

/* A thread stuck in the library cannot be joined: the process ends around it. */
static void watch(const struct run *run, struct worker *workers, uint32_t count)
{
	uint64_t failed_ns = 0;

	while (!all_done(workers, count)) {
		if (one_timed_out(run, workers, count)) {
			fprintf(stderr, "%s: Test timeout (%ds) in %s\n",
				run->machine.host, run->options.timeout_s, run->program);
			_exit(meet_fail(run->meet, TEST_TIMEOUT));
		}
		if (meet_failure(run->meet) && !failed_ns)
			failed_ns = now_ns();
		if (failed_ns && now_ns() - failed_ns > GRACE_MS * UINT64_C(1000000)) {
			fflush(stdout);
			_exit(meet_failure(run->meet));
		}
		sleep_ms(failed_ns ? POLL_MS : WATCH_MS);
	}
}

static void workers_init(
	struct run *run, uint32_t process, struct worker *workers, struct rank *ranks)
{
	uint32_t threads = (uint32_t)run->options.threads,
		 gpus = (uint32_t)run->options.gpus;

	for (uint32_t i = 0; i < threads; i++) {
		struct worker *worker = &workers[i];

		worker->run = run;
		worker->index = process * threads + i;
		worker->local = i;
		worker->rank_count = gpus;
		worker->ranks = ranks + i * gpus;
		for (uint32_t j = 0; j < gpus; j++)
			worker->ranks[j].rank = worker->index * gpus + j;
		meet_set_pid(run->meet, worker->index, getpid());
	}
}

/* `local_rank` is that of the rank, not of its process. */
struct place run_place(const struct run *run, uint32_t rank)
{
	uint32_t gpus = (uint32_t)run->options.gpus;
	uint32_t per_process = (uint32_t)run->options.threads * gpus;
	struct place place = {.local_rank = rank % per_process};

	if (run->process_count > 1) {
		place = run->places[rank / per_process];
		place.local_rank = place.local_rank * per_process + rank % per_process;
		return place;
	}
	place.pid = meet_pid(run->meet, rank / gpus);
	memcpy(place.host, run->machine.host, sizeof(place.host));
	return place;
}

int run_workers(struct run *run, uint32_t process)
{
	uint32_t count = (uint32_t)run->options.threads;
	struct worker *workers = calloc(count, sizeof(*workers));
	struct rank *ranks = calloc(count * (size_t)run->options.gpus, sizeof(*ranks));
	pthread_t thread;
	int status = TEST_OK, error;

	if (!workers || !ranks) {
		free(workers);
		free(ranks);
		return meet_fail(run->meet, TEST_INTERNAL);
	}
	workers_init(run, process, workers, ranks);
	for (uint32_t i = 0; i < count; i++) {
		error = pthread_create(&thread, NULL, worker_main, &workers[i]);
		if (error) {
			fprintf(stderr, "%s: cannot start thread %u of %u: %s\n",
				run->machine.host, i, count, strerror(error));
			_exit(meet_fail(run->meet, TEST_INTERNAL));
		}
		pthread_detach(thread);
	}
	watch(run, workers, count);
	for (uint32_t i = 0; i < count && !status; i++)
		status = workers[i].status;
	free(ranks);
	free(workers);
	return status ? status : meet_failure(run->meet);
}

/* ---- processes ---- */

static _Noreturn void child_main(struct run *run, uint32_t process, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(TEST_INTERNAL);
	exit(output_end(run->program, run_workers(run, process), TEST_INTERNAL));
}

/* The exit status a child's end means; a sentence when it was not of its own will. */
static int child_status(const struct run *run, uint32_t process, pid_t pid, int status)
{
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fprintf(stderr, "%s: rank process %u (pid %d) was ended by signal %d (%s)\n",
		run->machine.host, process, pid, WTERMSIG(status),
		strsignal(WTERMSIG(status)));
	return TEST_INTERNAL;
}

static uint32_t child_find(const pid_t *pids, uint32_t count, pid_t pid)
{
	uint32_t i = 0;

	while (i < count && pids[i] != pid)
		i++;
	return i;
}

static void children_kill(const pid_t *pids, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (pids[i])
			kill(pids[i], SIGKILL);
}

/* Wait for all; after a failure only for the time of grace. */
static int children_watch(const struct run *run, pid_t *pids, uint32_t count)
{
	uint32_t left = count;
	uint64_t failed_ns = 0;
	bool killed = false;

	while (left) {
		int status, code;
		pid_t pid = waitpid(-1, &status, failed_ns ? WNOHANG : 0);
		uint32_t process = pid > 0 ? child_find(pids, count, pid) : count;

		if (pid < 0 && errno != EINTR)
			break;
		if (process < count) {
			pids[process] = 0;
			left--;
			code = killed ? TEST_OK : child_status(run, process, pid, status);
			if (code && !failed_ns) {
				meet_fail(run->meet, code);
				failed_ns = now_ns();
			}
			continue;
		}
		if (failed_ns &&
			now_ns() - failed_ns > 2 * GRACE_MS * UINT64_C(1000000)) {
			children_kill(pids, count);
			killed = true;
		}
		sleep_ms(POLL_MS);
	}
	return meet_failure(run->meet);
}

int run_processes(struct run *run)
{
	uint32_t count = (uint32_t)run->options.procs;
	pid_t *pids, parent = getpid();
	int status;

	if (count == 1)
		return run_workers(run, run->process);
	pids = calloc(count, sizeof(*pids));
	if (!pids)
		return TEST_INTERNAL;
	fflush(stdout);
	for (uint32_t i = 0; i < count; i++) {
		pids[i] = fork();
		if (!pids[i])
			child_main(run, i, parent);
		if (pids[i] > 0)
			continue;
		fprintf(stderr, "%s: cannot start process %u of %u: %m\n",
			run->machine.host, i, count);
		pids[i] = 0;
		children_kill(pids, i);
		free(pids);
		return TEST_INTERNAL;
	}
	status = children_watch(run, pids, count);
	free(pids);
	return status;
}
