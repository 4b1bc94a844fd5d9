/*
 * hosts_block.c - a block for each rank between hosts: all_gather and reduce_scatter.
 *
 * The schedule between the hosts has a block for each host; here it stands for the blocks
 * of that host's ranks that the driver moves (crew.h).
 *
 *   all_gather      ranks that do not drive give their block to a driver; between the
 *                   hosts; each driver hands all it has got to its host. Where its blocks
 *                   do not lie side by side, they do so in scratch until then
 *   reduce_scatter  each driver folds what its host has for the ranks of its share, on
 *                   all hosts, in scratch; between the hosts; what a driver has for ranks
 *                   that do not drive it gives to them
 */
#include "sched/rounds.h"
#include "sched/writers.h"

/* Member i of this host drives itself or is in the share of this driver. */
static uint32_t driver_of(const struct crew *crew, uint32_t member)
{
	return member % crew->driver_count;
}

/* `line` for each member of this driver's share but itself: those that do not drive. Its
 * chunk, of IN or OUT, is the member's block, or the next one of TMP. */
static void each_passenger(struct crew *crew, const struct sched_line *line)
{
	struct line_run run = {.writer = &crew->writer};
	uint32_t step = crew->driver_count, index = 1;

	for (uint32_t m = crew->member + step; m < crew->member_count; m += step) {
		struct sched_line next = *line;
		uint32_t rank = crew_rank(crew, crew->host, m);

		next.src = line->from == SPACE_TMP ? line->src + index : rank;
		next.dst = line->to == SPACE_TMP ? line->dst + index : rank;
		next.rx = next.tx = crew_conn(crew, m);
		index++;
		run_add(&run, &next);
	}
	run_end(&run);
}

/* An inner block for each host, or that of this host alone: the ranks of the share. */
static void map_shares(struct crew *crew, struct map *map, bool all)
{
	uint32_t host_count = crew->hosts->host_count;

	for (uint32_t g = all ? 0 : crew->host; g < (all ? host_count : crew->host + 1);
		g++) {
		crew_share(crew, map, g, crew->member);
		map_end(map);
	}
}

/* Put this driver's share of its host where the schedule between the hosts takes it: at
 * `first` of TMP, or in OUT. */
static void gather_share(struct crew *crew, enum space to, uint32_t first)
{
	write_line(&crew->writer, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.to = to,
			.dst = to == SPACE_TMP ? first : crew->sched->rank});
	each_passenger(crew,
		&(struct sched_line){.op = IN_RECV | OUT_DST, .to = to, .dst = first});
}

static void gather_between(struct crew *crew)
{
	bool alone = crew_share_size(crew, crew->host, crew->member) == 1;
	struct map *in = &crew->compose.maps[SPACE_IN];
	struct map *out = &crew->compose.maps[SPACE_OUT];
	struct map blocks = {.space = SPACE_OUT};
	uint32_t first = 0;
	bool whole;

	out->space = SPACE_OUT;
	map_shares(crew, out, true);
	map_shares(crew, in, false);
	whole = compose_is_whole(&crew->compose);
	if (!whole) {
		map_shares(crew, &blocks, true);
		map_to_scratch(out, 0);
		map_count(out, crew->host, &first);
		map_to_scratch(in, first);
		crew->sched->tmp_count = out->count;
	} else if (alone) { /* taken from IN */
		map_fini(in);
		map_slice(in, SPACE_IN, 0, 1);
	} else {
		in->space = SPACE_OUT;
	}
	if (!whole || !alone)
		gather_share(crew, out->space, first);
	compose_between(&crew->compose);
	crew_copy(crew, &blocks, false);
	map_fini(&blocks);
}

void hosts_all_gather(struct crew *crew)
{
	struct rounds rounds;
	struct sched_line send = {.op = IN_SRC | OUT_SEND | FAN_OUT,
		.from = SPACE_OUT,
		.reps = crew->member_count - 1};

	crew_connect_drivers(crew);
	if (crew->drives)
		gather_between(crew);
	else
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.tx = crew_conn(crew, driver_of(crew, crew->member))});
	if (crew->member_count == 1)
		return;
	rounds_begin(&rounds, crew, 0, crew->hosts->host_count);
	for (; rounds_left(&rounds); rounds_next(&rounds)) {
		if (crew->drives && rounds_run(&rounds, crew->member, &send))
			write_line(&crew->writer, 0, &send);
		rounds_each_driver(&rounds,
			&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
	}
	rounds_end(&rounds);
}

/* Give each driver what this rank has for the ranks of its share; fold one's own. The
 * sums stand in TMP, side by side. */
