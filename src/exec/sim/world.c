/*
 * world.c - steps the lanes of all ranks in the order of virtual time.
 *
 * One instant at a time: first every lane that wakes now is stepped until it is blocked
 * (a lane may free its neighbour), then what they sent is put on the links, lower lanes
 * first, then time jumps to the next lane that wakes. A lane that waits for something
 * not yet sent stands on a list at the lane that will send it.
 */
#include "exec/sim/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const uint64_t not_yet = ~(uint64_t)0;

/* ---- when ---- */

static struct sim_lane *lane_of(const struct world *world, uint32_t rank, uint32_t lane)
{
	return &world->lanes[rank * SCHED_LANES_MAX + lane];
}

static uint64_t *arrival_of(
	const struct world *world, uint32_t rank, uint32_t tile, uint32_t send)
{
	const struct sim_rank *r = &world->ranks[rank];

	return &r->arrivals[(size_t)(tile % world->window) * r->message_count + send];
}

/* Which of its messages between hosts a move sends to `rank`; NOBODY: none. */
static uint32_t sent_find(
	const struct program *program, const struct move *move, uint32_t rank)
{
	for (uint32_t i = 0; i < move->sent_count; i++)
		if (program->sents[move->sent_first + i].rank == rank)
			return move->sent_first + i;
	return NOBODY;
}

/* When the message that move `index` of the peer sends to `rank` arrives. */
static uint64_t data_time(const struct world *world, uint32_t rank,
	const struct sim_lane *peer, uint32_t index, uint32_t tile)
{
	const struct program *program = world->ranks[peer->rank].program;
	const struct move *move = &program->lanes[peer->index].moves[index];
	uint32_t i = 0, sent = sent_find(program, move, rank);

	if (sent != NOBODY)
		return *arrival_of(world, peer->rank, tile, program->send_count + sent);
	while (program->sends[move->send_first + i] != rank)
		i++;
	assert(i < move->send_count);
	return *arrival_of(world, peer->rank, tile, move->send_first + i);
}

/* The lane a wait of `rank` is about. */
static struct sim_lane *awaited_lane(
	const struct world *world, uint32_t rank, const struct wait *wait)
{
	return lane_of(world, wait->kind == WAIT_SENT ? rank : wait->rank, wait->lane);
}

/* When what `rank` waits for is there; not_yet while nobody can tell. */
static uint64_t wait_time(
	struct world *world, uint32_t rank, const struct wait *wait, uint32_t tile)
{
	const struct sim_lane *peer = awaited_lane(world, rank, wait);
	uint64_t wanted = (uint64_t)tile * peer->length + wait->position;
	bool is_message = wait->kind == WAIT_DATA || wait->kind == WAIT_SENT;
	uint64_t known = is_message ? peer->granted : peer->retired;
	uint64_t kept = (uint64_t)world->window * peer->length;

	if (known < wanted)
		return not_yet;
	if (wait->kind == WAIT_LOCAL)
		return 0;
	assert(peer->retired - wanted < kept);
	if (wait->kind == WAIT_DATA)
		return data_time(world, rank, peer, wait->position - 1, tile);
	if (wait->kind == WAIT_SENT) /* it arrives the latency after it has left */
		return data_time(world, wait->rank, peer, wait->position - 1, tile) -
		       wire_latency(&world->wires, rank, wait->rank);
	return peer->retire_times[(wanted - 1) % kept] +
	       wire_latency(&world->wires, wait->rank, rank);
}

static void lane_wake(struct world *world, const struct sim_lane *lane, uint64_t at_ps)
{
	uint32_t id = (uint32_t)(lane - world->lanes);
	uint64_t seed = world->args->order_seed;
	uint32_t turn = seed ? (uint32_t)(hash_spread((id + 1) * (seed | 1)) >> 32) : id;

	agenda_add(&world->agenda,
		&(struct wake){.at_ps = at_ps > world->now_ps ? at_ps : world->now_ps,
			.turn = turn,
			.lane = id});
}

/* Lane `lane` has gone on: those who waited for it may know more now. */
static void waiters_look(struct world *world, struct sim_lane *lane)
{
	uint32_t *link = &lane->waiters;

	while (*link != NOBODY) {
		struct sim_lane *waiter = &world->lanes[*link];
		uint64_t at = wait_time(world, waiter->rank, waiter->lane.blocked,
			waiter->lane.tile - waiter->lane.blocked->back);

		if (at == not_yet) {
			link = &waiter->next;
			continue;
		}
		*link = waiter->next;
		lane_wake(world, waiter, at);
	}
}

/* ---- what the interpreter asks ---- */

