/*
 * rma_mover.h - the thread by which a communicator's puts go through a one-sided plugin,
 * and which sees what comes through it.
 *
 * All functions of the plugin that move data are called by this thread, so that one which
 * does not return holds up nobody who has a deadline. Signals come into memory that the
 * plugin knows; the thread carries them to where ncclWaitSignal looks, and lets the
 * plugin do its work while no rank of this process is in any call. It naps up to a
 * millisecond when nothing happens.
 */
#ifndef COMM_RMA_MOVER_H
#define COMM_RMA_MOVER_H

#include "exec/host/engine.h"
#include "net/rma.h"

struct comm;
struct rma_mover;

struct rma_mover_args {
	struct comm *comm;
	struct net_rma *net; /* borrowed: connected */
	/* from each rank its signals to this one; all begin with 0, and the first of each
	 * rank of another host is one of the trial's */
	uint64_t *signals;
	uint32_t signal_count;
};

enum err rma_mover_start(const struct rma_mover_args *args, struct rma_mover **mover);

/* False: it is stuck in the plugin, and all that it knows has to stay. */
bool rma_mover_end(struct rma_mover *mover);

/* All that was put is done, and what comes is told from now on; so is a failure. */
void rma_mover_trust(struct rma_mover *mover);

/* See struct host_port. The names and offsets are in `put`. */
enum err rma_mover_put(
	struct rma_mover *mover, const struct rma_put *put, struct far_order **order);
enum err rma_mover_over(struct rma_mover *mover, struct far_order *order);
enum err rma_mover_check(struct rma_mover *mover);
void rma_mover_attend(struct rma_mover *mover);

/* Wait until nothing is under way, but not for long. */
void rma_mover_settle(struct rma_mover *mover, uint64_t limit_ns);

/* Ask the plugin for nothing more. */
void rma_mover_stop(struct rma_mover *mover);

#endif
