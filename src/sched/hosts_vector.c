/*
 * hosts_vector.c - vectors between hosts: all_reduce, broadcast and reduce.
 *
 * The vector is cut into a slice for each driver (crew.h), the slice into the chunks of
 * the schedule between the hosts.
 *
 *   all_reduce   each driver folds its slice of the vectors of its host; the slices are
 *                reduced between the hosts; each driver hands its slice to its host
 *   broadcast    the root deals the slices to the drivers of its host; between the hosts;
 *                each driver hands its slice to its host
 *   reduce       as all_reduce, but the drivers of the root's host give theirs to it
 */
#include "sched/writers.h"

/* The slice of driver `d`: all chunks of one schedule between the hosts. */
static struct sched_line slice_line(const struct crew *crew, uint32_t d)
{
	uint32_t count = crew->between.chunk_count;

	return (struct sched_line){.src = d * count, .dst = d * count, .count = count};
}

/* A line for the slice of every driver but this rank, after `line`. */
static void each_driver(struct crew *crew, uint32_t lane, const struct sched_line *line)
{
	struct line_run run = {.writer = &crew->writer, .lane = lane};

	for (uint32_t d = 0; d < crew->driver_count; d++) {
		struct sched_line next = slice_line(crew, d);

		if (d == crew->member)
			continue;
		next.op = line->op;
		next.from = line->from;
		next.to = line->to;
		next.rx = next.tx = crew_conn(crew, d);
		run_add(&run, &next);
	}
	run_end(&run);
}

/* Give every driver its slice of IN; a driver folds what it is given into `to`. A rank
 * that is alone on its host has its sum in IN already. */
static void fold_inside(struct crew *crew, enum space to, uint32_t at)
{
	struct sched_line fold = slice_line(crew, crew->member);

	if (crew->member_count == 1)
		return;
	each_driver(crew, 0, &(struct sched_line){.op = IN_SRC | OUT_SEND});
	if (!crew->drives)
		return;
	fold.op = IN_SRC | IN_RECV | FAN_IN | OUT_DST;
	fold.to = to;
	fold.dst = at;
	fold.reps = crew->member_count - 1;
	fold.own = crew->member;
	write_line(&crew->writer, 0, &fold);
}

/* Every driver's slice of OUT to all of its host, but to the first `done` members. */
static void share_inside(struct crew *crew, uint32_t lane, uint32_t done)
{
	struct sched_line send = slice_line(crew, crew->member);
	uint32_t from = crew->member < done ? done - 1 : done;

	if (crew->drives && crew->member_count - 1 > from) {
		send.op = IN_SRC | OUT_SEND | FAN_OUT;
		send.from = SPACE_OUT;
		send.tx = from;
		send.reps = crew->member_count - 1 - from;
		write_line(&crew->writer, lane, &send);
	}
	if (crew->member >= done)
		each_driver(crew, lane,
			&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
}

static void map_slices(
	struct crew *crew, enum space in, uint32_t in_at, enum space out, uint32_t out_at)
{
	uint32_t count = crew->between.chunk_count;

	map_slice(&crew->compose.maps[SPACE_IN], in, in_at, count);
	map_slice(&crew->compose.maps[SPACE_OUT], out, out_at, count);
}

void hosts_all_reduce(struct crew *crew)
{
	uint32_t at = crew->member * crew->between.chunk_count;

	crew_connect_drivers(crew);
	fold_inside(crew, SPACE_OUT, at);
	if (crew->drives) {
		map_slices(crew, crew->member_count > 1 ? SPACE_OUT : SPACE_IN, at,
			SPACE_OUT, at);
		compose_between(&crew->compose);
	}
	share_inside(crew, crew->sched->lane_count - 1, 0);
}

/* Take one's slice from member 0, which is the root. */
static void take_dealt(struct crew *crew)
{
	struct sched_line line = slice_line(crew, crew->member);

	line.op = IN_RECV | OUT_DST;
	line.to = SPACE_OUT;
	line.rx = crew_conn(crew, 0);
	write_line(&crew->writer, 0, &line);
}

void hosts_broadcast(struct crew *crew)
{
	bool here = crew_has_root(crew), at_root = here && !crew->member;
	uint32_t at = crew->member * crew->between.chunk_count;

	crew_connect_drivers(crew);
	if (at_root)
		each_driver(crew, 0,
			&(struct sched_line){
				.op = IN_SRC | OUT_DST | OUT_SEND, .to = SPACE_OUT});
	else if (here && crew->drives)
		take_dealt(crew);
	if (crew->drives) {
		map_slices(crew, at_root ? SPACE_IN : SPACE_OUT, at, SPACE_OUT, at);
		compose_between(&crew->compose);
	}
	share_inside(crew, 0, here ? 1 : 0);
}

/* Only the root has OUT: the other drivers fold in scratch. */
void hosts_reduce(struct crew *crew)
{
	bool here = crew_has_root(crew), at_root = here && !crew->member;
	uint32_t count = crew->between.chunk_count, at = crew->member * count;
	bool alone = crew->member_count == 1;
	enum space sum = at_root ? SPACE_OUT : SPACE_TMP;

	crew_connect_drivers(crew);
	fold_inside(crew, sum, 0);
	if (crew->drives) {
		crew->sched->tmp_count = sum == SPACE_TMP && !alone ? count : 0;
		map_slices(crew, alone ? SPACE_IN : sum, alone ? at : 0, sum, 0);
		compose_between(&crew->compose);
	}
	if (at_root)
		each_driver(crew, 0,
			&(struct sched_line){.op = IN_RECV | OUT_DST, .to = SPACE_OUT});
	else if (here && crew->drives)
		write_line(&crew->writer, 0,
			&(struct sched_line){.op = IN_SRC | OUT_SEND,
				.from = SPACE_TMP,
				.count = count,
				.tx = crew_conn(crew, 0)});
}
