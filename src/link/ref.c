/*
 * ref.c - the region directory of a rank, and its maps of the peers' regions.
 *
 * A reference's top bits say what it is: 01 an address, 10 a directory slot (14 bits) and
 * an offset (48 bits), 11 an address in the owner's process. The directory version grows
 * when a slot changes owner; a peer that sees a new version drops its maps of slots whose
 * id is no longer the one it mapped.
 */
#include "link/ref.h"

#include <stdlib.h>

#include "link/region.h"

enum { KIND_SHIFT = 62, SLOT_SHIFT = 48 };
static const uint64_t kind_address = 1, kind_region = 2, kind_foreign = 3;
static const uint64_t offset_mask = ((uint64_t)1 << SLOT_SHIFT) - 1;

struct peer_map {
	uint64_t id; /* of the region mapped; 0: none */
	char *base;
	size_t bytes;
};

struct peer_maps {
	uint32_t directory;    /* version the maps were last checked against */
	struct peer_map *maps; /* owned, BOARD_REGIONS; NULL until first used */
};

struct ref_table {
	const struct peers *peers; /* borrowed */
	uint32_t directory;
	bool all_local, zero_copy;
	uint64_t generation; /* region_generation() the directory was last swept at */
	uint64_t last_id;    /* the slot found last */
	uint32_t last_slot;
	struct peer_maps maps[];
};

enum err ref_table_create(
	const struct peers *peers, bool zero_copy, struct ref_table **table)
{
	struct ref_table *t = calloc(
		1, sizeof(*t) + peers->rank_count * sizeof(struct peer_maps));

	if (!t)
		return err_set(ERR_SYSTEM, "no memory for a communicator of %u",
			peers->rank_count);
	t->peers = peers;
	t->zero_copy = zero_copy;
	t->all_local = true;
	t->directory = 1;
	for (uint32_t i = 0; i < peers->local_count; i++)
		t->all_local = t->all_local &&
			       peers->peer[peers->locals[i]].kind == PEER_HERE;
	*table = t;
	return OK;
}

void ref_table_destroy(struct ref_table *table)
{
	if (!table)
		return;
	for (uint32_t i = 0; i < table->peers->rank_count; i++) {
		struct peer_maps *peer = &table->maps[i];

		for (uint32_t slot = 0; peer->maps && slot < BOARD_REGIONS; slot++)
			if (peer->maps[slot].id)
				region_unmap(
					peer->maps[slot].base, peer->maps[slot].bytes);
		free(peer->maps);
	}
	free(table);
}

/* Free the slots of regions that are gone, so peers stop holding on to the memory. */
static void directory_sweep(struct ref_table *table)
{
	uint64_t now = region_generation();

	if (now == table->generation)
		return;
	table->generation = now;
	table->last_id = 0;
	for (uint32_t slot = 0; slot < BOARD_REGIONS; slot++) {
		struct region_entry *entry = peer_region(
			table->peers, table->peers->rank, slot);
		uint64_t id = atomic_load_explicit(&entry->id, memory_order_relaxed);

		if (id && !region_is_live(id)) {
			atomic_store_explicit(&entry->id, 0, memory_order_release);
			table->directory++;
		}
	}
}

static bool directory_slot(
	struct ref_table *table, const struct region *region, uint32_t *slot)
{
	uint32_t free_slot = BOARD_REGIONS;

	if (table->last_id == region->id) {
		*slot = table->last_slot;
		return true;
	}
	for (*slot = 0; *slot < BOARD_REGIONS; ++*slot) {
		uint64_t id = atomic_load_explicit(
			&peer_region(table->peers, table->peers->rank, *slot)->id,
			memory_order_relaxed);

		if (id == region->id)
			break;
		if (!id && free_slot == BOARD_REGIONS)
			free_slot = *slot;
	}
	if (*slot == BOARD_REGIONS) {
		struct region_entry *entry = peer_region(
			table->peers, table->peers->rank, free_slot);

		if (free_slot == BOARD_REGIONS)
			return false; /* more regions in use than the directory holds:
					 stage */
		*slot = free_slot;
		entry->bytes = region->bytes;
		entry->fd = region->fd;
		atomic_store_explicit(&entry->id, region->id, memory_order_release);
		table->directory++;
	}
	table->last_id = region->id;
	table->last_slot = *slot;
	return true;
}

