/*
 * guest.h - one connection as the root sees it: a stranger until it has proved itself.
 *
 * Nothing here blocks or reports: the root (root.c) polls, and decides what a
 * guest's words mean for the meeting. Where connections are encrypted (net/seal.h), not a
 * byte of a stranger gets this far before it has shown that it has the key.
 */
#ifndef BOOT_GUEST_H
#define BOOT_GUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/wire.h"
#include "net/seal.h"

enum guest_phase {
	GUEST_HELLO,  /* we await its nonce */
	GUEST_CLAIM,  /* we have proved ourselves and await its proof */
	GUEST_RECORD, /* it is one of us; its record is on the way */
	GUEST_HERE,   /* all of it has come: it waits for a verdict, or says why not */
	GUEST_TOLD,   /* the last verdict is on the way */
	GUEST_GONE    /* close it */
};

/* What it says of itself in a round of the meeting. */
struct guest_word {
	enum err code;
	bool is_last;
	uint32_t brings;	   /* bytes of the record that came with it */
	uint32_t what;		   /* enum wire_what .. */
	uint32_t rank, rank_count; /* .. and of whom: itself, or another */
	char sentence[WIRE_SENTENCE_MAX + 1];
};

/* The present one. */
struct guest_round {
	uint32_t number;   /* verdicts it has been told */
	bool has_said;	   /* `said` is its word of this round, and its record is whole */
	bool has_recanted; /* .. and after it that it cannot go on: `said` is that now */
	struct guest_word said;
};

/* The present message, each way. */
struct guest_io {
	size_t in_done, out_done, out_bytes;
	size_t payload_done, payload_bytes;
	const unsigned char *payload; /* borrowed */
	unsigned char in[BOOT_RECORD_MAX + AUTH_TAG_BYTES];
	unsigned char out[sizeof(struct wire_verdict)];
};

struct guest {
	struct guest *next; /* the root's, as is the next */
	int watched;	    /* what the root asks epoll for; -1: nothing yet */
	int fd;		    /* owned */
	struct seal *seal;  /* owned; NULL: not encrypted */
	enum seal_fault
		fault; /* why a stranger is put out, where its key is the reason */
	enum guest_phase phase;
	uint64_t since_ns; /* when it came */
	uint32_t kind, rank, rank_count,
		record_bytes; /* its claim, from GUEST_RECORD on */
	bool is_member;	      /* the root counts it among those that came */
	struct guest_round round;
	/* Its record of this round, which it brings along with its word. */
	uint32_t bring_bytes;
	unsigned char *bring_to; /* borrowed; NULL: the root has not said where to yet */
	unsigned char *bag;	 /* owned: for a record that is only passed on */
	uint32_t rank_total;	 /* ranks that have come by it, where it is a porch */
	struct auth_nonces nonces;
	unsigned char key[AUTH_KEY_BYTES];
	struct guest_io io;
};

/* Take over an accepted, non-blocking socket, and its seal (NULL: none). NULL when there
 * is no memory: they are the caller's then. */
struct guest *guest_create(int fd, struct seal *seal, uint64_t now_ns);

/* Read and write what can be without waiting, which may move it to a later phase. */
void guest_move(struct guest *guest, const unsigned char *secret);

/* Its word of this round has come and a record follows, which needs a place. */
static inline bool guest_is_bringing(const struct guest *guest)
{
	return guest->bring_bytes && !guest->bring_to;
}

/* What the root would say to all: the code, and the payload with its digest. */
struct guest_news {
	enum err code;
	bool is_last;		      /* nothing more is said afterwards */
	const unsigned char *payload; /* borrowed; must outlive the guests */
	size_t bytes;
	unsigned char digest[AUTH_TAG_BYTES];
	unsigned char meeting[WIRE_MEETING_BYTES];
};

/* Begin to send the verdict of its round. GUEST_GONE follows when all of a last one is
 * sent; else the guest is HERE in the next round. */
void guest_tell(struct guest *guest, const struct guest_news *news);

/* It has not proved itself (or not finished its record) yet. */
static inline bool guest_is_stranger(const struct guest *guest)
{
	return guest->phase < GUEST_HERE;
}

/* Some of our words are not sent yet. */
bool guest_has_output(const struct guest *guest);

/* Some of its words have come and epoll does not know of them. */
bool guest_has_input(const struct guest *guest);

/* Close the socket, wipe the key and free it. */
void guest_destroy(struct guest *guest);

#endif
