#include "sched/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sched/pair.h"

enum { FANS_MIN = 4 };

/* Room for one more in a list. */
static enum err list_grow(void **list, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t wanted = *room ? 2 * *room : FANS_MIN;
	void *grown;

	if (count < *room)
		return OK;
	grown = realloc(*list, wanted * size);
	if (!grown)
		return err_set(ERR_SYSTEM, "no memory for %u staged fans", wanted);
	*list = grown;
	*room = wanted;
	return OK;
}

/* The group of a fan: a lane has few, however many fans. */
static enum err fan_group(
	struct stage_lane *lane, const struct insn *insn, uint32_t *group)
{
	uint16_t fan = (uint16_t)insn_send_fan(insn);
	void *list = lane->fan_groups;
	enum err e;

	for (uint32_t i = 0; i < lane->fan_group_count; i++)
		if (lane->fan_groups[i].tx == insn->tx &&
			lane->fan_groups[i].fan == fan) {
			*group = i;
			return OK;
		}
	e = list_grow(&list, lane->fan_group_count, &lane->fan_group_room,
		sizeof(*lane->fan_groups));
	lane->fan_groups = list;
	if (e)
		return e;
	*group = lane->fan_group_count++;
	lane->fan_groups[*group] = (struct stage_fan_group){.fan = fan, .tx = insn->tx};
	return OK;
}

