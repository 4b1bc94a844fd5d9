/*
 * kinds.h - memory of every kind a program may hand to a collective.
 */
#ifndef CUDA_KINDS_H
#define CUDA_KINDS_H

#include "gpu.h"

enum kind {
	KIND_DEVICE,	  /* cuMemAlloc */
	KIND_NCCL,	  /* ncclMemAlloc */
	KIND_ASYNC,	  /* cuMemAllocAsync, the device's own pool */
	KIND_POOL,	  /* a pool whose memory may be exported */
	KIND_VMM,	  /* cuMemCreate with a file handle */
	KIND_VMM_PRIVATE, /* cuMemCreate without */
	KIND_MANAGED,
	KIND_PINNED,	 /* cuMemHostAlloc */
	KIND_REGISTERED, /* malloc and cuMemHostRegister */
	KIND_PAGEABLE,	 /* malloc */
	KIND_COUNT
};

const char *kind_name(enum kind kind);

struct memory {
	enum kind kind;
	size_t bytes; /* rounded up where the kind wants that */
	void *ptr;
	uint64_t handle;
	gpu_pool pool;
	cu_stream stream;
};

/* Allocation and release of pools are in the order of `stream`; both wait for it. */
struct memory memory_open(enum kind kind, size_t bytes, cu_stream stream);
void memory_close(struct memory *memory);

#endif
