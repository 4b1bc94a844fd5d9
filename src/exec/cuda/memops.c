#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "exec/cuda/driver/aside.h"
#include "exec/cuda/state.h"

enum {
	BATCH_MAX = 200, /* operations the driver takes at a time, and some less */
	THROUGH_MS = 5,	 /* until a stream of ours is said to be stuck */
	NAP_US = 50
};

struct cu_memop memop_write_64(cu_ptr address, uint64_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_64, .address = address, .value = value};
}

struct cu_memop memop_write(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_32, .address = address, .value = value};
}

struct cu_memop memop_wait(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){.operation = CU_MEMOP_WAIT_32,
		.address = address,
		.value = value,
		.flags = CU_WAIT_GEQ};
}

enum err memops_submit(struct cuda_engine *engine, cu_stream stream, struct cu_memop *ops,
	uint32_t count)
{
	for (uint32_t done = 0; done < count;) {
		uint32_t some = count - done < BATCH_MAX ? count - done : BATCH_MAX;
		cu_result result = engine->driver->stream_batch_memop(
			stream, some, ops + done, 0);

		if (result)
			return cuda_check(result, "order a stream by memory words");
		done += some;
	}
	return OK;
}

cu_ptr mail_at(cu_ptr hall, bool is_constant, uint32_t rank, size_t offset)
{
	size_t mails = is_constant ? offsetof(struct dev_hall, constant)
				   : offsetof(struct dev_hall, mail);

	return hall + mails + rank * sizeof(struct dev_mail) + offset;
}

/* ---- freeing ---- */

enum { WRITES_MAX = sizeof(((struct words *)0)->values) / sizeof(uint32_t) };
struct writes {
	uint32_t count;
	struct {
		cu_ptr address;
		uint32_t value;
	} list[WRITES_MAX];
};

void writes_add(struct writes *writes, cu_ptr address, uint32_t value)
{
	if (writes->count == WRITES_MAX)
		return;
	writes->list[writes->count].address = address;
	writes->list[writes->count++].value = value;
}

/* Not for ever: it may share its channel with one that waits. */
static bool stream_is_through(const struct cuda_engine *engine, cu_stream stream)
{
	uint64_t end = clock_ns() + THROUGH_MS * 1000000ull;

	while (engine->driver->stream_query(stream) == CU_NOT_READY) {
		if (clock_ns() > end)
			return false;
		usleep(NAP_US);
	}
	return true;
}

static void writes_submit(struct cuda_engine *engine, const struct writes *writes)
{
	struct cu_memop ops[BATCH_MAX];

	for (uint32_t first = 0; first < writes->count; first += BATCH_MAX) {
		uint32_t count = writes->count - first;

		count = count < BATCH_MAX ? count : BATCH_MAX;
		for (uint32_t i = 0; i < count; i++)
			ops[i] = memop_write(writes->list[first + i].address,
				writes->list[first + i].value);
		memops_submit(engine, engine->streams.watcher, ops, count);
	}
}

/* By copies, which have channels of their own. */
static void writes_copy(struct cuda_engine *engine, const struct writes *writes)
{
	for (uint32_t i = 0; i < writes->count; i++) {
		engine->words.here->values[i] = writes->list[i].value;
		engine->driver->memcpy_async(writes->list[i].address,
			engine->words.device + offsetof(struct words, values) +
				i * sizeof(uint32_t),
			sizeof(uint32_t), engine->streams.rescue);
	}
}

/* False: it does not get through now. */
static bool writes_do(struct cuda_engine *engine, const struct writes *writes)
{
	writes_submit(engine, writes);
	if (stream_is_through(engine, engine->streams.watcher))
		return true;
	writes_copy(engine, writes);
	return stream_is_through(engine, engine->streams.rescue);
}

bool word_see(struct cuda_engine *engine, cu_ptr word, int32_t *beyond)
{
	if (engine->driver->memcpy_async(
		    engine->words.device + offsetof(struct words, seen), word,
		    sizeof(uint32_t), engine->streams.watcher) ||
		!stream_is_through(engine, engine->streams.watcher))
		return false;
	*beyond = (int32_t)(__atomic_load_n(&engine->words.here->seen, __ATOMIC_ACQUIRE) -
			    engine->past.call);
	return true;
}

/* A word that goes beyond was set free. */
bool memops_are_done(struct cuda_engine *engine)
{
	bool is_done = engine->way && engine->way->done_at && !engine->past.was_captured;
	int32_t beyond = 0;

	if (!is_done || !engine->past.call)
		return is_done;
	pthread_mutex_lock(&engine->fate.freeing);
	is_done = word_see(engine, engine->way->done_at(engine), &beyond) && !beyond;
	pthread_mutex_unlock(&engine->fate.freeing);
	return is_done;
}

