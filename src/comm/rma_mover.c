#include "comm/rma_mover.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"
#include "comm/state.h"

enum {
	FLIGHTS_MAX = 16,  /* requests that the plugin has at once */
	ORDERS_MAX = 1024, /* that nobody waits for */
	EAGER_TURNS = 64,  /* without news before it naps */
	NAP_FIRST_US = 20,
	NAP_FLIGHT_US = 50, /* at most, while the plugin has something to do for us */
	NAP_US = 1000,
	LOOK_US = 200,
	GRACE_MS = 200
};
/* So many signals at once are none that somebody gave. */
#define SIGNALS_AT_ONCE (1ull << 31)

/* A put, cut as the plugin takes it. */
struct rma_order {
	struct far_order head;
	struct rma_put put;
	size_t asked;	    /* bytes that the plugin was asked for */
	uint32_t under_way; /* requests of it */
	bool is_asked, is_waited_for;
	struct rma_order *next;
	struct rma_order *next_waited; /* of all that somebody has to end */
};

struct rma_flight {
	struct rma_order *order;
	void *request;
};

struct rma_mover {
	struct rma_mover_args args;
	pthread_t thread;
	pthread_mutex_t lock;		 /* guards what others see of the orders */
	struct rma_order *first, **last; /* to be asked for, in order; guarded */
	struct rma_order *waited;	 /* owned, a list; guarded */
	uint32_t order_count;		 /* not over; guarded */
	enum err error;			 /* the first failure; guarded */
	char reason[ERR_TEXT_BYTES];
	atomic_bool has_failed, is_ending, has_ended, is_trusted, is_stopped, is_attended;
	_Atomic uint32_t bell, sleepers;
	uint64_t failed_ns;
	bool has_told;
	uint64_t *seen; /* owned: signals that were told */
	struct rma_flight flights[FLIGHTS_MAX];
	uint32_t flight_count;
};

static void bell_ring(struct rma_mover *mover)
{
	atomic_fetch_add(&mover->bell, 1);
	if (atomic_load(&mover->sleepers))
		futex_wake(&mover->bell);
}

/* ---- its thread: puts ---- */

/* With the lock, so that whoever waits does not free it meanwhile. */
static void order_over(struct rma_mover *mover, struct rma_order *order)
{
	mover->order_count--;
	if (order->is_waited_for)
		word_publish(&order->head.over, &order->head.sleepers, 1);
	else
		free(order);
}

/* What the plugin was asked for is left to it, and what it was not never will be. With
 * the lock. */
static void orders_drop(struct rma_mover *mover)
{
	struct rma_order *order;

	while ((order = mover->first)) {
		mover->first = order->next;
		order->is_asked = true;
		if (!order->under_way)
			order_over(mover, order);
	}
	mover->last = &mover->first;
	for (uint32_t i = 0; i < mover->flight_count; i++)
		if (!--mover->flights[i].order->under_way)
			order_over(mover, mover->flights[i].order);
	mover->flight_count = 0;
}

static void mover_fail(struct rma_mover *mover, enum err e)
{
	pthread_mutex_lock(&mover->lock);
	mover->error = e;
	snprintf(mover->reason, sizeof(mover->reason), "%s", err_last());
	atomic_store(&mover->has_failed, true);
	orders_drop(mover);
	pthread_mutex_unlock(&mover->lock);
	mover->failed_ns = clock_ns();
}

/* A plugin may fail because the other end has closed what is not needed any more. */
static bool has_company(const struct comm *comm)
{
	for (uint32_t i = 0; i < comm->rank_count; i++)
		if (atomic_load(&peer_status(comm->peers, i)->state) != RANK_LIVE)
			return false;
	return true;
}

/* Who puts hears of a failure at once, and everybody a moment later. */
static void failure_tell(struct rma_mover *mover)
{
	struct comm *comm = mover->args.comm;

	if (mover->has_told || clock_ns() - mover->failed_ns < GRACE_MS * CLOCK_MS)
		return;
	mover->has_told = true;
	if (atomic_load(&mover->is_trusted) && !atomic_load(&mover->is_stopped) &&
		has_company(comm)) {
		err_adopt(mover->reason);
		comm_trouble(comm, mover->error, comm->rank);
	}
}

