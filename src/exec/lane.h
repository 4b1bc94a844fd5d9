/*
 * lane.h - the interpreter: steps one lane of a program through its tiles.
 *
 * The state is three integers. An engine gives three answers: has this position been
 * reached, move these bytes, announce this position. The host engine answers with memory
 * and the simulation with virtual time; both run exactly these steps.
 */
#ifndef EXEC_LANE_H
#define EXEC_LANE_H

#include "plan/plan.h"

struct lane {
	uint32_t tile, move;
	uint32_t wait;		    /* waits of the current move already satisfied */
	const struct wait *blocked; /* what it waits for, when blocked; borrowed */
};

enum lane_result { LANE_DONE, LANE_BLOCKED };

struct lane_ops {
	/* Has wait->rank retired wait->position moves of `tile` (already minus back)? */
	bool (*reached)(void *engine, const struct wait *wait, uint32_t tile);
	void (*run)(void *engine, const struct move *move, uint32_t lane, uint32_t tile);
	/* `retired` moves of this lane are done, over all tiles, `move` the last of them.
	 */
	void (*publish)(
		void *engine, const struct move *move, uint32_t lane, uint64_t retired);
};

/* Run until done or blocked; when blocked, lane->blocked is what it waits for, and
 * lane->tile - blocked->back the tile. */
enum lane_result lane_step(const struct shape *shape, uint32_t index, struct lane *lane,
	const struct lane_ops *ops, void *engine);

#endif
