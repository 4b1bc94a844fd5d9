/*
 * share.h - device memory that processes lend each other.
 *
 * The owner exports an address: a handle of its block and where in it the buffer lies.
 * Another process imports that, which maps the block once, whoever in the process asks,
 * because the driver opens a block only once; further buffers in it cost a look in a
 * table. One struct cuda_share belongs to one context, which is current in every call,
 * and to one thread at a time.
 *
 * Nothing tells an importer that memory was freed: its owner must notice, unexport and
 * say so, and the importer forgets and unmaps it.
 */
#ifndef EXEC_CUDA_DRIVER_SHARE_H
#define EXEC_CUDA_DRIVER_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "exec/cuda/driver/driver.h"

struct cuda_share;

/* A buffer as others are told of it; the same bytes in every process. */
struct cuda_shared {
	struct cu_ipc_handle handle; /* of an allocation in the block */
	uint64_t handle_offset;	     /* where that begins in it */
	int64_t fd; /* or the owner's descriptor of the block; negative: there is none */
	uint64_t block_id;	     /* where.h */
	uint64_t block, block_bytes; /* in the owner's addresses */
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

/* The block was freed. */
void cuda_share_unexport(struct cuda_share *share, uint64_t block_id);

/* The buffer's address here, good until it is forgotten. `process` tells the owners
 * apart: its pid. The driver opens no handle of its own process: threads use the address
 * as it is. */
enum err cuda_share_import(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, cu_ptr *ptr);

/* Can descriptors of that process be taken over? Tried with one that it has. */
bool cuda_share_can_pass(uint64_t process, int fd);

/* Its owner has freed it. It stays mapped until somebody tidies. */
void cuda_share_forget(struct cuda_share *share, uint64_t process, uint64_t block_id);

/* Unmap what nobody in the process uses. Waits for all work of the context, which may
 * itself be waiting for something: not for a thread that others wait for. */
void cuda_share_tidy(const struct cuda_share *share);

#endif
