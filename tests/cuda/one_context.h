/*
 * one_context.h - the context of a device that has only one, for stand-ins of libcuda.
 */
#ifndef CUDA_ONE_CONTEXT_H
#define CUDA_ONE_CONTEXT_H

/* Its address is the context. */
extern char one_context;

#endif