/* Where the fan of an event stands, or would. */
static uint32_t fan_at(const struct stage_lane *lane, uint32_t event)
{
	uint32_t low = 0, high = lane->fan_count;

	if (high && lane->fans[high - 1].event < event) /* most come in order */
		return high;
	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (lane->fans[middle].event < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* A fan is one event, though each of its connections may tell of it; they need not do so
 * in the order of events. */
static enum err fan_add(struct stage_lane *lane, const struct insn *insn, uint32_t event)
{
	struct stage_fan fan = {.event = event};
	uint32_t at = fan_at(lane, event);
	void *list = lane->fans;
	enum err e;

	if (at < lane->fan_count && lane->fans[at].event == event)
		return OK;
	e = list_grow(&list, lane->fan_count, &lane->fan_room, sizeof(*lane->fans));
	lane->fans = list;
	if (!e)
		e = fan_group(lane, insn, &fan.group);
	if (e)
		return e;
	memmove(&lane->fans[at + 1], &lane->fans[at],
		(lane->fan_count++ - at) * sizeof(fan));
	lane->fans[at] = fan;
	return OK;
}

/* `count` staged messages over one connection alone. */
static void plain_add(
	struct stage_lane *lane, uint32_t conn, uint32_t event, uint32_t count)
{
	if (lane->first[conn] == STAGE_NEVER)
		lane->first[conn] = event;
	lane->period[conn] += count;
}

/* Does a send of the lane to one connection, or to a fan's, take a slot in staged mode?
 */
static bool takes_slot(const struct insn *insn, const struct prog *prog, uint32_t conn,
	const struct lower_args *args)
{
	for (uint32_t i = 0; i < insn_send_fan(insn); i++)
		if (insn_takes_slot(insn, ranks_are_apart(args->hosts, args->rank,
						  prog->tx_peers[conn + i])
						  ? HOW_SENT
						  : HOW_STAGED))
			return true;
	return false;
}

static void chunks_note(struct stage_lane *lane, const struct insn *insn)
{
	if (insn->count > lane->chunks)
		lane->chunks = insn->count;
}

/* The sends of an instruction that begins with `event`. */
static enum err insn_all(struct stage_lane *lane, const struct prog *prog,
	const struct insn *insn, uint32_t event, const struct lower_args *args)
{
	uint32_t turns = insn_turns(insn), each = turns;
	int32_t conn = insn->tx;

	if (insn->conn_step && turns > 1)
		each = 1; /* one to each connection */
	for (uint32_t turn = 0; turn < turns; turn += each, conn += insn->conn_step) {
		if (!takes_slot(insn, prog, (uint32_t)conn, args))
			continue;
		chunks_note(lane, insn);
		if (insn_send_fan(insn) > 1)
			return fan_add(lane, insn, event);
		plain_add(lane, (uint32_t)conn, event + turn, each);
	}
	return OK;
}

/* Everything within the host is staged: no need to know who receives it, only where. */
static enum err lane_all(
	struct stage_lane *lane, const struct prog *prog, const struct lower_args *args)
{
	uint32_t event = 0;
	enum err e = OK;

	for (uint32_t i = 0; i < prog->count && !e; i++) {
		if (prog->insns[i].op & OUT_SEND)
			e = insn_all(lane, prog, &prog->insns[i], event, args);
		event += insn_turns(&prog->insns[i]);
	}
	return e;
}

/* `count` staged messages of an instruction over a connection. */
static enum err sends_add(struct stage_lane *lane, const struct insn *insn, uint32_t conn,
	uint32_t event, uint32_t count)
{
	chunks_note(lane, insn);
	if (insn_send_fan(insn) > 1)
		return fan_add(lane, insn, event);
	plain_add(lane, conn, event, count);
	return OK;
}

/* To another host: what is sent takes a slot or not, whoever receives it. */
static enum err conn_sent(struct stage_lane *lane, const struct prog *prog, uint32_t tx)
{
	struct walk walk = {.prog = prog, .sends = true, .conn = tx};
	enum err e = OK;

	for (; !e && walk_on(&walk); walk.left = 0)
		if (insn_takes_slot(walk.insn, HOW_SENT))
			e = sends_add(lane, walk.insn, tx, walk.first, walk.left);
	return e;
}

/* What cannot be lent, nor land with its receiver, nor be sent from where it stands. */
static enum err lane_some(struct stage_lane *lane, struct pair *pair,
	const struct sched *scheds, const struct lower_args *args)
{
	const struct prog *prog = &scheds[args->rank].lanes[pair->lane];
	struct encounter meeting;
	uint32_t conn_count = lane_may_stage(prog) ? prog->tx_count : 0;
	enum err e = OK;

	for (uint32_t tx = 0; tx < conn_count && !e; tx++) {
		uint32_t to = prog->tx_peers[tx];

		if (ranks_are_apart(args->hosts, args->rank, to)) {
			e = conn_sent(lane, prog, tx);
			continue;
		}
		if (!lane_may_be_staged_to(&scheds[to].lanes[pair->lane], args->mode))
			continue;
		pair_from(pair, scheds, args->rank, tx);
		while (!e && !(e = pair_next(pair, &meeting)) && meeting.count)
			if (insn_takes_slot(meeting.send, pair_how(pair, &meeting, args)))
				e = sends_add(lane, meeting.send, tx, meeting.sent,
					meeting.count);
	}
	return e;
}

/* Now that all fans are known, in order: which message of its group each is, and how many
 * groups there are. Places count messages in 16 bits. */
static enum err lane_count(struct stage_lane *lane)
{
	uint32_t longest = lane->fan_count;

	lane->group_count = lane->fan_group_count;
	for (uint32_t i = 0; i < lane->fan_count; i++) {
		struct stage_fan *fan = &lane->fans[i];
		struct stage_fan_group *group = &lane->fan_groups[fan->group];

		if (!group->period)
			group->first = fan->event;
		fan->index = group->period++;
	}
	for (uint32_t conn = 0; conn < lane->conn_count; conn++) {
		lane->group_count += lane->first[conn] != STAGE_NEVER;
		longest = lane->period[conn] > longest ? lane->period[conn] : longest;
	}
	return longest <= UINT16_MAX ? OK
				     : err_set(ERR_USAGE,
					       "a rank stages %u messages to another; "
					       "65535 can be numbered",
					       longest);
}

static enum err lane_fill(struct stage_lane *lane, struct pair *pair,
	const struct sched *scheds, const struct lower_args *args)
{
	const struct prog *prog = &scheds[args->rank].lanes[pair->lane];
	enum err e;

	lane->conn_count = prog->tx_count;
	lane->fan_count = lane->fan_group_count = lane->chunks = 0;
	for (uint32_t conn = 0; conn < lane->conn_count; conn++) {
		lane->first[conn] = STAGE_NEVER;
		lane->period[conn] = 0;
	}
	e = args->mode == MODE_STAGED ? lane_all(lane, prog, args)
				      : lane_some(lane, pair, scheds, args);
	return e ? e : lane_count(lane);
}

enum err stage_fill(
	struct stage *stage, const struct sched *scheds, const struct lower_args *args)
{
	struct pair pair = {0};
	enum err e = OK;

	stage->depth = args->depth;
	stage->slot_count = 0;
	for (; pair.lane < SCHED_LANES_MAX && !e; pair.lane++) {
		struct stage_lane *lane = &stage->lanes[pair.lane];

		e = lane_fill(lane, &pair, scheds, args);
		lane->slot = stage->slot_count;
		stage->slot_count += lane->group_count * args->depth;
	}
	if (!e && stage->slot_count > UINT16_MAX)
		e = err_set(ERR_USAGE, "a stage of %u slots; 65535 can be numbered",
			stage->slot_count);
	return e;
}

void stage_fini(struct stage *stage)
{
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
		free(stage->lanes[lane].fans);
		free(stage->lanes[lane].fan_groups);
	}
	*stage = (struct stage){0};
}

/* Groups whose first message comes before this event. */
static uint32_t groups_before(const struct stage_lane *lane, uint32_t event)
{
	uint32_t count = 0;

	for (uint32_t conn = 0; conn < lane->conn_count; conn++)
		count += lane->first[conn] < event;
	for (uint32_t i = 0; i < lane->fan_group_count; i++)
		count += lane->fan_groups[i].first < event;
	return count;
}

/* The group and the message of a fan. */
static void fan_find(const struct stage_lane *lane, uint32_t event, struct place *place)
{
	const struct stage_fan *mine = &lane->fans[fan_at(lane, event)];
	const struct stage_fan_group *group;

	assert(mine < lane->fans + lane->fan_count && mine->event == event);
	group = &lane->fan_groups[mine->group];
	place->chunk = (uint16_t)mine->index;
	place->period = (uint16_t)group->period;
	place->group = (uint16_t)groups_before(lane, group->first);
}

struct place stage_place(
	const struct stage *stage, uint32_t lane, const struct stage_message *message)
{
	const struct stage_lane *in = &stage->lanes[lane];
	struct place place = {.space = PLACE_STAGE, .lane = (uint8_t)lane};

	if (insn_send_fan(message->insn) > 1) {
		fan_find(in, message->event, &place);
	} else {
		place.chunk = (uint16_t)message->earlier;
		place.period = (uint16_t)in->period[message->conn];
		place.group = (uint16_t)groups_before(in, in->first[message->conn]);
	}
	place.slot = (uint16_t)(in->slot + place.group * stage->depth);
	return place;
}
