#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>

enum { BYTES_OF_ALL = 32 << 20, HOSTS_BYTES_OF_ALL = 8 << 20, HOSTS_MAX = 4 };

const char *const fault_names[FAULT_COUNT] = {"kill", "segfault", "exit", "stop",
	"resume", "slow", "abort", "revoke", "refused", "allocation", "syscall",
	"descriptors", "memory", "reset", "unplug", "half", "rejoin", "garble", "noise",
	"lazy"};
const char *const moment_names[MOMENT_COUNT] = {
	"init", "split", "shrink", "calls", "destroy"};
static const char *const after_names[AFTER_COUNT] = {"abort", "destroy", "shrink",
	"shrink with abort", "revoke and shrink", "revoke and split"};

/* Not among them: futex, without which no thread waits, getrandom, without which
 * libsodium ends the process, and rseq, without which glibc does. */
const struct refused_call refused_calls[] = {
	{"pidfd_open", SYS_pidfd_open, ENOSYS, false},
	{"pidfd_open", SYS_pidfd_open, EPERM, false},
	{"process_vm_readv", SYS_process_vm_readv, EPERM, false},
	{"process_vm_writev", SYS_process_vm_writev, ENOSYS, false},
	{"memfd_create", SYS_memfd_create, ENOSYS, true},
	{"memfd_create", SYS_memfd_create, EPERM, true},
	{"sched_getaffinity", SYS_sched_getaffinity, EPERM, false},
	{"sched_setaffinity", SYS_sched_setaffinity, EPERM, false},
	{"setpriority", SYS_setpriority, EPERM, false},
	{"madvise", SYS_madvise, EPERM, false},
	{"set_robust_list", SYS_set_robust_list, ENOSYS, false},
	{"eventfd2", SYS_eventfd2, ENOSYS, false},
	{"socket", SYS_socket, EPERM, false},
	{"ftruncate", SYS_ftruncate, EPERM, true},
	{"setsockopt", SYS_setsockopt, EPERM, false},
	{"prlimit64", SYS_prlimit64, EPERM, false},
	{"getcpu", SYS_getcpu, ENOSYS, false},
};
const int refused_call_count = sizeof(refused_calls) / sizeof(refused_calls[0]);

/* Those that find most come most often. */
static const int fault_weights[FAULT_COUNT] = {4, 2, 2, 2, 3, 2, 3, 2, 3, 4, 4, 2, 2};
static const int lean_weights[FAULT_COUNT] = {4, 2, 2, 2, 3, 2, 3, 2, 0, 0, 0, 2, 0};
/* .. and between hosts */
static const int hosts_weights[FAULT_COUNT] = {
	5, 1, 2, 2, 2, 1, 4, 2, 1, 2, 2, 1, 1, 5, 3, 2, 3, 3, 2, 3};
static const int lean_hosts_weights[FAULT_COUNT] = {
	5, 1, 2, 2, 2, 1, 4, 2, 0, 0, 0, 0, 0, 5, 3, 2, 3, 3, 2, 3};

/* splitmix64: neighbouring seeds share nothing. */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static int pick(uint64_t *state, int low, int high)
{
	return low + (int)(draw(state) % (uint64_t)(high - low + 1));
}

static bool chance(uint64_t *state, int percent)
{
	return pick(state, 0, 99) < percent;
}

/* Low values more often: 2 to the power of the lesser of two draws, and a little more. */
static uint64_t pick_power(uint64_t *state, int low, int high)
{
	int a = pick(state, low, high), b = pick(state, low, high);
	uint64_t power = (uint64_t)1 << (a < b ? a : b);

	return power + draw(state) % power;
}

static enum fault pick_fault(uint64_t *state, const int *weights)
{
	int sum = 0, at;

	for (int i = 0; i < FAULT_COUNT; i++)
		sum += weights[i];
	at = pick(state, 0, sum - 1);
	for (int i = 0; i < FAULT_COUNT; i++) {
		at -= weights[i];
		if (at < 0)
			return (enum fault)i;
	}
	return FAULT_KILL;
}

bool fault_takes_process(enum fault fault)
{
	return fault != FAULT_ABORT && fault != FAULT_REVOKE &&
	       fault != FAULT_ALLOCATION && fault != FAULT_SYSCALL;
}

bool fault_fails_calls(enum fault fault)
{
	return fault >= FAULT_ALLOCATION && fault <= FAULT_MEMORY;
}

bool fault_is_network(enum fault fault)
{
	return fault >= FAULT_RESET && fault < FAULT_COUNT;
}

bool job_is_victim(const struct job *job, int rank)
{
	int process = job->process_of[rank], hit = job->process_of[job->victim];

	return rank == job->victim ||
	       (fault_takes_process(job->fault) && process == hit) ||
	       (fault_is_network(job->fault) &&
		       job->host_of[process] == job->host_of[hit]);
}

