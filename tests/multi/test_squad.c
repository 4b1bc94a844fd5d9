/*
 * Large calls between hosts by several threads of each rank: results are the same to the
 * bit, the threads come with the first such call, may use all cores, sleep between calls
 * and go with the communicator; and none writes to a call's buffers when it has failed.
 * Where threads cannot be had, all that holds as well.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ranks.h"

enum {
	THREADS = 3,
	COUNT = 300000,
	HUGE = 12 << 20,
	LATER_US = 8000,
	STILL_US = 40000,
	GONE_US = 100
};

/* ---- threads that cannot be had ---- */

/* So many more may be started by this process, as a container's limit has it. */
static atomic_int thread_room = INT_MAX;

#define SEEN __attribute__((visibility("default")))

SEEN int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
	void *(*begin)(void *), void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	void *found = dlsym(RTLD_NEXT, "pthread_create");

	if (atomic_fetch_sub(&thread_room, 1) <= 0) {
		atomic_fetch_add(&thread_room, 1);
		return EAGAIN;
	}
	memcpy(&create, &found, sizeof(create));
	return create(thread, attr, begin, argument);
}

/* From now on. WEFT_TEST_MATES, where it is set, is how many the first rank may have, and
 * the others: "02" that it may have none and they two each. */
static void threads_limit(const struct rank *rank)
{
	const char *text = getenv("WEFT_TEST_MATES");

	if (text)
		atomic_store(&thread_room, text[rank->rank > 0] - '0');
}

static int mates_wanted(const struct rank *rank)
{
	const char *text = getenv("WEFT_TEST_MATES");

	return text ? text[rank->rank > 0] - '0' : THREADS - 1;
}

/* ---- what they compute ---- */

static float value(int rank, size_t i)
{
	uint32_t mixed = (uint32_t)(i * 2654435761u) ^ (uint32_t)rank * 40503u;

	return (float)(mixed >> 7) * 1e-3f + 1.0f / (float)(1 + mixed % 97);
}

static uint64_t hash_of(uint64_t hash, const void *data, size_t bytes)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < bytes; i++)
		hash = (hash ^ at[i]) * 0x100000001b3u;
	return hash;
}

/* Of all that this rank gets. */
static void bits_rank(struct rank *rank)
{
	static const size_t counts[] = {1000, 33333, 70001, COUNT};
	ncclComm_t comm = rank_comm(rank, 0);
	float *in = malloc(COUNT * sizeof(*in)), *out = malloc(COUNT * sizeof(*out));
	uint64_t hash = 1469598103934665603u;

	threads_limit(rank);
	for (size_t i = 0; i < COUNT; i++)
		in[i] = value(rank->rank, i);
	for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
		size_t part = counts[k] / (size_t)rank->rank_count;

		OK(ncclAllReduce(in, out, counts[k], ncclFloat, ncclSum, comm, NULL));
		hash = hash_of(hash, out, counts[k] * sizeof(*out));
		OK(ncclAllReduce(in, out, counts[k], ncclFloat, ncclAvg, comm, NULL));
		hash = hash_of(hash, out, counts[k] * sizeof(*out));
		OK(ncclReduceScatter(in, out, part, ncclFloat, ncclSum, comm, NULL));
		hash = hash_of(hash, out, part * sizeof(*out));
		OK(ncclAllGather(in, out, part, ncclFloat, comm, NULL));
		hash = hash_of(hash, out, part * (size_t)rank->rank_count * sizeof(*out));
		OK(ncclGroupStart());
		OK(ncclBroadcast(in, out, counts[k], ncclFloat, 1, comm, NULL));
		OK(ncclAllReduce(out, out, counts[k], ncclFloat, ncclSum, comm, NULL));
		OK(ncclGroupEnd());
		hash = hash_of(hash, out, counts[k] * sizeof(*out));
	}
	OK(ncclCommDestroy(comm));
	free(in);
	free(out);
	if (rank->rank == rank->rank_count - 1)
		rank_raise(rank, hash >> 1);
}

/* With all threads, and where some ranks have fewer. */
#define SQUAD "WEFT_CALL_THREADS", "3", "WEFT_CALL_SHARE", "64"
static const char *const ways[][7] = {{SQUAD, NULL},
	{SQUAD, "WEFT_TEST_MATES", "00", NULL}, {SQUAD, "WEFT_TEST_MATES", "02", NULL},
	{SQUAD, "WEFT_TEST_MATES", "20", NULL}, {SQUAD, "WEFT_TEST_MATES", "11", NULL}};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static void test_bits(int processes)
{
	static const char *const alone[] = {"WEFT_CALL_THREADS", "1", NULL};
	struct ranks one = {.processes = processes,
		.threads = 1,
		.function = bits_rank,
		.environment = alone};

	ranks_run(&one);
	for (int i = 0; i < WAYS; i++) {
		struct ranks several = one;

		several.environment = ways[i];
		ranks_run(&several);
		EQ(one.result, several.result);
	}
}

