/*
 * gpu_bench - times collectives of ranks that share a GPU: nccl-tests' times and rates,
 * the share of what the GPU's memory can do, measured by a copy in the same run, and what
 * a call costs the thread that makes it.
 *
 *   gpu_bench -p RANKS | -t RANKS | -g RANKS [-G] [-m MAX_MIB] [--mps] [--hosts N]
 *             [--copies] [-k KIND]
 *
 * Ranks are processes, threads, or driven by one thread with group calls; -G: calls are
 * captured into a graph and replayed; --mps: the first line says that MPS is on; --hosts:
 * the ranks are on so many hosts, as far as the library can tell; --copies: only what a
 * copy between device memory and pinned memory takes, of one rank and of all at once; -k:
 * only rows of one kind, in more sizes.
 *
 * A collective must read every byte of its inputs and write every byte of its outputs
 * once; the share is that, divided by the time and by the rate of the copy.
 */
#include <getopt.h>
#include <string.h>

#include "parts.h"

enum kind {
	ALL_REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	BROADCAST,
	ALL_TO_ALL,
	SEND_RECV,
	EXCHANGE, /* an alltoall of sends and receives */
	KIND_COUNT
};

static const char *const kind_names[KIND_COUNT] = {"all_reduce", "all_gather",
	"reduce_scatter", "broadcast", "alltoall", "sendrecv", "exchange"};

enum {
	ROUNDS = 4,
	PATTERN = 1000,
	CHECKED = 1000,
	LIMIT_S = 60,
	CAPTURED = 10,
	SIZES_MAX = 12
};

/* Words of the page: wrong elements, refusals, the followers' slowest call. */
enum { WRONG, REFUSED, FOLLOWERS_NS };

struct options {
	char way; /* p, t or g */
	int rank_count;
	bool is_captured, has_mps, is_copies;
	int hosts; /* 0: one */
	size_t bytes_max;
	const char *only; /* NULL: all kinds */
};

struct buffers {
	char *in, *out;
};

struct bench {
	struct rank *rank;
	const struct options *options;
	struct crew crew;
	struct buffers buffers[CREW_MAX];
	double limit; /* bytes per microsecond, read and written */
};

/* One row: `count` elements as the call counts them, `bytes` as nccl-tests does. */
struct row {
	enum kind kind;
	size_t count, bytes;
	bool in_place;
};

/* Microseconds per call: all of it, and of the host, by who makes it. */
struct times {
	double all, leader, followers;
};

static bool is_whole(enum kind kind)
{
	return kind == ALL_REDUCE || kind == BROADCAST || kind == SEND_RECV;
}

static bool can_be_in_place(enum kind kind)
{
	return kind != ALL_TO_ALL && kind != SEND_RECV && kind != EXCHANGE;
}

static float value(int rank, size_t i)
{
	return (float)(i % PATTERN + (size_t)rank);
}

/* Element i of what the seat must receive. */
static float wanted(const struct seat *seat, const struct row *row, size_t i)
{
	size_t n = (size_t)seat->rank_count;
	size_t own = (size_t)seat->rank * row->count;
	size_t ranks = n * (n - 1) / 2;

	switch (row->kind) {
	case ALL_REDUCE:
		return (float)(i % PATTERN * n + ranks);
	case REDUCE_SCATTER:
		return (float)((own + i) % PATTERN * n + ranks);
	case BROADCAST:
		return value(0, i);
	case ALL_GATHER:
		return value((int)(i / row->count), i % row->count);
	case SEND_RECV:
		return value((int)(((size_t)seat->rank + n - 1) % n), i);
	default:
		return value((int)(i / row->count), own + i % row->count);
	}
}

static struct buffers addresses(const struct seat *seat, const struct row *row)
{
	size_t own = (size_t)seat->rank * row->count * sizeof(float);
	struct buffers buffers = *(const struct buffers *)seat->own;

	if (!row->in_place)
		return buffers;
	buffers.in = buffers.out + (row->kind == ALL_GATHER ? own : 0);
	buffers.out += row->kind == REDUCE_SCATTER ? own : 0;
	return buffers;
}

