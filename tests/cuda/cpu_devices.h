/*
 * cpu_devices.h - the devices of the driver that runs on the CPU (cpu_cuda.c), and their
 * contexts.
 *
 * CPU_CUDA_DEVICES says how many there are, one as it is. All of them can reach each
 * other's memory, unless CPU_CUDA_PEERS names the pairs that do ("0-1 2-3", or "none").
 * As with a real driver that is not enough: a context reaches another device's memory
 * after cuCtxEnablePeerAccess(), and memory of another process where it was opened.
 */
#ifndef CUDA_CPU_DEVICES_H
#define CUDA_CPU_DEVICES_H

#include <stdbool.h>

enum { DEVICES_MAX = 8, CONTEXTS_MAX = 2 * DEVICES_MAX };

/* A device has its own, and one that is made beside it. */
struct context {
	int device;
	bool is_beside;
	unsigned reached; /* devices it has access to, a bit each; under the lock */
};

int device_count(void);
bool devices_are_peers(int one, int other);

/* Of this thread; NULL: none. */
struct context *context_now(void);

/* .. or the first device's own, for calls that need none. */
struct context *context_here(void);

/* Below CONTEXTS_MAX. */
unsigned context_number(const struct context *context);

/* May what runs in it touch memory of the device? */
bool context_reaches(const struct context *context, int device);

#endif
