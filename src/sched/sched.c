#include "sched/sched.h"

#include <assert.h>
#include <string.h>

static const char *const names[COLL_COUNT] = {"all_reduce", "broadcast", "reduce",
	"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"};

const char *coll_name(enum coll coll)
{
	return coll < COLL_COUNT ? names[coll] : "unknown";
}

enum coll coll_find(const char *name)
{
	for (int i = 0; i < COLL_COUNT; i++)
		if (!strcmp(names[i], name))
			return (enum coll)i;
	return COLL_COUNT;
}

bool coll_is_vector(enum coll coll)
{
	return coll == COLL_ALL_REDUCE || coll == COLL_BROADCAST || coll == COLL_REDUCE;
}

bool coll_has_root(enum coll coll)
{
	return coll == COLL_BROADCAST || coll == COLL_REDUCE || coll == COLL_GATHER ||
	       coll == COLL_SCATTER;
}

bool coll_reduces(enum coll coll)
{
	return coll == COLL_ALL_REDUCE || coll == COLL_REDUCE ||
	       coll == COLL_REDUCE_SCATTER;
}

uint32_t coll_blocks(enum coll coll, enum space space, bool at_root, uint32_t rank_count)
{
	bool in = space == SPACE_IN;

	switch (coll) {
	case COLL_BROADCAST:
		return !in || at_root;
	case COLL_REDUCE:
		return in || at_root;
	case COLL_ALL_GATHER:
		return in ? 1 : rank_count;
	case COLL_REDUCE_SCATTER:
		return in ? rank_count : 1;
	case COLL_GATHER:
		return in ? 1 : at_root ? rank_count : 0;
	case COLL_SCATTER:
		return !in ? 1 : at_root ? rank_count : 0;
	case COLL_ALL_TO_ALL:
		return rank_count;
	default:
		return 1;
	}
}

uint32_t sched_chunks(const struct sched *sched, enum space space)
{
	uint32_t blocks;

	if (space == SPACE_TMP)
		return sched->tmp_count;
	blocks = coll_blocks(
		sched->coll, space, sched->rank == sched->root, sched->rank_count);
	return coll_is_vector(sched->coll) ? blocks * sched->chunk_count : blocks;
}

struct sched_layout sched_layout(const struct sched *sched, bool in_place)
{
	uint32_t in = sched_chunks(sched, SPACE_IN), out = sched_chunks(sched, SPACE_OUT);
	struct sched_layout layout = {
		.in_count = in, .out_count = out, .out_offset = in, .count = in + out};

	if (!in_place || !in || !out)
		return layout;
	layout.count = in > out ? in : out;
	layout.out_offset = 0;
	if (in < out)
		layout.in_offset = sched->rank;
	else if (out < in)
		layout.out_offset = sched->rank;
	return layout;
}

uint16_t sched_chunk(
	const struct sched *sched, const struct insn *insn, bool source, uint32_t turn)
{
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);
	int32_t chunks = (int32_t)sched_chunks(sched, space);
	int32_t base = source ? insn->src : insn->dst;
	int32_t at;

	assert(chunks > 0);
	at = (base + (int32_t)turn * insn->stride) % chunks;
	return (uint16_t)(at < 0 ? at + chunks : at);
}

void sched_fini(struct sched *sched)
{
	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++)
		prog_fini(&sched->lanes[i]);
}
