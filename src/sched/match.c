/*
 * match.c - pairs sends with receives and decides how each message travels.
 *
 * Order of work: check every instruction against its schedule's bounds, flatten, link
 * sends to receives, choose lent, landed or staged, number the stage slots.
 */
#include "sched/match.h"

#include <stdlib.h>

uint16_t match_chunk(const struct sched *sched, const struct insn *insn, enum space space,
	uint16_t base, uint32_t turn)
{
	int32_t chunks = (int32_t)sched_chunks(sched, space);
	int32_t at = ((int32_t)base + (int32_t)turn * insn->stride) % chunks;

	return (uint16_t)(at < 0 ? at + chunks : at);
}

static bool chunks_fit(const struct sched *sched, const struct insn *insn,
	enum space space, uint16_t base)
{
	uint32_t chunks = sched_chunks(sched, space);

	if (space >= SPACE_COUNT || base >= chunks)
		return false;
	for (uint32_t turn = 0; turn < insn_turns(insn); turn++)
		if (match_chunk(sched, insn, space, base, turn) + (uint32_t)insn->count >
			chunks)
			return false;
	return true;
}

static bool conns_fit(
	const struct insn *insn, bool fan, uint8_t first, uint32_t conn_count)
{
	int32_t step = fan ? 1 : insn_turns(insn) > 1 ? insn->conn_step : 0;
	int32_t last = first + (insn->reps - 1) * step;

	return first < conn_count && last >= 0 && last < (int32_t)conn_count;
}

/* Hostile input ends here: after this every index the matcher follows is in range. */
static bool insn_fits(
	const struct sched *sched, const struct prog *prog, const struct insn *insn)
{
	bool fan = insn->op & (FAN_IN | FAN_OUT);

	if (!insn->reps || !insn->count || !(insn->op & (OUT_DST | OUT_SEND)))
		return false;
	if (!(insn->op & (IN_SRC | IN_RECV | IN_ACC)))
		return false;
	if ((insn->op & FAN_IN && !(insn->op & IN_RECV)) ||
		(insn->op & FAN_OUT && !(insn->op & OUT_SEND)))
		return false;
	if (insn_own(insn) > insn->reps)
		return false;
	if (insn->op & IN_SRC &&
		!chunks_fit(sched, insn, insn_src_space(insn), insn->src))
		return false;
	if (insn->op & (OUT_DST | IN_ACC) &&
		!chunks_fit(sched, insn, insn_dst_space(insn), insn->dst))
		return false;
	if (insn->op & IN_RECV &&
		!(fan && !(insn->op & FAN_IN) ? insn->rx < prog->rx_count
					      : conns_fit(insn, insn->op & FAN_IN,
							insn->rx, prog->rx_count)))
		return false;
	if (insn->op & OUT_SEND &&
		!(fan && !(insn->op & FAN_OUT) ? insn->tx < prog->tx_count
					       : conns_fit(insn, insn->op & FAN_OUT,
							 insn->tx, prog->tx_count)))
		return false;
	if (insn->wait_lane == WAIT_NONE)
		return true;
	return insn->wait_lane < sched->lane_count &&
	       insn->wait_pc <= sched->lanes[insn->wait_lane].count;
}

static enum err lane_check(const struct sched *sched, uint32_t lane)
{
	const struct prog *prog = &sched->lanes[lane];

	for (uint32_t i = 0; i < prog->rx_count; i++)
		if (prog->rx_peers[i] >= sched->rank_count ||
			prog->rx_peers[i] == sched->rank)
			return err_set(ERR_USAGE, "rank %u lane %u receives from rank %u",
				sched->rank, lane, prog->rx_peers[i]);
	for (uint32_t i = 0; i < prog->tx_count; i++)
		if (prog->tx_peers[i] >= sched->rank_count ||
			prog->tx_peers[i] == sched->rank)
			return err_set(ERR_USAGE, "rank %u lane %u sends to rank %u",
				sched->rank, lane, prog->tx_peers[i]);
	for (uint32_t i = 0; i < prog->count; i++)
		if (!insn_fits(sched, prog, &prog->insns[i]))
			return err_set(ERR_USAGE,
				"rank %u lane %u instruction %u is out of range",
				sched->rank, lane, i);
	return OK;
}

