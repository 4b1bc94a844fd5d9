/*
 * lower.c - turns the matched messages of a schedule into one rank's moves.
 *
 * Read match.c first. Each event of this rank becomes one move:
 *
 *   wait    for the data of every message it receives, for the slot it stages into to be
 *           free, for the other lane where the instruction says so, and for messages to
 *           other hosts that leave from where it is going to write (flight.c)
 *   inputs  ACC, SRC, then one place per received message (a peer's buffer or slot, or an
 *           inbox)
 *   outputs DST, its own slot, then the destinations it lands in
 *   sent    messages to other hosts
 *
 * A move without inputs and outputs only changes the position: a lent send is done by
 * saying so, a landed receive by having waited.
 */
#include "sched/lower.h"

#include <stdlib.h>

#include "sched/family.h"
#include "sched/flight.h"

const char *lower_mode_name(enum lower_mode mode)
{
	static const char *const names[LOWER_MODES] = {"staged", "direct", "pull"};

	return names[mode];
}

/* Where program_fill() is while it fills the arrays. */
struct lowering {
	const struct match *match;
	const struct flight *flight; /* NULL on one host */
	const struct sched *sched;   /* this rank's */
	struct program *program;
	/* owned: [rank * SCHED_LANES_MAX + lane] furthest position awaited in a tile */
	uint32_t *awaited;
	uint32_t lane;
};

static uint32_t *awaited_at(const struct lowering *lo, const struct wait *wait)
{
	return &lo->awaited[wait->rank * SCHED_LANES_MAX + wait->lane];
}

static void add_wait(struct lowering *lo, const struct wait *wait)
{
	uint32_t *awaited = awaited_at(lo, wait);

	lo->program->waits[lo->program->wait_count++] = *wait;
	if (wait->kind != WAIT_SENT && !wait->back && wait->position > *awaited)
		*awaited = wait->position;
}

static void add_place(struct lowering *lo, const struct place *place)
{
	lo->program->places[lo->program->place_count++] = *place;
}

/* Before a slot is filled again, everyone who read what was in it must have done so. */
static void wait_for_slot(struct lowering *lo, const struct event *event)
{
	uint32_t back;
	const struct event *earlier = match_slot_before(
		lo->match, lo->lane, event, &back);

	for (uint32_t i = 0; i < earlier->send_count; i++) {
		const struct message *message = &lo->match->sent[earlier->send_first + i];

		if (message->how == HOW_STAGED)
			add_wait(lo, &(struct wait){.rank = message->peer,
					     .lane = (uint8_t)lo->lane,
					     .kind = WAIT_ACK,
					     .position = message->event + 1,
					     .back = back});
	}
}

static void wait_for_lane(
	struct lowering *lo, const struct event *event, const struct insn *insn)
{
	if (insn->wait_lane == WAIT_NONE || event->turn)
		return;
	add_wait(lo, &(struct wait){.rank = (uint16_t)lo->match->rank,
			     .lane = insn->wait_lane,
			     .kind = WAIT_LOCAL,
			     .position = match_local_wait(lo->match, event, insn)});
}

/* For what comes over the network, or for what does not. */
static void wait_for_data(struct lowering *lo, const struct event *event, bool sent)
{
	for (uint32_t i = 0; i < event->recv_count; i++) {
		const struct message *message =
			&lo->match->received[event->recv_first + i];

		if (sent == (message->how == HOW_SENT))
			add_wait(lo, &(struct wait){.rank = message->peer,
					     .lane = (uint8_t)lo->lane,
					     .kind = WAIT_DATA,
					     .position = message->event + 1});
	}
}

/* What comes over the network is taken when all else is there. Only what this rank sends
 * may still have to leave: two ranks that wait for that before they take anything would
 * wait for each other. */
static void lower_waits(struct lowering *lo, uint32_t index, const struct insn *insn)
{
	const struct event *event = &lo->match->lanes[lo->lane].events[index];
	const uint32_t *first = lo->flight ? lo->flight->first[lo->lane] : NULL;

	wait_for_lane(lo, event, insn);
	wait_for_data(lo, event, false);
	if (event->staged)
		wait_for_slot(lo, event);
	wait_for_data(lo, event, true);
	for (uint32_t i = first ? first[index] : 0; first && i < first[index + 1]; i++)
		add_wait(lo, &lo->flight->waits[i]);
}

