/*
 * guard.h - what makes sure that a block of a message arrives as it was sent: nothing, a
 * checksum, or a seal (ChaCha20 and Poly1305).
 *
 * A block is its head and its bytes. The head has a tag of its own, so that nobody waits
 * for as many bytes as a changed head says. Blocks are numbered on each connection, and
 * the number is in both tags: one that is left out, repeated or moved is noticed.
 *
 * The tag of a block's bytes has a checksum for the first GUARD_SPAN of them and one for
 * the rest, so that blocks can be twice as long as a wrong byte's place is exact.
 *
 * The keys of a seal are of one connection and direction: both ends make a fresh pair
 * (X25519), which they show in the claim and in the welcome, and mix what the pairs give
 * with the key that both know.
 */
#ifndef NET_GUARD_H
#define NET_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/auth.h"
#include "net/net.h"

enum { GUARD_PUBLIC_BYTES = 32, GUARD_TAG_BYTES = 16, GUARD_SPAN = 128 << 10 };

/* As it travels: little-endian, in front of a block's bytes. */
struct block_head {
	uint64_t message, offset, total;
	uint32_t bytes, kind;
	unsigned char body_tag[GUARD_TAG_BYTES], head_tag[GUARD_TAG_BYTES];
};
_Static_assert(sizeof(struct block_head) == 64, "no padding on the wire");

/* Of one connection, both directions. */
struct guard {
	enum net_guard kind;
	unsigned char public[GUARD_PUBLIC_BYTES];
	unsigned char secret[AUTH_KEY_BYTES]; /* until it is agreed */
	unsigned char out_key[AUTH_KEY_BYTES], in_key[AUTH_KEY_BYTES];
	uint64_t out_count, in_count;
};

/* Begin: `public` is what to show to the other end. */
void guard_init(struct guard *guard, enum net_guard kind);

/* What both ends have said and proved, the same at both. */
struct guard_terms {
	unsigned char key[AUTH_KEY_BYTES]; /* that both know */
	unsigned char nonce[16];	   /* of this connection */
	unsigned char caller[GUARD_PUBLIC_BYTES], listener[GUARD_PUBLIC_BYTES];
};

/* False: the other end's public part is none. */
bool guard_agree(struct guard *guard, bool is_listener, const struct guard_terms *terms);

/* Fill in the tags of the next block that leaves. Returns where the bytes to send are:
 * `data`, or `room` for as many where they are sealed. */
const char *guard_put(
	struct guard *guard, struct block_head *head, const char *data, char *room);

/* Is this the head of the next block that comes? */
bool guard_check_head(const struct guard *guard, const struct block_head *head);

/* Bytes of a block, from `first` to before `end`. */
struct guard_span {
	uint32_t first, end;
};

/* .. and are these its bytes? If not, `wrong` says which of them cannot be trusted. Where
 * they were sealed, `data` is what was sent then. */
bool guard_check_body(struct guard *guard, const struct block_head *head, char *data,
	struct guard_span *wrong);

#endif
