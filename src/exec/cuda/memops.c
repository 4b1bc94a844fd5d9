#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "exec/cuda/aside.h"
#include "exec/cuda/state.h"

enum {
	BATCH_MAX = 200,	/* operations the driver takes at a time, and some less */
	FREE_WAIT = 0x3fffffff, /* so far ahead that every wait is over */
	THROUGH_MS = 5,		/* until a stream of ours is said to be stuck */
	GRACE_MS = 10,		/* for a launch that was under way */
	SETTLE_US = 5000,	/* the same where nothing tells: 1 GiB takes 2 ms */
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

cu_ptr mail_done_at(const struct cuda_engine *engine, bool is_constant, uint32_t rank)
{
	uint32_t told = rank || atomic_load(&engine->tells_itself) ? rank : 1;

	return mail_at(
		engine->halls[told], is_constant, told, offsetof(struct dev_mail, done));
}

/* ---- freeing ---- */

/* Words to be written, all of them at about the same time. */
enum { WRITES_MAX = sizeof(((struct words *)0)->values) / sizeof(uint32_t) };
struct writes {
	uint32_t count;
	struct {
		cu_ptr address;
		uint32_t value;
	} list[WRITES_MAX];
};

static void writes_add(struct writes *writes, cu_ptr address, uint32_t value)
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
		memops_submit(engine, engine->watcher, ops, count);
	}
}

/* By copies, which have channels of their own. */
static void writes_copy(struct cuda_engine *engine, const struct writes *writes)
{
	for (uint32_t i = 0; i < writes->count; i++) {
		engine->words->values[i] = writes->list[i].value;
		engine->driver->memcpy_async(writes->list[i].address,
			engine->words_device + offsetof(struct words, values) +
				i * sizeof(uint32_t),
			sizeof(uint32_t), engine->rescue);
	}
}

/* False: it does not get through now. */
static bool writes_do(struct cuda_engine *engine, const struct writes *writes)
{
	writes_submit(engine, writes);
	if (stream_is_through(engine, engine->watcher))
		return true;
	writes_copy(engine, writes);
	return stream_is_through(engine, engine->rescue);
}

/* Leader's way: no launch for this call, or a later one, finds what it waits for, also
 * one that a stopped process makes when it goes on. */
static void mails_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	cu_ptr hall = engine->halls[0];

	for (uint32_t r = 1; r < engine->rank_count; r++) {
		writes_add(writes,
			mail_at(hall, false, r, offsetof(struct dev_mail, ready)),
			engine->call + FREE_WAIT);
		writes_add(writes,
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)),
			FREE_WAIT);
	}
}

static cu_ptr posted_at(cu_ptr hall, uint32_t from, uint32_t slot)
{
	return hall + offsetof(struct dev_hall, boxes) +
	       (from * BOX_SLOTS + slot) * sizeof(struct dev_slot) +
	       offsetof(struct dev_slot, posted);
}

/* .. and nobody takes what we have sent. */
static void sends_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	for (uint32_t r = 0; r < engine->rank_count; r++)
		for (uint32_t slot = 0; slot < BOX_SLOTS && r != engine->rank; slot++)
			if (engine->halls[r])
				writes_add(writes,
					posted_at(engine->halls[r], engine->rank, slot),
					FREE_WAIT);
}

/* Resident way: who waits for what this rank says of its call, or will, waits on. A
 * process that was stopped may launch long after this rank has its memory back. The
 * kernels that this rank has enqueued say it once more before they see that they are to
 * stop: so it is taken back again when they have. */
static void lines_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	for (uint32_t r = 0; r < engine->rank_count; r++)
		for (uint32_t word = 0; word < LINE_WORDS && engine->halls[r]; word++)
			writes_add(writes,
				engine->halls[r] + offsetof(struct dev_hall, lines) +
					(engine->rank * LINE_WORDS + word) *
						sizeof(uint64_t) +
					sizeof(uint32_t),
				engine->call - FREE_WAIT);
}

/* How far a word of the device is beyond the number of the last call; false when it
 * cannot be read. */
static bool word_see(struct cuda_engine *engine, cu_ptr word, int32_t *beyond)
{
	if (engine->driver->memcpy_async(
		    engine->words_device + offsetof(struct words, seen), word,
		    sizeof(uint32_t), engine->watcher) ||
		!stream_is_through(engine, engine->watcher))
		return false;
	*beyond = (int32_t)(__atomic_load_n(&engine->words->seen, __ATOMIC_ACQUIRE) -
			    engine->call);
	return true;
}

