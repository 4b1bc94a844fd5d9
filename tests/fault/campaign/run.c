#include "run.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "detour.h"
#include "free_port.h"
#include "judge.h"
#include "life.h"
#include "ranks.h"
#include "strike.h"
#include "traces.h"

enum {
	TEND_US = 150,
	SLOW_STOP_US = 20000,
	MEETINGS_US = 7000000, /* longer than any meeting of a job with a fault in it */
	HOSTS_STOP_US = 500000 /* between hosts, which must not take it for an end */
};

struct run {
	const struct job *job;
	const struct run_limits *limits;
	struct page *page;
	pid_t pids[JOB_RANKS]; /* 0: has ended */
	struct run_end end;
	uint64_t stopped_us; /* 0: not, or not any more */
	struct relay relay;  /* if the job has one */
	int meeting_port;    /* 0: none */
};

/* ---- inside a process ---- */

struct chair {
	const struct job *job;
	struct page *page;
	int rank;
	pthread_t thread;
};

static void *chair_main(void *argument)
{
	struct chair *chair = argument;

	life_run(chair->job, chair->page, chair->rank);
	return NULL;
}

static void number_set(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

static void environment_set(const struct run *run, int process)
{
	const struct job *job = run->job;
	char text[32];

	number_set("WEFT_TIMEOUT_SEC", job->timeout_s);
	number_set("WEFT_BOOT_TIMEOUT_SEC", job->boot_timeout_s);
	if (!job->host_count)
		return;
	snprintf(text, sizeof(text), "host%d", job->host_of[process]);
	setenv("NCCL_HOSTID", text, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
	if (job->silence_s)
		number_set("WEFT_SILENCE_SEC", job->silence_s);
	if (job->has_porch)
		number_set("WEFT_PORCH_RANKS", 2);
	if (run->meeting_port) {
		snprintf(text, sizeof(text), "127.0.0.1:%d", run->meeting_port);
		setenv("NCCL_COMM_ID", text, 1);
		setenv("WEFT_SECRET", "campaign", 1);
	}
}

/* A look at what is left makes one more meeting; where ranks meet at an address, it would
 * be where others still do. */
static void meetings_wait(const struct run *run)
{
	uint64_t end = patient_us() + MEETINGS_US;

	for (int i = 0; run->meeting_port && i < run->job->rank_count; i++)
		while (!job_is_victim(run->job, i) &&
			atomic_load(&run->page->seats[i].step) != STEP_FINISHED &&
			patient_us() < end)
			usleep(TEND_US);
}

/* exit() and not _exit(): the library's own handlers, and a leak checker, run there. */
static void process_main(const struct run *run, int process)
{
	const struct job *job = run->job;
	struct chair chairs[JOB_RANKS];
	struct traces before;
	int count = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	environment_set(run, process);
	if (job->by_relay)
		detour_join(&run->relay, process);
	strike_process(job, run->page, process);
	before = traces_take();
	for (int i = 0; i < job->rank_count; i++)
		if (job->process_of[i] == process)
			chairs[count++] = (struct chair){job, run->page, i, 0};
	for (int i = 1; i < count; i++)
		EQ(pthread_create(&chairs[i].thread, NULL, chair_main, &chairs[i]), 0);
	chair_main(&chairs[0]);
	for (int i = 1; i < count; i++)
		pthread_join(chairs[i].thread, NULL);
	meetings_wait(run);
	traces_settle(&before, run->limits->settle_ms, run->page->left[process],
		sizeof(run->page->left[process]));
	exit(0);
}

/* ---- around the processes ---- */

static int victim_process(const struct run *run)
{
	return run->job->process_of[run->job->victim];
}

static int living(const struct run *run)
{
	int count = 0;

	for (int i = 0; i < run->job->process_count; i++)
		count += run->pids[i] != 0;
	return count;
}

static void reap(struct run *run, int i)
{
	int status;
	pid_t pid = waitpid(run->pids[i], &status, WNOHANG);

	if (pid != run->pids[i])
		return;
	run->pids[i] = 0;
	run->end.statuses[i] = status;
	/* who waits for its id would wait for ever */
	if (i == run->job->process_of[0] && !atomic_load(&run->page->id_state))
		atomic_store(&run->page->id_state, 2);
}

/* The moment is when it has stopped, not when it was told to. */
static void victim_stop(struct run *run, pid_t pid)
{
	siginfo_t info = {0};

	kill(pid, SIGSTOP);
	waitid(P_PID, (id_t)pid, &info, WSTOPPED | WEXITED | WNOWAIT);
	if (info.si_code != CLD_STOPPED)
		return;
	run->stopped_us = now_us();
	run->end.was_stopped = true;
	atomic_store(&run->page->struck_us, run->stopped_us);
}

static void victim_tend(struct run *run)
{
	const struct job *job = run->job;
	pid_t pid = run->pids[victim_process(run)];
	uint64_t armed = atomic_load(&run->page->armed_us), now = now_us();
	int survivors = 0;

	if (!armed || !pid)
		return;
	for (int i = 0; i < job->rank_count; i++)
		survivors += !job_is_victim(job, i);
	if (!run->end.was_stopped && now >= armed)
		victim_stop(run, pid);
	if (!run->stopped_us)
		return;
	if ((job->fault == FAULT_SLOW &&
		    now >= run->stopped_us +
				    (job->host_count ? HOSTS_STOP_US : SLOW_STOP_US)) ||
		(job->fault == FAULT_RESUME &&
			atomic_load(&run->page->given_back) >= survivors)) {
		run->stopped_us = 0;
		kill(pid, SIGCONT);
	} else if (job->fault == FAULT_STOP && living(run) == 1) {
		kill(pid, SIGKILL);
	}
}

static void tend(struct run *run)
{
	uint64_t end = patient_us() + (uint64_t)run->limits->hang_s * 1000000u;

	while (living(run)) {
		victim_tend(run);
		for (int i = 0; i < run->job->process_count; i++)
			if (run->pids[i])
				reap(run, i);
		if (patient_us() > end) {
			run->end.hangs = true;
			break;
		}
		usleep(TEND_US);
	}
}

static void end_all(struct run *run)
{
	for (int i = 0; i < run->job->process_count; i++)
		if (run->pids[i]) {
			kill(run->pids[i], SIGKILL);
			waitpid(run->pids[i], &run->end.statuses[i], 0);
		}
	for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) >= 0; usleep(TEND_US)) {
		run->end.left_child = true;
		if (pid == 0)
			break;
	}
}

