/*
 * A rank that dies, stops, calls the wrong thing or never comes costs the others an error
 * that names it, at once, and never a hang; the survivors go on without it.
 */
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "colls.h"
#include "ranks.h"
#include "weft.h"

/* Beside the collectives. */
enum {
	SEND_RECV = COLLECTIVES, /* round the ranks */
	STREAM,			 /* an all-reduce on a host stream */
	KIND_COUNT,
	PUT = KIND_COUNT /* into the window of rank 1 */
};

static const char *kind_name(int kind)
{
	return kind == SEND_RECV ? "SendRecv"
	       : kind == STREAM	 ? "on a stream"
				 : collective_name(kind);
}

enum {
	WORD_DEATH = RANKS_MAX, /* when the victim died, us */
	WORD_LATEST,		/* the slowest survivor, us */
	UNHEARD_MAX = 20,	/* more calls than a root may be ahead */
	LIMIT_US = 2000000,
	USAGE_LIMIT_US = 1000000
};

struct job {
	int kind;
	size_t count;
	bool nccl_memory, inside, shrink, aborts;
	int victim, root;
};

struct buffers {
	float *in, *out;
	bool nccl;
};

static struct buffers buffers_create(size_t count, int n, bool nccl)
{
	size_t bytes = count * sizeof(float) * (size_t)n;
	struct buffers b = {.nccl = nccl};

	if (nccl) {
		OK(ncclMemAlloc((void **)&b.in, bytes));
		OK(ncclMemAlloc((void **)&b.out, bytes));
	} else {
		b.in = calloc(1, bytes);
		b.out = calloc(1, bytes);
	}
	return b;
}

static void buffers_destroy(struct buffers *b)
{
	if (b->nccl) {
		OK(ncclMemFree(b->in));
		OK(ncclMemFree(b->out));
	} else {
		free(b->in);
		free(b->out);
	}
}

static ncclResult_t call(const struct job *job, const struct buffers *b, ncclComm_t comm,
	struct rank *rank)
{
	const struct collective_call made = {
		.collective = job->kind == STREAM ? ALL_REDUCE : job->kind,
		.in = b->in,
		.out = b->out,
		.count = job->count,
		.type = ncclFloat,
		.op = ncclSum,
		.root = job->root,
		.comm = comm};

	return job->kind == SEND_RECV ? ring_call(&made, rank->rank, rank->rank_count)
				      : collective_call(&made);
}

static ncclResult_t call_on(cudaStream_t stream, const struct job *job,
	const struct buffers *b, ncclComm_t comm, struct rank *rank)
{
	ncclResult_t got;

	if (job->kind != STREAM)
		return call(job, b, comm, rank);
	got = ncclAllReduce(b->in, b->out, job->count, ncclFloat, ncclSum, comm, stream);
	return got ? got : weftStreamSynchronize(stream);
}

/* ---- death ---- */

static void die(struct rank *rank)
{
	atomic_store(&rank->page->words[WORD_DEATH], now_us());
	raise(SIGKILL);
}

static void *die_soon(void *argument)
{
	usleep(3000);
	die(argument);
	return NULL;
}

static void check_shrunk(const struct job *job, ncclComm_t comm, struct rank *rank)
{
	int out = job->victim, n, data = 1;
	ncclComm_t child;

	OK(ncclCommShrink(comm, &out, 1, &child, NULL, NCCL_SHRINK_ABORT));
	OK(ncclCommCount(child, &n));
	EQ(n, rank->rank_count - 1);
	OK(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, child, NULL));
	EQ(data, n);
	OK(ncclCommDestroy(child));
}

static void survive(const struct job *job, const struct buffers *b, ncclComm_t comm,
	struct rank *rank)
{
	ncclResult_t got = ncclSuccess, state;
	char name[16];
	uint64_t late;
	cudaStream_t stream;