static struct rma_order *order_next(struct rma_mover *mover)
{
	struct rma_order *order;

	pthread_mutex_lock(&mover->lock);
	order = mover->first;
	pthread_mutex_unlock(&mover->lock);
	return order;
}

static void order_pop(struct rma_mover *mover)
{
	pthread_mutex_lock(&mover->lock);
	mover->first->is_asked = true;
	mover->first = mover->first->next;
	if (!mover->first)
		mover->last = &mover->first;
	pthread_mutex_unlock(&mover->lock);
}

/* One piece; the last has the signal. False: the plugin does not take it now. */
static enum err piece_ask(
	struct rma_mover *mover, struct rma_order *order, bool *is_taken)
{
	size_t most = net_rma_put_max(mover->args.net);
	size_t left = order->put.bytes - order->asked;
	struct rma_put piece = order->put;
	void *request = NULL;
	enum err e;

	piece.bytes = left < most ? left : most;
	piece.from += order->asked;
	piece.to += order->asked;
	if (piece.bytes < left)
		piece.signal_known = NULL;
	e = net_rma_put(mover->args.net, &piece, &request);
	*is_taken = request != NULL;
	if (e || !request)
		return e;
	mover->flights[mover->flight_count++] = (struct rma_flight){order, request};
	order->under_way++;
	order->asked += piece.bytes;
	if (piece.signal_known)
		order_pop(mover);
	return OK;
}

static enum err orders_ask(struct rma_mover *mover, bool *has_moved)
{
	struct rma_order *order;
	bool is_taken = true;
	enum err e = OK;

	while (!e && is_taken && mover->flight_count < FLIGHTS_MAX &&
		(order = order_next(mover))) {
		e = piece_ask(mover, order, &is_taken);
		*has_moved = *has_moved || is_taken;
	}
	return e;
}

static void flight_end(struct rma_mover *mover, uint32_t i)
{
	struct rma_order *order = mover->flights[i].order;

	pthread_mutex_lock(&mover->lock);
	mover->flights[i] = mover->flights[--mover->flight_count];
	if (!--order->under_way && order->is_asked)
		order_over(mover, order);
	pthread_mutex_unlock(&mover->lock);
}

static enum err flights_test(struct rma_mover *mover, bool *has_moved)
{
	enum err e = OK;

	for (uint32_t i = mover->flight_count; i-- > 0 && !e;) {
		bool done = false;

		e = net_rma_test(mover->args.net, mover->flights[i].request, &done);
		if (!e && done) {
			flight_end(mover, i);
			*has_moved = true;
		}
	}
	return e;
}

/* ---- its thread: what comes ---- */

static void signals_tell(struct comm *comm, uint32_t from, uint32_t index, uint64_t count)
{
	struct signal *landed = peer_shadow_word(comm->peers, from, SHADOW_LANDED);
	struct signal *signal = peer_shadow_signal(comm->peers, from, index);

	word_publish(
		&signal->given, &signal->sleepers, atomic_load(&signal->given) + count);
	atomic_fetch_add(&landed->given, count * FAR_PUT_COST);
	host_engine_wake(comm->engine);
}

static enum err signals_lie(const struct rma_mover *mover, uint32_t from, uint64_t value)
{
	return err_set(ERR_SYSTEM,
		"the one-sided plugin %s (v%d) shows %llu signals of rank %u where it "
		"has shown others before: nobody else writes there",
		net_rma_name(mover->args.net), net_rma_version(mover->args.net),
		(unsigned long long)value, from);
}

