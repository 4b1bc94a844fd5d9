/*
 * move.h - the bytes of one move: fold the inputs, store the outputs.
 */
#ifndef EXEC_HOST_MOVE_H
#define EXEC_HOST_MOVE_H

#include "exec/host/state.h"

/* Run one tile of a move whose waits are over. Fails only where memory is foreign. */
enum err host_move(struct host_call *call, const struct move *move, uint32_t tile);

/* Address of chunk `j` of a place, tile applied. */
char *host_place(const struct host_call *call, const struct place *place, uint32_t tile,
	uint32_t j);

/* One value to one place as it is: most moves of the collectives that fold nothing, and
 * too short to be worth preparing for arithmetic. */
bool host_move_is_copy(const struct host_call *call, const struct move *move);

/* Have what the peers stage on its way before the first of it is waited for, where a
 * small call waits for all of them: their cards, and the first line of each message. */
void host_fetch(const struct host_call *call);

#endif
