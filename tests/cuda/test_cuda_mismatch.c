/*
 * Calls that do not fit together, and peers that never come back: whatever one rank does
 * wrong, every rank is told, with a sentence, its stream goes on, and an abort ends. How
 * long it took is shown; only that it ends at all is checked.
 *
 * The matrix has a row for each call and a column for each mistake of the last rank. How
 * processes share the GPU, and whether calls go through slots (NCCL_ALGO), is said by the
 * environment.
 */
#include <unistd.h>

#include "log_text.h"
#include "mistakes.h"
#include "parts.h"

enum {
	WORDS = 3000,
	RANKS_HERE_MAX = 8,
	POLL_US = 200,
	SOON_US = 20 * 1000,
	LIMIT_US = 10 * 1000 * 1000
};

/* Words of the page. */
enum { AT_US, CALLED, PID };

/* ---- calls ---- */

struct side {
	struct rank *rank;
	ncclComm_t comm;
	cu_stream stream;
	void *in, *out;
	ncclResult_t error; /* the first, of a call or of the communicator */
};

static ncclResult_t call(const struct side *side, const struct request *request)
{
	const struct request_place place = {.rank = side->rank->rank,
		.rank_count = side->rank->rank_count,
		.in = side->in,
		.out = side->out,
		.comm = side->comm,
		.stream = (cudaStream_t)side->stream};

	return request_call(request, &place);
}

static struct request request_of(int kind)
{
	return (struct request){.kind = kind,
		.count = WORDS,
		.type = ncclInt32,
		.op = ncclSum,
		.root = 0};
}

/* ---- sides ---- */

static void side_open(struct side *side, struct rank *rank, int index)
{
	size_t bytes = RANKS_HERE_MAX * WORDS * sizeof(uint64_t);

	gpu_begin();
	*side = (struct side){.rank = rank,
		.comm = rank_comm(rank, index),
		.stream = gpu_stream(),
		.in = gpu_alloc(bytes),
		.out = gpu_alloc(bytes)};
	gpu_set(side->in, 1, bytes / sizeof(uint32_t), side->stream);
	gpu_wait(side->stream);
}

static void side_close(struct side *side)
{
	gpu_free(side->in);
	gpu_free(side->out);
	gpu_stream_end(side->stream);
}

static void at_now(struct rank *rank)
{
	atomic_store(&rank->page->words[AT_US], now_us());
}

/* Until there is an error and the stream has finished. */
static void side_is_told(struct side *side)
{
	uint64_t end = patient_us() + LIMIT_US;
	bool is_done = false;

	while (!side->error || !is_done) {
		error_note_state(&side->error, side->comm);
		is_done = gpu_is_done(side->stream);
		rank_context("rank %d has error %d (%s), its stream has %sfinished",
			side->rank->rank, side->error, ncclGetLastError(side->comm),
			is_done ? "" : "not ");
		HOLDS(patient_us() < end);
		usleep(POLL_US);
	}
	rank_raise(side->rank, now_us() - atomic_load(&side->rank->page->words[AT_US]));
	rank_context("%s", "");
}

static void side_abort(struct side *side)
{
	uint64_t start = patient_us();

	OK(ncclCommAbort(side->comm));
	HOLDS(patient_us() - start < LIMIT_US);
	gpu_wait(side->stream);
}

/* ---- the matrix ---- */

/* Both calls are in the sentence of every rank that took part. */
static void sentence_check(const struct request *right, const struct request *wrong)
{
	if (right->kind == MESSAGE) {
		gpu_sentence("rank 0 sends");
	} else {
		gpu_sentence("rank 0 calls");
		gpu_sentence(kind_names[right->kind]);
	}
	gpu_sentence(kind_names[wrong->kind]);
}

static void mistake_make(struct side *side, int kind, enum mistake mistake)
{
	struct rank *rank = side->rank;
	bool is_odd = rank->rank == rank->rank_count - 1;
	struct request right = request_of(kind), wrong;
	bool is_in_it = kind != MESSAGE || is_odd || rank->rank == 0;

	if (!request_wrong(&right, mistake, &wrong))
		return;
	rank_meet(rank);
	if (rank->rank == 0)
		at_now(rank);
	rank_meet(rank);
	error_note(&side->error, call(side, is_odd ? &wrong : &right));
	if (mistake == ORDER && !side->error)
		error_note(&side->error, call(side, is_odd ? &right : &wrong));
	side_is_told(side);
	EQ(side->error, ncclInvalidUsage);
	if (is_in_it)
		sentence_check(&right, &wrong);
}

