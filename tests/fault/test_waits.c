/*
 * Every wait ends: calls that do not match, ranks that are missing when a communicator is
 * made, settings that differ, revocation, and a warning for who waits for a stopped rank.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "colls.h"
#include "ranks.h"

enum { RANKS = 3, FLOATS = 60000, TEXT = 512 };

/* ---- every call against every other ---- */

/* Beside the collectives: round the ranks. */
enum { SEND_RECV = COLLECTIVES, KINDS };

struct call {
	int kind;
	size_t count;
	ncclDataType_t type;
	ncclRedOp_t op;
	int root;
};

struct mismatch {
	struct call usual, odd; /* the last rank makes the odd one */
};

static ncclResult_t make(const struct call *call, float *data, ncclComm_t comm, int rank)
{
	const struct collective_call made = {.collective = call->kind,
		.in = data,
		.out = data + RANKS * FLOATS,
		.count = call->count,
		.type = call->type,
		.op = call->op,
		.root = call->root,
		.comm = comm};

	return call->kind == SEND_RECV ? ring_call(&made, rank, RANKS)
				       : collective_call(&made);
}

/* A rank that waits for nobody may hear of it only in its next call, or at its end. */
static void mismatch_main(struct rank *rank)
{
	static const struct call next = {ALL_REDUCE, 2, ncclFloat, ncclSum, 0};
	const struct mismatch *m = rank->argument;
	const struct call *mine = rank->rank == RANKS - 1 ? &m->odd : &m->usual;
	float *data = calloc(2 * RANKS * FLOATS, sizeof(*data));
	ncclComm_t comm = rank_comm(rank, 0);
	ncclResult_t got;

	rank_context(
		"rank %d: kind %d of %zu, type %d, op %d, root %d against %d of %zu, "
		"type %d, op %d, root %d",
		rank->rank, m->usual.kind, m->usual.count, m->usual.type, m->usual.op,
		m->usual.root, m->odd.kind, m->odd.count, m->odd.type, m->odd.op,
		m->odd.root);
	got = make(mine, data, comm, rank->rank);
	if (!got)
		got = make(&next, data, comm, rank->rank);
	GIVES(got, ncclInvalidUsage);
	HOLDS(strstr(ncclGetLastError(comm), "rank"));
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	free(data);
}

static int mismatch_run(const struct mismatch *mismatch)
{
	for (int threads = 0; threads < 2; threads++) {
		struct ranks ranks = {.processes = threads ? 1 : RANKS,
			.threads = threads ? RANKS : 1,
			.function = mismatch_main,
			.argument = mismatch};

		ranks_run(&ranks);
	}
	return 2;
}

static bool is_p2p(int kind)
{
	return kind == SEND_RECV;
}

static void mismatches(bool lean)
{
	static const size_t counts[] = {2, 50000};
	int jobs = 0;

	for (int size = 0; size < 2; size++)
		for (int a = 0; a < KINDS; a++)
			for (int b = 0; b < KINDS; b++) {
				struct mismatch m = {
					{a, counts[size], ncclFloat, ncclSum, 0},
					{b, counts[size], ncclFloat, ncclSum, 0}};

				if (a != b && (!lean || (a + b) % 5 == 0))
					jobs += mismatch_run(&m);
			}
	printf("%d jobs of different calls\n", jobs);
}

/* The same call with one argument that differs, where that argument counts. */
static void arguments(bool lean)
{
	static const size_t counts[] = {2, 20000};
	int jobs = 0;

	for (int i = 0; i < KINDS * 2; i++) {
		struct call call = {i / 2, counts[i % 2], ncclFloat, ncclSum, 0};
		struct mismatch count = {call, call}, none = count, type = count,
				op = count, root = count;
		bool reduces = call.kind == ALL_REDUCE || call.kind == REDUCE ||
			       call.kind == REDUCE_SCATTER;
		bool rooted = collective_has_root(call.kind);

		if (lean && i % 3)
			continue;
		count.odd.count *= 2;
		none.odd.count = 0;
		type.odd.type = ncclDouble;
		op.odd.op = ncclMax;
		root.odd.root = 1;
		jobs += mismatch_run(&count) + mismatch_run(&type);
		if (!is_p2p(call.kind))
			jobs += mismatch_run(&none);
		if (reduces)
			jobs += mismatch_run(&op);
		if (rooted)
			jobs += mismatch_run(&root);
	}
	printf("%d jobs of different arguments\n", jobs);
}

