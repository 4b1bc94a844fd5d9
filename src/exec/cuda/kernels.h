/*
 * kernels.h - the compiled kernels, embedded in the library.
 */
#ifndef EXEC_CUDA_KERNELS_H
#define EXEC_CUDA_KERNELS_H

#include <stddef.h>

/* The fat binary nvcc made (device code for several generations); bytes is 0 in a build
 * without nvcc. */
extern const unsigned char cuda_kernels[];
extern const size_t cuda_kernels_bytes;

/* Entry points are `moves_copy` (bytes, nothing is folded) and `moves_<type>_<op>` with
 * dtype_name() and sum, prod, max, min: each takes one struct moves_args by value;
 * and `pairs_copy`, which takes a struct pairs_args. */

#endif
