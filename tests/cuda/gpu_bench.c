/*
 * gpu_bench - times collectives of ranks that share a GPU; nccl-tests' columns and one
 * more: the share of what the GPU's memory can do, measured by a copy in the same run.
 *
 *   gpu_bench -p RANKS | -t RANKS [MAX_MIB]
 *
 * A collective must read every byte of its inputs and write every byte of its outputs
 * once; the share is that, divided by the time and by the rate of the copy.
 */
#include "gpu.h"
#include "ranks.h"

enum kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, KIND_COUNT };

static const char *const kind_names[KIND_COUNT] = {
	"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall"};

enum { ROUNDS = 5, PATTERN = 1000, CHECKED = 1000, LIMIT_S = 120 };

struct bench {
	struct rank *rank;
	ncclComm_t comm;
	cu_stream stream;
	char *in, *out;
	size_t bytes_max;
	double limit; /* bytes per microsecond, read and written */
	float *host;
};

/* One row: `count` elements as the call counts them, `bytes` as nccl-tests does. */
struct row {
	enum kind kind;
	size_t count, bytes;
	bool in_place;
};

static bool is_whole(enum kind kind)
{
	return kind == ALL_REDUCE || kind == BROADCAST;
}

static float value(int rank, size_t i)
{
	return (float)(i % PATTERN + (size_t)rank);
}

/* Element i of what `rank` must receive. */
static float wanted(const struct bench *bench, const struct row *row, size_t i)
{
	size_t n = (size_t)bench->rank->rank_count;
	size_t own = (size_t)bench->rank->rank * row->count;
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
	default:
		return value((int)(i / row->count), own + i % row->count);
	}
}

static void addresses(
	const struct bench *bench, const struct row *row, char **in, char **out)
{
	size_t own = (size_t)bench->rank->rank * row->count * sizeof(float);

	*in = bench->in;
	*out = bench->out;
	if (!row->in_place)
		return;
	*in = bench->out + (row->kind == ALL_GATHER ? own : 0);
	*out = bench->out + (row->kind == REDUCE_SCATTER ? own : 0);
}

static void call(const struct bench *bench, const struct row *row)
{
	cudaStream_t stream = (cudaStream_t)bench->stream;
	char *in, *out;

	addresses(bench, row, &in, &out);
	switch (row->kind) {
	case ALL_REDUCE:
		OK(ncclAllReduce(
			in, out, row->count, ncclFloat, ncclSum, bench->comm, stream));
		break;
	case ALL_GATHER:
		OK(ncclAllGather(in, out, row->count, ncclFloat, bench->comm, stream));
		break;
	case REDUCE_SCATTER:
		OK(ncclReduceScatter(
			in, out, row->count, ncclFloat, ncclSum, bench->comm, stream));
		break;
	case BROADCAST:
		OK(ncclBroadcast(in, out, row->count, ncclFloat, 0, bench->comm, stream));
		break;
	default:
		OK(ncclAlltoAll(in, out, row->count, ncclFloat, bench->comm, stream));
	}
}

static size_t out_count(const struct row *row)
{
	bool is_block = row->kind == REDUCE_SCATTER;

	return is_block ? row->count : row->bytes / sizeof(float);
}

/* Elements `first`.. of the result that are wrong. */
static size_t wrong_in(
	struct bench *bench, const struct row *row, size_t first, size_t count)
{
	size_t wrong = 0;
	char *in, *out;

	addresses(bench, row, &in, &out);
	gpu_read(bench->host, out + first * sizeof(float), count * sizeof(float),
		bench->stream);
	for (size_t i = 0; i < count; i++)
		wrong += bench->host[i] != wanted(bench, row, first + i);
	return wrong;
}

/* One call, the beginning and the end of its result looked at. */
static size_t check(struct bench *bench, const struct row *row)
{
	size_t all = out_count(row), part = all < CHECKED ? all : CHECKED, wrong;
	size_t sent = row->kind == ALL_GATHER ? row->count * sizeof(float) : row->bytes;
	char *in, *out;

	addresses(bench, row, &in, &out);
	if (row->in_place)
		gpu_write(in, bench->in, sent, bench->stream);
	call(bench, row);
	wrong = wrong_in(bench, row, 0, part);
	if (all > part)
		wrong += wrong_in(bench, row, all - part, part);
	atomic_fetch_add(&bench->rank->page->words[0], wrong);
	rank_meet(bench->rank);
	wrong = atomic_load(&bench->rank->page->words[0]);
	rank_meet(bench->rank);
	atomic_store(&bench->rank->page->words[0], 0);
	return wrong;
}

/* Microseconds per call, the best of several rounds. */
static double measure(struct bench *bench, const struct row *row)
{
	int turns = row->bytes <= 1 << 20 ? 100 : row->bytes <= 16 << 20 ? 20 : 5;
	double best = 1e18;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start;
		double time;

		call(bench, row);
		gpu_wait(bench->stream);
		rank_meet(bench->rank);
		start = now_us();
		for (int i = 0; i < turns; i++)
			call(bench, row);
		gpu_wait(bench->stream);
		time = (double)(now_us() - start) / turns;
		best = time < best ? time : best;
	}
	return best;
}

static void show(
	const struct bench *bench, const struct row *row, double time, size_t wrong)
{
	double n = bench->rank->rank_count, bytes = (double)row->bytes;
	double factor = row->kind == ALL_REDUCE	 ? 2 * (n - 1) / n
			: row->kind == BROADCAST ? 1
						 : (n - 1) / n;
	bool is_one_sided = row->kind != ALL_REDUCE && row->kind != ALL_TO_ALL;
	double traffic = is_one_sided ? (n + 1) * bytes : 2 * n * bytes;
	double rate = bytes / time * 1e-3;

	printf(" %8.2f %7.2f %7.2f %6.1f%% %6zu", time, rate, rate * factor,
		100 * traffic / time / bench->limit, wrong);
}

