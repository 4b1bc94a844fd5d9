#include "tune/between.h"

#include <string.h>

#include "base/param.h"

/* What does not depend on the network but on a core, as measured with TCP between hosts
 * (docs/design/02-host-tuning.md says how cores fold): */
static const double message_us = 6;	    /* to send one and to receive one */
static const double core_bytes_us = 4000;   /* through sockets, by one driver .. */
static const double fresh_bytes_us = 16000; /* .. and folded when they have just come */
static const double inside_bytes_us = 8000; /* copied or folded inside a host */
static const double chain_tile = 128 << 10; /* bytes that follow each other */

/* How a number grows with the hosts. */
enum growth {
	ONCE,
	LOG,	/* their logarithm; one more where they are no power of two .. */
	OTHERS, /* as many as there are others */
	SHARE,	/* all but the own of equal shares: 1/2, 2/3, 3/4, .. */
	HALVED	/* the same, and all of it again where they are no power of two */
};

struct count {
	double times;
	enum growth growth;
};

/* A schedule between hosts, whoever drives. */
struct row {
	enum coll coll;
	const char *name;
	struct count rounds;   /* one after the other */
	struct count messages; /* of a driver */
	struct count wire;     /* vectors, or all blocks of a host, that a host sends or
				  receives: the larger */
	struct count folds;    /* of these, what it folds when it has come */
	bool chain;	       /* each host passes on what it gets, tile after tile */
};