/* One row: a communicator for each mistake. */
static void matrix(struct rank *rank)
{
	int kind = (int)part_value(rank);

	for (int m = 0; m < MISTAKES; m++) {
		struct request right = request_of(kind), wrong;
		struct side side;

		if (!request_wrong(&right, (enum mistake)m, &wrong))
			continue;
		if (rank->rank == 0 && getenv("SHOW"))
			fprintf(stderr, "%s, other %s\n", kind_names[kind],
				mistake_names[m]);
		side_open(&side, rank, m);
		OK(call(&side, &right)); /* as it should be */
		gpu_wait(side.stream);
		mistake_make(&side, kind, (enum mistake)m);
		rank_meet(rank);
		side_abort(&side);
		side_close(&side);
	}
}

/* ---- a rank that does not come ---- */

enum absence { LEAVES, TIMES_OUT };

static const struct request sum = {ALL_REDUCE, WORDS, ncclInt32, ncclSum, 0};

/* The last rank destroys its communicator, or does nothing, instead of a call. */
static void absent(struct rank *rank)
{
	bool is_absent = rank->rank == rank->rank_count - 1;
	enum absence absence = (enum absence)part_value(rank);
	struct side side;

	if (absence == TIMES_OUT)
		setenv("WEFT_TIMEOUT_SEC", "1", 1);
	side_open(&side, rank, 0);
	OK(call(&side, &sum));
	gpu_wait(side.stream);
	rank_meet(rank);
	at_now(rank);
	if (is_absent && absence == LEAVES) {
		OK(ncclCommDestroy(side.comm));
		rank_meet(rank);
		side_close(&side);
		return;
	}
	if (!is_absent || absence == TIMES_OUT) {
		if (!is_absent)
			error_note(&side.error, call(&side, &sum));
		side_is_told(&side);
	}
	if (absence == LEAVES)
		gpu_sentence("destroyed its communicator without collective 2");
	rank_meet(rank);
	side_abort(&side);
	side_close(&side);
}

/* The last rank makes its call when somebody has said that it is missing. */
static void stalls(struct rank *rank)
{
	int last = rank->rank_count - 1;
	uint64_t end = patient_us() + LIMIT_US;
	char path[64], named[96];
	struct side side;

	if (rank->rank == 0)
		atomic_store(&rank->page->words[PID], (uint64_t)getpid());
	rank_meet(rank);
	snprintf(path, sizeof(path), "/tmp/weft-stall-%d",
		(int)atomic_load(&rank->page->words[PID]));
	setenv("NCCL_DEBUG", "WARN", 1);
	setenv("NCCL_DEBUG_FILE", path, 1);
	setenv("WEFT_STALL_SEC", "1", 1);
	side_open(&side, rank, 0);
	OK(call(&side, &sum));
	gpu_wait(side.stream);
	snprintf(named, sizeof(named), " s for rank %d (process ", last);
	rank_meet(rank);
	at_now(rank);
	while (rank->rank == last && !log_count(path, named) && patient_us() < end)
		usleep(POLL_US);
	OK(call(&side, &sum));
	gpu_wait(side.stream);
	HOLDS(log_count(path, named) > 0);
	HOLDS(log_count(path, "to make collective 2 (all_reduce of ") > 0);
	rank_raise(rank, now_us() - atomic_load(&rank->page->words[AT_US]));
	rank_meet(rank);
	OK(ncclCommDestroy(side.comm));
	rank_meet(rank);
	if (rank->rank == 0)
		unlink(path);
	side_close(&side);
}

/* ---- aborts that nobody helps with ---- */

enum { STREAMS_MAX = 64, STREAMS_CPU = 40, STREAMS_GPU = 12, STREAMS_MPS = 6 };

static bool is_cpu(void)
{
	return getenv("CPU_CUDA_ASYNC") != NULL;
}

/* As many as wait at a time. A GPU has few channels (8, or 2 under MPS, unless the user
 * asks for others), and a stream that waits keeps back the others on its own: here all
 * channels wait, and nothing that is enqueued in this context gets through. */
