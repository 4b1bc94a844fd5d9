/*
 * onesided.h - put into a peer's window and signal it, or wait for signals.
 *
 * A signal is counted on the board, for every direction and number of its own. A
 * put stores into the window in place and then signals, so who has waited for the signal
 * sees the data. Neither side of a put waits for the other.
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
};

/* OK when complete, ERR_AGAIN when signals are missing, else the failure. */
enum err onesided_step(struct onesided *onesided);

/* Slow checks while blocked, as host_call_check(). */
enum err onesided_check(struct onesided *onesided);

/* What it waits for, as a note on the board (doing.h). */
struct doing onesided_doing(const struct onesided *onesided);

/* The word it is blocked on, to sleep on. */
_Atomic uint64_t *onesided_word(
	const struct onesided *onesided, _Atomic uint32_t **sleepers);

#endif
