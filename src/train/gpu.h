/*
 * gpu.h - what a GPU can do: dense peaks by precision, memory, and what share of the
 * peak a matrix product of some shape gets.
 */
#ifndef TRAIN_GPU_H
#define TRAIN_GPU_H

#include "train/layout.h"

struct train_gpu {
	const char *name;
	const char *machine; /* of topo/instance.h, for tables that name a GPU only */
	const char *kind;    /* generation: rows of the calibration */
	double tflops[PRECISIONS]; /* dense; 0: it cannot */
	double memory_gb;	   /* GB of 1e9 bytes that a program can have */
	double hbm_gbps;
	double ceiling[PRECISIONS]; /* the best share of the peak that was measured */
	double pcie_gbps;	    /* to the host, one way, of its own link */
	const char *source;
};

/* By a word of the published tables or a machine's GPU ("H100-80", "A100-40GB"); NULL. */
const struct train_gpu *gpu_named(const char *name);

/* The GPU of a machine of topo/instance.h; ERR_USAGE when there are no figures. */
enum err gpu_of_machine(const char *machine, const struct train_gpu **gpu);

/* Share of the ceiling that a product m x k by k x n gets: short sides leave parts of the
 * GPU idle, the more so the faster it is. `half` is the side that halves it. */
double gpu_shape_share(double m, double n, double k, double half);

/* Share of the 16-bit peak that attention gets, both passes, half of the square counted;
 * where it is several kernels, that of its products. */
double gpu_attention_share(
	const struct train_gpu *gpu, bool flash, enum train_kernel kernel);

#endif
