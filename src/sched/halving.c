/*
 * halving.c - logarithmic exchanges: few messages for any number of ranks.
 *
 * All-reduce: the classic recursive halving of the vector, then doubling. Ranks beyond
 * the largest power of two first give their vector to a neighbour and get the result
 * back at the end. Without the halving it is recursive doubling, for small vectors.
 *
 * All-gather is Bruck's: in round d (1, 2, 4, ..) rank r owns blocks r .. r + d - 1,
 * sends them to r - d and gets the next ones from r + d. Reduce-scatter runs the same
 * rounds backwards, largest d first, folding where the other one copies. Blocks are kept
 * under their own number, so no final rotation is needed; a run of blocks that passes
 * rank n - 1 is two messages. A long run goes in parts, a part out and a part in: slots
 * are as large as the largest message, and those of 1024 ranks still fit in a stage.
 */
#include "sched/write.h"
#include "sched/writers.h"

enum { BLOCKS_MAX = 128 }; /* of a message */

static uint32_t largest_power_below(uint32_t n)
{
	uint32_t power = 1;

	while (power * 2 < n)
		power *= 2;
	return power;
}

/* This rank among the `core_count` (a power of two) that halve; 2 * extra ranks at the
 * start are pairs of which the even one takes part. */
struct core {
	uint32_t count, extra, place;
	uint32_t chunks; /* of the vector */
	bool paired;	 /* this rank is one of a pair, the odd one a spare */
};

static struct core core_of(const struct sched *sched, uint32_t chunks)
{
	uint32_t power = largest_power_below(sched->rank_count + 1), r = sched->rank;
	struct core core = {.count = power, .extra = sched->rank_count - power};

	core.chunks = chunks ? chunks : power;
	core.paired = r < 2 * core.extra;
	core.place = core.paired ? r / 2 : r - core.extra;
	return core;
}

static bool is_spare(const struct core *core, const struct sched *sched)
{
	return core->paired && sched->rank % 2;
}

static uint32_t core_rank(const struct core *core, uint32_t place)
{
	return place < core->extra ? 2 * place : place + core->extra;
}

/* The spare rank of a pair: hand the vector over, take the result. */
static void write_spare(struct writer *w, const struct core *core)
{
	struct prog *lane = &w->sched->lanes[0];
	uint32_t partner = w->sched->rank - 1;

	write_line(w, 0,
		&(struct sched_line){.op = IN_SRC | OUT_SEND,
			.count = core->chunks,
			.tx = prog_tx(lane, partner)});
	write_line(w, 0,
		&(struct sched_line){.op = IN_RECV | OUT_DST,
			.to = SPACE_OUT,
			.count = core->chunks,
			.rx = prog_rx(lane, partner)});
}

/* Its partner folds that vector in first. */
static void write_adopt(struct writer *w, const struct core *core)
{
	if (core->paired)
		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.count = core->chunks,
				.rx = prog_rx(&w->sched->lanes[0], w->sched->rank + 1)});
}

/* Chunks keep .. keep + half end here, the other half of the range goes to the peer. */
static void write_halving(struct writer *w, const struct core *core, enum space from)
{
	struct prog *lane = &w->sched->lanes[0];
	uint32_t low = 0;

	for (uint32_t half = core->count / 2; half; half /= 2) {
		bool upper = core->place & half;
		uint32_t keep = low + (upper ? half : 0), give = low + (upper ? 0 : half);
		uint32_t peer = core_rank(core, core->place ^ half);

		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = from,
				.src = give,
				.count = half,
				.tx = prog_tx(lane, peer)});
		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | IN_RECV | OUT_DST |
						   (half == 1 ? OP_POST : 0u),
				.from = from,
				.to = SPACE_OUT,
				.src = keep,
				.dst = keep,
				.count = half,
				.rx = prog_rx(lane, peer)});
		low = keep;
		from = SPACE_OUT;
	}
}

