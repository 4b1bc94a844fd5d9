/*
 * gpu_memory.h - memory as a GPU's is to a network plugin: it has an address, which only
 * the card may use. Whoever touches it from the host is ended.
 *
 * The library stands for CUDA's driver, under its name. With GPU_DMABUF in the
 * environment libfabric also seems to be of the first version that has dma-buf.
 */
#ifndef TEST_GPU_MEMORY_H
#define TEST_GPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

enum { GPU_DEVICE = 3 }; /* that all of it is on */

void *gpu_alloc(size_t bytes);
void gpu_free(void *data);

/* Where the card, or a test, finds what is at an address; NULL: it is no GPU's. */
void *gpu_see(const void *data);

/* The file that it is, and where in it. */
int gpu_file(const void *data, uint64_t *offset);

/* Called when the driver is asked to flush; NULL: nobody is. */
void gpu_flush_call(void (*function)(void));

#endif
