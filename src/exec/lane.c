#include "exec/lane.h"

static bool waits_are_over(const struct program *program, const struct move *move,
	struct lane *lane, const struct lane_ops *ops, void *engine)
{
	for (; lane->wait < move->wait_count; lane->wait++) {
		const struct wait *wait = &program->waits[move->wait_first + lane->wait];

		/* before tile `back` there is nothing to wait for: the slot was never
		 * used */
		if (lane->tile >= wait->back &&
			!ops->reached(engine, wait, lane->tile - wait->back))
			return false;
	}
	return true;
}

enum lane_result lane_step(const struct shape *shape, uint32_t index, struct lane *lane,
	const struct lane_ops *ops, void *engine)
{
	const struct program *program = shape->program;
	const struct lane_moves *moves = &program->lanes[index];

	while (lane->tile < shape->tile_count) {
		for (; lane->move < moves->count; lane->move++) {
			const struct move *move = &moves->moves[lane->move];

			if (!waits_are_over(program, move, lane, ops, engine)) {
				lane->blocked =
					&program->waits[move->wait_first + lane->wait];
				return LANE_BLOCKED;
			}
			lane->wait = 0;
			if (move->output_count || move->sent_count)
				ops->run(engine, move, index, lane->tile);
			if (move->publish)
				ops->publish(engine, move, index,
					(uint64_t)lane->tile * moves->count + lane->move +
						1);
		}
		lane->move = 0;
		lane->tile++;
	}
	return LANE_DONE;
}
