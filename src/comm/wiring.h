/*
 * wiring.h - the topology a communicator runs on, and the rings and trees over it.
 *
 * What `weft graph` computes for a machine in a file, the library computes for itself
 * when somebody will look at it: the log, a dump, a graph file or a tuner plugin. The
 * machine is looked at once per process (machine.h); a communicator's graphs are computed
 * once per process, by the first of its ranks that comes, and shared by the others.
 *
 * The host engine runs its schedules in rank order and on one channel; it does not follow
 * these graphs. They are what NCCL's rules make of the machine and the ranks on it.
 */
#ifndef COMM_WIRING_H
#define COMM_WIRING_H

#include "graph/decide.h"
#include "link/board.h"

struct wiring;

/* Will anybody look? Without it a communicator is made without a wiring. */
bool wiring_is_wanted(void);

struct wiring_args {
	const struct board *board; /* every rank has shown its processors */
	uint32_t rank;
	uint32_t min_ctas, max_ctas;
};

/* The wiring of the ranks on this board, counted. *wiring is NULL when it cannot be known
 * (one sentence in the log says why), which is no failure. A graph file that does not fit
 * is ERR_USAGE. Rank 0 writes the files of NCCL_TOPO_DUMP_FILE and
 * NCCL_GRAPH_DUMP_FILE. */
enum err wiring_get(const struct wiring_args *args, struct wiring **wiring);
void wiring_put(struct wiring *wiring); /* NULL is fine */

const struct cluster *wiring_cluster(const struct wiring *wiring);
/* What looking at the machine took of the time of wiring_get(), at most. */
uint64_t wiring_topo_ns(const struct wiring *wiring);

#endif
