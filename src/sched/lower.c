/*
 * lower.c - turns the matched messages of a schedule into one rank's moves.
 *
 * Read match.c first. Each event of this rank becomes one move:
 *
 *   wait    for the data of every message it receives, for the slot it stages into to be
 *           free, and for the other lane where the instruction says so
 *   inputs  ACC, SRC, then one place per received message (a peer's buffer or slot)
 *   outputs DST, its own slot, then the destinations it lands in
 *
 * A move without inputs and outputs only changes the position: a lent send is done by
 * saying so, a landed receive by having waited.
 */
#include "sched/lower.h"

#include <stdlib.h>

#include "sched/match.h"

/* Where program_lower_scheds() is while it fills the arrays. */
const char *lower_mode_name(enum lower_mode mode)
{
	static const char *const names[LOWER_MODES] = {"staged", "direct", "pull"};

	return names[mode];
}

struct lowering {
	const struct match *match;
	const struct sched *sched; /* this rank's */
	struct program *program;
	uint32_t rank, lane;
};

static void add_wait(struct lowering *lo, const struct wait *wait)
{
	lo->program->waits[lo->program->wait_count++] = *wait;
}

static void add_place(struct lowering *lo, const struct place *place)
{
	lo->program->places[lo->program->place_count++] = *place;
}

static struct place buffer_place(const struct match *match, uint32_t rank,
	const struct insn *insn, bool source, uint32_t turn)
{
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);
	uint16_t base = source ? insn->src : insn->dst;

	return (struct place){.rank = (uint16_t)rank,
		.space = (uint8_t)space,
		.chunk = match_chunk(&match->scheds[rank], insn, space, base, turn)};
}

static struct place stage_place(const struct match *match, uint32_t rank, uint32_t lane,
	const struct event *event)
{
	const struct group *group = &match_lane(match, rank, lane)->groups[event->group];

	return (struct place){.rank = (uint16_t)rank,
		.space = PLACE_STAGE,
		.lane = (uint8_t)lane,
		.chunk = (uint16_t)(event->staged - 1),
		.group = event->group,
		.period = group->period,
		.slot = group->slot};
}

/* Before slot m is filled again, everyone who read what was in it must have done so:
 * that is the message `depth` earlier in this group, maybe some tiles back. */
static void wait_for_slot(struct lowering *lo, const struct event *event)
{
	const struct lane_match *lm = match_lane(lo->match, lo->rank, lo->lane);
	const struct group *group = &lm->groups[event->group];
	uint32_t depth = lo->match->depth, m = event->staged - 1u, period = group->period;
	uint32_t back = m >= depth ? 0 : (depth - m + period - 1) / period;
	const struct event *earlier =
		&lm->events[group->events[m + back * period - depth]];

	for (uint32_t i = 0; i < earlier->send_count; i++) {
		const struct message *message =
			&lo->match->messages[earlier->send_first + i];

		if (message->how == HOW_STAGED)
			add_wait(lo, &(struct wait){.rank = message->to,
					     .lane = (uint8_t)lo->lane,
					     .kind = WAIT_ACK,
					     .position = message->received + 1,
					     .back = back});
	}
}

static void wait_for_lane(
	struct lowering *lo, const struct event *event, const struct insn *insn)
{
	uint32_t position = 0;

	if (insn->wait_lane == WAIT_NONE || event->turn)
		return;
	for (uint32_t i = 0; i < insn->wait_pc; i++)
		position += insn_turns(&lo->sched->lanes[insn->wait_lane].insns[i]);
	add_wait(lo, &(struct wait){.rank = (uint16_t)lo->rank,
			     .lane = insn->wait_lane,
			     .kind = WAIT_LOCAL,
			     .position = position});
}