static int stream_count(void)
{
	const char *asked = getenv("WEFT_TEST_STREAMS");

	if (asked)
		return atoi(asked) % STREAMS_MAX;
	if (is_cpu())
		return STREAMS_CPU;
	return getenv("CUDA_MPS_PIPE_DIRECTORY") ? STREAMS_MPS : STREAMS_GPU;
}

/* One call on each stream, for the two communicators in turn. */
static void calls_enqueue(const struct side sides[2], const cu_stream *streams)
{
	for (int s = 0; s < stream_count(); s++) {
		struct side side = sides[s % 2];

		side.stream = streams[s];
		call(&side, &sum); /* fails when another rank has aborted already */
	}
}

/* Abort both, one after the other, while the other one's calls wait. */
static void abort_both(struct side sides[2], const cu_stream *streams)
{
	struct rank *rank = sides[0].rank;
	uint64_t start;

	usleep(SOON_US);
	start = now_us();
	for (int i = 0; i < 2; i++)
		OK(ncclCommAbort(sides[i].comm));
	rank_raise(rank, now_us() - start);
	for (int s = 0; s < stream_count(); s++)
		gpu_wait(streams[s]);
	if (atomic_fetch_add(&rank->page->words[CALLED], 1) + 2 ==
		(uint64_t)rank->rank_count)
		kill((pid_t)atomic_load(&rank->page->words[PID]), SIGCONT);
}

/* The last rank is stopped. The others have two communicators and several streams, with
 * calls that wait on all of them. */
static void abort_alone(struct rank *rank)
{
	bool is_stopped = rank->rank == rank->rank_count - 1;
	cu_stream streams[STREAMS_MAX];
	struct side sides[2];

	for (int i = 0; i < 2; i++) {
		side_open(&sides[i], rank, i);
		OK(call(&sides[i], &sum));
		gpu_wait(sides[i].stream);
	}
	for (int s = 0; s < stream_count(); s++)
		streams[s] = gpu_stream();
	if (is_stopped)
		atomic_store(&rank->page->words[PID], (uint64_t)getpid());
	rank_meet(rank);
	if (is_stopped) {
		raise(SIGSTOP);
		at_now(rank);
		for (int i = 0; i < 2; i++)
			side_is_told(&sides[i]);
	} else {
		stop_wait((pid_t)atomic_load(&rank->page->words[PID]));
		calls_enqueue(sides, streams);
		abort_both(sides, streams);
	}
	rank_meet(rank);
	for (int i = 0; i < 2; i++) {
		if (is_stopped)
			side_abort(&sides[i]);
		side_close(&sides[i]);
	}
	for (int s = 0; s < stream_count(); s++)
		gpu_stream_end(streams[s]);
}

/* Rank 0 gives up a call that the others never make. Those whose calls are all done are
 * told, and end in peace; with value 1 they are in a call as well, and hear of it when
 * they end. */
enum { REST_US = 500 * 1000 };

static void ends_in_peace(const struct side *side)
{
	ncclResult_t state = ncclSystemError;

	OK(ncclCommFinalize(side->comm));
	OK(ncclCommGetAsyncError(side->comm, &state));
	EQ(state, ncclSuccess);
}

static void peer_gives_up(struct rank *rank)
{
	bool is_cut = part_value(rank), gives_up = rank->rank == 0;
	struct side side;

	side_open(&side, rank, 0);
	OK(call(&side, &sum));
	gpu_wait(side.stream);
	rank_meet(rank);
	if (gives_up || (is_cut && rank->rank == 1))
		OK(call(&side, &sum));
	usleep(REST_US); /* it waits by now, and the others have long had nothing to do */
	rank_meet(rank);
	at_now(rank);
	if (gives_up)
		side_abort(&side);
	else
		side_is_told(&side);
	rank_meet(rank);
	if (!gives_up && !(is_cut && rank->rank == 1))
		ends_in_peace(&side);
	else if (!gives_up)
		GIVES(ncclCommFinalize(side.comm), ncclRemoteError);
	if (!gives_up && !is_cut)
		OK(ncclCommDestroy(side.comm));
	else if (!gives_up)
		OK(ncclCommAbort(side.comm));
	side_close(&side);
}

/* ---- a stopped peer ---- */

/* On a GPU it is stopped somewhere in a loop of calls, by another; where the driver is
 * ours, just before the call of the driver that matters. */
