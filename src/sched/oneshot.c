/*
 * oneshot.c - everyone sends its whole vector to everyone: one hop, n times the traffic.
 *
 * For small vectors. Every rank folds in rank order, so all ranks get the same bits.
 * The lower ranks' sum stands in TMP: in place, OUT is the IN that is folded after it.
 * PUSH, so that vectors are staged and never lent: a lender has to wait for its readers
 * before it may overwrite or leave, and that is the hop this schedule saves.
 */
#include "sched/write.h"
#include "sched/writers.h"

enum err oneshot_all_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count, r = sched->rank;
	struct line own = {.op = IN_SRC | OUT_DST, .to = SPACE_TMP};

	sched->tmp_count = r > 0;
	write_rx_peers(&w, 0, 0, 1, n);
	write_tx_peers(&w, 0, r + 1, 1, n - 1);
	write_line(&w, 0,
		&(struct line){
			.op = IN_SRC | OUT_SEND | FAN_OUT, .reps = n - 1, .push = true});
	if (r) {
		write_line(&w, 0,
			&(struct line){.op = IN_RECV | FAN_IN | OUT_DST,
				.to = SPACE_TMP,
				.reps = r});
		own.op |= IN_ACC;
	}
	if (r < n - 1) {
		own.op |= IN_RECV | FAN_IN;
		own.rx = r;
		own.reps = n - 1 - r;
	}
	if (!r) {
		own.op |= OP_POST;
		own.to = SPACE_OUT;
	}
	write_line(&w, 0, &own);
	if (r)
		write_line(&w, 0,
			&(struct line){.op = IN_SRC | OUT_DST | OP_POST,
				.from = SPACE_TMP,
				.to = SPACE_OUT});
	return w.error;
}
