/*
 * cpu_streams.h - streams and events of the driver that runs on the CPU (cpu_cuda.c).
 *
 * As it is, a stream does at once what it is given, in the calling thread, and waits
 * there. With CPU_CUDA_ASYNC in the environment a thread does it, as a GPU would, and
 * calls only enqueue; then others can be told to stop while a stream waits. Such a
 * thread is a channel. Every stream has one of its own, unless CPU_CUDA_CHANNELS says how
 * many there are in a context: what waits on a stream then keeps back whatever comes
 * behind it on the same channel, on other streams too, whatever their priority. Every
 * context has channels of its own (cpu_devices.h).
 *
 * A stream belongs to the context that was current when it was made; the NULL stream and
 * the one that each thread has are there once in every context. A kernel goes to a stream
 * of its own context only, an event is recorded on one of its own; copies go anywhere,
 * and any stream can wait for any event.
 *
 * A stream can be captured into a graph, by itself and without events.
 *
 * A process that sets CPU_CUDA_STOP to "launch" or "memop" is stopped in the next call of
 * that kind, before anything is enqueued. To stop it from outside would stop a kernel in
 * the middle, which on a GPU runs on.
 */
#ifndef CUDA_CPU_STREAMS_H
#define CUDA_CPU_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu_devices.h"

bool streams_are_async(void);

/* Do it in the stream's order; it gets a copy of the argument and returns a driver's
 * code, which a stream that works by itself has nobody to give to. */
typedef int stream_work(void *argument);
int stream_give(
	void *stream, stream_work *work, const void *argument, size_t argument_bytes);

/* Is what the stream is given kept for a graph? */
bool is_captured(void *stream);

/* In a call of this kind. */
void stop_if_wanted(const char *kind);

/* The one that the stream belongs to. */
struct context *stream_context(void *stream);

/* May what runs in this context touch what lies there (cpu_cuda.c)? */
bool memory_is_reached(const struct context *context, uint64_t ptr);

/* Until all that was given is done: one stream's, or a context's. */
void stream_wait(void *stream);
void streams_wait(const struct context *context);

#endif