/* ---- calls ---- */

static ncclResult_t send_recv(
	const struct seat *seat, const struct row *row, struct buffers b)
{
	int n = seat->rank_count, left = (seat->rank + n - 1) % n;
	cudaStream_t stream = (cudaStream_t)seat->stream;

	OK(ncclGroupStart());
	ncclSend(b.in, row->count, ncclFloat, (seat->rank + 1) % n, seat->comm, stream);
	ncclRecv(b.out, row->count, ncclFloat, left, seat->comm, stream);
	return ncclGroupEnd();
}

static ncclResult_t exchange(
	const struct seat *seat, const struct row *row, struct buffers b)
{
	cudaStream_t stream = (cudaStream_t)seat->stream;

	OK(ncclGroupStart());
	for (int r = 0; r < seat->rank_count; r++) {
		size_t at = (size_t)r * row->count * sizeof(float);

		ncclSend(b.in + at, row->count, ncclFloat, r, seat->comm, stream);
		ncclRecv(b.out + at, row->count, ncclFloat, r, seat->comm, stream);
	}
	return ncclGroupEnd();
}

static ncclResult_t call_one(const struct seat *seat, const struct row *row)
{
	cudaStream_t stream = (cudaStream_t)seat->stream;
	struct buffers b = addresses(seat, row);
	ncclComm_t comm = seat->comm;
	size_t count = row->count;

	switch (row->kind) {
	case ALL_REDUCE:
		return ncclAllReduce(
			b.in, b.out, count, ncclFloat, ncclSum, comm, stream);
	case ALL_GATHER:
		return ncclAllGather(b.in, b.out, count, ncclFloat, comm, stream);
	case REDUCE_SCATTER:
		return ncclReduceScatter(
			b.in, b.out, count, ncclFloat, ncclSum, comm, stream);
	case BROADCAST:
		return ncclBroadcast(b.in, b.out, count, ncclFloat, 0, comm, stream);
	case SEND_RECV:
		return send_recv(seat, row, b);
	case EXCHANGE:
		return exchange(seat, row, b);
	default:
		return ncclAlltoAll(b.in, b.out, count, ncclFloat, comm, stream);
	}
}

static ncclResult_t call(const struct bench *bench, const struct row *row)
{
	ncclResult_t got = ncclSuccess, end;

	if (bench->crew.count == 1)
		return call_one(&bench->crew.seats[0], row);
	OK(ncclGroupStart());
	for (int i = 0; i < bench->crew.count && !got; i++)
		got = call_one(&bench->crew.seats[i], row);
	end = ncclGroupEnd();
	return got ? got : end;
}

/* ---- graphs ---- */

struct graphs {
	int calls; /* in one of them */
	struct gpu_graph of[CREW_MAX];
};

static ncclResult_t graphs_capture(
	const struct bench *bench, const struct row *row, struct graphs *graphs)
{
	const struct crew *crew = &bench->crew;
	ncclResult_t got = ncclSuccess;
	gpu_driver_graph unused;

	for (int i = 0; i < crew->count; i++)
		gpu_capture(crew->seats[i].stream, GPU_CAPTURE_RELAXED);
	for (int i = 0; i < graphs->calls && !got; i++)
		got = call(bench, row);
	for (int i = 0; i < crew->count; i++)
		if (got)
			gpu_calls()->capture_end(crew->seats[i].stream, &unused);
		else
			graphs->of[i] = gpu_captured(crew->seats[i].stream);
	return got;
}

static void graphs_replay(const struct bench *bench, const struct graphs *graphs)
{
	for (int i = 0; i < bench->crew.count; i++)
		gpu_replay(&graphs->of[i], bench->crew.seats[i].stream);
}

static void graphs_end(const struct bench *bench, struct graphs *graphs)
{
	for (int i = 0; i < bench->crew.count; i++)
		gpu_graph_end(&graphs->of[i]);
}

/* ---- checks ---- */