/* Nothing follows: then the end says so, at least to the last rank. Not between hosts,
 * where a root waits until its message is on its way. */
static void last_call_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	float value = 1;
	ncclResult_t got;

	OK(ncclBroadcast(
		&value, &value, 1, ncclFloat, rank->rank == 2 ? 2 : 0, comm, NULL));
	rank_meet(rank);
	got = ncclCommFinalize(comm);
	rank_meet(rank);
	GIVES(got, rank->rank == 1 ? got : ncclInvalidUsage);
	if (got)
		HOLDS(strstr(ncclGetLastError(NULL), "root 2"));
	ncclCommDestroy(comm);
}

/* A send that nobody receives: the same. */
static void lone_send_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	float value = 1;

	if (rank->rank == 0)
		OK(ncclSend(&value, 1, ncclFloat, 1, comm, NULL));
	rank_meet(rank);
	if (rank->rank == 1) {
		GIVES(ncclCommFinalize(comm), ncclInvalidUsage);
		HOLDS(strstr(ncclGetLastError(NULL), "rank 0 has sent 4 bytes"));
	}
	rank_meet(rank);
	ncclCommDestroy(comm);
}

/* Receives that nobody sends. */
static void lone_recv_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	char text[TEXT];
	float value = 1;

	GIVES(ncclRecv(&value, 1, ncclFloat, (rank->rank + 1) % RANKS, comm, NULL),
		ncclInvalidUsage);
	snprintf(text, sizeof(text), "%s", ncclGetLastError(comm));
	HOLDS(strstr(text, "receive of 4 bytes"));
	rank_meet(rank);
	OK(ncclCommAbort(comm));
}

/* Calls that match, of ranks that keep each other waiting for so long that all of them
 * note and tell it: the notes of other hosts are old when they come, and nobody may take
 * them for more than they say. */
static void slow_main(struct rank *rank)
{
	enum { ROUNDS = 12, STEP_US = 50000 };
	int n = rank->rank_count, right = (rank->rank + 1) % n,
	    left = (rank->rank + n - 1) % n;
	ncclComm_t comm = rank_comm(rank, 0);

	for (int round = 0; round < ROUNDS; round++) {
		int mine = rank->rank + round, theirs = -1, sum = 0;

		usleep((useconds_t)((rank->rank * 7 + round * 3) % 5) * STEP_US);
		if (rank->rank % 2) {
			OK(ncclRecv(&theirs, 1, ncclInt, left, comm, NULL));
			OK(ncclSend(&mine, 1, ncclInt, right, comm, NULL));
		} else {
			OK(ncclSend(&mine, 1, ncclInt, right, comm, NULL));
			OK(ncclRecv(&theirs, 1, ncclInt, left, comm, NULL));
		}
		HOLDS(theirs == left + round);
		OK(ncclAllReduce(&mine, &sum, 1, ncclInt, ncclSum, comm, NULL));
		HOLDS(sum == n * (n - 1) / 2 + n * round);
	}
	OK(ncclCommDestroy(comm));
}

/* ---- making communicators ---- */

struct setting {
	const char *name, *value, *sentence;
	const char *usual; /* what the other ranks have; NULL: nothing */
};

static void setting_main(struct rank *rank)
{
	const struct setting *setting = rank->argument;
	ncclUniqueId id = rank_id(rank, 0);
	ncclComm_t comm = NULL;
	uint64_t start;

	rank_context("rank %d: %s", rank->rank, setting->name);
	if (rank->rank == 1)
		setenv(setting->name, setting->value, 1);
	else if (setting->usual)
		setenv(setting->name, setting->usual, 1);
	rank_meet(rank);
	start = patient_us();
	GIVES(ncclCommInitRank(&comm, rank->rank_count, id, rank->rank),
		ncclInvalidUsage);
	HOLDS(patient_us() - start < 30000000);
	HOLDS(!comm);
	if (!strstr(ncclGetLastError(NULL), setting->sentence))
		fprintf(stderr, "%s\n", ncclGetLastError(NULL));
	HOLDS(strstr(ncclGetLastError(NULL), setting->sentence));
}

