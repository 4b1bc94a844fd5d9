/*
 * gpu_data_abi.h - what the kernels are given that fill and check buffers (gpu_data.cu).
 *
 * Read by C and by CUDA C. Thread t of all n of a launch has the elements t, t + n, ..
 */
#ifndef TOOLS_PERF_GPU_DATA_ABI_H
#define TOOLS_PERF_GPU_DATA_ABI_H

#include "perf/data.h"

enum { GPU_DATA_THREADS = 256 }; /* of a block */

struct gpu_data_args {
	struct data_rule rule;
	struct data_part part;
	uint64_t buffer; /* its address */
	uint64_t wrong;	 /* of a 64-bit word that wrong elements are added to */
};

#endif
