/*
 * known.h - memory that a provider knows: registrations, each made once for the pages it
 * covers and kept while somebody holds it.
 */
#ifndef PLUGINS_OFI_KNOWN_H
#define PLUGINS_OFI_KNOWN_H

#include <stddef.h>
#include <stdint.h>

/* How memory is registered, so that tests can do without a provider. */
struct known_ops {
	int (*reg)(void *context, void *data, size_t bytes, void **made);
	void (*dereg)(void *context, void *made);
};

struct known; /* one registration */

/* Those of one endpoint. Zeroed it is empty, but for its first two members. Its owner
 * sees to it that one thread at a time uses it. */
struct known_cache {
	const struct known_ops *ops;
	void *context;	       /* for them */
	struct known **sorted; /* owned: by first page */
	uint32_t count, room;
	int is_off; /* each is registered anew */
	uint64_t hits, misses;
};

/* Registration of a range, or of one that it lies in. 0, or what the ops said. */
int known_get(struct known_cache *cache, void *data, size_t bytes, struct known **known);

/* One holder less; the last has it forgotten. */
void known_put(struct known_cache *cache, struct known *known);

/* What known_ops.reg() made, and where its memory begins. */
void *known_made(const struct known *known);
uintptr_t known_first(const struct known *known);

/* All of them, held or not. */
void known_forget(struct known_cache *cache);

#endif