static bool is_landed(const struct lowering *lo, const struct event *event)
{
	return event->recv_count == 1 &&
	       lo->match->received[event->recv_first].how == HOW_LANDED;
}

/* In fold order: ACC, then what was received, with SRC in its place among it. */
static void lower_inputs(
	struct lowering *lo, const struct event *event, const struct insn *insn)
{
	uint32_t own = insn_own(insn);
	struct place place;

	if (insn->op & IN_ACC) {
		place = match_place(lo->sched, insn, false, event->turn);
		add_place(lo, &place);
	}
	for (uint32_t i = 0; i <= event->recv_count; i++) {
		if (i == own && insn->op & IN_SRC) {
			place = match_place(lo->sched, insn, true, event->turn);
			add_place(lo, &place);
		}
		if (i < event->recv_count)
			add_place(lo, &lo->match->received[event->recv_first + i].place);
	}
}

static void lower_outputs(struct lowering *lo, const struct event *event,
	const struct insn *insn, bool landed)
{
	const struct match *match = lo->match;
	struct place place;

	if (insn->op & OUT_DST && !landed) {
		place = match_place(lo->sched, insn, false, event->turn);
		add_place(lo, &place);
	}
	if (event->staged)
		add_place(lo, &event->slot);
	for (uint32_t i = 0; i < event->send_count; i++)
		if (match->sent[event->send_first + i].how == HOW_LANDED)
			add_place(lo, &match->sent[event->send_first + i].place);
}

/* Who is told, and what is sent to other hosts; those are told by it. */
static void lower_sends(struct lowering *lo, const struct event *event, struct move *move)
{
	struct program *program = lo->program;

	move->send_first = program->send_count;
	move->sent_first = program->sent_count;
	for (uint32_t i = 0; i < event->send_count; i++) {
		const struct message *message = &lo->match->sent[event->send_first + i];

		if (message->how == HOW_SENT)
			program->sents[program->sent_count++] = (struct sent){
				.rank = message->peer,
				.chunk = message->chunk,
				.place = program->place_count};
		else
			program->sends[program->send_count++] = message->peer;
	}
	move->send_count = program->send_count - move->send_first;
	move->sent_count = program->sent_count - move->sent_first;
	if (move->sent_count) {
		struct place place = match_leaves(lo->match, lo->lane, event);

		add_place(lo, &place);
	}
}

static void lower_event(struct lowering *lo, uint32_t index)
{
	struct program *program = lo->program;
	const struct event *event = &lo->match->lanes[lo->lane].events[index];
	const struct insn *insn = match_insn(lo->match, lo->lane, event);
	bool landed = is_landed(lo, event);
	struct move *move = &program->lanes[lo->lane].moves[index];

	*move = (struct move){.op = insn->op,
		.count = insn->count,
		.insn = event->insn,
		.rep = event->turn,
		.wait_first = program->wait_count};
	lower_waits(lo, index, insn);
	move->wait_count = program->wait_count - move->wait_first;
	move->output_first = program->place_count;
	lower_outputs(lo, event, insn, landed);
	move->output_count = program->place_count - move->output_first;
	move->input_first = program->place_count;
	if (landed) {
		/* it is there already; what is left is to pass it on from where it landed
		 */
		struct place place = match_place(lo->sched, insn, false, event->turn);

		move->op &= (uint8_t) ~(IN_RECV | OUT_DST);
		if (move->output_count)
			add_place(lo, &place);
	} else if (move->output_count) {
		lower_inputs(lo, event, insn);
	}
	move->input_count = program->place_count - move->input_first;
	lower_sends(lo, event, move);
}

/* A position may stay unannounced only while the next move cannot block. */
static void mark_publish(struct lane_moves *lane)
{
	for (uint32_t i = 0; i < lane->count; i++)
		lane->moves[i].publish = i + 1 == lane->count ||
					 lane->moves[i + 1].wait_count;
}

/* Buffers lent to peers are ours again only when the last of them has read, or the last
 * message has left. Usually a message coming back has said so already. */
