/*
 * leader_pairs.c - sends and receives of processes that share a GPU without MPS.
 *
 * What runs on the GPU's processors costs a switch to the process that launched it, and a
 * copy between two places of the device's memory does so too, whoever asks for it; copies
 * to and from host memory, and memory operations, do not. So a message that fits into a
 * slot goes through a tray (trays.h): the sender's stream copies it out and is done with
 * it, the receiver's copies it in. A longer one is copied by a kernel of its receiver,
 * from where its sender says it is, which waits for that.
 *
 * Nobody but the two takes part. What a graph captures goes by kernels, whose words are
 * the same in every replay.
 */
#include "exec/cuda/leader.h"

#include <stdlib.h>

enum {
	LEVEL = TRAY_SLOTS, /* messages to one peer that are under way, of a call */
	OPS_OF_PAIR = 5	    /* memory operations, between two submissions, at most */
};
_Static_assert((int)LEVEL <= (int)BOX_SLOTS, "each message of a level has a slot");

bool leader_passes(const struct cuda_engine *engine, uint64_t bytes)
{
	return engine->reach.trays && !engine->now.is_capturing &&
	       bytes <= trays_slot_bytes(engine->reach.trays);
}

/* Of a pair: where it goes. */
struct passage {
	struct tray *tray; /* NULL: by a kernel */
	/* of the message, among those that go the same way; of a captured one, in its
	 * group */
	uint32_t number;
};

/* A group's messages, and those of them that are under way together. */
struct level {
	struct cuda_engine *engine;
	cu_stream stream;
	const struct pair_list *list;
	struct passage *passages; /* owned; of each pair */
	struct cu_memop *ops;	  /* owned: not submitted yet */
	uint32_t used;
	uint32_t number; /* of the level */
};

static enum err ops_submit(struct level *level)
{
	enum err e = memops_submit(level->engine, level->stream, level->ops, level->used);

	level->used = 0;
	return e;
}

static void op_add(struct level *level, struct cu_memop op)
{
	level->ops[level->used++] = op;
}

static bool is_self(const struct dev_pair *pair)
{
	return pair->from != 0;
}

/* Pair `*at` or the next one that is a send of this level; NULL: none. */
static const struct dev_pair *send_next(const struct level *level, uint32_t *at)
{
	while (*at < level->list->count) {
		const struct dev_pair *pair = &level->list->pairs[(*at)++];

		if (pair->is_send && pair->ordinal / LEVEL == level->number)
			return pair;
	}
	return NULL;
}

/* The same for receives of its turn `turn`: of each peer, one. */
static const struct dev_pair *receive_next(
	const struct level *level, uint32_t turn, uint32_t *at)
{
	while (*at < level->list->count) {
		const struct dev_pair *pair = &level->list->pairs[(*at)++];

		if (!pair->is_send && pair->ordinal == level->number * LEVEL + turn)
			return pair;
	}
	return NULL;
}

/* .. and where that goes. */
static const struct passage *passage_of(const struct level *level, uint32_t next)
{
	return &level->passages[next - 1];
}

/* ---- words in halls, of what kernels copy ---- */

/* Words in the hall `hall` of a send from `from` to `to`. */
static cu_ptr slot_at(cu_ptr hall, uint32_t from, uint32_t slot, size_t offset)
{
	return hall + offsetof(struct dev_hall, boxes) +
	       (from * BOX_SLOTS + slot) * sizeof(struct dev_slot) + offset;
}

static cu_ptr posted_at(cu_ptr hall, uint32_t from, uint32_t number)
{
	return slot_at(hall, from, number % BOX_SLOTS, offsetof(struct dev_slot, posted));
}

static cu_ptr taken_at(cu_ptr hall, uint32_t by, uint32_t number)
{
	return hall + offsetof(struct dev_hall, taken) +
	       (by * BOX_SLOTS + number % BOX_SLOTS) * sizeof(uint32_t);
}

/* Where a send is. */
static enum err send_offer(
	struct level *level, const struct dev_pair *pair, uint32_t number)
{
	struct cuda_engine *engine = level->engine;
	uint32_t rank = engine->rank, slot = number % BOX_SLOTS;
	cu_ptr hall = 0;
	enum err e = engine_hall(engine, pair->peer, &hall);

