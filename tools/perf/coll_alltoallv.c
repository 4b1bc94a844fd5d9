/*
 * alltoallv: every rank has a different amount for every other.
 *
 * Rank i gives rank j a share of the size: a blend of the uniform 1/n and one that grows
 * with the distance (j - i) mod n, by NCCL_TESTS_ALLTOALLV_SPREAD (1: distance only).
 * Each row and each column of that matrix adds up to the same. Or the matrix comes, in
 * bytes, from NCCL_TESTS_ALLTOALLV_MATRIX_FILE.
 */
#include <stdio.h>
#include <stdlib.h>

#include "perf/coll.h"

/* Written by setup() before the workers start, then only read. */
static double spread = 1;
static uint64_t *matrix; /* bytes [src * matrix_ranks + dst]; NULL: computed */
static uint32_t matrix_ranks;

static double distance_share(const struct coll_shape *shape, uint32_t src, uint32_t dst)
{
	double n = shape->rank_count;
	double distance = (dst + shape->rank_count - src) % shape->rank_count;
	double by_distance = n > 1 ? distance / (n * (n - 1) / 2) : 1;

	return (1 - spread) / n + spread * by_distance;
}

/* Elements from src to dst, in whole 16-byte units. */
static size_t amount(const struct coll_shape *shape, uint32_t src, uint32_t dst)
{
	size_t unit = 16 / shape->elem_bytes;
	size_t total = shape->count * shape->rank_count;

	if (matrix)
		return matrix[src * matrix_ranks + dst] / 16 * unit;
	return (size_t)(distance_share(shape, src, dst) * (double)total) / unit * unit;
}

/* Where src's block for dst begins in src's send buffer. */
static size_t sent_before(const struct coll_shape *shape, uint32_t src, uint32_t dst)
{
	size_t offset = 0;

	for (uint32_t i = 0; i < dst; i++)
		offset += amount(shape, src, i);
	return offset;
}

static size_t received_before(const struct coll_shape *shape, uint32_t src, uint32_t dst)
{
	size_t offset = 0;

	for (uint32_t i = 0; i < src; i++)
		offset += amount(shape, i, dst);
	return offset;
}

static bool part_all(const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	size_t elems = sent_before(shape, shape->rank, shape->rank_count);

	*part = (struct data_part){PART_COPY, shape->rank, 0, elems, 0};
	return i == 0;
}

static bool part_for_me(
	const struct coll_shape *shape, uint32_t i, struct data_part *part)
{
	if (i >= shape->rank_count)
		return false;
	*part = (struct data_part){PART_COPY, i, received_before(shape, i, shape->rank),
		amount(shape, i, shape->rank), sent_before(shape, i, shape->rank)};
	return true;
}

/* The busiest rank's larger direction. */
static size_t payload(const struct coll_shape *shape)
{
	size_t most = 0, elems;

	for (uint32_t rank = 0; rank < shape->rank_count; rank++) {
		elems = sent_before(shape, rank, shape->rank_count);
		most = elems > most ? elems : most;
		elems = received_before(shape, shape->rank_count, rank);
		most = elems > most ? elems : most;
	}
	return most;
}

/* A pair with nothing to exchange makes no call, on either side. */
static ncclResult_t enqueue_pair(const struct coll_call *call, uint32_t peer)
{
	const struct coll_shape *shape = &call->shape;
	size_t give = amount(shape, shape->rank, peer),
	       take = amount(shape, peer, shape->rank);
	const char *from = (const char *)call->send +
			   sent_before(shape, shape->rank, peer) * shape->elem_bytes;
	char *to = (char *)call->recv +
		   received_before(shape, peer, shape->rank) * shape->elem_bytes;
	ncclResult_t result = ncclSuccess;

	if (give)
		result = ncclSend(
			from, give, call->type, (int)peer, call->comm, call->stream);
	if (!result && take)
		result = ncclRecv(
			to, take, call->type, (int)peer, call->comm, call->stream);
	return result;
}

static ncclResult_t run(const struct coll_call *call)
{
	ncclResult_t result = ncclGroupStart();

	for (uint32_t peer = 0; !result && peer < call->shape.rank_count; peer++)
		result = enqueue_pair(call, peer);
	return result ? result : ncclGroupEnd();
}

static bool read_matrix(const char *path, double scale)
{
	FILE *file = fopen(path, "re");
	size_t cells = 0, capacity = 0;
	double value;

	if (!file) {
		fprintf(stderr, "cannot read the matrix %s: %m\n", path);
		return false;
	}
	while (fscanf(file, "%lf", &value) == 1 && value >= 0) {
		if (cells == capacity) {
			capacity = capacity ? 2 * capacity : 256;
			matrix = realloc(matrix, capacity * sizeof(*matrix));
			if (!matrix)
				abort();
		}
		matrix[cells++] = (uint64_t)(value * scale);
	}
	fclose(file);
	while ((size_t)matrix_ranks * matrix_ranks < cells)
		matrix_ranks++;
	if (!cells || (size_t)matrix_ranks * matrix_ranks != cells) {
		fprintf(stderr, "the matrix %s is not square: %zu numbers\n", path,
			cells);
		return false;
	}
	return true;
}

static bool matrix_fits(uint32_t rank_count, uint64_t max_bytes)
{
	if (matrix_ranks < rank_count) {
		fprintf(stderr, "the matrix has %u rows, there are %u ranks\n",
			matrix_ranks, rank_count);
		return false;
	}
	for (uint32_t i = 0; i < rank_count; i++) {
		uint64_t row = 0, column = 0;

		for (uint32_t j = 0; j < rank_count; j++) {
			row += matrix[i * matrix_ranks + j];
			column += matrix[j * matrix_ranks + i];
		}
		if (row <= max_bytes && column <= max_bytes)
			continue;
		fprintf(stderr,
			"rank %u exchanges %llu bytes: give -b and -e at least that\n", i,
			(unsigned long long)(row > column ? row : column));
		return false;
	}
	return true;
}

static bool setup(uint32_t rank_count, uint64_t min_bytes, uint64_t max_bytes)
{
	const char *path = getenv("NCCL_TESTS_ALLTOALLV_MATRIX_FILE");
	const char *scale = getenv("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE");
	const char *text = getenv("NCCL_TESTS_ALLTOALLV_SPREAD");

	if (text)
		spread = atof(text);
	if (spread < 0 || spread > 1) {
		fprintf(stderr,
			"NCCL_TESTS_ALLTOALLV_SPREAD=%s: give a number from 0 to 1\n",
			text);
		return false;
	}
	if (!path)
		return true;
	if (min_bytes != max_bytes) {
		fprintf(stderr, "a matrix gives one size: -b and -e must be equal\n");
		return false;
	}
	return read_matrix(path, scale ? atof(scale) : 1) &&
	       matrix_fits(rank_count, max_bytes);
}

const struct coll_kind coll_alltoallv = {
	.name = "alltoallv",
	.redop = "none",
	.count = coll_count_share,
	.send_elems = coll_elems_all,
	.recv_elems = coll_elems_all,
	.send_offset = coll_offset_none,
	.recv_offset = coll_offset_none,
	.send_part = part_all,
	.recv_part = part_for_me,
	.payload = payload,
	.factor = coll_factor_share,
	.run = run,
	.setup = setup,
};
