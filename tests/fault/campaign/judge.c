#include "judge.h"

#include <ctype.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
	REMOTE = 1 << ncclRemoteError,
	TIMEOUT = 1 << ncclTimeout,
	SYSTEM = 1 << ncclSystemError,
	USAGE = 1 << ncclInvalidUsage,	 /* it called what it had revoked */
	GONE = 1 << ncclInvalidArgument, /* it called what it had aborted */
	ANY = REMOTE | TIMEOUT | SYSTEM,
	WHATEVER = 0x1fe,  /* any code but success */
	TOLD_US = 3000000, /* well before the 5 s in which ranks wait to meet */
	MET_US = 1700000,  /* and before the 2 s of a job that kills */
	CLAIM_SENDS = 2	   /* a rank that has sent this much is known to the others */
};

/* What a fault may cost. No code: nothing may fail. */
struct expectation {
	unsigned others;  /* codes that the others may get .. */
	unsigned victims; /* .. and a victim that lives */
	bool is_named;	  /* the others' sentences name the victim */
	bool is_shared;	  /* who cannot meet takes all with it, at once */
	int signal;	  /* by which the victim's process ends */
	int exit_code;
};

/* clang-format off */
static const struct expectation expectations[FAULT_COUNT] = {
	/*                      others            victims           named  shared signal exit */
	[FAULT_KILL] =        {REMOTE,           0,                 true,  false, SIGKILL, 0},
	[FAULT_SEGFAULT] =    {REMOTE,           0,                 true,  false, SIGSEGV, 0},
	[FAULT_EXIT] =        {REMOTE,           0,                 true,  false, 0,       3},
	[FAULT_STOP] =        {REMOTE | TIMEOUT, 0,                 true,  false, SIGKILL, 0},
	[FAULT_RESUME] =      {REMOTE | TIMEOUT, ANY,               true,  false, 0,       0},
	[FAULT_SLOW] =        {0,                0,                 false, false, 0,       0},
	[FAULT_ABORT] =       {REMOTE,           REMOTE | GONE,     true,  false, 0,       0},
	[FAULT_REVOKE] =      {REMOTE,           REMOTE | USAGE,    true,  false, 0,       0},
	[FAULT_REFUSED] =     {ANY,              ANY,               false, true,  0,       0},
	[FAULT_ALLOCATION] =  {REMOTE | SYSTEM,  REMOTE | SYSTEM,   true,  true,  0,       0},
	[FAULT_SYSCALL] =     {REMOTE | SYSTEM,  REMOTE | SYSTEM,   true,  true,  0,       0},
	[FAULT_DESCRIPTORS] = {REMOTE | SYSTEM,  REMOTE | SYSTEM,   true,  true,  0,       0},
	[FAULT_MEMORY] =      {REMOTE | SYSTEM,  REMOTE | SYSTEM,   true,  true,  0,       0},
	[FAULT_RESET] =       {REMOTE,           REMOTE,            true,  false, 0,       0},
	[FAULT_UNPLUG] =      {REMOTE,           REMOTE,            true,  false, 0,       0},
	[FAULT_HALF] =        {REMOTE,           REMOTE,            true,  false, 0,       0},
	[FAULT_REJOIN] =      {0,                0,                 false, false, 0,       0},
	[FAULT_GARBLE] =      {WHATEVER,         WHATEVER,          false, false, 0,       0},
	[FAULT_NOISE] =       {0,                0,                 false, false, 0,       0},
	[FAULT_LAZY] =        {0,                0,                 false, false, 0,       0},
};
/* clang-format on */

struct view {
	const struct job *job;
	const struct page *page;
	const struct run_end *end;
	struct run_result *result;
	struct expectation expected;
};

