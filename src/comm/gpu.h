/*
 * gpu.h - a communicator's way to device memory; nothing in a process without CUDA.
 */
#ifndef COMM_GPU_H
#define COMM_GPU_H

#include "comm/comm.h"
#include "exec/cuda/engine.h"

/* Before the ranks meet, and after, when host memory works. That it does not work with
 * device memory is no failure: the reason is told to whoever brings some. */
void gpu_prepare(struct comm *comm, struct cuda_hello *hello);
enum err gpu_connect(struct comm *comm, const struct cuda_hello *const *hellos);

/* The CUDA context this thread works in, for a thread that works on its behalf; it is
 * current then. NULL: the program shows none, or it cannot be had. */
void *gpu_context(void);
void gpu_context_use(void *context);

/* After another's was used: the thread has its own again, or none as before (NULL). */
void gpu_context_back(void *context);

/* .. which this communicator's GPU works in, and a child's does; NULL: it has none. */
void *gpu_context_of(const struct comm *comm);

/* .. of the rank that is to work on this device of a list of `count`. Without a list
 * that is its own number, and where there are not as many all share the current one. */
struct gpu_listed {
	const int *devices; /* NULL: no list */
	int count, at;
};
enum err gpu_context_listed(const struct gpu_listed *listed, void **context);

/* Do calls go through the GPU? All of a communicator's do, or none, because a rank does
 * not know what memory the others bring. Where ranks had shown no GPU when they met, none
 * do until device memory comes. ERR_USAGE when GPUs cannot be used and memory is one's.
 */
enum err gpu_takes(struct comm *comm, const void *in, const void *out, bool *takes);

/* Is CUDA in the process now? */
bool gpu_look(struct comm *comm);

/* Did it work for all? They must not go different ways. On host memory, by all ranks. */
enum err gpu_vote(struct comm *comm, bool *all);

/* Its ranks are on several hosts: device memory is relayed through host memory. */
void gpu_relay(struct comm *comm, const struct cuda_hello *const *hellos);

/* It will be on no GPU, for this reason unless there is one already. */
void gpu_give_up(struct comm *comm, const char *reason);

/* ERR_USAGE, with the reason why this communicator is on no GPU. */
enum err gpu_refused(const struct comm *comm);

/* The GPUs meet, all ranks' in the same call, because this device memory has come. */
enum err gpu_meet(struct comm *comm, const void *ptr);

/* Enqueue calls on their CUDA streams: in order for each communicator, side by side for
 * several. */
enum err gpu_submit(const struct comm_call *calls, uint32_t count);

/* How a collective on device memory is run. ERR_USAGE when the user leaves no way. */
enum err gpu_plan(const struct comm_call *call, struct device_plan *plan);

/* Where every rank's process sees device memory of ours: addresses[rank]. ERR_ARGUMENT
 * when it is not device memory, goes beyond its allocation, or cannot be shared. */
enum err gpu_show(struct comm *comm, const void *ptr, size_t bytes, uint64_t *addresses);

/* What the device found wrong since. */
enum err gpu_check(struct comm *comm);

/* Stop what runs there, wait for it, and free. */
void gpu_abort(struct comm *comm);
void gpu_free(struct comm *comm);

#endif
