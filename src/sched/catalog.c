#include "sched/catalog.h"

#include <string.h>

#include "sched/write.h"
#include "sched/writers.h"

/* A rank reaches every other over one lane's connections, or only a few of them. */
enum { RANKS_ALL_PAIRS = PROG_PEERS_MAX, RANKS_FEW_PEERS = 16384 };

static const struct sched_kind kinds[] = {
	{COLL_ALL_REDUCE, "ring", "round the ranks twice; least traffic", RANKS_FEW_PEERS,
		ring_all_reduce},
	{COLL_ALL_REDUCE, "tree", "double binary tree, up and down", RANKS_FEW_PEERS,
		tree_all_reduce},
	{COLL_ALL_REDUCE, "direct", "every rank folds a share and hands it to all",
		RANKS_ALL_PAIRS, direct_all_reduce},
	{COLL_ALL_REDUCE, "oneshot", "all send all to all; one hop, for small vectors",
		RANKS_ALL_PAIRS, oneshot_all_reduce},
	{COLL_ALL_REDUCE, "halving", "recursive halving, then doubling", RANKS_FEW_PEERS,
		halving_all_reduce},
	{COLL_ALL_REDUCE, "doubling", "vectors exchanged 1, 2, 4, .. away; few hops",
		RANKS_FEW_PEERS, doubling_all_reduce},
	{COLL_BROADCAST, "ring", "a pipeline round the ranks", RANKS_FEW_PEERS,
		ring_broadcast},
	{COLL_BROADCAST, "tree", "down a binary tree", RANKS_FEW_PEERS, tree_broadcast},
	{COLL_BROADCAST, "direct", "everyone reads the root; one hop", RANKS_ALL_PAIRS,
		direct_broadcast},
	{COLL_BROADCAST, "scatter_gather",
		"the root deals out shares, which are exchanged", RANKS_ALL_PAIRS,
		scatter_gather_broadcast},
	{COLL_REDUCE, "ring", "a pipeline round the ranks", RANKS_FEW_PEERS, ring_reduce},
	{COLL_REDUCE, "tree", "up a binary tree", RANKS_FEW_PEERS, tree_reduce},
	{COLL_REDUCE, "direct", "the root folds everyone's vector; one hop",
		RANKS_ALL_PAIRS, direct_reduce},
	{COLL_REDUCE, "scatter_gather", "every rank folds a share for the root",
		RANKS_ALL_PAIRS, scatter_gather_reduce},
	{COLL_ALL_GATHER, "ring", "once round the ranks; least traffic", RANKS_FEW_PEERS,
		ring_all_gather},
	{COLL_ALL_GATHER, "direct", "every rank writes its block to all; one hop",
		RANKS_ALL_PAIRS, direct_all_gather},
	{COLL_ALL_GATHER, "bruck", "doubling runs of blocks; a logarithm of hops",
		RANKS_FEW_PEERS, bruck_all_gather},
	{COLL_REDUCE_SCATTER, "ring", "once round the ranks; least traffic",
		RANKS_FEW_PEERS, ring_reduce_scatter},
	{COLL_REDUCE_SCATTER, "direct", "every rank folds its block; one hop",
		RANKS_ALL_PAIRS, direct_reduce_scatter},
	{COLL_REDUCE_SCATTER, "halving", "halving runs of blocks; a logarithm of hops",
		RANKS_FEW_PEERS, halving_reduce_scatter},
	{COLL_ALL_TO_ALL, "direct", "every pair exchanges its blocks; one hop",
		RANKS_ALL_PAIRS, direct_all_to_all},
	{COLL_GATHER, "direct", "everyone writes the root's buffer; one hop",
		RANKS_ALL_PAIRS, direct_gather},
	{COLL_SCATTER, "direct", "everyone reads the root's buffer; one hop",
		RANKS_ALL_PAIRS, direct_scatter},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

const struct sched_kind *catalog_at(uint32_t index)
{
	return index < KIND_COUNT ? &kinds[index] : NULL;
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

enum err catalog_write(const struct sched_kind *kind, uint32_t rank_count, uint32_t rank,
	uint32_t root, struct sched *sched)
{
	struct sched s = {.coll = kind->coll, .rank_count = rank_count, .rank = rank};
	enum err e;

	if (!rank_count || rank_count > kind->rank_max)
		return err_set(ERR_ARGUMENT, "%s %s is for 1 to %u ranks, not %u",
			kind->name, coll_name(kind->coll), kind->rank_max, rank_count);
	if (rank >= rank_count || root >= rank_count)
		return err_set(ERR_ARGUMENT, "rank %u, root %u of %u ranks", rank, root,
			rank_count);
	if (coll_has_root(kind->coll))
		s.root = root;
	e = rank_count == 1 ? write_alone(&s) : kind->write(&s);
	if (e) {
		sched_fini(&s);
		return e;
	}
	*sched = s;
	return OK;
}
