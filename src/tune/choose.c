/*
 * choose.c - the measured table for host memory (docs/design/02-host-tuning.md).
 */
#include "tune/choose.h"

#include <string.h>

#include "base/param.h"
#include "tune/between.h"
#include "tune/limits.h"

/* Largest bytes (of the vector or of a block) sent eagerly, for few and for many ranks.
 */
struct eager_limit {
	size_t few, many; /* two ranks; more */
};

/* For more ranks than reach each other directly: a ring, and for small calls a schedule
 * of few hops. A ring of a thousand ranks is a thousand hops and as many moves to keep.
 */
struct many {
	const char *large;
	const char *eager;  /* NULL: its slots do not fit on a card */
	const char *small;  /* not eager; NULL: none .. */
	size_t small_bytes; /* .. up to here, where bytes count more than hops */
};

struct row {
	struct eager_limit limit;
	const char *eager, *direct, *staged;
	struct many many; /* all NULL: there is none */
};

static const struct row rows[COLL_COUNT] = {
	[COLL_ALL_REDUCE] = {{512, 1 << 10}, "oneshot", "direct", "direct",
		{.large = "ring", .eager = "doubling"}},
	[COLL_BROADCAST] = {{4 << 10, 8 << 10}, "direct", "direct", "direct",
		{.large = "ring", .eager = "tree"}},
	[COLL_REDUCE] = {{512, 1 << 10}, "direct", "scatter_gather", "scatter_gather",
		{.large = "ring", .eager = "tree"}},
	[COLL_ALL_GATHER] = {{512, 512}, "direct", "direct", "direct",
		{.large = "ring", .small = "bruck", .small_bytes = 64 << 10}},
	[COLL_REDUCE_SCATTER] = {{64, 64}, "direct", "direct", "direct",
		{.large = "ring", .small = "halving", .small_bytes = 1 << 10}},
	[COLL_ALL_TO_ALL] = {{64, 128}, "direct", "direct", "direct", {0}},
	[COLL_GATHER] = {{512, 512}, "direct", "direct", "direct", {0}},
	[COLL_SCATTER] = {{64, 64}, "direct", "direct", "direct", {0}},
};

enum { FEW_RANKS = 2, EAGER_DEPTH = 1 };

/* A forced schedule has its tiles follow each other through the ranks. */
enum { PIPELINE_TILE = 128 << 10 };

/* Between hosts, where the caches are not known: see comm_hosts_tile(). */
enum { BETWEEN_TILE = 128 << 10 };

/* What one rank gives or gets is only copied, and goes one way: none of it is to be in a
 * cache when something is added, so its messages may carry more. */
enum { ONE_WAY_TILES = 2 };

static size_t between_tile(const struct choose_args *args)
{
	int64_t asked = param_int(PARAM_TILE);
	size_t tile = args->tile_bytes ? args->tile_bytes : BETWEEN_TILE;

	if (asked > 0)
		return (size_t)asked;
	return coll_has_root(args->coll) && !coll_reduces(args->coll)
		       ? tile * ONE_WAY_TILES
		       : tile;
}

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
	return args->eager_bytes && args->bytes <= limit &&
	       stride * eager_blocks(args->coll, args->rank_count) <= args->eager_bytes;
}

/* A name the user gave must be a schedule's; of which collective is another matter. */
static enum err forced_check(const char *forced)
{
	const struct sched_kind *kind;

	if (!forced)
		return OK;
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (!strcmp(kind->name, forced))
			return OK;
	return err_set(ERR_USAGE,
		"WEFT_SCHEDULE is %s, which no schedule is called; `weft sched list` "
		"shows them",
		forced);
}

static const struct sched_kind *find(
	const struct choose_args *args, const char *name, const char *many)
{
	const struct sched_kind *kind = catalog_find(args->coll, name);

	if (args->rank_count > kind->rank_max && many)
		kind = catalog_find(args->coll, many);
	return kind;
}

/* The schedule asked for by name; NULL: none, or one that this collective has not. */
static enum err forced_find(const struct choose_args *args, const char **forced)
{
	const struct limits_call call = {.coll = args->coll,
		.type = args->type,
		.rank_count = args->rank_count,
		.bytes = args->bytes};
	const char *named = param_text(PARAM_SCHEDULE);
	enum err e = forced_check(named);

	*forced = NULL;
	if (e)
		return e;
	if (named && catalog_find(args->coll, named))
		*forced = named;
	if (!*forced)
		e = limits_schedule(args->limits, &call, forced);
	if (!e && !*forced)
		*forced = args->asked;
	return e;
}

/* What many ranks use when they are not eager. */
static const char *many_name(const struct choose_args *args, const struct many *many)
{
	return many->small && args->bytes <= many->small_bytes ? many->small
							       : many->large;
}

/* Between hosts: a kind that is named for what it is, or else the cheapest of those that
 * are asked for, or of all. */
static const struct sched_kind *find_between(
	const struct choose_args *args, const char *forced)
{
	const struct between_call call = {
		.coll = args->coll, .bytes = args->bytes, .hosts = args->hosts};
	const char *named = param_text(PARAM_SCHEDULE);
	const struct sched_kind *kind = forced ? catalog_find(args->coll, forced) : NULL;
	bool exact = kind &&
		     (kind->drivers != DRIVERS_NONE || (named && !strcmp(named, forced)));

	if (exact && catalog_suits(kind, args->hosts, args->rank_count))
		return kind;
	kind = forced ? between_choose(&call, forced) : NULL;
	return kind ? kind : between_choose(&call, NULL);
}

static enum err choose_between(
	const struct choose_args *args, const char *forced, struct choice *choice)
{
	const struct sched_kind *kind = find_between(args, forced);

	if (!kind)
		return err_set(ERR_ARGUMENT,
			"there is no schedule of %s for %u hosts of up to %u ranks: a "
			"rank has at most %d connections",
			coll_name(args->coll), args->hosts->host_count,
			args->hosts->local_max, PROG_PEERS_MAX);
	*choice = (struct choice){.eager = is_eager(args, &rows[args->coll]),
		.staged = kind,
		.depth = CHOOSE_STAGED_DEPTH};
	if (choice->eager)
		return OK;
	choice->direct = kind;
	choice->direct_tile = choice->staged_tile = between_tile(args);
	return OK;
}

enum err choose(const struct choose_args *args, struct choice *choice)
{
	const struct row *row = &rows[args->coll];
	const char *many = many_name(args, &row->many);
	int64_t tile = param_int(PARAM_TILE);
	const struct sched_kind *eager;
	const char *forced;
	enum err e = forced_find(args, &forced);

	if (e)
		return e;
	if (sched_hosts_several(args->hosts))
		return choose_between(args, forced, choice);
	eager = find(args, forced ? forced : row->eager, row->many.eager);
	*choice = (struct choice){
		.eager = is_eager(args, row) && eager->rank_max >= args->rank_count};
	if (choice->eager) {
		choice->staged = eager;
		choice->depth = forced ? CHOOSE_STAGED_DEPTH : EAGER_DEPTH;
		return OK;
	}
	choice->direct = find(args, forced ? forced : row->direct, many);
	choice->staged = find(args, forced ? forced : row->staged, many);
	choice->depth = CHOOSE_STAGED_DEPTH;
	choice->staged_tile = tile > 0 ? (size_t)tile : CHOOSE_STAGED_TILE;
	/* only a ring needs a pipeline: else the whole chunk is one tile */
	if (forced || !strcmp(choice->direct->name, "ring"))
		choice->direct_tile = tile > 0 ? (size_t)tile : PIPELINE_TILE;
	return OK;
}
