/*
 * Faults of every kind at every moment, each run derived from its seed. See
 * docs/faults.md for what is struck, what is expected and how to read the output.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ranks.h"
#include "table.h"
#include "traces.h"

enum { EVERY_MAX = 400, EVERY_RANKS = 3, EVERY_BYTES = 96 << 10, JOBS_MAX = 64 };

struct options {
	struct job_wish wish;
	struct run_limits limits;
	uint64_t from;
	int runs, jobs;
	int every;  /* FAULT_ALLOCATION or FAULT_SYSCALL; -1: none */
	int number; /* of every, only this; 0: all */
	bool is_single, is_verbose;
};

static struct run_result *results_create(int count)
{
	struct run_result *results = mmap(NULL, (size_t)count * sizeof(*results),
		PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		0);

	TRUE(results != MAP_FAILED);
	return results;
}

/* Each job has a coordinator of its own: what it leaves behind goes with it. */
static pid_t coordinate(
	const struct job *job, const struct options *options, struct run_result *result)
{
	pid_t pid;

	fflush(NULL);
	*result = (struct run_result){.fault = job->fault};
	pid = fork();
	TRUE(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_job(job, &options->limits, result);
	_exit(0);
}

static void finish(const struct options *options, struct run_result *result)
{
	if (!result->is_made)
		snprintf(result->line, sizeof(result->line), "BAD: no coordinator left");
	if (options->is_verbose || options->is_single)
		printf("%s\n", result->line);
	else if (!result->is_ok)
		fprintf(stderr, "%.400s\n", result->line);
}

/* ---- many seeds ---- */

static int run_many(const struct options *options)
{
	struct run_result *results = results_create(options->runs);
	pid_t pids[JOBS_MAX] = {0};
	int at[JOBS_MAX], started = 0, running = 0;

	while (started < options->runs || running) {
		int status, slot = 0;
		pid_t pid;

		while (slot < options->jobs && pids[slot])
			slot++;
		if (started < options->runs && slot < options->jobs) {
			struct job job = job_derive(
				options->from + (uint64_t)started, &options->wish);

			at[slot] = started;
			pids[slot] = coordinate(&job, options, &results[started++]);
			running++;
			continue;
		}
		pid = wait(&status);
		TRUE(pid > 0);
		for (slot = 0; pids[slot] != pid;)
			slot++;
		finish(options, &results[at[slot]]);
		pids[slot] = 0;
		running--;
	}
	if (options->is_single)
		return !results[0].is_ok;
	return table_print(results, options->runs);
}

/* ---- every call of a kind ---- */

/* Three ranks meet, reduce once and leave; as processes or as threads. */
static struct job every_job(const struct options *options, int number, int variant)
{
	struct job job = {.seed = (uint64_t)number,
		.fault = (enum fault)options->every,
		.moment = AT_INIT,
		.collective = ALL_REDUCE,
		.after = AFTER_ABORT,
		.rank_count = EVERY_RANKS,
		.process_count = variant & 1 ? 1 : EVERY_RANKS,
		.victim = variant >> 1,
		.call_count = 1,
		.bytes = EVERY_BYTES,
		.nccl_memory = true,
		.boot_timeout_s = 5,
		.number = number,
		.color_count = 1};

	for (int i = 0; i < EVERY_RANKS; i++)
		job.process_of[i] = variant & 1 ? 0 : i;
	return job;
}

static int run_every(const struct options *options)
{
	struct run_result *results = results_create(4 * EVERY_MAX);
	int last = options->number ? options->number : EVERY_MAX, count = 0;

	for (int variant = 0; variant < 4; variant++) {
		int number = options->number ? options->number - 1 : 0, missed = 0;

		/* how often a rank polls is chance: twice nothing is the end */
		while (missed < 2 && number < last) {
			struct job job = every_job(options, ++number, variant);
			pid_t pid = coordinate(&job, options, &results[count]);

			TRUE(waitpid(pid, NULL, 0) == pid);
			finish(options, &results[count]);
			missed = results[count++].is_struck ? 0 : missed + 1;
		}
		printf("%s of rank %d among %s: %d\n", fault_names[options->every],
			variant >> 1, variant & 1 ? "threads" : "processes",
			number - missed);
	}
	return table_print(results, count);
}

/* ---- options ---- */

static int fault_of(const char *name)
{
	for (int i = 0; i < FAULT_COUNT; i++)
		if (!strcmp(name, fault_names[i]))
			return i;
	fprintf(stderr, "no fault %s; there are", name);
	for (int i = 0; i < FAULT_COUNT; i++)
		fprintf(stderr, " %s", fault_names[i]);
	fprintf(stderr, "\n");
	exit(2);
}

static void usage(void)
{
	fprintf(stderr, "campaign --seed N | --runs N [--from N]\n"
			"	| --every allocation|syscall [--number I]\n"
			"	[--hosts] [--kind FAULT] [--ranks N] [--jobs N] [--limit "
			"SECONDS] "
			"[--lean] [--verbose]\n");
	exit(2);
}

static void option_value(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "--seed")) {
		options->from = strtoull(value, NULL, 0);
		options->runs = 1;
		options->is_single = true;
	} else if (!strcmp(name, "--runs")) {
		options->runs = atoi(value);
	} else if (!strcmp(name, "--from")) {
		options->from = strtoull(value, NULL, 0);
	} else if (!strcmp(name, "--jobs")) {
		options->jobs = atoi(value);
	} else if (!strcmp(name, "--ranks")) {
		options->wish.rank_count = atoi(value);
	} else if (!strcmp(name, "--number")) {
		options->number = atoi(value);
	} else if (!strcmp(name, "--limit")) {
		options->limits.hang_s = atoi(value);
	} else if (!strcmp(name, "--kind")) {
		options->wish.fault = fault_of(value);
	} else if (!strcmp(name, "--every")) {
		options->every = fault_of(value);
	} else {
		usage();
	}
}

int main(int argc, char **argv)
{
	struct options options = {.wish = {.fault = -1},
		.limits = {.hang_s = 15, .settle_ms = 3000},
		.from = 1,
		.jobs = 1,
		.every = -1};
	int before = traces_in_shm(), wrong;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--lean"))
			options.wish.lean = true;
		else if (!strcmp(argv[i], "--hosts"))
			options.wish.hosts = true;
		else if (!strcmp(argv[i], "--verbose"))
			options.is_verbose = true;
		else if (i + 1 < argc)
			option_value(&options, argv[i], argv[i + 1]), i++;
		else
			usage();
	}
	if (options.wish.lean)
		options.limits = (struct run_limits){.hang_s = 60, .settle_ms = 10000};
	if (options.jobs < 1 || options.jobs > JOBS_MAX ||
		(options.runs < 1 && options.every < 0) || options.wish.rank_count < 0 ||
		options.wish.rank_count == 1 || options.wish.rank_count > JOB_RANKS)
		usage();
	wrong = options.every >= 0 ? run_every(&options) : run_many(&options);
	if (traces_in_shm() > before) {
		printf("BAD: files are left in /dev/shm\n");
		wrong++;
	}
	return wrong ? 1 : 0;
}
