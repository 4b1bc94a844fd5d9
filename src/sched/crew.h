/*
 * crew.h - the ranks of one host, and those of them that drive the network.
 *
 * A schedule that knows hosts has three parts: something inside each host, a plain
 * schedule between the hosts (compose.h), something inside each host. Member number d of
 * every host, d below `driver_count`, drives: it runs the schedule between the hosts with
 * the members d of the others, on its own share of the data. One driver a host means the
 * fewest messages, as many as the smallest host has ranks means that all of them are at
 * work.
 *
 *       host 0                 host 1
 *     member 0 == between == member 0      driver 0: share 0
 *     member 1 == between == member 1      driver 1: share 1
 *     member 2                             no driver: a host of three has one over
 *
 * Members are a host's ranks in order; where a collective has a root, it is member 0 of
 * its host, and the rank whose place it takes has the root's.
 */
#ifndef SCHED_CREW_H
#define SCHED_CREW_H

#include "sched/compose.h"

struct crew {
	struct sched *sched; /* borrowed: this rank's, being written */
	const struct sched_hosts *hosts;
	struct writer writer;
	uint32_t host, member, member_count; /* of this rank and its host */
	uint32_t driver_count;
	bool drives;
	struct sched between;	/* of this host among the hosts, if this rank drives */
	struct compose compose; /* .. and its translation */
	uint16_t *drivers;	/* owned: [host] the rank of this driver's number */
};

/* Find this rank's place and write the schedule between the hosts with `write`. The lanes
 * of a rank that does not drive are as many. Failure sticks in the writer. */
void crew_begin(struct crew *crew, struct sched *sched, enum drivers drivers,
	enum err (*write)(struct sched *between));
enum err crew_end(struct crew *crew);

/* Rank of a member of a host, and this rank's host's root: whether it has it. */
uint32_t crew_rank(const struct crew *crew, uint32_t host, uint32_t member);
bool crew_has_root(const struct crew *crew);

/* Connect a lane to the first `count` members of this host, in their order, before any
 * other connection of that lane. */
void crew_connect(struct crew *crew, uint32_t lane, uint32_t count);

/* .. in all lanes to those that a member talks with where only drivers hand things out:
 * a driver to all, the others to the drivers. */
void crew_connect_drivers(struct crew *crew);

/* .. and the number of the connection to a member, in either direction. */
uint32_t crew_conn(const struct crew *crew, uint32_t member);

/* Where each rank has a block of its own, driver `d` moves those of every
 * `driver_count`th rank of a host. How many, and the blocks, numbered by rank. */
uint32_t crew_share_size(const struct crew *crew, uint32_t host, uint32_t d);
void crew_share(const struct crew *crew, struct map *map, uint32_t host, uint32_t d);

/* A line with every other member of this host in turn: its block is what is read and
 * written, numbered by rank, or in TMP by its place among the host's. */
void crew_each_member(struct crew *crew, enum space space, const struct sched_line *line);
uint32_t crew_block(const struct crew *crew, enum space space, uint32_t rank);

/* Copy between TMP, where blocks lie side by side from 0 on, and where `map` has them. */
void crew_copy(struct crew *crew, const struct map *map, bool to_tmp);

#endif
