/*
 * Calls that do not fit together, on host memory: a row for each call, a column for each
 * mistake of the last rank, each of a few sizes, by itself and on a stream. Every rank
 * that takes part is told, in a sentence that has both calls, and nobody's patience
 * (WEFT_TIMEOUT_SEC) ends it: there is none. How long it took is shown.
 */
#include <stdlib.h>
#include <unistd.h>

#include "mistakes.h"
#include "ranks.h"
#include "weft.h"

enum { RANKS_HERE_MAX = 4, WORDS_MAX = 1 << 18 };

/* Words of the page. */
enum { AT_US };

struct side {
	struct rank *rank;
	ncclComm_t comm;
	cudaStream_t stream; /* NULL: calls are made by themselves */
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
		.stream = side->stream};

	return request_call(request, &place);
}

/* Make a call, and see it end. */
static void side_call(struct side *side, const struct request *request)
{
	error_note(&side->error, call(side, request));
	if (side->stream)
		error_note(&side->error, weftStreamSynchronize(side->stream));
	error_note_state(&side->error, side->comm);
}

/* Both calls are named. Where one is a message, the other may be the next call: a
 * broadcast is over for its root, and a message for who sent it. */
static void sentence_check(struct side *side, const struct request *requests[2])
{
	const char *sentence = ncclGetLastError(side->comm);
	bool is_mixed = (requests[0]->kind == MESSAGE) != (requests[1]->kind == MESSAGE);

	for (int i = 0; i < 2; i++) {
		bool is_told = strstr(sentence, kind_names[requests[i]->kind]) ||
			       (is_mixed && strstr(sentence, kind_names[ALL_REDUCE])) ||
			       (requests[i]->kind == MESSAGE &&
				       (strstr(sentence, "send") ||
					       strstr(sentence, "receive")));

		if (!is_told)
			fprintf(stderr, "not both calls: %s\n", sentence);
		HOLDS(is_told);
	}
}

/* Where all know who sends to whom, nobody has to call again for others to be told. A
 * rank that waits for nobody is told in its next call; between hosts, who sends for the
 * first time waits to be let in, which is done in a call. */
static void mistake_make(struct side *side, const struct request *right,
	const struct request *wrong, enum mistake mistake)
{
	static const struct request next = {ALL_REDUCE, 2, ncclInt64, ncclSum, 0};
	struct rank *rank = side->rank;
	bool is_odd = rank->rank == rank->rank_count - 1;

	rank_meet(rank);
	if (rank->rank == 0)
		atomic_store(&rank->page->words[AT_US], now_us());
	rank_meet(rank);
	side_call(side, is_odd ? wrong : right);
	if (mistake == ORDER && !side->error)
		side_call(side, is_odd ? right : wrong);
	if (mistake <= OPERATOR)
		rank_meet(rank);
	if (!side->error)
		side_call(side, &next);
	rank_raise(rank, now_us() - atomic_load(&rank->page->words[AT_US]));
	GIVES(side->error, ncclInvalidUsage);
	if (right->kind != MESSAGE || is_odd || rank->rank == 0)
		sentence_check(side, (const struct request *[]){right, wrong});
}

struct matrix {
	size_t words;
	bool has_stream;
};

static void cell(struct side *side, int kind, enum mistake mistake, size_t words)
{
	struct request right = {kind, words, ncclInt32, ncclSum, 0}, wrong;
	struct rank *rank = side->rank;

	if (!request_wrong(&right, mistake, &wrong) ||
		(mistake == ORDER && kind == MESSAGE)) /* those would fit */
		return;
	rank_context("rank %d of %d, %s of %zu with another %s%s", rank->rank,
		rank->rank_count, kind_names[kind], words, mistake_names[mistake],
		side->stream ? ", on a stream" : "");
	side->error = ncclSuccess;
	side->comm = rank_comm(rank, kind * MISTAKES + (int)mistake);
	side_call(side, &right); /* as it should be */
	OK(side->error);
	mistake_make(side, &right, &wrong, mistake);
	rank_meet(rank);
	OK(ncclCommAbort(side->comm));
}

static void matrix_main(struct rank *rank)
{
	const struct matrix *matrix = rank->argument;
	size_t bytes = RANKS_HERE_MAX * matrix->words * sizeof(uint64_t);
	struct side side = {
		.rank = rank, .in = calloc(1, bytes), .out = calloc(1, bytes)};

	HOLDS(side.in && side.out);
	if (matrix->has_stream)
		OK(weftStreamCreate(&side.stream));
	for (int kind = 0; kind < KINDS; kind++)
		for (int m = 0; m < MISTAKES; m++)
			cell(&side, kind, (enum mistake)m, matrix->words);
	if (side.stream)
		weftStreamDestroy(side.stream); /* its calls have failed */
	free(side.in);
	free(side.out);
}

int main(int argc, char **argv)
{
	static const size_t words[] = {2, 3000, WORDS_MAX};
	static const int shapes[][2] = {{2, 1}, {2, 2}, {4, 1}, {1, 2}};
	bool lean = has_option(argc, argv, "--lean");

	for (size_t i = 0; i < 4 * 3 * 2; i++) {
		const int *shape = shapes[i / 6];
		struct matrix matrix = {words[i / 2 % 3], i % 2};
		struct ranks ranks = {.processes = shape[0],
			.threads = shape[1],
			.function = matrix_main,
			.argument = &matrix};

		if (lean && i % 5)
			continue;
		ranks_run(&ranks);
		printf("%d x %d, %zu words%s: told after at most %.1f ms\n", shape[0],
			shape[1], matrix.words, matrix.has_stream ? ", streams" : "",
			(double)ranks.result / 1000);
		fflush(stdout);
	}
	return 0;
}
