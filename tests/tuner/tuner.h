/*
 * tuner.h - what the plugins of this folder share: numbers that NCCL's plugin interface
 * fixes. Each plugin declares its version of the interface itself, so that the tests do
 * not take the library's word for it.
 */
#ifndef TESTS_TUNER_TUNER_H
#define TESTS_TUNER_TUNER_H

#include <stddef.h>
#include <stdint.h>

enum { FUNC_ALL_GATHER = 2, FUNC_ALL_REDUCE = 4 };
enum { TREE = 0, RING = 1, NVLS = 4, ALGOS = 7 };
enum { LL = 0, LL128 = 1, SIMPLE = 2, PROTOS = 3 };
enum { LEVEL_WARN = 2, LEVEL_INFO = 3, SUBSYSTEM_TUNING = 64 };
enum { SUCCESS = 0, SYSTEM_ERROR = 2, INTERNAL_ERROR = 3 };

typedef void logger(int level, unsigned long subsystems, const char *file, int line,
	const char *format, ...);

#define EXPORT __attribute__((visibility("default")))

/* The cell of a cost table. */
static inline float *cell(float **costs, int algo, int proto)
{
	return (float *)costs + algo * PROTOS + proto;
}

#endif
