#include "sched/catalog.h"

#include <string.h>

#include "sched/write.h"
#include "sched/writers.h"

/* A rank reaches every other over one lane's connections, or only a few of them. */
enum { RANKS_ALL_PAIRS = PROG_PEERS_MAX, RANKS_FEW_PEERS = 16384, PEERS_FEW = 32 };

static const struct sched_kind kinds[] = {
	{COLL_ALL_REDUCE, "ring", "round the ranks twice; least traffic", RANKS_FEW_PEERS,
		ring_all_reduce, DRIVERS_NONE},
	{COLL_ALL_REDUCE, "tree", "double binary tree, up and down", RANKS_FEW_PEERS,
		tree_all_reduce, DRIVERS_NONE},
	{COLL_ALL_REDUCE, "direct", "every rank folds a share and hands it to all",
		RANKS_ALL_PAIRS, direct_all_reduce, DRIVERS_NONE},
	{COLL_ALL_REDUCE, "oneshot", "all send all to all; one hop, for small vectors",
		RANKS_ALL_PAIRS, oneshot_all_reduce, DRIVERS_NONE},
	{COLL_ALL_REDUCE, "halving", "recursive halving, then doubling", RANKS_FEW_PEERS,
		halving_all_reduce, DRIVERS_NONE},
	{COLL_ALL_REDUCE, "doubling", "vectors exchanged 1, 2, 4, .. away; few hops",
		RANKS_FEW_PEERS, doubling_all_reduce, DRIVERS_NONE},
	{COLL_BROADCAST, "ring", "a pipeline round the ranks", RANKS_FEW_PEERS,
		ring_broadcast, DRIVERS_NONE},
	{COLL_BROADCAST, "tree", "down a binary tree", RANKS_FEW_PEERS, tree_broadcast,
		DRIVERS_NONE},
	{COLL_BROADCAST, "direct", "everyone reads the root; one hop", RANKS_ALL_PAIRS,
		direct_broadcast, DRIVERS_NONE},
	{COLL_BROADCAST, "scatter_gather",
		"the root deals out shares, which are exchanged", RANKS_ALL_PAIRS,
		scatter_gather_broadcast, DRIVERS_NONE},
	{COLL_REDUCE, "ring", "a pipeline round the ranks", RANKS_FEW_PEERS, ring_reduce,
		DRIVERS_NONE},
	{COLL_REDUCE, "tree", "up a binary tree", RANKS_FEW_PEERS, tree_reduce,
		DRIVERS_NONE},
	{COLL_REDUCE, "direct", "the root folds everyone's vector; one hop",
		RANKS_ALL_PAIRS, direct_reduce, DRIVERS_NONE},
	{COLL_REDUCE, "scatter_gather", "every rank folds a share for the root",
		RANKS_ALL_PAIRS, scatter_gather_reduce, DRIVERS_NONE},
	{COLL_ALL_GATHER, "ring", "once round the ranks; least traffic", RANKS_FEW_PEERS,
		ring_all_gather, DRIVERS_NONE},
	{COLL_ALL_GATHER, "direct", "every rank writes its block to all; one hop",
		RANKS_ALL_PAIRS, direct_all_gather, DRIVERS_NONE},
	{COLL_ALL_GATHER, "bruck", "doubling runs of blocks; a logarithm of hops",
		RANKS_FEW_PEERS, bruck_all_gather, DRIVERS_NONE},
	{COLL_REDUCE_SCATTER, "ring", "once round the ranks; least traffic",
		RANKS_FEW_PEERS, ring_reduce_scatter, DRIVERS_NONE},
	{COLL_REDUCE_SCATTER, "direct", "every rank folds its block; one hop",
		RANKS_ALL_PAIRS, direct_reduce_scatter, DRIVERS_NONE},
	{COLL_REDUCE_SCATTER, "halving", "halving runs of blocks; a logarithm of hops",
		RANKS_FEW_PEERS, halving_reduce_scatter, DRIVERS_NONE},
	{COLL_ALL_TO_ALL, "direct", "every pair exchanges its blocks; one hop",
		RANKS_ALL_PAIRS, direct_all_to_all, DRIVERS_NONE},
	{COLL_GATHER, "direct", "everyone writes the root's buffer; one hop",
		RANKS_ALL_PAIRS, direct_gather, DRIVERS_NONE},
	{COLL_SCATTER, "direct", "everyone reads the root's buffer; one hop",
		RANKS_ALL_PAIRS, direct_scatter, DRIVERS_NONE},
	/* between hosts, by all that can drive .. */
	{COLL_ALL_REDUCE, "hosts-ring", "slices inside the hosts, rings between them",
		RANKS_FEW_PEERS, ring_all_reduce, DRIVERS_ALL},
	{COLL_ALL_REDUCE, "hosts-tree", "slices inside the hosts, trees between them",
		RANKS_FEW_PEERS, tree_all_reduce, DRIVERS_ALL},
	{COLL_ALL_REDUCE, "hosts-direct", "slices inside the hosts, direct between them",
		RANKS_ALL_PAIRS, direct_all_reduce, DRIVERS_ALL},
	{COLL_ALL_REDUCE, "hosts-halving",
		"slices inside the hosts, recursive halving between them",
		RANKS_FEW_PEERS, halving_all_reduce, DRIVERS_ALL},
	{COLL_BROADCAST, "hosts-ring", "slices inside the hosts, rings between them",
		RANKS_FEW_PEERS, ring_broadcast, DRIVERS_ALL},
	{COLL_BROADCAST, "hosts-tree", "slices inside the hosts, trees between them",
		RANKS_FEW_PEERS, tree_broadcast, DRIVERS_ALL},
	{COLL_BROADCAST, "hosts-direct", "slices inside the hosts, direct between them",
		RANKS_ALL_PAIRS, direct_broadcast, DRIVERS_ALL},
	{COLL_BROADCAST, "hosts-scatter_gather",
		"slices inside the hosts, shares between them", RANKS_ALL_PAIRS,
		scatter_gather_broadcast, DRIVERS_ALL},
	{COLL_REDUCE, "hosts-ring", "slices inside the hosts, rings between them",
		RANKS_FEW_PEERS, ring_reduce, DRIVERS_ALL},
	{COLL_REDUCE, "hosts-tree", "slices inside the hosts, trees between them",
		RANKS_FEW_PEERS, tree_reduce, DRIVERS_ALL},
	{COLL_REDUCE, "hosts-direct", "slices inside the hosts, direct between them",
		RANKS_ALL_PAIRS, direct_reduce, DRIVERS_ALL},
	{COLL_REDUCE, "hosts-scatter_gather",
		"slices inside the hosts, shares between them", RANKS_ALL_PAIRS,
		scatter_gather_reduce, DRIVERS_ALL},
	{COLL_ALL_GATHER, "hosts-ring", "rings between the hosts, then inside them",
		RANKS_FEW_PEERS, ring_all_gather, DRIVERS_ALL},
	{COLL_ALL_GATHER, "hosts-direct", "direct between the hosts, then inside them",
		RANKS_ALL_PAIRS, direct_all_gather, DRIVERS_ALL},
	{COLL_ALL_GATHER, "hosts-bruck",
		"doubling runs between the hosts, then inside them", RANKS_FEW_PEERS,
		bruck_all_gather, DRIVERS_ALL},
	{COLL_REDUCE_SCATTER, "hosts-ring", "inside the hosts, then rings between them",
		RANKS_FEW_PEERS, ring_reduce_scatter, DRIVERS_ALL},
	{COLL_REDUCE_SCATTER, "hosts-direct",
		"inside the hosts, then direct between them", RANKS_ALL_PAIRS,
		direct_reduce_scatter, DRIVERS_ALL},
	{COLL_REDUCE_SCATTER, "hosts-halving",
		"inside the hosts, then halving runs between them", RANKS_FEW_PEERS,
		halving_reduce_scatter, DRIVERS_ALL},
	{COLL_ALL_TO_ALL, "hosts-direct",
		"a message for each pair of a rank and another host", RANKS_ALL_PAIRS,
		direct_all_to_all, DRIVERS_ALL},
	/* .. and by one of each host */
	{COLL_ALL_REDUCE, "hosts-one-ring", "one rank a host, a ring between them",
		RANKS_FEW_PEERS, ring_all_reduce, DRIVERS_ONE},
	{COLL_ALL_REDUCE, "hosts-one-tree", "one rank a host, trees between them",
		RANKS_FEW_PEERS, tree_all_reduce, DRIVERS_ONE},
	{COLL_ALL_REDUCE, "hosts-one-oneshot",
		"one rank a host sends to all others; one hop between hosts",
		RANKS_ALL_PAIRS, oneshot_all_reduce, DRIVERS_ONE},
	{COLL_ALL_REDUCE, "hosts-one-doubling",
		"one rank a host, vectors exchanged 1, 2, 4, .. hosts away",
		RANKS_FEW_PEERS, doubling_all_reduce, DRIVERS_ONE},
	{COLL_ALL_REDUCE, "hosts-one-direct", "one rank a host, direct between them",
		RANKS_ALL_PAIRS, direct_all_reduce, DRIVERS_ONE},
	{COLL_ALL_REDUCE, "hosts-one-halving",
		"one rank a host, recursive halving between them", RANKS_FEW_PEERS,
		halving_all_reduce, DRIVERS_ONE},
	{COLL_BROADCAST, "hosts-one-ring", "one rank a host, a pipeline between them",
		RANKS_FEW_PEERS, ring_broadcast, DRIVERS_ONE},
	{COLL_BROADCAST, "hosts-one-tree", "one rank a host, a tree between them",
		RANKS_FEW_PEERS, tree_broadcast, DRIVERS_ONE},
	{COLL_BROADCAST, "hosts-one-direct", "one rank a host; one hop between hosts",
		RANKS_ALL_PAIRS, direct_broadcast, DRIVERS_ONE},
	{COLL_REDUCE, "hosts-one-ring", "one rank a host, a pipeline between them",
		RANKS_FEW_PEERS, ring_reduce, DRIVERS_ONE},
	{COLL_REDUCE, "hosts-one-tree", "one rank a host, a tree between them",
		RANKS_FEW_PEERS, tree_reduce, DRIVERS_ONE},
	{COLL_REDUCE, "hosts-one-direct", "one rank a host; one hop between hosts",
		RANKS_ALL_PAIRS, direct_reduce, DRIVERS_ONE},
	{COLL_ALL_GATHER, "hosts-one-direct", "one rank a host; one hop between hosts",
		RANKS_ALL_PAIRS, direct_all_gather, DRIVERS_ONE},
	{COLL_ALL_GATHER, "hosts-one-bruck",
		"one rank a host; a logarithm of hops between hosts", RANKS_FEW_PEERS,
		bruck_all_gather, DRIVERS_ONE},
	{COLL_ALL_GATHER, "hosts-one-ring", "one rank a host, a ring between them",
		RANKS_FEW_PEERS, ring_all_gather, DRIVERS_ONE},
	{COLL_REDUCE_SCATTER, "hosts-one-direct",
		"one rank a host; one hop between hosts", RANKS_ALL_PAIRS,
		direct_reduce_scatter, DRIVERS_ONE},
	{COLL_REDUCE_SCATTER, "hosts-one-halving",
		"one rank a host; a logarithm of hops between hosts", RANKS_FEW_PEERS,
		halving_reduce_scatter, DRIVERS_ONE},
	{COLL_REDUCE_SCATTER, "hosts-one-ring", "one rank a host, a ring between them",
		RANKS_FEW_PEERS, ring_reduce_scatter, DRIVERS_ONE},
	{COLL_ALL_TO_ALL, "hosts-one-direct", "one message for each pair of hosts",
		RANKS_ALL_PAIRS, direct_all_to_all, DRIVERS_ONE},
	{COLL_GATHER, "hosts-one-direct", "one message for each host", RANKS_ALL_PAIRS,
		direct_gather, DRIVERS_ONE},
	{COLL_SCATTER, "hosts-one-direct", "one message for each host", RANKS_ALL_PAIRS,
		direct_scatter, DRIVERS_ONE},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

const struct sched_kind *catalog_at(uint32_t index)
{
	return index < KIND_COUNT ? &kinds[index] : NULL;
}

const struct sched_kind *catalog_plain_at(uint32_t index)
{
	const struct sched_kind *kind = catalog_at(index);

	return kind && kind->drivers == DRIVERS_NONE ? kind : NULL;
}

const struct sched_kind *catalog_find(enum coll coll, const char *name)
{
	for (uint32_t i = 0; i < KIND_COUNT; i++)
		if (kinds[i].coll == coll && !strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

/* Alone, every collective is a copy; the operators still apply. */
static enum err write_alone(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);

	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST |
					   (coll_reduces(sched->coll) ? OP_POST : 0u),
			.to = SPACE_OUT});
	return w.error;
}

