/*
 * ring.c - data walks round the ranks in order: least traffic, n hops.
 *
 * Every link carries the same bytes, so the ring is what to use when bandwidth decides;
 * its latency grows with n. Chunk c starts at rank c + 1 and is complete at rank c.
 */
#include "sched/write.h"
#include "sched/writers.h"

static void connect_neighbours(struct writer *w)
{
	uint32_t n = w->sched->rank_count, r = w->sched->rank;

	prog_rx(&w->sched->lanes[0], write_mod((int64_t)r - 1, n));
	prog_tx(&w->sched->lanes[0], (r + 1) % n);
}

/* The reducing half turn: after it this rank is about to complete chunk `rank`. */
static void reduce_round(struct writer *w)
{
	uint32_t n = w->sched->rank_count, r = w->sched->rank;

	write_line(w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_SEND, .src = (r + n - 1) % n});
	if (n > 2)
		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | IN_RECV | OUT_SEND,
				.src = (r + n - 2) % n,
				.reps = n - 2,
				.stride = -1});
}

/* The gathering half turn: the neighbour's chunk rank - 1 arrives first. */
static void gather_round(struct writer *w)
{
	uint32_t n = w->sched->rank_count, r = w->sched->rank;

	if (n > 2)
		write_line(w, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST | OUT_SEND,
				.to = SPACE_OUT,
				.dst = (r + n - 1) % n,
				.reps = n - 2,
				.stride = -1});
	write_line(w, 0,
		&(struct sched_line){
			.op = IN_RECV | OUT_DST, .to = SPACE_OUT, .dst = (r + 1) % n});
}

enum err ring_all_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_neighbours(&w);
	reduce_round(&w);
	write_line(&w, 0,
		&(struct sched_line){
			.op = IN_SRC | IN_RECV | OUT_DST | OUT_SEND | OP_POST,
			.to = SPACE_OUT,
			.src = sched->rank,
			.dst = sched->rank});
	gather_round(&w);
	return w.error;
}

enum err ring_reduce_scatter(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_neighbours(&w);
	reduce_round(&w);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | IN_RECV | OUT_DST | OP_POST,
			.to = SPACE_OUT,
			.src = sched->rank});
	return w.error;
}

enum err ring_all_gather(struct sched *sched)
{
	struct writer w = write_begin(sched, sched->rank_count, 1);

	connect_neighbours(&w);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST | OUT_SEND,
			.to = SPACE_OUT,
			.dst = sched->rank});
	gather_round(&w);
	return w.error;
}

/* The vector is one chunk; tiles make it a pipeline. */
enum err ring_broadcast(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count, r = sched->rank;
	bool first = r == sched->root, last = (r + 1) % n == sched->root;

	if (!first)
		prog_rx(&sched->lanes[0], (r + n - 1) % n);
	if (!last)
		prog_tx(&sched->lanes[0], (r + 1) % n);
	write_line(&w, 0,
		&(struct sched_line){.op = (first ? IN_SRC : IN_RECV) | OUT_DST |
					   (last ? 0u : OUT_SEND),
			.to = SPACE_OUT});
	return w.error;
}

enum err ring_reduce(struct sched *sched)
{
	struct writer w = write_begin(sched, 1, 1);
	uint32_t n = sched->rank_count, r = sched->rank;
	bool first = r == (sched->root + 1) % n, last = r == sched->root;

	if (!first)
		prog_rx(&sched->lanes[0], (r + n - 1) % n);
	if (!last)
		prog_tx(&sched->lanes[0], (r + 1) % n);
	write_line(&w, 0,
		&(struct sched_line){.op = IN_SRC | (first ? 0u : IN_RECV) |
					   (last ? OUT_DST | OP_POST : OUT_SEND),
			.to = SPACE_OUT});
	return w.error;
}