	OK(weftStreamCreate(&stream));
	while (!got)
		got = call_on(stream, job, b, comm, rank);
	late = now_us() - atomic_load(&rank->page->words[WORD_DEATH]);
	GIVES(got, ncclRemoteError);
	snprintf(name, sizeof(name), "rank %d", job->victim);
	if (!strstr(ncclGetLastError(comm), name))
		fprintf(stderr, "says: %s\n", ncclGetLastError(comm));
	HOLDS(strstr(ncclGetLastError(comm), name));
	HOLDS((double)late < LIMIT_US * crowding());
	rank_raise(rank, late);
	OK(ncclCommGetAsyncError(comm, &state));
	EQ(state, ncclRemoteError);
	GIVES(call(job, b, comm, rank), ncclRemoteError);
	if (job->shrink)
		check_shrunk(job, comm, rank);
	OK(ncclCommAbort(comm));
	OK(weftStreamDestroy(stream));
}

static void kill_main(struct rank *rank)
{
	const struct job *job = rank->argument;
	ncclComm_t comm = rank_comm(rank, 0);
	struct buffers b = buffers_create(job->count, rank->rank_count, job->nccl_memory);
	cudaStream_t stream;
	pthread_t thread;

	rank_context("rank %d, %d dies: %s of %zu, %s memory, %s", rank->rank,
		job->victim, kind_name(job->kind), job->count,
		job->nccl_memory ? "nccl" : "plain", job->inside ? "inside" : "before");
	if (rank->rank == job->victim) {
		OK(weftStreamCreate(&stream));
		if (job->inside)
			EQ(pthread_create(&thread, NULL, die_soon, rank), 0);
		for (int i = 0; job->inside || i < 3; i++)
			OK(call_on(stream, job, &b, comm, rank));
		die(rank);
	}
	survive(job, &b, comm, rank);
	buffers_destroy(&b);
}

/* Ours in the folder of shared memory. */
static int leftovers(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	int count = 0;

	TRUE(folder);
	while ((entry = readdir(folder)))
		count += strstr(entry->d_name, "weft") || strstr(entry->d_name, "nccl");
	closedir(folder);
	return count;
}

static void deaths(bool lean)
{
	int before = leftovers(), jobs = 0;
	uint64_t latest = 0;

	for (unsigned i = 0; i < KIND_COUNT * 8; i++) {
		struct job job = {.kind = (int)(i / 8),
			.count = i & 1 ? 700000 : 5,
			.nccl_memory = i & 2,
			.inside = i & 4,
			.shrink = i % 3 == 0,
			.victim = (int)(i / 2 % 3),
			.root = (int)(i % 3)};
		struct ranks ranks = {.processes = 3,
			.threads = 1,
			.function = kill_main,
			.argument = &job};

		if (lean && i % 5)
			continue;
		ranks_start(&ranks);
		ranks_wait(&ranks, 1u << job.victim);
		latest = ranks.result > latest ? ranks.result : latest;
		jobs++;
	}
	EQ(leftovers(), before);
	printf("%d deaths, the slowest survivor knew after %.1f ms\n", jobs,
		(double)latest * 1e-3);
}

struct ending {
	struct rank *rank;
	ncclComm_t comm;
	bool aborts;
};

static void *end_soon(void *argument)
{
	struct ending *ending = argument;

	usleep(3000);
	if (!ending->aborts)
		die(ending->rank);
	atomic_store(&ending->rank->page->words[WORD_DEATH], now_us());
	OK(ncclCommAbort(ending->comm));
	return NULL;
}

/* The victim, which dies or aborts, has done its part of the call, and nobody waits for
 * it but for the last rank, which is away. */