static uint16_t rx_peer(
	const struct prog *prog, const struct insn *insn, uint32_t turn, uint32_t i)
{
	int32_t conn = insn->op & FAN_IN ? (int32_t)(insn->rx + i)
					 : insn->rx + (int32_t)turn * insn->conn_step;

	return prog->rx_peers[conn];
}

static uint16_t tx_peer(
	const struct prog *prog, const struct insn *insn, uint32_t turn, uint32_t i)
{
	int32_t conn = insn->op & FAN_OUT ? (int32_t)(insn->tx + i)
					  : insn->tx + (int32_t)turn * insn->conn_step;

	return prog->tx_peers[conn];
}

static uint32_t recv_fan(const struct insn *insn)
{
	return !(insn->op & IN_RECV) ? 0 : insn->op & FAN_IN ? insn->reps : 1;
}

static uint32_t send_fan(const struct insn *insn)
{
	return !(insn->op & OUT_SEND) ? 0 : insn->op & FAN_OUT ? insn->reps : 1;
}

static enum err lane_flatten(struct match *match, uint32_t rank, uint32_t lane)
{
	const struct prog *prog = &match->scheds[rank].lanes[lane];
	struct lane_match *out = match_lane(match, rank, lane);
	uint32_t count = 0, at = 0;

	for (uint32_t i = 0; i < prog->count; i++)
		count += insn_turns(&prog->insns[i]);
	out->events = calloc(count ? count : 1, sizeof(*out->events));
	if (!out->events)
		return err_set(ERR_SYSTEM, "no memory to match %u events", count);
	out->event_count = count;
	for (uint32_t i = 0; i < prog->count; i++) {
		const struct insn *insn = &prog->insns[i];

		for (uint32_t turn = 0; turn < insn_turns(insn); turn++, at++) {
			out->events[at].insn = (uint16_t)i;
			out->events[at].turn = (uint16_t)turn;
			out->events[at].send_count = send_fan(insn);
			out->events[at].recv_count = recv_fan(insn);
			match->message_room += send_fan(insn);
			match->received_count += recv_fan(insn);
		}
	}
	return OK;
}

/* Append this rank's sends to the connection lists: last[from * n + to]. */
static void lane_send(struct match *match, uint32_t rank, uint32_t lane, uint32_t *first,
	uint32_t *last)
{
	const struct prog *prog = &match->scheds[rank].lanes[lane];
	struct lane_match *lm = match_lane(match, rank, lane);

	for (uint32_t e = 0; e < lm->event_count; e++) {
		const struct insn *insn = &prog->insns[lm->events[e].insn];

		lm->events[e].send_first = match->message_count;
		for (uint32_t i = 0; i < lm->events[e].send_count; i++) {
			uint16_t to = tx_peer(prog, insn, lm->events[e].turn, i);
			uint32_t id = match->message_count++,
				 conn = rank * match->rank_count + to;

			match->messages[id] = (struct message){.from = (uint16_t)rank,
				.to = to,
				.sent = e,
				.received = NO_MESSAGE,
				.next = NO_MESSAGE};
			if (first[conn] == NO_MESSAGE)
				first[conn] = id;
			else
				match->messages[last[conn]].next = id;
			last[conn] = id;
		}
	}
}