static void row_run(struct bench *bench, enum kind kind, size_t bytes)
{
	size_t n = (size_t)bench->rank->rank_count;
	bool is_first = bench->rank->rank == 0;
	bool reduces = kind == ALL_REDUCE || kind == REDUCE_SCATTER;
	size_t count = bytes / sizeof(float) / (is_whole(kind) ? 1 : n);
	struct row row = {.kind = kind, .count = count ? count : 1};

	row.bytes = row.count * sizeof(float) * (is_whole(kind) ? 1 : n);
	if (is_first)
		printf("%12zu %12zu %9s %7s %7d", row.bytes, row.count, "float",
			reduces ? "sum" : "none", kind == BROADCAST ? 0 : -1);
	for (int place = 0; place < 2; place++) {
		double time;
		size_t wrong;

		if (place && kind == ALL_TO_ALL)
			break;
		row.in_place = place;
		wrong = check(bench, &row);
		time = measure(bench, &row);
		if (is_first)
			show(bench, &row, time, wrong);
		if (wrong)
			atomic_store(&bench->rank->page->result, 1);
	}
	if (is_first)
		printf("\n");
}

static void head(const struct bench *bench, enum kind kind)
{
	printf("#\n# %s, %d ranks\n", kind_names[kind], bench->rank->rank_count);
	printf("#%58s %s%24s %s\n", "", "out-of-place", "", "in-place");
	printf("#%11s %12s %9s %7s %7s", "size", "count", "type", "redop", "root");
	for (int i = 0; i < 2; i++)
		printf(" %8s %7s %7s %7s %6s", "time", "algbw", "busbw", "memory",
			"#wrong");
	printf("\n#%11s %12s %9s %7s %7s", "(B)", "(elements)", "", "", "");
	for (int i = 0; i < 2; i++)
		printf(" %8s %7s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "share", "");
	printf("\n");
}

/* What a copy inside the device reaches, while nobody else works. */
static double copy_rate(struct bench *bench)
{
	enum { COPIES = 5 };
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t start;
		double rate;

		gpu_write(bench->out, bench->in, bench->bytes_max, bench->stream);
		gpu_wait(bench->stream);
		start = now_us();
		for (int i = 0; i < COPIES; i++)
			gpu_write(bench->out, bench->in, bench->bytes_max, bench->stream);
		gpu_wait(bench->stream);
		rate = 2.0 * COPIES * (double)bench->bytes_max /
		       (double)(now_us() - start);
		best = rate > best ? rate : best;
	}
	return best;
}

static void bench_open(struct bench *bench, struct rank *rank)
{
	size_t bytes = *(const size_t *)rank->argument;
	float *pattern = malloc(bytes);

	gpu_begin();
	*bench = (struct bench){.rank = rank, .bytes_max = bytes};
	bench->host = malloc(CHECKED * sizeof(float));
	HOLDS(pattern && bench->host);
	bench->in = gpu_alloc(bytes);
	bench->out = gpu_alloc(bytes);
	bench->stream = gpu_stream();
	for (size_t i = 0; i < bytes / sizeof(float); i++)
		pattern[i] = value(rank->rank, i);
	gpu_write(bench->in, pattern, bytes, bench->stream);
	gpu_wait(bench->stream);
	free(pattern);
	bench->comm = rank_comm(rank, 0);
}

static void rank_main(struct rank *rank)
{
	struct bench bench;

	bench_open(&bench, rank);
	rank_meet(rank);
	if (rank->rank == 0) {
		bench.limit = copy_rate(&bench);
		printf("# a copy in device memory reads and writes %.0f GB/s\n",
			bench.limit * 1e-3);
	}
	rank_meet(rank);
	for (int kind = 0; kind < KIND_COUNT; kind++) {
		if (rank->rank == 0)
			head(&bench, (enum kind)kind);
		for (size_t bytes = 8; bytes <= bench.bytes_max; bytes *= 8)
			row_run(&bench, (enum kind)kind, bytes);
	}
	fflush(stdout);
	rank_meet(rank);
	OK(ncclCommDestroy(bench.comm));
	gpu_stream_end(bench.stream);
	gpu_free(bench.in);
	gpu_free(bench.out);
	free(bench.host);
}

int main(int argc, char **argv)
{
	bool is_threads = argc > 1 && !strcmp(argv[1], "-t");
	int count = argc > 2 ? atoi(argv[2]) : 0;
	size_t bytes = (size_t)(argc > 3 ? atoi(argv[3]) : 128) << 20;
	struct ranks ranks = {.processes = is_threads ? 1 : count,
		.threads = is_threads ? count : 1,
		.function = rank_main,
		.argument = &bytes,
		.limit_s = LIMIT_S};

	if (count < 1 || count > RANKS_MAX || !bytes ||
		(!is_threads && strcmp(argv[1], "-p"))) {
		fprintf(stderr, "usage: gpu_bench -p RANKS | -t RANKS [MAX_MIB]\n");
		return 2;
	}
	gpu_need();
	printf("# %d ranks on one GPU as %s\n", count,
		is_threads ? "threads" : "processes");
	ranks_run(&ranks);
	if (ranks.result)
		fprintf(stderr, "gpu_bench: wrong results\n");
	return ranks.result != 0;
}
