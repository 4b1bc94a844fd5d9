/*
 * steps_bench.h - times of the staged kernels.
 */
#ifndef CUDA_STEPS_BENCH_H
#define CUDA_STEPS_BENCH_H

/* Ring all-reduce of floats by ranks, codec and size: the best of some grids, one launch
 * after the other and in a captured graph. Returns the exit code. */
int steps_bench(void);

#endif
