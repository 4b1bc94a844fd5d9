/*
 * copy_2d.h - the driver's way to tell a copy by rows, as its header has it: for what
 * stands in for the driver.
 */
#ifndef CUDA_COPY_2D_H
#define CUDA_COPY_2D_H

#include <stddef.h>
#include <stdint.h>

enum { COPY_HOST = 1, COPY_DEVICE = 2 };

struct copy_2d {
	size_t from_x, from_y;
	int from_type;
	const void *from_host;
	uint64_t from_device;
	void *from_array;
	size_t from_pitch, to_x, to_y;
	int to_type;
	void *to_host;
	uint64_t to_device;
	void *to_array;
	size_t to_pitch, row_bytes, rows;
};

#endif