/* What this rank's streams wait for: all of it in its own hall. It is written again and
 * again: streams that are free all at once tell of their calls in any order, and a word
 * can go back. */
static void waits_free(struct cuda_engine *engine, struct writes *writes)
{
	cu_ptr own = engine->reach.hall;

	if (engine->way && engine->way->let_go)
		engine->way->let_go(engine, writes);
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		for (uint32_t slot = 0; slot < BOX_SLOTS; slot++) {
			writes_add(writes,
				own + offsetof(struct dev_hall, boxes) +
					(r * BOX_SLOTS + slot) * sizeof(struct dev_slot) +
					offsetof(struct dev_slot, posted),
				FREE_WAIT);
			writes_add(writes,
				own + offsetof(struct dev_hall, taken) +
					(r * BOX_SLOTS + slot) * sizeof(uint32_t),
				FREE_WAIT);
		}
		writes_add(writes, signal_at(own, r, 0),
			engine->signals.awaited[0][r] + FREE_WAIT);
	}
}

/* How the words get to the device. */
typedef bool writes_way(struct cuda_engine *engine, const struct writes *writes);

/* The signals that few programs have: of those only what was ever waited for. */
static bool signals_free(
	struct cuda_engine *engine, struct writes *writes, writes_way *write)
{
	bool is_through = true;

	writes->count = 0;
	for (uint32_t s = 1; s < CUDA_SIGNALS_MAX; s++)
		for (uint32_t r = 0; r < engine->rank_count; r++) {
			if (!engine->signals.awaited[s][r])
				continue;
			writes_add(writes, signal_at(engine->reach.hall, r, s),
				engine->signals.awaited[s][r] + FREE_WAIT);
			if (writes->count < WRITES_MAX)
				continue;
			is_through = write(engine, writes) && is_through;
			writes->count = 0;
		}
	return (!writes->count || write(engine, writes)) && is_through;
}

/* Words of others' first, which tell that our memory is not to be used any more; and once
 * more in the end, because what this rank has enqueued may have told otherwise meanwhile.
 * What is enqueued and not through stays enqueued: it is done as soon as one of our own
 * streams gets through. */
static bool words_free(struct cuda_engine *engine, struct writes *writes)
{
	bool was_stuck = atomic_load(&engine->fate.is_stuck);
	const struct cuda_way *way = engine->way;

	if (was_stuck &&
		engine->driver->stream_query(engine->streams.watcher) == CU_NOT_READY)
		return false;
	writes->count = 0;
	if (way && way->withdraw)
		way->withdraw(engine, writes);
	if (writes->count && !writes_do(engine, writes))
		return false;
	if (!engine->fate.is_freed && way && way->settle)
		way->settle(engine);
	engine->fate.is_freed = true;
	writes->count = 0;
	waits_free(engine, writes);
	if (way && way->withdraw)
		way->withdraw(engine, writes);
	return writes_do(engine, writes) && signals_free(engine, writes, writes_do);
}

void memops_free(struct cuda_engine *engine)
{
	struct writes *writes = calloc(1, sizeof(*writes));

	if (!writes)
		return;
	pthread_mutex_lock(&engine->fate.freeing);
	atomic_store(&engine->fate.is_stuck, !words_free(engine, writes));
	pthread_mutex_unlock(&engine->fate.freeing);
	free(writes);
}

static bool writes_do_aside(struct cuda_engine *engine, const struct writes *writes)
{
	struct cu_memop *ops = calloc(writes->count, sizeof(*ops));
	enum err e = ops ? OK
			 : err_set(ERR_SYSTEM, "no memory for %u words", writes->count);

	for (uint32_t i = 0; i < writes->count && !e; i++)
		ops[i] = memop_write(writes->list[i].address, writes->list[i].value);
	if (!e)
		e = aside_write(engine->fate.aside, ops, writes->count);
	free(ops);
	return !e;
}

void memops_free_aside(struct cuda_engine *engine)
{
	struct writes *writes = calloc(1, sizeof(*writes));
	struct fate *fate = &engine->fate;
	enum err e = writes ? OK : err_set(ERR_SYSTEM, "no memory for words");
	bool is_through;

	pthread_mutex_lock(&fate->freeing);
	if (!e && !fate->aside)
		e = aside_open(engine->driver, &fate->aside);
	if (!e)
		waits_free(engine, writes);
	is_through = !e && writes_do_aside(engine, writes) &&
		     signals_free(engine, writes, writes_do_aside);
	if (!is_through && !fate->has_warned)
		log_warn("rank %u cannot free its streams: none of its own gets through "
			 "to the GPU (%s); fewer streams help, or more "
			 "CUDA_DEVICE_MAX_CONNECTIONS",
			engine->rank, err_last());
	fate->has_warned = fate->has_warned || !is_through;
	pthread_mutex_unlock(&fate->freeing);
	free(writes);
}
