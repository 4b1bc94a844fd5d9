#include "exec/host/onesided.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "exec/host/peers.h"
#include "exec/host/state.h"

/* Find the signal's word, of a wait or of a put on this host. */
static enum err signal_meet(struct onesided *onesided)
{
	const struct host_engine *engine = onesided->engine;
	uint32_t from = onesided->awaited ? onesided->peer : engine->rank;
	uint32_t to = onesided->awaited ? engine->rank : onesided->peer;
	struct pair_room *pair;
	enum err e;

	if (onesided->word)
		return OK;
	if (!peer_is_local(engine->peers, from)) {
		onesided->word = peer_shadow_signal(
			engine->peers, from, onesided->signal);
		return OK;
	}
	e = peer_pair(engine->peers, from, to, &pair);
	if (!e)
		onesided->word = &pair->signals[onesided->signal];
	return e;
}

/* Where this rank counts it, in one of its two arrays. */
static size_t count_of(const struct onesided *onesided)
{
	return (size_t)onesided->peer * onesided->engine->peers->board->signal_count +
	       onesided->signal;
}

static enum err put_store(const struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;
	void *window;
	enum err e = host_failed_check(engine, UINT64_MAX);

	if (!e)
		e = host_follow(engine, onesided->peer, onesided->ref,
			onesided->directory, &window);
	if (!e)
		kernel_copy((char *)window + onesided->offset, onesided->data,
			onesided->bytes);
	return e;
}

/* ---- to a rank on another host ---- */

/* All that a rank has under way. */
enum { FAR_LIMIT = 1 << 20 };

static bool is_far_put(const struct onesided *onesided)
{
	return !onesided->awaited &&
	       !peer_is_local(onesided->engine->peers, onesided->peer);
}

static uint64_t under_way(const struct host_engine *engine, uint32_t rank)
{
	struct signal *receipt = peer_shadow_word(engine->peers, rank, SHADOW_RECEIPT);
	uint64_t landed = atomic_load_explicit(&receipt->given, memory_order_acquire);

	return landed < engine->signals.puts[rank] ? engine->signals.puts[rank] - landed
						   : 0;
}

/* Who is gone sends no receipts. */
static bool is_well(const struct host_engine *engine, uint32_t rank)
{
	return atomic_load(&peer_status(engine->peers, rank)->state) == RANK_LIVE &&
	       !health_is_dead(engine->health, rank) &&
	       !(engine->abort && atomic_load(engine->abort));
}

static void puts_count(struct host_engine *engine)
{
	engine->signals.puts_bound = 0;
	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (engine->signals.puts[rank] && is_well(engine, rank))
			engine->signals.puts_bound += under_way(engine, rank);
}

static enum err piece_put(struct host_engine *engine, uint32_t to, struct far_put *put,
	const void *data, size_t bytes)
{
	enum err e;

	put->wants_receipt = put->wants_receipt ||
			     engine->signals.puts_bound >= FAR_LIMIT / 2;
	e = engine->far.put(engine->far.arg, to, put, data, bytes);
	if (e)
		return e;
	engine->signals.puts[to] += bytes + FAR_PUT_COST;
	engine->signals.puts_bound += bytes + FAR_PUT_COST;
	return OK;
}

/* Ask what has landed, but not in every turn of a wait. */
static enum err landing_ask(struct host_engine *engine, uint32_t rank)
{
	enum { ASK_NS = 500000 };
	struct far_put ask = {.wants_receipt = true};

	if (clock_ns() - engine->signals.asked_ns < ASK_NS)
		return OK;
	engine->signals.asked_ns = clock_ns();
	return piece_put(engine, rank, &ask, NULL, 0);
}

/* The other way is taken when all is there that went this one: else what was put last
 * could land first. */
static enum err way_take(struct host_engine *engine, uint32_t peer, bool by_port)
{
	enum err e;

	if (engine->signals.by_port[peer] == by_port)
		return OK;
	if (under_way(engine, peer)) {
		e = landing_ask(engine, peer);
		return e ? e : ERR_AGAIN;
	}
	engine->signals.by_port[peer] = by_port;
	return OK;
}

