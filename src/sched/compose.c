/*
 * compose.c - the translation, one repetition after another.
 *
 * Each repetition of an inner instruction becomes a line for each run of its units. Lines
 * that differ only by a constant step are put together as repetitions again, so that a
 * composed ring is hardly longer than a ring: only where the inner schedule wraps round
 * the end of its vector, which is the middle of this rank's, it is cut.
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

void map_unit(struct map *map, uint32_t chunk, uint32_t number)
{
	void *units = map->units;

	map->failed = map->failed || !array_grow(&units, map->unit_count, &map->unit_room,
					     sizeof(*map->units));
	map->units = units;
	if (!map->failed)
		map->units[map->unit_count++] = (struct unit){
			.chunk = (uint16_t)chunk, .number = number};
}

void map_end(struct map *map)
{
	void *ends = map->ends;

	map->failed = map->failed || !array_grow(&ends, map->chunk_count,
					     &map->chunk_room, sizeof(*map->ends));
	map->ends = ends;
	if (!map->failed)
		map->ends[map->chunk_count++] = map->unit_count;
}

void map_slice(struct map *map, enum space space, uint32_t first, uint32_t count)
{
	map->space = space;
	for (uint32_t i = 0; i < count; i++) {
		map_unit(map, first + i, i);
		map_end(map);
	}
}

uint32_t map_units(const struct map *map, uint32_t chunk, uint32_t *first)
{
	*first = chunk ? map->ends[chunk - 1] : 0;
	return map->ends[chunk] - *first;
}

void map_fini(struct map *map)
{
	free(map->units);
	free(map->ends);
	*map = (struct map){0};
}

/* The units of one operand of one repetition. */
struct unit_list {
	enum space space;
	const struct unit *units; /* NULL: the instruction has no such operand */
	uint32_t count;
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

static struct unit_list operand_of(const struct compose *compose, const struct insn *insn,
	bool source, uint32_t turn)
{
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);
	const struct map *map = &compose->maps[space];
	uint32_t chunk = sched_chunk(compose->between, insn, source, turn), first, last;

	assert(chunk + (uint32_t)insn->count <= map->chunk_count);
	last = chunk + insn->count - 1;
	map_units(map, chunk, &first);
	return (struct unit_list){.space = map->space,
		.units = &map->units[first],
		.count = map->ends[last] - first};
}

/* Units from `at` on that lie side by side. */
static uint32_t run_length(const struct unit_list *operand, uint32_t at)
{
	const struct unit *units = &operand->units[at];
	uint32_t count = 1;

	while (at + count < operand->count &&
		units[count].number == units[0].number + count) {
		assert(units[count].chunk == units[0].chunk + count);
		count++;
	}
	return count;
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

static void append_runs(struct lane_state *state, struct sched_line *line,
	const struct unit_list *src, const struct unit_list *dst)
{
	const struct unit_list *led = src->units ? src : dst;

	for (uint32_t at = 0, count; at < led->count; at += count) {
		struct sched_line next = *line;

		count = run_length(led, at);
		next.count = count;
		next.from = src->space;
		next.to = dst->space;
		next.src = src->units ? src->units[at].chunk : 0;
		next.dst = dst->units ? dst->units[at].chunk : 0;
		if (drop_identity(&next)) {
			run_add(&state->run, &next);
			line->wait_pc = 0; /* the first has waited */
		}
	}
}

static void turn_translate(struct lane_state *state, const struct insn *insn,
	uint32_t turn, uint32_t wait_pc)
{
	struct compose *compose = state->compose;
	struct sched_line line = line_of(state, insn, turn);
	struct unit_list src = {0}, dst = {0};

	if (insn->op & IN_SRC)
		src = operand_of(compose, insn, true, turn);
	if (insn->op & (OUT_DST | IN_ACC))
		dst = operand_of(compose, insn, false, turn);
	/* what only passes through has no place here to say how long it is */
	if ((!src.units && !dst.units) ||
		(src.units && dst.units && src.count != dst.count)) {
		compose->writer->error = err_set(ERR_INTERNAL,
			"a schedule between hosts has an instruction that cannot be "
			"translated");
		return;
	}
	line.wait_lane = insn->wait_lane;
	line.wait_pc = turn ? 0 : wait_pc;
	append_runs(state, &line, &src, &dst);
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

/* How many of this rank's instructions stand for the first `count` of the inner lane that
 * is waited for: `done` has them by lane. */
static uint32_t wait_translate(
	const struct insn *insn, uint32_t *const done[SCHED_LANES_MAX], uint32_t lane)
{
	if (insn->wait_lane == WAIT_NONE || !insn->wait_pc)
		return 0;
	assert(insn->wait_lane < lane); /* lanes are translated in order */
	return done[insn->wait_lane][insn->wait_pc - 1];
}

static void lane_translate(
	struct compose *compose, uint32_t lane, uint32_t *done[SCHED_LANES_MAX])
{
	const struct prog *inner = &compose->between->lanes[lane];
	struct writer *w = compose->writer;
	struct lane_state state = {
		.compose = compose, .lane = lane, .run = {.writer = w, .lane = lane}};

	connect(&state);
	for (uint32_t pc = 0; pc < inner->count && !w->error; pc++) {
		const struct insn *insn = &inner->insns[pc];
		uint32_t wait_pc = wait_translate(insn, done, lane);

		for (uint32_t turn = 0; turn < insn_turns(insn) && !w->error; turn++)
			turn_translate(&state, insn, turn, wait_pc);
		run_end(&state.run);
		done[lane][pc] = w->sched->lanes[lane].count;
	}
}

void compose_between(struct compose *compose)
{
	uint32_t *done[SCHED_LANES_MAX] = {0};
	struct writer *w = compose->writer;

	for (uint32_t lane = 0; lane < compose->between->lane_count; lane++) {
		done[lane] = calloc(
			compose->between->lanes[lane].count + 1u, sizeof(**done));
		if (!done[lane] && !w->error)
			w->error = err_set(ERR_SYSTEM, "no memory for a schedule");
	}
	for (enum space s = 0; s < SPACE_COUNT && !w->error; s++)
		if (compose->maps[s].failed)
			w->error = err_set(ERR_SYSTEM, "no memory for a schedule");
	for (uint32_t i = 0; i < compose->between->lane_count && !w->error; i++)
		lane_translate(compose, i, done);
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		free(done[lane]);
}

void compose_fini(struct compose *compose)
{
	for (enum space s = 0; s < SPACE_COUNT; s++)
		map_fini(&compose->maps[s]);
}
