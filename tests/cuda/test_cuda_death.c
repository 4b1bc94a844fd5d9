/*
 * A rank that is killed, aborts, or calls something else costs the others an error and
 * never a hang: their streams finish, and they go on without it. How long it took is
 * shown; only that it ends at all is checked.
 */
#include <unistd.h>

#include "parts.h"

enum {
	WORDS = 5000,
	POLL_US = 200,
	SOON_US = 20 * 1000,
	TOLD_US = 500 * 1000, /* an idle rank may hear of a death by itself */
	LIMIT_US = 10 * 1000 * 1000
};

/* Words of the page. */
enum { AT_US, CALLED };

/* When the victim dies; a part's value is one of these and the victim. */
enum when {
	IN_CALL,    /* the others wait in a call */
	IN_LOOP,    /* all make one call after the other */
	IN_REPLAY,  /* the others wait in a graph */
	IN_MESSAGE, /* the others wait for a message from it */
	BETWEEN,    /* nobody calls anything */
	EARLY,	    /* it has just begun to start */
	STARTING,   /* a little later */
	WHEN_SHIFT = 4
};

#define DIES(when, victim)                                                               \
	.value = (when) << WHEN_SHIFT | (victim), .killed = 1u << (victim)

static enum when when_of(const struct rank *rank)
{
	return (enum when)(part_value(rank) >> WHEN_SHIFT);
}

static int victim_of(const struct rank *rank)
{
	return part_value(rank) & ((1 << WHEN_SHIFT) - 1);
}

static void at_now(struct rank *rank)
{
	atomic_store(&rank->page->words[AT_US], now_us());
}

static void die(struct rank *rank)
{
	at_now(rank);
	raise(SIGKILL);
}

/* ---- those who stay ---- */

struct survivor {
	struct rank *rank;
	ncclComm_t comm;
	cu_stream stream;
	void *data;
	bool is_idle;	    /* it has made no call that the victim's death stops */
	ncclResult_t error; /* the first, of a call or of the communicator */
};

static void survivor_begin(struct survivor *survivor, struct rank *rank)
{
	gpu_begin();
	*survivor = (struct survivor){.rank = rank,
		.stream = gpu_stream(),
		.data = gpu_alloc(WORDS * sizeof(uint32_t))};
}

static void survivor_end(struct survivor *survivor)
{
	gpu_stream_end(survivor->stream);
	gpu_free(survivor->data);
}

static ncclResult_t call(const struct survivor *survivor)
{
	return ncclAllReduce(survivor->data, survivor->data, WORDS, ncclUint32, ncclSum,
		survivor->comm, (cudaStream_t)survivor->stream);
}

static void note(struct survivor *survivor, ncclResult_t got)
{
	if (got != ncclInProgress && !survivor->error)
		survivor->error = got;
}

static void note_state(struct survivor *survivor)
{
	ncclResult_t state = ncclSuccess;

	OK(ncclCommGetAsyncError(survivor->comm, &state));
	note(survivor, state);
}

static void latest_raise(struct rank *rank, uint64_t late)
{
	uint64_t now = atomic_load(&rank->page->result);

	while (late > now &&
		!atomic_compare_exchange_weak(&rank->page->result, &now, late))
		;
}

/* Who makes no call need not be told by itself, only when it calls. */
static void call_after_all(struct survivor *survivor, uint64_t at)
{
	if (survivor->error || !survivor->is_idle || !at || now_us() < at + TOLD_US)
		return;
	survivor->is_idle = false;
	note(survivor, call(survivor));
}

/* Until there is an error and the stream has finished. */
static void survive(struct survivor *survivor)
{
	_Atomic uint64_t *at = &survivor->rank->page->words[AT_US];
	uint64_t end = patient_us() + 2 * LIMIT_US;
	bool is_done = false;

	while (!survivor->error || !is_done || !atomic_load(at)) {
		note_state(survivor);
		call_after_all(survivor, atomic_load(at));
		is_done = gpu_is_done(survivor->stream);
		rank_context("rank %d has error %d (%s), its stream has %sfinished",
			survivor->rank->rank, survivor->error,
			ncclGetLastError(survivor->comm), is_done ? "" : "not ");
		HOLDS(patient_us() < end);
		HOLDS(!atomic_load(at) ||
			(double)(now_us() - atomic_load(at)) < LIMIT_US * crowding());
		usleep(POLL_US);
	}
	HOLDS(ncclGetLastError(survivor->comm)[0]);
	latest_raise(survivor->rank, now_us() - atomic_load(at));
}

