/*
 * gpu.h - the little that the plugin asks of CUDA's driver.
 *
 * The driver is used where the process has loaded it already, as every program with CUDA
 * has; it is never loaded from here.
 */
#ifndef PLUGINS_OFI_GPU_H
#define PLUGINS_OFI_GPU_H

#include <stdbool.h>

/* Once in a process; says which functions are missing, if any is. */
bool gpu_is_there(void);

/* The number of the device that memory is on; -1: it is on none. */
int gpu_of(const void *data);

/* Have the GPU of this thread's context see what was written to its memory. */
int gpu_flush(void);

#endif
