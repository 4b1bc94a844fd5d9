/*
 * known.h - memory that a provider knows: registrations, each made once for the pages it
 * covers and kept while somebody holds it.
 */
#ifndef PLUGINS_OFI_KNOWN_H
#define PLUGINS_OFI_KNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where memory is, and how it is to be registered. */
enum known_kind { KNOWN_HOST, KNOWN_CUDA, KNOWN_DMABUF };

struct known_range {
	char *data;
	size_t bytes;
	enum known_kind kind;
	int device;	 /* of a GPU */
	int fd;		 /* of KNOWN_DMABUF: it is there .. */
	uint64_t offset; /* .. from here on */
};

/* How memory is registered, so that tests can do without a provider. */
struct known_ops {
	int (*reg)(void *context, const struct known_range *range, void **made);
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
int known_get(
	struct known_cache *cache, const struct known_range *range, struct known **known);

/* One holder less; the last has it forgotten. */
void known_put(struct known_cache *cache, struct known *known);

/* What known_ops.reg() made, and where its memory begins. */
void *known_made(const struct known *known);
uintptr_t known_first(const struct known *known);

/* Is it memory of a GPU, which must not be touched from here? */
bool known_is_gpu(const struct known *known);

/* All of them, held or not. */
void known_forget(struct known_cache *cache);

#endif