static void kill_beside_main(struct rank *rank)
{
	const struct job *job = rank->argument;
	ncclComm_t comm = rank_comm(rank, 0);
	struct buffers b = buffers_create(job->count, rank->rank_count, job->nccl_memory);
	_Atomic uint64_t *is_told = &rank->page->words[0];
	struct ending ending = {rank, comm, job->aborts};
	int away = rank->rank_count - 1;
	pthread_t thread;
	char name[16];
	uint64_t late;
	ncclResult_t code;

	rank_context("rank %d, %d %s in %s of %zu", rank->rank, job->victim,
		job->aborts ? "aborts" : "dies", kind_name(job->kind), job->count);
	OK(call(job, &b, comm, rank));
	rank_meet(rank);
	if (rank->rank == job->victim) {
		EQ(pthread_create(&thread, NULL, end_soon, &ending), 0);
		code = call(job, &b, comm, rank);
		/* on a busy machine the communicator may be gone before the call begins
		 */
		HOLDS(code == ncclRemoteError ||
			(job->aborts && code == ncclInvalidArgument));
		pthread_join(thread, NULL);
	} else if (rank->rank == away) {
		for (int i = 0; atomic_load(is_told) < (uint64_t)away - 1 && i < 20000;
			i++)
			usleep(1000);
		EQ(atomic_load(is_told), (uint64_t)away - 1);
	} else {
		GIVES(call(job, &b, comm, rank), ncclRemoteError);
		late = now_us() - atomic_load(&rank->page->words[WORD_DEATH]);
		snprintf(name, sizeof(name), "rank %d", job->victim);
		HOLDS(strstr(ncclGetLastError(comm), name));
		HOLDS((double)late < LIMIT_US * crowding());
		rank_raise(rank, late);
		atomic_fetch_add(is_told, 1);
	}
	if (rank->rank != job->victim)
		OK(ncclCommAbort(comm));
	buffers_destroy(&b);
}

static void deaths_beside(void)
{
	static const int kinds[] = {ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL};
	uint64_t latest = 0;

	for (int i = 0; i < 32; i++) {
		struct job job = {.kind = kinds[i / 8],
			.count = i & 1 ? 100000 : 5,
			.nccl_memory = i & 2,
			.aborts = i & 4,
			.victim = 1};
		struct ranks ranks = {.processes = 4,
			.threads = 1,
			.function = kill_beside_main,
			.argument = &job};

		ranks_start(&ranks);
		ranks_wait(&ranks, job.aborts ? 0 : 1u << job.victim);
		latest = ranks.result > latest ? ranks.result : latest;
	}
	printf("deaths and aborts while all wait for another, the slowest knew after "
	       "%.1f ms\n",
		(double)latest * 1e-3);
}

/* ---- a stopped rank is waited for ---- */

static void stopped_main(struct rank *rank)
{
	const struct job *job = rank->argument;
	ncclComm_t comm = rank_comm(rank, 0);
	struct buffers b = buffers_create(job->count, rank->rank_count, job->nccl_memory);
	int go = 1;

	while (go) { /* rank 0 says when to stop */
		b.in[0] = 1;
		OK(call(job, &b, comm, rank));
		HOLDS(b.out[0] == (float)rank->rank_count);
		go = !atomic_load(&rank->page->words[0]);
		OK(ncclBroadcast(&go, &go, 1, ncclInt, 0, comm, NULL));
	}
	buffers_destroy(&b);
	OK(ncclCommDestroy(comm));
}

static void stopped(void)
{
	struct job job = {.kind = ALL_REDUCE, .count = 3000};
	struct ranks ranks = {
		.processes = 3, .threads = 1, .function = stopped_main, .argument = &job};

	ranks_start(&ranks);
	for (int i = 0; i < 3; i++) {
		usleep(30000);
		kill(ranks.pids[i], SIGSTOP);
		usleep(300000);
		kill(ranks.pids[i], SIGCONT);
	}
	atomic_store(&ranks.page->words[0], 1);
	ranks_wait(&ranks, 0);
	printf("stopped ranks are waited for\n");
}

/* ---- calls that do not match ---- */

struct mismatch {
	const char *what;
	int kind[2];
	size_t count[2];
	ncclDataType_t type[2];
	ncclRedOp_t op[2];
	int root[2];
};

#define F2                                                                               \
	{                                                                                \
		ncclFloat, ncclFloat                                                     \
	}

