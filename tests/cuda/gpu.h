/*
 * gpu.h - a GPU for tests whose ranks are threads or processes (multi/ranks.h).
 *
 * Everything goes through a stream of the test's own, which the NULL stream is not
 * ordered with. Nothing here waits for the whole context: another thread's collective
 * may be under way.
 */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "exec/cuda/driver.h"

/* Ends the process with TEST_SKIP when there is no driver, no GPU, or no kernels in the
 * library. Asks in a child, so that the caller can still fork. */
void gpu_need(void);

/* This thread has a context from now on. Any number of times. */
const struct cuda_driver *gpu_begin(void);

cu_stream gpu_stream(void);
void gpu_stream_end(cu_stream stream);
void *gpu_alloc(size_t bytes);
void gpu_free(void *ptr);

/* In the stream's order; the reader waits for it. */
void gpu_write(void *to, const void *from, size_t bytes, cu_stream stream);
void gpu_read(void *to, const void *from, size_t bytes, cu_stream stream);
void gpu_wait(cu_stream stream);

/* Is it the device's memory? */
bool gpu_owns(const void *ptr);

/* The call to the driver succeeded. */
#define CUDA(call) gpu_check((call), #call, __FILE__, __LINE__)
void gpu_check(cu_result result, const char *text, const char *file, int line);

/* The newest failure of this thread has a sentence with `part` in it. */
void gpu_sentence(const char *part);

#endif
