/*
 * flight.c - finds, for every write of a rank, the messages that may still be read there.
 *
 * Chunks are counted as if the call were in place where it can be: a program serves both,
 * and a wait for what left long ago costs nothing. TMP is the same memory in every tile,
 * so a message of one tile is waited for in the next; IN and OUT are other memory. What a
 * peer of the host lands in OUT cannot be waited for here; the checker refuses schedules
 * where it meets a message.
 */
#include "sched/flight.h"

#include <stdlib.h>

enum { WAITS_MIN = 64, NOBODY = 0xffffffff };

/* An event that sends between hosts, in the list of a chunk it sends. */
struct standing {
	uint32_t event, next;
	uint8_t lane;
	bool is_input; /* IN is sent, which is so before anything is written there */
};

/* The latest moment a lane has waited for on a connection. */
struct moment {
	uint32_t position, back; /* position 0: none */
};

struct tracing {
	const struct match *match;
	const struct sched *sched; /* the rank's */
	struct flight *flight;
	struct sched_layout layout; /* chunks of IN and OUT; TMP's come behind them */
	uint32_t *heads;	    /* owned: of a chunk's list */
	struct standing *standing;  /* owned */
	uint32_t standing_count;
	/* owned: [lane][rank * SCHED_LANES_MAX + lane of the message] */
	struct moment *waited[SCHED_LANES_MAX];
	uint32_t lane;			      /* being traced, which knows .. */
	uint32_t known[SCHED_LANES_MAX];      /* .. these positions of the others now */
	uint32_t known_last[SCHED_LANES_MAX]; /* .. and at the end of a tile */
};

static bool leaves_from_buffer(
	const struct match *match, uint32_t lane, const struct event *event)
{
	if (!insn_stands(match_insn(match, lane, event)))
		return false;
	for (uint32_t i = 0; i < event->send_count; i++)
		if (match->sent[event->send_first + i].how == HOW_SENT)
			return true;
	return false;
}

static uint32_t chunk_index(const struct tracing *tr, const struct place *place)
{
	if (place->space == PLACE_TMP)
		return tr->layout.count + place->chunk;
	return place->chunk +
	       (place->space == PLACE_IN ? tr->layout.in_offset : tr->layout.out_offset);
}

/* List the events that send each chunk, the last first. */
static void note_standing(struct tracing *tr, uint32_t lane, uint32_t index)
{
	const struct event *event = &tr->match->lanes[lane].events[index];
	uint32_t count = match_insn(tr->match, lane, event)->count;
	struct place place;

	if (!leaves_from_buffer(tr->match, lane, event))
		return;
	place = match_leaves(tr->match, lane, event);
	for (uint32_t c = 0; c < count; c++) {
		uint32_t *head = &tr->heads[chunk_index(tr, &place) + c];

		tr->standing[tr->standing_count] = (struct standing){.event = index,
			.next = *head,
			.lane = (uint8_t)lane,
			.is_input = place.space == PLACE_IN};
		*head = tr->standing_count++;
	}
}

static enum err add_wait(struct tracing *tr, const struct wait *wait)
{
	struct flight *flight = tr->flight;
	struct moment *waited =
		&tr->waited[tr->lane][wait->rank * SCHED_LANES_MAX + wait->lane];

	/* who has waited for a later one has waited for it: they leave in order */
	if (waited->position && (waited->back < wait->back ||
					(waited->back == wait->back &&
						waited->position >= wait->position)))
		return OK;
	*waited = (struct moment){.position = wait->position, .back = wait->back};
	if (flight->wait_count == flight->wait_room) {
		uint32_t room = flight->wait_room ? 2 * flight->wait_room : WAITS_MIN;
		struct wait *waits = realloc(flight->waits, room * sizeof(*waits));

		if (!waits)
			return err_set(ERR_SYSTEM, "no memory for %u waits", room);
		flight->waits = waits;
		flight->wait_room = room;
	}
	flight->waits[flight->wait_count++] = *wait;
	return OK;
}

