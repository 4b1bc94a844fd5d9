/*
 * prog.h - one lane's program: a growing list of instructions and its peers.
 *
 * A schedule is written by calling prog_emit() in order. Engines only read what
 * lower.h makes of it; the checker proves that before first use.
 */
#ifndef SCHED_PROG_H
#define SCHED_PROG_H

#include <stdbool.h>

#include "base/err.h"
#include "sched/insn.h"

enum { PROG_INSNS_MAX = 65536, PROG_PEERS_MAX = 256 };

struct prog {
	struct insn *insns; /* owned; the first `count` are valid */
	uint32_t count;
	uint32_t capacity;
	uint32_t rx_count, tx_count;
	uint16_t *rx_peers; /* owned: connection -> rank we receive from */
	uint16_t *tx_peers; /* owned: connection -> rank we send to */
	bool failed;	    /* there was no memory for a peer */
};

/* Append a copy of `insn` to a zeroed or earlier program. Unchanged on failure; fails
 * also when there was no memory for a peer before. */
enum err prog_emit(struct prog *prog, const struct insn *insn);

/* Add a connection; returns its index. The same peer twice gives the same index. Without
 * memory the index is 0, `failed` is set and the next prog_emit() says so. */
uint8_t prog_rx(struct prog *prog, uint32_t peer);
uint8_t prog_tx(struct prog *prog, uint32_t peer);

/* The same for a peer that has no connection yet: nobody looks for it, so that a lane to
 * everyone is written in linear time. */
uint8_t prog_rx_new(struct prog *prog, uint32_t peer);
uint8_t prog_tx_new(struct prog *prog, uint32_t peer);

/* Free what the others allocated. The program is empty and usable again. */
void prog_fini(struct prog *prog);

#endif
