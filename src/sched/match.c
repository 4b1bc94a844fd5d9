/*
 * match.c - finds the other end of every message of one rank.
 *
 * Order of work: flatten, number the stage slots, walk the connections to the peers, walk
 * those from them. Read pair.c first: it says what meets.
 */
#include "sched/match.h"

#include <stdlib.h>

struct place match_place(
	const struct sched *sched, const struct insn *insn, bool source, uint32_t turn)
{
	enum space space = source ? insn_src_space(insn) : insn_dst_space(insn);

	return (struct place){.rank = (uint16_t)sched->rank,
		.space = (uint8_t)space,
		.chunk = sched_chunk(sched, insn, source, turn)};
}

struct place match_leaves(
	const struct match *match, uint32_t lane, const struct event *event)
{
	const struct insn *insn = match_insn(match, lane, event);

	if (!insn_stands(insn))
		return event->slot;
	return match_place(&match->scheds[match->rank], insn, insn_stands_in_source(insn),
		event->turn);
}

uint32_t match_local_wait(
	const struct match *match, const struct event *event, const struct insn *insn)
{
	const struct sched *sched = &match->scheds[match->rank];
	uint32_t position = 0;

	if (insn->wait_lane == WAIT_NONE || event->turn)
		return 0;
	for (uint32_t i = 0; i < insn->wait_pc; i++)
		position += insn_turns(&sched->lanes[insn->wait_lane].insns[i]);
	return position;
}

const struct event *match_slot_before(const struct match *match, uint32_t lane,
	const struct event *event, uint32_t *back)
{
	const struct lane_match *lm = &match->lanes[lane];
	uint32_t depth = match->depth, m = event->slot.chunk, period = event->slot.period;
	uint32_t index;

	*back = m >= depth ? 0 : (depth - m + period - 1) / period;
	index = m + *back * period - depth;
	return &lm->events[lm->order[lm->group_first[event->slot.group] + index]];
}

static enum err lane_flatten(struct match *match, uint32_t lane)
{
	const struct prog *prog = &match->scheds[match->rank].lanes[lane];
	struct lane_match *out = &match->lanes[lane];
	uint32_t count = 0;

	for (uint32_t i = 0; i < prog->count; i++)
		count += insn_turns(&prog->insns[i]);
	out->events = calloc(count + 1u, sizeof(*out->events));
	if (!out->events)
		return err_set(ERR_SYSTEM, "no memory to match %u events", count);
	for (uint32_t i = 0; i < prog->count; i++) {
		const struct insn *insn = &prog->insns[i];

		for (uint32_t turn = 0; turn < insn_turns(insn); turn++) {
			out->events[out->event_count++] = (struct event){
				.insn = (uint16_t)i,
				.turn = (uint16_t)turn,
				.send_first = match->sent_count,
				.send_count = insn_send_fan(insn),
				.recv_first = match->received_count,
				.recv_count = insn_recv_fan(insn)};
			match->sent_count += insn_send_fan(insn);
			match->received_count += insn_recv_fan(insn);
		}
	}
	return OK;
}

/* Messages that meet, and where the first of them is staged if they are. */
struct met {
	const struct pair *pair;
	struct encounter meeting;
	enum how how;
	struct place slot;
	uint32_t earlier; /* staged ones over this connection alone */
};

static enum err met_next(
	struct met *met, struct pair *pair, const struct lower_args *args)
{
	enum err e = pair_next(pair, &met->meeting);

	met->pair = pair;
	if (!e && met->meeting.count)
		met->how = pair_how(pair, &met->meeting, args);
	return e;
}

/* Find their slots, if they take some; `stage` is the sender's. */
static void met_stage(struct met *met, const struct stage *stage)
{
	const struct encounter *meeting = &met->meeting;

	if (!insn_takes_slot(meeting->send, met->how))
		return;
	met->slot = stage_place(stage, met->pair->lane,
		&(struct stage_message){.insn = meeting->send,
			.conn = met->pair->send.conn,
			.earlier = met->earlier,
			.event = meeting->sent});
	met->slot.rank = (uint16_t)met->pair->from;
	if (insn_send_fan(meeting->send) == 1)
		met->earlier += meeting->count;
}

static struct place slot_at(const struct met *met, uint32_t k)
{
	struct place slot = met->slot;

	slot.chunk = (uint16_t)(slot.chunk + k);
	return slot;
}

/* As their sender sees them. */
static void note_sent(struct match *match, const struct met *met, uint32_t tx)
{
	const struct encounter *meeting = &met->meeting;
	struct event *events = match->lanes[met->pair->lane].events;
	uint32_t in_fan = meeting->send->op & FAN_OUT ? tx - meeting->send->tx : 0;

	for (uint32_t k = 0; k < meeting->count; k++) {
		struct event *event = &events[meeting->sent + k];
		struct message *message = &match->sent[event->send_first + in_fan];

		*message = (struct message){.peer = (uint16_t)met->pair->to,
			.how = (uint8_t)met->how,
			.event = meeting->received + k};
		if (met->how == HOW_LANDED)
			message->place = match_place(&match->scheds[message->peer],
				meeting->recv, false, meeting->recv_turn + k);
		if (met->how == HOW_SENT)
			message->chunk = pair_chunk(met->pair, match->scheds, meeting, k);
		if (insn_takes_slot(meeting->send, met->how)) {
			event->staged = true;
			event->slot = slot_at(met, k);
		}
	}
}

static enum err lane_send(struct match *match, uint32_t lane)
{
	const struct prog *prog = &match->scheds[match->rank].lanes[lane];
	struct pair pair = {.lane = lane};
	enum err e = OK;

