/*
 * strand.h - one connection of the control channel: two processes that have proved to
 * each other that they know a session's key, and then exchange tagged frames.
 *
 *      caller                                     listener
 *        | hello     magic, session, nonce ---------> |
 *        | <-------- challenge   nonce, tag           |  the listener knows the key
 *        | claim     who calls whom, tag -----------> |  the caller knows it, too
 *        | frame     head, bytes, tag <-------------> |  any number, both ways
 *
 * The tag of a frame is of its number on this connection, too, so none can be left out,
 * repeated or sent back. Where the process has a pre-shared key, all of it goes through a
 * seal (net/seal.h). Nothing here blocks or reports, and nothing but the magic and the
 * session's name is looked at before a tag is checked.
 */
#ifndef BOOT_STRAND_H
#define BOOT_STRAND_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/auth.h"
#include "net/seal.h"

enum { STRAND_SESSION_BYTES = 16, STRAND_PAYLOAD_MAX = 1 << 16 };

struct strand_hello {
	char magic[8];
	unsigned char session[STRAND_SESSION_BYTES];
	unsigned char nonce[AUTH_NONCE_BYTES];
};

struct strand_challenge {
	unsigned char nonce[AUTH_NONCE_BYTES];
	unsigned char tag[AUTH_TAG_BYTES]; /* of both nonces, label "control" */
};

/* Little-endian, as everything on the wire. */
struct strand_claim {
	uint32_t from, to; /* processes, as the session numbers them */
	uint32_t is_edge;  /* what everybody is to know goes this way, too */
	uint32_t zero;
	unsigned char tag[AUTH_TAG_BYTES]; /* of the above, label "control claim" */
};

/* Before each frame's bytes; the tag follows them. */
struct strand_head {
	uint32_t bytes, type;
	uint32_t origin, to; /* ranks */
	uint64_t number, after;
	uint32_t kind, zero;
};

static_assert(sizeof(struct strand_hello) == 56, "no padding on the wire");
static_assert(sizeof(struct strand_challenge) == 64, "no padding on the wire");
static_assert(sizeof(struct strand_claim) == 48, "no padding on the wire");
static_assert(sizeof(struct strand_head) == 40, "no padding on the wire");

enum strand_phase {
	STRAND_CONNECTING, /* caller: the connection is not there yet */
	STRAND_CHALLENGE,  /* caller: we await the challenge */
	STRAND_HELLO,	   /* listener: we await the hello */
	STRAND_ASKED,	   /* listener: it has come; strand_answer() goes on */
	STRAND_CLAIM,	   /* listener: we await the claim */
	STRAND_OPEN,
	STRAND_GONE /* close it */
};

/* What its holder keeps of it: see hub.h and session.h. */
struct strand_held {
	struct strand *next;
	struct session *owner; /* NULL: a stranger */
	uint32_t node;	       /* who is at the other end */
	uint64_t cursor;       /* the next bulletin it is to carry */
	uint64_t carried_ns;   /* when it carried the last */
	uint64_t safe; /* the other end has all that it carried before this one .. */
	uint64_t safe_count; /* .. which were so many bulletins */
	uint64_t taken;	     /* bulletins that came over it */
	uint64_t taken_told; /* .. as far as the other end knows */
	uint64_t owed_ns;    /* since when it is to know of more; 0: it knows of all */
	bool was_open, is_edge, is_leaving, has_left;
	short polled; /* what the hub polls for; -1: it does not know the strand yet */
};

/* What comes, or what is said: a frame on its way. */
struct strand_half {
	unsigned char *data; /* owned */
	size_t room, done;
	size_t bytes;	 /* to be said */
	uint64_t number; /* frames so far */
};

struct strand {
	int fd;		   /* owned */
	struct seal *seal; /* owned; NULL: not encrypted */
	enum strand_phase phase;
	bool is_caller;
	bool is_mute;  /* nothing more can be said, but perhaps heard */
	int status;    /* errno of what ended it; 0: it was closed */
	bool is_reset; /* .. and not in order: what was said last may be lost */
	uint64_t since_ns, heard_ns; /* made; last byte that came */
	uint64_t told_ns;	     /* last frame that we wrote */
	unsigned char session[STRAND_SESSION_BYTES];
	struct strand_claim claim; /* in the host's byte order */
	struct auth_nonces nonces;
	unsigned char secret[AUTH_KEY_BYTES], key[AUTH_KEY_BYTES];
	struct strand_half in, out;
	struct strand_held held;
};

struct strand_call {
	struct addr to;
	unsigned char session[STRAND_SESSION_BYTES];
	unsigned char key[AUTH_KEY_BYTES];
	uint32_t from_process, to_process;
	bool is_edge;
};

/* Begin to call. NULL when there is no memory or no socket. A call that fails at once is
 * STRAND_GONE with its status. */
struct strand *strand_call(const struct strand_call *call, uint64_t now_ns);

/* Take over an accepted socket, or close it and return NULL. */
struct strand *strand_accept(int fd, uint64_t now_ns);

/* Close and free. NULL is fine. */
void strand_destroy(struct strand *strand);

/* What strand_read() has found. */
enum strand_news {
	STRAND_NOTHING, /* no more for now, or STRAND_GONE */
	STRAND_MOVED,	/* another phase */
	STRAND_FRAME	/* a frame: see strand_head(), strand_bytes() */
};

/* Read on. Call it until it says STRAND_NOTHING, or the phase is STRAND_ASKED. */
enum strand_news strand_read(struct strand *strand, uint64_t now_ns);

/* The session that is asked for is ours and has this key. */
void strand_answer(struct strand *strand, const unsigned char key[AUTH_KEY_BYTES]);

/* The frame that strand_read() found, in the host's byte order; valid until the next
 * read.
 */
void strand_head(const struct strand *strand, struct strand_head *head);
const void *strand_bytes(const struct strand *strand);

/* A head as it is on the wire, wherever that lies; and back. */
void strand_head_put(const struct strand_head *head, void *wire);
void strand_head_get(const void *wire, struct strand_head *head);

/* Begin to write a frame; only when strand_is_idle(). False, and STRAND_GONE, when that
 * cannot be. */
bool strand_write(struct strand *strand, const struct strand_head *head,
	const void *bytes, uint64_t now_ns);

/* Write on what is begun. */
void strand_flush(struct strand *strand);

/* Nothing more will be said; the other end reads to the end of it. */
void strand_finish(struct strand *strand);

/* It is open, all that was begun is written, and more can be. */
bool strand_is_idle(const struct strand *strand);

/* What to poll() for. */
short strand_events(const struct strand *strand);

#endif
