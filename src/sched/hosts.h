/*
 * hosts.h - the shape of a job: which rank is on which host.
 *
 * Hosts are numbered by their lowest rank, whatever they were called; the ranks of a host
 * are counted from 0 in the order of their numbers, and need not be neighbours. Made once
 * for a communicator; lowering and the schedules that know hosts only read it.
 */
#ifndef SCHED_HOSTS_H
#define SCHED_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* How many ranks of each host drive the network in a schedule that knows hosts. */
enum drivers {
	DRIVERS_NONE, /* it knows no hosts */
	DRIVERS_ONE,
	DRIVERS_ALL /* as many as the smallest host has ranks */
};

struct sched_hosts {
	uint32_t rank_count, host_count;
	uint32_t local_min, local_max; /* ranks of the smallest and of the largest host */
	uint16_t *host;		       /* owned: [rank] its host */
	uint16_t *local; /* owned: [rank] its number among those of its host */
	uint16_t *ranks; /* owned: those of host 0, then those of host 1, .. */
	uint32_t *first; /* owned: [host] its first in `ranks`; one more at the end */
};

/* From a host per rank: any numbers, equal where the host is. */
enum err sched_hosts_create(
	const uint16_t *host, uint32_t rank_count, struct sched_hosts **hosts);

/* From a text: "2x4" (hosts times ranks each), "3+5" (ranks of each host) or "0,1,0,1" (a
 * host per rank). ERR_ARGUMENT with a sentence when it is none of them. */
enum err sched_hosts_read(const char *text, struct sched_hosts **hosts);

void sched_hosts_destroy(struct sched_hosts *hosts);

/* NULL is one host, too. */
static inline bool sched_hosts_several(const struct sched_hosts *hosts)
{
	return hosts && hosts->host_count > 1;
}

/* Are all as large, and their ranks neighbours, or dealt to the hosts in turn? */
bool sched_hosts_regular(const struct sched_hosts *hosts);

static inline uint32_t sched_hosts_size(const struct sched_hosts *hosts, uint32_t host)
{
	return hosts->first[host + 1] - hosts->first[host];
}

/* Rank number `local` of a host. */
static inline uint32_t sched_hosts_rank(
	const struct sched_hosts *hosts, uint32_t host, uint32_t local)
{
	return hosts->ranks[hosts->first[host] + local];
}

#endif
