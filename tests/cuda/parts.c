#include "parts.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 30 };

/* One way of one part. */
struct job {
	const struct part *part;
	int processes, threads;
	int driven; /* ranks of one thread; 0: each thread is one */
	char name[96];
};

struct totals {
	int passed, failed;
};

static const struct job *job_of(const struct rank *rank)
{
	return rank->argument;
}

int part_value(const struct rank *rank)
{
	return job_of(rank)->part->value;
}

/* ---- the table ---- */

/* The way that `text` starts with; NULL after the last, else where the next begins. */
static const char *job_read(struct job *job, const struct part *part, const char *text)
{
	int length = 0;
	char way[16];

	*job = (struct job){.part = part, .processes = 1, .threads = 1};
	if (sscanf(text, " %15s%n", way, &length) != 1)
		return NULL;
	if (sscanf(way, "g%d", &job->driven) != 1 &&
		sscanf(way, "%dx%d", &job->processes, &job->threads) != 2) {
		fprintf(stderr, "%s: no such way: %s\n", part->name, way);
		exit(2);
	}
	snprintf(job->name, sizeof(job->name), "%s %s", part->name, way);
	return text + length;
}

/* In a process of its own: what fails ends it. */
static int job_run(const struct job *job)
{
	struct ranks ranks = {.processes = job->processes,
		.threads = job->threads,
		.function = job->part->function,
		.argument = job,
		.limit_s = job->part->limit_s ? job->part->limit_s : LIMIT_S};
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	TRUE(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ranks_start(&ranks);
		ranks_wait(&ranks, job->part->killed);
		if (job->part->unit)
			printf(" %ju %s,", (uintmax_t)ranks.result, job->part->unit);
		exit(0);
	}
	EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void job_show(const struct job *job, struct totals *totals)
{
	uint64_t start = now_us();
	int status;

	printf("%s:", job->name);
	status = job_run(job);
	printf(" %.2f s, %s\n", (double)(now_us() - start) * 1e-6,
		status ? "FAILED" : "passed");
	if (status)
		totals->failed++;
	else
		totals->passed++;
}

static bool is_wanted(const struct job *job, const char *name)
{
	return !name || !strcmp(name, job->name) || !strcmp(name, job->part->name);
}

int parts_main(int argc, char **argv, const struct part *parts, size_t count)
{
	bool is_list = has_option(argc, argv, "--list");
	bool only_processes = has_option(argc, argv, "--processes");
	const char *name = argc > 1 && argv[argc - 1][0] != '-' ? argv[argc - 1] : NULL;
	struct totals totals = {0};
	struct job job;

	if (!is_list)
		gpu_need();
	for (size_t i = 0; i < count; i++) {
		const char *way = parts[i].ways;

		while ((way = job_read(&job, &parts[i], way))) {
			if (!is_wanted(&job, name))
				continue;
			if (only_processes && job.processes == 1)
				continue;
			if (is_list)
				printf("%s\n", job.name);
			else
				job_show(&job, &totals);
		}
	}
	if (!is_list && !totals.passed && !totals.failed)
		fprintf(stderr, "%s: no part %s\n", argv[0], name ? name : "at all");
	else if (!is_list)
		printf("%d passed, %d failed\n", totals.passed, totals.failed);
	return is_list ? 0 : totals.failed || !totals.passed;
}

/* ---- crews ---- */

static void crew_open_driven(struct crew *crew, int count)
{
	int devices[CREW_MAX];
	ncclComm_t comms[CREW_MAX];

	HOLDS(count <= CREW_MAX);
	for (int i = 0; i < count; i++)
		devices[i] = i % gpu_count();
	OK(ncclCommInitAll(comms, count, devices));
	crew->count = crew->rank_count = count;
	for (int i = 0; i < count; i++)
		crew->seats[i] = (struct seat){
			.rank = i, .rank_count = count, .comm = comms[i]};
}

void crew_open_as(struct crew *crew, struct rank *rank, int index, int driven)
{
	gpu_begin();
	*crew = (struct crew){.rank = rank, .rank_count = rank->rank_count, .count = 1};
	if (driven)
		crew_open_driven(crew, driven);
	else
		crew->seats[0] = (struct seat){.rank = rank->rank,
			.rank_count = rank->rank_count,
			.comm = rank_comm(rank, index)};
	for (int i = 0; i < crew->count; i++) {
		if (driven)
			gpu_use(i);
		crew->seats[i].stream = gpu_stream();
	}
}

void crew_open_more(struct crew *crew, struct rank *rank, int index)
{
	crew_open_as(crew, rank, index, job_of(rank)->driven);
}

void crew_open(struct crew *crew, struct rank *rank)
{
	crew_open_more(crew, rank, 0);
}

void crew_wait(const struct crew *crew)
{
	for (int i = 0; i < crew->count; i++)
		gpu_wait(crew->seats[i].stream);
}

void crew_close(struct crew *crew)
{
	rank_meet(crew->rank);
	crew_wait(crew);
	OK(ncclGroupStart());
	for (int i = 0; i < crew->count; i++)
		OK(ncclCommDestroy(crew->seats[i].comm));
	OK(ncclGroupEnd());
	for (int i = 0; i < crew->count; i++)
		gpu_stream_end(crew->seats[i].stream);
}

void crew_abort(struct crew *crew)
{
	rank_meet(crew->rank);
	crew_wait(crew);
	for (int i = 0; i < crew->count; i++) {
		OK(ncclCommAbort(crew->seats[i].comm));
		gpu_stream_end(crew->seats[i].stream);
	}
}

/* ---- data ---- */

uint32_t word_of(int rank, int turn, size_t i)
{
	return (uint32_t)rank * 1000003u + (uint32_t)turn * 7919u + (uint32_t)i * 3u;
}

uint32_t word_sum(int rank_count, int turn, size_t i)
{
	uint32_t n = (uint32_t)rank_count;

	return n * word_of(0, turn, i) + n * (n - 1) / 2 * 1000003u;
}

void words_give(const struct seat *seat, void *to, size_t count, int turn)
{
	uint32_t *host = malloc(count * sizeof(*host) + 1);

	HOLDS(host);
	for (size_t i = 0; i < count; i++)
		host[i] = word_of(seat->rank, turn, i);
	gpu_write(to, host, count * sizeof(*host), seat->stream);
	gpu_wait(seat->stream);
	free(host);
}

void words_check(
	const struct seat *seat, const void *from, size_t count, int rank, int turn)
{
	uint32_t *host = malloc(count * sizeof(*host) + 1);

	HOLDS(host);
	gpu_read(host, from, count * sizeof(*host), seat->stream);
	for (size_t i = 0; i < count; i++) {
		uint32_t want = rank < 0 ? word_sum(seat->rank_count, turn, i)
					 : word_of(rank, turn, i);

		if (host[i] == want)
			continue;
		rank_context("rank %d of %d, turn %d: word %zu of %zu is %u, not %u",
			seat->rank, seat->rank_count, turn, i, count, host[i], want);
		holds(false, "the right words", __FILE__, __LINE__);
	}
	free(host);
}

void comm_check(ncclComm_t comm, cu_stream stream)
{
	enum { COUNT = 5000 };
	struct seat seat = {.comm = comm, .stream = stream};
	void *data = gpu_alloc(COUNT * sizeof(uint32_t));

	OK(ncclCommUserRank(comm, &seat.rank));
	OK(ncclCommCount(comm, &seat.rank_count));
	words_give(&seat, data, COUNT, 1);
	OK(ncclAllReduce(
		data, data, COUNT, ncclUint32, ncclSum, comm, (cudaStream_t)stream));
	words_check(&seat, data, COUNT, -1, 1);
	gpu_free(data);
}