static void settings(void)
{
	static const struct setting table[] = {
		{"WEFT_TILE", "4096", "WEFT_TILE is '", NULL},
		{"WEFT_SCHEDULE", "ring", "WEFT_SCHEDULE is '", NULL},
		{"WEFT_EAGER_BYTES", "64", "WEFT_EAGER_BYTES is '", NULL},
		{"NCCL_ALGO", "Ring", "NCCL_ALGO is '", NULL},
		{"NCCL_PROTO", "LL", "NCCL_PROTO is '", NULL},
		{"WEFT_NET_LATENCY_US", "90", "WEFT_NET_LATENCY_US is '", NULL},
		{"WEFT_NET_MB_PER_SEC", "90", "WEFT_NET_MB_PER_SEC is '", NULL},
		{"WEFT_CHECKSUM", "1", "WEFT_CHECKSUM is '", NULL},
		{"NCCL_ALGO", "broadcast:ring;allreduce:ring",
			"NCCL_ALGO begins with 'broadcast:ring;allr' on ranks",
			"broadcast:ring;allreduce:tree"},
		{"NCCL_GRAPH_FILE", "/etc/passwd", "/etc/passwd", NULL},
	};

	/* the last is of one host's topology */
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]) - has_hosts(); i++) {
		struct ranks ranks = {.processes = 3,
			.threads = 1,
			.function = setting_main,
			.argument = &table[i]};

		ranks_run(&ranks);
	}
	printf("settings that differ are named\n");
}

/* A rank that nobody else can open: it sees another /proc. */
static void apart_main(struct rank *rank)
{
	ncclUniqueId id = rank_id(rank, 0);
	ncclComm_t comm = NULL;
	ncclResult_t got;

	if (rank->rank == 1 && (setgid(65534) || setuid(65534)))
		_exit(0);
	got = ncclCommInitRank(&comm, rank->rank_count, id, rank->rank);
	GIVES(got, rank->rank == 1 ? ncclSystemError : ncclRemoteError);
	HOLDS(strstr(ncclGetLastError(NULL), "cannot open the shared memory"));
}

/* Rank 3 dies, and the child is to be made with it. */
static void dead_member_main(struct rank *rank)
{
	bool is_split = rank->argument;
	ncclComm_t comm = rank_comm(rank, 0), child = NULL;
	int exclude = 2, data = 1;
	ncclResult_t got;

	rank_meet(rank);
	if (rank->rank == 3)
		_exit(0);
	if (is_split) {
		got = ncclCommSplit(comm, 0, 0, &child, NULL);
	} else {
		GIVES(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL),
			ncclRemoteError);
		got = rank->rank == 2 ? ncclRemoteError
				      : ncclCommShrink(comm, &exclude, 1, &child, NULL,
						NCCL_SHRINK_ABORT);
	}
	GIVES(got, ncclRemoteError);
	HOLDS(strstr(ncclGetLastError(comm), "rank 3"));
	OK(ncclCommAbort(comm));
}

/* Some make a child and the others something else of the parent. */
enum { SPLIT_AND_SHRINK, SHRINK_AND_CALL };

static void odd_birth_main(struct rank *rank)
{
	const int *kind = rank->argument;
	ncclComm_t comm = rank_comm(rank, 0), child = NULL;
	int exclude = 2, data = 1;
	ncclResult_t got;

	OK(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL));
	if (rank->rank == (*kind == SPLIT_AND_SHRINK))
		got = ncclCommShrink(
			comm, &exclude, 1, &child, NULL, NCCL_SHRINK_DEFAULT);
	else if (*kind == SPLIT_AND_SHRINK)
		got = ncclCommSplit(comm, 0, 0, &child, NULL);
	else
		got = ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL);
	GIVES(got, ncclInvalidUsage);
	HOLDS(strstr(ncclGetLastError(comm), "these calls do not match"));
	rank_meet(rank);
	OK(ncclCommAbort(comm));
}

/* Rank 1 has lost its patience with the others in a call, and makes a child with rank 0,
 * which waits for it. */
static void late_shrink_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0), child = NULL;
	int exclude = 2, data = 1;

	if (rank->rank == 1)
		GIVES(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, comm, NULL),
			ncclTimeout);
	rank_meet(rank);
	if (rank->rank == 1)
		usleep(200000);
	if (rank->rank != 2) {
		OK(ncclCommShrink(comm, &exclude, 1, &child, NULL,
			rank->rank ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT));
		OK(ncclAllReduce(&data, &data, 1, ncclInt, ncclSum, child, NULL));
		OK(ncclCommDestroy(child));
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
}

