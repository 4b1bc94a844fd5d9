/*
 * way_threads.c - threads of one process that share a GPU: they meet at a table
 * (table.h), rank 0's launches one kernel for all, and events order the streams around
 * it. Sends are letters laid down there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "exec/cuda/meet/table.h"
#include "exec/cuda/state.h"

/* So long a letter may take that others of the same group do not wait for. */
enum { NEXT_US = 200 };

struct threads {
	struct moves_args args;	      /* of the call that is laid down */
	cu_event ready, done, copied; /* copied: by receives */
	struct table_letter *letters; /* owned: sends of the call under way */
	uint32_t letter_count;
	struct pair_list plan; /* of the same call */
};

static enum err threads_open(struct cuda_engine *engine)
{
	struct threads *own = calloc(1, sizeof(*own));
	cu_event *const events[] = {&own->ready, &own->done, &own->copied};
	enum err e = own ? OK : err_set(ERR_SYSTEM, "no memory for a CUDA engine");

	engine->own = own;
	for (size_t i = 0; i < sizeof(events) / sizeof(*events) && !e; i++)
		e = cuda_check(
			engine->driver->event_create(events[i], CU_EVENT_NO_TIMING),
			"make an event");
	if (!e && engine->rank) {
		engine->reach.table =
			(struct table *)(uintptr_t)engine->reach.hellos[0].table;
		table_hold(engine->reach.table);
	}
	return e;
}

static void threads_close(struct cuda_engine *engine)
{
	struct threads *own = engine->own;

	if (!own)
		return;
	if (own->ready)
		engine->driver->event_destroy(own->ready);
	if (own->done)
		engine->driver->event_destroy(own->done);
	if (own->copied)
		engine->driver->event_destroy(own->copied);
	free(own->letters);
	free(own->plan.pairs);
	free(own);
}

static bool threads_needs_hall(const struct cuda_engine *engine, uint32_t rank)
{
	(void)engine, (void)rank;
	return true;
}

static const char *threads_says(const struct cuda_engine *engine)
{
	(void)engine;
	return "threads of one process share a GPU: one launch for all";
}

static enum err threads_take_capture(const struct cuda_engine *engine)
{
	int64_t channels = param_int(PARAM_CUDA_CONNECTIONS);

	if (engine->rank_count <= channels)
		return OK;
	return err_set(ERR_USAGE,
		"graphs of %u threads that share a GPU need as many of its channels, and "
		"there are %lld: set CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts",
		engine->rank_count, (long long)channels);
}

/* ---- collectives ---- */

/* Is the launch on rank `r`'s stream anyway? */
static bool is_launched_on(const struct table_entry *entry, cu_stream stream)
{
	return entry->stream == stream && !entry->is_own;
}

/* What is before the call on every stream is before the launch. */
static enum err streams_join(struct cuda_engine *engine, cu_stream stream)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = OK;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->reach.table, r);

		if (!entry->is_own && !is_launched_on(entry, stream))
			e = cuda_check(driver->event_record(entry->ready, entry->stream),
				"record an event");
	}
	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->reach.table, r);

		if (!is_launched_on(entry, stream))
			e = cuda_check(driver->stream_wait_event(stream, entry->ready, 0),
				"wait for another rank's stream");
	}
	return e;
}

/* What comes after the call on every stream is after the launch. */
static enum err streams_part(struct cuda_engine *engine, cu_stream stream)
{
	const struct threads *own = engine->own;
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(
		driver->event_record(own->done, stream), "record an event");

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->reach.table, r);

		if (entry->is_own &&
			r != engine->rank) /* its own event: we may be gone */
			e = cuda_check(driver->event_record(entry->ready, stream),
				"record an event");
		else if (!entry->is_own && !is_launched_on(entry, stream))
			e = cuda_check(
				driver->stream_wait_event(entry->stream, own->done, 0),
				"wait for the launch");
	}
	return e;
}

/* Calls of a communicator run one after the other, whatever streams they are on: slots
 * hold one call. */
