/*
 * fake_cuda.h - how a test uses the stand-in for libcuda.so.1.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <dlfcn.h>
#include <stdint.h>

#include "test.h"

/* As a program that uses CUDA has it before the library looks. The folder is one of
 * WEFT_FAKE_CUDA: now, older (lacks what has an older name) or lacking (a function). */
static inline void *fake_cuda_load(const char *folder)
{
	char path[4096];
	void *library;

	snprintf(path, sizeof(path), "%s/libcuda.so.1", folder);
	library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	TRUE(library);
	return library;
}

/* A function the library itself has no use for. */
static inline int fake_cuda_call(void *library, const char *name, void *ptr, size_t bytes)
{
	int (*function)(void *, size_t, uintptr_t) = NULL;
	void *found = dlsym(library, name);

	TRUE(found);
	memcpy(&function, &found, sizeof(found));
	return function(ptr, bytes, 1);
}

/* How many mappings of other processes' memory are open, or handles were made. */
static inline int fake_cuda_count(void *library, const char *name)
{
	const int *count = dlsym(library, name);

	TRUE(count);
	return *count;
}

#endif
