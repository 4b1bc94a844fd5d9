/*
 * boot.h - how ranks meet before they can talk: unique id, rendezvous, small allgather.
 *
 * The process that makes an id runs a root thread on a Unix socket (abstract name) and,
 * where the host has more than loopback, on a TCP port for ranks of other hosts. When
 * NCCL_COMM_ID names an address, the id is made from that text alone, the same on every
 * host, and rank 0 runs the root there while it meets. A rank connects, both sides prove
 * by a keyed hash over both nonces that they know the secret inside the id, and only then
 * is anything parsed. The root collects one record of each rank and hands everybody all
 * of them. The connection stays until the communicator is made: in rounds, every rank
 * says how it went, and all hear of the one that failed, with its sentence, or died.
 * Every wait has a deadline (WEFT_BOOT_TIMEOUT_SEC) and sees the abort word.
 *
 * Whoever has an id can join its meeting, so an id is as confidential as a password. One
 * made from NCCL_COMM_ID is only as secret as that text; set WEFT_SECRET to the same
 * random text on all ranks to make it truly secret.
 *
 * Read on in root.h (the meeting), guest.h (one connection) and wire.h (the messages).
 */
#ifndef BOOT_BOOT_H
#define BOOT_BOOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "net/auth.h"

enum { BOOT_ID_BYTES = 128, BOOT_RECORD_MAX = 512, BOOT_GATHER_MAX = 8192 };

struct boot_id {
	unsigned char bytes[BOOT_ID_BYTES];
};

/* Make an id and start its root thread. The root serves one meeting (of as many ranks as
 * the first arrival says) and ends by itself: at the deadline, counted from the first
 * arrival, at the latest, or after an hour without any. It does not keep the process. */
enum err boot_id_create(struct boot_id *id);

/* The same whatever NCCL_COMM_ID says: a communicator that comes of another one meets
 * where its first rank is, and several may do so at once. */
enum err boot_id_create_here(struct boot_id *id);

/* Nobody will use this id (again): end its root now if it runs in this process. */
void boot_id_drop(const struct boot_id *id);

/* Let go of what meetings that are over have left. */
void boot_tidy(void);

/* A 64-bit fingerprint of the id, for logs and for keys. */
uint64_t boot_id_hash(const struct boot_id *id);

struct boot_args {
	const struct boot_id *ids; /* borrowed */
	uint32_t id_count; /* all meet at the first; the others' roots are sent home */
	uint32_t rank, rank_count;
	const void *record;	 /* this rank's record */
	uint32_t record_bytes;	 /* the same on every rank, at most BOOT_RECORD_MAX */
	const atomic_int *abort; /* non-zero ends the wait with ERR_REMOTE; may be NULL */
	/* Asked while waiting; a failure, with its sentence, ends the wait for all ranks:
	 * the caller knows of somebody who will not come. Once all have met, the root
	 * sees who is lost; but it may be silent itself, or wait for one that is. So when
	 * that takes long it is asked again, with `has_met`: not of who left in peace
	 * meanwhile. May be NULL. */
	enum err (*hope)(void *hope_arg, bool has_met);
	void *hope_arg;
	/* This rank cannot take part, for the reason in err_last(): tell the others. */
	enum err failed;
	const char *root;   /* who runs the root, for sentences; may be NULL */
	bool *is_root_lost; /* set when the root itself has gone; may be NULL */
};

/* Ranks that have met and go on saying how it goes. */
struct meeting;

/* Meet: give my record, get everyone's into `records` (rank_count * record_bytes).
 * Fails with a sentence, the same on every rank: ERR_USAGE on a wrong secret, two ranks
 * of one number, different rank counts or record sizes; ERR_TIMEOUT at the deadline,
 * naming the ranks that did not come; ERR_REMOTE when a rank or the root has gone; what
 * one of them said when it could not take part. After a failure `records` may hold
 * anything and there is no meeting. */
enum err boot_meet(const struct boot_args *args, void *records, struct meeting **meeting);

/* The process of this host in which its ranks meet; 0: it is of another, or not known. */
uint32_t boot_root_pid(const struct meeting *meeting);

/* .. and what it is called when it does not answer or has gone; borrowed. */
void boot_root_name(struct meeting *meeting, const char *name);

/* Only tell the others that this rank cannot come (args->failed, err_last()), as well as
 * that can be done; needs no memory. */
void boot_refuse(const struct boot_args *args);

/* One round: say how it went here (`mine`; err_last() is the sentence) and wait for all.
 * OK when it went well with everybody, `mine` when that is a failure, else the first
 * failure of another rank, with its sentence. All ranks make the same rounds; the last
 * has `is_last`. After a failure only boot_leave() is left. */
enum err boot_agree(struct meeting *meeting, enum err mine, bool is_last);

/* A round in which every rank also gives `bytes` bytes, the same number on every rank, at
 * most BOOT_GATHER_MAX, and gets everyone's into `records` (rank_count * bytes, in rank
 * order). `mine` and the result are as with boot_agree(); after a failure `records` may
 * hold anything. Never the last round. */
enum err boot_gather(struct meeting *meeting, enum err mine, const void *record,
	uint32_t bytes, void *records);

/* A key that all ranks of this meeting can make, and nobody else; another one for another
 * label (16 characters at most) and for another meeting. */
void boot_key(const struct meeting *meeting, const char *label,
	unsigned char key[AUTH_KEY_BYTES]);

/* Close the connection; NULL is fine. Before the last round it looks to the others as if
 * this rank had died. */
void boot_leave(struct meeting *meeting);

#endif
