/*
 * pairs.c - the sends and receives of one group, up to where the ways part (way.h).
 *
 * The receiver copies. Sends and receives between the same two ranks match in their
 * order; a pair's `ordinal` is its place in that order. At most BOX_SLOTS of them are
 * under way, so a group is done in levels of that many.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/cuda/state.h"

enum { PAIR_BLOCKS = 1056, PAIR_WORK = 32 << 10 };

static bool is_self(const struct cuda_engine *engine, const struct cuda_pair *pair)
{
	return pair->peer == engine->rank;
}

/* Must the other rank's process see the pair's memory? */
static bool is_seen_by_peer(
	const struct cuda_engine *engine, const struct cuda_pair *pair)
{
	const struct cuda_way *way = engine->way;

	return pair->is_send && !is_self(engine, pair) && !way->is_one_process &&
	       !(way->passes && way->passes(engine, pair->bytes));
}

/* Does the pair's memory have to be copied? Who receives only needs to reach it itself.
 */
static enum err data_look(
	struct cuda_engine *engine, const struct cuda_pair *pair, bool *is_bounced)
{
	const struct bounce_buffer buffer = {.ptr = pair->data,
		.bytes = pair->bytes,
		.is_sent = pair->is_send,
		.is_shown = is_seen_by_peer(engine, pair)};

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
	if (e || !pair->bytes || !is_seen_by_peer(engine, pair))
		return e;
	e = engine_where(engine, here, &where);
	if (!e)
		e = desk_show(engine->reach.desk, pair->peer, &where, here, &to->data);
	if (!e && engine->now.is_capturing)
		desk_pin(engine->reach.desk, &where);
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

enum err sizes_differ(uint32_t from, uint64_t sent, uint32_t to, uint64_t received)
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

void pairs_args_begin(const struct cuda_engine *engine, struct pairs_args *args)
{
	*args = (struct pairs_args){.abort = (void *)(uintptr_t)engine->words.device,
		.trouble = (void *)(uintptr_t)(engine->words.device + 4),
		.hall = (struct dev_hall *)(uintptr_t)engine->reach.hall,
		.rank = engine->rank,
		.is_one_device = engine->reach.is_one_device};
}

enum err pairs_args_launch(
	struct cuda_engine *engine, struct pairs_args *args, cu_stream stream)
{
	unsigned most = PAIR_BLOCKS, blocks;
	void *params[] = {args};
	uint64_t bytes = 0;
	enum err e;

	if (args->is_resident)
		most = engine->reach.blocks > 1 ? engine->reach.blocks - 1 : 1;
	if (!args->count)
		return OK;
	for (uint32_t i = 0; i < args->count; i++)
		bytes += args->pairs[i].is_send ? 0 : args->pairs[i].bytes;
	blocks = bytes / PAIR_WORK + 1 < most ? (unsigned)(bytes / PAIR_WORK) + 1 : most;
	e = cuda_check(engine->driver->launch(engine->code.pairs,
			       blocks + (args->is_resident ? 1 : 0), 1, 1, MOVES_THREADS,
			       1, 1, 0, stream, params, NULL),
		"launch a kernel");
	args->count = 0;
	return e;
}

enum err pairs_args_add(struct cuda_engine *engine, struct pairs_args *args,
	const struct dev_pair *pair, cu_stream stream)
{
	enum err e = args->count == PAIRS_MAX ? pairs_args_launch(engine, args, stream)
					      : OK;

	args->pairs[args->count++] = *pair;
	return e;
}

enum err pair_copy(
	struct cuda_engine *engine, const struct dev_pair *receive, cu_stream stream)
{
	struct pairs_args args;
	enum err e;

	pairs_args_begin(engine, &args);
	e = pairs_args_add(engine, &args, receive, stream);
	return e ? e : pairs_args_launch(engine, &args, stream);
}

/* ---- the group ---- */

/* Written where the others see it, before anything is enqueued. Does it fit the other
 * side's, as far as that is known? No kernel looks at what passes by host memory. */
static enum err pairs_announce(struct cuda_engine *engine, const struct cuda_call *call)
{
	enum err e = OK;

	for (uint32_t i = 0; i < call->pair_count && !engine->now.is_capturing; i++) {
		const struct cuda_pair *pair = &call->pairs[i];

		if (is_self(engine, pair))
			continue;
		ledger_pair_begin(engine->ledger, pair->is_send, pair->peer, pair->bytes);
		if (!e)
			e = ledger_pair_check(engine->ledger, pair->is_send, pair->peer);
	}
	return e;
}

/* .. and when it is enqueued. */
static void pairs_enqueued(struct cuda_engine *engine, const struct cuda_call *call)
{
	for (uint32_t i = 0; i < call->pair_count && !engine->now.is_capturing; i++) {
		const struct cuda_pair *pair = &call->pairs[i];

		if (!is_self(engine, pair))
			ledger_pair_end(engine->ledger, pair->is_send, pair->peer);
	}
}

enum err pairs_begin(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct pair_list list = {0};
	enum err e = list_make(engine, call, &list);

	if (e)
		return e;
	e = pairs_announce(engine, call);
	if (!e)
		e = engine->way->pairs(engine, &list, call->stream);
	if (!e)
		pairs_enqueued(engine, call);
	free(list.pairs);
	return e;
}