/* The survivors make a communicator without `victim`, and it works. */
static void go_on(struct survivor *survivor, int victim)
{
	struct rank rank = *survivor->rank;
	ncclComm_t comm;

	if (survivor->comm)
		OK(ncclCommAbort(survivor->comm));
	rank.rank -= rank.rank > victim;
	rank.rank_count--;
	comm = rank_comm(&rank, 1);
	comm_check(comm, survivor->stream);
	OK(ncclCommDestroy(comm));
	survivor_end(survivor);
}

/* ---- deaths ---- */

static ncclResult_t message(const struct survivor *survivor)
{
	cudaStream_t stream = (cudaStream_t)survivor->stream;
	int victim = victim_of(survivor->rank);

	return ncclRecv(
		survivor->data, WORDS, ncclUint32, victim, survivor->comm, stream);
}

/* Waits for all others to be about to call, and a little longer. */
static void die_when_called(struct rank *rank)
{
	while (atomic_load(&rank->page->words[CALLED]) < (uint64_t)rank->rank_count - 1)
		usleep(POLL_US);
	usleep(SOON_US);
	die(rank);
}

static void *die_soon(void *argument)
{
	struct rank *rank = argument;

	usleep(when_of(rank) == EARLY	    ? 1000
		: when_of(rank) == STARTING ? 40000
					    : SOON_US);
	die(rank);
	return NULL;
}

static void call_in_loop(struct survivor *survivor)
{
	bool is_victim = survivor->rank->rank == victim_of(survivor->rank);
	uint64_t end = patient_us() + LIMIT_US;
	pthread_t thread;

	if (is_victim)
		EQ(pthread_create(&thread, NULL, die_soon, survivor->rank), 0);
	while (!survivor->error && patient_us() < end) {
		note(survivor, call(survivor));
		note_state(survivor);
		if (!survivor->error && !is_victim)
			usleep(50); /* so that the queue does not grow without end */
	}
}

static void death(struct rank *rank)
{
	enum when when = when_of(rank);
	bool is_victim = rank->rank == victim_of(rank);
	struct gpu_graph graph = {0};
	struct survivor survivor;

	survivor_begin(&survivor, rank);
	survivor.comm = rank_comm(rank, 0);
	comm_check(survivor.comm, survivor.stream);
	if (when == IN_REPLAY) {
		gpu_capture(survivor.stream, GPU_CAPTURE_RELAXED);
		OK(call(&survivor));
		graph = gpu_captured(survivor.stream);
		gpu_replay(&graph, survivor.stream);
		gpu_wait(survivor.stream);
	}
	rank_meet(rank);
	survivor.is_idle = when == BETWEEN;
	if (!is_victim) /* before the call, which may wait for the victim's */
		atomic_fetch_add(&rank->page->words[CALLED], 1);
	if (when == IN_LOOP)
		call_in_loop(&survivor);
	else if (is_victim)
		die_when_called(rank);
	else if (when == IN_CALL)
		note(&survivor, call(&survivor));
	else if (when == IN_MESSAGE)
		note(&survivor, message(&survivor));
	else if (when == IN_REPLAY)
		gpu_replay(&graph, survivor.stream);
	survive(&survivor);
	if (when == IN_REPLAY)
		gpu_graph_end(&graph);
	go_on(&survivor, victim_of(rank));
}

/* The victim dies while it starts: the others' start fails, or their communicator. */
static void death_at_start(struct rank *rank)
{
	struct survivor survivor;
	ncclUniqueId id;
	pthread_t thread;

	setenv("WEFT_BOOT_TIMEOUT_SEC", "5", 1); /* nothing tells of one who never came */
	survivor_begin(&survivor, rank);
	survivor.is_idle = true;
	id = rank_id(rank, 0);
	rank_meet(rank);
	if (rank->rank == victim_of(rank))
		EQ(pthread_create(&thread, NULL, die_soon, rank), 0);
	note(&survivor,
		ncclCommInitRank(&survivor.comm, rank->rank_count, id, rank->rank));
	if (rank->rank == victim_of(rank))
		pause();
	if (survivor.error)
		survivor.comm = NULL;
	else
		survive(&survivor);
	go_on(&survivor, victim_of(rank));
}

