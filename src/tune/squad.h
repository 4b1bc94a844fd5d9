/*
 * squad.h - by how many threads of a rank a large call between hosts is moved, and how
 * its tiles are cut for that.
 *
 * Each thread takes every so many-th tile of each chunk, so that a chunk is to have as
 * many tiles as fall to all alike. All ranks answer alike.
 */
#ifndef TUNE_SQUAD_H
#define TUNE_SQUAD_H

#include <stddef.h>
#include <stdint.h>

/* As many of `most` threads as are of use for chunks of so many bytes, if each is to take
 * `share_bytes` of each; 0: as tune has it. At least one. */
uint32_t squad_size(size_t chunk_bytes, uint32_t most, size_t share_bytes);

/* Shares of a message of so many bytes, likewise. */
uint32_t squad_shares(size_t bytes, uint32_t most, size_t share_bytes);

/* The tile for so many threads, at most `tile` bytes: whole cache lines. It is `tile`
 * where the user has set it. */
size_t squad_tile(size_t chunk_bytes, size_t tile, uint32_t threads);

#endif
