/*
 * kernels.h - the compiled kernels, embedded in the library.
 */
#ifndef EXEC_CUDA_KERNELS_KERNELS_H
#define EXEC_CUDA_KERNELS_KERNELS_H

#include <stddef.h>

/* The fat binaries nvcc made (device code for several generations); bytes are 0 in a
 * build without nvcc. */
extern const unsigned char cuda_kernels[];
extern const size_t cuda_kernels_bytes;

/* Entry points are `moves_copy` (bytes, nothing is folded) and `moves_<type>_<op>` with
 * dtype_name() and sum, prod, max, min: each takes one struct moves_args by value;
 * and `pairs_copy`, which takes a struct pairs_args. */

/* `ferry`, which takes one struct ferry_args by value. */
extern const unsigned char cuda_ferry[];
extern const size_t cuda_ferry_bytes;

/* The staged kernels, for each codec: `steps_<codec>_copy` and
 * `steps_<codec>_<type>_<op>`, with steps_codec_name(); each takes one struct steps_args
 * by value. Most processes need none or one of them: load what a call asks for. */
extern const unsigned char cuda_steps_simple[], cuda_steps_ll[], cuda_steps_ll128[];
extern const size_t cuda_steps_simple_bytes, cuda_steps_ll_bytes, cuda_steps_ll128_bytes;

#endif
