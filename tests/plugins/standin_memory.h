/*
 * standin_memory.h - what the stand-in for a provider (standin.c) has of memory: what is
 * registered, and memory of GPUs, where what is written is not to be seen before it is
 * flushed. It has a lock of its own.
 */
#ifndef TEST_STANDIN_MEMORY_H
#define TEST_STANDIN_MEMORY_H

#include <rdma/fi_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu_memory.h"

struct region;

extern struct fi_ops_mr standin_memory;

/* Of standin.c: is this registration refused? */
bool standin_refuses(void);

/* By its key; NULL: there is none. */
struct region *region_of(uint64_t key);

/* Does the region have it, as what it is? */
bool region_has(const struct region *region, const char *at, size_t bytes);

/* Look for GPUs' memory; is it taken (STANDIN_HMEM)? */
void gpu_find(void);
bool gpu_is_taken(void);

/* Where the card finds it; NULL: it is the host's. */
char *gpu_at(const void *data);

/* As the card does. `by` is whoever writes there .. */
void bytes_put(const void *by, char *to, const char *from, size_t bytes);

/* .. and what it has written to GPUs is to be seen. */
void unseen_show(const void *by);

#endif