static void lower_drain(struct lowering *lo)
{
	struct program *program = lo->program;

	program->drain_first = program->wait_count;
	for (uint32_t lane = 0; lane < program->lane_count; lane++) {
		const struct lane_match *lm = &lo->match->lanes[lane];

		for (uint32_t e = lm->event_count; e-- > 0;)
			for (uint32_t i = 0; i < lm->events[e].send_count; i++) {
				const struct message *message =
					&lo->match->sent[lm->events[e].send_first + i];
				struct wait wait = {.rank = message->peer,
					.lane = (uint8_t)lane,
					.kind = WAIT_ACK,
					.position = message->event + 1};

				if (message->how == HOW_LENT &&
					*awaited_at(lo, &wait) < wait.position)
					add_wait(lo, &wait);
			}
	}
	for (uint32_t i = lo->flight ? lo->flight->drain_first : 0;
		lo->flight && i < lo->flight->wait_count; i++)
		add_wait(lo, &lo->flight->waits[i]);
	program->drain_count = program->wait_count - program->drain_first;
}

/* No more than that many waits and places come of an event. */
static void count_ends(const struct match *match, const struct event *event,
	size_t *waits, size_t *places)
{
	size_t slot_waits = event->staged ? event->send_count : 0;

	*waits += 1 + event->recv_count + slot_waits;
	*places += 5 + event->recv_count; /* ACC, SRC, DST, the slot, what is sent */
	for (uint32_t i = 0; i < event->send_count; i++) {
		enum how how = (enum how)match->sent[event->send_first + i].how;

		*waits += how == HOW_LENT; /* in the drain */
		*places += how == HOW_LANDED;
	}
}

static enum err program_room(
	struct program *program, const struct match *match, const struct flight *flight)
{
	size_t waits = 1 + (flight ? flight->wait_count : 0), places = 1;

	for (uint32_t lane = 0; lane < program->lane_count; lane++) {
		const struct lane_match *lm = &match->lanes[lane];

		program->lanes[lane].count = lm->event_count;
		program->lanes[lane].moves = calloc(
			lm->event_count + 1u, sizeof(*program->lanes[lane].moves));
		if (!program->lanes[lane].moves)
			return err_set(ERR_SYSTEM, "no memory for a program");
		for (uint32_t e = 0; e < lm->event_count; e++)
			count_ends(match, &lm->events[e], &waits, &places);
	}
	program->waits = calloc(waits, sizeof(*program->waits));
	program->places = calloc(places, sizeof(*program->places));
	program->sends = calloc(match->sent_count + 1u, sizeof(*program->sends));
	if (flight)
		program->sents = calloc(match->sent_count + 1u, sizeof(*program->sents));
	if (!program->waits || !program->places || !program->sends ||
		(flight && !program->sents))
		return err_set(ERR_SYSTEM, "no memory for a program");
	return OK;
}

/* A program is kept for long: give back what was too much. */
static void program_trim(struct program *program)
{
	void *waits = realloc(
		program->waits, (program->wait_count + 1u) * sizeof(*program->waits));
	void *places = realloc(
		program->places, (program->place_count + 1u) * sizeof(*program->places));

	if (waits)
		program->waits = waits;
	if (places)
		program->places = places;
}

static enum err program_fill(
	struct program *program, const struct match *match, const struct flight *flight)
{
	struct lowering lo = {.match = match,
		.flight = flight,
		.sched = &match->scheds[match->rank],
		.program = program};
	size_t lanes = (size_t)program->rank_count * SCHED_LANES_MAX;
	enum err e = program_room(program, match, flight);

	if (e)
		return e;
	lo.awaited = calloc(lanes, sizeof(*lo.awaited));
	if (!lo.awaited)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	for (lo.lane = 0; lo.lane < program->lane_count; lo.lane++) {
		for (uint32_t i = 0; i < program->lanes[lo.lane].count; i++)
			lower_event(&lo, i);
		mark_publish(&program->lanes[lo.lane]);
	}
	lower_drain(&lo);
	free(lo.awaited);
	program_trim(program);
	return OK;
}

/* Over which connections the network is used: [rank * SCHED_LANES_MAX + lane]. */
static void mark_remote(const struct match *match, bool *rx, bool *tx)
{
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		for (uint32_t e = 0; e < match->lanes[lane].event_count; e++) {
			const struct event *event = &match->lanes[lane].events[e];
			const struct message *sent = &match->sent[event->send_first];
			const struct message *received =
				&match->received[event->recv_first];

			for (uint32_t i = 0; i < event->send_count; i++)
				if (sent[i].how == HOW_SENT)
					tx[sent[i].peer * SCHED_LANES_MAX + lane] = true;
			for (uint32_t i = 0; i < event->recv_count; i++)
				if (received[i].how == HOW_SENT)
					rx[received[i].peer * SCHED_LANES_MAX + lane] =
						true;
		}
}