/* Take this rank's receives off the lists. */
static enum err lane_receive(struct match *match, uint32_t rank, uint32_t lane,
	uint32_t *first, uint32_t *used)
{
	const struct prog *prog = &match->scheds[rank].lanes[lane];
	struct lane_match *lm = match_lane(match, rank, lane);

	for (uint32_t e = 0; e < lm->event_count; e++) {
		const struct insn *insn = &prog->insns[lm->events[e].insn];

		lm->events[e].recv_first = *used;
		for (uint32_t i = 0; i < lm->events[e].recv_count; i++) {
			uint16_t from = rx_peer(prog, insn, lm->events[e].turn, i);
			uint32_t conn = from * match->rank_count + rank, id = first[conn];

			if (id == NO_MESSAGE)
				return err_set(ERR_USAGE,
					"rank %u lane %u instruction %u receives from "
					"rank %u, which "
					"sends nothing more",
					rank, lane, lm->events[e].insn, from);
			first[conn] = match->messages[id].next;
			match->messages[id].received = e;
			match->received[(*used)++] = id;
			if (match_insn(match, from, lane, match->messages[id].sent)
					->count != insn->count)
				return err_set(ERR_USAGE,
					"rank %u lane %u instruction %u receives %u "
					"chunks, rank %u "
					"sends another number",
					rank, lane, lm->events[e].insn, insn->count,
					from);
		}
	}
	return OK;
}

static enum err match_link(struct match *match, uint32_t lane, uint32_t *used)
{
	uint32_t n = match->rank_count, begin = match->message_count;
	uint32_t *first = malloc(2 * (size_t)n * n * sizeof(*first));
	enum err e = OK;

	if (!first)
		return err_set(ERR_SYSTEM, "no memory to match %u ranks", n);
	for (uint32_t i = 0; i < 2 * n * n; i++)
		first[i] = NO_MESSAGE;
	for (uint32_t rank = 0; rank < n; rank++)
		lane_send(match, rank, lane, first, first + n * n);
	for (uint32_t rank = 0; rank < n && !e; rank++)
		e = lane_receive(match, rank, lane, first, used);
	for (uint32_t id = begin; id < match->message_count && !e; id++)
		if (match->messages[id].received == NO_MESSAGE)
			e = err_set(ERR_USAGE,
				"rank %u lane %u sends to rank %u, which never receives",
				match->messages[id].from, lane, match->messages[id].to);
	free(first);
	return e;
}

/* The sender's value stands in a buffer that keeps it: peers may read it there. */
static bool is_lendable(const struct insn *insn)
{
	if (insn->op & OUT_DST)
		return insn_dst_space(insn) == SPACE_OUT;
	/* a value that exists only after an operator stands nowhere */
	return (insn->op & (IN_SRC | IN_RECV | IN_ACC | OP_POST)) == IN_SRC &&
	       insn_src_space(insn) != SPACE_TMP;
}

/* The receiver only copies: the sender may write the destination itself. */
static bool is_landable(const struct insn *insn)
{
	return (insn->op & (IN_SRC | IN_RECV | IN_ACC | FAN_IN | OUT_DST)) ==
		       (IN_RECV | OUT_DST) &&
	       insn_dst_space(insn) == SPACE_OUT;
}

static enum how message_how(
	const struct match *match, uint32_t lane, const struct message *message)
{
	const struct insn *send = match_insn(match, message->from, lane, message->sent);
	const struct insn *recv = match_insn(match, message->to, lane, message->received);
	bool push = send->spaces & SPACES_PUSH;

	if (match->mode == MODE_STAGED)
		return HOW_STAGED;
	if (match->mode == MODE_PULL)
		return is_lendable(send) ? HOW_LENT : HOW_STAGED;
	if (is_landable(recv) && (push || !is_lendable(send)))
		return HOW_LANDED;
	if (push)
		return HOW_STAGED;
	return is_lendable(send) ? HOW_LENT : HOW_STAGED;
}

static struct group *group_of(
	struct lane_match *lm, const struct insn *insn, uint32_t turn)
{
	uint16_t fan = (uint16_t)send_fan(insn);
	uint8_t tx = (uint8_t)(insn->op & FAN_OUT
				       ? insn->tx
				       : insn->tx + (int32_t)turn * insn->conn_step);

	for (uint32_t g = 0; g < lm->group_count; g++)
		if (lm->groups[g].tx == tx && lm->groups[g].fan == fan)
			return &lm->groups[g];
	lm->groups[lm->group_count] = (struct group){.tx = tx, .fan = fan};
	return &lm->groups[lm->group_count++];
}