/* Wait for all that an event sent, which is `back` tiles ago. */
static enum err wait_for_event(
	struct tracing *tr, uint32_t lane, uint32_t index, uint32_t back)
{
	const struct event *event = &tr->match->lanes[lane].events[index];
	enum err e = OK;

	for (uint32_t i = 0; i < event->send_count && !e; i++) {
		const struct message *message = &tr->match->sent[event->send_first + i];

		if (message->how == HOW_SENT)
			e = add_wait(tr, &(struct wait){.rank = message->peer,
						 .lane = (uint8_t)lane,
						 .kind = WAIT_SENT,
						 .position = index + 1,
						 .back = back});
	}
	return e;
}

/* What was in the slot before. */
static enum err trace_slot(struct tracing *tr, const struct event *event)
{
	uint32_t back;
	const struct event *earlier = match_slot_before(
		tr->match, tr->lane, event, &back);

	if (insn_stands(match_insn(tr->match, tr->lane, earlier)))
		return OK;
	return wait_for_event(tr, tr->lane,
		(uint32_t)(earlier - tr->match->lanes[tr->lane].events), back);
}

/* What was sent of a chunk before event `index` writes it. */
static enum err trace_chunk(
	struct tracing *tr, uint32_t chunk, uint32_t index, bool is_kept)
{
	enum err e = OK;

	for (uint32_t i = tr->heads[chunk]; i != NOBODY && !e; i = tr->standing[i].next) {
		const struct standing *sent = &tr->standing[i];
		bool own = sent->lane == tr->lane;
		uint32_t before = own ? index : tr->known[sent->lane];

		if (sent->event < before || (!own && sent->is_input))
			e = wait_for_event(tr, sent->lane, sent->event, 0);
		else if (is_kept && (own || sent->event < tr->known_last[sent->lane]))
			e = wait_for_event(tr, sent->lane, sent->event, 1);
	}
	return e;
}

static bool writes_buffer(
	const struct match *match, const struct event *event, const struct insn *insn)
{
	return insn->op & OUT_DST &&
	       !(event->recv_count == 1 &&
		       match->received[event->recv_first].how == HOW_LANDED);
}

static enum err trace_event(struct tracing *tr, uint32_t index)
{
	const struct event *event = &tr->match->lanes[tr->lane].events[index];
	const struct insn *insn = match_insn(tr->match, tr->lane, event);
	uint32_t position = match_local_wait(tr->match, event, insn);
	enum err e = OK;

	if (position > (position ? tr->known[insn->wait_lane] : 0))
		tr->known[insn->wait_lane] = position;
	if (event->staged)
		e = trace_slot(tr, event);
	if (!e && writes_buffer(tr->match, event, insn)) {
		struct place place = match_place(tr->sched, insn, false, event->turn);

		for (uint32_t c = 0; c < insn->count && !e; c++)
			e = trace_chunk(tr, chunk_index(tr, &place) + c, index,
				place.space == PLACE_TMP);
	}
	return e;
}

static void know_last(struct tracing *tr)
{
	const struct lane_match *lm = &tr->match->lanes[tr->lane];

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		tr->known[lane] = tr->known_last[lane] = 0;
	for (uint32_t i = 0; i < lm->event_count; i++) {
		const struct insn *insn = match_insn(tr->match, tr->lane, &lm->events[i]);
		uint32_t position = match_local_wait(tr->match, &lm->events[i], insn);

		if (position && position > tr->known_last[insn->wait_lane])
			tr->known_last[insn->wait_lane] = position;
	}
}

/* Has any lane waited for this or a later message of its connection, in every tile? */
static bool has_left(const struct tracing *tr, const struct message *message,
	uint32_t lane, uint32_t position)
{
	for (uint32_t i = 0; i < tr->sched->lane_count; i++) {
		const struct moment *waited =
			&tr->waited[i][message->peer * SCHED_LANES_MAX + lane];

		if (!waited->back && waited->position >= position)
			return true;
	}
	return false;
}

