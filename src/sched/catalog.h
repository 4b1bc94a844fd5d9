/*
 * catalog.h - the shipped schedules, by collective and name.
 *
 * A schedule is one row here and one function in its own file. Everything that lists,
 * proves, times or chooses schedules walks this table.
 */
#ifndef SCHED_CATALOG_H
#define SCHED_CATALOG_H

#include "sched/sched.h"

struct sched_kind {
	enum coll coll;
	const char
		*name; /* "ring", "tree", "direct", "halving", "oneshot", "bruck", .. */
	const char *summary; /* one line for `weft sched list` */
	uint32_t rank_max;   /* largest n `write` is for: of ranks, or of hosts */
	/* Fill `sched` (zeroed but for coll, rank_count, rank, root, hosts). */
	enum err (*write)(struct sched *sched);
	/* A schedule that knows hosts runs `write` between them, by so many ranks of
	 * each (crew.h); on one host it is what `write` says. */
	enum drivers drivers;
};

/* Is it written for that many ranks, on these hosts? NULL: one. */
bool catalog_suits(const struct sched_kind *kind, const struct sched_hosts *hosts,
	uint32_t rank_count);

/* Row `index`, or NULL past the end. */
const struct sched_kind *catalog_at(uint32_t index);

/* The same of those that know no hosts: they come first. On one host the others are
 * these again. */
const struct sched_kind *catalog_plain_at(uint32_t index);

/* The row of that collective and name, or NULL. */
const struct sched_kind *catalog_find(enum coll coll, const char *name);

/* Write one rank's schedule for ranks on one host. ERR_ARGUMENT for n, rank or root out
 * of range. On failure nothing is left to free; on success the caller calls sched_fini().
 */
enum err catalog_write(const struct sched_kind *kind, uint32_t rank_count, uint32_t rank,
	uint32_t root, struct sched *sched);

/* The same for ranks on these hosts, borrowed as long as the schedule is used; a kind
 * that knows no hosts is the same on any. */
enum err catalog_write_hosts(const struct sched_kind *kind,
	const struct sched_hosts *hosts, uint32_t rank, uint32_t root,
	struct sched *sched);

#endif