/* What all ranks say of `word` together. */
static uint64_t total(const struct bench *bench, int word, uint64_t own)
{
	_Atomic uint64_t *sum = &bench->rank->page->words[word];
	uint64_t all;

	atomic_fetch_add(sum, own);
	rank_meet(bench->rank);
	all = atomic_load(sum);
	rank_meet(bench->rank);
	atomic_store(sum, 0);
	rank_meet(bench->rank);
	return all;
}

/* Elements `first`.. of the result that are wrong. */
static size_t wrong_in(
	const struct seat *seat, const struct row *row, size_t first, size_t count)
{
	float host[CHECKED];
	size_t wrong = 0;

	gpu_read(host, addresses(seat, row).out + first * sizeof(float),
		count * sizeof(float), seat->stream);
	for (size_t i = 0; i < count; i++)
		wrong += host[i] != wanted(seat, row, first + i);
	return wrong;
}

/* The beginning and the end of what a call left. */
static size_t wrong_of(const struct seat *seat, const struct row *row)
{
	bool is_block = row->kind == REDUCE_SCATTER;
	size_t all = is_block ? row->count : row->bytes / sizeof(float);
	size_t part = all < CHECKED ? all : CHECKED;
	size_t wrong = wrong_in(seat, row, 0, part);

	return wrong + (all > part ? wrong_in(seat, row, all - part, part) : 0);
}

/* One call; false when it was refused, and rank 0 has said why. */
static bool check(const struct bench *bench, const struct row *row, size_t *wrong)
{
	size_t sent = row->kind == ALL_GATHER ? row->count * sizeof(float) : row->bytes;
	const struct crew *crew = &bench->crew;
	ncclResult_t got;

	*wrong = 0;
	for (int i = 0; i < crew->count && row->in_place; i++)
		gpu_write(addresses(&crew->seats[i], row).in, bench->buffers[i].in, sent,
			crew->seats[i].stream);
	got = call(bench, row);
	if (got && bench->rank->rank == 0)
		printf("  refused: %s\n", ncclGetLastError(NULL));
	if (total(bench, REFUSED, got != ncclSuccess))
		return false;
	for (int i = 0; i < crew->count; i++)
		*wrong += wrong_of(&crew->seats[i], row);
	*wrong = total(bench, WRONG, *wrong);
	return true;
}

/* ---- times ---- */

static int turns_of(const struct row *row)
{
	return row->bytes <= 1 << 20 ? 200 : 20;
}

static void round_run(const struct bench *bench, const struct row *row,
	const struct graphs *graphs, struct times *best)
{
	int turns = turns_of(row);
	struct times times;
	uint64_t start, host;

	crew_wait(&bench->crew);
	rank_meet(bench->rank);
	start = now_us();
	for (int i = 0; !graphs->calls && i < turns; i++)
		OK(call(bench, row));
	for (int i = 0; graphs->calls && i < turns; i += graphs->calls)
		graphs_replay(bench, graphs);
	host = now_us() - start;
	crew_wait(&bench->crew);
	times = (struct times){(double)(now_us() - start) / turns, (double)host / turns,
		(double)host / turns};
	best->all = times.all < best->all ? times.all : best->all;
	best->leader = times.leader < best->leader ? times.leader : best->leader;
}

/* The best of several rounds; the slowest follower's, for the leader. */
static bool measure(const struct bench *bench, const struct row *row, struct times *best)
{
	_Atomic uint64_t *slowest = &bench->rank->page->words[FOLLOWERS_NS];
	int turns = turns_of(row);
	struct graphs graphs = {.calls = turns < CAPTURED ? turns : CAPTURED};
	ncclResult_t got = ncclSuccess;
	uint64_t ns;

	*best = (struct times){1e18, 1e18, 0};
	if (bench->options->is_captured)
		got = graphs_capture(bench, row, &graphs);
	else
		graphs.calls = 0;
	if (got && bench->rank->rank == 0)
		printf("  refused: %s\n", ncclGetLastError(NULL));
	if (total(bench, REFUSED, got != ncclSuccess))
		return false;
	for (int round = 0; round < ROUNDS; round++)
		round_run(bench, row, &graphs, best);
	ns = (uint64_t)(best->leader * 1e3);
	for (uint64_t old = atomic_load(slowest);
		bench->rank->rank && ns > old &&
		!atomic_compare_exchange_weak(slowest, &old, ns);)
		;
	rank_meet(bench->rank);
	best->followers = (double)atomic_load(slowest) * 1e-3;
	rank_meet(bench->rank);
	atomic_store(slowest, 0);
	rank_meet(bench->rank);
	if (graphs.calls)
		graphs_end(bench, &graphs);
	return true;
}

