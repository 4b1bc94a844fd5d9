/*
 * device_lists.h - lists for the device of schedules that a test names, as plan lowers
 * them.
 */
#ifndef DEVICE_LISTS_H
#define DEVICE_LISTS_H

#include <stdlib.h>

#include "exec/cuda/lists/moves.h"
#include "exec/cuda/lists/steps.h"

struct steps_key {
	const struct sched_kind *kind;
	uint32_t rank_count, root;
	uint32_t depth; /* slots of a connection */
};

static inline enum err lists_lower(
	const struct steps_key *key, enum lower_mode mode, struct program ***programs)
{
	const struct lower_args args = {.kind = key->kind,
		.rank_count = key->rank_count,
		.root = coll_has_root(key->kind->coll) ? key->root : 0,
		.mode = mode,
		.depth = key->depth};

	*programs = calloc(key->rank_count, sizeof(**programs));
	return *programs ? program_lower_all(NULL, &args, *programs) : ERR_SYSTEM;
}

static inline void lists_free(const struct steps_key *key, struct program **programs)
{
	for (uint32_t r = 0; r < key->rank_count; r++)
		program_destroy(programs[r]);
	free(programs);
}

static inline enum err lists_steps(
	const struct steps_key *key, struct dev_steps **steps, size_t *bytes)
{
	struct program **programs;
	enum err e = lists_lower(key, MODE_STAGED, &programs);

	if (!e)
		e = steps_flatten(programs, steps, bytes);
	lists_free(key, programs);
	return e;
}

static inline enum err lists_moves(
	enum coll coll, uint32_t rank_count, uint32_t root, struct move_pages *pages)
{
	const struct steps_key key = {catalog_find(coll, "direct"), rank_count, root, 1};
	struct program **programs;
	enum err e = lists_lower(&key, MODE_DIRECT, &programs);

	if (!e)
		e = moves_flatten(programs, pages);
	lists_free(&key, programs);
	return e;
}

#endif
