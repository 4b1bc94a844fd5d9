/*
 * onesided.h - put into a peer's window and signal it, or wait for signals.
 *
 * A signal is counted on the board, for every direction and number of its own. A
 * put stores into the window in place and then signals, so who has waited for the signal
 * sees the data. Neither side of a put waits for the other.
 *
 * To a rank on another host a put goes by the control channel, in pieces, and the thread
 * of the channel writes them into the window and counts the signal: the target need not
 * be in any call. What is under way, of all puts of a rank, is bounded: beyond half of
 * the bound a piece wants a receipt, which says how much has landed.
 *
 * Where the communicator has a one-sided plugin (struct host_port) and both ends lie in
 * windows that it knows, the plugin moves the data and counts the signal. A rank's puts
 * to another land in the order they were made: before the way is changed, what went the
 * other way has landed, which receipts say. Bare signals go as the put before them did.
 */
#ifndef EXEC_HOST_ONESIDED_H
#define EXEC_HOST_ONESIDED_H

#include "exec/host/engine.h"
#include "link/peer.h"

struct onesided {
	struct host_engine *engine;
	uint32_t peer;
	uint32_t signal;  /* which: below the board's signal_count */
	uint32_t awaited; /* signals to wait for; 0: this is a put */
	/* put: nothing when bytes is 0, which is a bare signal */
	const char *data;
	size_t bytes, offset;
	uint64_t ref; /* the peer's window */
	uint32_t directory;
	/* to a rank on another host: the number of the window there and here, and bytes
	 * that are gone */
	uint32_t window, own_window;
	size_t done;
	struct far_order *order; /* by the port; NULL: not asked for */
	struct signal *word; /* the signal's, from the first step on; not of a far put */
};

/* What a piece of a put counts for, beside its bytes. */
enum { FAR_PUT_COST = 128 };

/* OK when complete, ERR_AGAIN when signals are missing, else the failure. */
enum err onesided_step(struct onesided *onesided);

/* Slow checks while blocked, as host_call_check(). */
enum err onesided_check(struct onesided *onesided);

/* A number that changes whenever it makes progress. */
uint64_t onesided_stamp(const struct onesided *onesided);

/* At the end: wait until what was put to ranks on other hosts has landed, or they are
 * gone. */
void onesided_flush(struct host_engine *engine);

/* What it waits for, as a note on the board (doing.h). */
struct doing onesided_doing(const struct onesided *onesided);

/* The word it is blocked on, to sleep on. */
_Atomic uint64_t *onesided_word(
	const struct onesided *onesided, _Atomic uint32_t **sleepers);

#endif
