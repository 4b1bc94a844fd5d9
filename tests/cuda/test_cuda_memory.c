/*
 * Memory of every kind in collectives: alone, different kinds in one call and on
 * different ranks, freed and allocated again; registered, in windows, as a scalar; and
 * what the library itself takes.
 */
#include "kinds.h"
#include "parts.h"

enum { WORDS = 30000, MIB = 1 << 20, PAGE = 4096 };

static const size_t word = sizeof(uint32_t);

/* ---- kinds ---- */

static void sum_checked(const struct seat *seat, void *in, void *out, int turn)
{
	words_give(seat, in, WORDS, turn);
	OK(ncclAllReduce(in, out, WORDS, ncclUint32, ncclSum, seat->comm,
		(cudaStream_t)seat->stream));
	words_check(seat, out, WORDS, -1, turn);
	if (in != out)
		words_check(seat, in, WORDS, seat->rank, turn);
}

static void gather_checked(const struct seat *seat, void *in, uint32_t *out, int turn)
{
	words_give(seat, in, WORDS, turn);
	OK(ncclAllGather(
		in, out, WORDS, ncclUint32, seat->comm, (cudaStream_t)seat->stream));
	for (int r = 0; r < seat->rank_count; r++)
		words_check(seat, out + r * WORDS, WORDS, r, turn);
}

static void broadcast_checked(const struct seat *seat, void *in, void *out, int turn)
{
	int root = turn % seat->rank_count;

	words_give(seat, in, WORDS, turn);
	OK(ncclBroadcast(in, out, WORDS, ncclUint32, root, seat->comm,
		(cudaStream_t)seat->stream));
	words_check(seat, out, WORDS, root, turn);
}

static void ring_checked(const struct seat *seat, void *in, void *out, int turn)
{
	int n = seat->rank_count, left = (seat->rank + n - 1) % n;
	cudaStream_t stream = (cudaStream_t)seat->stream;

	words_give(seat, in, WORDS, turn);
	OK(ncclGroupStart());
	OK(ncclSend(in, WORDS, ncclUint32, (seat->rank + 1) % n, seat->comm, stream));
	OK(ncclRecv(out, WORDS, ncclUint32, left, seat->comm, stream));
	OK(ncclGroupEnd());
	words_check(seat, out, WORDS, left, turn);
}

/* Of kind `in` and kind `out`, collectives or a ring of messages. */
static void pair_check(const struct seat *seat, enum kind in, enum kind out, bool is_ring)
{
	size_t bytes = WORDS * word;
	struct memory from = memory_open(in, bytes, seat->stream);
	struct memory to = memory_open(
		out, (size_t)seat->rank_count * bytes, seat->stream);

	rank_context("rank %d of %d, from %s to %s memory", seat->rank, seat->rank_count,
		kind_name(in), kind_name(out));
	for (int turn = 0; turn < 2; turn++) {
		if (is_ring) {
			ring_checked(seat, from.ptr, to.ptr, turn);
			continue;
		}
		sum_checked(seat, from.ptr, to.ptr, turn);
		sum_checked(seat, from.ptr, from.ptr, turn + 1);
		gather_checked(seat, from.ptr, to.ptr, turn);
		broadcast_checked(seat, from.ptr, to.ptr, turn);
	}
	memory_close(&from); /* its stream is done with it, so the others are */
	memory_close(&to);
}

static void kind_run(struct rank *rank, bool is_ring)
{
	enum kind kind = (enum kind)part_value(rank);
	struct crew crew;

	crew_open(&crew, rank);
	pair_check(&crew.seats[0], kind, kind, is_ring);
	pair_check(&crew.seats[0], kind, KIND_DEVICE, is_ring);
	pair_check(&crew.seats[0], KIND_DEVICE, kind, is_ring);
	crew_close(&crew);
}

static void memory_kind(struct rank *rank)
{
	kind_run(rank, false);
}

static void memory_kind_ring(struct rank *rank)
{
	kind_run(rank, true);
}

/* ---- other kinds on other ranks ---- */

/* The value is the kind that odd ranks have and even ranks have not; KIND_COUNT: every
 * rank another, changing each turn. */
static void memory_differs(struct rank *rank)
{
	int value = part_value(rank);
	struct seat *seat;
	struct crew crew;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	for (int turn = 0; turn < KIND_COUNT; turn++) {
		enum kind in = (rank->rank + turn) % 2 ? (enum kind)value : KIND_DEVICE;
		enum kind out = turn % 3 ? in : KIND_DEVICE;

		if (value == KIND_COUNT) {
			in = (enum kind)((rank->rank + turn) % KIND_COUNT);
			out = (enum kind)((3 * rank->rank + turn) % KIND_COUNT);
		}
		pair_check(seat, in, out, false);
	}
	crew_close(&crew);
}

