/*
 * pairs.c - the sends and receives of one group, the three ways of engine.h.
 *
 * The receiver copies. Sends and receives between the same two ranks match in their
 * order; a pair's `ordinal` is its place in that order. At most BOX_SLOTS of them are
 * under way, so a group is done in levels of that many.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/state.h"

enum { PAIR_BLOCKS = 1056, PAIR_WORK = 32 << 10 };

/* A group in the order in which it is done. */
struct pair_list {
	struct dev_pair *pairs; /* owned */
	uint32_t count;
};

static bool is_self(const struct cuda_engine *engine, const struct cuda_pair *pair)
{
	return pair->peer == engine->rank;
}

/* Does the pair's memory have to be copied? Who receives only needs to reach it itself.
 */
static enum err data_look(
	struct cuda_engine *engine, const struct cuda_pair *pair, bool *is_bounced)
{
	const struct bounce_buffer buffer = {.ptr = pair->data,
		.bytes = pair->bytes,
		.is_sent = pair->is_send,
		.is_shown = pair->is_send && !is_self(engine, pair) &&
			    engine->way != CUDA_WAY_THREADS};

	*is_bounced = false;
	return pair->bytes ? bounce_look(engine, &buffer, is_bounced) : OK;
}

/* Where the pair's bytes are or will be, in this process. */
static enum err data_reach(struct cuda_engine *engine, const struct cuda_pair *pair,
	cu_stream stream, void **here)
{
	bool is_bounced;
	enum err e = data_look(engine, pair, &is_bounced);

	*here = pair->data;
	if (e || !is_bounced)
		return e;
	e = bounce_in(
		engine, pair->is_send ? pair->data : NULL, pair->bytes, stream, here);
	if (!e && !pair->is_send)
		e = bounce_out(engine, *here, pair->data, pair->bytes);
	return e;
}

/* .. and where its receiver sees a send. */
static enum err pair_fill(struct cuda_engine *engine, const struct cuda_pair *pair,
	cu_stream stream, struct dev_pair *to)
{
	struct cuda_where where;
	void *here = NULL;
	enum err e = data_reach(engine, pair, stream, &here);

	*to = (struct dev_pair){.data = (uint64_t)(uintptr_t)here,
		.bytes = pair->bytes,
		.peer = (uint16_t)pair->peer,
		.is_send = pair->is_send};
	if (e || !pair->is_send || !pair->bytes || engine->way == CUDA_WAY_THREADS)
		return e;
	e = engine_where(engine, here, &where);
	if (!e)
		e = desk_show(engine->desk, pair->peer, &where, here, &to->data);
	if (!e && engine->is_capturing)
		desk_pin(engine->desk, &where);
	return e;
}

static bool is_alike(const struct dev_pair *a, const struct dev_pair *b)
{
	return a->peer == b->peer && a->is_send == b->is_send;
}

/* Which of those with the same peer it is, and whether it is the last. */
static void ordinals_count(struct pair_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		struct dev_pair *pair = &list->pairs[i];

		pair->is_last = 1;
		for (uint32_t j = i; j-- > 0;)
			if (is_alike(&list->pairs[j], pair)) {
				pair->ordinal = list->pairs[j].ordinal + 1;
				list->pairs[j].is_last = 0;
				break;
			}
	}
}

/* How far the peer is, in the direction the bytes go: the same number on both sides. */
static uint32_t distance(const struct cuda_engine *engine, const struct dev_pair *pair)
{
	uint32_t n = engine->rank_count;

	return pair->is_send ? (pair->peer + n - engine->rank) % n
			     : (engine->rank + n - pair->peer) % n;
}

/* Sort by level and distance. Whatever is cut off for a later launch then comes later on
 * the other side too, so that no two ranks wait for each other's next launch. */
static void list_sort(const struct cuda_engine *engine, struct pair_list *list)
{
	for (uint32_t i = 1; i < list->count; i++) {
		struct dev_pair pair = list->pairs[i];
		uint64_t key = (uint64_t)(pair.ordinal / BOX_SLOTS) << 32 |
			       distance(engine, &pair);
		uint32_t j = i;

		for (; j > 0; j--) {
			const struct dev_pair *before = &list->pairs[j - 1];

			if (((uint64_t)(before->ordinal / BOX_SLOTS) << 32 |
				    distance(engine, before)) <= key)
				break;
			list->pairs[j] = *before;
		}
		list->pairs[j] = pair;
	}
}