static bool world_reached(void *engine, const struct wait *wait, uint32_t tile)
{
	struct world *world = engine;

	return wait_time(world, world->current->rank, wait, tile) <= world->now_ps;
}

/* What `move` of the current rank has from a rank of another host. */
static char **letter_at(
	const struct world *world, uint32_t rank, uint32_t sent, uint32_t tile)
{
	const struct sim_rank *r = &world->ranks[rank];

	return &r->letters[(size_t)(tile % world->window) * r->program->sent_count +
			   sent];
}

static char *letter_of(const struct world *world, const struct move *move,
	const struct place *place, uint32_t tile)
{
	const struct program *mine = world->ranks[world->current->rank].program;
	const struct program *sender = world->ranks[place->rank].program;
	const struct wait *wait = &mine->waits[move->wait_first];
	const struct move *from;

	while (wait->kind != WAIT_DATA || wait->rank != place->rank)
		wait++;
	from = &sender->lanes[place->lane].moves[wait->position - 1];
	return *letter_at(world, place->rank, sent_find(sender, from, mine->rank), tile);
}

static char *place_pointer(const struct world *world, const struct move *move,
	const struct place *place, uint32_t tile, uint32_t j)
{
	const struct shape *shape = &world->ranks[world->current->rank].shape;
	const struct sim_rank *rank = &world->ranks[place->rank];

	switch (place->space) {
	case PLACE_IN:
		return rank->in + place_offset(shape, place, tile, j);
	case PLACE_OUT:
		return rank->out + place_offset(shape, place, tile, j);
	case PLACE_TMP:
		return rank->tmp + place_offset(shape, place, tile, j);
	case PLACE_INBOX:
	case PLACE_INBOX_IN:
		return letter_of(world, move, place, tile) + j * shape->tile_bytes;
	default:
		return rank->stage + place_slot(shape, place, tile) * shape->slot_bytes +
		       j * shape->tile_bytes;
	}
}

static void fold_load(const struct world *world, const struct move *move, uint32_t tile,
	uint32_t j, struct fold *fold)
{
	const struct shape *shape = &world->ranks[world->current->rank].shape;
	const struct place *places = shape->program->places;

	fold->any_scaled = false;
	for (uint32_t i = 0; i < move->input_count; i++) {
		const struct place *place = &places[move->input_first + i];
		bool scaled = world->rule.scaled &&
			      (place->space == PLACE_IN ||
				      place->space == PLACE_INBOX_IN);

		fold->in[i] = (struct operand){
			.data = place_pointer(world, move, place, tile, j),
			.scaled = scaled,
			.scalar = world->rule.scalar};
		fold->any_scaled = fold->any_scaled || scaled;
	}
	for (uint32_t i = 0; i < move->output_count; i++)
		fold->out[i] = place_pointer(
			world, move, &places[move->output_first + i], tile, j);
}

static void move_fold(struct world *world, const struct move *move, uint32_t tile)
{
	const struct shape *shape = &world->ranks[world->current->rank].shape;
	struct fold fold;

	fold.streaming = false;
	fold.kernel = world->rule.kernel;
	fold.width = dtype_size(world->args->key.type);
	fold.divisor = move->op & OP_POST ? world->rule.divisor : 0;
	fold.in_count = move->input_count;
	fold.out_count = move->output_count;
	for (uint32_t j = 0; j < move->count; j++) {
		size_t bytes = move_piece(shape, move, tile, j);

		if (!bytes)
			continue;
		fold_load(world, move, tile, j, &fold);
		fold_run(&fold, bytes);
	}
}

/* Keep what is sent to other hosts, as it is now. */
static void letters_write(struct world *world, const struct move *move, uint32_t tile)
{
	const struct sim_rank *rank = &world->ranks[world->current->rank];
	const struct program *program = rank->program;

	for (uint32_t i = 0; i < move->sent_count; i++) {
		uint32_t sent = move->sent_first + i;
		char *letter = calloc(move->count, rank->shape.tile_bytes);

		*letter_at(world, program->rank, sent, tile) = letter;
		if (!letter) {
			world->out_of_memory = true;
			return;
		}
		for (uint32_t j = 0; j < move->count; j++)
			memcpy(letter + j * rank->shape.tile_bytes,
				place_pointer(world, move,
					&program->places[program->sents[sent].place],
					tile, j),
				message_piece(&rank->shape, program->sents[sent].chunk,
					tile, j));
	}
}

static void world_move(
	void *engine, const struct move *move, uint32_t lane, uint32_t tile)
{
	struct world *world = engine;

	(void)lane;
	if (!world->with_data || world->out_of_memory)
		return;
	if (move->output_count)
		move_fold(world, move, tile);
	letters_write(world, move, tile);
}