/* ---- freed and allocated again ---- */

/* While nobody allocates. */
static size_t free_bytes_of_all(struct rank *rank)
{
	size_t bytes;

	rank_meet(rank);
	bytes = gpu_free_bytes();
	rank_meet(rank);
	return bytes;
}

static void again_checked(struct rank *rank, const struct seat *seat, enum kind kind)
{
	enum { TURNS = 200, SLACK_MIB = 64 };
	size_t before = 0, after;

	for (int turn = 0; turn < TURNS; turn++) {
		size_t bytes = WORDS * word + (size_t)(turn % 4) * MIB;
		struct memory memory = memory_open(kind, bytes, seat->stream);

		sum_checked(seat, memory.ptr, memory.ptr, turn);
		memory_close(&memory);
		if (turn == TURNS / 10)
			before = free_bytes_of_all(rank);
	}
	after = free_bytes_of_all(rank);
	rank_context("rank %d, %s memory: %zu MiB free, then %zu MiB", rank->rank,
		kind_name(kind), before / MIB, after / MIB);
	HOLDS(after + (size_t)SLACK_MIB * MIB > before);
}

static void memory_again(struct rank *rank)
{
	struct crew crew;

	crew_open(&crew, rank);
	again_checked(rank, &crew.seats[0], (enum kind)part_value(rank));
	crew_close(&crew);
}

/* ---- too short ---- */

/* One thread calls for all ranks, and the last one's memory does not hold it. */
static void memory_short(struct rank *rank)
{
	void *data[CREW_MAX];
	struct crew crew;

	crew_open(&crew, rank);
	OK(ncclGroupStart());
	for (int i = 0; i < crew.count; i++) {
		size_t words = i == crew.count - 1 ? WORDS - 1 : WORDS;

		data[i] = gpu_alloc(words * word);
		OK(ncclAllReduce(data[i], data[i], WORDS, ncclUint32, ncclSum,
			crew.seats[i].comm, (cudaStream_t)crew.seats[i].stream));
	}
	GIVES(ncclGroupEnd(), ncclInvalidArgument);
	gpu_sentence("the send buffer of 120000 bytes at");
	crew_wait(&crew);
	for (int i = 0; i < crew.count; i++)
		gpu_free(data[i]);
	crew_abort(&crew);
}

/* ---- registered ---- */

static void memory_register(struct rank *rank)
{
	enum kind kind = (enum kind)part_value(rank);
	void *handles[2];
	struct memory memory;
	struct seat *seat;
	struct crew crew;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	memory = memory_open(kind, WORDS * word, seat->stream);
	for (int turn = 0; turn < 5; turn++) {
		for (int i = 0; i < 2; i++)
			OK(ncclCommRegister(
				seat->comm, memory.ptr, WORDS * word, &handles[i]));
		sum_checked(seat, memory.ptr, memory.ptr, turn);
		OK(ncclCommDeregister(seat->comm, handles[0]));
		sum_checked(seat, memory.ptr, memory.ptr, turn + 1);
		OK(ncclCommDeregister(seat->comm, handles[1]));
	}
	sum_checked(seat, memory.ptr, memory.ptr, 9);
	rank_meet(rank);
	memory_close(&memory);
	crew_close(&crew);
}

/* Windows of all ranks: collectives inside them, then again without. */
static void memory_window(struct rank *rank)
{
	enum kind kind = (enum kind)part_value(rank);
	size_t bytes = 4 * MIB; /* so much is never cut from a page */
	struct memory memory;
	struct seat *seat;
	struct crew crew;
	void *seen;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	memory = memory_open(kind, bytes, seat->stream);
	for (int turn = 0; turn < 4; turn++) {
		uint32_t *data = memory.ptr;
		ncclWindow_t window;

		OK(ncclCommWindowRegister(seat->comm, data, bytes, &window,
			turn % 2 ? NCCL_WIN_COLL_SYMMETRIC : NCCL_WIN_DEFAULT));
		OK(ncclWinGetUserPtr(seat->comm, window, &seen));
		HOLDS(seen == data);
		sum_checked(seat, data, data, turn);
		gather_checked(seat, data, data + WORDS, turn);
		rank_meet(rank);
		OK(ncclCommWindowDeregister(seat->comm, window));
		sum_checked(seat, data, data + WORDS, turn + 1);
	}
	rank_meet(rank);
	memory_close(&memory);
	crew_close(&crew);
}

/* The last rank's part is wrong: it reads why, the others read who; and they go on. */
static void window_refused(
	const struct seat *seat, void *data, size_t bytes, const char *why)
{
	bool is_odd = seat->rank == seat->rank_count - 1;
	char who[64];
	ncclWindow_t window;

	snprintf(who, sizeof(who), "rank %d cannot register its part",
		seat->rank_count - 1);
	GIVES(ncclCommWindowRegister(seat->comm, data, bytes, &window, 0),
		ncclInvalidArgument);
	gpu_sentence(is_odd ? why : who);
}