/* What surrounds the schedule between the hosts, inside each. */
static void (*const inside[COLL_COUNT])(struct crew *crew) = {
	[COLL_ALL_REDUCE] = hosts_all_reduce,
	[COLL_BROADCAST] = hosts_broadcast,
	[COLL_REDUCE] = hosts_reduce,
	[COLL_ALL_GATHER] = hosts_all_gather,
	[COLL_REDUCE_SCATTER] = hosts_reduce_scatter,
	[COLL_ALL_TO_ALL] = hosts_all_to_all,
	[COLL_GATHER] = hosts_gather,
	[COLL_SCATTER] = hosts_scatter,
};

static enum err write_composed(const struct sched_kind *kind, struct sched *sched)
{
	struct crew crew;

	crew_begin(&crew, sched, kind->drivers, kind->write);
	if (!crew.writer.error)
		inside[kind->coll](&crew);
	return crew_end(&crew);
}

static bool is_composed(const struct sched_kind *kind, const struct sched_hosts *hosts)
{
	return kind->drivers != DRIVERS_NONE && sched_hosts_several(hosts);
}

/* Chunks of scratch that a driver may need, where each rank has a block: of the blocks it
 * moves, those it sends and those it receives. */
static uint64_t scratch_most(
	const struct sched_kind *kind, const struct sched_hosts *hosts)
{
	uint32_t drivers = kind->drivers == DRIVERS_ONE ? 1 : hosts->local_min;
	uint64_t moved = 0, share = (hosts->local_max + drivers - 1) / drivers;

	if (coll_is_vector(kind->coll))
		return 0;
	for (uint32_t g = 0; g < hosts->host_count; g++)
		moved += (sched_hosts_size(hosts, g) + drivers - 1) / drivers;
	return kind->coll == COLL_ALL_TO_ALL
		       ? hosts->local_max * moved + hosts->rank_count * share
		       : 2 * moved;
}