static enum err lane_stage(
	struct match *match, uint32_t rank, uint32_t lane, uint32_t *slot)
{
	struct lane_match *lm = match_lane(match, rank, lane);

	lm->groups = calloc(lm->event_count ? lm->event_count : 1, sizeof(*lm->groups));
	if (!lm->groups)
		return err_set(
			ERR_SYSTEM, "no memory to match %u events", lm->event_count);
	for (uint32_t e = 0; e < lm->event_count; e++) {
		const struct insn *insn = match_insn(match, rank, lane, e);
		struct event *event = &lm->events[e];
		struct group *group;
		bool staged = false;

		for (uint32_t i = 0; i < event->send_count; i++) {
			struct message *m = &match->messages[event->send_first + i];

			m->how = (uint8_t)message_how(match, lane, m);
			staged = staged || m->how == HOW_STAGED;
		}
		if (!staged)
			continue;
		group = group_of(lm, insn, event->turn);
		event->group = (uint16_t)(group - lm->groups);
		event->staged = ++group->period;
		if (insn->count > match->slot_chunks)
			match->slot_chunks = insn->count;
	}
	for (uint32_t g = 0; g < lm->group_count; g++) {
		lm->groups[g].slot = (uint16_t)*slot;
		*slot += match->depth;
		lm->groups[g].events = calloc(lm->groups[g].period, sizeof(uint32_t));
		if (!lm->groups[g].events)
			return err_set(ERR_SYSTEM, "no memory to match %u events",
				lm->event_count);
	}
	for (uint32_t e = 0; e < lm->event_count; e++)
		if (lm->events[e].staged)
			lm->groups[lm->events[e].group].events[lm->events[e].staged - 1] =
				e;
	return OK;
}

static enum err match_build(struct match *match)
{
	uint32_t used = 0, lane_max = 0;
	enum err e = OK;

	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct sched *sched = &match->scheds[r];

		for (uint32_t lane = 0; lane < sched->lane_count && !e; lane++)
			e = lane_check(sched, lane);
		for (uint32_t lane = 0; lane < sched->lane_count && !e; lane++)
			e = lane_flatten(match, r, lane);
		if (e)
			return e;
		lane_max = sched->lane_count > lane_max ? sched->lane_count : lane_max;
	}
	match->messages = calloc(match->message_room + 1, sizeof(*match->messages));
	match->received = calloc(match->received_count + 1, sizeof(*match->received));
	if (!match->messages || !match->received)
		return err_set(ERR_SYSTEM, "no memory to match %u messages",
			match->message_room);
	for (uint32_t lane = 0; lane < lane_max && !e; lane++)
		e = match_link(match, lane, &used);
	for (uint32_t r = 0; r < match->rank_count && !e; r++) {
		uint32_t slot = 0;

		for (uint32_t lane = 0; lane < lane_max && !e; lane++)
			e = lane_stage(match, r, lane, &slot);
	}
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
	m->rank_count = args->rank_count;
	m->depth = args->depth;
	m->mode = args->mode;
	m->slot_chunks = 1;
	m->lanes = calloc((size_t)m->rank_count * SCHED_LANES_MAX, sizeof(*m->lanes));
	e = m->lanes ? match_build(m)
		     : err_set(ERR_SYSTEM, "no memory to match a schedule");
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
	for (uint32_t i = 0; match->lanes && i < match->rank_count * SCHED_LANES_MAX;
		i++) {
		for (uint32_t g = 0; g < match->lanes[i].group_count; g++)
			free(match->lanes[i].groups[g].events);
		free(match->lanes[i].groups);
		free(match->lanes[i].events);
	}
	free(match->lanes);
	free(match->messages);
	free(match->received);
	free(match);
}

uint32_t match_slots(const struct match *match, uint32_t rank)
{
	uint32_t groups = 0;

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		groups += match_lane(match, rank, lane)->group_count;
	return groups * match->depth;
}