static void memory_window_refused(struct rank *rank)
{
	size_t bytes = 4 * MIB;
	struct memory memory, host;
	struct seat *seat;
	struct crew crew;
	bool is_odd;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	is_odd = seat->rank == seat->rank_count - 1;
	memory = memory_open(KIND_DEVICE, bytes, seat->stream);
	host = memory_open(KIND_PAGEABLE, bytes, seat->stream);
	window_refused(seat, memory.ptr, bytes + is_odd, "a window of 4194305 bytes at");
	window_refused(
		seat, is_odd ? host.ptr : memory.ptr, bytes, "must lie in device memory");
	sum_checked(seat, memory.ptr, memory.ptr, 1);
	rank_meet(rank);
	memory_close(&host);
	memory_close(&memory);
	crew_close(&crew);
}

/* What is put: a part of the window itself, or memory of another kind. */
struct sources {
	struct memory own;
	uint32_t *list[4];
};

static void sources_open(
	struct sources *sources, const struct seat *seat, uint32_t *in_window)
{
	size_t bytes = WORDS * word;

	sources->own = memory_open(KIND_DEVICE, bytes, seat->stream);
	sources->list[0] = in_window;
	sources->list[1] = sources->own.ptr;
	sources->list[2] = malloc(bytes + 1);
	HOLDS(sources->list[2]);
	sources->list[3] = (uint32_t *)sources->own.ptr + 1; /* at another alignment */
}

static void sources_close(struct sources *sources)
{
	free(sources->list[2]);
	memory_close(&sources->own);
}

/* Put into the right neighbour's window, wait for the left one, many times. */
static void puts_checked(struct rank *rank, const struct seat *seat, uint32_t *data,
	const struct sources *sources, ncclWindow_t window)
{
	int n = rank->rank_count, left = (rank->rank + n - 1) % n;
	ncclWaitSignalDesc_t from_left = {1, left, 0, 0};
	ncclWaitSignalDesc_t from_right = {1, (rank->rank + 1) % n, 0, 0};

	for (int turn = 0; turn < 50; turn++) {
		cudaStream_t stream = (cudaStream_t)seat->stream;
		size_t count = turn % 3 ? WORDS - 1 : 10;
		uint32_t *from = sources->list[turn % 4];

		words_give(seat, from, count, turn);
		OK(ncclPutSignal(from, count, ncclUint32, from_right.peer, window, 0, 0,
			0, 0, seat->comm, stream));
		OK(ncclWaitSignal(1, &from_left, seat->comm, stream));
		words_check(seat, data, count, left, turn);
		OK(ncclSignal(left, 0, 0, 0, seat->comm, stream));
		OK(ncclWaitSignal(1, &from_right, seat->comm, stream));
		gpu_wait(seat->stream);
	}
}

/* Where a window may begin. */
static void *page_in(const void *ptr)
{
	return (void *)(((uintptr_t)ptr + PAGE - 1) / PAGE * PAGE);
}

/* The value is the window's kind. A small window lies in one block with other memory,
 * through which the other processes have mapped it. */
static void memory_signal(struct rank *rank)
{
	enum kind kind = (enum kind)part_value(rank);
	struct memory memory, beside;
	struct sources sources;
	struct seat *seat;
	struct crew crew;
	ncclWindow_t window;
	uint32_t *data;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	beside = memory_open(kind, WORDS * word, seat->stream);
	memory = memory_open(kind, 2 * WORDS * word + PAGE, seat->stream);
	data = page_in(memory.ptr);
	sum_checked(seat, beside.ptr, beside.ptr, 0);
	OK(ncclCommWindowRegister(seat->comm, data, 2 * WORDS * word, &window, 0));
	sources_open(&sources, seat, data + WORDS);
	puts_checked(rank, seat, data, &sources, window);
	rank_meet(rank);
	OK(ncclCommWindowDeregister(seat->comm, window));
	sources_close(&sources);
	memory_close(&memory);
	memory_close(&beside);
	crew_close(&crew);
}

/* ---- a scalar on the device ---- */