/* List what is marked. */
static enum err list_remote(
	const bool *marks, uint32_t rank_count, struct remote **list, uint32_t *count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < rank_count * SCHED_LANES_MAX; i++)
		found += marks[i];
	*list = calloc(found + 1u, sizeof(**list));
	if (!*list)
		return err_set(ERR_SYSTEM, "no memory for a program");
	for (uint32_t i = 0; i < rank_count * SCHED_LANES_MAX; i++)
		if (marks[i])
			(*list)[(*count)++] = (struct remote){
				.rank = (uint16_t)(i / SCHED_LANES_MAX),
				.lane = (uint8_t)(i % SCHED_LANES_MAX)};
	return OK;
}

static enum err program_remotes(struct program *program, const struct match *match)
{
	size_t lanes = (size_t)program->rank_count * SCHED_LANES_MAX;
	bool *marks = calloc(2 * lanes, sizeof(*marks));
	enum err e;

	if (!marks)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	mark_remote(match, marks, marks + lanes);
	e = list_remote(
		marks, program->rank_count, &program->net_rx, &program->net_rx_count);
	if (!e)
		e = list_remote(marks + lanes, program->rank_count, &program->net_tx,
			&program->net_tx_count);
	free(marks);
	return e;
}

/* Moves, once it is known which messages meet. */
static enum err program_make(struct program *program, const struct match *match)
{
	struct flight *flight = NULL;
	enum err e = OK;

	program->slot_count = match->stage.slot_count;
	if (program->slot_count > program->slot_count_max)
		return err_set(ERR_INTERNAL,
			"rank %u of %u stages through %u slots; all agreed on %u",
			program->rank, program->rank_count, program->slot_count,
			program->slot_count_max);
	if (match->args.hosts)
		e = flight_create(match, &flight);
	if (!e && match->args.hosts)
		e = program_remotes(program, match);
	if (!e)
		e = program_fill(program, match, flight);
	flight_destroy(flight);
	return e;
}

/* The program of args->rank. */
static enum err program_create(
	struct family *family, const struct lower_args *args, struct program **program)
{
	const struct sched *mine = &family->scheds[args->rank];
	struct program *p = calloc(1, sizeof(*p));
	struct match *match = NULL;
	enum err e;

	if (!p)
		return err_set(ERR_SYSTEM, "no memory for a program");
	*p = (struct program){.coll = mine->coll,
		.mode = args->mode,
		.rank_count = args->rank_count,
		.rank = args->rank,
		.root = args->root,
		.chunk_count = mine->chunk_count,
		.tmp_count = mine->tmp_count,
		.depth = args->depth,
		.slot_count_max = family->size.slot_count_max,
		.slot_chunks = family->size.slot_chunks,
		.inbox_chunks = family->size.inbox_chunks,
		.length_max = family->size.length_max,
		.lane_count = mine->lane_count,
		.family = family,
		.lengths = family->lengths};
	family_share(family);
	e = match_create(family->scheds, args, &match);
	if (!e)
		e = program_make(p, match);
	match_destroy(match);
	if (e) {
		program_destroy(p);
		return e;
	}
	*program = p;
	return OK;
}

enum err program_lower_all(const struct sched *scheds, const struct lower_args *args,
	struct program **programs)
{
	struct lower_args each = *args;
	struct family *family = NULL;
	enum err e = scheds ? family_of(scheds, args, &family)
			    : family_get_all(args, &family);

	each.rank = 0;
	while (!e && each.rank < args->rank_count) {
		e = program_create(family, &each, &programs[each.rank]);
		each.rank += !e;
	}
	family_put(family);
	while (e && each.rank > 0) {
		program_destroy(programs[--each.rank]);
		programs[each.rank] = NULL;
	}
	return e;
}

enum err program_lower(const struct lower_args *args, struct program **program)
{
	struct family *family = NULL;
	enum err e = family_get(args, &family);

	if (!e)
		e = program_create(family, args, program);
	family_put(family);
	return e;
}

uint32_t program_lead(const struct program *program, uint32_t lane)
{
	const struct lane_moves *moves = &program->lanes[lane];
	uint32_t lead = 0;

	while (lead < moves->count && !moves->moves[lead].wait_count &&
		!moves->moves[lead].output_count && !moves->moves[lead].sent_count)
		lead++;
	return lead;
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
	free(program->sents);
	free(program->net_rx);
	free(program->net_tx);
	family_put(program->family);
	free(program);
}
