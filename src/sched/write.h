/*
 * write.h - what every schedule writer says its instructions with.
 *
 * A writer fills one rank's schedule line by line. The first failure sticks in
 * writer.error and later lines do nothing, so a writer reads as its schedule does and
 * returns writer.error at its end. write.c knows no algorithm.
 */
#ifndef SCHED_WRITE_H
#define SCHED_WRITE_H

#include "sched/sched.h"

struct writer {
	struct sched *sched; /* borrowed */
	enum err error;
};

/* One instruction in plain numbers. What is left out is: one chunk, one repetition, no
 * wait, connection 0. A fan of one connection is written as a plain instruction. */
struct sched_line {
	uint32_t op; /* enum insn_op bits */
	enum space from, to;
	uint32_t src, dst, count, reps;
	int stride, conn_step;
	uint32_t rx, tx;
	uint32_t own; /* of a fan: received values folded before SRC */
	bool push;
	uint32_t wait_lane, wait_pc; /* wait_pc 0: no wait */
};

/* Start a schedule of `lane_count` empty lanes. */
struct writer write_begin(struct sched *sched, uint32_t chunk_count, uint32_t lane_count);

/* Append one line to `lane`. */
void write_line(struct writer *writer, uint32_t lane, const struct sched_line *line);

/* Lines that differ by constant steps in their chunks and connections are put together as
 * the repetitions of one. Of a zeroed run but for its first two members. */
struct line_run {
	struct writer *writer; /* borrowed */
	uint32_t lane;
	struct sched_line line; /* may still grow; reps 0: there is none */
};
void run_add(struct line_run *run, const struct sched_line *line);
void run_end(struct line_run *run);

/* Connect `lane` to `count` peers, first, first + step, .. modulo the rank count, leaving
 * out the rank itself. All are different, and none has a connection of that kind yet. */
void write_rx_peers(
	struct writer *writer, uint32_t lane, uint32_t first, int step, uint32_t count);
void write_tx_peers(
	struct writer *writer, uint32_t lane, uint32_t first, int step, uint32_t count);

/* Take out[c] from every other rank c; the connections are in rank order. */
void write_recv_each(struct writer *writer, uint32_t lane);

/* x modulo n, never negative. */
uint32_t write_mod(int64_t x, uint32_t n);

#endif