static void world_publish(
	void *engine, const struct move *move, uint32_t index, uint64_t retired)
{
	struct world *world = engine;
	struct sim_lane *lane = world->current;
	uint64_t kept = (uint64_t)world->window * lane->length;

	(void)move;
	if (lane->granted == lane->retired)
		world->senders[index][world->sender_count[index]++] =
			(uint32_t)(lane - world->lanes);
	for (; lane->retired < retired; lane->retired++)
		lane->retire_times[lane->retired % kept] = world->now_ps;
	lane->finish_ps = world->now_ps;
	waiters_look(world, lane);
}

static const struct lane_ops world_ops = {
	.reached = world_reached, .run = world_move, .publish = world_publish};

/* ---- one instant after the other ---- */

static void lane_go(struct world *world, struct sim_lane *lane)
{
	const struct shape *shape = &world->ranks[lane->rank].shape;
	const struct wait *blocked;
	struct sim_lane *peer;
	uint64_t at;

	world->current = lane;
	if (lane_step(shape, lane->index, &lane->lane, &world_ops, world) == LANE_DONE) {
		lane->done = true;
		return;
	}
	blocked = lane->lane.blocked;
	at = wait_time(world, lane->rank, blocked, lane->lane.tile - blocked->back);
	if (at != not_yet) {
		lane_wake(world, lane, at);
		return;
	}
	peer = awaited_lane(world, lane->rank, blocked);
	lane->next = peer->waiters;
	peer->waiters = (uint32_t)(lane - world->lanes);
}

static void move_send(struct world *world, const struct sim_lane *lane, uint64_t position)
{
	const struct sim_rank *rank = &world->ranks[lane->rank];
	uint32_t tile = (uint32_t)(position / lane->length);
	const struct move *move =
		&rank->program->lanes[lane->index].moves[position % lane->length];
	size_t bytes = 0;

	for (uint32_t j = 0; move->send_count && j < move->count; j++)
		bytes += move_piece(&rank->shape, move, tile, j);
	for (uint32_t i = 0; i < move->send_count; i++) {
		uint32_t send = move->send_first + i;

		*arrival_of(world, lane->rank, tile, send) = wire_send(&world->wires,
			lane->rank, rank->program->sends[send], world->now_ps, bytes);
	}
	for (uint32_t i = move->sent_first; i < move->sent_first + move->sent_count;
		i++) {
		const struct sent *sent = &rank->program->sents[i];

		bytes = 0;
		for (uint32_t j = 0; j < move->count; j++)
			bytes += message_piece(&rank->shape, sent->chunk, tile, j);
		*arrival_of(world, lane->rank, tile,
			rank->program->send_count + i) = wire_send(&world->wires,
			lane->rank, sent->rank, world->now_ps, bytes);
	}
}

/* Lanes of one rank compete for its links: the lower ones come first. Different ranks
 * have no link in common, so their order does not matter. */
static void links_grant(struct world *world)
{
	for (uint32_t index = 0; index < SCHED_LANES_MAX; index++) {
		for (uint32_t i = 0; i < world->sender_count[index]; i++) {
			struct sim_lane *lane = &world->lanes[world->senders[index][i]];

			for (; lane->granted < lane->retired; lane->granted++)
				move_send(world, lane, lane->granted);
			waiters_look(world, lane);
		}
		world->sender_count[index] = 0;
	}
}

static enum err deadlock(const struct world *world)
{
	uint32_t i = 0;
	const struct sim_lane *lane;

	while (world->lanes[i].done)
		i++;
	lane = &world->lanes[i];
	return err_set(ERR_USAGE,
		"%s %s of %u ranks cannot go on at depth %u: rank %u lane %u, tile %u, "
		"move %u waits for rank %u",
		coll_name(world->args->key.coll), world->args->kind->name,
		world->rank_count, world->ranks[0].program->depth, lane->rank,
		lane->index, lane->lane.tile, lane->lane.move, lane->lane.blocked->rank);
}

enum err world_go(struct world *world)
{
	uint32_t i = 0;

	for (; i < world->lane_count; i++)
		if (!world->lanes[i].done)
			lane_wake(world, &world->lanes[i], 0);
	do {
		while (world->agenda.count &&
			world->agenda.wakes[0].at_ps == world->now_ps)
			lane_go(world, &world->lanes[agenda_take(&world->agenda).lane]);
		links_grant(world);
		if (world->agenda.count)
			world->now_ps = world->agenda.wakes[0].at_ps;
	} while (world->agenda.count);
	if (world->out_of_memory)
		return err_set(ERR_SYSTEM, "no memory for the messages of a simulation");
	for (i = 0; i < world->lane_count; i++)
		if (!world->lanes[i].done)
			return deadlock(world);
	return OK;
}