static enum err launch_follow(struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct table_answer last = table_answer(engine->reach.table);
	bool is_behind = last.stream == call->stream && !cuda_stream_is_own(call->stream);

	if (!last.done || (is_behind && !call->plan.is_staged))
		return OK;
	return cuda_check(engine->driver->stream_wait_event(call->stream, last.done, 0),
		"wait for the launch before");
}

/* One launch for all, on this rank's stream. */
static enum err table_serve(
	struct cuda_engine *engine, const struct cuda_call *call, uint32_t *culprit)
{
	struct threads *own = engine->own;
	struct moves_args *args = &own->args;
	uint64_t sign = table_entry(engine->reach.table, engine->rank)->sign;
	enum err e;

	args->is_posted = 1;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		const struct table_entry *entry = table_entry(engine->reach.table, r);

		args->posts[r] = entry->post;
		if (entry->is_scalar_at)
			args->scalars_at |= (uint64_t)1 << r;
		if (entry->sign != sign) {
			*culprit = r;
			return ERR_USAGE;
		}
	}
	e = streams_join(engine, call->stream);
	if (!e)
		e = launch_follow(engine, call);
	if (!e)
		e = coll_launch(engine, call, args, grid_fused(engine, call));
	return e ? e : streams_part(engine, call->stream);
}

/* Other ranks' streams cannot be waited for from within a graph. */
static enum err threads_coll(struct cuda_engine *engine, const struct coll_work *work)
{
	const struct cuda_call *call = work->call;
	const struct dev_mail *mine = work->mine;
	struct threads *own = engine->own;
	struct table_entry entry = {.post = {mine->in, mine->out, mine->scalar, NULL},
		.is_scalar_at = call->scalar_at != NULL,
		.is_own = cuda_stream_is_own(call->stream),
		.sign = mine->sign,
		.stream = call->stream,
		.ready = own->ready};
	enum err e = OK;

	if (engine->now.is_capturing)
		return resident_coll(engine, work);
	if (entry.is_own)
		e = cuda_check(engine->driver->event_record(own->ready, call->stream),
			"record an event");
	if (e)
		return e;
	if (call->scalar_at)
		entry.post.scalar = (uint64_t)(uintptr_t)call->scalar_at;
	memcpy(&own->args, work->args, offsetof(struct moves_args, posts));
	table_put(engine->reach.table, engine->rank, &entry);
	return OK;
}

/* The ledger has the words for it. */
static enum err mismatch_say(struct cuda_engine *engine, uint32_t culprit)
{
	enum err e;

	/* as a kernel does that sees it: then the ledger is searched for both calls */
	__atomic_store_n(&engine->words.here->trouble, culprit + 1, __ATOMIC_RELEASE);
	e = engine_judge(engine);
	return e ? e
		 : err_set(ERR_USAGE,
			   "rank %u called another collective, type, operator, root or "
			   "count than the others",
			   culprit);
}

static enum err table_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct threads *own = engine->own;
	struct table_answer answer = {
		.culprit = UINT32_MAX, .stream = call->stream, .done = own->done};
	bool is_ours;
	enum err e = table_wait(
		engine->reach.table, engine->rank, &engine->words.here->abort, &is_ours);

	if (e)
		return e;
	if (is_ours) {
		answer.error = table_serve(engine, call, &answer.culprit);
		table_served(engine->reach.table, &answer);
	} else {
		answer = table_answer(engine->reach.table);
	}
	if (answer.error && answer.culprit != UINT32_MAX)
		return mismatch_say(engine, answer.culprit);
	if (answer.error)
		return err_set(answer.error, "the rank that launches for all: %s",
			table_reason(engine->reach.table));
	if (cuda_stream_is_own(call->stream) && !is_ours)
		e = cuda_check(
			engine->driver->stream_wait_event(call->stream, own->ready, 0),
			"wait for the launch");
	return e;
}

/* ---- sends and receives ---- */

static enum err letters_put(
	struct cuda_engine *engine, const struct pair_list *list, cu_stream stream)
{
	struct threads *own = engine->own;
	enum err e = cuda_check(
		engine->driver->event_record(own->ready, stream), "record an event");