/* ---- another call than the others' ---- */

enum other { COUNT, TYPE, OPERATOR, COLLECTIVE };

static ncclResult_t call_other(const struct survivor *survivor, enum other other)
{
	cudaStream_t stream = (cudaStream_t)survivor->stream;
	ncclComm_t comm = survivor->comm;
	void *data = survivor->data;
	size_t count = WORDS - (other == COUNT);

	if (other == COLLECTIVE)
		return ncclBroadcast(data, data, WORDS, ncclUint32, 0, comm, stream);
	return ncclAllReduce(data, data, count, other == TYPE ? ncclFloat : ncclUint32,
		other == OPERATOR ? ncclMax : ncclSum, comm, stream);
}

/* The last rank is the odd one. */
static void mismatch(struct rank *rank)
{
	bool is_odd = rank->rank == rank->rank_count - 1;
	struct survivor survivor;

	survivor_begin(&survivor, rank);
	survivor.comm = rank_comm(rank, 0);
	comm_check(survivor.comm, survivor.stream);
	rank_meet(rank);
	at_now(rank);
	note(&survivor, is_odd ? call_other(&survivor, (enum other)part_value(rank))
			       : call(&survivor));
	survive(&survivor);
	rank_meet(rank);
	OK(ncclCommAbort(survivor.comm));
	survivor_end(&survivor);
}

/* ---- more than there is ---- */

/* What the last rank does with memory that is too short, or for a collective the first;
 * the others do it right. */
enum beyond { SENT, RECEIVED, MESSAGE_SENT, MESSAGE_RECEIVED, BY_FIRST };

static ncclResult_t message_do(
	const struct survivor *survivor, bool is_sender, void *data, int peer)
{
	cudaStream_t stream = (cudaStream_t)survivor->stream;
	ncclComm_t comm = survivor->comm;

	return is_sender ? ncclSend(data, WORDS, ncclUint32, peer, comm, stream)
			 : ncclRecv(data, WORDS, ncclUint32, peer, comm, stream);
}

static ncclResult_t call_beyond(
	const struct survivor *survivor, enum beyond beyond, void *little)
{
	void *data = survivor->data;

	if (beyond == MESSAGE_SENT || beyond == MESSAGE_RECEIVED)
		return message_do(survivor, beyond == MESSAGE_SENT, little, 0);
	return ncclAllReduce(beyond == SENT ? little : data,
		beyond == SENT ? data : little, WORDS, ncclUint32, ncclSum,
		survivor->comm, (cudaStream_t)survivor->stream);
}

static void beyond_refused(struct survivor *survivor, enum beyond beyond, void *little)
{
	char sentence[128];

	GIVES(call_beyond(survivor, beyond, little), ncclInvalidArgument);
	snprintf(sentence, sizeof(sentence),
		"the %s buffer of %zu bytes at %p goes beyond",
		beyond == SENT || beyond == MESSAGE_SENT ? "send" : "receive",
		WORDS * sizeof(uint32_t), little);
	gpu_sentence(sentence);
	note(survivor, ncclInvalidArgument);
}

/* Rank 0 is the partner of a message; the rest have nothing to do with it. */
static void beyond_other(struct survivor *survivor, enum beyond beyond)
{
	int last = survivor->rank->rank_count - 1;

	if (beyond == SENT || beyond == RECEIVED)
		note(survivor, call(survivor));
	else if (survivor->rank->rank == 0)
		note(survivor, message_do(survivor, beyond == MESSAGE_RECEIVED,
				       survivor->data, last));
	else
		survivor->is_idle = true;
}