/* ---- the threads ---- */

static bool is_mate(const char *task)
{
	char path[300], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof(name), file))
		name[0] = '\0';
	fclose(file);
	return !strcmp(name, "weft-mate\n");
}

/* How many there are; each may use these cores; NULL: any. */
static int mates(const cpu_set_t *cores)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	cpu_set_t theirs;
	int count = 0;

	HOLDS(tasks);
	while ((task = readdir(tasks))) {
		if (!is_mate(task->d_name))
			continue;
		count++;
		if (!cores)
			continue;
		EQ(sched_getaffinity(atoi(task->d_name), sizeof(theirs), &theirs), 0);
		HOLDS(CPU_EQUAL(&theirs, cores));
	}
	closedir(tasks);
	return count;
}

/* Who is waited for is listed for a moment longer than that. */
static void mates_await_end(void)
{
	while (mates(NULL))
		usleep(GONE_US);
}

static uint64_t cpu_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

static void threads_rank(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	float *data = calloc(COUNT, sizeof(*data));
	cpu_set_t all, one;
	uint64_t used;

	EQ(sched_getaffinity(0, sizeof(all), &all), 0);
	OK(ncclAllReduce(data, data, 4, ncclFloat, ncclSum, comm, NULL));
	EQ(mates(NULL), 0);
	threads_limit(rank);
	/* who makes the first large call may be bound to a core by then */
	CPU_ZERO(&one);
	CPU_SET((size_t)sched_getcpu(), &one);
	EQ(sched_setaffinity(0, sizeof(one), &one), 0);
	for (int i = 0; i < 3; i++)
		OK(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, NULL));
	EQ(mates(&all), mates_wanted(rank));
	usleep(STILL_US);
	used = cpu_us();
	usleep(STILL_US);
	HOLDS(is_sanitized() || cpu_us() - used < STILL_US / 4);
	OK(ncclCommDestroy(comm));
	mates_await_end();
	free(data);
}

/* ---- sends and receives ---- */

/* Lengths of the messages to each rank, in order; and where each lies. */
static const size_t lengths[] = {COUNT, 10, 70001, 0, 33333, COUNT - 1};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), LAST = 4 };

static float *message(float *all, int rank, int number)
{
	return all + (rank * LENGTHS + number) * COUNT;
}

static float letter_value(int from, int to, int number, size_t i)
{
	return value(from * 100 + to * 10 + number, i);
}

/* Everybody to everybody, all in one group; in each direction the messages come in order.
 */
static void letters_exchange(
	struct rank *rank, ncclComm_t comm, float *in, float *out, bool with_sum)
{
	float sum[2] = {1, 2};

	memset(out, 0, (size_t)rank->rank_count * LENGTHS * COUNT * sizeof(*out));
	OK(ncclGroupStart());
	for (int peer = 0; peer < rank->rank_count; peer++)
		for (int k = 0; k < LENGTHS; k++) {
			OK(ncclSend(message(in, peer, k), lengths[k], ncclFloat, peer,
				comm, NULL));
			OK(ncclRecv(message(out, peer, k), lengths[k], ncclFloat, peer,
				comm, NULL));
			if (with_sum && k == 1 && !peer)
				OK(ncclAllReduce(message(out, 0, 3), message(out, 0, 3),
					COUNT, ncclFloat, ncclSum, comm, NULL));
		}
	if (with_sum)
		OK(ncclAllReduce(sum, sum, 2, ncclFloat, ncclSum, comm, NULL));
	OK(ncclGroupEnd());
	HOLDS(!with_sum || sum[0] == (float)rank->rank_count);
	for (int peer = 0; peer < rank->rank_count; peer++)
		for (int k = 0; k < LENGTHS; k++)
			for (size_t i = 0; i < lengths[k]; i++)
				HOLDS(message(out, peer, k)[i] ==
					letter_value(peer, rank->rank, k, i));
}

/* Of the other host. */
static int partner(const struct rank *rank)
{
	return (rank->rank + rank->rank_count / 2) % rank->rank_count;
}

/* Outside of a group. */
static void letters_in_turn(
	struct rank *rank, ncclComm_t comm, const float *in, float *out)
{
	int peer = partner(rank);

