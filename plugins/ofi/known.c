#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4096, ROOM_MIN = 128 };

struct known {
	uintptr_t first, end; /* whole pages */
	uint32_t holders;
	bool is_gpu;
	void *made;
};

/* The last that begins at or before `first`; -1: none. */
static int64_t known_find(const struct known_cache *cache, uintptr_t first)
{
	uint32_t low = 0, high = cache->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (cache->sorted[middle]->first <= first)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low - 1;
}

/* Ranges may overlap, so one that begins further in front may cover it. A long one around
 * others may be missed, which costs a registration and no more. */
static struct known *known_cover(
	const struct known_cache *cache, uintptr_t first, uintptr_t end)
{
	for (int64_t i = known_find(cache, first); i >= 0; i--) {
		if (cache->sorted[i]->end >= end)
			return cache->sorted[i];
		if (cache->sorted[i]->end <= first)
			break;
	}
	return NULL;
}

static int room_make(struct known_cache *cache)
{
	uint32_t room = cache->room ? 2 * cache->room : ROOM_MIN;
	struct known **more;

	if (cache->count < cache->room)
		return 0;
	more = realloc(cache->sorted, room * sizeof(*more));
	if (!more)
		return ENOMEM;
	cache->sorted = more;
	cache->room = room;
	return 0;
}

/* The whole pages of a range, where that can be said of it. */
static struct known_range pages_of(const struct known_range *range)
{
	uintptr_t data = (uintptr_t)range->data;
	uintptr_t first = data & ~(uintptr_t)(PAGE_BYTES - 1);
	uintptr_t end = (data + range->bytes + PAGE_BYTES - 1) &
			~(uintptr_t)(PAGE_BYTES - 1);
	struct known_range pages = *range;

	if (range->kind == KNOWN_DMABUF && range->offset < data - first)
		first = data;
	pages.data = (char *)first;
	pages.bytes = end - first;
	pages.offset -= range->kind == KNOWN_DMABUF ? data - first : 0;
	return pages;
}

static int known_add(
	struct known_cache *cache, const struct known_range *pages, struct known **known)
{
	uintptr_t first = (uintptr_t)pages->data;
	uint32_t place = (uint32_t)(known_find(cache, first) + 1);
	struct known *made = calloc(1, sizeof(*made));
	int rc = made ? room_make(cache) : ENOMEM;

	if (!rc)
		rc = cache->ops->reg(cache->context, pages, &made->made);
	if (rc) {
		free(made);
		return rc;
	}
	made->first = first;
	made->end = first + pages->bytes;
	made->is_gpu = pages->kind != KNOWN_HOST;
	memmove(&cache->sorted[place + 1], &cache->sorted[place],
		(cache->count - place) * sizeof(*cache->sorted));
	cache->sorted[place] = made;
	cache->count++;
	*known = made;
	return 0;
}

int known_get(
	struct known_cache *cache, const struct known_range *range, struct known **known)
{
	struct known_range pages = pages_of(range);
	uintptr_t first = (uintptr_t)pages.data;
	struct known *found = cache->is_off
				      ? NULL
				      : known_cover(cache, first, first + pages.bytes);
	int rc = 0;

	if (found && found->is_gpu == (range->kind != KNOWN_HOST))
		cache->hits++;
	else
		rc = known_add(cache, &pages, &found);
	if (rc)
		return rc;
	cache->misses += !found->holders;
	found->holders++;
	*known = found;
	return 0;
}

void known_put(struct known_cache *cache, struct known *known)
{
	uint32_t i = 0;

	if (--known->holders)
		return;
	while (cache->sorted[i] != known)
		i++;
	memmove(&cache->sorted[i], &cache->sorted[i + 1],
		(--cache->count - i) * sizeof(*cache->sorted));
	cache->ops->dereg(cache->context, known->made);
	free(known);
}

void *known_made(const struct known *known)
{
	return known->made;
}

uintptr_t known_first(const struct known *known)
{
	return known->first;
}

bool known_is_gpu(const struct known *known)
{
	return known->is_gpu;
}

void known_forget(struct known_cache *cache)
{
	for (uint32_t i = 0; i < cache->count; i++) {
		cache->ops->dereg(cache->context, cache->sorted[i]->made);
		free(cache->sorted[i]);
	}
	free(cache->sorted);
	cache->sorted = NULL;
	cache->count = cache->room = 0;
}