static const struct row rows[] = {
	{COLL_ALL_REDUCE, "oneshot", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {1, OTHERS}, 0},
	{COLL_ALL_REDUCE, "doubling", {1, LOG}, {1, LOG}, {1, LOG}, {1, LOG}, 0},
	{COLL_ALL_REDUCE, "direct", {2, ONCE}, {2, OTHERS}, {2, SHARE}, {1, SHARE}, 0},
	{COLL_ALL_REDUCE, "halving", {2, LOG}, {2, LOG}, {2, HALVED}, {1, HALVED}, 0},
	{COLL_ALL_REDUCE, "ring", {2, OTHERS}, {2, OTHERS}, {2, SHARE}, {1, SHARE}, 0},
	{COLL_ALL_REDUCE, "tree", {2, LOG}, {4, ONCE}, {2, ONCE}, {1, ONCE}, 1},
	{COLL_BROADCAST, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_BROADCAST, "tree", {1, LOG}, {2, ONCE}, {2, ONCE}, {0, ONCE}, 1},
	{COLL_BROADCAST, "ring", {1, OTHERS}, {1, ONCE}, {1, ONCE}, {0, ONCE}, 1},
	{COLL_BROADCAST, "scatter_gather", {2, ONCE}, {2, OTHERS}, {2, ONCE}, {0, ONCE},
		0},
	{COLL_REDUCE, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {1, OTHERS}, 0},
	{COLL_REDUCE, "tree", {1, LOG}, {2, ONCE}, {2, ONCE}, {2, ONCE}, 1},
	{COLL_REDUCE, "ring", {1, OTHERS}, {1, ONCE}, {1, ONCE}, {1, ONCE}, 1},
	{COLL_REDUCE, "scatter_gather", {2, ONCE}, {2, OTHERS}, {2, SHARE}, {1, SHARE},
		0},
	{COLL_ALL_GATHER, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_ALL_GATHER, "bruck", {1, LOG}, {1, LOG}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_ALL_GATHER, "ring", {1, OTHERS}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_REDUCE_SCATTER, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {1, OTHERS},
		0},
	{COLL_REDUCE_SCATTER, "halving", {1, LOG}, {1, LOG}, {1, OTHERS}, {1, OTHERS}, 0},
	{COLL_REDUCE_SCATTER, "ring", {1, OTHERS}, {1, OTHERS}, {1, OTHERS}, {1, OTHERS},
		0},
	{COLL_ALL_TO_ALL, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_GATHER, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
	{COLL_SCATTER, "direct", {1, ONCE}, {1, OTHERS}, {1, OTHERS}, {0, ONCE}, 0},
};

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

/* "hosts-one-ring" and "hosts-ring" run the ring between hosts. */
static const char *plain_name(const struct sched_kind *kind)
{
	static const char *const prefixes[] = {"hosts-", "one-"};
	const char *name = kind->name;

	for (int i = 0; i < 2 && kind->drivers != DRIVERS_NONE; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			name += strlen(prefixes[i]);
	return name;
}

/* A kind that knows no hosts is worth a thought where every pair of ranks has something
 * of its own to exchange; elsewhere the same bytes would pass between hosts many times.
 */
static bool is_candidate(const struct sched_kind *kind)
{
	return kind->drivers != DRIVERS_NONE || kind->coll == COLL_ALL_TO_ALL ||
	       kind->coll == COLL_GATHER || kind->coll == COLL_SCATTER;
}

static const struct row *row_find(const struct sched_kind *kind)
{
	const char *name = plain_name(kind);

	for (uint32_t i = 0; is_candidate(kind) && i < ROW_COUNT; i++)
		if (rows[i].coll == kind->coll && !strcmp(rows[i].name, name))
			return &rows[i];
	return NULL;
}

static double count_of(const struct count *count, uint32_t hosts)
{
	bool uneven = hosts & (hosts - 1);
	uint32_t log = 0;

	while (2u << log <= hosts)
		log++;
	switch (count->growth) {
	case LOG:
		return count->times * (log + uneven);
	case OTHERS:
		return count->times * (hosts - 1);
	case SHARE:
		return count->times * (hosts - 1) / hosts;
	case HALVED:
		return count->times * ((hosts - 1.0) / hosts + uneven);
	default:
		return count->times;
	}
}

/* A call on its hosts in numbers. */
struct workload {
	double bytes, ranks, largest; /* of the largest host */
	double drivers;		      /* of a host; all ranks where it knows no hosts */
};

static struct workload workload_of(
	const struct sched_kind *kind, const struct between_call *call)
{
	const struct sched_hosts *hosts = call->hosts;
	struct workload work = {.bytes = (double)call->bytes,
		.ranks = hosts->rank_count,
		.largest = hosts->local_max,
		.drivers = 1};

	if (kind->drivers == DRIVERS_ALL)
		work.drivers = hosts->local_min;
	else if (kind->drivers == DRIVERS_NONE)
		work.drivers = hosts->local_max;
	return work;
}

/* Bytes of one unit of row.wire. */
static double wire_unit(const struct sched_kind *kind, const struct workload *work)
{
	if (coll_is_vector(kind->coll))
		return work->bytes;
	return work->bytes * work->largest *
	       (kind->coll == COLL_ALL_TO_ALL ? work->largest : 1);
}

/* Messages of a host, all drivers together. */
static double messages(
	const struct sched_kind *kind, const struct workload *work, double each)
{
	if (kind->drivers != DRIVERS_NONE)
		return each * work->drivers;
	return each * work->largest * (kind->coll == COLL_ALL_TO_ALL ? work->largest : 1);
}

/* Bytes that a driver folds or copies for its host; what all ranks copy at the same time,
 * such as a result, costs every kind alike. */
static double inside_bytes(const struct sched_kind *kind, const struct workload *work)
{
	double members = work->largest / work->drivers; /* that a driver works for */
	double host_bytes = work->bytes * work->largest;

	if (work->largest == 1 || kind->drivers == DRIVERS_NONE)
		return 0;
	switch (kind->coll) {
	case COLL_ALL_REDUCE:
		return host_bytes / work->drivers;
	case COLL_REDUCE: /* the root takes what it did not fold */
		return host_bytes / work->drivers + work->bytes * (1 - 1 / work->drivers);
	case COLL_BROADCAST: /* the root deals */
		return work->bytes * (1 - 1 / work->drivers);
	case COLL_REDUCE_SCATTER:
		return host_bytes * work->ranks / work->drivers;
	case COLL_ALL_TO_ALL: /* in, and out again for others */
		return host_bytes * work->ranks / work->drivers * (members > 1 ? 2 : 1);
	default:
		return members > 1 ? work->bytes * members : 0;
	}
}

double between_cost(const struct sched_kind *kind, const struct between_call *call)
{
	const struct row *row = row_find(kind);
	uint32_t hosts = call->hosts->host_count;
	struct workload work = workload_of(kind, call);
	double net = (double)param_int(PARAM_NET_MB_PER_SEC); /* bytes a microsecond */
	double cores = work.drivers * core_bytes_us, rounds, sent, wire, folded;

	if (!row)
		return -1;
	rounds = count_of(&row->rounds, hosts);
	sent = messages(kind, &work, count_of(&row->messages, hosts));
	folded = count_of(&row->folds, hosts) * wire_unit(kind, &work) / work.drivers;
	wire = count_of(&row->wire, hosts) * wire_unit(kind, &work);
	if (row->chain) /* the first tile passes all hosts before the last one hears */
		wire += (rounds - 1) *
			(work.bytes < chain_tile ? work.bytes : chain_tile);
	return rounds * (double)param_int(PARAM_NET_LATENCY) +
	       /* one in each round at least, whoever sends it */
	       (sent > rounds ? sent : rounds) * message_us +
	       wire / (net < cores ? net : cores) + folded / fresh_bytes_us +
	       inside_bytes(kind, &work) / inside_bytes_us;
}

static bool is_allowed(
	const struct sched_kind *kind, const struct between_call *call, const char *plain)
{
	return kind->coll == call->coll && (!plain || !strcmp(plain_name(kind), plain)) &&
	       catalog_suits(kind, call->hosts, call->hosts->rank_count);
}

const struct sched_kind *between_choose(
	const struct between_call *call, const char *plain)
{
	const struct sched_kind *best = NULL, *kind;
	const struct row *best_row = NULL;
	double least = 0;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		const struct row *row = row_find(kind);
		double cost;

		if (!row || !is_allowed(kind, call, plain))
			continue;
		cost = between_cost(kind, call);
		/* two hosts are a ring, too: what comes first in the table is meant */
		if (!best || cost < least || (cost <= least && row < best_row)) {
			best = kind;
			best_row = row;
			least = cost;
		}
	}
	return best;
}
