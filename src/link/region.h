/*
 * region.h - memory that other processes can map: what ncclMemAlloc() hands out.
 *
 * A region is a memfd mapped shared. The registry is per process; which region an
 * address belongs to is asked at every call, so the answer is cached per thread.
 */
#ifndef LINK_REGION_H
#define LINK_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct region {
	uint64_t id; /* never reused in this process */
	char *base;
	size_t bytes;
	int fd; /* -1: withdrawn */
};

/* Allocate zeroed, page-aligned, mappable memory. */
enum err region_alloc(size_t bytes, void **ptr);

/* Give it back. ERR_ARGUMENT when `ptr` did not come from region_alloc(). */
enum err region_free(void *ptr);

/* Another process may still be about to write [ptr, ptr + bytes), which it was shown, and
 * cannot be asked: put fresh zeroed pages under these addresses that nobody else maps.
 * What lies beside them on the same pages stays. From now on the region they lie in is
 * ordinary memory of this process: it is not found any more and peers let go of it.
 * Nothing happens outside regions: nobody can write there. */
void region_withdraw(void *ptr, size_t bytes);

/* The same, but the bytes stay what they are; whoever writes them meanwhile may lose what
 * it wrote. */
void region_detach(void *ptr, size_t bytes);

/* Is [ptr, ptr + bytes) inside one region? Fills a copy of it. */
bool region_find(const void *ptr, size_t bytes, struct region *region);

/* Is the region with this id still allocated? */
bool region_is_live(uint64_t id);

/* Grows whenever a region is freed: cached answers older than that are void. */
uint64_t region_generation(void);

/* Open descriptor `fd` of process `pid`, which holds `bytes` or more; and map them. */
enum err region_open_peer(int pid, int fd, size_t bytes, int *opened);
enum err region_map_open(int pid, int opened, size_t bytes, void **base);

/* Both in one, and nothing stays open. */
enum err region_map_peer(int pid, int fd, size_t bytes, void **base);
void region_unmap(void *base, size_t bytes);

#endif
