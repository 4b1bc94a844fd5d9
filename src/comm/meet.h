/*
 * meet.h - how a communicator's ranks meet and connect: identity, board, engine, GPU.
 *
 * Every step is followed by a round of the meeting (boot.h), so a rank that fails, for
 * whatever reason, or dies on the way is known to all others at once and by its sentence.
 */
#ifndef COMM_MEET_H
#define COMM_MEET_H

#include "comm/comm.h"
#include "comm/comm_log.h"

/* All of comm_init() but the log. After a failure the comm holds what it got so far. */
enum err comm_meet(
	struct comm *comm, const struct comm_init_args *args, struct init_times *times);

#endif
