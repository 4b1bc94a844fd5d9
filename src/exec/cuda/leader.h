/*
 * leader.h - processes that share a GPU without MPS: what way_leader.c and leader_pairs.c
 * have in common.
 */
#ifndef EXEC_CUDA_LEADER_H
#define EXEC_CUDA_LEADER_H

#include "exec/cuda/state.h"

/* What the way remembers. */
struct leader {
	struct dev_mail sent; /* what is in the mail, if `sent_on` is the stream again */
	uint64_t sent_on;
	_Atomic bool tells_itself; /* who leads; its calls come on several streams */
	/* messages that a kernel of the receiver copies: to a rank, and from it */
	uint32_t offered[MOVES_RANKS_MAX], fetched[MOVES_RANKS_MAX];
};

/* As way.h has them. */
bool leader_passes(const struct cuda_engine *engine, uint64_t bytes);
enum err leader_pairs(
	struct cuda_engine *engine, struct pair_list *list, cu_stream stream);

/* Words of others that say what we have sent. */
void leader_sends_withdraw(struct cuda_engine *engine, struct writes *writes);

#endif
