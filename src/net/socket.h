/*
 * socket.h - what the network of TCP sockets is made of: for the socket*.c and bundle*.c
 * files alone.
 *
 *      connecting end                               listener
 *        | claim    magic, nonce, claim, tag ---------> |  it knows the key
 *        | <------- welcome   verdict, tag              |  and so does the listener
 *        | bytes of the messages, one after the other > |
 *
 * The listener's handle has a nonce of its own in the tags, so a claim means nothing to
 * another listener, and a claim that was taken is not taken again. socket_door.c has the
 * listener's side of it, socket_approach.c the other, socket_cable.c bytes, socket.c the
 * messages of a connection that is one bare cable. Where there are several, or where
 * messages are guarded, they travel in blocks: bundle.h.
 */
#ifndef NET_SOCKET_H
#define NET_SOCKET_H

#include <sys/uio.h>

#include "base/ring.h"
#include "net/addr.h"
#include "net/guard.h"
#include "net/net.h"

enum {
	WAYS_MAX = 4, /* interfaces of a listener */
	NONCE_BYTES = 16,
	WHY_BYTES = 128,
	AHEAD_BYTES = 16 << 10, /* read at once where messages are short */
	AHEAD_TAIL = 256,	/* .. and after a long one */
	SHORT_BYTES = 4 << 10
};

extern const char claim_magic[8];

struct handle_body {
	uint32_t way_count;
	unsigned char nonce[NONCE_BYTES];
	struct addr ways[WAYS_MAX];
};
_Static_assert(sizeof(struct handle_body) <= NET_HANDLE_BYTES, "a handle holds it");

/* Which cable of which connection. */
struct cable_place {
	unsigned char end[NONCE_BYTES]; /* the same for all of one connection */
	uint16_t index, count;
};

/* The tag is over all that comes before it and the listener's nonce. */
struct claim_words {
	char magic[sizeof(claim_magic)];
	unsigned char nonce[NONCE_BYTES];
	struct net_claim claim;
	struct cable_place place;
	uint16_t guard; /* enum net_guard */
	uint16_t is_bundle;
	unsigned char public[GUARD_PUBLIC_BYTES];
	unsigned char tag[AUTH_TAG_BYTES];
};
_Static_assert(sizeof(struct claim_words) == 124, "no padding on the wire");

/* The tag is over the claim, too. */
struct welcome_words {
	uint32_t is_refused, guard; /* .. because the listener's is another */
	unsigned char public[GUARD_PUBLIC_BYTES];
	unsigned char tag[AUTH_TAG_BYTES];
};

/* What the two tags are over: the words without their tags, for this listener. The
 * claim's is with an empty welcome. */
struct claim_proof {
	unsigned char listener[NONCE_BYTES];
	struct claim_words claim;
	struct welcome_words welcome;
};

struct claim_proof claim_proof(const struct claim_words *claim,
	const struct handle_body *listener, const struct welcome_words *welcome);

struct guard_terms claim_terms(const struct claim_words *claim,
	const struct welcome_words *welcome, const unsigned char *key);

/* The end of a sentence about two ends that do not agree. */
void guards_differ(enum net_guard here, enum net_guard there, char why[WHY_BYTES]);

/* Is a connection of this manner more than one bare cable? */
static inline bool net_is_bundle(const struct net_manner *manner)
{
	return manner->cables > 1 || manner->guard != NET_BARE || manner->threads;
}

enum cable_phase {
	CABLE_AWAITED, /* the other end makes it */
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
	struct guard guard;
	uint32_t way; /* which of the listener's interfaces */
	char where[ADDR_TEXT_BYTES];
	char why[WHY_BYTES]; /* it was lost */
	/* read, and not yet asked for */
	char *ahead; /* owned; NULL until first needed */
	size_t ahead_first, ahead_count;
};

struct net_end {
	struct door *door; /* owned: of a listener */
	struct cable cable;
	struct bundle *bundle; /* owned: of an end that is more than one bare cable */
	bool is_sender, in_bunches;
	uint32_t silence_ms; /* of a bare one: the other host is lost after that; 0: never
			      */
	uint64_t watched_ns; /* when that was looked at last */
	uint64_t full_ns;    /* since when nothing could be written; 0: it could */
	/* what was asked for, first to last: struct piece */
	struct ring pieces;
	size_t piece_done; /* bytes of the first, a sender's with its frame's size */
	uint64_t done;	   /* messages */
	bool has_frame;	   /* of a receiving end: its size is known */
	uint64_t frame_bytes;
};

/* A bare connection has no other cable to go on by, and a path that is mended is as good
 * as new: it has twice the time of a cable. */
static inline uint32_t net_bare_silence(const struct net_manner *manner)
{
	return 2 * manner->silence_ms;
}

/* An end without a connection yet; NULL after err_set(). */
struct net_end *end_make(void);
void end_close(struct net_end *end); /* NULL is fine */

/* ---- socket_cable.c ---- */

void cable_close(struct cable *cable);

/* Nothing more comes or goes by it: ERR_REMOTE, without a sentence. */
enum err cable_lost(struct cable *cable, const char *why);

/* Why a cable is lost whose other host is silent. */
extern const char cable_unanswered[];

/* One read: into `list`, and then at most `ahead` bytes more, which are kept. `direct`
 * is how many came into `list`. ERR_AGAIN: there is nothing now. */
enum err cable_fill(struct cable *cable, struct iovec list, size_t ahead, size_t *direct);

/* The same in two steps: the first changes nothing but memory and errno. */
ssize_t cable_receive(const struct cable *cable, struct iovec list, size_t ahead);
enum err cable_received(
	struct cable *cable, ssize_t got, struct iovec list, size_t *direct);

/* Have `bytes` of the kept ones, reading where there are fewer. */
enum err cable_have(struct cable *cable, size_t bytes);
static inline char *cable_kept(const struct cable *cable)
{
	return cable->ahead + cable->ahead_first;
}
void cable_drop(struct cable *cable, size_t bytes);

/* Has the other host not answered for so long, though it was asked? */
bool cable_is_mute(const struct cable *cable, uint32_t silence_ms);

/* Notice that while nothing is sent, too: reading fails then. */
void cable_keep_alive(const struct cable *cable, uint32_t silence_ms);

/* ---- socket_door.c ---- */

enum err door_listen(const struct net_listen_args *args, struct net_end **listener,
	struct net_handle *handle);
enum err door_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end);

/* More cables may have come to ends that are there already. */
int door_serve(struct door *door);
void door_forget(struct door *door, struct net_end *end);
void door_close(struct door *door); /* NULL is fine */

/* ---- socket_approach.c ---- */

enum err approach_make(const struct net_connect_args *args,
	const struct cable_place *place, struct cable *cable);

/* One step after the other until it is open; ERR_AGAIN: it has to wait. */
enum err approach_move(struct cable *cable);
void approach_end(struct cable *cable); /* there may be none */

#endif