static enum err signals_look(struct rma_mover *mover, uint32_t from, bool *has_moved)
{
	for (uint32_t i = 0; i < mover->args.signal_count; i++) {
		size_t at = (size_t)from * mover->args.signal_count + i;
		/* pairs with the plugin's store: what was put before is there too */
		uint64_t value = __atomic_load_n(
			&mover->args.signals[at], __ATOMIC_ACQUIRE);
		uint64_t fresh = value - mover->seen[at];

		if (!fresh)
			continue;
		if (fresh > SIGNALS_AT_ONCE)
			return signals_lie(mover, from, value);
		mover->seen[at] = value;
		signals_tell(mover->args.comm, from, i, fresh);
		*has_moved = true;
	}
	return OK;
}

static enum err mover_turn(struct rma_mover *mover, bool *has_moved)
{
	const struct comm *comm = mover->args.comm;
	enum err e = atomic_load(&mover->is_stopped) ? OK : orders_ask(mover, has_moved);

	if (!e)
		e = flights_test(mover, has_moved);
	if (!e)
		e = net_rma_progress(mover->args.net);
	for (uint32_t i = 0;
		i < comm->rank_count && !e && atomic_load(&mover->is_trusted); i++)
		if (!peer_is_local(comm->peers, i))
			e = signals_look(mover, i, has_moved);
	return e;
}

static void mover_nap(struct rma_mover *mover, uint32_t turns)
{
	uint32_t heard = atomic_load(&mover->bell), nap_us = NAP_US;
	uint32_t doublings = (turns - EAGER_TURNS) / 4;

	if (doublings < 5)
		nap_us = NAP_FIRST_US << doublings;
	if (mover->flight_count && nap_us > NAP_FLIGHT_US)
		nap_us = NAP_FLIGHT_US;
	if (order_next(mover)) /* the plugin has no room, or it has just come */
		nap_us = NAP_FIRST_US;
	atomic_fetch_add(&mover->sleepers, 1);
	futex_wait(&mover->bell, heard, nap_us);
	atomic_fetch_sub(&mover->sleepers, 1);
}

static void *mover_main(void *argument)
{
	struct rma_mover *mover = argument;
	uint32_t turns = 0;

	comm_speak(mover->args.comm);
	while (!atomic_load(&mover->is_ending)) {
		bool has_moved = false;
		enum err e = atomic_load(&mover->has_failed)
				     ? OK
				     : mover_turn(mover, &has_moved);

		if (e)
			mover_fail(mover, e);
		if (atomic_load(&mover->has_failed))
			failure_tell(mover);
		if (has_moved || atomic_exchange(&mover->is_attended, false))
			turns = 0;
		else if (++turns <= EAGER_TURNS)
			sched_yield();
		else
			mover_nap(mover, turns);
	}
	atomic_store(&mover->has_ended, true);
	return NULL;
}

/* ---- others ---- */

/* A job that was given up ends nothing. */
static void mover_free(struct rma_mover *mover)
{
	struct rma_order *order;

	orders_drop(mover);
	while ((order = mover->waited)) {
		mover->waited = order->next_waited;
		free(order);
	}
	pthread_mutex_destroy(&mover->lock);
	free(mover->seen);
	free(mover);
}

enum err rma_mover_start(const struct rma_mover_args *args, struct rma_mover **made)
{
	struct rma_mover *mover = calloc(1, sizeof(*mover));
	size_t count = (size_t)args->comm->rank_count * args->signal_count;
	int rc;

	if (mover)
		mover->seen = calloc(count, sizeof(*mover->seen));
	if (!mover || !mover->seen) {
		free(mover);
		return err_set(ERR_SYSTEM, "no memory for a one-sided plugin");
	}
	mover->args = *args;
	mover->last = &mover->first;
	for (uint32_t rank = 0; rank < args->comm->rank_count; rank++)
		mover->seen[(size_t)rank * args->signal_count] = 1;
	pthread_mutex_init(&mover->lock, NULL);
	rc = thread_start_roomy(&mover->thread, "weft-rma", mover_main, mover);
	if (!rc) {
		*made = mover;
		return OK;
	}
	mover_free(mover);
	return err_set(ERR_SYSTEM, "no thread for a one-sided plugin: %s", strerror(rc));
}

