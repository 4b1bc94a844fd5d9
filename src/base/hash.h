/*
 * hash.h - one hash for what ranks compare, and one for tables. Neither is for secrets.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

/* FNV-1a, of numbers or of bytes: begin with HASH_START and add one after the other. */
#define HASH_START 0xcbf29ce484222325u

static inline uint64_t hash_add(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * 0x100000001b3u;
}

static inline uint64_t hash_add_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = hash_add(hash, (unsigned char)*text);
	return hash;
}

/* Spread numbers that lie close together, as addresses and counters do: the upper bits
 * are the good ones. */
static inline uint64_t hash_spread(uint64_t value)
{
	return value * 0x9e3779b97f4a7c15u;
}

#endif