	for (int i = 0; i < 2; i++)
		if (i == rank->rank / (rank->rank_count / 2))
			OK(ncclSend(in, COUNT, ncclFloat, peer, comm, NULL));
		else
			OK(ncclRecv(out, COUNT, ncclFloat, peer, comm, NULL));
	for (size_t i = 0; i < COUNT; i++)
		HOLDS(out[i] == letter_value(peer, rank->rank, 0, i));
}

/* Who has sent may leave; all shares of it still come. */
static void letter_left(struct rank *rank, ncclComm_t comm, const float *in, float *out)
{
	size_t length = lengths[LAST];
	int peer = partner(rank);

	if (rank->rank < rank->rank_count / 2) {
		OK(ncclSend(in, length, ncclFloat, peer, comm, NULL));
		return;
	}
	usleep(STILL_US);
	OK(ncclRecv(out, length, ncclFloat, peer, comm, NULL));
	for (size_t i = 0; i < length; i++)
		HOLDS(out[i] == letter_value(peer, rank->rank, LAST, i));
}

static void letters_rank(struct rank *rank)
{
	size_t room = (size_t)rank->rank_count * LENGTHS * COUNT;
	ncclComm_t comm = rank_comm(rank, 0);
	float *in = malloc(room * sizeof(*in)), *out = malloc(room * sizeof(*out));

	for (int peer = 0; peer < rank->rank_count; peer++)
		for (int k = 0; k < LENGTHS; k++)
			for (size_t i = 0; i < lengths[k]; i++)
				message(in, peer, k)[i] = letter_value(
					rank->rank, peer, k, i);
	EQ(mates(NULL), 0);
	threads_limit(rank);
	letters_in_turn(rank, comm, message(in, partner(rank), 0), out);
	EQ(mates(NULL), mates_wanted(rank));
	for (int i = 0; i < 2; i++) {
		letters_exchange(rank, comm, in, out, false);
		letters_exchange(rank, comm, in, out, true);
	}
	letters_in_turn(rank, comm, message(in, partner(rank), 0), out);
	letter_left(rank, comm, message(in, partner(rank), LAST), out);
	OK(ncclCommDestroy(comm));
	free(in);
	free(out);
}

/* Both ends cut by their own length, and hear of the other's. */
static void lengths_rank(struct rank *rank)
{
	static const size_t pairs[][2] = {
		{COUNT, COUNT - 1000}, {COUNT - 1000, COUNT}, {COUNT, 10}, {10, COUNT}};
	float *data = calloc(COUNT, sizeof(*data));

	for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
		ncclComm_t comm = rank_comm(rank, (int)k);

		if (rank->rank) {
			GIVES(ncclRecv(data, pairs[k][1], ncclFloat, 0, comm, NULL),
				ncclInvalidUsage);
			rank_context("%s", ncclGetLastError(comm));
			HOLDS(strstr(ncclGetLastError(comm), "must have the same size"));
		} else {
			ncclSend(data, pairs[k][0], ncclFloat, 1, comm, NULL);
		}
		rank_meet(rank);
		OK(ncclCommAbort(comm));
	}
	free(data);
}

/* ---- how many ---- */

/* As many cores as this are shown to the library; 0: those that there are. */
static atomic_int shown_cores;

SEEN int sched_getaffinity(pid_t task, size_t bytes, cpu_set_t *set)
{
	int cores = task ? 0 : atomic_load(&shown_cores);
	long filled = syscall(SYS_sched_getaffinity, task, bytes, set);

	if (filled < 0)
		return -1;
	memset((char *)set + filled, 0, bytes - (size_t)filled);
	for (int i = 0; i < cores; i++)
		CPU_SET((size_t)i, set);
	return 0;
}

/* Makes its threads come; that many more than before. */
static int squad_of(ncclComm_t comm, float *data)
{
	int before = mates(NULL);

	OK(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, NULL));
	return 1 + mates(NULL) - before;
}

/* .. where so many would like to come, and there is room for those. */
static int squad_fits(int wish, int *room)
{
	int count = wish < *room ? wish : *room;

	if (count < 2)
		return 1;
	*room -= count;
	return count;
}

/* Sixteen cores, and so many files that there is room for seven threads. Where this runs
 * may have a quota, so that fewer than four come at all. */
