/*
 * tide.h - buffers that come and go while a call runs, in parts.
 *
 * Part i is the bytes from i * part_bytes on of every chunk (plan.h); a message is one
 * chunk. What is of a part is read when that has come, and a part of the result is told
 * when nothing writes it any more; the last one is for whoever runs the call to tell,
 * when it is over. Numbers are counted on from `first`.
 */
#ifndef EXEC_HOST_TIDE_H
#define EXEC_HOST_TIDE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct host_tide {
	size_t part_bytes; /* at least a tile's */
	uint32_t first, count;
	const _Atomic uint32_t *come; /* borrowed, as the next */
	_Atomic uint32_t *done;
};

/* So many bytes of every chunk are here; SIZE_MAX: all. */
size_t tide_come(const struct host_tide *tide);

/* So many bytes of every chunk are as they will be. From any thread: the most counts. */
void tide_tell(const struct host_tide *tide, size_t bytes);

#endif
