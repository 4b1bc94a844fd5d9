/*
 * ref.h - references to a rank's user buffers that other ranks can follow.
 *
 * A reference is 64 bits: nothing, a plain address (peers in the same process), a region
 * of the owner's directory plus an offset (peers in other processes), or an address in
 * the owner's process that only the kernel can reach (foreign.h). Each rank keeps the
 * directory of its own regions on the board and, per peer, the regions it has mapped so
 * far.
 */
#ifndef LINK_REF_H
#define LINK_REF_H

#include "link/peer.h"

struct ref_table;

/* Nothing that can be reached; and nothing that anyone would want to reach. */
enum { REF_NONE = 0, REF_UNUSED = 1 };

/* One table per communicator and rank. `zero_copy` false makes every reference REF_NONE
 * for peers in other processes. */
enum err ref_table_create(
	const struct peers *peers, bool zero_copy, struct ref_table **table);
void ref_table_destroy(struct ref_table *table);

/* A reference to [ptr, ptr + bytes): by address when every peer of this host is in this
 * process, by region when it lies in one, else REF_NONE. Also says the directory version
 * to show. */
uint64_t ref_make(
	struct ref_table *table, const void *ptr, size_t bytes, uint32_t *directory);

/* A reference the kernel must follow: for memory ref_make() has none for. */
uint64_t ref_make_foreign(const void *ptr);

/* Is it one of those? */
bool ref_needs_kernel(uint64_t ref);

/* Is it one of those, seen from here? Then ref_follow() gives the address there. */
bool ref_is_foreign(const struct ref_table *table, uint32_t rank, uint64_t ref);

/* The address here of what `rank` refers to; maps its region on first use. */
enum err ref_follow(struct ref_table *table, uint32_t rank, uint64_t ref,
	uint32_t directory, void **ptr);

#endif