static void fold_shares(struct crew *crew)
{
	struct rounds rounds;
	uint32_t folded = 0;

	rounds_begin(&rounds, crew, 0, crew->hosts->host_count);
	for (; rounds_left(&rounds); rounds_next(&rounds)) {
		struct sched_line fold = {.op = IN_SRC | IN_RECV | FAN_IN | OUT_DST,
			.to = SPACE_TMP,
			.reps = crew->member_count - 1,
			.own = crew->member};

		rounds_each_driver(
			&rounds, &(struct sched_line){.op = IN_SRC | OUT_SEND});
		if (!crew->drives || !rounds_run(&rounds, crew->member, &fold))
			continue;
		fold.dst = folded;
		folded += fold.count;
		write_line(&crew->writer, 0, &fold);
	}
	rounds_end(&rounds);
	crew->sched->tmp_count = folded;
}

/* Scratch of the schedule between the hosts: a chunk of it holds the sum for the host
 * whose block of IN is folded into it. */
static bool scratch_find(const struct crew *crew, uint32_t chunk, uint32_t *host)
{
	const struct prog *prog = &crew->between.lanes[0];

	for (uint32_t pc = 0; pc < prog->count; pc++) {
		const struct insn *insn = &prog->insns[pc];

		if (insn->op & OUT_DST && insn_dst_space(insn) == SPACE_TMP &&
			insn->op & IN_SRC && insn_src_space(insn) == SPACE_IN &&
			chunk - insn->dst < insn->count && chunk >= insn->dst) {
			*host = insn->src + (chunk - insn->dst);
			return true;
		}
	}
	return false;
}

static void map_scratch(struct crew *crew)
{
	struct map *tmp = &crew->compose.maps[SPACE_TMP];

	for (uint32_t c = 0, host; c < crew->between.tmp_count; c++) {
		if (!scratch_find(crew, c, &host)) {
			crew->writer.error = err_set(ERR_INTERNAL,
				"scratch chunk %u between hosts is not of one host", c);
			return;
		}
		crew_share(crew, tmp, host, crew->member);
		map_end(tmp);
	}
	map_to_scratch(tmp, crew->sched->tmp_count);
	crew->sched->tmp_count += tmp->count;
}

/* The sums for this driver's share of all hosts: in TMP if there was anything to fold, or
 * if they do not lie side by side in IN. */
static void map_sums(struct crew *crew)
{
	struct map *in = &crew->compose.maps[SPACE_IN];
	struct map *out = &crew->compose.maps[SPACE_OUT];

	in->space = SPACE_IN;
	map_shares(crew, in, true);
	map_shares(crew, out, false);
	map_to_scratch(out, 0);
	map_scratch(crew);
	if (crew->member_count == 1 && !compose_is_whole(&crew->compose)) {
		crew_copy(crew, in, true);
		map_to_scratch(&crew->compose.maps[SPACE_TMP], in->count);
		crew->sched->tmp_count += in->count;
		map_to_scratch(in, 0);
	} else if (crew->member_count > 1) {
		map_to_scratch(in, 0);
	}
}

static void scatter_between(struct crew *crew)
{
	bool alone = crew_share_size(crew, crew->host, crew->member) == 1;
	const struct map *in = &crew->compose.maps[SPACE_IN];
	struct map *out = &crew->compose.maps[SPACE_OUT];
	uint32_t first;

	map_sums(crew);
	if (alone) {
		map_fini(out);
		map_slice(out, SPACE_OUT, 0, 1);
	} else if (!in->failed) { /* over this host's sums, as in place */
		map_count(in, crew->host, &first);
		map_to_scratch(out, first);
	}
	compose_between(&crew->compose);
}

/* The results of a driver's share: its own first, then those of its passengers. */
static void deal_share(struct crew *crew)
{
	const struct map *out = &crew->compose.maps[SPACE_OUT];

	if (crew->writer.error || out->count == 1)
		return;
	each_passenger(crew, &(struct sched_line){.op = IN_SRC | OUT_SEND,
				     .from = SPACE_TMP,
				     .src = out->chunks[0]});
	write_line(&crew->writer, 0,
		&(struct sched_line){.op = IN_SRC | OUT_DST,
			.from = SPACE_TMP,
			.to = SPACE_OUT,
			.src = out->chunks[0]});
}

void hosts_reduce_scatter(struct crew *crew)
{
	crew_connect_drivers(crew);
	if (crew->member_count > 1)
		fold_shares(crew);
	if (crew->drives) {
		scatter_between(crew);
		deal_share(crew);
	} else {
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST,
				.to = SPACE_OUT,
				.rx = crew_conn(crew, driver_of(crew, crew->member))});
	}
}