static void files_rank(struct rank *rank)
{
	float *data = calloc(COUNT, sizeof(*data));
	int room = 7, wish, squads[3];
	ncclComm_t comms[4];
	struct rlimit limit;

	atomic_store(&shown_cores, 16);
	EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = 180;
	EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int i = 0; i < 3; i++)
		comms[i] = rank_comm(rank, i);
	wish = squad_of(comms[0], data);
	HOLDS(wish >= 1 && wish <= 4);
	for (int i = 0; i < 3; i++) {
		squads[i] = squad_fits(wish, &room);
		EQ(i ? squad_of(comms[i], data) : wish, squads[i]);
	}
	OK(ncclCommDestroy(comms[0]));
	room += squads[0];
	comms[3] = rank_comm(rank, 3);
	EQ(squad_of(comms[3], data), squad_fits(wish, &room));
	for (int i = 1; i < 4; i++)
		OK(ncclCommDestroy(comms[i]));
	free(data);
}

/* ---- a call that fails half way ---- */

/* All of `data`, or one half to everybody else and the other from them. */
static ncclResult_t move(struct rank *rank, ncclComm_t comm, char *data)
{
	size_t part = HUGE / 2 / (size_t)rank->rank_count;
	ncclResult_t result;

	if (!getenv("WEFT_TEST_LETTERS"))
		return ncclAllReduce(
			data, data, HUGE / 4, ncclInt32, ncclSum, comm, NULL);
	OK(ncclGroupStart());
	for (int peer = 0; peer < rank->rank_count; peer++) {
		char *at = data + (size_t)peer * part;

		result = ncclSend(at, part, ncclInt8, peer, comm, NULL);
		if (!result)
			result = ncclRecv(
				at + HUGE / 2, part, ncclInt8, peer, comm, NULL);
		if (result)
			break;
	}
	return ncclGroupEnd();
}

static void *later_abort(void *comm)
{
	usleep(LATER_US);
	OK(ncclCommAbort(comm));
	return NULL;
}

static void failing_rank(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	char *data = calloc(HUGE, 1);
	pthread_t thread;
	ncclResult_t result;

	rank_meet(rank);
	if (!rank->rank)
		EQ(pthread_create(&thread, NULL, later_abort, comm), 0);
	threads_limit(rank);
	do
		result = move(rank, comm, data);
	while (!result);
	memset(data, 0x5a, HUGE);
	usleep(STILL_US);
	for (size_t i = 0; i < HUGE; i++)
		HOLDS(data[i] == 0x5a);
	if (!rank->rank)
		EQ(pthread_join(thread, NULL), 0);
	else
		OK(ncclCommAbort(comm));
	rank_meet(rank);
	free(data);
}

/* ---- a rank that dies in a call ---- */

static void *later_die(void *unused)
{
	(void)unused;
	usleep(LATER_US);
	raise(SIGKILL);
	return NULL;
}

static void dying_rank(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	char *data = calloc(HUGE, 1);
	pthread_t thread;
	ncclResult_t result;

	rank_meet(rank);
	if (rank->rank == 1)
		EQ(pthread_create(&thread, NULL, later_die, NULL), 0);
	threads_limit(rank);
	do
		result = move(rank, comm, data);
	while (!result);
	GIVES(result, ncclRemoteError);
	rank_context("%s", ncclGetLastError(comm));
	HOLDS(strstr(ncclGetLastError(comm), "rank 1"));
	OK(ncclCommAbort(comm));
	free(data);
}

static void run_dying(int processes, int way)
{
	struct ranks ranks = {.processes = processes,
		.threads = 1,
		.function = dying_rank,
		.environment = ways[way]};

	ranks_start(&ranks);
	ranks_wait(&ranks, 1 << 1);
}

static void run_files(void)
{
	static const char *const share[] = {"WEFT_CALL_SHARE", "64", NULL};
	struct ranks ranks = {.processes = 2,
		.threads = 1,
		.function = files_rank,
		.environment = share};

	ranks_run(&ranks);
}

static void run(rank_function *function, int processes, int way)
{
	struct ranks ranks = {.processes = processes,
		.threads = 1,
		.function = function,
		.environment = ways[way]};

	ranks_run(&ranks);
}

int main(void)
{
	setenv("WEFT_TEST_HOSTS", "2", 1);
	test_bits(2);
	test_bits(4);
	run_files();
	for (int way = 0; way < WAYS; way++) {
		run(threads_rank, 2 + 2 * (way % 2), way);
		run(letters_rank, 2 + 2 * (way % 2), way);
		run(lengths_rank, 2, way);
		for (int letters = 0; letters < 2; letters++) {
			if (letters)
				setenv("WEFT_TEST_LETTERS", "1", 1);
			run(failing_rank, 2, way);
			run(failing_rank, 4, way);
			run_dying(2, way);
			run_dying(4, way);
		}
		unsetenv("WEFT_TEST_LETTERS");
	}
	return 0;
}
