/*
 * gpu_name.h - what people call a GPU: "H100" rather than compute capability 9.0.
 */
#ifndef TOPO_GPU_NAME_H
#define TOPO_GPU_NAME_H

#include <stdint.h>

/* By PCI id (vendor << 16 | device) where that is known and fits the compute capability,
 * else the generation, "Hopper"; "GPU" when there is no name for that either. */
const char *gpu_name(uint32_t device, int sm);

#endif
