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

static uint32_t block_chunks(const struct sched *sched, enum space space)
{
	bool at_root = sched->rank == sched->root;
	uint32_t n = sched->rank_count;

	switch (sched->coll) {
	case COLL_ALL_GATHER:
		return space == SPACE_IN ? 1 : n;
	case COLL_REDUCE_SCATTER:
		return space == SPACE_IN ? n : 1;
	case COLL_GATHER:
		return space == SPACE_IN ? 1 : at_root ? n : 0;
	case COLL_SCATTER:
		return space == SPACE_OUT ? 1 : at_root ? n : 0;
	default:
		return n;
	}
}

uint32_t sched_chunks(const struct sched *sched, enum space space)
{
	if (space == SPACE_TMP)
		return sched->tmp_count;
	if (!coll_is_vector(sched->coll))
		return block_chunks(sched, space);
	/* broadcast reads IN at the root only; reduce writes OUT at the root only */
	if (sched->coll == COLL_BROADCAST && space == SPACE_IN &&
		sched->rank != sched->root)
		return 0;
	if (sched->coll == COLL_REDUCE && space == SPACE_OUT &&
		sched->rank != sched->root)
		return 0;
	return sched->chunk_count;
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
