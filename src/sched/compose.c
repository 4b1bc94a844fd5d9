/*
 * compose.c - the translation, one repetition after another.
 *
 * Repetitions that differ by a constant step are put together as repetitions again, so
 * that a composed ring is hardly longer than a ring: only where the inner schedule wraps
 * round the end of its vector, which is the middle of this rank's, it is cut.
 */
#include "sched/compose.h"

#include <assert.h>
#include <stdlib.h>

enum { ROOM_MIN = 8 };

static bool array_grow(void **array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? 2 * *room : ROOM_MIN;
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*array, wanted * size);
	if (!grown)
		return false;
	*array = grown;
	*room = wanted;
	return true;
}

void map_add(struct map *map, uint32_t chunk)
{
	void *chunks = map->chunks;

	map->failed = map->failed ||
		      !array_grow(&chunks, map->count, &map->room, sizeof(*map->chunks));
	map->chunks = chunks;
	if (!map->failed)
		map->chunks[map->count++] = (uint16_t)chunk;
}

void map_end(struct map *map)
{
	void *ends = map->ends;

	map->failed = map->failed || !array_grow(&ends, map->inner_count,
					     &map->inner_room, sizeof(*map->ends));
	map->ends = ends;
	if (!map->failed)
		map->ends[map->inner_count++] = map->count;
}

void map_slice(struct map *map, enum space space, uint32_t first, uint32_t count)
{
	map->space = space;
	for (uint32_t i = 0; i < count; i++) {
		map_add(map, first + i);
		map_end(map);
	}
}

void map_to_scratch(struct map *map, uint32_t first)
{
	map->space = SPACE_TMP;
	for (uint32_t i = 0; i < map->count; i++)
		map->chunks[i] = (uint16_t)(first + i);
}

uint32_t map_count(const struct map *map, uint32_t inner, uint32_t *first)
{
	*first = inner ? map->ends[inner - 1] : 0;
	return map->ends[inner] - *first;
}

static uint32_t run_length(const uint16_t *chunks, uint32_t count)
{
	uint32_t length = count ? 1 : 0;

	while (length < count && chunks[length] == chunks[0] + length)
		length++;
	return length;
}

uint32_t map_run(const struct map *map, uint32_t at)
{
	return run_length(&map->chunks[at], map->count - at);
}

void map_fini(struct map *map)
{
	free(map->chunks);
	free(map->ends);
	*map = (struct map){.failed = map->failed};
}

/* The chunks of one operand of one repetition. */
struct span {
	enum space space;
	bool used; /* the instruction has such an operand */
	bool whole;
	uint32_t first, count;
};

/* Where a lane's translation stands. */
struct lane_state {
	struct compose *compose;
	uint32_t lane;
	uint32_t rx, tx; /* this rank's number of the inner connection 0 */
	struct line_run run;
};

/* A plain copy of something onto itself has been done. */
static bool drop_identity(struct sched_line *line)
{
	const uint32_t plain = IN_SRC | IN_RECV | IN_ACC | OUT_DST | OP_POST;

	if ((line->op & plain) == (IN_SRC | OUT_DST) && line->from == line->to &&
		line->src == line->dst)
		line->op &= ~(uint32_t)OUT_DST;
	return line->op & (OUT_DST | OUT_SEND);
}

static struct span span_of(const struct compose *compose, const struct insn *insn,
	bool source, uint32_t turn)
{
	bool used = insn->op & (source ? IN_SRC : OUT_DST | IN_ACC);
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);
	const struct map *map = &compose->maps[space];
	struct span span = {.space = map->space, .used = used, .whole = true};
	uint32_t inner, first;

	if (!used)
		return span;
	inner = sched_chunk(compose->between, insn, source, turn);
	assert(inner + (uint32_t)insn->count <= map->inner_count);
	map_count(map, inner, &first);
	span.count = map->ends[inner + insn->count - 1] - first;
	span.whole = run_length(&map->chunks[first], span.count) == span.count;
	span.first = span.count ? map->chunks[first] : 0;
	return span;
}

bool compose_is_whole(const struct compose *compose)
{
	for (enum space s = 0; s < SPACE_COUNT; s++)
		if (compose->maps[s].failed)
			return true; /* compose_between() is told */
	for (uint32_t lane = 0; lane < compose->between->lane_count; lane++)
		for (uint32_t pc = 0; pc < compose->between->lanes[lane].count; pc++) {
			const struct insn *insn =
				&compose->between->lanes[lane].insns[pc];

			for (uint32_t turn = 0; turn < insn_turns(insn); turn++)
				if (!span_of(compose, insn, true, turn).whole ||
					!span_of(compose, insn, false, turn).whole)
					return false;
		}
	return true;
}

/* The line of one repetition, but for its chunks. */
static struct sched_line line_of(
	const struct lane_state *state, const struct insn *insn, uint32_t turn)
{
	int32_t conn = (int32_t)turn * insn->conn_step;

	return (struct sched_line){.op = insn->op,
		.rx = state->rx + (uint32_t)(insn->rx + conn),
		.tx = state->tx + (uint32_t)(insn->tx + conn),
		.reps = insn->op & (FAN_IN | FAN_OUT) ? insn->reps : 1,
		.own = insn_own(insn),
		.push = insn->spaces & SPACES_PUSH};
}