/* ---- rows ---- */

static void show(const struct bench *bench, const struct row *row, struct times times)
{
	double n = bench->crew.rank_count, bytes = (double)row->bytes;
	bool is_all = row->kind == BROADCAST || row->kind == SEND_RECV;
	double factor = row->kind == ALL_REDUCE ? 2 * (n - 1) / n
			: is_all		? 1
						: (n - 1) / n;
	bool is_one_sided = row->kind == ALL_GATHER || row->kind == REDUCE_SCATTER ||
			    row->kind == BROADCAST;
	double traffic = is_one_sided ? (n + 1) * bytes : 2 * n * bytes;
	double rate = bytes / times.all * 1e-3;

	if (row->in_place) {
		printf(" %9.2f", times.all);
		return;
	}
	printf("%14s %11zu %9.2f %8.2f %8.2f %5.0f%% %7.2f", kind_names[row->kind],
		row->bytes, times.all, rate, rate * factor,
		100 * traffic / times.all / bench->limit, times.leader);
	if (bench->crew.count == 1 && n > 1)
		printf(" %7.2f", times.followers);
	else
		printf(" %7s", "-");
}

/* False: refused, and so would be the other sizes. */
static bool row_run(const struct bench *bench, enum kind kind, size_t bytes)
{
	size_t n = (size_t)bench->crew.rank_count, wrong = 0, more;
	size_t count = bytes / sizeof(float) / (is_whole(kind) ? 1 : n);
	struct row row = {.kind = kind, .count = count ? count : 1};
	struct times times;

	row.bytes = row.count * sizeof(float) * (is_whole(kind) ? 1 : n);
	for (int place = 0; place < 2; place++) {
		row.in_place = place;
		if (place && !can_be_in_place(kind))
			break;
		if (!check(bench, &row, &more) || !measure(bench, &row, &times))
			return false;
		wrong += more;
		if (bench->rank->rank == 0)
			show(bench, &row, times);
	}
	if (bench->rank->rank == 0 && !can_be_in_place(kind))
		printf(" %9s", "-");
	if (bench->rank->rank == 0)
		printf(" %6zu\n", wrong);
	if (wrong)
		atomic_store(&bench->rank->page->result, 1);
	return true;
}

/* Clocks rise when there is work, and drivers build things when they are first used. */
static void warm_up(const struct bench *bench)
{
	enum { SMALL_CALLS = 2000, LARGE_CALLS = 60 };
	const struct row small = {.kind = ALL_REDUCE, .count = 2};
	const struct row large = {
		.kind = ALL_REDUCE, .count = bench->options->bytes_max / sizeof(float)};

	for (int i = 0; i < LARGE_CALLS; i++)
		OK(call(bench, &large));
	crew_wait(&bench->crew);
	for (int i = 0; i < SMALL_CALLS; i++)
		OK(call(bench, &small));
	crew_wait(&bench->crew);
	rank_meet(bench->rank);
}

/* An alltoall of messages is only shown when it is asked for. */
static bool is_asked(const struct bench *bench, int kind)
{
	const char *only = bench->options->only;

	return only ? !strcmp(only, kind_names[kind]) : kind != EXCHANGE;
}

