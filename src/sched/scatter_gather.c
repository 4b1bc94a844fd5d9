/*
 * scatter_gather.c - rooted vectors at full bandwidth: every rank carries a share.
 *
 * Broadcast: the root deals the vector out among the others, who pass their shares to
 * each other. Reduce: every rank completes one share and hands it to the root. A vector
 * leaves or enters the root once instead of n - 1 times, in two hops.
 */
#include "sched/write.h"
#include "sched/writers.h"

/* Chunk i belongs to the rank i + 1 after the root. */
static void broadcast_root(struct writer *w)
{
	uint32_t share_count = w->sched->rank_count - 1;

	write_tx_peers(w, 0, w->sched->root + 1, 1, share_count);
	write_line(w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST | OUT_SEND,
			.to = SPACE_OUT,
			.reps = share_count,
			.stride = 1,
			.conn_step = 1});
}

enum err scatter_gather_broadcast(struct sched *sched)
{
	uint32_t n = sched->rank_count, share_count = n - 1;
	struct writer w = write_begin(sched, share_count, 1);
	uint32_t share = (sched->rank + n - sched->root - 1) % n;
	uint32_t above = share_count - 1 - share; /* shares after this rank's own */
	struct sched_line line = {.op = IN_RECV | OUT_DST, .to = SPACE_OUT, .dst = share};

	if (sched->rank == sched->root) {
		broadcast_root(&w);
		return w.error;
	}
	prog_rx(&sched->lanes[0], sched->root);
	write_rx_peers(&w, 0, sched->rank + 1, 1, above);
	write_rx_peers(&w, 0, sched->root + 1, 1, share);
	write_tx_peers(&w, 0, sched->rank + 1, 1, above);
	write_tx_peers(&w, 0, sched->root + 1, 1, share);
	if (share_count > 1) {
		line.op |= OUT_SEND | FAN_OUT;
		line.reps = share_count - 1;
		line.push = true;
	}
	write_line(&w, 0, &line);
	if (share_count > 1)
		write_line(&w, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.dst = (share + 1) % share_count,
				.rx = 1,
				.reps = share_count - 1,
				.stride = 1,
				.conn_step = 1});
	return w.error;
}

enum err scatter_gather_reduce(struct sched *sched)
{
	uint32_t n = sched->rank_count, r = sched->rank;
	struct writer w = write_begin(sched, n, 1);
	bool at_root = r == sched->root;
	struct sched_line fold = {.op = IN_SRC | IN_RECV | FAN_IN | OP_POST,
		.to = SPACE_OUT,
		.src = r,
		.dst = r,
		.reps = n - 1,
		.own = r};

	write_rx_peers(&w, 0, 0, 1, n); /* folds in rank order */
	write_tx_peers(&w, 0, r + 1, 1, n - 1);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_SEND,
			.src = (r + 1) % n,
			.reps = n - 1,
			.stride = 1,
			.conn_step = 1});
	if (at_root) {
		fold.op |= OUT_DST;
	} else {
		/* straight to the root: the others may have no OUT */
		fold.op |= OUT_SEND;
		fold.tx = prog_tx(&sched->lanes[0], sched->root);
		fold.push = true;
	}
	write_line(&w, 0, &fold);
	if (at_root)
		write_recv_each(&w, 0);
	return w.error;
}
