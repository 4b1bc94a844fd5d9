/*
 * direct.c - every pair of ranks talks directly: one or two hops for any n.
 *
 * What to use where every rank reaches every other alike: shared memory, one GPU, a
 * switch. Peers are taken in the order r + 1, r + 2, .. so that no two ranks begin with
 * the same one; but what is folded is folded in rank order, as oneshot.c does, so the
 * bits of a result do not depend on which of the two a size gets. PUSH marks messages the
 * sender should write in place, because it has the value in hand anyway.
 */
#include "sched/write.h"
#include "sched/writers.h"

static void connect_all(struct writer *w)
{
	uint32_t n = w->sched->rank_count, r = w->sched->rank;

	write_rx_peers(w, 0, 0, 1, n);
	write_tx_peers(w, 0, r + 1, 1, n - 1);
}

/* in[c] to every other rank c. */
static void send_each(struct writer *w)
{
	uint32_t n = w->sched->rank_count;

	write_line(w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_SEND,
			.src = (w->sched->rank + 1) % n,
			.reps = n - 1,
			.stride = 1,
			.conn_step = 1});
}

enum err direct_all_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_all(&w);
	send_each(&w);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | IN_RECV | FAN_IN | OUT_DST |
					   OUT_SEND | FAN_OUT | OP_POST,
			.to = SPACE_OUT,
			.src = sched->rank,
			.dst = sched->rank,
			.reps = sched->rank_count - 1,
			.own = sched->rank,
			.push = true});
	write_recv_each(&w, 0);
	return w.error;
}

enum err direct_reduce_scatter(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_all(&w);
	send_each(&w);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | IN_RECV | FAN_IN | OUT_DST | OP_POST,
			.to = SPACE_OUT,
			.src = sched->rank,
			.reps = sched->rank_count - 1,
			.own = sched->rank});
	return w.error;
}

enum err direct_all_gather(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_all(&w);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST | OUT_SEND | FAN_OUT,
			.to = SPACE_OUT,
			.dst = sched->rank,
			.reps = sched->rank_count - 1,
			.push = true});
	write_recv_each(&w, 0);
	return w.error;
}

enum err direct_all_to_all(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);
	uint32_t n = sched->rank_count, r = sched->rank;

	write_tx_peers(&w, 0, r + 1, 1, n - 1);
	write_rx_peers(&w, 0, r + n - 1, -1, n - 1);
	/* first, so that what is lent is announced with the arrival: program_lead() */
	send_each(&w);
	write_line(&w, 0,
		&(struct sched_line){
			.op = IN_SRC | OUT_DST, .to = SPACE_OUT, .src = r, .dst = r});
	/* the peer that sent to us first is the one just below */
	write_line(&w, 0,
		&(struct sched_line){.op = IN_RECV | OUT_DST,
			.to = SPACE_OUT,
			.dst = (r + n - 1) % n,
			.reps = n - 1,
			.stride = -1,
			.conn_step = 1});
	return w.error;
}

/* The leaves write the root's buffer, all at once; the root only waits. */
enum err direct_gather(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);
	uint32_t n = sched->rank_count;

	if (sched->rank != sched->root) {
		prog_tx(&sched->lanes[0], sched->root);
		write_line(&w, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND, .push = true});
		return w.error;
	}
	write_rx_peers(&w, 0, 0, 1, n);
	write_line(&w, 0,
		&(struct sched_line){
			.op = IN_SRC | OUT_DST, .to = SPACE_OUT, .dst = sched->root});
	write_recv_each(&w, 0);
	return w.error;
}

/* The leaves read the root's buffer, all at once. */
enum err direct_scatter(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);
	uint32_t n = sched->rank_count;

	if (sched->rank != sched->root) {
		prog_rx(&sched->lanes[0], sched->root);
		write_line(&w, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
		return w.error;
	}
	write_tx_peers(&w, 0, sched->root + 1, 1, n - 1);
	send_each(&w);
	write_line(&w, 0,
		&(struct sched_line){
			.op = IN_SRC | OUT_DST, .to = SPACE_OUT, .src = sched->root});
	return w.error;
}

enum err direct_broadcast(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count;
	struct sched_line line = {.op = OUT_DST, .to = SPACE_OUT};

	if (sched->rank == sched->root) {
		write_tx_peers(&w, 0, sched->root + 1, 1, n - 1);
		line.op |= IN_SRC | OUT_SEND | FAN_OUT;
		line.reps = n - 1;
	} else {
		prog_rx(&sched->lanes[0], sched->root);
		line.op |= IN_RECV;
	}
	write_line(&w, 0, &line);
	return w.error;
}

enum err direct_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count;
	struct sched_line line = {.op = IN_SRC, .to = SPACE_OUT};

	if (sched->rank == sched->root) {
		write_rx_peers(&w, 0, 0, 1, n);
		line.op |= IN_RECV | FAN_IN | OUT_DST | OP_POST;
		line.reps = n - 1;
		line.own = sched->root;
	} else {
		prog_tx(&sched->lanes[0], sched->root);
		line.op |= OUT_SEND;
	}
	write_line(&w, 0, &line);
	return w.error;
}
