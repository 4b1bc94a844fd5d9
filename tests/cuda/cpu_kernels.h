/*
 * cpu_kernels.h - our kernels on the CPU, for the few types that tests use.
 *
 * Written from what moves_abi.h says of the arguments. A launch that waits for others'
 * does so in the thread that runs it.
 */
#ifndef CUDA_CPU_KERNELS_H
#define CUDA_CPU_KERNELS_H

#include <stddef.h>

/* How long its arguments are; 0: there is no such kernel. */
size_t cpu_kernel_bytes(const char *name);

/* Run the kernel of that name for `ranks` ranks; a code of the driver. */
int cpu_kernel_do(const char *name, unsigned ranks, void *args);

#endif