/* A receive from ourselves takes the bytes of the send it matches, which needs nothing
 * else. */
static void selfs_match(const struct cuda_engine *engine, struct pair_list *list)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < list->count; i++) {
		struct dev_pair *pair = &list->pairs[i];

		if (pair->peer != engine->rank || pair->is_send)
			continue;
		for (uint32_t j = 0; j < list->count; j++)
			if (list->pairs[j].peer == engine->rank &&
				list->pairs[j].is_send &&
				list->pairs[j].ordinal == pair->ordinal)
				pair->from = list->pairs[j].data;
	}
	for (uint32_t i = 0; i < list->count; i++)
		if (list->pairs[i].peer != engine->rank ||
			(!list->pairs[i].is_send && list->pairs[i].bytes))
			list->pairs[kept++] = list->pairs[i];
	list->count = kept;
}

/* The next send to ourselves, or receive, from pair `*at` on; NULL: there is none. */
static const struct cuda_pair *self_next(const struct cuda_engine *engine,
	const struct cuda_call *call, bool is_send, uint32_t *at)
{
	while (*at < call->pair_count) {
		const struct cuda_pair *pair = &call->pairs[(*at)++];

		if (is_self(engine, pair) && pair->is_send == is_send)
			return pair;
	}
	return NULL;
}

static enum err sizes_differ(uint32_t from, uint64_t sent, uint32_t to, uint64_t received)
{
	return err_set(ERR_USAGE, "rank %u sends %llu bytes and rank %u receives %llu",
		from, (unsigned long long)sent, to, (unsigned long long)received);
}

/* Before anything is enqueued: nobody else would notice. */
static enum err selfs_check(
	const struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct cuda_pair *send, *receive;
	uint32_t sends = 0, receives = 0;

	while ((send = self_next(engine, call, true, &sends)) &&
		(receive = self_next(engine, call, false, &receives)))
		if (send->bytes != receive->bytes)
			return sizes_differ(
				engine->rank, send->bytes, engine->rank, receive->bytes);
	return OK;
}

static enum err list_make(
	struct cuda_engine *engine, const struct cuda_call *call, struct pair_list *list)
{
	size_t bounced = 0;
	enum err e = selfs_check(engine, call);

	if (e)
		return e;
	list->count = call->pair_count;
	list->pairs = calloc(call->pair_count, sizeof(*list->pairs));
	if (!list->pairs)
		return err_set(ERR_SYSTEM, "no memory for %u calls", call->pair_count);
	for (uint32_t i = 0; i < call->pair_count && !e; i++) {
		bool is_bounced;

		e = data_look(engine, &call->pairs[i], &is_bounced);
		if (!e && is_bounced)
			bounced += bounce_size(call->pairs[i].bytes);
	}
	if (!e)
		e = bounce_begin(engine, bounced, call->stream);
	for (uint32_t i = 0; i < call->pair_count && !e; i++)
		e = pair_fill(engine, &call->pairs[i], call->stream, &list->pairs[i]);
	if (e) {
		free(list->pairs);
		list->pairs = NULL;
		return e;
	}
	ordinals_count(list);
	selfs_match(engine, list);
	list_sort(engine, list);
	return OK;
}

/* ---- launching ---- */

static void args_begin(const struct cuda_engine *engine, struct pairs_args *args)
{
	*args = (struct pairs_args){.abort = (void *)(uintptr_t)engine->words_device,
		.trouble = (void *)(uintptr_t)(engine->words_device + 4),
		.hall = (struct dev_hall *)(uintptr_t)engine->hall,
		.rank = engine->rank,
		.is_one_device = engine->is_one_device};
}

/* Launch what is in `args`, if anything, and begin again. */
static enum err args_launch(
	struct cuda_engine *engine, struct pairs_args *args, cu_stream stream)
{
	unsigned most = PAIR_BLOCKS, blocks;
	void *params[] = {args};
	uint64_t bytes = 0;
	enum err e;

	if (args->is_resident)
		most = engine->resident_blocks > 1 ? engine->resident_blocks - 1 : 1;
	if (!args->count)
		return OK;
	for (uint32_t i = 0; i < args->count; i++)
		bytes += args->pairs[i].is_send ? 0 : args->pairs[i].bytes;
	blocks = bytes / PAIR_WORK + 1 < most ? (unsigned)(bytes / PAIR_WORK) + 1 : most;
	e = cuda_check(engine->driver->launch(engine->pairs,
			       blocks + (args->is_resident ? 1 : 0), 1, 1, MOVES_THREADS,
			       1, 1, 0, stream, params, NULL),
		"launch a kernel");
	args->count = 0;
	return e;
}