static void lower_waits(
	struct lowering *lo, const struct event *event, const struct insn *insn)
{
	wait_for_lane(lo, event, insn);
	for (uint32_t i = 0; i < event->recv_count; i++) {
		const struct message *message =
			&lo->match->messages[lo->match->received[event->recv_first + i]];

		add_wait(lo, &(struct wait){.rank = message->from,
				     .lane = (uint8_t)lo->lane,
				     .kind = WAIT_DATA,
				     .position = message->sent + 1});
	}
	if (event->staged)
		wait_for_slot(lo, event);
}

/* Where a received message can be read. */
static struct place received_place(
	const struct lowering *lo, const struct message *message)
{
	const struct match *match = lo->match;
	const struct event *sent =
		&match_lane(match, message->from, lo->lane)->events[message->sent];
	const struct insn *insn = match_insn(
		match, message->from, lo->lane, message->sent);

	if (message->how == HOW_STAGED)
		return stage_place(match, message->from, lo->lane, sent);
	return buffer_place(
		match, message->from, insn, !(insn->op & OUT_DST), sent->turn);
}

static bool is_landed(const struct lowering *lo, const struct event *event)
{
	return event->recv_count == 1 &&
	       lo->match->messages[lo->match->received[event->recv_first]].how ==
		       HOW_LANDED;
}

/* In fold order: ACC, then what was received, with SRC in its place among it. */
static void lower_inputs(
	struct lowering *lo, const struct event *event, const struct insn *insn)
{
	uint32_t own = insn_own(insn);
	struct place place;

	if (insn->op & IN_ACC) {
		place = buffer_place(lo->match, lo->rank, insn, false, event->turn);
		add_place(lo, &place);
	}
	for (uint32_t i = 0; i <= event->recv_count; i++) {
		if (i == own && insn->op & IN_SRC) {
			place = buffer_place(
				lo->match, lo->rank, insn, true, event->turn);
			add_place(lo, &place);
		}
		if (i == event->recv_count)
			break;
		place = received_place(lo,
			&lo->match->messages[lo->match->received[event->recv_first + i]]);
		add_place(lo, &place);
	}
}

static void lower_outputs(struct lowering *lo, const struct event *event,
	const struct insn *insn, bool landed)
{
	struct place place;

	if (insn->op & OUT_DST && !landed) {
		place = buffer_place(lo->match, lo->rank, insn, false, event->turn);
		add_place(lo, &place);
	}
	if (event->staged) {
		place = stage_place(lo->match, lo->rank, lo->lane, event);
		add_place(lo, &place);
	}
	for (uint32_t i = 0; i < event->send_count; i++) {
		const struct message *message =
			&lo->match->messages[event->send_first + i];

		if (message->how != HOW_LANDED)
			continue;
		place = buffer_place(lo->match, message->to,
			match_insn(lo->match, message->to, lo->lane, message->received),
			false,
			match_lane(lo->match, message->to, lo->lane)
				->events[message->received]
				.turn);
		add_place(lo, &place);
	}
}

static void lower_event(struct lowering *lo, uint32_t index)
{
	struct program *program = lo->program;
	const struct event *event =
		&match_lane(lo->match, lo->rank, lo->lane)->events[index];
	const struct insn *insn = match_insn(lo->match, lo->rank, lo->lane, index);
	bool landed = is_landed(lo, event);
	struct move *move = &program->lanes[lo->lane].moves[index];

	*move = (struct move){.op = insn->op,
		.count = insn->count,
		.insn = event->insn,
		.rep = event->turn,
		.wait_first = program->wait_count,
		.send_first = program->send_count,
		.send_count = event->send_count};
	for (uint32_t i = 0; i < event->send_count; i++)
		program->sends[program->send_count++] =
			lo->match->messages[event->send_first + i].to;
	lower_waits(lo, event, insn);
	move->wait_count = program->wait_count - move->wait_first;
	move->output_first = program->place_count;
	lower_outputs(lo, event, insn, landed);
	move->output_count = program->place_count - move->output_first;
	move->input_first = program->place_count;
	if (landed) {
		/* it is there already; what is left is to pass it on from where it landed
		 */
		struct place place = buffer_place(
			lo->match, lo->rank, insn, false, event->turn);

		move->op &= (uint8_t) ~(IN_RECV | OUT_DST);
		if (move->output_count)
			add_place(lo, &place);
	} else if (move->output_count) {
		lower_inputs(lo, event, insn);
	}
	move->input_count = program->place_count - move->input_first;
}

