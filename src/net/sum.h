/*
 * sum.h - a checksum as fast as memory: does a block arrive as it was sent?
 *
 * It is against accidents, not against people: those are what seals are for.
 */
#ifndef NET_SUM_H
#define NET_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Of `count` bytes; other bytes, another count, another order or another seed give
 * another sum. A change in one or two of the eight-byte words is always seen by the sums
 * it is made of, whatever it is. */
uint64_t sum_of(const void *bytes, size_t count, uint64_t seed);

#endif