static void rows(const struct bench *bench)
{
	static const size_t near[SIZES_MAX] = {
		8, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20, (size_t)1 << 30};
	static const size_t far[SIZES_MAX] = {
		8, 4 << 10, 32 << 10, 256 << 10, 2 << 20, 16 << 20, 128 << 20};
	static const size_t many[SIZES_MAX] = {8, 1 << 10, 16 << 10, 64 << 10, 256 << 10,
		1 << 20, 2 << 20, 4 << 20, 16 << 20, 128 << 20, (size_t)1 << 30};
	const char *only = bench->options->only;
	const size_t *sizes = only ? many : bench->options->hosts ? far : near;

	if (bench->rank->rank == 0) {
		printf("# a copy in device memory reads and writes %.0f GB/s\n",
			bench->limit * 1e-3);
		printf("#%13s %11s %9s %8s %8s %6s %7s %7s %9s %6s\n", "", "size", "time",
			"algbw", "busbw", "memory", "leader", "others", "in place",
			"wrong");
		printf("#%13s %11s %9s %8s %8s %6s %7s %7s %9s\n", "", "(B)", "(us)",
			"(GB/s)", "(GB/s)", "share", "host us", "host us", "(us)");
	}
	for (int kind = 0; kind < KIND_COUNT; kind++)
		for (size_t i = 0; i < SIZES_MAX && sizes[i] && is_asked(bench, kind);
			i++)
			if (sizes[i] <= bench->options->bytes_max &&
				!row_run(bench, (enum kind)kind, sizes[i]))
				break;
}

/* ---- copies between device memory and pinned memory ---- */

/* Microseconds of one, there and waited for. */
static double copy_time(const struct bench *bench, void *to, const void *from, size_t n)
{
	enum { COPIES = 100 };
	cu_stream stream = bench->crew.seats[0].stream;
	uint64_t start;

	gpu_read(to, from, n, stream);
	start = now_us();
	for (int i = 0; i < COPIES; i++)
		gpu_read(to, from, n, stream);
	return (double)(now_us() - start) / COPIES;
}

/* Of this rank: out of the device and into it. */
static void copy_row(const struct bench *bench, void *pinned, size_t bytes)
{
	char *data = bench->buffers[0].in;
	double from = copy_time(bench, pinned, data, bytes);
	double to = copy_time(bench, data, pinned, bytes);

	if (bench->rank->rank == 0)
		printf(" %11.2f %11.2f", from, to);
}

static void copies(const struct bench *bench)
{
	const struct cuda_driver *driver = gpu_begin();
	void *pinned = NULL;

	CUDA(driver->mem_host_alloc(&pinned, bench->options->bytes_max, 0));
	if (bench->rank->rank == 0)
		printf("#%10s %11s %11s %11s %11s\n#%10s %11s %11s %11s %11s\n", "size",
			"from device", "to device", "from device", "to device", "(B)",
			"us, alone", "us, alone", "us, all", "us, all");
	for (size_t bytes = 8; bytes <= bench->options->bytes_max; bytes *= 4) {
		rank_meet(bench->rank);
		if (bench->rank->rank == 0) {
			printf("%11zu", bytes);
			copy_row(bench, pinned, bytes);
		}
		rank_meet(bench->rank);
		copy_row(bench, pinned, bytes);
		rank_meet(bench->rank);
		if (bench->rank->rank == 0)
			printf("\n");
	}
	CUDA(driver->mem_host_free(pinned));
}

/* ---- the program ---- */