/* A position may stay unannounced only while the next move cannot block. */
static void mark_publish(struct lane_moves *lane)
{
	for (uint32_t i = 0; i < lane->count; i++)
		lane->moves[i].publish = i + 1 == lane->count ||
					 lane->moves[i + 1].wait_count;
}

static bool is_awaited(const struct program *program, const struct wait *wanted)
{
	for (uint32_t i = 0; i < program->wait_count; i++) {
		const struct wait *wait = &program->waits[i];

		if (wait->rank == wanted->rank && wait->lane == wanted->lane &&
			!wait->back && wait->position >= wanted->position)
			return true;
	}
	return false;
}

/* Buffers lent to peers are ours again only when the last of them has read. Usually a
 * message coming back has said so already. */
static void lower_drain(struct lowering *lo)
{
	struct program *program = lo->program;
	uint32_t first = program->wait_count, count = 0;

	for (uint32_t lane = 0; lane < program->lane_count; lane++) {
		const struct lane_match *lm = match_lane(lo->match, lo->rank, lane);

		for (uint32_t e = lm->event_count; e-- > 0;)
			for (uint32_t i = 0; i < lm->events[e].send_count; i++) {
				const struct message *message =
					&lo->match
						 ->messages[lm->events[e].send_first + i];
				struct wait wait = {.rank = message->to,
					.lane = (uint8_t)lane,
					.kind = WAIT_ACK,
					.position = message->received + 1};

				if (message->how != HOW_LENT ||
					is_awaited(program, &wait))
					continue;
				add_wait(lo, &wait);
				count++;
			}
	}
	program->drain_first = first;
	program->drain_count = count;
}

static enum err program_room(
	struct program *program, const struct match *match, uint32_t rank)
{
	size_t waits = 1, places = 1, sends = 1;

	for (uint32_t lane = 0; lane < program->lane_count; lane++) {
		const struct lane_match *lm = match_lane(match, rank, lane);

		program->lanes[lane].count = lm->event_count;
		program->lanes[lane].moves = calloc(
			lm->event_count + 1u, sizeof(*program->lanes[lane].moves));
		if (!program->lanes[lane].moves)
			return err_set(ERR_SYSTEM, "no memory for a program");
		for (uint32_t e = 0; e < lm->event_count; e++) {
			size_t ends = lm->events[e].send_count + lm->events[e].recv_count;

			/* a slot is waited for by as many as it is sent to: a group has
			 * one fan */
			sends += lm->events[e].send_count;
			waits += 1 + 2 * ends;
			places += 4 + 2 * ends;
		}
	}
	program->waits = calloc(waits, sizeof(*program->waits));
	program->places = calloc(places, sizeof(*program->places));
	program->sends = calloc(sends, sizeof(*program->sends));
	program->lengths = calloc(
		(size_t)match->rank_count * SCHED_LANES_MAX, sizeof(*program->lengths));
	if (!program->waits || !program->places || !program->sends || !program->lengths)
		return err_set(ERR_SYSTEM, "no memory for a program");
	return OK;
}

static enum err program_fill(struct program *program, const struct match *match)
{
	struct lowering lo = {.match = match,
		.sched = &match->scheds[program->rank],
		.program = program,
		.rank = program->rank};
	enum err e = program_room(program, match, program->rank);

