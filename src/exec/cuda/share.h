/*
 * share.h - device memory that processes lend each other.
 *
 * The owner exports an address: a handle of the whole allocation and where in it the
 * buffer lies. Another process imports that, which maps the allocation once; further
 * buffers in it cost a look in a table. One struct cuda_share belongs to one context,
 * which is current in every call, and to one thread at a time.
 *
 * Nothing tells an importer that memory was freed: its owner must notice, unexport and say
 * so, and the importer forgets and unmaps it.
 */
#ifndef EXEC_CUDA_SHARE_H
#define EXEC_CUDA_SHARE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "exec/cuda/driver.h"

struct cuda_share;

/* A buffer as others are told of it; the same bytes in every process. */
struct cuda_shared {
	struct cu_ipc_handle handle; /* of the allocation */
	uint64_t buffer_id;	     /* of the allocation: where.h */
	uint64_t base, base_bytes;   /* the allocation, in the owner's addresses */
	uint64_t offset, bytes;	     /* the buffer in it */
};

/* The driver is borrowed. */
enum err cuda_share_create(const struct cuda_driver *driver, struct cuda_share **share);

/* Unmaps all that was imported; the owner's memory stays as it is. */
void cuda_share_destroy(struct cuda_share *share);

/* ERR_ARGUMENT when it is not device memory or no handle can be had, as for memory of
 * cuMemCreate, of a pool, or managed: the caller takes another way. To know without a
 * complaint in the log, ask cuda_where() for is_shareable. */
enum err cuda_share_export(struct cuda_share *share, const void *ptr, size_t bytes,
	struct cuda_shared *shared);

/* The allocation was freed. */
void cuda_share_unexport(struct cuda_share *share, uint64_t buffer_id);

/* The buffer's address here, good until it is dropped. `process` tells the owners apart:
 * a pid where all ranks see the same pids, else any number of the caller's. The driver
 * opens no handle of its own process: threads use the address as it is. */
enum err cuda_share_import(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, cu_ptr *ptr);

/* Its owner has freed it. The address to be unmapped with the driver's ipc_close(), which
 * waits for all work of the context; 0 when it was not imported. */
cu_ptr cuda_share_forget(struct cuda_share *share, uint64_t process, uint64_t buffer_id);

#endif
