/*
 * device.h - buffers on a GPU, for the *_perf programs.
 *
 * The driver is found at run time (exec/cuda/driver). Memory itself comes from
 * ncclMemAlloc(), which gives the current device's. What fails says why on stderr.
 */
#ifndef TOOLS_PERF_DEVICE_H
#define TOOLS_PERF_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True for the driver's 0; else what was tried, and its error, are said. */
bool device_is_well(int result, const char *what);

struct device_facts {
	uint32_t count;	     /* GPUs; 0: none that the library works on */
	uint64_t free_bytes; /* of the first; the others are taken to be like it */
};

/* What GPUs there are. Asked in a child, so that the caller can still fork. */
struct device_facts device_look(void);

/* This thread works on the GPU with that number, counted round. */
bool device_open(uint32_t number);

/* A stream of its own. NULL: there is none to be had. */
void *device_stream_open(void);
void device_stream_close(void *stream);

/* Until all that is on the stream is done. */
bool device_wait(void *stream);

/* In the stream's order: bytes of zero, and within device memory. */
bool device_zero(void *at, size_t bytes, void *stream);
bool device_copy(void *to, const void *from, size_t bytes, void *stream);

/* Between host and device memory, when the stream is through; done when they return. */
bool device_write(void *to, const void *from, size_t bytes, void *stream);
bool device_read(void *to, const void *from, size_t bytes, void *stream);

/* What is put on the stream in between becomes a graph, which is run as often as one
 * likes. */
bool device_capture(void *stream);
void *device_captured(void *stream); /* NULL: it failed */
bool device_replay(void *graph, void *stream);
void device_graph_close(void *graph);

#endif