static void beyond(struct rank *rank)
{
	enum beyond what = (enum beyond)(part_value(rank) % BY_FIRST);
	int culprit = part_value(rank) < BY_FIRST ? rank->rank_count - 1 : 0;
	size_t bytes = (WORDS - 1) * sizeof(uint32_t);
	struct survivor survivor;
	void *little;

	survivor_begin(&survivor, rank);
	little = gpu_alloc(bytes);
	survivor.comm = rank_comm(rank, 0);
	comm_check(survivor.comm, survivor.stream);
	rank_meet(rank);
	at_now(rank);
	if (rank->rank == culprit)
		beyond_refused(&survivor, what, little);
	else
		beyond_other(&survivor, what);
	survive(&survivor);
	rank_meet(rank);
	OK(ncclCommAbort(survivor.comm));
	gpu_free(little);
	survivor_end(&survivor);
}

/* ---- aborts ---- */

/* The value is the rank that aborts while the others wait for its call. */
static void abort_one(struct rank *rank)
{
	uint64_t others = (uint64_t)rank->rank_count - 1;
	struct survivor survivor;

	survivor_begin(&survivor, rank);
	survivor.comm = rank_comm(rank, 0);
	comm_check(survivor.comm, survivor.stream);
	rank_meet(rank);
	if (rank->rank == part_value(rank)) {
		while (atomic_load(&rank->page->words[CALLED]) < others)
			usleep(POLL_US);
		usleep(SOON_US);
		at_now(rank);
		OK(ncclCommAbort(survivor.comm));
	} else {
		atomic_fetch_add(&rank->page->words[CALLED], 1);
		note(&survivor, call(&survivor));
		survive(&survivor);
	}
	rank_meet(rank);
	if (rank->rank != part_value(rank))
		OK(ncclCommAbort(survivor.comm));
	rank_meet(rank);
	survivor.comm = rank_comm(rank, 1);
	comm_check(survivor.comm, survivor.stream);
	rank_meet(rank);
	OK(ncclCommDestroy(survivor.comm));
	survivor_end(&survivor);
}

#define US .unit = "us"

static const struct part parts[] = {
	{"killed in a call", "2x1 4x1", death, DIES(IN_CALL, 1), US},
	{"leader killed in a call", "2x1 4x1", death, DIES(IN_CALL, 0), US},
	{"killed in a loop", "2x1 4x1", death, DIES(IN_LOOP, 1), US},
	{"leader killed in a loop", "2x1 4x1", death, DIES(IN_LOOP, 0), US},
	{"killed in a replay", "2x1 4x1", death, DIES(IN_REPLAY, 1), US},
	{"leader killed in a replay", "2x1 4x1", death, DIES(IN_REPLAY, 0), US},
	{"killed before its message", "2x1 4x1", death, DIES(IN_MESSAGE, 1), US},
	{"killed between calls", "2x1 4x1", death, DIES(BETWEEN, 1), US},
	{"leader killed between calls", "4x1", death, DIES(BETWEEN, 0), US},
	{"killed early at start", "3x1", death_at_start, DIES(EARLY, 1), US},
	{"killed at start", "3x1", death_at_start, DIES(STARTING, 1), US},
	{"leader killed at start", "3x1", death_at_start, DIES(STARTING, 0), US},
	{"other count", "2x1 4x1 1x3", mismatch, .value = COUNT, US},
	{"other type", "2x1 1x2", mismatch, .value = TYPE, US},
	{"other operator", "2x1 1x2", mismatch, .value = OPERATOR, US},
	{"other collective", "2x1 4x1 1x2", mismatch, .value = COLLECTIVE, US},
	{"beyond what is sent", "2x1 4x1 1x3", beyond, .value = SENT, US},
	{"beyond what is received", "2x1 4x1 1x3", beyond, .value = RECEIVED, US},
	{"beyond at the leader", "2x1 4x1 1x3", beyond, .value = BY_FIRST + SENT, US},
	{"beyond a sent message", "2x1 4x1 1x3", beyond, .value = MESSAGE_SENT, US},
	{"beyond a received message", "2x1 4x1 1x3", beyond, .value = MESSAGE_RECEIVED,
		US},
	{"abort", "2x1 4x1 1x3", abort_one, .value = 1, US},
	{"abort of the leader", "2x1 4x1 1x3", abort_one, .value = 0, US},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
