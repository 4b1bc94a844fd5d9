#include "strike.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "detour.h"
#include "interpose.h"
#include "ranks.h"

enum {
	ENTER_US = 30,	  /* from the gate into the library */
	STUCK_US = 15000, /* in one call: it waits for the stopped rank */
	ASIDE_POLL_US = 200,
	EXIT_CODE = 3
};

/* Who may use the communicator. The rank's thread goes from idle to inside and back; the
 * other thread takes it from inside to taken, and then aborts and so frees it; once idle
 * the rank's thread may close the gate for good. */
enum gate { GATE_IDLE, GATE_INSIDE, GATE_TAKEN, GATE_CLOSED };

static bool gate_move(struct strike *strike, int from, int to)
{
	return atomic_compare_exchange_strong(&strike->gate, &from, to);
}

/* ---- outcomes ---- */

void outcome_begin(struct seat *seat, enum step step)
{
	seat->outcomes[step].began_us = now_us();
	atomic_store(&seat->step, step);
}

void outcome_end(struct seat *seat, enum step step, ncclResult_t code, ncclComm_t comm)
{
	struct outcome *outcome = &seat->outcomes[step];

	outcome->ended_us = now_us();
	outcome->code = code;
	if (code)
		snprintf(outcome->sentence, sizeof(outcome->sentence), "%s",
			ncclGetLastError(comm));
	atomic_store(&outcome->is_made, true);
}

/* ---- system calls that are refused ---- */

static void refuse(long number, int error)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {
		.len = sizeof(program) / sizeof(program[0]), .filter = program};

	EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

void strike_process(const struct job *job, struct page *page, int process)
{
	const struct refused_call *call = &refused_calls[job->refused];
	bool is_hit = process == job->process_of[job->victim];

	if (job->fault == FAULT_REFUSED && (is_hit || job->refused_by_all))
		refuse(call->number, call->error);
	if (is_hit)
		interpose_count_sends(&page->victim_sends);
}

/* ---- deaths ---- */

