/*
 * ferry_abi.h - what the kernel is given that carries small buffers to berths and back.
 *
 * Read by C and by CUDA C. Addresses are the device's.
 */
#ifndef EXEC_CUDA_LISTS_FERRY_ABI_H
#define EXEC_CUDA_LISTS_FERRY_ABI_H

#include <stdint.h>

enum {
	FERRY_TRIPS_MAX = 8,
	FERRY_BYTES_MAX = 64 << 10, /* of a buffer: beyond it copies are quicker */
	FERRY_THREADS = 1024,	    /* of its one block */
	FERRY_THREADS_FEW = 128, /* .. when all buffers are of FERRY_FEW bytes at most */
	FERRY_FEW = 2 << 10
};

/* One call. Words are those of a berth; what has no bytes does not travel. */
struct dev_trip {
	uint64_t in, in_berth, out_berth, out;
	uint32_t in_bytes, out_bytes;
	uint64_t ready_at, done_at, gone_at;
	uint32_t ready; /* what the kernel tells when IN is there .. */
	uint32_t done;	/* .. then waits for, or for more .. */
	uint32_t gone;	/* .. and tells in the end */
	uint32_t unused;
};

struct ferry_args {
	uint32_t count, unused;
	struct dev_trip trips[FERRY_TRIPS_MAX];
};

#endif