/* What a copy inside the device reaches, while nobody else works. */
static double copy_rate(const struct bench *bench)
{
	enum { COPIES = 20 };
	size_t bytes = bench->options->bytes_max;
	cu_stream stream = bench->crew.seats[0].stream;
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start = now_us();
		double rate;

		for (int i = 0; i < COPIES; i++)
			gpu_write(bench->buffers[0].out, bench->buffers[0].in, bytes,
				stream);
		gpu_wait(stream);
		rate = 2.0 * COPIES * (double)bytes / (double)(now_us() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

/* The pattern repeats, so the device can write most of it by itself. */
static void fill(const struct seat *seat, char *to, size_t bytes)
{
	float pattern[PATTERN];
	size_t done = sizeof(pattern);

	for (size_t i = 0; i < PATTERN; i++)
		pattern[i] = value(seat->rank, i);
	gpu_write(to, pattern, done < bytes ? done : bytes, seat->stream);
	for (; done < bytes; done *= 2)
		gpu_write(to + done, to, done < bytes - done ? done : bytes - done,
			seat->stream);
	gpu_wait(seat->stream);
}

static void rank_main(struct rank *rank)
{
	const struct options *options = rank->argument;
	struct bench bench = {.rank = rank, .options = options};
	struct crew *crew = &bench.crew;

	crew_open_as(crew, rank, 0, options->way == 'g' ? options->rank_count : 0);
	for (int i = 0; i < crew->count; i++) {
		bench.buffers[i] = (struct buffers){
			gpu_alloc(options->bytes_max), gpu_alloc(options->bytes_max)};
		crew->seats[i].own = &bench.buffers[i];
		fill(&crew->seats[i], bench.buffers[i].in, options->bytes_max);
	}
	rank_meet(rank);
	if (options->is_copies) {
		copies(&bench);
	} else {
		warm_up(&bench);
		if (rank->rank == 0)
			bench.limit = copy_rate(&bench);
		rank_meet(rank);
		rows(&bench);
	}
	fflush(stdout);
	rank_meet(rank);
	for (int i = 0; i < crew->count; i++) {
		gpu_free(bench.buffers[i].in);
		gpu_free(bench.buffers[i].out);
	}
	crew_close(crew);
}

static bool options_read(int argc, char **argv, struct options *options)
{
	static const struct option longs[] = {{"mps", no_argument, NULL, 'M'},
		{"hosts", required_argument, NULL, 'H'},
		{"copies", no_argument, NULL, 'C'}, {0}};
	int letter;

	*options = (struct options){0};
	while ((letter = getopt_long(argc, argv, "p:t:g:Gm:k:", longs, NULL)) != -1) {
		if (letter == 'p' || letter == 't' || letter == 'g') {
			options->way = (char)letter;
			options->rank_count = atoi(optarg);
		} else if (letter == 'm') {
			options->bytes_max = (size_t)atoi(optarg) << 20;
		} else if (letter == 'G') {
			options->is_captured = true;
		} else if (letter == 'k') {
			options->only = optarg;
		} else if (letter == 'M') {
			options->has_mps = true;
		} else if (letter == 'H') {
			options->hosts = atoi(optarg);
			setenv("WEFT_TEST_HOSTS", optarg, 1);
		} else if (letter == 'C') {
			options->is_copies = true;
		} else {
			return false;
		}
	}
	if (!options->bytes_max) /* 1 GiB when the ranks' memory is not too much for it */
		options->bytes_max = (size_t)(options->rank_count <= 2 ? 1024 : 128)
				     << 20;
	return optind == argc && options->rank_count >= 1 &&
	       options->rank_count <= (options->way == 'g' ? CREW_MAX : RANKS_MAX);
}

int main(int argc, char **argv)
{
	struct options options;
	struct ranks ranks = {.function = rank_main,
		.argument = &options,
		.processes = 1,
		.threads = 1,
		.limit_s = LIMIT_S};

	if (!options_read(argc, argv, &options)) {
		fprintf(stderr,
			"usage: gpu_bench -p RANKS | -t RANKS | -g RANKS [-G] "
			"[-m MAX_MIB] [--mps] [--hosts N] [--copies] [-k KIND]\n");
		return 2;
	}
	if (options.way == 'p')
		ranks.processes = options.rank_count;
	if (options.way == 't')
		ranks.threads = options.rank_count;
	gpu_need();
	setvbuf(stdout, NULL, _IOLBF, 0); /* one that hangs shows how far it came */
	printf("# %d ranks on one GPU %s%s%s", options.rank_count,
		options.way == 'p'   ? "as processes"
		: options.way == 't' ? "as threads"
				     : "driven by one thread",
		options.is_captured ? ", captured and replayed" : "",
		options.has_mps ? ", MPS is on" : "");
	if (options.hosts)
		printf(", on %d hosts", options.hosts);
	printf("\n");
	fflush(stdout);
	ranks_run(&ranks);
	if (ranks.result)
		fprintf(stderr, "gpu_bench: wrong results\n");
	return ranks.result != 0;
}