	if (e)
		return e;
	for (uint32_t rank = 0; rank < match->rank_count; rank++)
		for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
			program->lengths[rank * SCHED_LANES_MAX + lane] =
				match_lane(match, rank, lane)->event_count;
	for (lo.lane = 0; lo.lane < program->lane_count; lo.lane++) {
		for (uint32_t i = 0; i < program->lanes[lo.lane].count; i++)
			lower_event(&lo, i);
		mark_publish(&program->lanes[lo.lane]);
	}
	lower_drain(&lo);
	return OK;
}

/* Slots the neediest rank's stage needs: what decides a tile size all can run. */
static uint32_t slots_max(const struct match *match)
{
	uint32_t most = 0;

	for (uint32_t rank = 0; rank < match->rank_count; rank++) {
		uint32_t slots = match_slots(match, rank);

		most = slots > most ? slots : most;
	}
	return most;
}

/* One rank's program out of the matched whole. */
static enum err program_create(const struct match *match, const struct lower_args *args,
	uint32_t rank, struct program **program)
{
	const struct sched *mine = &match->scheds[rank];
	struct program *p = calloc(1, sizeof(*p));
	enum err e;

	if (!p)
		return err_set(ERR_SYSTEM, "no memory for a program");
	*p = (struct program){.coll = mine->coll,
		.mode = args->mode,
		.rank_count = args->rank_count,
		.rank = rank,
		.root = args->root,
		.chunk_count = mine->chunk_count,
		.tmp_count = mine->tmp_count,
		.depth = args->depth,
		.slot_count = match_slots(match, rank),
		.slot_count_max = slots_max(match),
		.slot_chunks = match->slot_chunks,
		.lane_count = mine->lane_count};
	for (uint32_t i = 0; i < args->rank_count; i++)
		if (match_slots(match, i) > p->slot_count_max)
			p->slot_count_max = match_slots(match, i);
	e = program_fill(p, match);
	if (e) {
		program_destroy(p);
		return e;
	}
	*program = p;
	return OK;
}

enum err program_lower_scheds(const struct sched *scheds, uint32_t rank_count,
	const struct lower_args *args, struct program **program)
{
	struct match *match = NULL;
	enum err e;

	if (rank_count != args->rank_count || !args->depth)
		return err_set(ERR_INTERNAL,
			"lowering %u schedules for %u ranks at depth %u", rank_count,
			args->rank_count, args->depth);
	e = match_create(scheds, args, &match);
	if (e)
		return e;
	e = program_create(match, args, args->rank, program);
	match_destroy(match);
	return e;
}

enum err program_lower_all(const struct sched *scheds, const struct lower_args *args,
	struct program **programs)
{
	struct match *match = NULL;
	uint32_t made = 0;
	enum err e;

	if (!args->depth)
		return err_set(ERR_INTERNAL, "lowering at depth 0");
	e = match_create(scheds, args, &match);
	if (e)
		return e;
	while (!e && made < args->rank_count) {
		e = program_create(match, args, made, &programs[made]);
		made += !e;
	}
	match_destroy(match);
	while (e && made > 0) {
		program_destroy(programs[--made]);
		programs[made] = NULL;
	}
	return e;
}

enum err program_lower(const struct lower_args *args, struct program **program)
{
	struct sched *scheds = calloc(args->rank_count, sizeof(*scheds));
	uint32_t written = 0;
	enum err e = OK;

	if (!scheds)
		return err_set(
			ERR_SYSTEM, "no memory for %u schedules", args->rank_count);
	while (written < args->rank_count && !e) {
		e = catalog_write(args->kind, args->rank_count, written, args->root,
			&scheds[written]);
		written += !e;
	}
	if (!e)
		e = program_lower_scheds(scheds, args->rank_count, args, program);
	for (uint32_t i = 0; i < written; i++)
		sched_fini(&scheds[i]);
	free(scheds);
	return e;
}

void program_destroy(struct program *program)
{
	if (!program)
		return;
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		free(program->lanes[lane].moves);
	free(program->waits);
	free(program->places);
	free(program->sends);
	free(program->lengths);
	free(program);
}
