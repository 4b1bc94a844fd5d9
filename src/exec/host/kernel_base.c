/*
 * kernel_base.c - the kernels for every CPU the build is for: SSE2 on x86-64.
 */
#include "exec/host/kernel_small.h"

#define SMALL_HINT VECTORISE
#define KERNEL_GET kernel_get_base
#include "exec/host/kernel_body.h"
