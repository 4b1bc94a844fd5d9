/*
 * porch.h - a root's way up: the root of one host in a large meeting is no end of its own
 * but passes what its ranks say on to the root of all, over one connection, and what that
 * one answers back to them. So the records of all ranks come to each host once.
 */
#ifndef BOOT_PORCH_H
#define BOOT_PORCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/wire.h"
#include "net/seal.h"

/* The connection: made and proved by a rank (boot.c), as one of kind WIRE_PORCH. */
struct porch {
	int fd;		   /* owned */
	struct seal *seal; /* owned; NULL: not encrypted */
	unsigned char key[AUTH_KEY_BYTES];
	bool is_gone;	/* nothing more will be heard */
	bool is_mute;	/* nothing more can be said; what was told before may be heard */
	uint32_t round; /* verdicts heard */
	unsigned char *out; /* owned */
	size_t out_room, out_done, out_bytes;
	struct wire_verdict verdict;
	size_t in_done;
	unsigned char *payloads[2]; /* owned; one may still be on its way to a rank */
	size_t payload_done;
};

/* What one of the ranks says. */
struct porch_word {
	enum wire_what what;
	uint32_t rank, rank_count;
	enum err code;
	bool is_last;
	const char *sentence;
	const void *record;
	uint32_t record_bytes;
};

/* Pass it on; is_gone when that cannot be. */
void porch_say(struct porch *porch, const struct porch_word *word);

/* Write on. */
void porch_flush(struct porch *porch);
bool porch_has_output(const struct porch *porch);

/* Read on. True: the next verdict is there, in `code`, and its payload, which lives until
 * the one after the next. */
bool porch_hear(struct porch *porch, enum err *code, const unsigned char **payload,
	size_t *bytes);

void porch_fini(struct porch *porch);

#endif
