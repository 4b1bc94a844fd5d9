/*
 * search_memo.c - tries that would end as an earlier one did are not made again.
 *
 * Giving up "PIX, then PXB, then P2C" is three tries, but one search where no path is of
 * the last two types, and then most of the time of a search is repetition. A try can be
 * left out without a trace when an equal one left every bandwidth as it was, to the bit,
 * and none has changed since: it would take the same steps, and find only what was not
 * better before. That last does not hold for NVLS, whose order of graphs has circles.
 */
#include <stdlib.h>

#include "graph/search.h"

enum { MEMO_ENTRIES = 64 };

/* All that a try depends on, but for the bandwidths. */
struct key {
	int pattern, cross_nic, same_channels;
	int min_channels, max_channels;
	int type_intra, type_inter; /* the worst that exists and is allowed */
	int hop_count, steps;
	float bw_intra, bw_inter;
};

struct memo {
	float **cells; /* every bandwidth that a search changes */
	float *before; /* as they were */
	size_t cell_count;
	uint32_t intra_types, inter_types; /* bits: those some path is of */
	struct key key;			   /* of the try in work */
	struct {
		struct key key;
		int steps_left;
	} entries[MEMO_ENTRIES];
	uint32_t count; /* of all since the bandwidths last changed */
};

static uint32_t types_of(const struct topo *topo, enum topo_kind from, enum topo_kind to)
{
	uint32_t types = 0;

	for (uint32_t i = 0; i < topo->counts[from]; i++) {
		const struct topo_node *node = topo->nodes[from][i];

		for (uint32_t j = 0; node->paths[to] && j < topo->counts[to]; j++)
			types |= 1u << topo_path(node, to, j)->type;
	}
	return types;
}

static size_t cells_gather(const struct topo *topo, float **cells)
{
	size_t count = 0;

	for (int kind = 0; kind < TOPO_KINDS; kind++)
		for (uint32_t i = 0; i < topo->counts[kind]; i++) {
			struct topo_node *node = topo->nodes[kind][i];

			for (uint32_t l = 0; l < node->link_count; l++, count++)
				if (cells)
					cells[count] = &node->links[l].bw;
			if (kind == TOPO_NET && cells)
				cells[count] = &node->net.bw;
			count += kind == TOPO_NET;
		}
	return count;
}

enum err memo_prepare(struct search *search)
{
	const struct topo *topo = search->topo;
	struct memo *memo = calloc(1, sizeof(*memo));

	search->memo = memo;
	if (memo) {
		memo->cell_count = cells_gather(topo, NULL);
		memo->cells = calloc(memo->cell_count + 1, sizeof(*memo->cells));
		memo->before = calloc(memo->cell_count + 1, sizeof(*memo->before));
	}
	if (!memo || !memo->cells || !memo->before)
		return err_set(ERR_SYSTEM, "no memory to search a graph; free some");
	cells_gather(topo, memo->cells);
	memo->intra_types = types_of(topo, TOPO_GPU, TOPO_GPU) |
			    types_of(topo, TOPO_GPU, TOPO_NVS) |
			    types_of(topo, TOPO_NVS, TOPO_GPU);
	memo->inter_types = types_of(topo, TOPO_GPU, TOPO_NET) |
			    types_of(topo, TOPO_NET, TOPO_GPU);
	return OK;
}

void memo_free(struct search *search)
{
	if (!search->memo)
		return;
	free(search->memo->cells);
	free(search->memo->before);
	free(search->memo);
}

/* The worst type that exists and is not worse than `limit`; -1 when none is. */
static int worst(uint32_t types, enum path_type limit)
{
	int type = (int)limit;

	while (type >= 0 && !(types >> type & 1))
		type--;
	return type;
}

static struct key key_of(const struct search *search)
{
	const struct graph *trial = &search->trial;

	return (struct key){.pattern = (int)trial->pattern,
		.cross_nic = trial->cross_nic,
		.same_channels = trial->same_channels,
		.min_channels = trial->min_channels,
		.max_channels = trial->max_channels,
		.type_intra = worst(search->memo->intra_types, trial->type_intra),
		.type_inter = worst(search->memo->inter_types, trial->type_inter),
		.hop_count = trial->hop_count,
		.steps = *search->steps,
		.bw_intra = trial->bw_intra,
		.bw_inter = trial->bw_inter};
}

static bool is_same(const struct key *a, const struct key *b)
{
	return a->pattern == b->pattern && a->cross_nic == b->cross_nic &&
	       a->same_channels == b->same_channels &&
	       a->min_channels == b->min_channels && a->max_channels == b->max_channels &&
	       a->type_intra == b->type_intra && a->type_inter == b->type_inter &&
	       a->hop_count == b->hop_count && a->steps == b->steps &&
	       a->bw_intra == b->bw_intra && a->bw_inter == b->bw_inter;
}

bool memo_knows(struct search *search)
{
	struct memo *memo = search->memo;
	uint32_t count = memo->count < MEMO_ENTRIES ? memo->count : MEMO_ENTRIES;

	memo->key = key_of(search);
	for (uint32_t i = 0; i < count; i++)
		if (is_same(&memo->entries[i].key, &memo->key)) {
			*search->steps = memo->entries[i].steps_left;
			return true;
		}
	for (size_t i = 0; i < memo->cell_count; i++)
		memo->before[i] = *memo->cells[i];
	return false;
}

void memo_keep(struct search *search)
{
	struct memo *memo = search->memo;
	uint32_t at = memo->count % MEMO_ENTRIES;

	for (size_t i = 0; i < memo->cell_count; i++)
		if (memo->before[i] != *memo->cells[i]) {
			memo->count = 0;
			return;
		}
	if (search->trial.pattern == PATTERN_NVLS || *search->steps == STEPS_PERFECT ||
		search->trial.hop_count != memo->key.hop_count)
		return;
	memo->entries[at].key = memo->key;
	memo->entries[at].steps_left = *search->steps;
	memo->count++;
}