/* A page that nobody may write: also a sanitizer takes that for what it is. */
static void crash(void)
{
	struct rlimit none = {0, 0};
	volatile char *nobodys = mmap(
		NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	setrlimit(RLIMIT_CORE, &none);
	signal(SIGSEGV, SIG_DFL);
	*nobodys = 1;
}

static void die(struct strike *strike)
{
	atomic_store(&strike->page->struck_us, now_us());
	if (strike->job->fault == FAULT_SEGFAULT)
		crash();
	if (strike->job->fault == FAULT_EXIT && strike->job->exits_by_handler)
		exit(EXIT_CODE);
	if (strike->job->fault ==
		FAULT_EXIT) /* not _exit(): a sanitizer looks for leaks */
		syscall(SYS_exit_group, EXIT_CODE);
	raise(SIGKILL);
}

/* ---- the network ---- */

static void *network_main(void *argument)
{
	struct strike *strike = argument;

	usleep(strike->job->delay_us);
	atomic_store(&strike->page->struck_us, now_us());
	detour_strike();
	return NULL;
}

static void *die_main(void *argument)
{
	struct strike *strike = argument;

	usleep(strike->job->delay_us);
	die(strike);
	return NULL;
}

/* ---- communicators ended from another thread ---- */

/* Wait for the rank's thread to be inside, for `stuck_us` in the same call; then the
 * communicator is ours. False when it will not come any more. */
static bool gate_take(struct strike *strike, unsigned stuck_us)
{
	for (;;) {
		int call = atomic_load(&strike->seat->call);

		if (atomic_load(&strike->gate) == GATE_CLOSED)
			return false;
		if (atomic_load(&strike->gate) != GATE_INSIDE) {
			usleep(ENTER_US);
			continue;
		}
		usleep(stuck_us);
		if (atomic_load(&strike->seat->call) == call &&
			gate_move(strike, GATE_INSIDE, GATE_TAKEN))
			return true;
	}
}

static void abort_taken(struct strike *strike)
{
	ncclResult_t got;

	strike->seat->outcomes[STEP_ABORT].began_us = now_us();
	got = ncclCommAbort(strike->group->comm);
	outcome_end(strike->seat, STEP_ABORT, got, NULL);
}

static void *abort_main(void *argument)
{
	struct strike *strike = argument;

	usleep(strike->job->delay_us);
	if (!gate_take(strike, ENTER_US))
		return NULL;
	atomic_store(&strike->page->struck_us, now_us());
	abort_taken(strike);
	return NULL;
}

static void *abort_aside_main(void *argument)
{
	struct strike *strike = argument;

	while (!atomic_load(&strike->page->struck_us)) {
		if (atomic_load(&strike->gate) == GATE_CLOSED)
			return NULL;
		usleep(ASIDE_POLL_US);
	}
	if (gate_take(strike, STUCK_US))
		abort_taken(strike);
	return NULL;
}

/* A revoked communicator lives on, so nobody need be kept away from it. */
static void *revoke_main(void *argument)
{
	struct strike *strike = argument;
	ncclResult_t got;

	usleep(strike->job->delay_us);
	atomic_store(&strike->page->struck_us, now_us());
	strike->seat->outcomes[STEP_REVOKE].began_us = now_us();
	got = ncclCommRevoke(strike->group->comm, NCCL_REVOKE_DEFAULT);
	outcome_end(strike->seat, STEP_REVOKE, got, NULL);
	return NULL;
}

static void thread_start(struct strike *strike, void *(*function)(void *))
{
	EQ(pthread_create(&strike->thread, NULL, function, strike), 0);
	strike->has_thread = true;
}

static void thread_join(struct strike *strike)
{
	if (strike->has_thread)
		pthread_join(strike->thread, NULL);
	strike->has_thread = false;
}

void strike_abort_aside(struct strike *strike, const struct group *group)
{
	strike->group = group;
	thread_start(strike, abort_aside_main);
}

bool strike_enter(struct strike *strike)
{
	if (gate_move(strike, GATE_IDLE, GATE_INSIDE))
		return true;
	thread_join(strike);
	return false;
}

bool strike_leave(struct strike *strike)
{
	if (gate_move(strike, GATE_INSIDE, GATE_IDLE))
		return true;
	thread_join(strike);
	return false;
}

bool strike_close(struct strike *strike)
{
	bool is_ours = gate_move(strike, GATE_IDLE, GATE_CLOSED) ||
		       atomic_load(&strike->gate) == GATE_CLOSED;

	thread_join(strike);
	return is_ours;
}

/* ---- limits ---- */

static void limit_set(__rlimit_resource_t what, rlim_t soft)
{
	struct rlimit now;

	EQ(getrlimit(what, &now), 0);
	now.rlim_cur = soft < now.rlim_max ? soft : now.rlim_max;
	EQ(setrlimit(what, &now), 0);
}

static rlim_t address_space(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	TRUE(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

/* The lowest free descriptor: the limit counts from there. */
static void limit_descriptors(int more)
{
	int fd = dup(0);

	TRUE(fd >= 0);
	close(fd);
	limit_set(RLIMIT_NOFILE, (rlim_t)(fd + more));
}

static void limits_lift(void)
{
	limit_set(RLIMIT_NOFILE, RLIM_INFINITY);
	limit_set(RLIMIT_AS, RLIM_INFINITY);
}

/* ---- the moment ---- */

/* In the middle of a call, however long calls take here. */
static uint64_t stop_delay_us(const struct strike *strike)
{
	const struct outcome *last = &strike->seat->outcomes[STEP_CALL];

	if (!strike->job->percent)
		return strike->job->delay_us;
	return (last->ended_us - last->began_us) * (uint64_t)strike->job->percent / 100;
}

static void strike_now(struct strike *strike)
{
	const struct job *job = strike->job;
	bool is_in_steps = job->delay_us && !job->never_comes;

	switch (job->fault) {
	case FAULT_KILL:
	case FAULT_SEGFAULT:
	case FAULT_EXIT:
	case FAULT_REFUSED:
		if (is_in_steps)
			thread_start(strike, die_main);
		else
			die(strike);
		break;
	case FAULT_STOP:
	case FAULT_RESUME:
		atomic_store(&strike->page->armed_us, now_us() + stop_delay_us(strike));
		break;
	case FAULT_SLOW:
		if (job->stops)
			atomic_store(&strike->page->armed_us, now_us() + job->delay_us);
		else
			usleep(job->delay_us);
		atomic_store(&strike->page->struck_us, now_us());
		break;
	case FAULT_ABORT:
		thread_start(strike, abort_main);
		break;
	case FAULT_REVOKE:
		thread_start(strike, revoke_main);
		break;
	case FAULT_ALLOCATION:
		interpose_arm(INTERPOSE_ALLOCATIONS, job->number, strike->page->struck);
		break;
	case FAULT_SYSCALL:
		interpose_arm(INTERPOSE_CALLS, job->number, strike->page->struck);
		break;
	case FAULT_DESCRIPTORS:
		atomic_store(&strike->page->struck_us, now_us());
		limit_descriptors(job->number);
		break;
	case FAULT_MEMORY:
		atomic_store(&strike->page->struck_us, now_us());
		limit_set(RLIMIT_AS, address_space() + ((rlim_t)job->number << 20));
		break;
	default:
		thread_start(strike, network_main);
		break;
	}
}

void strike_at(
	struct strike *strike, enum moment moment, int call, const struct group *group)
{
	const struct job *job = strike->job;

	if (!strike->is_first || moment != job->moment ||
		(moment == AT_CALLS && call < job->call) ||
		(job->fault == FAULT_REFUSED && !job->kills))
		return;
	if (strike->is_done && job->fault != FAULT_SLOW)
		return; /* only who is slow is so every time */
	strike->is_done = true;
	strike->group = group;
	strike_now(strike);
}

void strike_end(struct strike *strike)
{
	const struct job *job = strike->job;

	interpose_disarm();
	if (job->fault == FAULT_DESCRIPTORS || job->fault == FAULT_MEMORY)
		limits_lift();
	thread_join(strike);
}
