/*
 * line.h - one connection of the control channel: two processes that have proved to each
 * other that they know a session's key, and then exchange tagged frames.
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
#ifndef BOOT_LINE_H
#define BOOT_LINE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/addr.h"
#include "net/auth.h"
#include "net/seal.h"

enum { LINE_SESSION_BYTES = 16, LINE_PAYLOAD_MAX = 1 << 16 };

struct line_hello {
	char magic[8];
	unsigned char session[LINE_SESSION_BYTES];
	unsigned char nonce[AUTH_NONCE_BYTES];
};

struct line_challenge {
	unsigned char nonce[AUTH_NONCE_BYTES];
	unsigned char tag[AUTH_TAG_BYTES]; /* of both nonces, label "control" */
};

/* Little-endian, as everything on the wire. */
struct line_claim {
	uint32_t from, to; /* processes, as the session numbers them */
	uint32_t is_edge;  /* what everybody is to know goes this way, too */
	uint32_t zero;
	unsigned char tag[AUTH_TAG_BYTES]; /* of the above, label "control claim" */
};

/* Before each frame's bytes; the tag follows them. */
struct line_head {
	uint32_t bytes, type;
	uint32_t origin, to; /* ranks */
	uint64_t number, after;
	uint32_t kind, zero;
};

static_assert(sizeof(struct line_hello) == 56, "no padding on the wire");
static_assert(sizeof(struct line_challenge) == 64, "no padding on the wire");
static_assert(sizeof(struct line_claim) == 48, "no padding on the wire");
static_assert(sizeof(struct line_head) == 40, "no padding on the wire");

enum line_phase {
	LINE_CONNECTING, /* caller: the connection is not there yet */
	LINE_CHALLENGE,	 /* caller: we await the challenge */
	LINE_HELLO,	 /* listener: we await the hello */
	LINE_ASKED,	 /* listener: it has come; line_answer() goes on */
	LINE_CLAIM,	 /* listener: we await the claim */
	LINE_OPEN,
	LINE_GONE /* close it */
};

struct line {
	int fd;		   /* owned */
	struct seal *seal; /* owned; NULL: not encrypted */
	enum line_phase phase;
	bool is_caller;
	int status;		     /* errno of what ended it; 0: it was closed */
	uint64_t since_ns, heard_ns; /* made; last byte that came */
	uint64_t told_ns;	     /* last frame that we wrote */
	unsigned char session[LINE_SESSION_BYTES];
	struct line_claim claim; /* in the host's byte order */
	struct auth_nonces nonces;
	unsigned char secret[AUTH_KEY_BYTES], key[AUTH_KEY_BYTES];
	uint64_t in_number, out_number; /* frames so far */
	unsigned char *in, *out;	/* owned */
	size_t in_room, in_done, out_room, out_done, out_bytes;

	/* The holder's: see hub.h and session.h. */
	struct line *next;
	struct session *owner; /* NULL: a stranger */
	uint32_t node;	       /* who is at the other end */
	uint64_t cursor;       /* the next note it is to carry */
	bool was_open, is_edge, is_leaving, has_left;
	short polled; /* what the hub polls for; -1: it does not know the line yet */
};

struct line_call {
	struct addr to;
	unsigned char session[LINE_SESSION_BYTES];
	unsigned char key[AUTH_KEY_BYTES];
	uint32_t from_process, to_process;
	bool is_edge;
};

/* Begin to call. NULL when there is no memory or no socket. A call that fails at once is
 * LINE_GONE with its status. */
struct line *line_call(const struct line_call *call, uint64_t now_ns);

/* Take over an accepted socket, or close it and return NULL. */
struct line *line_accept(int fd, uint64_t now_ns);

/* Close and free. NULL is fine. */
void line_destroy(struct line *line);

/* What line_read() has found. */
enum line_news {
	LINE_NOTHING, /* no more for now, or LINE_GONE */
	LINE_MOVED,   /* another phase */
	LINE_FRAME    /* a frame: see line_head_get(), line_bytes() */
};

/* Read on. Call it until it says LINE_NOTHING, or the phase is LINE_ASKED. */
enum line_news line_read(struct line *line, uint64_t now_ns);

/* The session that is asked for is ours and has this key. */
void line_answer(struct line *line, const unsigned char key[AUTH_KEY_BYTES]);

/* The frame that line_read() found, in the host's byte order; valid until the next read.
 */
void line_head_get(const struct line *line, struct line_head *head);
const void *line_bytes(const struct line *line);

/* Begin to write a frame; only when line_is_idle(). False, and LINE_GONE, when that
 * cannot be. */
bool line_write(struct line *line, const struct line_head *head, const void *bytes,
	uint64_t now_ns);

/* Write on what is begun. */
void line_flush(struct line *line);

/* It is open and all that was begun is written. */
bool line_is_idle(const struct line *line);

/* What to poll() for. */
short line_events(const struct line *line);

#endif