static void network_begin(struct run *run)
{
	const struct job *job = run->job;
	struct relay_plan plan = {.seed = job->seed,
		.trouble = job->trouble,
		.kinds = job->trouble_kinds,
		.victim = victim_process(run),
		.is_whole_host = true,
		.times = job->trouble_times};

	for (int i = 0; i < job->process_count; i++)
		plan.host_of[i] = job->host_of[i];
	if (job->meets_by_tcp)
		run->meeting_port = port_find(AF_INET);
	if (job->by_relay)
		relay_start(&run->relay, &plan);
}

static void network_end(struct run *run)
{
	if (!run->job->by_relay)
		return;
	run->end.troubles = (int)atomic_load(&run->relay.page->troubles);
	relay_stop(&run->relay);
}

void run_job(
	const struct job *job, const struct run_limits *limits, struct run_result *result)
{
	struct run run = {.job = job, .limits = limits};

	run.page = mmap(NULL, sizeof(*run.page), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	TRUE(run.page != MAP_FAILED);
	network_begin(&run);
	fflush(NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* children of ranks come to us */
	for (int i = 0; i < job->process_count; i++) {
		run.pids[i] = fork();
		TRUE(run.pids[i] >= 0);
		if (run.pids[i] == 0)
			process_main(&run, i);
	}
	tend(&run);
	network_end(&run);
	judge(job, run.page, &run.end, result); /* before what hangs is ended */
	end_all(&run);
	if (run.end.left_child && result->is_ok) {
		result->is_ok = false;
		snprintf(result->why, sizeof(result->why), "a child process is left");
	}
	judge_print(job, run.page, result);
	munmap(run.page, sizeof(*run.page));
}