	for (uint32_t tx = 0; tx < prog->tx_count && !e; tx++) {
		struct met met = {.earlier = 0};

		pair_from(&pair, match->scheds, match->rank, tx);
		while (!(e = met_next(&met, &pair, &match->args)) && met.meeting.count) {
			met_stage(&met, &match->stage);
			note_sent(match, &met, tx);
		}
	}
	return e;
}

/* As their receiver sees them. */
static void note_received(struct match *match, const struct met *met, uint32_t rx)
{
	const struct encounter *meeting = &met->meeting;
	const struct event *events = match->lanes[met->pair->lane].events;
	uint32_t in_fan = meeting->recv->op & FAN_IN ? rx - meeting->recv->rx : 0;
	bool source = !(meeting->send->op & OUT_DST);
	bool is_input = insn_stands_in_source(meeting->send) &&
			insn_src_space(meeting->send) == SPACE_IN;

	for (uint32_t k = 0; k < meeting->count; k++) {
		const struct event *event = &events[meeting->received + k];
		struct message *message = &match->received[event->recv_first + in_fan];

		*message = (struct message){.peer = (uint16_t)met->pair->from,
			.how = (uint8_t)met->how,
			.event = meeting->sent + k};
		if (met->how == HOW_STAGED)
			message->place = slot_at(met, k);
		else if (met->how == HOW_LENT)
			message->place = match_place(&match->scheds[message->peer],
				meeting->send, source, meeting->sent_turn + k);
		else if (met->how == HOW_SENT)
			message->place = (struct place){.rank = message->peer,
				.space = is_input ? PLACE_INBOX_IN : PLACE_INBOX,
				.lane = (uint8_t)met->pair->lane,
				.chunk = pair_chunk(
					met->pair, match->scheds, meeting, k)};
	}
}

/* The stage of a peer is settled only where it is read; `stage` is room for it. */
static enum err lane_receive(struct match *match, uint32_t lane, struct stage *stage)
{
	const struct prog *prog = &match->scheds[match->rank].lanes[lane];
	struct lower_args args = match->args;
	struct pair pair = {.lane = lane};
	enum err e = OK;

	for (uint32_t rx = 0; rx < prog->rx_count && !e; rx++) {
		struct met met = {.earlier = 0};
		bool settled = false;

		pair_to(&pair, match->scheds, match->rank, rx);
		args.rank = pair.from;
		while (!(e = met_next(&met, &pair, &args)) && met.meeting.count) {
			if (met.how == HOW_STAGED && !settled)
				e = stage_fill(stage, match->scheds, &args);
			if (e)
				return e;
			settled = settled || met.how == HOW_STAGED;
			if (met.how == HOW_STAGED)
				met_stage(&met, stage);
			note_received(match, &met, rx);
		}
	}
	return e;
}

/* Who staged what: to find the message that was in a slot before. */
static enum err lane_order(struct match *match, uint32_t lane)
{
	struct lane_match *lm = &match->lanes[lane];
	uint32_t group_count = match->stage.lanes[lane].group_count, next = 0;

	lm->order = calloc(lm->event_count + 1u, sizeof(*lm->order));
	lm->group_first = calloc(group_count + 1u, sizeof(*lm->group_first));
	if (!lm->order || !lm->group_first)
		return err_set(
			ERR_SYSTEM, "no memory to match %u events", lm->event_count);
	for (uint32_t e = 0; e < lm->event_count; e++)
		if (lm->events[e].staged && !lm->events[e].slot.chunk) {
			lm->group_first[lm->events[e].slot.group] = next;
			next += lm->events[e].slot.period;
		}
	for (uint32_t e = 0; e < lm->event_count; e++)
		if (lm->events[e].staged)
			lm->order[lm->group_first[lm->events[e].slot.group] +
				  lm->events[e].slot.chunk] = e;
	return OK;
}

static enum err match_build(struct match *match, const struct lower_args *args)
{
	uint32_t lane_count = match->scheds[match->rank].lane_count;
	struct stage peer = {0};
	enum err e = OK;

	for (uint32_t lane = 0; lane < lane_count && !e; lane++)
		e = lane_flatten(match, lane);
	if (!e)
		e = stage_fill(&match->stage, match->scheds, args);
	if (e)
		return e;
	match->sent = calloc(match->sent_count + 1u, sizeof(*match->sent));
	match->received = calloc(match->received_count + 1u, sizeof(*match->received));
	if (!match->sent || !match->received)
		return err_set(ERR_SYSTEM, "no memory to match %u messages",
			match->sent_count + match->received_count);
	for (uint32_t lane = 0; lane < lane_count && !e; lane++) {
		e = lane_send(match, lane);
		if (!e)
			e = lane_order(match, lane);
		if (!e)
			e = lane_receive(match, lane, &peer);
	}
	stage_fini(&peer);
	return e;
}

enum err match_create(
	const struct sched *scheds, const struct lower_args *args, struct match **match)
{
	struct match *m = calloc(1, sizeof(*m));
	enum err e;

	if (!m)
		return err_set(ERR_SYSTEM, "no memory to match a schedule");
	m->scheds = scheds;
	m->rank = args->rank;
	m->args = *args;
	m->depth = args->depth;
	e = match_build(m, args);
	if (e) {
		match_destroy(m);
		return e;
	}
	*match = m;
	return OK;
}

void match_destroy(struct match *match)
{
	if (!match)
		return;
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
		free(match->lanes[lane].events);
		free(match->lanes[lane].order);
		free(match->lanes[lane].group_first);
	}
	stage_fini(&match->stage);
	free(match->sent);
	free(match->received);
	free(match);
}