bool catalog_suits(const struct sched_kind *kind, const struct sched_hosts *hosts,
	uint32_t rank_count)
{
	uint32_t peers;

	if (!is_composed(kind, hosts))
		return rank_count <= kind->rank_max;
	/* a driver has connections to its host and to the other drivers */
	peers = kind->rank_max == RANKS_ALL_PAIRS ? hosts->host_count : PEERS_FEW;
	return hosts->host_count <= kind->rank_max &&
	       hosts->local_max + peers <= PROG_PEERS_MAX &&
	       scratch_most(kind, hosts) <= UINT16_MAX;
}

static enum err refuse(
	const struct sched_kind *kind, const struct sched_hosts *hosts, uint32_t n)
{
	if (is_composed(kind, hosts))
		return err_set(ERR_ARGUMENT,
			"%s %s is not for %u hosts of up to %u ranks: a rank has at most "
			"%d connections and %d chunks of scratch",
			kind->name, coll_name(kind->coll), hosts->host_count,
			hosts->local_max, PROG_PEERS_MAX, UINT16_MAX);
	return err_set(ERR_ARGUMENT, "%s %s is for 1 to %u ranks, not %u", kind->name,
		coll_name(kind->coll), kind->rank_max, n);
}

/* The schedule of `seat->rank`, whose shape has been filled in. */
static enum err write_seat(const struct sched_kind *kind, uint32_t root,
	const struct sched *seat, struct sched *sched)
{
	struct sched s = *seat;
	uint32_t n = s.rank_count;
	enum err e;

	if (!n || !catalog_suits(kind, s.hosts, n))
		return refuse(kind, s.hosts, n);
	if (s.rank >= n || root >= n)
		return err_set(
			ERR_ARGUMENT, "rank %u, root %u of %u ranks", s.rank, root, n);
	if (coll_has_root(kind->coll))
		s.root = root;
	if (is_composed(kind, s.hosts))
		e = write_composed(kind, &s);
	else
		e = n == 1 ? write_alone(&s) : kind->write(&s);
	if (e) {
		sched_fini(&s);
		return e;
	}
	*sched = s;
	return OK;
}

enum err catalog_write(const struct sched_kind *kind, uint32_t rank_count, uint32_t rank,
	uint32_t root, struct sched *sched)
{
	struct sched seat = {.coll = kind->coll, .rank_count = rank_count, .rank = rank};

	return write_seat(kind, root, &seat, sched);
}

enum err catalog_write_hosts(const struct sched_kind *kind,
	const struct sched_hosts *hosts, uint32_t rank, uint32_t root,
	struct sched *sched)
{
	struct sched seat = {.coll = kind->coll,
		.rank_count = hosts->rank_count,
		.rank = rank,
		.hosts = hosts};

	return write_seat(kind, root, &seat, sched);
}