	if (e)
		return e;
	op_add(level,
		memop_write_64(slot_at(hall, rank, slot, offsetof(struct dev_slot, from)),
			pair->data));
	op_add(level, memop_write_64(
			      slot_at(hall, rank, slot, offsetof(struct dev_slot, bytes)),
			      pair->bytes));
	op_add(level, memop_write(posted_at(hall, rank, number), 1));
	return OK;
}

static enum err receive_thank(
	struct level *level, const struct dev_pair *pair, uint32_t number)
{
	struct cuda_engine *engine = level->engine;
	cu_ptr own = engine->reach.hall, hall = 0;
	enum err e = engine_hall(engine, pair->peer, &hall);

	if (e)
		return e;
	op_add(level, memop_write(posted_at(own, pair->peer, number), 0));
	op_add(level, memop_write(taken_at(hall, engine->rank, number), 1));
	return OK;
}

/* ---- the steps of a level ---- */

static enum err copy_out(
	struct level *level, const struct passage *passage, const struct dev_pair *pair)
{
	struct cuda_engine *engine = level->engine;
	char *slot = tray_slot(engine->reach.trays, passage->tray, passage->number);

	if (!pair->bytes)
		return OK;
	return cuda_check(engine->driver->memcpy_async((cu_ptr)(uintptr_t)slot,
				  is_self(pair) ? pair->from : pair->data, pair->bytes,
				  level->stream),
		"copy a message out");
}

static enum err copy_in(
	struct level *level, const struct passage *passage, const struct dev_pair *pair)
{
	struct cuda_engine *engine = level->engine;
	char *slot = tray_slot(engine->reach.trays, passage->tray, passage->number);

	if (!pair->bytes)
		return OK;
	return cuda_check(cuda_copy_in(engine->driver, pair->data, slot, pair->bytes,
				  level->stream),
		"copy a message in");
}

/* Offer what receivers copy; wait for room for the others, copy them and say so. */
static enum err sends_start(struct level *level)
{
	const struct dev_pair *pair;
	enum err e = OK;

	for (uint32_t i = 0; !e && (pair = send_next(level, &i));) {
		const struct passage *to = passage_of(level, i);

		if (!to->tray)
			e = send_offer(level, pair, to->number);
		else if (!tray_is_emptied(to->tray, to->number - TRAY_SLOTS))
			op_add(level,
				memop_wait(to->tray->emptied, to->number - TRAY_SLOTS));
	}
	if (!e)
		e = ops_submit(level);
	for (uint32_t i = 0; !e && (pair = send_next(level, &i));)
		if (passage_of(level, i)->tray)
			e = copy_out(level, passage_of(level, i), pair);
	for (uint32_t i = 0; !e && send_next(level, &i);) {
		const struct passage *to = passage_of(level, i);

		if (to->tray)
			op_add(level, memop_write(to->tray->filled, to->number));
	}
	return e;
}

static void turn_wait(struct level *level, uint32_t turn)
{
	cu_ptr hall = level->engine->reach.hall;
	const struct dev_pair *pair;

	for (uint32_t i = 0; (pair = receive_next(level, turn, &i));) {
		const struct passage *from = passage_of(level, i);

		if (is_self(pair))
			continue;
		if (from->tray)
			op_add(level, memop_wait(from->tray->filled, from->number));
		else
			op_add(level,
				memop_wait(posted_at(hall, pair->peer, from->number), 1));
	}
}

static enum err turn_copy(struct level *level, uint32_t turn)
{
	const struct dev_pair *pair;
	struct pairs_args args;
	enum err e = OK;

	pairs_args_begin(level->engine, &args);
	for (uint32_t i = 0; !e && (pair = receive_next(level, turn, &i));) {
		const struct passage *from = passage_of(level, i);
		struct dev_pair by_kernel = *pair;

		by_kernel.ordinal = from->number % BOX_SLOTS;
		if (!from->tray)
			e = pairs_args_add(
				level->engine, &args, &by_kernel, level->stream);
		else if (is_self(pair))
			e = copy_out(level, from, pair);
		if (!e && from->tray)
			e = copy_in(level, from, pair);
	}
	return e ? e : pairs_args_launch(level->engine, &args, level->stream);
}