/* Everything has left when the call returns. */
static enum err trace_drain(struct tracing *tr)
{
	enum err e = OK;

	tr->lane = 0;
	tr->flight->drain_first = tr->flight->wait_count;
	for (uint32_t lane = 0; lane < tr->sched->lane_count; lane++) {
		const struct lane_match *lm = &tr->match->lanes[lane];

		for (uint32_t at = lm->event_count; at-- > 0;)
			for (uint32_t i = 0; i < lm->events[at].send_count && !e; i++) {
				const struct message *message =
					&tr->match->sent[lm->events[at].send_first + i];

				if (message->how == HOW_SENT &&
					!has_left(tr, message, lane, at + 1))
					e = add_wait(
						tr, &(struct wait){.rank = message->peer,
							    .lane = (uint8_t)lane,
							    .kind = WAIT_SENT,
							    .position = at + 1});
			}
	}
	return e;
}

static enum err trace_lane(struct tracing *tr)
{
	uint32_t count = tr->match->lanes[tr->lane].event_count;
	uint32_t *first = tr->flight->first[tr->lane];
	enum err e = OK;

	know_last(tr);
	for (uint32_t i = 0; i < count && !e; i++) {
		first[i] = tr->flight->wait_count;
		e = trace_event(tr, i);
	}
	first[count] = tr->flight->wait_count;
	return e;
}

static enum err tracing_room(struct tracing *tr)
{
	size_t conns = (size_t)tr->sched->rank_count * SCHED_LANES_MAX, standing = 1;
	uint32_t chunks = tr->layout.count + tr->sched->tmp_count;
	bool full = true;

	for (uint32_t lane = 0; lane < tr->sched->lane_count; lane++) {
		const struct lane_match *lm = &tr->match->lanes[lane];

		for (uint32_t i = 0; i < lm->event_count; i++)
			if (leaves_from_buffer(tr->match, lane, &lm->events[i]))
				standing += match_insn(tr->match, lane, &lm->events[i])
						    ->count;
		tr->waited[lane] = calloc(conns, sizeof(**tr->waited));
		tr->flight->first[lane] = calloc(
			lm->event_count + 1u, sizeof(**tr->flight->first));
		full = full && tr->waited[lane] && tr->flight->first[lane];
	}
	tr->heads = calloc(chunks + 1u, sizeof(*tr->heads));
	tr->standing = calloc(standing, sizeof(*tr->standing));
	if (!full || !tr->heads || !tr->standing)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	for (uint32_t i = 0; i < chunks; i++)
		tr->heads[i] = NOBODY;
	return OK;
}

static enum err trace(struct tracing *tr)
{
	enum err e = tracing_room(tr);

	for (uint32_t lane = 0; lane < tr->sched->lane_count && !e; lane++)
		for (uint32_t i = 0; i < tr->match->lanes[lane].event_count; i++)
			note_standing(tr, lane, i);
	for (; tr->lane < tr->sched->lane_count && !e; tr->lane++)
		e = trace_lane(tr);
	return e ? e : trace_drain(tr);
}

enum err flight_create(const struct match *match, struct flight **flight)
{
	const struct sched *sched = &match->scheds[match->rank];
	struct tracing tr = {.match = match,
		.sched = sched,
		.layout = sched_layout(sched, sched->coll != COLL_ALL_TO_ALL),
		.flight = calloc(1, sizeof(**flight))};
	enum err e;

	if (!tr.flight)
		return err_set(ERR_SYSTEM, "no memory to lower a schedule");
	e = trace(&tr);
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		free(tr.waited[lane]);
	free(tr.heads);
	free(tr.standing);
	if (e) {
		flight_destroy(tr.flight);
		return e;
	}
	*flight = tr.flight;
	return OK;
}

void flight_destroy(struct flight *flight)
{
	if (!flight)
		return;
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		free(flight->first[lane]);
	free(flight->waits);
	free(flight);
}
