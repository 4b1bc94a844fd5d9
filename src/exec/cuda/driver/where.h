/*
 * where.h - what an address is: the program's own memory, or a GPU's.
 */
#ifndef EXEC_CUDA_DRIVER_WHERE_H
#define EXEC_CUDA_DRIVER_WHERE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "exec/cuda/driver/driver.h"

struct cuda_where {
	bool is_device;	    /* else host memory, pinned or not, and the rest is 0 */
	bool is_managed;    /* kernels of every GPU reach it */
	bool is_shareable;  /* the driver would let another process open it, share.h */
	bool is_by_fd;	    /* the same by a file descriptor: memory of cuMemCreate */
	int device;	    /* its ordinal; negative: managed memory of no device */
	cu_context context; /* NULL: of no context, as memory from cuMemCreate */
	/* Never given twice in a process: memory freed and allocated again at the same
	 * address has another. */
	uint64_t buffer_id;
	cu_ptr base; /* of the allocation; of the block for cuMemCreate */
	size_t bytes;
	/* Nothing after these bytes belongs to it. False for memory of cuMemCreate, of
	 * which several blocks can be mapped one behind the other. */
	bool is_bounded;
	/* What is really mapped there, and shared when the allocation is: small ones lie
	 * together in a block. An old driver does not tell: then it is the allocation. */
	uint64_t block_id;
	cu_ptr block;
	size_t block_bytes;
};

/* Managed memory counts as the device's, since kernels reach all of it. An address the
 * driver knows nothing of is host memory, NULL too. Wants no context. */
enum err cuda_where(
	const struct cuda_driver *driver, const void *ptr, struct cuda_where *where);

/* Are so many bytes at `ptr` all in its allocation? True, too, where nobody knows. */
bool cuda_where_holds(const struct cuda_where *where, const void *ptr, size_t bytes);

/* .. in its block, which is what another process maps? */
bool cuda_where_is_one_block(
	const struct cuda_where *where, const void *ptr, size_t bytes);

/* Is `where` still what the address is? Quicker than to ask again. */
bool cuda_where_is_same(const struct cuda_driver *driver, const void *ptr,
	const struct cuda_where *where);

/* ERR_ARGUMENT when a buffer that is sent, or received into, goes beyond its allocation.
 */
enum err cuda_where_check(
	const struct cuda_where *where, const void *ptr, size_t bytes, bool is_sent);

#endif