static enum err args_add(struct cuda_engine *engine, struct pairs_args *args,
	const struct dev_pair *pair, cu_stream stream)
{
	enum err e = args->count == PAIRS_MAX ? args_launch(engine, args, stream) : OK;

	args->pairs[args->count++] = *pair;
	return e;
}

enum err pairs_copy(
	struct cuda_engine *engine, const struct dev_pair *receive, cu_stream stream)
{
	struct pairs_args args;
	enum err e;

	args_begin(engine, &args);
	e = args_add(engine, &args, receive, stream);
	return e ? e : args_launch(engine, &args, stream);
}

/* ---- resident ---- */

static enum err resident_pairs(
	struct cuda_engine *engine, const struct pair_list *list, cu_stream stream)
{
	struct pairs_args args;
	enum err e = resident_order(engine, stream);

	args_begin(engine, &args);
	args.is_resident = 1;
	for (uint32_t i = 0; i < list->count && !e; i++) {
		struct dev_pair pair = list->pairs[i];
		cu_ptr hall = 0;

		/* a launch counts from what the one before it left */
		if (args.count == PAIRS_MAX)
			e = args_launch(engine, &args, stream);
		if (!e)
			e = engine_hall(engine, pair.peer, &hall);
		args.peers[args.count] = (struct dev_hall *)(uintptr_t)hall;
		args.pairs[args.count++] = pair;
	}
	if (!e)
		e = args_launch(engine, &args, stream);
	if (!engine->is_capturing)
		engine->last_numbered = 0; /* it is before this one */
	return e ? e : order_end(engine, &engine->order, stream);
}

/* ---- leader's way: every receiver launches ---- */

/* Words in the hall `hall` of a send from `from` to `to`. */
static cu_ptr slot_at(cu_ptr hall, uint32_t from, uint32_t slot, size_t offset)
{
	return hall + offsetof(struct dev_hall, boxes) +
	       (from * BOX_SLOTS + slot) * sizeof(struct dev_slot) + offset;
}

static cu_ptr taken_at(cu_ptr hall, uint32_t by, uint32_t slot)
{
	return hall + offsetof(struct dev_hall, taken) +
	       (by * BOX_SLOTS + slot) * sizeof(uint32_t);
}

/* Say where our sends are, wait until those we receive are there. */
static enum err level_open(struct cuda_engine *engine, const struct dev_pair *pairs,
	uint32_t count, cu_stream stream)
{
	struct cu_memop *ops = malloc(3 * count * sizeof(*ops));
	uint32_t used = 0;
	enum err e = ops ? OK : err_set(ERR_SYSTEM, "no memory for %u calls", count);

	for (uint32_t i = 0; i < count && !e; i++) {
		uint32_t slot = pairs[i].ordinal % BOX_SLOTS;
		cu_ptr hall = 0;

		if (!pairs[i].is_send)
			continue;
		e = engine_hall(engine, pairs[i].peer, &hall);
		ops[used++] = memop_write_64(slot_at(hall, engine->rank, slot,
						     offsetof(struct dev_slot, from)),
			pairs[i].data);
		ops[used++] = memop_write_64(slot_at(hall, engine->rank, slot,
						     offsetof(struct dev_slot, bytes)),
			pairs[i].bytes);
		ops[used++] = memop_write(slot_at(hall, engine->rank, slot,
						  offsetof(struct dev_slot, posted)),
			1);
	}
	for (uint32_t i = 0; i < count && !e; i++)
		if (!pairs[i].is_send && !pairs[i].from)
			ops[used++] = memop_wait(
				slot_at(engine->hall, pairs[i].peer,
					pairs[i].ordinal % BOX_SLOTS,
					offsetof(struct dev_slot, posted)),
				1);
	if (!e)
		e = memops_submit(engine, stream, ops, used);
	free(ops);
	return e;
}