static enum err turn_thank(struct level *level, uint32_t turn)
{
	const struct dev_pair *pair;
	enum err e = OK;

	for (uint32_t i = 0; !e && (pair = receive_next(level, turn, &i));) {
		const struct passage *from = passage_of(level, i);

		if (is_self(pair))
			continue;
		if (from->tray)
			op_add(level, memop_write(from->tray->emptied, from->number));
		else
			e = receive_thank(level, pair, from->number);
	}
	return e;
}

/* What is received: one message of every peer after the other, because a sender may wait
 * for the first to be taken before it offers another. */
static enum err receives_do(struct level *level)
{
	enum err e = OK;

	for (uint32_t turn = 0; turn < LEVEL && !e; turn++) {
		turn_wait(level, turn);
		e = ops_submit(level);
		if (!e)
			e = turn_copy(level, turn);
		if (!e)
			e = turn_thank(level, turn);
	}
	return e;
}

/* Wait until what others copy is taken. */
static enum err level_end(struct level *level)
{
	const struct dev_pair *pair;

	for (uint32_t i = 0; (pair = send_next(level, &i));) {
		const struct passage *to = passage_of(level, i);
		cu_ptr taken = taken_at(
			level->engine->reach.hall, pair->peer, to->number);

		if (to->tray)
			continue;
		op_add(level, memop_wait(taken, 1));
		op_add(level, memop_write(taken, 0));
	}
	return ops_submit(level);
}

static enum err level_do(struct level *level)
{
	enum err e = sends_start(level);

	if (!e)
		e = receives_do(level);
	return e ? e : level_end(level);
}

/* ---- the group ---- */

/* Which way a message goes, and its number there: both ranks count the messages between
 * them, in the same order, however each of them has put them into groups. */
static enum err passage_give(
	struct level *level, const struct dev_pair *pair, struct passage *passage)
{
	struct cuda_engine *engine = level->engine;
	struct leader *own = engine->own;
	uint32_t *count = pair->is_send ? own->offered : own->fetched;
	enum err e = OK;

	if (!leader_passes(engine, pair->bytes)) {
		passage->number = engine->now.is_capturing ? pair->ordinal
				  : is_self(pair)	   ? 0
							   : count[pair->peer]++;
		return OK;
	}
	e = pair->is_send ? trays_out(engine->reach.trays, pair->peer, &passage->tray)
			  : trays_in(engine->reach.trays, pair->peer, &passage->tray);
	if (!e && !is_self(pair))
		passage->number = atomic_fetch_add(&passage->tray->number, 1) + 1;
	return e;
}

static enum err levels_do(struct level *level)
{
	uint32_t levels = 0;
	enum err e = OK;

	for (uint32_t i = 0; i < level->list->count && !e; i++) {
		const struct dev_pair *pair = &level->list->pairs[i];

		if (pair->ordinal / LEVEL >= levels)
			levels = pair->ordinal / LEVEL + 1;
		e = passage_give(level, pair, &level->passages[i]);
	}
	for (; level->number < levels && !e; level->number++)
		e = level_do(level);
	return e;
}

enum err leader_pairs(
	struct cuda_engine *engine, struct pair_list *list, cu_stream stream)
{
	struct level level = {.engine = engine,
		.stream = stream,
		.list = list,
		.passages = calloc(list->count, sizeof(*level.passages)),
		.ops = malloc(OPS_OF_PAIR * list->count * sizeof(*level.ops))};
	enum err e = !list->count || (level.passages && level.ops)
			     ? order_begin(engine, &engine->past.order, stream)
			     : err_set(ERR_SYSTEM, "no memory for %u calls", list->count);

	if (!e)
		e = levels_do(&level);
	free(level.passages);
	free(level.ops);
	return e ? e : order_end(engine, &engine->past.order, stream);
}

/* ---- the end ---- */

void leader_sends_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	for (uint32_t r = 0; r < engine->rank_count; r++)
		for (uint32_t slot = 0; slot < BOX_SLOTS && r != engine->rank; slot++)
			if (engine->reach.halls[r])
				writes_add(writes,
					slot_at(engine->reach.halls[r], engine->rank,
						slot, offsetof(struct dev_slot, posted)),
					FREE_WAIT);
}
