/*
 * choose.c - the measured table for host memory (docs/design/02-host-tuning.md).
 */
#include "tune/choose.h"

#include "base/param.h"

/* Largest bytes (of the vector or of a block) sent eagerly, for few and for many ranks.
 */
struct eager_limit {
	size_t few, many; /* two ranks; more */
};

struct row {
	struct eager_limit limit;
	const char *eager, *direct, *staged;
};

static const struct row rows[COLL_COUNT] = {
	[COLL_ALL_REDUCE] = {{512, 1 << 10}, "oneshot", "direct", "direct"},
	[COLL_BROADCAST] = {{4 << 10, 8 << 10}, "direct", "direct", "direct"},
	[COLL_REDUCE] = {{512, 1 << 10}, "direct", "scatter_gather", "scatter_gather"},
	[COLL_ALL_GATHER] = {{512, 512}, "direct", "direct", "direct"},
	[COLL_REDUCE_SCATTER] = {{64, 64}, "direct", "direct", "direct"},
	[COLL_ALL_TO_ALL] = {{64, 64}, "direct", "direct", "direct"},
	[COLL_GATHER] = {{512, 512}, "direct", "direct", "direct"},
	[COLL_SCATTER] = {{64, 64}, "direct", "direct", "direct"},
};

enum { FEW_RANKS = 2, EAGER_DEPTH = 1 };

/* A forced schedule has its tiles follow each other through the ranks. */
enum { PIPELINE_TILE = 128 << 10 };

/* Blocks a rank stages at once in the eager schedule. */
static uint32_t eager_blocks(enum coll coll, uint32_t n)
{
	return coll == COLL_REDUCE_SCATTER || coll == COLL_ALL_TO_ALL ||
			       coll == COLL_SCATTER
		       ? n - 1
		       : 1;
}

static bool is_eager(const struct choose_args *args, const struct row *row)
{
	int64_t asked = param_int(PARAM_EAGER_BYTES);
	size_t limit = args->rank_count <= FEW_RANKS ? row->limit.few : row->limit.many;
	size_t stride = (args->bytes + 63) / 64 * 64;

	limit = asked < 0 ? limit : (size_t)asked;
	return args->bytes <= limit &&
	       stride * eager_blocks(args->coll, args->rank_count) <= args->eager_bytes;
}

static enum err find(enum coll coll, const char *name, const struct sched_kind **kind)
{
	*kind = catalog_find(coll, name);
	return *kind ? OK
		     : err_set(ERR_USAGE,
			       "there is no %s schedule named %s; `weft sched list` "
			       "shows them",
			       coll_name(coll), name);
}

enum err choose(const struct choose_args *args, struct choice *choice)
{
	const struct row *row = &rows[args->coll];
	const char *forced = param_text(PARAM_SCHEDULE);
	int64_t tile = param_int(PARAM_TILE);
	bool force = forced && catalog_find(args->coll, forced);
	enum err e;

	*choice = (struct choice){.eager = is_eager(args, row)};
	choice->depth = choice->eager && !force ? EAGER_DEPTH : CHOOSE_STAGED_DEPTH;
	if (choice->eager)
		return find(args->coll, force ? forced : row->eager, &choice->staged);
	e = find(args->coll, force ? forced : row->direct, &choice->direct);
	if (!e)
		e = find(args->coll, force ? forced : row->staged, &choice->staged);
	choice->staged_tile = tile > 0 ? (size_t)tile : CHOOSE_STAGED_TILE;
	/* direct schedules need no pipeline: the whole chunk is one tile */
	if (force)
		choice->direct_tile = tile > 0 ? (size_t)tile : PIPELINE_TILE;
	return e;
}