/* Say what we have taken, wait until our sends are. */
static enum err level_close(struct cuda_engine *engine, const struct dev_pair *pairs,
	uint32_t count, cu_stream stream)
{
	struct cu_memop *ops = malloc(2 * count * sizeof(*ops));
	uint32_t used = 0;
	enum err e = ops ? OK : err_set(ERR_SYSTEM, "no memory for %u calls", count);

	for (uint32_t i = 0; i < count && !e; i++) {
		uint32_t slot = pairs[i].ordinal % BOX_SLOTS;
		cu_ptr hall = 0;

		if (pairs[i].is_send || pairs[i].from)
			continue;
		e = engine_hall(engine, pairs[i].peer, &hall);
		ops[used++] = memop_write(slot_at(engine->hall, pairs[i].peer, slot,
						  offsetof(struct dev_slot, posted)),
			0);
		ops[used++] = memop_write(taken_at(hall, engine->rank, slot), 1);
	}
	for (uint32_t i = 0; i < count && !e; i++) {
		cu_ptr taken = taken_at(
			engine->hall, pairs[i].peer, pairs[i].ordinal % BOX_SLOTS);

		if (!pairs[i].is_send)
			continue;
		ops[used++] = memop_wait(taken, 1);
		ops[used++] = memop_write(taken, 0);
	}
	if (!e)
		e = memops_submit(engine, stream, ops, used);
	free(ops);
	return e;
}

static enum err level_do(struct cuda_engine *engine, const struct dev_pair *pairs,
	uint32_t count, cu_stream stream)
{
	struct pairs_args args;
	enum err e = level_open(engine, pairs, count, stream);

	args_begin(engine, &args);
	for (uint32_t i = 0; i < count && !e; i++) {
		struct dev_pair pair = pairs[i];

		pair.ordinal %= BOX_SLOTS;
		if (!pair.is_send)
			e = args_add(engine, &args, &pair, stream);
	}
	if (!e)
		e = args_launch(engine, &args, stream);
	return e ? e : level_close(engine, pairs, count, stream);
}

static enum err leader_pairs(
	struct cuda_engine *engine, const struct pair_list *list, cu_stream stream)
{
	enum err e = order_begin(engine, &engine->order, stream);

	for (uint32_t first = 0, end; first < list->count && !e; first = end) {
		uint32_t level = list->pairs[first].ordinal / BOX_SLOTS;

		for (end = first; end < list->count &&
				  list->pairs[end].ordinal / BOX_SLOTS == level;
			end++)
			;
		e = level_do(engine, list->pairs + first, end - first, stream);
	}
	return e ? e : order_end(engine, &engine->order, stream);
}

/* ---- threads ---- */

static enum err letters_put(
	struct cuda_engine *engine, const struct pair_list *list, cu_stream stream)
{
	enum err e = cuda_check(
		engine->driver->event_record(engine->ready, stream), "record an event");

	free(engine->letters);
	engine->letter_count = 0;
	engine->letters = calloc(list->count + 1, sizeof(*engine->letters));
	if (!engine->letters)
		return err_set(ERR_SYSTEM, "no memory for %u calls", list->count);
	for (uint32_t i = 0; i < list->count && !e; i++) {
		struct table_letter *letter = &engine->letters[engine->letter_count];

		if (!list->pairs[i].is_send)
			continue;
		letter->from = list->pairs[i].data;
		letter->bytes = list->pairs[i].bytes;
		letter->stream = stream;
		letter->is_own = cuda_stream_is_own(stream);
		letter->ready = engine->ready;
		if (letter->is_own)
			e = cuda_check(engine->driver->event_create(
					       &letter->copied, CU_EVENT_NO_TIMING),
				"make an event");
		if (e)
			break;
		engine->letter_count++;
		letter_put(engine->table, engine->rank, list->pairs[i].peer, letter);
	}
	return e;
}

/* Take what is sent to us, as it comes. */
static enum err letters_take(struct cuda_engine *engine, struct pair_list *list,
	struct table_letter **letters, cu_stream stream)
{
	enum err e = OK;

	for (uint32_t i = 0; i < list->count && !e; i++) {
		struct dev_pair *pair = &list->pairs[i];

		if (pair->is_send || pair->peer == engine->rank)
			continue;
		e = letter_take(engine->table, pair->peer, engine->rank,
			&engine->words->abort, &letters[i]);
		if (e)
			return e;
		if (letters[i]->bytes != pair->bytes) {
			e = sizes_differ(
				pair->peer, letters[i]->bytes, engine->rank, pair->bytes);
		} else {
			pair->from = letters[i]->from;
			e = cuda_check(engine->driver->stream_wait_event(
					       stream, letters[i]->ready, 0),
				"wait for the sender's stream");
		}
	}
	return e;
}

