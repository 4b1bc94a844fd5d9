/*
 * root.h - the root of a meeting: a thread that gathers one record of each rank and hands
 * everybody all of them, or everybody the same sentence when that cannot be. Then it
 * gathers how it went with each, round after round, until all have what they need: one
 * that fails or dies on the way is known to all at once.
 *
 * One epoll loop, no blocking call, so a stranger (a port scanner, random bytes, a
 * half-open connection) costs no rank more than a moment: it has two seconds to prove
 * itself, and only so many strangers are let in at a time.
 */
#ifndef BOOT_ROOT_H
#define BOOT_ROOT_H

#include <stdbool.h>
#include <stdint.h>

#include "boot/wire.h"
#include "net/addr.h"
#include "net/auth.h"

struct porch;

struct root_args {
	struct addr addr; /* by which it is known in this process */
	struct addr away; /* it listens here, too; family 0: not */
	unsigned char secret[AUTH_KEY_BYTES];
	unsigned char psk[AUTH_KEY_BYTES]; /* where connections are encrypted .. */
	bool is_sealed;			   /* .. and they are */
	uint64_t timeout_ns; /* from the first rank to the last; 0 is for ever */
	/* It only passes on what its host's ranks say: the connection to the root of all,
	 * and the socket that listens at `addr` already; both are taken over when the
	 * root is started. NULL: it is the root of all. */
	struct porch *up; /* owned, from the heap */
	int door;	  /* where there is an `up` .. */
	uint32_t rank;	  /* .. and whose process it is in */
};

/* Listen, and start the thread. It ends by itself after the meeting, at the timeout, or
 * an hour later when nobody comes at all; at exit (or dlclose) it is stopped and joined.
 * `away` gets the port it has. ERR_AGAIN, with no sentence, when the address is taken. */
enum err root_start(struct root_args *args);

/* Why a rank of the root's process does not take part. */
struct refusal {
	enum err code; /* OK: none */
	uint32_t rank, rank_count;
	uint32_t count; /* ranks that will not come to hear it; 0: it has, at a porch */
	char sentence[WIRE_SENTENCE_MAX];
};

/* A rank cannot take part, for the reason in err_last(), and the root is in this process:
 * it tells all others. False when it is not. */
bool root_refuse(const struct root_args *args, const struct refusal *said);

/* Join the roots that have ended. */
void roots_tidy(void);

/* End and join the root at this address, if it is one of this process and still there. */
void root_stop(const struct addr *addr);

/* Is one of this process at this address? Those that have ended are joined first. */
bool root_is_here(const struct addr *addr);

#endif