static void write_doubling(struct writer *w, const struct core *core)
{
	struct prog *lane = &w->sched->lanes[0];

	for (uint32_t have = 1; have < core->count; have *= 2) {
		uint32_t low = core->place & ~(have - 1);
		uint32_t peer = core_rank(core, core->place ^ have);

		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = SPACE_OUT,
				.src = low,
				.count = have,
				.tx = prog_tx(lane, peer)});
		write_line(w, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.dst = low ^ have,
				.count = have,
				.rx = prog_rx(lane, peer)});
	}
}

enum err halving_all_reduce(struct sched *sched)
{
	struct core core = core_of(sched, 0);
	struct writer w = write_begin(sched, core.chunks, 1);

	if (is_spare(&core, sched)) {
		write_spare(&w, &core);
		return w.error;
	}
	write_adopt(&w, &core);
	write_halving(&w, &core, core.paired ? SPACE_OUT : SPACE_IN);
	write_doubling(&w, &core);
	if (core.paired)
		write_line(&w, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = SPACE_OUT,
				.count = core.chunks,
				.tx = prog_tx(&sched->lanes[0], sched->rank + 1)});
	return w.error;
}

/*
 * Whole vectors are exchanged with ranks 1, 2, 4, .. away: a logarithm of hops, each one
 * line of one peer to look at. Both sides of an exchange fold the same two values, so all
 * ranks get the same bits. PUSH: OUT is overwritten by the next round and cannot be lent.
 */
enum err doubling_all_reduce(struct sched *sched)
{
	struct core core = core_of(sched, 1);
	struct writer w = write_begin(sched, 1, 1);
	struct prog *lane = &sched->lanes[0];
	struct sched_line line = {.op = IN_SRC | OUT_SEND, .to = SPACE_OUT, .push = true};

	if (is_spare(&core, sched)) {
		write_spare(&w, &core);
		return w.error;
	}
	write_adopt(&w, &core);
	line.from = core.paired ? SPACE_OUT : SPACE_IN;
	line.tx = prog_tx(lane, core_rank(&core, core.place ^ 1));
	write_line(&w, 0, &line);
	for (uint32_t distance = 1; distance < core.count; distance *= 2) {
		bool last = distance * 2 == core.count;

		line.op = IN_SRC | IN_RECV | OUT_DST | (last ? OP_POST : OUT_SEND);
		line.rx = prog_rx(lane, core_rank(&core, core.place ^ distance));
		line.tx = 0;
		if (!last)
			line.tx = prog_tx(
				lane, core_rank(&core, core.place ^ distance * 2));
		if (last && core.paired) {
			line.op |= OUT_SEND;
			line.tx = prog_tx(lane, sched->rank + 1);
		}
		write_line(&w, 0, &line);
		line.from = SPACE_OUT;
	}
	return w.error;
}

static uint32_t part_end(uint32_t begin, uint32_t count)
{
	return count - begin < BLOCKS_MAX ? count : begin + BLOCKS_MAX;
}

/* One side of a Bruck round: blocks first .. first + count - 1, in one or two lines. */
static void write_blocks(
	struct writer *w, const struct sched_line *line, uint32_t first, uint32_t count)
{
	uint32_t n = w->sched->rank_count;

	for (uint32_t done = 0; done < count;) {
		struct sched_line part = *line;
		uint32_t block = (first + done) % n;

		part.src = part.dst = block;
		part.count = count - done < n - block ? count - done : n - block;
		write_line(w, 0, &part);
		done += part.count;
	}
}

enum err bruck_all_gather(struct sched *sched)
{
	uint32_t n = sched->rank_count, r = sched->rank;
	struct writer w = write_begin(sched, n, 1);
	struct prog *lane = &sched->lanes[0];