static const struct mismatch mismatches[] = {
	{"small counts", {0, 0}, {5, 6}, F2, {0, 0}, {0, 0}},
	{"large counts", {0, 0}, {50000, 50001}, F2, {0, 0}, {0, 0}},
	{"small and large", {0, 0}, {5, 50000}, F2, {0, 0}, {0, 0}},
	{"types", {0, 0}, {64, 64}, {ncclFloat, ncclInt}, {0, 0}, {0, 0}},
	{"large types", {0, 0}, {9000, 9000}, {ncclFloat, ncclInt}, {0, 0}, {0, 0}},
	{"operators", {0, 0}, {64, 64}, F2, {ncclSum, ncclMax}, {0, 0}},
	{"large operators", {0, 0}, {9000, 9000}, F2, {ncclSum, ncclMax}, {0, 0}},
	{"collectives", {ALL_REDUCE, ALL_GATHER}, {64, 64}, F2, {0, 0}, {0, 0}},
	{"large collectives", {ALL_REDUCE, BROADCAST}, {9000, 9000}, F2, {0, 0}, {0, 0}},
	{"roots", {BROADCAST, BROADCAST}, {64, 64}, F2, {0, 0}, {0, 1}},
	{"large roots", {REDUCE, REDUCE}, {9000, 9000}, F2, {0, 0}, {0, 1}},
	{"messages", {SEND_RECV, SEND_RECV}, {64, 65}, F2, {0, 0}, {0, 0}},
	{"large messages", {SEND_RECV, SEND_RECV}, {90000, 65}, F2, {0, 0}, {0, 0}},
};

static ncclResult_t call_mismatched(const struct mismatch *m, int way, float *data,
	ncclComm_t comm, struct rank *rank)
{
	const struct collective_call made = {.collective = m->kind[way],
		.in = data,
		.out = data + 100000,
		.count = m->count[way],
		.type = m->type[way],
		.op = m->op[way],
		.root = m->root[way],
		.comm = comm};

	return m->kind[way] == SEND_RECV ? ring_call(&made, rank->rank, rank->rank_count)
					 : collective_call(&made);
}

/* A root need not wait for anyone, so a rank may make some calls before it knows. */
static void mismatch_main(struct rank *rank)
{
	const struct mismatch *m = rank->argument;
	int odd_one = rank->rank_count - 1, way = rank->rank == odd_one;
	ncclComm_t comm = rank_comm(rank, 0);
	float *data = calloc(600000, sizeof(*data));
	ncclResult_t got = ncclSuccess;
	uint64_t start;

	rank_context("rank %d of %d: other %s", rank->rank, rank->rank_count, m->what);
	rank_meet(rank);
	start = now_us();
	for (int i = 0; i < UNHEARD_MAX && !got; i++)
		got = call_mismatched(m, way, data, comm, rank);
	/* nor does it wait between hosts for who is far behind */
	if (!got && has_hosts())
		got = ncclAllReduce(
			data, data + 100000, 2, ncclFloat, ncclSum, comm, NULL);
	HOLDS((double)(now_us() - start) < USAGE_LIMIT_US * crowding());
	GIVES(got, ncclInvalidUsage);
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	free(data);
}

static void mismatched(bool lean)
{
	int jobs = 0;

	for (size_t i = 0; i < sizeof(mismatches) / sizeof(mismatches[0]); i++)
		for (int n = 2; n <= 4; n++)
			for (int threads = 0; threads < 2; threads++) {
				struct ranks ranks = {.processes = threads ? 1 : n,
					.threads = threads ? n : 1,
					.function = mismatch_main,
					.argument = &mismatches[i]};

				if (lean && ((size_t)n + i) % 3)
					continue;
				if (mismatches[i].kind[0] == SEND_RECV && n > 2)
					continue; /* some of them match */
				ranks_run(&ranks);
				jobs++;
			}
	printf("%d mismatches are told\n", jobs);
}

/* ---- aborts ---- */

struct hung {
	struct rank *rank;
	ncclComm_t comm;
	_Atomic int started;
	uint64_t after_us;
};

static void *abort_later(void *argument)
{
	struct hung *hung = argument;
	uint64_t start;

	while (!atomic_load(&hung->started))
		usleep(100);
	usleep((unsigned)hung->after_us);
	start = now_us();
	OK(ncclCommAbort(__atomic_load_n(&hung->comm, __ATOMIC_ACQUIRE)));
	rank_raise(hung->rank, now_us() - start);
	HOLDS((double)(now_us() - start) < USAGE_LIMIT_US * crowding());
	return NULL;
}