	free(own->letters);
	own->letter_count = 0;
	own->letters = calloc(list->count + 1, sizeof(*own->letters));
	if (!own->letters)
		return err_set(ERR_SYSTEM, "no memory for %u calls", list->count);
	for (uint32_t i = 0; i < list->count && !e; i++) {
		struct table_letter *letter = &own->letters[own->letter_count];

		if (!list->pairs[i].is_send)
			continue;
		letter->from = list->pairs[i].data;
		letter->bytes = list->pairs[i].bytes;
		letter->stream = stream;
		letter->is_own = cuda_stream_is_own(stream);
		letter->ready = own->ready;
		if (letter->is_own)
			e = cuda_check(engine->driver->event_create(
					       &letter->copied, CU_EVENT_NO_TIMING),
				"make an event");
		if (e)
			break;
		own->letter_count++;
		letter_put(
			engine->reach.table, engine->rank, list->pairs[i].peer, letter);
	}
	return e;
}

/* How far a receive of a group is. */
enum receipt { AWAITED, TAKEN, COPIED };

struct receiver {
	struct cuda_engine *engine;
	struct pair_list *list;
	struct table_letter **letters; /* owned: of each of the list; NULL: none */
	enum receipt *receipts;	       /* owned: the same */
	uint32_t awaited;
};

static enum err receiver_begin(struct receiver *receiver)
{
	const struct pair_list *list = receiver->list;
	size_t room = list->count + 1;

	receiver->letters = calloc(room, sizeof(struct table_letter *));
	receiver->receipts = calloc(room, sizeof(*receiver->receipts));
	if (!receiver->letters || !receiver->receipts)
		return err_set(ERR_SYSTEM, "no memory for a group");
	for (uint32_t i = 0; i < list->count; i++) {
		const struct dev_pair *pair = &list->pairs[i];

		if (pair->is_send)
			receiver->receipts[i] = COPIED;
		else if (pair->peer == receiver->engine->rank)
			receiver->receipts[i] = TAKEN;
		else
			receiver->awaited++;
	}
	return OK;
}

static enum err letter_accept(struct cuda_engine *engine, struct dev_pair *pair,
	const struct table_letter *letter, cu_stream stream)
{
	if (letter->bytes != pair->bytes)
		return sizes_differ(pair->peer, letter->bytes, engine->rank, pair->bytes);
	pair->from = letter->from;
	return cuda_check(engine->driver->stream_wait_event(stream, letter->ready, 0),
		"wait for the sender's stream");
}

/* Take what is there, from whomever; from each in order. */
static enum err letters_take(struct receiver *receiver, cu_stream stream, bool *is_any)
{
	struct cuda_engine *engine = receiver->engine;
	uint64_t missing = 0; /* a bit for each rank that has put no more */
	enum err e = OK;

	for (uint32_t i = 0; i < receiver->list->count && !e; i++) {
		struct dev_pair *pair = &receiver->list->pairs[i];

		if (receiver->receipts[i] != AWAITED || missing >> pair->peer & 1)
			continue;
		receiver->letters[i] = letter_take(
			engine->reach.table, pair->peer, engine->rank);
		if (!receiver->letters[i]) {
			missing |= (uint64_t)1 << pair->peer;
			continue;
		}
		receiver->receipts[i] = TAKEN;
		receiver->awaited--;
		*is_any = true;
		e = letter_accept(engine, pair, receiver->letters[i], stream);
	}
	return e;
}

/* All that can be done at once: who sends by single calls puts each when the one before
 * has been copied. When something has come, the rest is waited for no longer than it
 * takes those who put theirs now. */
static enum err letters_gather(struct receiver *receiver, cu_stream stream)
{
	struct cuda_engine *engine = receiver->engine;
	bool is_any = false;
	enum err e = OK;

	while (receiver->awaited && !e) {
		uint32_t seen = letters_seen(engine->reach.table);

		e = letters_take(receiver, stream, &is_any);
		if (!e && receiver->awaited)
			e = letters_await(engine->reach.table, seen,
				&engine->words.here->abort, is_any ? NEXT_US : 0);
	}
	return e == ERR_AGAIN ? OK : e;
}

