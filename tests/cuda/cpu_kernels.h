/*
 * cpu_kernels.h - our kernels on the CPU, for the few types that tests use.
 *
 * Written from what moves_abi.h says of the arguments. A launch that waits for others'
 * does so in the thread that runs it. Those that fill and check the buffers of the perf
 * programs know all types: they are made of these programs' own source.
 */
#ifndef CUDA_CPU_KERNELS_H
#define CUDA_CPU_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cpu_devices.h"

struct cpu_grid {
	const struct context *context;	 /* that it runs in */
	unsigned blocks, ranks, threads; /* threads of a block */
};

/* How long its arguments are; 0: there is no such kernel. */
size_t cpu_kernel_bytes(const char *name);

/* Run the kernel of that name; a code of the driver. */
int cpu_kernel_do(const char *name, const struct cpu_grid *grid, void *args);

/* ---- for kernels ---- */

/* The address as what this kernel may touch: one that its context does not reach ends the
 * process, as it would end all work of a GPU. */
void *touch(uint64_t address);

/* What folds, by the end of a kernel's name; NULL: it only copies, or there is none. */
typedef void fold_of(void *to, const void *from, size_t bytes);
fold_of *fold_find(const char *name);

/* Through slots (cpu_steps.c). */
int steps_do(const struct cpu_grid *grid, const char *name, void *args);

#endif