/* Copy, then let the senders' streams go on. */
static enum err letters_copy(struct cuda_engine *engine, const struct pair_list *list,
	struct table_letter *const *letters, cu_stream stream)
{
	const struct cuda_driver *driver = engine->driver;
	struct pairs_args args;
	enum err e = OK;

	args_begin(engine, &args);
	for (uint32_t i = 0; i < list->count && !e; i++)
		if (!list->pairs[i].is_send && list->pairs[i].bytes)
			e = args_add(engine, &args, &list->pairs[i], stream);
	if (!e)
		e = args_launch(engine, &args, stream);
	if (!e)
		e = cuda_check(
			driver->event_record(engine->copied, stream), "record an event");
	for (uint32_t i = 0; i < list->count && !e; i++)
		if (letters[i] && letters[i]->is_own)
			e = cuda_check(driver->event_record(letters[i]->copied, stream),
				"record an event");
		else if (letters[i] && letters[i]->stream != stream)
			e = cuda_check(driver->stream_wait_event(
					       letters[i]->stream, engine->copied, 0),
				"wait for the receiver's stream");
	return e;
}

static enum err threads_move(
	struct cuda_engine *engine, const struct cuda_call *call, struct pair_list *list)
{
	struct table_letter **letters = calloc(
		list->count + 1, sizeof(struct table_letter *));
	enum err e = letters ? OK : err_set(ERR_SYSTEM, "no memory for a group");

	if (!e)
		e = letters_take(engine, list, letters, call->stream);
	if (!e)
		e = letters_copy(engine, list, letters, call->stream);
	for (uint32_t i = 0; letters && i < list->count; i++)
		if (letters[i])
			letter_done(letters[i], e);
	free(letters);
	return e;
}

static bool is_by_letters(const struct cuda_engine *engine)
{
	return engine->way == CUDA_WAY_THREADS && !engine->is_capturing;
}

/* ---- all ways ---- */

/* Written where the others see it: before, and when it is enqueued. */
static void pairs_write(
	struct cuda_engine *engine, const struct cuda_call *call, bool is_made)
{
	for (uint32_t i = 0; i < call->pair_count && !engine->is_capturing; i++) {
		const struct cuda_pair *pair = &call->pairs[i];

		if (is_self(engine, pair))
			continue;
		if (is_made)
			ledger_pair_end(engine->ledger, pair->is_send, pair->peer);
		else
			ledger_pair_begin(
				engine->ledger, pair->is_send, pair->peer, pair->bytes);
	}
}

enum err pairs_begin(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct pair_list list = {0};
	enum err e = list_make(engine, call, &list);

	free(engine->pairs_plan);
	engine->pairs_plan = NULL;

	if (e)
		return e;
	pairs_write(engine, call, false);
	if (engine->way == CUDA_WAY_LEADER)
		e = leader_pairs(engine, &list, call->stream);
	else if (!is_by_letters(engine))
		e = resident_pairs(engine, &list, call->stream);
	else
		e = letters_put(engine, &list, call->stream);
	if (!e)
		pairs_write(engine, call, true);
	if (is_by_letters(engine)) {
		engine->pairs_plan = list.pairs;
		engine->pairs_count = list.count;
	} else {
		free(list.pairs);
	}
	return e;
}

enum err pairs_move(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct pair_list list = {engine->pairs_plan, engine->pairs_count};
	enum err e;

	if (!is_by_letters(engine))
		return OK;
	e = threads_move(engine, call, &list);
	free(engine->pairs_plan);
	engine->pairs_plan = NULL;
	return e;
}

enum err pairs_finish(struct cuda_engine *engine)
{
	enum err e = OK;

	for (uint32_t i = 0; i < engine->letter_count && is_by_letters(engine); i++) {
		struct table_letter *letter = &engine->letters[i];
		enum err one = letter_wait(engine->table, letter, &engine->words->abort);

		if (!one && letter->is_own)
			one = cuda_check(engine->driver->stream_wait_event(
						 letter->stream, letter->copied, 0),
				"wait for the receiver's stream");
		if (letter->copied)
			engine->driver->event_destroy(letter->copied);
		e = e ? e : one;
	}
	engine->letter_count = 0;
	return e;
}
