/*
 * rma.h - puts to other hosts by a one-sided plugin, where all ranks of a communicator
 * have the same.
 *
 * The plugin is opened while the ranks meet. It connects them when the first window is
 * registered, or at once where the configuration says so (rmaEagerInit), and is tried:
 * each rank puts a word to each of another host. Where anything of that fails on any rank
 * no rank uses it, and puts go by the control channel as they do without. From the first
 * window on a rank's thread is awake for it now and then (rma_mover.h).
 */
#ifndef COMM_RMA_H
#define COMM_RMA_H

#include "comm/comm.h"
#include "exec/host/engine.h"
#include "net/plugin.h"

/* Open one, if there is one; `name`, of PLUGIN_NAME_BYTES, is what it calls itself, ""
 * where there is none. `network` is this rank's network plugin, or NULL. */
void rma_open(struct comm *comm, const struct net_plugin *network, char *name);

/* A rank has none, or another. */
void rma_disagree(struct comm *comm, uint32_t rank, const char *name);

/* Some rank is to have signals before there is a window: connect at once. */
void rma_hurry(struct comm *comm);

/* All ranks come here together, once they can run calls: connect and try. OK also where
 * it is not used then. */
enum err rma_meet(struct comm *comm);

/* .. once it is made, where somebody is in a hurry. */
enum err rma_meet_early(struct comm *comm);

/* Have the plugin know this rank's part of a window; all ranks together. *known stays
 * NULL where one of them cannot: then puts into it go by the control channel. */
enum err rma_window_add(
	struct comm *comm, void *base, size_t bytes, bool is_ordered, void **known);
void rma_window_remove(struct comm *comm, void *known);

/* This rank has failed: its windows are its user's again. */
void rma_withdraw(struct comm *comm);

/* At the end; no window is known any more. */
void rma_end(struct comm *comm);

/* Its argument is the communicator. */
extern const struct host_port rma_port;

#endif
