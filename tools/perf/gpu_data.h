/*
 * gpu_data.h - filling and checking buffers of a GPU there, by kernels of our own.
 *
 * They compute what data.h's functions do, from the same source, so that nothing of a
 * check goes through host memory but the number of wrong elements. Belongs to a thread
 * with a GPU (device.h).
 */
#ifndef TOOLS_PERF_GPU_DATA_H
#define TOOLS_PERF_GPU_DATA_H

#include "perf/data.h"

/* The kernels as nvcc made them; 0 bytes in a build without it. */
extern const unsigned char gpu_data_image[];
extern const size_t gpu_data_image_bytes;

struct gpu_data {
	void *module, *fill, *check;
	uint64_t wrong; /* owned: a word on the device; 0 when closed */
};

/* Make ready on this thread's GPU. NULL, or in half a sentence why that cannot be: then
 * buffers are filled and checked on the host. */
const char *gpu_data_open(struct gpu_data *data);
void gpu_data_close(struct gpu_data *data);

/* data_fill() of all of a part, in the stream's order. */
bool gpu_data_fill(const struct gpu_data *data, const struct data_rule *rule,
	const struct data_part *part, void *buffer, void *stream);

/* Begin to count, add data_count_wrong() of all of a part, and wait for the sum; in the
 * order of one stream. */
bool gpu_data_count(const struct gpu_data *data, void *stream);
bool gpu_data_check(const struct gpu_data *data, const struct data_rule *rule,
	const struct data_part *part, const void *buffer, void *stream);
bool gpu_data_counted(const struct gpu_data *data, void *stream, uint64_t *wrong);

#endif
