/*
 * steps_world.h - the ranks of a communicator in one process, for tests of the staged
 * kernels: stages, words, buffers and launches, and nothing of comm/.
 */
#ifndef CUDA_STEPS_WORLD_H
#define CUDA_STEPS_WORLD_H

#include <stdbool.h>

#include "device_lists.h"
#include "exec/cuda/driver/driver.h"
#include "nccl.h"

enum { WORLD_RANKS = 8, WORLD_CHANNELS = 132, WORLD_KEPT = 512 };

/* What the driver's table has not. */
struct world_extra {
	cu_result (*launch_together)(cu_function function, unsigned grid_x,
		unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
		unsigned block_z, unsigned shared_bytes, cu_stream stream, void **params);
	cu_result (*capture_begin)(cu_stream stream, int mode);
	cu_result (*capture_end)(cu_stream stream, void **graph);
	cu_result (*graph_make)(void **runnable, void *graph, unsigned long long flags);
	cu_result (*graph_launch)(void *runnable, cu_stream stream);
	cu_result (*graph_runnable_destroy)(void *runnable);
	cu_result (*graph_destroy)(void *graph);
	cu_result (*event_elapsed)(float *ms, cu_event from, cu_event to);
};

extern const struct cuda_driver *driver;
extern struct world_extra extra;

/* Ends the process with TEST_SKIP when there is no GPU or there are no kernels. */
void world_need(void);

#define CUDA(call) cuda_expect((call), #call, __FILE__, __LINE__)
void cuda_expect(cu_result result, const char *text, const char *file, int line);

struct kept_steps {
	struct steps_key key;
	struct dev_steps *steps; /* owned */
	cu_ptr address;
};

struct world {
	uint32_t n;
	enum steps_codec codec;
	bool is_host;  /* stages and words are in host memory */
	bool is_loose; /* launches are ordinary: the caller knows that blocks fit */
	size_t stage_bytes;
	uint32_t channels_max;
	struct dev_end ends[WORLD_RANKS];
	cu_ptr ends_device;
	void *host[WORLD_RANKS];  /* owned, pinned: stage, then words */
	volatile uint32_t *abort; /* two words: the second is `trouble` */
	cu_ptr abort_device;
	cu_stream stream;
	struct kept_steps kept[WORLD_KEPT];
	uint32_t kept_count;
};

/* `stage_bytes` of one channel. */
void world_begin(struct world *world, uint32_t n, enum steps_codec codec, bool is_host,
	size_t stage_bytes);
void world_end(struct world *world);

/* Set all positions, and fill all stages with one 32-bit value. */
void world_set(struct world *world, uint64_t position, uint32_t fill);

struct world_call {
	const struct sched_kind *kind;
	uint32_t root, depth, channels, threads;
	size_t tile_bytes;
	ncclDataType_t type;
	int op;
	size_t count;
	struct dev_post posts[WORLD_RANKS];
};

/* Arguments of a launch for all ranks, with the buffers in posts. */
void world_args(
	struct world *world, const struct world_call *call, struct steps_args *args);
void world_launch(const struct world *world, const struct world_call *call,
	struct steps_args *args, cu_stream stream);

/* Until the stream has done it all; after many seconds it says where the ranks stand,
 * stops the kernels and ends the process. */
void world_wait(const struct world *world, const struct world_call *call);

/* What is called, to stderr. */
void world_call_print(const struct world_call *call);

#endif