static void late_shrink(void)
{
	static const char *const environment[] = {"WEFT_TIMEOUT_SEC", "1", NULL};
	struct ranks ranks = {.processes = RANKS,
		.threads = 1,
		.function = late_shrink_main,
		.environment = environment};

	ranks_run(&ranks);
	printf("who has given a call up may still make a child\n");
}

static void odd_births(void)
{
	for (int kind = SPLIT_AND_SHRINK; kind <= SHRINK_AND_CALL; kind++) {
		struct ranks ranks = {.processes = RANKS,
			.threads = 1,
			.function = odd_birth_main,
			.argument = &kind};

		ranks_run(&ranks);
		ranks.processes = 1;
		ranks.threads = RANKS;
		ranks_run(&ranks);
	}
	printf("who makes a child alone is told\n");
}

static void revoke_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0), child = NULL;
	int *data = calloc(FLOATS, sizeof(*data)), exclude = 2, sum = 1;
	ncclResult_t state;

	if (rank->rank == 0)
		usleep(50000);
	else /* in flight when rank 0 revokes */
		GIVES(ncclAllReduce(data, data, FLOATS, ncclInt, ncclSum, comm, NULL),
			ncclRemoteError);
	OK(ncclCommRevoke(comm, 0));
	OK(ncclCommGetAsyncError(comm, &state));
	OK(state);
	GIVES(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, comm, NULL),
		ncclInvalidUsage);
	OK(ncclCommSplit(comm, rank->rank % 2, 0, &child, NULL));
	OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, child, NULL));
	HOLDS(sum == (rank->rank_count + 1 - rank->rank % 2) / 2);
	OK(ncclCommDestroy(child));
	sum = 1;
	if (rank->rank != 2) {
		OK(ncclCommShrink(comm, &exclude, 1, &child, NULL, NCCL_SHRINK_DEFAULT));
		OK(ncclAllReduce(&sum, &sum, 1, ncclInt, ncclSum, child, NULL));
		HOLDS(sum == rank->rank_count - 1);
		OK(ncclCommDestroy(child));
	}
	rank_meet(rank);
	OK(ncclCommAbort(comm));
	free(data);
}

/* Two communicators fail for two reasons; each tells its own. */
static void reasons_main(struct rank *rank)
{
	ncclComm_t one = rank_comm(rank, 0), two = rank_comm(rank, 1);
	int data[4] = {0};

	GIVES(ncclAllReduce(data, data, rank->rank ? 1 : 2, ncclInt, ncclSum, one, NULL),
		ncclInvalidUsage);
	rank_meet(rank);
	if (rank->rank == 0)
		OK(ncclCommAbort(two));
	else
		GIVES(ncclAllReduce(data, data, 1, ncclInt, ncclSum, two, NULL),
			ncclRemoteError);
	HOLDS(strstr(ncclGetLastError(one), "all ranks must make the same call"));
	if (rank->rank)
		HOLDS(strstr(ncclGetLastError(two), "rank 0 aborted"));
	rank_meet(rank);
	OK(ncclCommAbort(one));
	if (rank->rank)
		OK(ncclCommAbort(two));
}

/* ---- a stopped rank ---- */

static void stall_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	int data = 1;

	atomic_store(&rank->page->words[1 + rank->rank], (uint64_t)getpid());
	for (int i = 0; i < 20; i++) {
		if (i == 10 && rank->rank == 1) {
			atomic_store(&rank->page->words[0], 1);
			raise(SIGSTOP);
		}
		OK(ncclAllReduce(&data, &data, 1, ncclInt, ncclMax, comm, NULL));
	}
	OK(ncclCommDestroy(comm));
}

/* Stopped before it comes. */
static void stall_init_main(struct rank *rank)
{
	atomic_store(&rank->page->words[1 + rank->rank], (uint64_t)getpid());
	if (rank->rank == 1)
		raise(SIGSTOP);
	OK(ncclCommDestroy(rank_comm(rank, 0)));
}

static void file_read(const char *path, char *text, size_t room)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, room - 1);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

static void await_stopped(uint64_t pid)
{
	char path[64], text[512] = "";

	snprintf(path, sizeof(path), "/proc/%lu/stat", (unsigned long)pid);
	while (!strstr(text, ") T ")) {
		usleep(1000);
		file_read(path, text, sizeof(text));
	}
}

