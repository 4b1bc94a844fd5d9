#include "sched/check_clock.h"

#include <stdlib.h>
#include <string.h>

enum err clocks_init(struct clocks *clocks, uint32_t lane_count, const uint32_t *lengths)
{
	struct clocks c = {.lane_count = lane_count, .version_count = 1};
	size_t square = (size_t)lane_count * lane_count, total = 0;

	for (uint32_t lane = 0; lane < lane_count; lane++)
		total += lengths[lane] + 1;
	c.version_room = 2 * lane_count;
	c.now = calloc(square, sizeof(*c.now));
	c.first = calloc(lane_count, sizeof(*c.first));
	c.version = calloc(total, sizeof(*c.version));
	c.versions = calloc((size_t)c.version_room * lane_count, sizeof(*c.versions));
	c.changed = calloc(lane_count, sizeof(*c.changed));
	if (!c.now || !c.first || !c.version || !c.versions || !c.changed) {
		clocks_fini(&c);
		return err_set(ERR_SYSTEM, "no memory for %u clocks", lane_count);
	}
	for (uint32_t lane = 1; lane < lane_count; lane++)
		c.first[lane] = c.first[lane - 1] + lengths[lane - 1] + 1;
	*clocks = c;
	return OK;
}

void clocks_fini(struct clocks *clocks)
{
	free(clocks->now);
	free(clocks->first);
	free(clocks->version);
	free(clocks->versions);
	free(clocks->changed);
	*clocks = (struct clocks){0};
}

static const uint32_t *clock_at(
	const struct clocks *clocks, uint32_t lane, uint32_t position)
{
	uint32_t version = clocks->version[clocks->first[lane] + position];

	return &clocks->versions[(size_t)version * clocks->lane_count];
}

void clocks_join(struct clocks *clocks, uint32_t me, uint32_t other, uint32_t position)
{
	uint32_t *now = &clocks->now[(size_t)me * clocks->lane_count];
	const uint32_t *then;

	/* who knows a position has joined the clock of it already */
	if (now[other] >= position)
		return;
	then = clock_at(clocks, other, position);
	for (uint32_t i = 0; i < clocks->lane_count; i++)
		now[i] = now[i] > then[i] ? now[i] : then[i];
	now[other] = position;
	clocks->changed[me] = true;
}

static enum err versions_grow(struct clocks *clocks)
{
	size_t room = 2 * (size_t)clocks->version_room;
	uint32_t *versions = realloc(
		clocks->versions, room * clocks->lane_count * sizeof(*versions));

	if (!versions)
		return err_set(ERR_SYSTEM, "no memory for %zu clocks", room);
	clocks->versions = versions;
	clocks->version_room = (uint32_t)room;
	return OK;
}

enum err clocks_retire(struct clocks *clocks, uint32_t me)
{
	uint32_t *now = &clocks->now[(size_t)me * clocks->lane_count];
	uint32_t *slot = &clocks->version[clocks->first[me] + now[me]];
	enum err e;

	now[me]++;
	slot[1] = slot[0];
	if (!clocks->changed[me])
		return OK;
	if (clocks->version_count == clocks->version_room) {
		e = versions_grow(clocks);
		if (e)
			return e;
	}
	memcpy(&clocks->versions[(size_t)clocks->version_count * clocks->lane_count], now,
		clocks->lane_count * sizeof(*now));
	slot[1] = clocks->version_count++;
	clocks->changed[me] = false;
	return OK;
}

bool clocks_know(
	const struct clocks *clocks, uint32_t me, uint32_t other, uint32_t position)
{
	return me == other ||
	       clocks->now[(size_t)me * clocks->lane_count + other] >= position;
}

bool clocks_knew(const struct clocks *clocks, uint32_t at, uint32_t at_position,
	uint32_t other, uint32_t position)
{
	if (at == other)
		return position <= at_position;
	return clock_at(clocks, at, at_position)[other] >= position;
}
