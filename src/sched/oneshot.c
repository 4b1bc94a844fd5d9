/*
 * oneshot.c - everyone sends its whole vector to everyone: one hop, n times the traffic.
 *
 * For small vectors. Every rank folds in rank order, its own vector in its place, so all
 * ranks get the same bits. PUSH, so that vectors are staged and never lent: a lender has
 * to wait for its readers before it may overwrite or leave, and that is the hop this
 * schedule saves.
 */
#include "sched/write.h"
#include "sched/writers.h"

enum err oneshot_all_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count, r = sched->rank;

	write_rx_peers(&w, 0, 0, 1, n);
	write_tx_peers(&w, 0, r + 1, 1, n - 1);
	write_line(&w, 0,
		&(struct sched_line){
			.op = IN_SRC | OUT_SEND | FAN_OUT, .reps = n - 1, .push = true});
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | IN_RECV | FAN_IN | OUT_DST | OP_POST,
			.to = SPACE_OUT,
			.reps = n - 1,
			.own = r});
	return w.error;
}
