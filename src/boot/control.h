/*
 * control.h - the control channel: how the ranks of a communicator that spans hosts keep
 * in touch for as long as it lives.
 *
 * It carries small messages, from any rank to any other or to all, and knows who is lost:
 * a process that ended is known to everybody in a few milliseconds, one that is cut off
 * or stands still after WEFT_SILENCE_SEC. Every process has one listening socket and one
 * sleeping thread for all its communicators. Processes keep strands to a few others
 * (edges.h), over which everybody hears of what concerns all; a message for one rank goes
 * over a strand straight to its process, opened when first needed. All of it is proved
 * with a key that only the ranks of the communicator have, and encrypted where the
 * program has set a key (ncclSetEncryption).
 *
 * What others say comes in by functions of the caller, called by the thread, one at a
 * time. They may send, but should not take long: other communicators wait.
 *
 * Read on in session.h (one communicator's strands), hub.h (the thread), strand.h (one
 * connection).
 */
#ifndef BOOT_CONTROL_H
#define BOOT_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"
#include "net/auth.h"

enum { CONTROL_BYTES_MAX = 65000 };

/* To everybody but the sender. */
#define CONTROL_ALL UINT32_MAX

/* Where others reach this process; the thread runs from the first of these until the last
 * control_unlisten(). The address is that of the interface for control (net/iface.h), or
 * loopback where there is nothing else. */
enum err control_listen(struct addr *addr);
void control_unlisten(void);

/* What everybody knows of a rank. Ranks with one address are in one process. */
struct control_peer {
	uint64_t host; /* the same for ranks that share a host */
	struct addr addr;
};

struct control_args {
	unsigned char key[AUTH_KEY_BYTES]; /* of this communicator alone; boot_key() */
	uint32_t rank, rank_count;
	const struct control_peer *peers; /* of all ranks; borrowed for the call */
	void *arg;			  /* for the functions */
	/* A message. What one rank sends to all comes in order, and so does what it sends
	 * to this rank, after what it had sent to all before. */
	void (*on_message)(
		void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size);
	/* The process of a rank is lost: once for each of its ranks. If it is this rank,
	 * the others have given it up. */
	void (*on_lost)(void *arg, uint32_t rank, const char *why);
};

struct control;

/* Join; between control_listen() and control_unlisten(). The strands are made by and by.
 */
enum err control_open(const struct control_args *args, struct control **control);

/* Wait until the strands that this rank makes are there. Ranks that do this and then
 * agree that all went well can leave at any time without being taken for lost. Fails with
 * a sentence at the deadline (0: none), when *abort is not 0 (may be NULL), and when a
 * rank is lost. */
enum err control_settle(
	struct control *control, uint64_t deadline_ns, const atomic_int *abort);

/* OK, or who is lost or cannot be let in, as control_settle() would say it: for who still
 * waits for others while the communicator is made. */
enum err control_check(const struct control *control);

/* Send to a rank, or to CONTROL_ALL. Never waits for anybody. What is sent to a rank that
 * is lost is dropped. */
enum err control_send(struct control *control, uint32_t to, uint32_t kind,
	const void *bytes, size_t size);

/* Tell everybody, and this process, that the process of a rank is lost: for who has seen
 * it by other means. */
void control_tell_lost(struct control *control, uint32_t rank, const char *why);

/* Who leaves soon does so at once: nobody is waited for to take its last words, but for
 * some milliseconds. */
void control_hurry(struct control *control);

/* Leave. No function is called any more when this returns, unless one of them called it.
 * NULL is fine. */
void control_close(struct control *control);

#endif