bool job_is_lethal(const struct job *job)
{
	if (job->fault == FAULT_RESET)
		return job->moment != AT_INIT; /* ranks may come again to meet */
	return (job->fault != FAULT_SLOW && job->fault < FAULT_REFUSED) || job->kills ||
	       job->fault == FAULT_UNPLUG || job->fault == FAULT_HALF;
}

/* Ranks to processes: each process has one, the others go anywhere. */
static void pick_processes(uint64_t *state, struct job *job)
{
	int least = fault_takes_process(job->fault) || job->host_count ? 2 : 1,
	    n = job->rank_count;

	job->process_count = chance(state, 40) ? n : pick(state, least, n);
	for (int i = 0; i < n; i++)
		job->process_of[i] = i < job->process_count
					     ? i
					     : pick(state, 0, job->process_count - 1);
	for (int i = n - 1; i > 0; i--) {
		int j = pick(state, 0, i), other = job->process_of[j];

		job->process_of[j] = job->process_of[i];
		job->process_of[i] = other;
	}
}

static void pick_size(uint64_t *state, const struct job_wish *wish, struct job *job)
{
	int few = pick(state, 0, 99);
	size_t most;

	job->rank_count = few < 55   ? pick(state, 2, 4)
			  : few < 90 ? pick(state, 5, 8)
				     : pick(state, 9, JOB_RANKS);
	if (wish->rank_count)
		job->rank_count = wish->rank_count;
	/* what is resumed should have been stopped in the middle of a copy */
	job->bytes = pick_power(state, job->fault == FAULT_RESUME ? 17 : 3, 24) / 4 * 4;
	if (job->bytes > 16 << 20)
		job->bytes = 16 << 20;
	most = job->host_count ? HOSTS_BYTES_OF_ALL : BYTES_OF_ALL;
	while (job->bytes * (size_t)job->rank_count > most)
		job->bytes = job->bytes / 8 * 4;
}

/* Does it end in silence, which others notice only after a while? */
static bool fault_is_silent(enum fault fault)
{
	return fault == FAULT_STOP || fault == FAULT_RESUME || fault == FAULT_UNPLUG ||
	       fault == FAULT_HALF;
}

/* Moments other than calls cost a timeout where a rank stops there: fewer of them. */
static void pick_moment(uint64_t *state, struct job *job)
{
	bool stops = fault_is_silent(job->fault);
	int where = pick(state, 0, 99);

	job->moment = AT_CALLS;
	if (job->fault == FAULT_ABORT || job->fault == FAULT_REVOKE)
		return;
	if (job->fault == FAULT_RESET && where < 25)
		job->moment = AT_INIT;
	if (fault_is_network(job->fault) && !stops)
		return;
	if (where < (stops ? 6 : 14))
		job->moment = AT_INIT;
	else if (where < (stops ? 12 : 26))
		job->moment = AT_SPLIT;
	else if (where < (stops ? 18 : 38))
		job->moment = AT_SHRINK;
	else if (where < (stops ? 20 : 46))
		job->moment = AT_DESTROY;
	if (job->moment == AT_SHRINK && job->rank_count < 3)
		job->moment = AT_SPLIT;
	if (job->fault == FAULT_REFUSED)
		job->moment = job->kills ? AT_CALLS : AT_INIT;
	else if (fault_fails_calls(job->fault) && job->moment == AT_CALLS &&
		 chance(state, 60))
		job->moment = AT_INIT; /* where most of these calls are made */
	if (fault_fails_calls(job->fault) && job->moment == AT_DESTROY)
		job->moment = AT_CALLS;
}

/* Ranks must agree on what to do next. Where some may have got through and others not,
 * nobody can know whom to meet: those only leave. */
static void pick_after(uint64_t *state, struct job *job)
{
	int live = 0;

	for (int i = 0; i < job->rank_count; i++)
		live += !job_is_victim(job, i) &&
			(job->moment != AT_SHRINK || i != job->excluded);
	job->after = (enum after)pick(state, AFTER_ABORT, AFTER_COUNT - 1);
	if (!job_is_lethal(job) || job->moment == AT_INIT || job->moment == AT_DESTROY ||
		live == 0)
		job->after = (enum after)pick(state, AFTER_ABORT, AFTER_DESTROY);
	else if (job->fault == FAULT_REVOKE)
		job->after = (enum after)pick(
			state, AFTER_REVOKE_SHRINK, AFTER_REVOKE_SPLIT);
	else if (job->aborts_aside)
		job->after = AFTER_ABORT;
	else if (job->moment != AT_CALLS &&
		 (job->after == AFTER_REVOKE_SPLIT || job->after == AFTER_SHRINK))
		job->after = AFTER_SHRINK_ABORT; /* not all of the parents have failed */
	job->color_count = job->after >= AFTER_SHRINK ? 1 : pick(state, 1, 2);
}