static void victim_run(struct side *side)
{
	_Atomic uint64_t *words = side->rank->page->words;
	bool launches = side->rank->rank == 0 || getenv("CPU_CUDA_MPS");
	uint64_t end = patient_us() + LIMIT_US;

	atomic_store(&words[PID], (uint64_t)getpid());
	if (is_cpu())
		setenv("CPU_CUDA_STOP", launches ? "launch" : "memop", 1);
	while (!side->error && patient_us() < end) {
		error_note(&side->error, call(side, &sum));
		error_note_state(&side->error, side->comm);
		usleep(50);
	}
}

/* The rank that aborts. */
static pid_t victim_stop(struct side *side)
{
	_Atomic uint64_t *words = side->rank->page->words;
	pid_t pid;

	while (!(pid = (pid_t)atomic_load(&words[PID])))
		usleep(POLL_US);
	for (int i = 0; i < 20 && !is_cpu(); i++)
		OK(call(side, &sum));
	if (!is_cpu())
		EQ(kill(pid, SIGSTOP), 0);
	else
		OK(call(side, &sum));
	stop_wait(pid);
	usleep(SOON_US);
	at_now(side->rank);
	return pid;
}

static void memory_fill(struct side *side, unsigned value)
{
	gpu_set(side->in, value, WORDS, side->stream);
	gpu_set(side->out, value, WORDS, side->stream);
	gpu_wait(side->stream);
}

/* One rank is stopped in a call that all make; another aborts, and fills its memory,
 * which stays as it is when the stopped one goes on. That one is told. */
static void stopped(struct rank *rank)
{
	enum { RUBBISH = 0x5a5a5a5a };
	int victim = part_value(rank), first = victim == 0;
	uint32_t *host = malloc(WORDS * sizeof(*host));
	struct side side;

	side_open(&side, rank, 0);
	OK(call(&side, &sum));
	gpu_wait(side.stream);
	rank_meet(rank);
	if (rank->rank == first) {
		pid_t pid = victim_stop(&side);

		OK(ncclCommAbort(side.comm));
		rank_raise(rank, now_us() - atomic_load(&rank->page->words[AT_US]));
		memory_fill(&side, RUBBISH);
		kill(pid, SIGCONT);
	} else {
		if (rank->rank == victim)
			victim_run(&side);
		else
			error_note(&side.error, call(&side, &sum));
		side_is_told(&side);
	}
	rank_meet(rank);
	if (rank->rank == first) {
		gpu_read(host, side.out, WORDS * sizeof(*host), side.stream);
		for (int i = 0; i < WORDS; i++)
			EQ(host[i], RUBBISH);
	} else {
		side_abort(&side);
	}
	rank_meet(rank);
	side_close(&side);
	free(host);
}

#define US .unit = "us"

static const struct part parts[] = {
	{"all_reduce", "2x1 3x1 1x3", matrix, .value = ALL_REDUCE, US},
	{"broadcast", "2x1 3x1 1x3", matrix, .value = BROADCAST, US},
	{"reduce", "2x1 3x1 1x3", matrix, .value = REDUCE, US},
	{"all_gather", "2x1 3x1 1x3", matrix, .value = ALL_GATHER, US},
	{"reduce_scatter", "2x1 3x1 1x3", matrix, .value = REDUCE_SCATTER, US},
	{"alltoall", "2x1 3x1 1x3", matrix, .value = ALL_TO_ALL, US},
	{"gather", "2x1 3x1 1x3", matrix, .value = GATHER, US},
	{"scatter", "2x1 3x1 1x3", matrix, .value = SCATTER, US},
	{"message", "2x1 3x1 1x3", matrix, .value = MESSAGE, US},
	{"leaves", "2x1 3x1 1x3", absent, .value = LEAVES, US},
	{"times out", "2x1 3x1 1x3", absent, .value = TIMES_OUT, US},
	{"stalls", "2x1 3x1 1x3", stalls, US},
	{"abort alone", "2x1 3x1", abort_alone, US},
	{"given up", "2x1 3x1", peer_gives_up, .value = 0, US},
	{"given up in a call", "3x1", peer_gives_up, .value = 1, US},
	{"stopped", "2x1 3x1", stopped, .value = 1, US},
	{"stopped leader", "2x1 3x1", stopped, .value = 0, US},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