/* The root stands still: nobody is let in. */
static void stall_root_main(struct rank *rank)
{
	ncclUniqueId id = rank_id(rank, 0);
	ncclComm_t comm = NULL;

	if (rank->rank == 0)
		atomic_store(&rank->page->words[2], (uint64_t)getpid());
	rank_meet(rank);
	if (rank->rank == 0)
		raise(SIGSTOP);
	else
		await_stopped(atomic_load(&rank->page->words[2]));
	OK(ncclCommInitRank(&comm, rank->rank_count, id, rank->rank));
	OK(ncclCommDestroy(comm));
}

/* Stopped before it says its colour; the parent's calls have ended. */
static void stall_vote_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0), child = NULL;

	atomic_store(&rank->page->words[1 + rank->rank], (uint64_t)getpid());
	OK(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
	if (rank->rank == 1)
		raise(SIGSTOP);
	OK(ncclCommSplit(comm, 0, 0, &child, NULL));
	OK(ncclCommDestroy(child));
	OK(ncclCommDestroy(comm));
}

/* Rank 1 is stopped while all wait for it in some way; `is_named` says what the log must
 * have for it to go on. */
struct stall {
	rank_function *function;
	const char *named[4]; /* ends with NULL */
};

static bool is_named(const struct stall *stall, const char *text)
{
	for (int i = 0; stall->named[i]; i++)
		if (!strstr(text, stall->named[i]))
			return false;
	return true;
}

static void stall(const struct stall *stall)
{
	char path[] = "/tmp/weft-stall-XXXXXX", text[4096] = "";
	const char *environment[] = {"NCCL_DEBUG", "WARN", "NCCL_DEBUG_FILE", path,
		"WEFT_STALL_SEC", "1", NULL};
	struct ranks ranks = {.processes = 2,
		.threads = 1,
		.function = stall->function,
		.environment = environment};
	int fd = mkstemp(path);

	HOLDS(fd >= 0);
	close(fd);
	ranks_start(&ranks);
	for (int i = 0; i < 300 && !is_named(stall, text); i++) {
		usleep(100000);
		file_read(path, text, sizeof(text));
	}
	kill((pid_t)atomic_load(&ranks.page->words[2]), SIGCONT);
	ranks_wait(&ranks, 0);
	unlink(path);
	if (!is_named(stall, text))
		fprintf(stderr, "the log: %s\n", text);
	HOLDS(is_named(stall, text));
}

static void stalls(void)
{
	const char *why = has_hosts() ? ", on host " : "stopped by a signal) ";
	const struct stall in_call = {stall_main,
		{"rank 0 has waited", why,
			"in all_reduce of 1 int32, max (call 11); it was last in "
			"all_reduce of 1 int32, max (call 10)"}};
	const struct stall in_init = {
		stall_init_main, {"rank 1 of 2 has not come for a new communicator"}};
	const struct stall at_root = {stall_root_main,
		{"rank 1 has waited 1 s for an answer at ",
			"the process there is stopped or cannot be reached"}};
	const struct stall in_vote = {stall_vote_main,
		{"rank 0 has waited", why, "to begin a new communicator"}};

	stall(&in_call);
	stall(&in_init);
	stall(&at_root);
	stall(&in_vote);
	printf("a stopped rank is named\n");
}

static void run(rank_function *function, int ranks_count, const void *argument)
{
	struct ranks ranks = {.processes = ranks_count,
		.threads = 1,
		.function = function,
		.argument = argument};

	ranks_run(&ranks);
}

int main(int argc, char **argv)
{
	bool lean = has_option(argc, argv, "--lean");

	mismatches(lean);
	arguments(lean);
	if (!has_hosts()) {
		run(last_call_main, RANKS, NULL);
		run(lone_send_main, RANKS, NULL);
	}
	run(lone_recv_main, RANKS, NULL);
	run(slow_main, 4, NULL);
	settings();
	/* between hosts nobody opens anybody's memory */
	if (!geteuid() && !is_sanitized() && !has_hosts())
		run(apart_main, RANKS, NULL);
	run(dead_member_main, 4, NULL);
	run(dead_member_main, 4, "split");
	if (!has_hosts()) {
		late_shrink();
		odd_births();
	}
	run(revoke_main, RANKS, NULL);
	run(revoke_main, 5, NULL);
	run(reasons_main, 2, NULL);
	stalls();
	return 0;
}