/* It is read when the collective runs: each one has its own value, set on the stream. */
static void memory_scalar(struct rank *rank)
{
	enum { TURNS = 10 };
	uint32_t *scalar, *in, *out;
	struct seat *seat;
	struct crew crew;
	ncclRedOp_t op;

	crew_open(&crew, rank);
	seat = &crew.seats[0];
	scalar = gpu_alloc(256);
	in = gpu_alloc(WORDS * word);
	out = gpu_alloc(TURNS * WORDS * word);
	gpu_set(in, 1, WORDS, seat->stream);
	OK(ncclRedOpCreatePreMulSum(
		&op, scalar, ncclUint32, ncclScalarDevice, seat->comm));
	for (int turn = 0; turn < TURNS; turn++) {
		gpu_set(scalar, (unsigned)(turn * turn + seat->rank), 1, seat->stream);
		OK(ncclAllReduce(in, out + turn * WORDS, WORDS, ncclUint32, op,
			seat->comm, (cudaStream_t)seat->stream));
	}
	OK(ncclRedOpDestroy(op, seat->comm));
	for (int turn = 0; turn < TURNS; turn++) {
		int n = seat->rank_count, want = n * turn * turn + n * (n - 1) / 2;
		uint32_t got[2];

		gpu_read(got, out + turn * WORDS, word, seat->stream);
		gpu_read(got + 1, out + (turn + 1) * WORDS - 1, word, seat->stream);
		EQ(got[0], want);
		EQ(got[1], want);
	}
	rank_meet(rank);
	gpu_free(scalar);
	gpu_free(in);
	gpu_free(out);
	crew_close(&crew);
}

/* ---- what the library takes ---- */

/* Contexts and streams are there before; a communicator and its first calls after. */
static void memory_start(struct rank *rank)
{
	enum { ASKED_MIB = 300 };
	size_t before, after;
	struct crew crew;
	void *some;

	gpu_begin();
	some = gpu_alloc(WORDS * word);
	gpu_set(some, 0, WORDS, NULL);
	gpu_wait(NULL);
	before = free_bytes_of_all(rank);
	crew_open(&crew, rank);
	for (int i = 0; i < 3; i++)
		sum_checked(&crew.seats[0], some, some, i);
	after = free_bytes_of_all(rank);
	if (rank->rank == 0)
		atomic_store(&rank->page->result, (before - after) / MIB);
	rank_context("%zu MiB free before, %zu MiB after", before / MIB, after / MIB);
	HOLDS(after + (size_t)ASKED_MIB * MIB > before);
	gpu_free(some);
	crew_close(&crew);
}

#define EACH "2x1 1x2"

static const struct part parts[] = {
	{"device", EACH, memory_kind, .value = KIND_DEVICE},
	{"nccl", EACH, memory_kind, .value = KIND_NCCL},
	{"async", EACH, memory_kind, .value = KIND_ASYNC},
	{"pool", EACH, memory_kind, .value = KIND_POOL},
	{"vmm", EACH, memory_kind, .value = KIND_VMM},
	{"private vmm", EACH, memory_kind, .value = KIND_VMM_PRIVATE},
	{"managed", EACH, memory_kind, .value = KIND_MANAGED},
	{"pinned", EACH, memory_kind, .value = KIND_PINNED},
	{"registered", EACH, memory_kind, .value = KIND_REGISTERED},
	{"pageable", EACH, memory_kind, .value = KIND_PAGEABLE},
	{"messages of async", EACH, memory_kind_ring, .value = KIND_ASYNC},
	{"messages of vmm", EACH, memory_kind_ring, .value = KIND_VMM},
	{"messages of pinned", EACH, memory_kind_ring, .value = KIND_PINNED},
	{"messages of pageable", EACH, memory_kind_ring, .value = KIND_PAGEABLE},
	{"device and pinned", "2x1 4x1 1x3", memory_differs, .value = KIND_PINNED},
	{"device and pageable", "2x1 4x1 1x3", memory_differs, .value = KIND_PAGEABLE},
	{"device and async", "2x1 1x3", memory_differs, .value = KIND_ASYNC},
	{"all kinds at once", "4x1 1x4", memory_differs, .value = KIND_COUNT},
	{"device again", EACH, memory_again, .value = KIND_DEVICE},
	{"nccl again", EACH, memory_again, .value = KIND_NCCL},
	{"async again", EACH, memory_again, .value = KIND_ASYNC},
	{"vmm again", EACH, memory_again, .value = KIND_VMM},
	{"short", "g1 g3", memory_short, .value = 0},
	{"register device", EACH, memory_register, .value = KIND_DEVICE},
	{"register nccl", EACH, memory_register, .value = KIND_NCCL},
	{"window of device", "2x1 4x1 1x2", memory_window, .value = KIND_DEVICE},
	{"window of nccl", "2x1 4x1 1x2", memory_window, .value = KIND_NCCL},
	{"window refused", "2x1 4x1 1x3", memory_window_refused, .value = 0},
	{"signal", "2x1 4x1 1x3", memory_signal, .value = KIND_NCCL},
	{"signal in small memory", "2x1 4x1 1x3", memory_signal, .value = KIND_DEVICE},
	{"scalar", "2x1 4x1 1x3", memory_scalar, .value = 0},
	{"start", "2x1 8x1 1x8", memory_start, .unit = "MiB"},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
