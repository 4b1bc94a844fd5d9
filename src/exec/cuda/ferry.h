/*
 * ferry.h - small buffers to berths and back by one kernel, which waits for the network.
 *
 * A copy engine takes 6 us for a copy, and a stream some more from one to the next; a
 * kernel that writes and reads the berth itself does all of it in 8. But it holds the GPU
 * while it waits, so it is only for where nobody else needs that: no other process has
 * the GPU, or an MPS server shares it.
 */
#ifndef EXEC_CUDA_FERRY_H
#define EXEC_CUDA_FERRY_H

#include "exec/cuda/berth.h"
#include "exec/cuda/engine.h"
#include "exec/cuda/lists/ferry_abi.h"

struct cuda_ferry;

/* May a kernel of this rank's wait on its GPU, as far as the ranks show theirs? */
bool cuda_ferry_may(
	const struct cuda_hello *const *hellos, uint32_t rank_count, uint32_t rank);

/* In the context that is current, where it is used and closed, too. */
enum err cuda_ferry_open(struct cuda_ferry **ferry);
void cuda_ferry_close(struct cuda_ferry *ferry); /* NULL is fine */

/* A buffer and where it is in the berth; no bytes: it stays where it is. */
struct ferry_cargo {
	const void *data;
	size_t at, bytes;
};

/* One call more for the next launch. False: there is no room for it. */
bool cuda_ferry_load(struct ferry_args *args, const struct cuda_berth *berth,
	struct ferry_cargo in, struct ferry_cargo out);

enum err cuda_ferry_run(
	const struct cuda_ferry *ferry, struct ferry_args *args, cu_stream stream);

#endif