uint64_t ref_make(
	struct ref_table *table, const void *ptr, size_t bytes, uint32_t *directory)
{
	struct region region;
	uint32_t slot;
	uint64_t ref = REF_NONE;

	if (table->all_local) {
		*directory = table->directory;
		return kind_address << KIND_SHIFT |
		       ((uint64_t)(uintptr_t)ptr & offset_mask);
	}
	directory_sweep(table);
	if (table->zero_copy && region_find(ptr, bytes, &region) &&
		directory_slot(table, &region, &slot))
		ref = kind_region << KIND_SHIFT | (uint64_t)slot << SLOT_SHIFT |
		      (uint64_t)((const char *)ptr - region.base);
	*directory = table->directory;
	return ref;
}

uint64_t ref_make_foreign(const void *ptr)
{
	return kind_foreign << KIND_SHIFT | ((uint64_t)(uintptr_t)ptr & offset_mask);
}

bool ref_needs_kernel(uint64_t ref)
{
	return ref >> KIND_SHIFT == kind_foreign;
}

bool ref_is_foreign(const struct ref_table *table, uint32_t rank, uint64_t ref)
{
	return ref_needs_kernel(ref) && table->peers->peer[rank].kind != PEER_HERE;
}

static void peer_refresh(struct ref_table *table, uint32_t rank, uint32_t directory)
{
	struct peer_maps *peer = &table->maps[rank];

	peer->directory = directory;
	for (uint32_t slot = 0; slot < BOARD_REGIONS; slot++) {
		struct region_entry *entry = peer_region(table->peers, rank, slot);

		if (!peer->maps[slot].id ||
			peer->maps[slot].id == atomic_load(&entry->id))
			continue;
		region_unmap(peer->maps[slot].base, peer->maps[slot].bytes);
		peer->maps[slot].id = 0;
	}
}

static enum err peer_map(struct ref_table *table, uint32_t rank, uint32_t slot)
{
	struct region_entry *entry = peer_region(table->peers, rank, slot);
	struct peer_map *map = &table->maps[rank].maps[slot];
	uint64_t id = atomic_load_explicit(&entry->id, memory_order_acquire);
	void *base;
	enum err e;

	if (!id)
		return err_set(
			ERR_REMOTE, "rank %u refers to memory it does not show", rank);
	map->bytes = entry->bytes;
	e = region_map_peer(
		(int)peer_status(table->peers, rank)->pid, entry->fd, map->bytes, &base);
	if (e)
		return e;
	map->base = base;
	map->id = id;
	return OK;
}

enum err ref_follow(struct ref_table *table, uint32_t rank, uint64_t ref,
	uint32_t directory, void **ptr)
{
	struct peer_maps *peer = &table->maps[rank];
	uint32_t slot = (uint32_t)(ref >> SLOT_SHIFT & 0x3fff);
	uint64_t offset = ref & offset_mask;
	enum err e = OK;

	if (ref >> KIND_SHIFT == kind_foreign ||
		(ref >> KIND_SHIFT == kind_address &&
			table->peers->peer[rank].kind == PEER_HERE)) {
		*ptr = (void *)(uintptr_t)offset;
		return OK;
	}
	if (ref >> KIND_SHIFT != kind_region || slot >= BOARD_REGIONS)
		return err_set(
			ERR_REMOTE, "rank %u shows a reference that means nothing", rank);
	if (!peer->maps)
		peer->maps = calloc(BOARD_REGIONS, sizeof(*peer->maps));
	if (!peer->maps)
		return err_set(ERR_SYSTEM, "no memory to map rank %u", rank);
	if (peer->directory != directory)
		peer_refresh(table, rank, directory);
	if (!peer->maps[slot].id)
		e = peer_map(table, rank, slot);
	if (!e && offset > peer->maps[slot].bytes)
		e = err_set(ERR_REMOTE, "rank %u refers beyond its memory", rank);
	if (!e)
		*ptr = peer->maps[slot].base + offset;
	return e;
}
