/*
 * coll.h - the collectives that are measured, one row each.
 *
 * A row says how many elements a size means, how to call the library, what each buffer
 * holds before and after, and how bytes and time become bandwidth. The engine
 * (measure.c) knows no collective by name.
 */
#ifndef TOOLS_PERF_COLL_H
#define TOOLS_PERF_COLL_H

#include <nccl.h>

#include "perf/data.h"

/* One collective on one rank. */
struct coll_shape {
	uint32_t rank, rank_count, root;
	size_t elem_bytes;
	size_t total; /* elements of the size asked for */
	size_t count; /* what the call is given, from coll_kind.count() */
};

struct coll_call {
	struct coll_shape shape;
	const void *send;
	void *recv;
	ncclDataType_t type;
	ncclRedOp_t op;
	ncclComm_t comm;
	cudaStream_t stream; /* NULL on host memory, and as the NULL stream */
	bool is_on_device;
};

/* Part `i` of a buffer; false past the last. */
typedef bool coll_part(
	const struct coll_shape *shape, uint32_t i, struct data_part *part);

struct coll_kind {
	const char *name;
	const char *redop; /* text of the column when there is no operator to choose */
	bool reduces, has_root;
	bool in_place_checked; /* false: in place is timed but means nothing */
	bool in_rounds;	       /* of swaps: a power of two of ranks, one per thread */
	size_t (*count)(const struct coll_shape *shape);
	size_t (*send_elems)(const struct coll_shape *shape);
	size_t (*recv_elems)(const struct coll_shape *shape);
	/* Where the send or receive buffer lies in the buffer both share in place. */
	size_t (*send_offset)(const struct coll_shape *shape);
	size_t (*recv_offset)(const struct coll_shape *shape);
	coll_part *send_part, *recv_part;
	/* Elements that count for algbw, and the factor from there to busbw. */
	size_t (*payload)(const struct coll_shape *shape);
	double (*factor)(uint32_t rank_count);
	ncclResult_t (*run)(const struct coll_call *call);
	/* Read what the environment says; false with a sentence. NULL: nothing to read.
	 */
	bool (*setup)(uint32_t rank_count, uint64_t min_bytes, uint64_t max_bytes);
};

/* "all_reduce", "hypercube", ..; NULL for none. */
const struct coll_kind *coll_find(const char *name);

extern const struct coll_kind coll_all_reduce, coll_reduce, coll_reduce_scatter;
extern const struct coll_kind coll_all_gather, coll_broadcast, coll_gather, coll_scatter,
	coll_hypercube;
extern const struct coll_kind coll_alltoall, coll_alltoallv, coll_sendrecv;

/* ---- pieces the rows share (coll.c) ---- */

/* The total as it is, or a rank's equal share of it in whole 16-byte units. */
size_t coll_count_whole(const struct coll_shape *shape);
size_t coll_count_share(const struct coll_shape *shape);

size_t coll_elems_one(const struct coll_shape *shape);	 /* count */
size_t coll_elems_all(const struct coll_shape *shape);	 /* count * ranks */
size_t coll_offset_none(const struct coll_shape *shape); /* 0 */
size_t coll_offset_rank(const struct coll_shape *shape); /* rank * count */
double coll_factor_one(uint32_t rank_count);		 /* 1 */
double coll_factor_share(uint32_t rank_count);		 /* (n - 1) / n */
coll_part coll_part_own; /* this rank's values, count of them */

#endif
