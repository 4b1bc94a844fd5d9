/*
 * socket.h - what the network of TCP sockets is made of: for the socket*.c files alone.
 *
 *      connecting end                               listener
 *        | claim    magic, nonce, claim, tag ---------> |  it knows the key
 *        | <------- welcome   tag                       |  and so does the listener
 *        | bytes of the messages, one after the other > |
 *
 * The listener's handle has a nonce of its own in the tags, so a claim means nothing to
 * another listener, and a claim that was taken is not taken again. socket_door.c has the
 * listener's side of it, socket_approach.c the other, socket.c the messages.
 */
#ifndef NET_SOCKET_H
#define NET_SOCKET_H

#include "base/ring.h"
#include "net/addr.h"
#include "net/net.h"

enum {
	WAYS_MAX = 4, /* interfaces of a listener */
	NONCE_BYTES = 16,
	WHY_BYTES = 96,
	AHEAD_BYTES = 16 << 10 /* read at once where messages are short */
};

extern const char claim_magic[8];

struct handle_body {
	uint32_t way_count;
	unsigned char nonce[NONCE_BYTES];
	struct addr ways[WAYS_MAX];
};
_Static_assert(sizeof(struct handle_body) <= NET_HANDLE_BYTES, "a handle holds it");

/* The tag is over all that comes before it and the listener's nonce. */
struct claim_words {
	char magic[sizeof(claim_magic)];
	unsigned char nonce[NONCE_BYTES];
	struct net_claim claim;
	unsigned char tag[AUTH_TAG_BYTES];
};

/* What the two tags are over: the claim without its tag, for this listener. */
struct claim_proof {
	unsigned char listener[NONCE_BYTES];
	struct claim_words words;
};

struct claim_proof claim_proof(
	const struct claim_words *words, const struct handle_body *listener);

enum cable_phase {
	CABLE_CONNECTING,
	CABLE_CLAIMING, /* our claim is on its way */
	CABLE_GREETED,	/* we await the welcome */
	CABLE_OPEN,
	CABLE_LOST
};

/* One TCP connection. What can go wrong with it is written into `why`; whether that is a
 * failure is for the end to say. */
struct cable {
	int fd; /* owned; -1 */
	enum cable_phase phase;
	struct approach *approach; /* owned: until it is open */
	char where[ADDR_TEXT_BYTES];
	char why[WHY_BYTES]; /* it was lost */
	/* read, and not yet asked for */
	char *ahead; /* owned; of a receiving end */
	size_t ahead_first, ahead_count;
};

struct net_end {
	struct door *door; /* owned: of a listener */
	struct cable cable;
	bool is_sender;
	/* what was asked for, first to last: struct piece */
	struct ring pieces;
	size_t piece_done; /* bytes of the first, a sender's with its frame's size */
	uint64_t done;	   /* messages */
	bool has_frame;	   /* of a receiving end: its size is known */
	uint64_t frame_bytes;
};

/* An end without a connection yet; NULL after err_set(). */
struct net_end *end_make(void);
void end_close(struct net_end *end); /* NULL is fine */

/* Nothing more comes or goes by it: ERR_REMOTE, without a sentence. */
enum err cable_lost(struct cable *cable, const char *why);

/* ---- socket_door.c ---- */

enum err door_listen(const struct net_listen_args *args, struct net_end **listener,
	struct net_handle *handle);
enum err door_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end);
void door_close(struct door *door); /* NULL is fine */

/* ---- socket_approach.c ---- */

enum err approach_make(const struct net_connect_args *args, struct cable *cable);

/* One step after the other until it is open; ERR_AGAIN: it has to wait. */
enum err approach_move(struct cable *cable);
void approach_end(struct cable *cable); /* there may be none */

#endif
