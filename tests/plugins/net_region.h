/*
 * net_region.h - memory that the test plugin was told of.
 */
#ifndef NET_REGION_H
#define NET_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct region {
	char *data;
	size_t bytes;
	bool in_gpu;
};

/* A card may write there until it is told otherwise. */
static inline void region_must_be_there(const struct region *region)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)region->data / page * page;
	uintptr_t end = (uintptr_t)region->data + region->bytes;

	if (!region->bytes || !msync((void *)first, end - first, MS_ASYNC))
		return;
	fprintf(stderr, "net_test: %zu bytes at %p were given back while registered\n",
		region->bytes, (void *)region->data);
	abort();
}

#endif
