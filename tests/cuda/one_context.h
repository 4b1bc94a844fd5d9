/*
 * one_context.h - the context of a device that has only one, and others that are made
 * beside it, for stand-ins of libcuda.
 */
#ifndef CUDA_ONE_CONTEXT_H
#define CUDA_ONE_CONTEXT_H

#include <stdbool.h>

/* Its address is the context. */
extern char one_context;

/* Is one of the others current in this thread? */
bool is_beside(void);

#endif