static int survivors_of_shrink(const struct job *job)
{
	int count = 0;

	for (int i = 0; i < job->rank_count; i++)
		count += i != job->excluded && !job_is_victim(job, i);
	return count;
}

static void pick_details(uint64_t *state, struct job *job)
{
	bool stops = job->fault == FAULT_STOP || job->fault == FAULT_RESUME;
	bool fails_call = fault_fails_calls(job->fault);
	int most;

	job->victim = pick(state, 0, job->rank_count - 1);
	job->excluded = (job->victim + pick(state, 1, job->rank_count - 1)) %
			job->rank_count;
	/* somebody else must be there to miss the victim */
	if (fault_is_silent(job->fault) && job->moment == AT_SHRINK &&
		!survivors_of_shrink(job))
		job->moment = AT_CALLS;
	job->call = pick(state, 0, 8);
	job->call_count = pick(state, 2, 8) + job->call / 2;
	if (fails_call)
		job->call = 0;
	job->delay_us = chance(state, 20) ? 0 : (unsigned)pick_power(state, 2, 14);
	job->collective = (int)pick(state, 0, KIND_COUNT - 1);
	if (job->bytes < 4 * (size_t)job->rank_count)
		job->bytes = 4 *
			     (size_t)job->rank_count; /* no empty blocks: nobody waits */
	job->nccl_memory = chance(state, 50) &&
			   !(job->fault == FAULT_REFUSED &&
				   refused_calls[job->refused].stops_memory);
	job->in_place = chance(state, 40);
	job->never_comes = job->moment == AT_INIT && chance(state, 15) &&
			   job->fault <= FAULT_EXIT;
	job->aborts_aside = stops && job->moment == AT_CALLS && chance(state, 60);
	job->percent = stops && job->moment == AT_CALLS ? pick(state, 1, 150) : 0;
	if (job->percent)
		job->call = pick(state, 1, 8);
	job->timeout_s = stops && !job->aborts_aside ? 1 : 0;
	/* short only where it is the right answer: a busy machine is late as well */
	job->boot_timeout_s = job->fault <= FAULT_RESUME ? 2 : fails_call ? 5 : 12;
	job->resumes_early = !job->aborts_aside && chance(state, 50);
	job->stops = chance(state, 40);
	job->exits_by_handler = chance(state, 50);
	/* rank 0, whose process has the meeting, makes the most system calls */
	most = job->fault == FAULT_DESCRIPTORS			 ? 14
	       : job->fault == FAULT_MEMORY			 ? 24
	       : job->fault == FAULT_SYSCALL && job->victim != 0 ? 36
								 : 80;
	job->number = pick(state, job->fault < FAULT_DESCRIPTORS, most);
}

/* Processes to hosts: each host has one, the others go anywhere. */
static void pick_hosts(uint64_t *state, struct job *job)
{
	int most = job->process_count < HOSTS_MAX ? job->process_count : HOSTS_MAX;

	job->host_count = pick(state, 2, most);
	for (int i = 0; i < job->process_count; i++)
		job->host_of[i] = i < job->host_count
					  ? i
					  : pick(state, 0, job->host_count - 1);
}

/* What the relay does. */
static void pick_trouble(uint64_t *state, struct job *job)
{
	bool by_reset = chance(state, 70);

	/* the way into the relay needs descriptors and calls of its own */
	job->by_relay = fault_is_network(job->fault) ||
			(chance(state, 35) && job->fault < FAULT_REFUSED);
	job->meets_by_tcp = chance(state, 50);
	job->has_porch = chance(state, 50);
	job->trouble_kinds = RELAY_ALL;
	switch (job->fault) {
	case FAULT_RESET:
		job->trouble = by_reset ? RELAY_RESET : RELAY_CUT;
		job->trouble_kinds = job->moment == AT_INIT ? RELAY_MEETING : RELAY_DATA;
		job->trouble_times = job->moment == AT_INIT ? 1 : 0;
		job->meets_by_tcp = job->meets_by_tcp || job->moment == AT_INIT;
		break;
	case FAULT_UNPLUG:
		job->trouble = RELAY_HOLE;
		break;
	case FAULT_HALF:
		job->trouble = RELAY_HALF;
		break;
	case FAULT_REJOIN:
		job->trouble = by_reset ? RELAY_RESET : RELAY_CUT;
		job->trouble_kinds = RELAY_CONTROL;
		job->trouble_times = (uint32_t)pick(state, 1, 6);
		break;
	case FAULT_GARBLE:
		job->trouble = RELAY_CORRUPT;
		job->trouble_kinds = RELAY_DATA;
		break;
	case FAULT_NOISE:
		job->trouble = RELAY_CORRUPT;
		job->trouble_kinds = RELAY_CONTROL;
		job->trouble_times = (uint32_t)pick(state, 1, 4);
		break;
	case FAULT_LAZY:
		job->trouble = by_reset ? RELAY_TRICKLE : RELAY_DELAY;
		break;
	default:
		break;
	}
}