static void bad(struct view *view, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The first thing that is wrong is the verdict. */
static void bad(struct view *view, const char *format, ...)
{
	va_list arguments;

	if (!view->result->is_ok)
		return;
	view->result->is_ok = false;
	va_start(arguments, format);
	vsnprintf(view->result->why, sizeof(view->result->why), format, arguments);
	va_end(arguments);
}

static const struct outcome *outcome_of(const struct view *view, int rank, enum step step)
{
	const struct outcome *outcome = &view->page->seats[rank].outcomes[step];

	return atomic_load(&outcome->is_made) ? outcome : NULL;
}

/* ---- names ---- */

/* Is it in a list such as "1-3, 7"? */
static bool list_has(const char *list, int rank)
{
	while (isdigit((unsigned char)*list)) {
		char *end;
		long first = strtol(list, &end, 10), last = first;

		if (*end == '-' && isdigit((unsigned char)end[1]))
			last = strtol(end + 1, &end, 10);
		if (rank >= first && rank <= last)
			return true;
		list = end + strspn(end, ", and");
	}
	return false;
}

/* After the word "rank", or in a list after "ranks". */
static bool names(const char *sentence, int rank)
{
	for (const char *at = sentence; (at = strstr(at, "rank"));) {
		at += strlen("rank");
		if (*at == ' ' && list_has(at + 1, rank))
			return true;
		if (!strncmp(at, "s ", 2) && list_has(at + 2, rank))
			return true;
	}
	return false;
}

/* A rank's number in the communicator that the moment of the fault makes. */
static int child_number(const struct job *job, int rank)
{
	int number = 0;

	if (job->moment == AT_SHRINK)
		return rank - (rank > job->excluded);
	for (int i = job->rank_count - 1; i > rank; i--)
		number += i % job->color_count == rank % job->color_count;
	return number;
}

static bool names_victim(const struct view *view, const char *sentence)
{
	const struct job *job = view->job;
	bool divides = job->moment == AT_SPLIT || job->moment == AT_SHRINK;

	for (int i = 0; i < job->rank_count; i++)
		if (job_is_victim(job, i) &&
			(names(sentence, i) ||
				(divides && names(sentence, child_number(job, i)))))
			return true;
	return false;
}

/* With the process that made the id nobody is left who knows the ranks; an abort from
 * another thread is one's own. */
static bool must_name(const struct view *view, enum step step)
{
	const struct job *job = view->job;
	/* ranks meet in the process of rank 0: when they lose it they do not know whose
	 * it was, and where one call of it fails they may lose it one by one */
	bool makes_id = job_is_victim(job, 0) &&
			(step == STEP_INIT || job->fault == FAULT_SYSCALL ||
				job->fault == FAULT_ALLOCATION);

	/* .. and what they lose of a network is not a rank */
	bool is_lost_early = fault_is_network(job->fault) && step == STEP_INIT;

	return view->expected.is_named && !makes_id && !is_lost_early &&
	       !job->aborts_aside;
}

/* The process of a porch is as unknown to its ranks as that of the root; and who cannot
 * reach it over the network says so. Where a network loses what one side says, the other
 * misses that one. */
static bool names_place(const struct view *view, const char *sentence)
{
	bool is_network = fault_is_network(view->job->fault);

	return ((view->job->has_porch || is_network) &&
		       strstr(sentence, "the process in which the ranks meet")) ||
	       (is_network && strstr(sentence, "did not connect within"));
}

/* ---- one rank ---- */

/* A rank without a socket cannot tell anybody: then the others wait for their patience.
 * Every rank of the victim's process needs one, and one more for a while. */
static bool is_mute(const struct view *view)
{
	const struct job *job = view->job;
	uint64_t needed = 1;

	for (int rank = 0; rank < job->rank_count; rank++)
		needed += job_is_victim(job, rank);
	if (job->fault == FAULT_DESCRIPTORS)
		return (job->moment == AT_INIT && (uint64_t)job->number < needed) ||
		       job->host_count;
	/* where ranks meet at an address, there is nothing before rank 0 has come */
	if (job->meets_by_tcp && (job_is_victim(job, 0) || job->refused_by_all))
		return true;
	return job->fault == FAULT_REFUSED && !atomic_load(&view->page->victim_sends);
}

/* Ranks that meet learn of a death from the meeting, or only by its end when the dead
 * one had not come yet. */
static unsigned codes_of(const struct view *view, bool is_victim, enum step step)
{
	const struct job *job = view->job;
	unsigned codes = is_victim ? view->expected.victims : view->expected.others;

	if ((job->fault <= FAULT_EXIT || is_mute(view)) && step == STEP_INIT)
		codes |= TIMEOUT;
	/* who meets over a bad network can miss anybody */
	if (codes && fault_is_network(job->fault) &&
		(step == STEP_INIT || step == STEP_DIVIDE))
		codes |= TIMEOUT | SYSTEM;
	/* who comes late to an address may find another meeting there: that of a rank
	 * which has given up and looks what is left behind */
	if (codes && job->meets_by_tcp && step == STEP_INIT)
		codes |= USAGE;
	/* who can call and not be called is not reached */
	if (job->host_count && job->fault == FAULT_DESCRIPTORS)
		codes |= TIMEOUT;
	return codes;
}

static void check_error(struct view *view, int rank, enum step step, bool is_victim)
{
	const struct outcome *outcome = outcome_of(view, rank, step);

	if (!outcome || !outcome->code)
		return;
	if (!(codes_of(view, is_victim, step) >> outcome->code & 1))
		bad(view, "rank %d: %s gives %d: %s", rank, step_names[step],
			outcome->code, outcome->sentence);
	else if (!outcome->sentence[0])
		bad(view, "rank %d: %s gives %d without a sentence", rank,
			step_names[step], outcome->code);
	else if (!is_victim && must_name(view, step) &&
		 !names_victim(view, outcome->sentence) &&
		 !names_place(view, outcome->sentence))
		bad(view, "rank %d: %s does not name the victim: %s", rank,
			step_names[step], outcome->sentence);
}

static void check_success(struct view *view, int rank, enum step step)
{
	const struct outcome *outcome = outcome_of(view, rank, step);

	if (outcome && outcome->code)
		bad(view, "rank %d: %s gives %d: %s", rank, step_names[step],
			outcome->code, outcome->sentence);
}

/* Has a survivor no communicator? A death can come when some have theirs already, and the
 * others cannot renew it without them. */
static bool is_one_without(const struct view *view)
{
	for (int rank = 0; rank < view->job->rank_count; rank++) {
		const struct outcome *init = outcome_of(view, rank, STEP_INIT);

		if (init && init->code && !job_is_victim(view->job, rank))
			return true;
	}
	return false;
}

/* A split is of all ranks, so it fails without the victim; who only revoked is there. A
 * communicator that has failed may refuse to shrink without the flag to abort: then all
 * of them do. */
static void check_renewal(struct view *view, int rank, bool is_victim)
{
	const struct job *job = view->job;
	const struct outcome *renewal = outcome_of(view, rank, STEP_RENEW);

	if (renewal && renewal->code &&
		(job->after == AFTER_SHRINK || is_one_without(view))) {
		check_error(view, rank, STEP_RENEW, is_victim);
	} else if (job->after != AFTER_REVOKE_SPLIT || job->fault == FAULT_REVOKE) {
		check_success(view, rank, STEP_RENEW);
		check_success(view, rank, STEP_CALL_AGAIN);
	} else if (renewal && !renewal->code) {
		bad(view, "rank %d: a split without the victim succeeds", rank);
	} else {
		check_error(view, rank, STEP_RENEW, is_victim);
	}
}

static void check_rank(struct view *view, int rank)
{
	bool is_victim = job_is_victim(view->job, rank);
	bool is_dead = is_victim && (view->expected.signal || view->expected.exit_code);

	if (is_dead)
		return;
	check_error(view, rank, STEP_ID, is_victim);
	check_error(view, rank, STEP_INIT, is_victim);
	check_error(view, rank, STEP_DIVIDE, is_victim);
	check_error(view, rank, STEP_CALL, is_victim);
	check_success(view, rank, STEP_REVOKE);
	check_renewal(view, rank, is_victim);
	check_success(view, rank, STEP_ABORT);
	if (!view->expected.others)
		check_success(view, rank, STEP_DESTROY);
}

/* ---- the job ---- */

static void check_status(struct view *view, int process)
{
	const struct job *job = view->job;
	bool is_hit = process == job->process_of[job->victim];
	int status = view->end->statuses[process];
	int want_signal = is_hit ? view->expected.signal : 0;
	int want_code = is_hit ? view->expected.exit_code : 0;

	/* it may have come to its end before it was stopped */
	if (job->fault == FAULT_STOP && !view->end->was_stopped)
		want_signal = 0;
	if (WIFSIGNALED(status) && WTERMSIG(status) != want_signal)
		bad(view, "process %d ended by signal %d", process, WTERMSIG(status));
	else if (WIFEXITED(status) && (want_signal || WEXITSTATUS(status) != want_code))
		bad(view, "process %d ended with code %d", process, WEXITSTATUS(status));
	else if (view->page->left[process][0])
		bad(view, "process %d: %s", process, view->page->left[process]);
}

/* The first failure of a rank at or before `last`; NULL when it had none. */
static const struct outcome *failure_of(const struct view *view, int rank, enum step last)
{
	for (int step = STEP_ID; step <= (int)last; step++) {
		const struct outcome *outcome = outcome_of(view, rank, (enum step)step);

		if (outcome && outcome->code)
			return outcome;
	}
	return NULL;
}

/* In these everybody waits for everybody; in others a rank may have its part done and
 * never hear of a failure. */
static bool needs_all(int collective)
{
	return collective == ALL_REDUCE || collective == ALL_GATHER ||
	       collective == REDUCE_SCATTER || collective == ALL_TO_ALL;
}

/* Who cannot meet tells the others, who do not wait for nothing. */
static void check_shared(struct view *view)
{
	const struct job *job = view->job;
	enum step last = job->color_count == 1 ? STEP_DIVIDE : STEP_INIT;
	const struct outcome *first = NULL, *failure;

	for (int i = 0; i < job->rank_count; i++) {
		failure = failure_of(view, i, last);
		if (failure && (!first || failure->ended_us < first->ended_us))
			first = failure;
	}
	for (int i = 0; first && i < job->rank_count; i++) {
		bool is_out = job->moment == AT_SHRINK && i == job->excluded;

		failure = failure_of(view, i, STEP_CALL);
		if (!failure && !is_out && outcome_of(view, i, STEP_INIT) &&
			needs_all(job->collective))
			bad(view, "rank %d got through while others failed: %s", i,
				first->sentence);
		else if (failure && failure->ended_us > first->ended_us + TOLD_US &&
			 !is_mute(view))
			bad(view, "rank %d was told %.1f s late: %s", i,
				(double)(failure->ended_us - first->ended_us) * 1e-6,
				failure->sentence);
	}
}

/* A rank that was known at the meeting must be missed at once. */
static void check_met(struct view *view)
{
	const struct job *job = view->job;
	uint64_t struck = atomic_load(&view->page->struck_us);
	int sharers = 0;

	for (int i = 0; i < job->rank_count; i++)
		sharers += job->process_of[i] == job->process_of[job->victim];
	if (job->moment != AT_INIT || job->fault > FAULT_EXIT || sharers > 1 ||
		job->victim == 0 || atomic_load(&view->page->victim_sends) < CLAIM_SENDS)
		return;
	for (int i = 0; i < job->rank_count; i++) {
		const struct outcome *outcome = outcome_of(view, i, STEP_INIT);

		if (i != job->victim && outcome && outcome->code &&
			outcome->ended_us > struck + MET_US)
			bad(view, "rank %d learns %.1f s late that a rank it met died", i,
				(double)(outcome->ended_us - struck) * 1e-6);
	}
}

/* ---- figures ---- */

static double max_ms(double a, uint64_t from_us, uint64_t to_us)
{
	double b = to_us > from_us ? (double)(to_us - from_us) * 1e-3 : 0;

	return a > b ? a : b;
}

static void figures(struct view *view)
{
	const struct job *job = view->job;
	struct run_result *result = view->result;
	uint64_t struck = atomic_load(&view->page->struck_us), came = 0, renewed = 0;
	bool dies = job->fault <= FAULT_EXIT || job->kills;
	bool shrinks = job->after >= AFTER_SHRINK && job->after <= AFTER_REVOKE_SHRINK;

	result->named_ms = result->silent_ms = -1;
	result->abort_ms = result->shrink_ms = -1;
	for (int i = 0; i < job->rank_count; i++) {
		const struct outcome *call = outcome_of(view, i, STEP_CALL),
				     *end = outcome_of(view, i, STEP_ABORT),
				     *renewal = outcome_of(view, i, STEP_RENEW);
		/* a thread of a process that is stopped takes as long as that lasts */
		bool is_held = job->fault >= FAULT_STOP && job->fault <= FAULT_SLOW &&
			       job->process_of[i] == job->process_of[job->victim];

		if (dies && job->moment == AT_CALLS && !job_is_victim(job, i) && call &&
			call->code)
			result->named_ms = max_ms(result->named_ms,
				call->began_us > struck ? call->began_us : struck,
				call->ended_us);
		if (job->silence_s && job->moment == AT_CALLS && !job->aborts_aside &&
			!job_is_victim(job, i) && struck && call && call->code)
			result->silent_ms = max_ms(
				result->silent_ms, struck, call->ended_us);
		if (end && !is_held)
			result->abort_ms = max_ms(
				result->abort_ms, end->began_us, end->ended_us);
		if (renewal && renewal->began_us > came)
			came = renewal->began_us;
		if (renewal && !renewal->code && renewal->ended_us > renewed)
			renewed = renewal->ended_us;
	}
	if (shrinks && renewed)
		result->shrink_ms = max_ms(0, came, renewed);
}

static void report_hang(struct view *view)
{
	const struct job *job = view->job;
	char text[WHY_BYTES] = "";
	size_t used = 0;

	for (int i = 0; i < job->rank_count && used < sizeof(text); i++) {
		const struct seat *seat = &view->page->seats[i];
		int step = atomic_load(&seat->step);

		used += (size_t)snprintf(
			text + used, sizeof(text) - used, " %d: %s", i, step_names[step]);
		if (step == STEP_CALL && used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used, " %d",
				atomic_load(&seat->call));
	}
	bad(view, "hang:%s", text);
}

void judge(const struct job *job, const struct page *page, const struct run_end *end,
	struct run_result *result)
{
	struct view view = {.job = job,
		.page = page,
		.end = end,
		.result = result,
		.expected = expectations[job->fault]};

	/* what is refused may keep the ranks from ever coming to the kill */
	if (job->kills && atomic_load(&page->struck_us))
		view.expected = expectations[FAULT_KILL];
	*result = (struct run_result){
		.fault = job->fault, .is_made = true, .is_ok = true};
	result->is_struck = page->struck[0] || atomic_load(&page->struck_us);
	if (fault_is_network(job->fault))
		result->is_struck = end->troubles > 0;
	/* the worst first: bytes, then hangs and crashes, then words */
	for (int i = 0; i < job->rank_count; i++)
		if (page->seats[i].bad[0])
			bad(&view, "rank %d: %s", i, page->seats[i].bad);
	if (end->hangs)
		report_hang(&view);
	else
		for (int i = 0; i < job->process_count; i++)
			check_status(&view, i);
	for (int i = 0; i < job->rank_count; i++)
		check_rank(&view, i);
	if (view.expected.is_shared)
		check_shared(&view);
	check_met(&view);
	figures(&view);
}

static size_t print_rank(
	const struct job *job, const struct page *page, int rank, char *text, size_t room)
{
	const struct seat *seat = &page->seats[rank];
	uint64_t struck = atomic_load(&page->struck_us);
	size_t used = (size_t)snprintf(
		text, room, " | %d%s:", rank, job_is_victim(job, rank) ? "*" : "");

	for (int step = STEP_ID; step < STEP_FINISHED && used < room; step++) {
		const struct outcome *o = &seat->outcomes[step];

		if (!atomic_load(&o->is_made))
			continue;
		used += (size_t)snprintf(
			text + used, room - used, " %s %d", step_names[step], o->code);
		if (used < room && step >= STEP_CALL && o->ended_us >= o->began_us)
			used += (size_t)snprintf(text + used, room - used, " in %.2f ms",
				(double)(o->ended_us - o->began_us) * 1e-3);
		if (used < room && o->code && struck && o->ended_us > struck)
			used += (size_t)snprintf(text + used, room - used, " at +%.2f ms",
				(double)(o->ended_us - struck) * 1e-3);
		if (used < room && o->code)
			used += (size_t)snprintf(
				text + used, room - used, " \"%s\"", o->sentence);
	}
	return used < room ? used : room;
}

void judge_print(
	const struct job *job, const struct page *page, struct run_result *result)
{
	char what[512];
	size_t room = sizeof(result->line), used;

	job_print(job, what, sizeof(what));
	used = (size_t)snprintf(result->line, room, "seed %lu: %s%s%s: %s%s%s",
		(unsigned long)job->seed, what, page->struck[0] ? "; struck " : "",
		page->struck, result->is_ok ? "ok" : "BAD", result->is_ok ? "" : ": ",
		result->why);
	for (int i = 0; i < job->rank_count && used < room; i++)
		used += print_rank(job, page, i, result->line + used, room - used);
}
