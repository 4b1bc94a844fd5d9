/*
 * boot.h - how ranks meet before they can talk: unique id, rendezvous, small allgather.
 *
 * The process that makes an id runs a root thread on a Unix socket (abstract name) or,
 * when NCCL_COMM_ID names an address, on TCP. A rank connects, proves by a keyed hash
 * over both sides' nonces that it knows the secret inside the id, and only then is
 * anything it sends parsed. The root collects one record of each rank and hands
 * everybody all of them. Every wait has a deadline and sees the abort word.
 */
#ifndef BOOT_BOOT_H
#define BOOT_BOOT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

enum { BOOT_ID_BYTES = 128, BOOT_RECORD_MAX = 512 };

struct boot_id {
	unsigned char bytes[BOOT_ID_BYTES];
};

/* Make an id and start its root thread. The root serves one meeting (of as many ranks as
 * the first arrival says) and ends by itself, at the deadline at the latest. */
enum err boot_id_create(struct boot_id *id);

/* A 64-bit fingerprint of the id, for logs and for keys. */
uint64_t boot_id_hash(const struct boot_id *id);

struct boot_args {
	const struct boot_id *ids; /* borrowed */
	uint32_t id_count; /* several ids share the load; ranks spread over them */
	uint32_t rank, rank_count;
	const void *record;	 /* this rank's record */
	uint32_t record_bytes;	 /* the same on every rank, at most BOOT_RECORD_MAX */
	const atomic_int *abort; /* non-zero ends the wait with ERR_REMOTE; may be NULL */
};

/* Meet: give my record, get everyone's into `records` (rank_count * record_bytes).
 * Fails with a sentence on a wrong secret, two ranks of one number, different rank
 * counts, or the deadline (naming the ranks that did not come). */
enum err boot_meet(const struct boot_args *args, void *records);

#endif
