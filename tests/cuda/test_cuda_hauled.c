/*
 * Collectives between hosts that kernels run (exec/cuda/haul.h), where the way they go
 * shows: what is too cut up for kernels, one thread that drives several ranks, and a
 * neighbour whose stream does not come. The environment says that there are several hosts
 * and that kernels run calls of any size.
 */
#include <unistd.h>

#include "log_text.h"
#include "parts.h"

enum { POLL_US = 200, LIMIT_US = 20 * 1000 * 1000 };

/* Words of the page. */
enum { PID };

/* ---- too cut up ---- */

/* Right all the same, and the log says why it went another way. */
static void short_tiles(struct rank *rank)
{
	enum { WORDS = 256 << 10 };
	char path[64];
	struct seat *seat;
	struct crew crew;
	void *data;

	if (rank->rank == 0)
		atomic_store(&rank->page->words[PID], (uint64_t)getpid());
	rank_meet(rank);
	snprintf(path, sizeof(path), "/tmp/weft-hauled-%d.%d",
		(int)atomic_load(&rank->page->words[PID]), rank->rank);
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
	setenv("NCCL_DEBUG_FILE", path, 1);
	crew_open(&crew, rank);
	seat = &crew.seats[0];
	data = gpu_alloc(WORDS * sizeof(uint32_t));
	for (int turn = 0; turn < 2; turn++) {
		words_give(seat, data, WORDS, turn);
		OK(ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum, seat->comm,
			(cudaStream_t)seat->stream));
		words_check(seat, data, WORDS, -1, turn);
	}
	EQ(log_count(path, "too short for kernels; through host memory"), 1);
	unlink(path);
	crew_close(&crew);
	gpu_free(data);
}

/* ---- one thread, several ranks ---- */

/* Results in memory that is not pinned: a copy to it waits for its kernel, which waits
 * for the other rank's. */
static void driven_to_host(struct rank *rank)
{
	enum { SEATS = 2, WORDS = 100000, TURNS = 3 };
	int n = SEATS * rank->rank_count;
	uint32_t *results[SEATS];
	void *data[SEATS];
	struct seat seats[SEATS];
	ncclUniqueId id = rank_id(rank, 0);

	gpu_begin();
	OK(ncclGroupStart());
	for (int i = 0; i < SEATS; i++) {
		gpu_use(i);
		seats[i] = (struct seat){.rank = SEATS * rank->rank + i, .rank_count = n};
		OK(ncclCommInitRank(&seats[i].comm, n, id, seats[i].rank));
	}
	OK(ncclGroupEnd());
	for (int i = 0; i < SEATS; i++) {
		gpu_use(i);
		seats[i].stream = gpu_stream();
		data[i] = gpu_alloc(WORDS * sizeof(uint32_t));
		results[i] = malloc(WORDS * sizeof(uint32_t));
	}
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < SEATS; i++) {
			gpu_use(i);
			words_give(&seats[i], data[i], WORDS, turn);
		}
		OK(ncclGroupStart());
		for (int i = 0; i < SEATS; i++)
			OK(ncclAllReduce(data[i], results[i], WORDS, ncclUint32, ncclSum,
				seats[i].comm, (cudaStream_t)seats[i].stream));
		OK(ncclGroupEnd());
		for (int i = 0; i < SEATS; i++)
			for (size_t w = 0; w < WORDS; w++)
				HOLDS(results[i][w] == word_sum(n, turn, w));
	}
	rank_meet(rank);
	OK(ncclGroupStart());
	for (int i = 0; i < SEATS; i++)
		OK(ncclCommDestroy(seats[i].comm));
	OK(ncclGroupEnd());
	for (int i = 0; i < SEATS; i++) {
		gpu_use(i);
		gpu_stream_end(seats[i].stream);
		gpu_free(data[i]);
		free(results[i]);
	}
}

/* ---- a stream that does not come ---- */

static void hold(void *word, cu_stream stream)
{
	struct cu_memop wait = {.operation = CU_MEMOP_WAIT_32,
		.address = (cu_ptr)(uintptr_t)word,
		.value = 1,
		.flags = CU_WAIT_GEQ};

	EQ(gpu_begin()->stream_batch_memop(stream, 1, &wait, 0), 0);
}

/* Rank 1 has made the call, and its stream has other work. Who shares the host with it
 * gives up in time, before ranks of other hosts do, which wait for both. */
static void late_neighbour(struct rank *rank)
{
	enum { WORDS = 50000 };
	uint64_t end = patient_us() + LIMIT_US;
	ncclResult_t error = ncclSuccess;
	struct seat *seat;
	struct crew crew;
	void *data, *word;

	setenv("WEFT_TIMEOUT_SEC", rank->rank ? "15" : "1", 1);
	crew_open(&crew, rank);
	seat = &crew.seats[0];
	data = gpu_alloc(WORDS * sizeof(uint32_t));
	word = gpu_alloc(sizeof(uint32_t));
	gpu_set(word, 0, 1, seat->stream);
	words_give(seat, data, WORDS, 0);
	gpu_wait(seat->stream);
	rank_meet(rank);
	if (rank->rank == 1)
		hold(word, seat->stream);
	OK(ncclAllReduce(data, data, WORDS, ncclUint32, ncclSum, seat->comm,
		(cudaStream_t)seat->stream));
	while (!error && patient_us() < end) {
		error_note_state(&error, seat->comm);
		usleep(POLL_US);
	}
	HOLDS(error == (rank->rank ? error : ncclTimeout) && error);
	if (rank->rank == 0)
		HOLDS(strstr(ncclGetLastError(seat->comm),
			"rank 0 has waited 1 s (WEFT_TIMEOUT_SEC) for rank 1"));
	rank_meet(rank);
	if (rank->rank == 1) {
		cu_stream other = gpu_stream();

		gpu_set(word, 1, 1, other);
		gpu_wait(other);
		gpu_stream_end(other);
	}
	gpu_wait(seat->stream);
	crew_abort(&crew);
	gpu_free(data);
	gpu_free(word);
}

static const struct part parts[] = {
	{"short tiles", "8x1", short_tiles, .value = 0},
	{"driven to host memory", "2x1", driven_to_host, .value = 0},
	{"late neighbour", "4x1", late_neighbour, .value = 0},
};

int main(int argc, char **argv)
{
	return parts_main(argc, argv, parts, sizeof(parts) / sizeof(*parts));
}