static void turn_translate(struct lane_state *state, const struct insn *insn,
	uint32_t turn, uint32_t wait_pc)
{
	struct compose *compose = state->compose;
	struct sched_line line = line_of(state, insn, turn);
	struct span src = span_of(compose, insn, true, turn);
	struct span dst = span_of(compose, insn, false, turn);

	/* what only passes through has no place here to say how long it is */
	if ((!src.used && !dst.used) || !src.whole || !dst.whole ||
		(src.used && dst.used && src.count != dst.count)) {
		compose->writer->error = err_set(ERR_INTERNAL,
			"a schedule between hosts has an instruction that cannot be "
			"translated");
		return;
	}
	line.count = src.used ? src.count : dst.count;
	if (!line.count)
		return;
	line.from = src.space;
	line.to = dst.space;
	line.src = src.first;
	line.dst = dst.first;
	line.wait_lane = state->lane - 1;
	line.wait_pc = turn ? 0 : wait_pc;
	if (drop_identity(&line))
		run_add(&state->run, &line);
}

static void connect(struct lane_state *state)
{
	const struct compose *compose = state->compose;
	const struct prog *inner = &compose->between->lanes[state->lane];
	struct prog *mine = &compose->writer->sched->lanes[state->lane];

	state->rx = mine->rx_count;
	state->tx = mine->tx_count;
	if (state->rx + inner->rx_count > PROG_PEERS_MAX ||
		state->tx + inner->tx_count > PROG_PEERS_MAX) {
		compose->writer->error = err_set(ERR_ARGUMENT,
			"a rank would talk to %u ranks of its host and %u of others; %d "
			"connections can be numbered",
			state->tx, inner->tx_count, PROG_PEERS_MAX);
		return;
	}
	for (uint32_t i = 0; i < inner->rx_count; i++)
		prog_rx_new(mine, compose->drivers[inner->rx_peers[i]]);
	for (uint32_t i = 0; i < inner->tx_count; i++)
		prog_tx_new(mine, compose->drivers[inner->tx_peers[i]]);
}

/* Does any repetition of `reads` take from IN what one of `writes` puts in OUT? */
static bool insns_meet(
	const struct sched *sched, const struct insn *reads, const struct insn *writes)
{
	if (!(reads->op & IN_SRC) || insn_src_space(reads) != SPACE_IN)
		return false;
	for (uint32_t i = 0; i < insn_turns(reads); i++)
		for (uint32_t j = 0; j < insn_turns(writes); j++) {
			uint32_t from = sched_chunk(sched, reads, true, i);
			uint32_t to = sched_chunk(sched, writes, false, j);

			if (from < to + writes->count && to < from + reads->count)
				return true;
		}
	return false;
}

/* How many instructions of the lane before must be done. Where OUT stands for IN, what
 * that lane sends from there has to be on its way before it is overwritten; between
 * other buffers nobody needed to say so. */
static uint32_t inner_wait(
	const struct compose *compose, const struct insn *insn, uint32_t lane)
{
	const struct sched *inner = compose->between;
	uint32_t wait_pc = insn->wait_lane == WAIT_NONE ? 0 : insn->wait_pc;

	if (!lane || !(insn->op & OUT_DST) || insn_dst_space(insn) != SPACE_OUT ||
		compose->maps[SPACE_IN].space != compose->maps[SPACE_OUT].space)
		return wait_pc;
	for (uint32_t pc = wait_pc; pc < inner->lanes[lane - 1].count; pc++)
		if (insns_meet(inner, &inner->lanes[lane - 1].insns[pc], insn))
			wait_pc = pc + 1;
	return wait_pc;
}

/* `done` is how many of this rank's instructions stand for the first, the first two, ..
 * of the first lane: that one fills it, the second one waits by it. */
static void lane_translate(struct compose *compose, uint32_t lane, uint32_t *done)
{
	const struct prog *inner = &compose->between->lanes[lane];
	struct writer *w = compose->writer;
	struct lane_state state = {
		.compose = compose, .lane = lane, .run = {.writer = w, .lane = lane}};

	connect(&state);
	for (uint32_t pc = 0; pc < inner->count && !w->error; pc++) {
		const struct insn *insn = &inner->insns[pc];
		uint32_t wait_pc = inner_wait(compose, insn, lane);

		assert(insn->wait_lane == WAIT_NONE || insn->wait_lane + 1u == lane);
		if (wait_pc)
			wait_pc = done[wait_pc - 1];
		for (uint32_t turn = 0; turn < insn_turns(insn) && !w->error; turn++)
			turn_translate(&state, insn, turn, wait_pc);
		run_end(&state.run);
		if (!lane) /* only the second one waits */
			done[pc] = w->sched->lanes[lane].count;
	}
}

void compose_between(struct compose *compose)
{
	struct writer *w = compose->writer;
	uint32_t *done = calloc(compose->between->lanes[0].count + 1u, sizeof(*done));
	bool failed = !done;

	for (enum space s = 0; s < SPACE_COUNT; s++)
		failed = failed || compose->maps[s].failed;
	if (failed && !w->error)
		w->error = err_set(ERR_SYSTEM, "no memory for a schedule");
	for (uint32_t i = 0; i < compose->between->lane_count && !w->error; i++)
		lane_translate(compose, i, done);
	free(done);
}

void compose_fini(struct compose *compose)
{
	for (enum space s = 0; s < SPACE_COUNT; s++)
		map_fini(&compose->maps[s]);
}