static struct port_put port_put_of(const struct onesided *onesided)
{
	return (struct port_put){.peer = onesided->peer,
		.signal = onesided->signal,
		.window = onesided->own_window,
		.offset = onesided->offset,
		.bytes = onesided->bytes,
		.data = onesided->data};
}

/* Does it go by the port? What has begun goes on as it began. */
static bool is_port_put(const struct onesided *onesided)
{
	const struct host_engine *engine = onesided->engine;
	const struct host_port *port = engine->far.port;
	struct port_put put = port_put_of(onesided);

	if (!port || onesided->done)
		return false;
	if (onesided->order)
		return true;
	if (!onesided->bytes && engine->signals.puts[onesided->peer])
		return engine->signals.by_port[onesided->peer];
	return port->takes(engine->far.arg, &put);
}

static enum err port_put_ask(struct onesided *onesided, uint64_t *count)
{
	struct host_engine *engine = onesided->engine;
	struct port_put put = port_put_of(onesided);
	enum err e = way_take(engine, onesided->peer, true);

	if (!e && onesided->bytes)
		e = host_failed_check(engine, UINT64_MAX);
	if (!e)
		e = engine->far.port->put(
			engine->far.arg, &put, onesided->bytes ? &onesided->order : NULL);
	if (e || (onesided->bytes && !onesided->order))
		return e ? e : ERR_AGAIN;
	engine->signals.puts[onesided->peer] += FAR_PUT_COST;
	++*count;
	return OK;
}

static enum err port_put_step(struct onesided *onesided, uint64_t *count)
{
	const struct host_far *far = &onesided->engine->far;
	struct far_order *order;
	enum err e = onesided->order ? OK : port_put_ask(onesided, count);

	if (e || !onesided->order)
		return e;
	if (!atomic_load_explicit(&onesided->order->over, memory_order_acquire))
		return ERR_AGAIN;
	order = onesided->order;
	onesided->order = NULL;
	onesided->done = onesided->bytes;
	return far->port->end(far->arg, order);
}

static enum err far_put_step(struct onesided *onesided, uint64_t *count)
{
	struct host_engine *engine = onesided->engine;
	enum err e = onesided->bytes ? host_failed_check(engine, UINT64_MAX) : OK;

	if (!e)
		e = way_take(engine, onesided->peer, false);
	while (!e) {
		size_t left = onesided->bytes - onesided->done;
		size_t piece = left < FAR_PUT_BYTES ? left : FAR_PUT_BYTES;
		struct far_put put = {.window = onesided->window,
			.signal = onesided->signal,
			.offset = onesided->offset + onesided->done,
			.given = piece == left ? *count + 1 : 0};

		if (engine->signals.puts_bound >= FAR_LIMIT / 2)
			puts_count(engine);
		if (engine->signals.puts_bound >= FAR_LIMIT)
			return ERR_AGAIN;
		e = piece_put(engine, onesided->peer, &put,
			onesided->data + onesided->done, piece);
		if (!e)
			onesided->done += piece;
		if (!e && piece == left) {
			++*count;
			return OK;
		}
	}
	return e;
}

/* A plugin may lose what it was given: nobody is waited for longer than it. */
static bool port_has_lost(
	const struct host_engine *engine, uint32_t rank, uint64_t since_ns)
{
	const struct host_far *far = &engine->far;
	int64_t limit_s = param_int(PARAM_PLUGIN_SEC);

	if (!far->port || !engine->signals.by_port[rank])
		return false;
	if (far->port->check(far->arg))
		return true;
	if (!clock_is_over(since_ns, limit_s))
		return false;
	log_warn("the one-sided plugin %s has not shown rank %u all that was put there "
		 "for %lld s (WEFT_PLUGIN_SEC); rank %u leaves without",
		far->port->name(far->arg), rank, (long long)limit_s, engine->rank);
	return true;
}

/* A receipt says what has landed by then, and what a plugin carries may come later. */
static void rank_flush(struct host_engine *engine, uint32_t rank)
{
	enum { LOOK_US = 1000 };
	struct signal *receipt = peer_shadow_word(engine->peers, rank, SHADOW_RECEIPT);
	uint64_t since_ns = clock_ns();

	while (under_way(engine, rank) && is_well(engine, rank) &&
		!port_has_lost(engine, rank, since_ns)) {
		if (engine->signals.by_port[rank])
			(void)landing_ask(engine, rank);
		word_sleep(&receipt->given, &receipt->sleepers,
			atomic_load(&receipt->given), LOOK_US);
	}
}