/* It has not returned from the plugin: says so, the first time. */
static enum err stuck_check(struct rma_mover *mover)
{
	int64_t limit_s = param_int(PARAM_PLUGIN_SEC);
	struct net_rma *net = mover->args.net;
	uint64_t since_ns;
	const char *function = net_rma_calling(net, &since_ns);

	if (!function || !clock_is_over(since_ns, limit_s))
		return OK;
	net_rma_abandon(net);
	return err_set(ERR_SYSTEM,
		"the one-sided plugin %s (v%d) is stuck: %s has not returned for %lld s "
		"(WEFT_PLUGIN_SEC)",
		net_rma_name(net), net_rma_version(net), function, (long long)limit_s);
}

bool rma_mover_end(struct rma_mover *mover)
{
	atomic_store(&mover->is_ending, true);
	bell_ring(mover);
	while (!atomic_load(&mover->has_ended)) {
		if (stuck_check(mover)) {
			pthread_detach(mover->thread);
			return false;
		}
		usleep(LOOK_US);
	}
	pthread_join(mover->thread, NULL);
	mover_free(mover);
	return true;
}

void rma_mover_trust(struct rma_mover *mover)
{
	atomic_store(&mover->is_trusted, true);
	bell_ring(mover);
}

static enum err mover_reason(struct rma_mover *mover)
{
	enum err e;

	pthread_mutex_lock(&mover->lock);
	e = mover->error;
	if (e)
		err_adopt(mover->reason);
	pthread_mutex_unlock(&mover->lock);
	return e;
}

enum err rma_mover_check(struct rma_mover *mover)
{
	enum err e = mover_reason(mover);

	return e ? e : stuck_check(mover);
}

void rma_mover_attend(struct rma_mover *mover)
{
	if (!atomic_exchange(&mover->is_attended, true))
		bell_ring(mover);
}

static enum err order_add(struct rma_mover *mover, struct rma_order *order)
{
	enum err e;

	pthread_mutex_lock(&mover->lock);
	e = mover->error;
	if (e)
		err_adopt(mover->reason);
	else if (!order->is_waited_for && mover->order_count >= ORDERS_MAX)
		e = ERR_AGAIN;
	if (!e) {
		mover->order_count++;
		*mover->last = order;
		mover->last = &order->next;
	}
	if (!e && order->is_waited_for) {
		order->next_waited = mover->waited;
		mover->waited = order;
	}
	pthread_mutex_unlock(&mover->lock);
	if (!e)
		bell_ring(mover);
	return e;
}

enum err rma_mover_put(
	struct rma_mover *mover, const struct rma_put *put, struct far_order **order)
{
	struct rma_order *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to put %zu bytes", put->bytes);
	fresh->put = *put;
	fresh->is_waited_for = order != NULL;
	e = order_add(mover, fresh);
	if (e) {
		free(fresh);
		return e;
	}
	if (order)
		*order = &fresh->head;
	return OK;
}

enum err rma_mover_over(struct rma_mover *mover, struct far_order *order)
{
	struct rma_order *ended = (struct rma_order *)order, **link = &mover->waited;

	pthread_mutex_lock(&mover->lock);
	while (*link != ended)
		link = &(*link)->next_waited;
	*link = ended->next_waited;
	pthread_mutex_unlock(&mover->lock);
	free(ended);
	return mover_reason(mover);
}

void rma_mover_settle(struct rma_mover *mover, uint64_t limit_ns)
{
	uint64_t start_ns = clock_ns();
	bool is_busy = true;

	while (is_busy && !rma_mover_check(mover) && clock_ns() - start_ns < limit_ns) {
		pthread_mutex_lock(&mover->lock);
		is_busy = mover->order_count;
		pthread_mutex_unlock(&mover->lock);
		if (is_busy)
			usleep(LOOK_US);
	}
}

void rma_mover_stop(struct rma_mover *mover)
{
	atomic_store(&mover->is_stopped, true);
}
