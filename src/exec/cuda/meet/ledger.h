/*
 * ledger.h - what every rank has called, where the others can read it.
 *
 * A rank writes each call into a page of its own, in memory that all ranks of the
 * communicator have mapped, before it enqueues anything; that it did enqueue it is a
 * second number. So a rank knows without the device, and without asking a process that
 * may be stopped, whether the others call the same, who has not called yet, and of two
 * calls that differ what both are. Calls that a graph captures are not written: nobody
 * counts its replays.
 *
 * The page begins with the words that this rank's kernels and the host tell each other.
 * Others write one of them: whoever fails stops the kernels of all ranks, those of a
 * stopped process and those it will launch when it goes on as well.
 */
#ifndef EXEC_CUDA_MEET_LEDGER_H
#define EXEC_CUDA_MEET_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { LEDGER_PAGE_BYTES = 8192 }; /* of the words; pages of memory */

/* What the device reads and writes in host memory. */
struct words {
	uint32_t abort;	  /* not 0: stop */
	uint32_t trouble; /* 1 + the rank whose call differs */
	uint32_t seen;	  /* a word of the device that the host wanted to see */
	uint32_t unused;
	uint32_t values[LEDGER_PAGE_BYTES / 4 - 4]; /* on their way to the device */
};

struct ledger;

/* Where another rank's page is. */
struct ledger_address {
	uint32_t pid, fd;
};

/* A collective, as far as ranks must agree. */
struct ledger_call {
	uint8_t coll, type, op; /* op: 0 where nothing is reduced */
	uint8_t slots;		/* 1 + the codec of a call through slots, or 0 */
	uint32_t root;
	uint32_t schedule; /* of a call through slots: a hash of its name */
	uint64_t count;
};

/* This rank's page, before the ranks meet, and the others', after. */
enum err ledger_open(uint32_t rank, uint32_t rank_count, struct ledger **ledger,
	struct ledger_address *address);
enum err ledger_connect(struct ledger *ledger, const struct ledger_address *addresses);
void ledger_close(struct ledger *ledger);

/* Of this rank. They begin a page of memory and are LEDGER_PAGE_BYTES long. */
struct words *ledger_words(struct ledger *ledger);

/* Every rank's kernels are told to stop, from now on. */
void ledger_stop_all(struct ledger *ledger);

/* A collective begins; it was enqueued. True: it is time for ledger_check(), before what
 * nobody has looked at is overwritten. */
bool ledger_call_begin(struct ledger *ledger, const struct ledger_call *call);
void ledger_call_end(struct ledger *ledger);

/* The same for a send or a receive. */
void ledger_pair_begin(
	struct ledger *ledger, bool is_send, uint32_t peer, uint64_t bytes);
void ledger_pair_end(struct ledger *ledger, bool is_send, uint32_t peer);

/* Of the message that was begun last, in this direction: ERR_USAGE, with both in a
 * sentence, when the peer has begun it as well, and with another length or at another
 * place among the collectives. Whichever of the two comes second learns it here. */
enum err ledger_pair_check(struct ledger *ledger, bool is_send, uint32_t peer);

/* Signals given to a peer; waited for from it. */
void ledger_give(struct ledger *ledger, uint32_t peer);
void ledger_await(struct ledger *ledger, uint32_t peer, uint32_t count);

/* Of a peer in this process: is another thread than this one still to give signals that
 * are waited for? */
bool ledger_lacks_signals(const struct ledger *ledger, uint32_t peer);

/* Compare this rank's calls with the others'. ERR_USAGE, with both calls in a sentence
 * and the rank that is to blame, when two differ. By any thread. */
enum err ledger_check(struct ledger *ledger, uint32_t *culprit);

/* The same for the calls of all ranks, as far back as there are any: when something is
 * known to be wrong. */
enum err ledger_search(struct ledger *ledger, uint32_t *culprit);

/* Has this rank made a call that the peer must make as well and has not made? Says which
 * in `text`. */
enum { LEDGER_TEXT_BYTES = 160 };
bool ledger_is_behind(struct ledger *ledger, uint32_t peer, char text[LEDGER_TEXT_BYTES]);

/* Numbers that change whenever the peer makes a call that concerns this rank, and
 * whenever this rank makes one; 0: it has made none. */
uint64_t ledger_progress(const struct ledger *ledger, uint32_t peer);
uint64_t ledger_made(const struct ledger *ledger);

#endif
