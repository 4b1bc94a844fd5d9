#include "comm/inside.h"

#include <unistd.h>

#include "comm/state.h"

/* A thread's number is the system's, so that a debugger knows it too. */
#define STREAM_BIT 0x80000000u
#define CLOSED	   0x7fffffffu
enum { CLOSE_SLEEP_US = 200 };
static _Thread_local unsigned own;

static unsigned own_number(void)
{
	if (!own)
		own = (unsigned)gettid();
	return own;
}

void inside_be_stream(void)
{
	own = (unsigned)gettid() | STREAM_BIT;
}

static __attribute__((noinline)) enum err refuse(const struct comm *comm, unsigned other)
{
	if (other == CLOSED)
		return err_set(ERR_REMOTE, "the communicator was aborted");
	return err_set(ERR_USAGE,
		"thread %u may not use comm %p now: %sthread %u is in a call on it, and "
		"one thread at a time may be",
		own_number() & ~STREAM_BIT, (const void *)comm,
		other & STREAM_BIT ? "a stream's " : "", other & ~STREAM_BIT);
}

/* Take a word that is free. Whoever holds it keeps it. */
static enum err take(const struct comm *comm, atomic_uint *word)
{
	unsigned other = 0;

	if (atomic_compare_exchange_strong_explicit(word, &other, own_number(),
		    memory_order_acquire, memory_order_relaxed))
		return OK;
	return refuse(comm, other);
}

enum err inside_enter(struct comm *comm)
{
	if (atomic_load_explicit(&comm->turns.busy, memory_order_acquire) &&
		!(own_number() & STREAM_BIT))
		comm_drain(comm);
	return take(comm, &comm->turns.inside);
}

/* A plain store: a locked instruction here would wait for every store the call made. */
void inside_leave(struct comm *comm)
{
	atomic_store_explicit(&comm->turns.inside, 0, memory_order_release);
}

bool inside_is_mine(const struct comm *comm)
{
	return atomic_load_explicit(&comm->turns.inside, memory_order_relaxed) ==
	       own_number();
}

static enum err enqueue_on(struct comm *comm)
{
	unsigned other;
	enum err e = take(comm, &comm->turns.enqueuing);

	if (e)
		return e;
	other = atomic_load(&comm->turns.inside);
	if (!other || other & STREAM_BIT)
		return OK;
	atomic_store_explicit(&comm->turns.enqueuing, 0, memory_order_release);
	return refuse(comm, other);
}

enum err inside_enqueue(const struct comm_call *calls, uint32_t count, bool *first)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		struct comm *comm = calls[i].comm;

		if (atomic_load(&comm->turns.enqueuing) == own_number())
			continue;
		e = enqueue_on(comm);
		first[i] = !e;
	}
	if (e)
		inside_enqueued(calls, count, first);
	return e;
}

void inside_enqueued(const struct comm_call *calls, uint32_t count, const bool *first)
{
	for (uint32_t i = 0; i < count; i++)
		if (first[i])
			atomic_store_explicit(
				&calls[i].comm->turns.enqueuing, 0, memory_order_release);
}

static void word_close(atomic_uint *word)
{
	unsigned other = 0;

	while (!atomic_compare_exchange_strong(word, &other, CLOSED)) {
		other = 0;
		usleep(CLOSE_SLEEP_US);
	}
}

void inside_close(struct comm *comm)
{
	word_close(&comm->turns.inside);
	word_close(&comm->turns.enqueuing);
}