/* Between hosts silence is noticed without a limit of time for calls. */
static void pick_limits(struct job *job)
{
	if (fault_is_silent(job->fault)) {
		job->silence_s = 1;
		job->timeout_s = 0;
		job->boot_timeout_s = 2;
	}
	if (job->fault == FAULT_GARBLE)
		job->timeout_s = 2; /* a length may have changed */
	if (job->fault == FAULT_RESET)
		job->boot_timeout_s = 4;
}

/* Who is stopped is noticed from other hosts; but those of the other half of a split have
 * left by then, and on its own host patience alone ends a wait. */
static void pick_patience(struct job *job)
{
	if ((job->fault == FAULT_STOP || job->fault == FAULT_RESUME) &&
		job->moment == AT_SPLIT && job->color_count > 1)
		job->timeout_s = 2;
}

struct job job_derive(uint64_t seed, const struct job_wish *wish)
{
	uint64_t state = seed * 0xd1342543de82ef95u + 1;
	struct job job = {.seed = seed, .host_count = wish->hosts ? 2 : 0};

	job.fault = pick_fault(&state, wish->hosts && wish->lean ? lean_hosts_weights
				       : wish->hosts		 ? hosts_weights
				       : wish->lean		 ? lean_weights
								 : fault_weights);
	if (wish->fault >= 0)
		job.fault = (enum fault)wish->fault;
	job.refused = pick(&state, 0, refused_call_count - 1);
	job.refused_by_all = chance(&state, 50);
	job.kills = job.fault == FAULT_REFUSED && chance(&state, 50);
	pick_size(&state, wish, &job);
	pick_processes(&state, &job);
	if (wish->hosts)
		pick_hosts(&state, &job);
	pick_moment(&state, &job);
	pick_details(&state, &job);
	if (wish->hosts) {
		pick_trouble(&state, &job);
		pick_limits(&job);
	}
	if (wish->lean)
		job.exits_by_handler = false;
	pick_after(&state, &job);
	if (wish->hosts)
		pick_patience(&job);
	return job;
}

static int print_fault(const struct job *job, char *text, size_t room)
{
	const struct refused_call *refused = &refused_calls[job->refused];

	switch (job->fault) {
	case FAULT_REFUSED:
		return snprintf(text, room, "%s refused with %d in %s%s", refused->name,
			refused->error,
			job->refused_by_all ? "all processes" : "one process",
			job->kills ? ", kill" : "");
	case FAULT_ALLOCATION:
	case FAULT_SYSCALL:
		return snprintf(
			text, room, "%s %d fails", fault_names[job->fault], job->number);
	case FAULT_DESCRIPTORS:
		return snprintf(text, room, "%d descriptors left", job->number);
	case FAULT_MEMORY:
		return snprintf(text, room, "%d MiB left", job->number);
	default:
		return snprintf(text, room, "%s%s", fault_names[job->fault],
			job->aborts_aside ? ", aborted aside"
			: job->timeout_s  ? ", timeout"
					  : "");
	}
}

void job_print(const struct job *job, char *text, size_t room)
{
	size_t used = (size_t)print_fault(job, text, room);

	used += (size_t)snprintf(text + used, room - used, " at rank %d in %s",
		job->victim, moment_names[job->moment]);
	if (job->moment == AT_CALLS)
		used += (size_t)snprintf(text + used, room - used, " %d", job->call);
	if (job->never_comes)
		used += (size_t)snprintf(text + used, room - used, " before it");
	else if (job->percent)
		used += (size_t)snprintf(
			text + used, room - used, " + %d %% of a call", job->percent);
	else if (job->fault <= FAULT_REVOKE || job->kills || job->trouble)
		used += (size_t)snprintf(
			text + used, room - used, " + %u us", job->delay_us);
	used += (size_t)snprintf(text + used, room - used, "; %d ranks in %d processes",
		job->rank_count, job->process_count);
	if (job->host_count)
		used += (size_t)snprintf(text + used, room - used, " on %d hosts%s%s%s",
			job->host_count, job->by_relay ? " by relay" : "",
			job->meets_by_tcp ? ", met by TCP" : "",
			job->has_porch ? ", porches" : "");
	used += (size_t)snprintf(text + used, room - used, ", %s of %zu B%s%s",
		job->collective == SEND_RECV ? "SendRecv"
					     : collective_name(job->collective),
		job->bytes, job->nccl_memory ? ", nccl memory" : "",
		job->in_place ? ", in place" : "");
	snprintf(text + used, room - used, "; then %s", after_names[job->after]);
}
