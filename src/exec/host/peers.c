#include "exec/host/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "exec/host/state.h"
#include "link/region.h"

enum {
	DEATH_MS =
		100, /* a dying process loses its memory a little before its end shows */
	/* whoever ends or gives up elsewhere is known to everybody sooner, also where
	 * many processes share a core */
	WIRE_MS = 70,
	WIRE_BUSY_MS = 250,
	SETTLE_US = 1000,
	LEAVE_US = 100,		   /* between looks */
	LEAVE_NS = 5000000,	   /* for ranks of other processes, all together */
	LEAVE_HERE_NS = 1000000000 /* for threads, which are never stopped alone */
};

enum err host_failed_check(struct host_engine *engine, uint64_t number)
{
	return health_failed(
		engine->health, number + engine->calls.ahead, &engine->culprit);
}

enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what)
{
	return health_check(engine->health, needed, what, &engine->culprit);
}

/* Who has left has made all its calls, and nobody touches its memory any more. */
static bool has_not_left(const void *what, uint32_t rank)
{
	const struct host_engine *engine = what;

	return !health_has_left(engine->health, rank);
}

void host_touch(const struct host_engine *engine, enum touch_kind kind)
{
	if (engine->calls.share)
		return;
	atomic_store_explicit(&peer_status(engine->peers, engine->rank)->touching, kind,
		memory_order_release);
}

static bool is_here(const struct host_engine *engine, uint32_t rank)
{
	return engine->peers->peer[rank].kind == PEER_HERE;
}

/* Nothing of that process runs any more: then no store of it is on the way. The pulse
 * alone stops with the first thread of a dying process. */
static bool is_quiet(const struct host_engine *engine, uint32_t rank)
{
	return atomic_load(&peer_status(engine->peers, rank)->touching) == TOUCH_NONE ||
	       health_has_ended(engine->health, rank);
}

/* Bytes of OUT that others were to write: all but what this rank writes itself. */
static void shown_withdraw(struct host_engine *engine)
{
	const struct host_shown *shown = &engine->memory.shown;
	const struct program *program = shown->shape->program;
	uint32_t chunks = (uint32_t)((shown->bytes + shown->shape->chunk_bytes - 1) /
				     shown->shape->chunk_bytes);
	bool *is_mine = calloc(chunks, 1); /* without memory for it all is withdrawn */

	for (uint32_t i = 0; is_mine && i < program->lane_count; i++)
		for (uint32_t m = 0; m < program->lanes[i].count; m++) {
			const struct move *move = &program->lanes[i].moves[m];

			for (uint32_t o = 0; o < move->output_count; o++) {
				const struct place *place =
					&program->places[move->output_first + o];

				if (place->rank == engine->rank &&
					place->space == PLACE_OUT)
					for (uint32_t j = 0; j < move->count; j++)
						if (place->chunk + j < chunks)
							is_mine[place->chunk + j] = true;
			}
		}
	for (uint32_t first = 0, end; first < chunks; first = end) {
		size_t from = first * shown->shape->chunk_bytes, to;

		for (end = first + 1;
			end < chunks && (!is_mine || is_mine[end] == is_mine[first]);)
			end++;
		to = end * shown->shape->chunk_bytes;
		if (!is_mine || !is_mine[first])
			region_withdraw(shown->out + from,
				(to < shown->bytes ? to : shown->bytes) - from);
	}
	free(is_mine);
}

/*
 * A peer raises its flag and then looks whether we have failed; we have failed and then
 * look at its flag. Neither uses a barrier, which every call would pay for; instead we
 * let a time pass in which any store of theirs has long been seen.
 */
bool host_peers_leave(struct host_engine *engine)
{
	bool is_stuck = false, in_window = false;
	uint64_t start;

	usleep(SETTLE_US);
	start = clock_ns();
	for (uint32_t i = 0; i < engine->peers->local_count; i++) {
		uint32_t rank = engine->peers->locals[i];
		uint64_t limit = is_here(engine, rank) ? LEAVE_HERE_NS : LEAVE_NS;

		while (rank != engine->rank && !is_quiet(engine, rank) &&
			clock_ns() - start < limit)
			usleep(LEAVE_US);
		if (rank == engine->rank || is_here(engine, rank) ||
			is_quiet(engine, rank))
			continue;
		is_stuck = true;
		in_window = in_window ||
			    atomic_load(&peer_status(engine->peers, rank)->touching) ==
				    TOUCH_WINDOW;
	}
	if (is_stuck && engine->memory.shown.out)
		shown_withdraw(engine);
	engine->memory.shown.out = NULL;
	return in_window;
}

enum err host_blame(struct host_engine *engine, enum err code)
{
	enum err gone = OK;

	for (int i = 0; i < DEATH_MS && !gone; i++) {
		gone = host_peers_check(engine, has_not_left, engine);
		if (!gone)
			usleep(1000);
	}
	return gone ? gone : code;
}

static int wire_patience_ms(void)
{
	double load;

	return getloadavg(&load, 1) == 1 && load > (double)sysconf(_SC_NPROCESSORS_ONLN)
		       ? WIRE_BUSY_MS
		       : WIRE_MS;
}

/* How long must we have known of a death to be sure that the rank we wait for has not
 * begun the call? One of this host shows when it has; of another host's we know when its
 * first message has come, which may be on the way. UINT64_MAX: it has. */
static uint64_t bereaved_ms(const struct host_engine *engine, const struct doing *doing)
{
	uint64_t number = doing->want >> BOARD_CALL_SHIFT;
	const struct card *card = peer_card(engine->peers, doing->rank, number);

	if (position_reached(atomic_load(&card->position[0]), number << BOARD_CALL_SHIFT))
		return UINT64_MAX;
	return peer_is_local(engine->peers, doing->rank) ? 0
							 : (uint64_t)wire_patience_ms();
}

/*
 * Nobody completes a call without a root before everybody has begun it. So while some
 * rank has not, who died has died in this call or before, and cannot be there for the
 * next. In a call with a root it may have done its part and ended as it should. When the
 * rank we wait for has begun the call, it needs the dead one, or goes on, or waits for
 * such a rank.
 */
enum err host_bereaved_check(
	struct host_engine *engine, const struct doing *doing, uint64_t *since_ns)
{
	uint32_t lost;

	if (doing->kind != DOING_COLL || coll_has_root((enum coll)doing->sign.coll) ||
		!health_any_lost(engine->health, doing->number, &lost)) {
		*since_ns = 0;
		return OK;
	}
	if (!*since_ns)
		*since_ns = clock_ns();
	if ((clock_ns() - *since_ns) / CLOCK_MS < bereaved_ms(engine, doing))
		return OK;
	return health_lost(engine->health, lost, &engine->culprit);
}

enum err host_blame_wire(struct host_engine *engine, uint32_t rank, enum err code)
{
	int patience_ms = wire_patience_ms();
	char how[ERR_TEXT_BYTES];

	snprintf(how, sizeof(how), "%s", err_last());
	for (int i = 0; i < patience_ms; i++) {
		enum err gone = host_peers_check(engine, has_not_left, engine);

		if (gone)
			return gone;
		if (engine->abort && atomic_load(engine->abort))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		engine->culprit = rank;
		if (health_has_left(engine->health, rank))
			return health_left(rank);
		usleep(1000);
	}
	return err_set(
		code, "rank %u cannot reach rank %u: %.400s", engine->rank, rank, how);
}

enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer)
{
	enum err e = ref_follow(engine->refs, rank, ref, directory, pointer);

	return e ? host_blame(engine, e) : OK;
}
