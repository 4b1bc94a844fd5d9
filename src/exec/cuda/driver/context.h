/*
 * context.h - which CUDA context a thread works in.
 *
 * What the program shows decides. A context that is current is taken. Without one, a
 * program that has begun to use CUDA and has its runtime loaded means the runtime's
 * current device, which is device 0 before cudaSetDevice(): the runtime makes a context
 * only when it needs one, and frameworks connect before that. NCCL takes it the same way.
 * A program that shows neither works on host memory until it brings device memory.
 */
#ifndef EXEC_CUDA_DRIVER_CONTEXT_H
#define EXEC_CUDA_DRIVER_CONTEXT_H

#include "base/err.h"
#include "exec/cuda/driver/driver.h"

/* This thread's, which is current then; NULL when the program shows none. A context taken
 * from the runtime is kept, as the runtime keeps it. */
enum err context_of_thread(const struct cuda_driver *driver, cu_context *context);

/* .. for a device that is named: this thread's where it is that device's, else the
 * device's primary one. ERR_CUDA when there is no such device. */
enum err context_of_device(
	const struct cuda_driver *driver, int ordinal, cu_context *context);

/* The one that device memory belongs to, or the primary one of its device. */
enum err context_of_memory(
	const struct cuda_driver *driver, const void *ptr, cu_context *context);

#endif