/* Rank 0 waits for a rank 1 that does something else; its own thread ends that. */
static void abort_main(struct rank *rank)
{
	const struct job *job = rank->argument;
	struct buffers b = buffers_create(job->count, rank->rank_count, job->nccl_memory);
	struct hung hung = {.rank = rank, .comm = rank_comm(rank, 0), .after_us = 50000};
	ncclResult_t got = ncclSuccess;
	cudaStream_t stream;
	pthread_t thread;

	rank_context("rank %d hangs in %s", rank->rank, kind_name(job->kind));
	OK(weftStreamCreate(&stream));
	if (rank->rank == 0) {
		EQ(pthread_create(&thread, NULL, abort_later, &hung), 0);
		atomic_store(&hung.started, 1);
		got = call_on(stream, job, &b, hung.comm, rank);
		HOLDS(got != ncclSuccess);
		pthread_join(thread, NULL);
	}
	rank_meet(rank);
	/* finds out when it calls, though what had arrived before may still do */
	for (int i = 0; rank->rank && i < UNHEARD_MAX && !got; i++)
		got = call_on(stream, job, &b, hung.comm, rank);
	if (rank->rank)
		GIVES(got, ncclRemoteError);
	if (rank->rank)
		OK(ncclCommAbort(hung.comm));
	OK(weftStreamDestroy(stream));
	buffers_destroy(&b);
}

/* Nobody else comes. */
static void abort_init_main(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	struct hung hung = {.rank = rank};
	uint64_t start = now_us();
	pthread_t thread;

	config.blocking = 0;
	for (int turn = 0; turn < 12; turn++) {
		ncclUniqueId id = rank_id(rank, turn);

		GIVES(ncclCommInitRankConfig(&hung.comm, 2, id, turn % 2, &config),
			ncclInProgress);
		usleep(turn < 6 ? 0 : (unsigned)turn * 2000);
		OK(ncclCommAbort(hung.comm));
	}
	/* a blocking one, through the handle it gave before it hung */
	hung = (struct hung){.rank = rank, .after_us = 50000, .started = 1};
	EQ(pthread_create(&thread, NULL, abort_later, &hung), 0);
	HOLDS(ncclCommInitRank(&hung.comm, 2, rank_id(rank, 20), 0) != ncclSuccess);
	pthread_join(thread, NULL);
	HOLDS((double)(now_us() - start) < 3 * LIMIT_US * crowding());
}

/* A split that one rank never joins. */
static void abort_split_main(struct rank *rank)
{
	struct hung hung = {.rank = rank,
		.comm = rank_comm(rank, 0),
		.after_us = 50000,
		.started = 1};
	ncclComm_t child = NULL;
	pthread_t thread;

	if (rank->rank == 0) {
		EQ(pthread_create(&thread, NULL, abort_later, &hung), 0);
		HOLDS(ncclCommSplit(hung.comm, 0, 0, &child, NULL) != ncclSuccess);
		HOLDS(!child);
		pthread_join(thread, NULL);
	}
	rank_meet(rank);
	if (rank->rank)
		OK(ncclCommAbort(hung.comm));
}

/* A call of both ranks, or puts of the first, which wait for nobody unless too much of
 * them is on its way to another host. */
static ncclResult_t stopped_call(const struct job *job, const struct buffers *b,
	ncclWindow_t window, ncclComm_t comm, struct rank *rank)
{
	return job->kind != PUT ? call(job, b, comm, rank)
				: ncclPutSignal(b->in, job->count, ncclFloat, 1, window,
					  0, 0, 0, 0, comm, NULL);
}

/* The other rank stands still, in the middle of a call or before it. */
static void abort_stopped_main(struct rank *rank)
{
	const struct job *job = rank->argument;
	struct buffers b = buffers_create(job->count, rank->rank_count, true);
	struct hung hung = {.rank = rank, .comm = rank_comm(rank, 0), .after_us = 50000};
	_Atomic uint64_t *pid = &rank->page->words[0], *is_over = &rank->page->words[1];
	ncclResult_t got = ncclSuccess;
	ncclWindow_t window;
	pthread_t thread;

	OK(ncclCommWindowRegister(
		hung.comm, b.out, job->count * sizeof(float), &window, NCCL_WIN_DEFAULT));
	if (rank->rank) {
		atomic_store(pid, (uint64_t)getpid());
		raise(SIGSTOP);
		while (!got)
			got = ncclAllReduce(b.in, b.out, job->count, ncclFloat, ncclSum,
				hung.comm, NULL);
		GIVES(got, ncclRemoteError);
		OK(ncclCommAbort(hung.comm));
	} else {
		while (!atomic_load(pid))
			usleep(1000);
		stop_wait((pid_t)atomic_load(pid));
		EQ(pthread_create(&thread, NULL, abort_later, &hung), 0);
		atomic_store(&hung.started, 1);
		while (!got)
			got = stopped_call(job, &b, window, hung.comm, rank);
		pthread_join(thread, NULL);
		atomic_store(is_over, 1);
	}
	buffers_destroy(&b);
}