void onesided_flush(struct host_engine *engine)
{
	struct far_put ask = {.wants_receipt = true};

	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (engine->signals.puts[rank] && is_well(engine, rank))
			(void)piece_put(engine, rank, &ask, NULL, 0);
	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (engine->signals.puts[rank])
			rank_flush(engine, rank);
}

/* ---- all of them ---- */

static bool has_come(const struct onesided *onesided, uint64_t want)
{
	/* pairs with the release in word_publish(): the data are there too */
	return position_reached(
		atomic_load_explicit(&onesided->word->given, memory_order_acquire), want);
}

static enum err put_step(struct onesided *onesided, uint64_t *count)
{
	struct host_engine *engine = onesided->engine;
	enum err e;

	if (is_far_put(onesided))
		return is_port_put(onesided) ? port_put_step(onesided, count)
					     : far_put_step(onesided, count);
	e = signal_meet(onesided);
	if (!e && onesided->bytes) {
		host_touch(engine, TOUCH_WINDOW);
		e = put_store(onesided);
		host_touch(engine, TOUCH_NONE);
	}
	if (!e)
		word_publish(&onesided->word->given, &onesided->word->sleepers, ++*count);
	return e;
}

enum err onesided_step(struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;
	uint64_t *awaited = &engine->signals.awaited[count_of(onesided)];
	enum err e;

	if (!onesided->awaited)
		return put_step(onesided, &engine->signals.given[count_of(onesided)]);
	e = signal_meet(onesided);
	if (e)
		return e;
	if (!has_come(onesided, *awaited + onesided->awaited)) {
		if (engine->far.port && !peer_is_local(engine->peers, onesided->peer))
			engine->far.port->attend(engine->far.arg);
		return ERR_AGAIN;
	}
	*awaited += onesided->awaited;
	return OK;
}

uint64_t onesided_stamp(const struct onesided *onesided)
{
	return onesided->done;
}

static bool onesided_needs(const void *what, uint32_t rank)
{
	return rank == ((const struct onesided *)what)->peer;
}

/* What has come from another host may be wrong, which is found beside the call. */
static enum err landing_check(const struct host_engine *engine)
{
	const struct rank_status *status = peer_status(engine->peers, engine->rank);

	/* pairs with the last store of health_tell() */
	if (atomic_load(&status->state) != RANK_FAILED)
		return OK;
	return err_set((enum err)atomic_load(&status->code), "%s", status->sentence);
}

enum err onesided_check(struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;

	if (engine->abort && atomic_load(engine->abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	/* what was given before the other rank left can still be taken */
	if (onesided->awaited &&
		has_come(onesided,
			engine->signals.awaited[count_of(onesided)] + onesided->awaited))
		return OK;
	if (engine->far.put) {
		enum err e = landing_check(engine);

		if (!e && engine->far.port &&
			!peer_is_local(engine->peers, onesided->peer))
			e = engine->far.port->check(engine->far.arg);
		if (e)
			return e;
	}
	return host_peers_check(engine, onesided_needs, onesided);
}

struct doing onesided_doing(const struct onesided *onesided)
{
	uint64_t before = onesided->engine->signals.awaited[count_of(onesided)];

	if (is_far_put(onesided))
		return (struct doing){.kind = DOING_PUT,
			.rank = onesided->peer,
			.sign = {.count = onesided->bytes}};
	return (struct doing){.kind = DOING_SIGNAL,
		.rank = onesided->peer,
		.number = before,
		.want = before + onesided->awaited,
		.lane = onesided->signal,
		.sign = {.count = onesided->awaited}};
}

_Atomic uint64_t *onesided_word(
	const struct onesided *onesided, _Atomic uint32_t **sleepers)
{
	struct signal *signal;

	if (onesided->order) {
		*sleepers = &onesided->order->sleepers;
		return &onesided->order->over;
	}
	signal = is_far_put(onesided) ? peer_shadow_word(onesided->engine->peers,
						onesided->peer, SHADOW_RECEIPT)
				      : onesided->word;
	*sleepers = &signal->sleepers;
	return &signal->given;
}