/* Copy, then let the senders' streams go on. */
static enum err letters_copy(struct receiver *receiver, cu_stream stream)
{
	struct cuda_engine *engine = receiver->engine;
	const struct threads *own = engine->own;
	const struct cuda_driver *driver = engine->driver;
	struct pairs_args args;
	enum err e = OK;

	pairs_args_begin(engine, &args);
	for (uint32_t i = 0; i < receiver->list->count && !e; i++)
		if (receiver->receipts[i] == TAKEN && receiver->list->pairs[i].bytes)
			e = pairs_args_add(
				engine, &args, &receiver->list->pairs[i], stream);
	if (!e)
		e = pairs_args_launch(engine, &args, stream);
	if (!e)
		e = cuda_check(
			driver->event_record(own->copied, stream), "record an event");
	for (uint32_t i = 0; i < receiver->list->count && !e; i++) {
		const struct table_letter *letter = receiver->letters[i];

		if (receiver->receipts[i] != TAKEN || !letter)
			continue;
		if (letter->is_own)
			e = cuda_check(driver->event_record(letter->copied, stream),
				"record an event");
		else if (letter->stream != stream)
			e = cuda_check(
				driver->stream_wait_event(letter->stream, own->copied, 0),
				"wait for the receiver's stream");
	}
	return e;
}

/* Whatever came of them, their senders may go on. */
static void letters_tell(struct receiver *receiver, enum err e)
{
	for (uint32_t i = 0; i < receiver->list->count; i++) {
		if (receiver->receipts[i] != TAKEN)
			continue;
		receiver->receipts[i] = COPIED;
		if (receiver->letters[i])
			letter_done(receiver->letters[i], e);
	}
}

static enum err letters_receive(struct receiver *receiver, cu_stream stream)
{
	enum err e = OK;

	do {
		e = letters_gather(receiver, stream);
		if (!e)
			e = letters_copy(receiver, stream);
		letters_tell(receiver, e);
	} while (!e && receiver->awaited);
	return e;
}

static enum err threads_pairs(
	struct cuda_engine *engine, struct pair_list *list, cu_stream stream)
{
	struct threads *own = engine->own;

	if (engine->now.is_capturing)
		return resident_pairs(engine, list, stream);
	free(own->plan.pairs);
	own->plan = *list;
	list->pairs = NULL;
	return letters_put(engine, &own->plan, stream);
}

static enum err threads_move(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct threads *own = engine->own;
	struct receiver receiver = {.engine = engine, .list = &own->plan};
	enum err e;

	if (engine->now.is_capturing)
		return OK;
	e = receiver_begin(&receiver);
	if (!e)
		e = letters_receive(&receiver, call->stream);
	free(receiver.letters);
	free(receiver.receipts);
	free(own->plan.pairs);
	own->plan = (struct pair_list){0};
	return e;
}

/* What was sent has been taken. */
static enum err letters_finish(struct cuda_engine *engine)
{
	struct threads *own = engine->own;
	enum err e = OK;

	for (uint32_t i = 0; i < own->letter_count; i++) {
		struct table_letter *letter = &own->letters[i];
		enum err one = letter_wait(
			engine->reach.table, letter, &engine->words.here->abort);

		if (!one && letter->is_own)
			one = cuda_check(engine->driver->stream_wait_event(
						 letter->stream, letter->copied, 0),
				"wait for the receiver's stream");
		if (letter->copied)
			engine->driver->event_destroy(letter->copied);
		e = e ? e : one;
	}
	own->letter_count = 0;
	return e;
}

static enum err threads_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	if (engine->now.is_capturing)
		return OK;
	return call->pairs ? letters_finish(engine) : table_finish(engine, call);
}

const struct cuda_way way_threads = {
	.is_fused = true,
	.is_one_process = true,
	.needs_hall = threads_needs_hall,
	.open = threads_open,
	.close = threads_close,
	.says = threads_says,
	.takes_capture = threads_take_capture,
	.coll = threads_coll,
	.pairs = threads_pairs,
	.move = threads_move,
	.finish = threads_finish,
};