static uint64_t abort_stopped(int kind)
{
	struct job job = {.kind = kind, .count = 300000};
	struct ranks ranks = {.processes = 2,
		.threads = 1,
		.function = abort_stopped_main,
		.argument = &job};

	ranks_start(&ranks);
	while (!atomic_load(&ranks.page->words[1])) {
		usleep(1000);
		if (waitpid(ranks.pids[0], NULL, WNOHANG | WNOWAIT) > 0)
			break; /* it has ended badly */
	}
	kill(ranks.pids[1], SIGCONT);
	ranks_wait(&ranks, 0);
	return ranks.result;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void aborts(void)
{
	uint64_t latest = later(abort_stopped(ALL_REDUCE), abort_stopped(PUT));

	for (int i = 0; i < KIND_COUNT * 2; i++) {
		struct job job = {
			.kind = i / 2, .count = i & 1 ? 300000 : 5, .nccl_memory = i & 1};
		struct ranks ranks = {.processes = 2,
			.threads = 1,
			.function = abort_main,
			.argument = &job};

		/* small and alone, these need not wait: the root, or the others */
		job.root = job.kind == BROADCAST || job.kind == SCATTER;
		ranks_run(&ranks);
		latest = later(latest, ranks.result);
		ranks.processes = 1;
		ranks.threads = 2;
		ranks_run(&ranks);
		latest = later(latest, ranks.result);
	}
	ranks_run(&(struct ranks){
		.processes = 1, .threads = 1, .function = abort_init_main});
	ranks_run(&(struct ranks){
		.processes = 2, .threads = 1, .function = abort_split_main});
	ranks_run(&(struct ranks){
		.processes = 1, .threads = 2, .function = abort_split_main});
	printf("aborts end what hangs, the slowest in %.1f ms\n", (double)latest * 1e-3);
}

/* ---- limits ---- */

static void check_took(uint64_t start, const char *what)
{
	rank_context("%s took %lu us", what, (unsigned long)(now_us() - start));
	HOLDS(now_us() - start >= 900000);
	HOLDS((double)(now_us() - start) < 3 * LIMIT_US * crowding());
}

static void timeout_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	uint64_t start = now_us();
	int data = 0;

	if (rank->rank == 0) {
		GIVES(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL),
			ncclTimeout);
		check_took(start, "a collective");
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
}

static void boot_timeout_main(struct rank *rank)
{
	uint64_t start = now_us();
	ncclComm_t comm;

	GIVES(ncclCommInitRank(&comm, 2, rank_id(rank, 0), 0), ncclTimeout);
	check_took(start, "a meeting");
}

static void timeouts(void)
{
	static const char *const run[] = {"WEFT_TIMEOUT_SEC", "1", NULL};
	static const char *const boot[] = {"WEFT_BOOT_TIMEOUT_SEC", "1", NULL};

	ranks_run(&(struct ranks){.processes = 2,
		.threads = 1,
		.function = timeout_main,
		.environment = run});
	ranks_run(&(struct ranks){.processes = 1,
		.threads = 1,
		.function = boot_timeout_main,
		.environment = boot});
	printf("limits are kept\n");
}

int main(int argc, char **argv)
{
	const char *only = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : NULL;
	bool lean = has_option(argc, argv, "--lean");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!only || !strcmp(only, "deaths"))
		deaths(lean);
	if (!only || !strcmp(only, "beside"))
		deaths_beside();
	if (!only || !strcmp(only, "stopped"))
		stopped();
	if (!only || !strcmp(only, "mismatched"))
		mismatched(lean);
	if (!only || !strcmp(only, "aborts"))
		aborts();
	if (!only || !strcmp(only, "timeouts"))
		timeouts();
	return 0;
}
