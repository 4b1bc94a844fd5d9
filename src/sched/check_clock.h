/*
 * check_clock.h - vector clocks over lane positions, for the checker only.
 *
 * A lane's time is the number of moves it has retired. Its clock says, for every lane,
 * up to which position it knows that lane to be; waiting for a position of another lane
 * joins the clock that lane had there. Old clocks are kept as versions, a new one only
 * when a join changed something.
 */
#ifndef SCHED_CHECK_CLOCK_H
#define SCHED_CHECK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct clocks {
	uint32_t lane_count;
	uint32_t *now;	    /* owned: [lane * lane_count + other] */
	uint32_t *first;    /* owned: of a lane's entries in `version` */
	uint32_t *version;  /* owned: [first[lane] + position] */
	uint32_t *versions; /* owned: version_count clocks; number 0 knows nothing */
	uint32_t version_count, version_room;
	bool *changed; /* owned: joined since its newest version */
};

/* `lengths[lane]` is the highest position each lane will reach. */
enum err clocks_init(struct clocks *clocks, uint32_t lane_count, const uint32_t *lengths);
void clocks_fini(struct clocks *clocks);

/* Lane `me` learns that `other` has reached `position`. */
void clocks_join(struct clocks *clocks, uint32_t me, uint32_t other, uint32_t position);

/* Lane `me` retires a move and so reaches the next position. */
enum err clocks_retire(struct clocks *clocks, uint32_t me);

/* Does `me` now know that `other` reached `position`? */
bool clocks_know(
	const struct clocks *clocks, uint32_t me, uint32_t other, uint32_t position);

/* Did `at`, when it reached `at_position`, know that `other` reached `position`? */
bool clocks_knew(const struct clocks *clocks, uint32_t at, uint32_t at_position,
	uint32_t other, uint32_t position);

#endif
