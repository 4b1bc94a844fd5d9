/*
 * wire.h - what goes over a boot connection. All fields have fixed sizes, are
 * little-endian and are tagged; nothing but the first magic is looked at before its tag
 * is checked.
 *
 *      rank                                     root
 *        | hello    magic, nonce ----------------> |
 *        | <------- challenge   nonce, tag         |  the root knows the secret
 *        | claim    who I am, tag ---------------> |  the rank knows it, too
 *        | record   record_bytes, tag -----------> |
 *        |                ...                      |  until all have come
 *        | <------- verdict     code, size, tag    |
 *        | <------- payload     all records, or the sentence of the failure
 *        | say      how it went with me, tag ----> |  any number of rounds
 *        | record   of the round, tag -----------> |  where the round gathers
 *        |                ...                      |  until all have said
 *        | <------- verdict     of the round       |
 *        | <------- payload     all records, or the sentence
 *
 * A rank that cannot go on says so at any time after its record, and then hears the
 * verdict as all others do. Whoever is lost without a word has died.
 */
#ifndef BOOT_WIRE_H
#define BOOT_WIRE_H

#include <assert.h>
#include <endian.h>
#include <stdint.h>

#include "boot/boot.h"
#include "net/auth.h"

enum {
	WIRE_MAGIC_BYTES = 8,
	WIRE_SENTENCE_MAX = 480,
	WIRE_RANKS_MAX = 1 << 16,
	WIRE_MEETING_BYTES = 16
};

/* Changes with every change of this file. */
static const char wire_magic[WIRE_MAGIC_BYTES + 1] = "WEFTBT05";

struct wire_hello {
	char magic[WIRE_MAGIC_BYTES];
	unsigned char nonce[AUTH_NONCE_BYTES];
};

/* `tag` is of both nonces under the secret, label "root". */
struct wire_challenge {
	unsigned char nonce[AUTH_NONCE_BYTES];
	unsigned char tag[AUTH_TAG_BYTES];
};

/* A rank comes to meet, tells the root of a spare id that it is not needed, comes only to
 * say why it cannot take part, or speaks for ranks of its host that come to it
 * (porch.h). */
enum wire_kind { WIRE_MEET = 1, WIRE_DISMISS = 2, WIRE_CANNOT = 3, WIRE_PORCH = 4 };

/* The tags from here on are under the connection's key. */
struct wire_claim {
	uint32_t kind; /* enum wire_kind */
	uint32_t rank, rank_count, record_bytes;
	unsigned char tag[AUTH_TAG_BYTES]; /* of the above, label "claim" */
};

/* After the record itself: its tag, label "record". */

struct wire_verdict {
	uint32_t round; /* 0: of the meeting itself */
	uint32_t code;	/* enum err */
	uint32_t bytes; /* of the payload */
	uint32_t zero;
	unsigned char meeting[WIRE_MEETING_BYTES]; /* random, the same for all ranks */
	unsigned char digest[AUTH_TAG_BYTES];	   /* of the payload */
	unsigned char tag[AUTH_TAG_BYTES];	   /* of the above, label "verdict" */
};

/* A rank speaks for itself. Of who speaks for others, one of them comes, with its record,
 * says something, or is lost; or it speaks for nobody after all. */
enum wire_what { WIRE_SAYS = 0, WIRE_COMES = 1, WIRE_IS_LOST = 2, WIRE_NO_PORCH = 3 };

/* One rank's word in a round: OK, or why it cannot go on. */
struct wire_say {
	uint32_t round;
	uint32_t code;		   /* enum err */
	uint32_t bytes;		   /* of the sentence */
	uint32_t is_last;	   /* the rank will not ask for another round */
	uint32_t record_bytes;	   /* of the record that follows, with its tag; 0: none */
	uint32_t what;		   /* enum wire_what */
	uint32_t rank, rank_count; /* of whom, where it is said for another */
	char sentence[WIRE_SENTENCE_MAX];
	unsigned char tag[AUTH_TAG_BYTES]; /* of the above, label "say" */
};

static_assert(sizeof(struct wire_hello) == 40, "no padding on the wire");
static_assert(sizeof(struct wire_challenge) == 64, "no padding on the wire");
static_assert(sizeof(struct wire_claim) == 48, "no padding on the wire");
static_assert(sizeof(struct wire_verdict) == 96, "no padding on the wire");
static_assert(sizeof(struct wire_say) == 544, "no padding on the wire");
static_assert(sizeof(struct wire_say) <= BOOT_RECORD_MAX + AUTH_TAG_BYTES,
	"a guest's buffer holds it");

#endif