	for (uint32_t d = 1; d < n; d *= 2) {
		uint32_t count = d < n - d ? d : n - d;
		struct sched_line send = {.op = IN_SRC | OUT_SEND,
			.from = SPACE_OUT,
			.tx = prog_tx(lane, (r + n - d) % n)};
		struct sched_line recv = {.op = IN_RECV | OUT_DST,
			.to = SPACE_OUT,
			.rx = prog_rx(lane, (r + d) % n)};

		if (d == 1)
			write_line(&w, 0,
				&(struct sched_line){.op = IN_SRC | OUT_DST | OUT_SEND,
					.to = SPACE_OUT,
					.dst = r,
					.tx = send.tx});
		for (uint32_t at = 0, end; at < count; at = end) {
			end = part_end(at, count);
			if (d > 1)
				write_blocks(&w, &send, r + at, end - at);
			write_blocks(&w, &recv, r + d + at, end - at);
		}
	}
	return w.error;
}

/* A reversed round, or a part of it: blocks `begin` to `end` move by `distance`. Offsets
 * count from the receiving rank; the first `summed` of every rank stand in its TMP, the
 * others still in IN. */
struct half_fold {
	uint32_t distance, begin, end, summed;
};

/* Where the message that starts at offset `at` ends: both sides cut where either changes
 * between TMP and IN, and where the block number wraps at rank n. */
static uint32_t fold_cut(const struct half_fold *fold, uint32_t at, uint32_t wrap)
{
	uint32_t cuts[3] = {fold->summed, wrap, 0};
	uint32_t end = fold->end;

	if (fold->summed > fold->distance)
		cuts[2] = fold->summed - fold->distance;
	for (uint32_t i = 0; i < 3; i++)
		if (cuts[i] > at && cuts[i] < end)
			end = cuts[i];
	return end;
}

static void fold_send(struct writer *w, const struct half_fold *fold)
{
	uint32_t n = w->sched->rank_count, to = (w->sched->rank + fold->distance) % n;
	uint8_t tx = prog_tx(&w->sched->lanes[0], to);

	for (uint32_t at = fold->begin, end; at < fold->end; at = end) {
		uint32_t own = fold->distance + at; /* the offset seen from this rank */
		bool summed = own < fold->summed;

		end = fold_cut(fold, at, n - to);
		write_line(w, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = summed ? SPACE_TMP : SPACE_IN,
				.src = summed ? own : (to + at) % n,
				.count = end - at,
				.tx = tx});
	}
}

static void fold_recv(struct writer *w, const struct half_fold *fold)
{
	uint32_t n = w->sched->rank_count, r = w->sched->rank;
	bool last = fold->distance == 1;
	uint8_t rx = prog_rx(&w->sched->lanes[0], (r + n - fold->distance) % n);

	for (uint32_t at = fold->begin, end; at < fold->end; at = end) {
		bool summed = at < fold->summed;

		end = fold_cut(fold, at, n - r);
		write_line(w, 0,
			&(struct sched_line){
				.op = IN_SRC | IN_RECV | OUT_DST | (last ? OP_POST : 0u),
				.from = summed ? SPACE_TMP : SPACE_IN,
				.to = last ? SPACE_OUT : SPACE_TMP,
				.src = summed ? at : (r + at) % n,
				.dst = at,
				.count = end - at,
				.rx = rx});
	}
}

enum err halving_reduce_scatter(struct sched *sched)
{
	uint32_t n = sched->rank_count;
	struct writer w = write_begin(sched, n, 1);
	struct half_fold fold = {.distance = largest_power_below(n)};

	for (; fold.distance; fold.distance /= 2) {
		uint32_t rest = n - fold.distance;
		uint32_t count = fold.distance < rest ? fold.distance : rest;

		for (fold.begin = 0; fold.begin < count; fold.begin = fold.end) {
			fold.end = part_end(fold.begin, count);
			fold_send(&w, &fold);
			fold_recv(&w, &fold);
		}
		if (fold.distance > 1 && count > fold.summed)
			fold.summed = count;
	}
	sched->tmp_count = fold.summed;
	return w.error;
}
