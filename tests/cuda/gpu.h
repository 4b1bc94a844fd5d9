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

#include "exec/cuda/driver/driver.h"

/* Ends the process with TEST_SKIP when there is no driver, no GPU, or no kernels in the
 * library. Asks in a child, so that the caller can still fork. */
void gpu_need(void);

/* This thread has a context from now on, of the device that its rank comes to. Any number
 * of times. */
const struct cuda_driver *gpu_begin(void);

/* How many devices ranks are spread over in turn: WEFT_TEST_DEVICES, else 1. And from now
 * on this thread works on the one that this rank comes to. */
int gpu_count(void);
void gpu_use(int rank);

cu_stream gpu_stream(void);
void gpu_stream_end(cu_stream stream);
void *gpu_alloc(size_t bytes);
void gpu_free(void *ptr);

/* In the stream's order; the reader waits for it. */
void gpu_write(void *to, const void *from, size_t bytes, cu_stream stream);
void gpu_read(void *to, const void *from, size_t bytes, cu_stream stream);
void gpu_wait(cu_stream stream);

/* Set `count` words, on the device, in the stream's order. */
void gpu_set(void *to, unsigned value, size_t count, cu_stream stream);

/* Has all of it been done? */
bool gpu_is_done(cu_stream stream);

/* Bytes of the device that nobody has. */
size_t gpu_free_bytes(void);

/* ---- what the library itself never calls ---- */

typedef struct CUgraph_st *gpu_driver_graph;
typedef struct CUgraphExec_st *gpu_driver_exec;
typedef struct CUmemPoolHandle_st *gpu_pool;

/* Capture modes. */
enum { GPU_CAPTURE_GLOBAL = 0, GPU_CAPTURE_THREAD_LOCAL = 1, GPU_CAPTURE_RELAXED = 2 };

/* Where memory is: on device 0. */
struct gpu_location {
	int type, id;
};
enum { GPU_LOCATION_DEVICE = 1, GPU_ALLOCATION_PINNED = 1, GPU_ACCESS_READ_WRITE = 3 };
enum { GPU_HANDLE_NONE = 0, GPU_HANDLE_FILE = 1 };

struct gpu_allocation {
	int type, handle_types;
	struct gpu_location location;
	void *unused;
	char flags[8];
};
_Static_assert(sizeof(struct gpu_allocation) == 32, "as long as the driver's");

struct gpu_access {
	struct gpu_location location;
	int flags;
};

struct gpu_pool_properties {
	int type, handle_types;
	struct gpu_location location;
	void *unused;
	size_t bytes_max;
	char more[56];
};
_Static_assert(sizeof(struct gpu_pool_properties) == 88, "as long as the driver's");

struct gpu_calls {
	cu_result (*capture_begin)(cu_stream stream, int mode);
	cu_result (*capture_end)(cu_stream stream, gpu_driver_graph *graph);
	cu_result (*instantiate)(
		gpu_driver_exec *exec, gpu_driver_graph graph, unsigned long long flags);
	cu_result (*graph_launch)(gpu_driver_exec exec, cu_stream stream);
	cu_result (*graph_destroy)(gpu_driver_graph graph);
	cu_result (*exec_destroy)(gpu_driver_exec exec);
	cu_result (*memset_d32_async)(
		cu_ptr to, unsigned value, size_t count, cu_stream stream);
	cu_result (*mem_info)(size_t *free, size_t *total);
	cu_result (*managed_alloc)(cu_ptr *ptr, size_t bytes, unsigned flags);
	cu_result (*alloc_async)(cu_ptr *ptr, size_t bytes, cu_stream stream);
	cu_result (*free_async)(cu_ptr ptr, cu_stream stream);
	cu_result (*pool_create)(
		gpu_pool *pool, const struct gpu_pool_properties *wanted);
	cu_result (*pool_alloc)(
		cu_ptr *ptr, size_t bytes, gpu_pool pool, cu_stream stream);
	cu_result (*pool_destroy)(gpu_pool pool);
	cu_result (*granularity)(
		size_t *bytes, const struct gpu_allocation *wanted, int option);
	cu_result (*create)(uint64_t *handle, size_t bytes,
		const struct gpu_allocation *wanted, unsigned long long flags);
	cu_result (*release)(uint64_t handle);
	cu_result (*reserve)(cu_ptr *ptr, size_t bytes, size_t alignment, cu_ptr wanted,
		unsigned long long flags);
	cu_result (*unreserve)(cu_ptr ptr, size_t bytes);
	cu_result (*map)(cu_ptr ptr, size_t bytes, size_t offset, uint64_t handle,
		unsigned long long flags);
	cu_result (*unmap)(cu_ptr ptr, size_t bytes);
	cu_result (*access)(
		cu_ptr ptr, size_t bytes, const struct gpu_access *wanted, size_t count);
};

/* After gpu_begin(). */
const struct gpu_calls *gpu_calls(void);

/* ---- graphs ---- */

struct gpu_graph {
	gpu_driver_graph graph;
	gpu_driver_exec exec;
};

/* Between the two; then gpu_graph_make() makes it ready to run. No thread may make one
 * while another captures in the global mode. gpu_captured() does the last two. */
void gpu_capture(cu_stream stream, int mode);
struct gpu_graph gpu_capture_end(cu_stream stream);
void gpu_graph_make(struct gpu_graph *graph);
struct gpu_graph gpu_captured(cu_stream stream);
void gpu_replay(const struct gpu_graph *graph, cu_stream stream);
void gpu_graph_end(struct gpu_graph *graph);

/* ---- checks ---- */

/* Is it the device's memory? */
bool gpu_owns(const void *ptr);

/* The call to the driver succeeded. */
#define CUDA(call) gpu_check((call), #call, __FILE__, __LINE__)
void gpu_check(cu_result result, const char *text, const char *file, int line);

/* The newest failure of this thread has a sentence with `part` in it. */
void gpu_sentence(const char *part);

#endif
