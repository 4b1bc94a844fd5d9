/*
 * move.h - the bytes of one move: fold the inputs, store the outputs.
 */
#ifndef EXEC_HOST_MOVE_H
#define EXEC_HOST_MOVE_H

#include "exec/host/state.h"

/* Run one tile of a move whose waits are over. Fails only where memory is foreign. */
enum err host_move(struct host_call *call, const struct move *move, uint32_t tile);

#endif
