#include "sched/rounds.h"

#include <stdlib.h>

void rounds_begin(struct rounds *rounds, struct crew *crew, uint32_t from, uint32_t to)
{
	uint32_t count = crew->driver_count;
	bool failed;

	*rounds = (struct rounds){.crew = crew};
	rounds->shares = calloc(count, sizeof(*rounds->shares));
	rounds->at = calloc(2 * (size_t)count, sizeof(*rounds->at));
	rounds->run = rounds->at ? rounds->at + count : NULL;
	failed = !rounds->shares || !rounds->at;
	for (uint32_t d = 0; d < count && !failed; d++) {
		for (uint32_t g = from; g < to; g++)
			crew_share(crew, &rounds->shares[d], g, d);
		failed = rounds->shares[d].failed;
		rounds->run[d] = failed ? 0 : map_run(&rounds->shares[d], 0);
	}
	if (failed) {
		crew->writer.error = err_set(ERR_SYSTEM, "no memory for a schedule");
		rounds_end(rounds);
	}
}

void rounds_end(struct rounds *rounds)
{
	for (uint32_t d = 0; rounds->shares && d < rounds->crew->driver_count; d++)
		map_fini(&rounds->shares[d]);
	free(rounds->shares);
	free(rounds->at);
	rounds->shares = NULL;
	rounds->at = NULL;
}

bool rounds_left(const struct rounds *rounds)
{
	for (uint32_t d = 0; rounds->at && d < rounds->crew->driver_count; d++)
		if (rounds->run[d])
			return true;
	return false;
}

bool rounds_run(const struct rounds *rounds, uint32_t d, struct sched_line *line)
{
	line->count = rounds->run[d];
	if (!line->count)
		return false;
	line->src = line->dst = rounds->shares[d].chunks[rounds->at[d]];
	return true;
}

void rounds_next(struct rounds *rounds)
{
	for (uint32_t d = 0; d < rounds->crew->driver_count; d++) {
		rounds->at[d] += rounds->run[d];
		rounds->run[d] = map_run(&rounds->shares[d], rounds->at[d]);
	}
}

void rounds_each_driver(const struct rounds *rounds, const struct sched_line *line)
{
	struct crew *crew = rounds->crew;
	struct line_run run = {.writer = &crew->writer};

	for (uint32_t d = 0; d < crew->driver_count; d++) {
		struct sched_line next = *line;

		if (d == crew->member || !rounds_run(rounds, d, &next))
			continue;
		next.rx = next.tx = crew_conn(crew, d);
		run_add(&run, &next);
	}
	run_end(&run);
}