/* Where the device says which collective was the last to end. */
static cu_ptr done_at(const struct cuda_engine *engine)
{
	return engine->way == CUDA_WAY_LEADER
		       ? mail_done_at(engine, false, engine->rank)
		       : engine->hall + offsetof(struct dev_hall, call);
}

/* A word that goes beyond was set free. */
bool memops_are_done(struct cuda_engine *engine)
{
	bool is_done = engine->way != CUDA_WAY_THREADS && !engine->was_captured;
	int32_t beyond = 0;

	if (!is_done || !engine->call)
		return is_done;
	pthread_mutex_lock(&engine->fate.freeing);
	is_done = word_see(engine, done_at(engine), &beyond) && !beyond;
	pthread_mutex_unlock(&engine->fate.freeing);
	return is_done;
}

/* Has the launch before ended that was under way, perhaps, when its words went? Whoever
 * launched it says so on the device. */
static void launch_await(struct cuda_engine *engine)
{
	uint64_t end = clock_ns() + GRACE_MS * 1000000ull;
	int32_t beyond = 0;

	if (engine->way != CUDA_WAY_LEADER || engine->was_captured || !engine->call) {
		usleep(SETTLE_US);
		return;
	}
	while (word_see(engine, done_at(engine), &beyond) && beyond < 0 &&
		clock_ns() < end)
		usleep(NAP_US);
}

/* What this rank's streams wait for: all of it in its own hall. It is written again and
 * again: streams that are free all at once tell of their calls in any order, and a word
 * can go back. */
static void waits_free(struct cuda_engine *engine, struct writes *writes)
{
	cu_ptr own = engine->hall;

	if (engine->way == CUDA_WAY_LEADER) {
		writes_add(writes,
			mail_at(own, false, engine->rank,
				offsetof(struct dev_mail, done)),
			engine->call + FREE_WAIT);
		if (engine->rank)
			writes_add(writes, mail_done_at(engine, true, engine->rank),
				FREE_WAIT);
		else
			mails_withdraw(engine, writes);
	}
	if (engine->way == CUDA_WAY_RESIDENT)
		writes_add(writes, own + offsetof(struct dev_hall, call),
			engine->call + FREE_WAIT);
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		for (uint32_t slot = 0; slot < BOX_SLOTS; slot++) {
			writes_add(writes, posted_at(own, r, slot), FREE_WAIT);
			writes_add(writes,
				own + offsetof(struct dev_hall, taken) +
					(r * BOX_SLOTS + slot) * sizeof(uint32_t),
				FREE_WAIT);
		}
		writes_add(
			writes, signal_at(own, r, 0), engine->awaited[0][r] + FREE_WAIT);
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
			if (!engine->awaited[s][r])
				continue;
			writes_add(writes, signal_at(engine->hall, r, s),
				engine->awaited[s][r] + FREE_WAIT);
			if (writes->count < WRITES_MAX)
				continue;
			is_through = write(engine, writes) && is_through;
			writes->count = 0;
		}
	return (!writes->count || write(engine, writes)) && is_through;
}

/* Words of others' first, which tell that our memory is not to be used any more. */
static bool promises_withdraw(struct cuda_engine *engine, struct writes *writes)
{
	writes->count = 0;
	if (engine->way == CUDA_WAY_LEADER && engine->halls[0])
		mails_withdraw(engine, writes);
	if (engine->way == CUDA_WAY_LEADER)
		sends_withdraw(engine, writes);
	if (engine->way == CUDA_WAY_RESIDENT)
		lines_withdraw(engine, writes);
	return !writes->count || writes_do(engine, writes);
}

/* What is enqueued and not through stays enqueued: it is done as soon as one of our own
 * streams gets through. */
static bool words_free(struct cuda_engine *engine, struct writes *writes)
{
	bool was_stuck = atomic_load(&engine->fate.is_stuck);

	if (was_stuck && engine->driver->stream_query(engine->watcher) == CU_NOT_READY)
		return false;
	if (!promises_withdraw(engine, writes))
		return false;
	if (!engine->fate.is_freed && engine->way != CUDA_WAY_THREADS)
		launch_await(engine);
	engine->fate.is_freed = true;
	writes->count = 0;
	waits_free(engine, writes);
	if (engine->way == CUDA_WAY_RESIDENT)
		lines_withdraw(engine, writes);
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
