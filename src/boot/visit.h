/*
 * visit.h - one rank's connection to the root, from its side: it comes, proves itself,
 * brings its record, hears the verdict, and goes on saying how it goes.
 *
 * These functions wait, with a deadline and an eye on the abort word. They return a bare
 * code and leave the reason in `why`; who called makes the sentence, so that a dismissal
 * can fail in silence. ERR_AGAIN: the connection is lost, try another.
 */
#ifndef BOOT_VISIT_H
#define BOOT_VISIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/id.h"
#include "boot/wire.h"
#include "net/seal.h"

/* How it ends, or what stands in its way. */
struct visit_end {
	int connect_errno; /* how the last try to reach the root ended */
	int own_errno;	   /* this process could not speak or hear; 0: it is not that */
	bool is_over;	   /* the last verdict, or a failure */
	bool is_hopeless;  /* the caller knew better: see boot_args */
	char why[WIRE_SENTENCE_MAX + 1];
};

struct visit {
	struct boot_args args; /* what it points to is the caller's */
	struct id_body id;
	struct addr to;	    /* where the root is, as seen from here */
	struct addr beyond; /* .. and where it is if that is only a porch (porch.h) */
	bool is_at_porch;
	uint64_t porch_ns; /* who is not let in there by then goes on to the root */
	bool is_let_in;	   /* whoever listens has proved itself on this connection */
	uint64_t deadline_ns, since_ns; /* of this round: when the wait began */
	int fd;				/* owned; -1 between connections */
	struct seal *seal;  /* owned; NULL: nothing is encrypted, or no connection */
	bool is_root_known; /* it has once proved itself: when refused now, it has gone */
	struct auth_nonces nonces;
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char meeting[WIRE_MEETING_BYTES]; /* which one it is, of one id's */
	uint32_t round;				   /* verdicts heard */
	size_t payload_bytes; /* that the next verdict brings when all is well */
	bool has_warned;      /* that nobody answers */
	struct visit_end end;
};

/* What a rank has to say in a round. */
struct visit_word {
	enum err code; /* how it went; the reason is in visit->why or err_last() */
	bool is_last;
	const void *record; /* `record_bytes` of it */
	uint32_t record_bytes;
	uint32_t what; /* enum wire_what; of a rank for itself: 0 */
};

enum {
	VISIT_SLICE_MS = 10,   /* how often a waiting rank looks at the abort word */
	VISIT_GRACE_MS = 1000, /* we outwait the root, which knows who is missing */
	VISIT_HEAR_MS = 50     /* for what was said before we could not speak any more */
};

/* Keep the reason; returns the code. */
enum err visit_fail(struct visit *visit, enum err code, const char *why);

/* The connection ended in the middle: the process in which the root was has gone, or this
 * one cannot hear it. */
enum err visit_root_gone(struct visit *visit);

/* Sleep a little before trying again. */
enum err visit_pause(struct visit *visit, int ms);

/* Come to the root, again and again until it lets us in. WIRE_MEET waits for the verdict
 * and stays; WIRE_PORCH stays at once; the others leave. */
enum err visit_root(struct visit *visit, enum wire_kind kind, void *records);

/* Say it, and its record if it goes well, in one message. */
enum err visit_say(struct visit *visit, const struct visit_word *word);

/* Hear the next verdict; all records, if it brings any, go to `records`. */
enum err visit_hear(struct visit *visit, void *records);

/* We go before all is decided: the others hear why, if that fits in the socket. */
void visit_give_up(struct visit *visit, enum err code);

void visit_close(struct visit *visit);

#endif
