#include "exec/host/engine.h"

#include <stdlib.h>

#include "base/clock.h"
#include "exec/host/buffers.h"
#include "exec/host/carry.h"
#include "exec/host/move.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"
#include "exec/host/sign.h"
#include "exec/host/squad.h"
#include "exec/host/state.h"

/* Staged positions of a call that could have been direct lie above all direct ones, so an
 * early announcement of the latter is never taken for the former. */
static const uint64_t staged_offset = (uint64_t)1 << (BOARD_CALL_SHIFT - 1);

/* ---- positions ---- */

static void position_publish(struct host_call *call, uint32_t lane, uint64_t value)
{
	struct card *card = peer_card(
		call->engine->peers, call->engine->rank, call->number);

	word_publish(&card->position[lane], &card->sleepers, value);
}

/* Announce what has been retired so far. Nobody waits for others, or returns, before. */
static void untold_publish(struct host_call *call)
{
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		if (call->news.untold[lane]) {
			position_publish(call, lane, call->news.untold[lane]);
			call->news.untold[lane] = 0;
		}
	call->news.has_untold = false;
	if (!call->come.has_fetched) {
		call->come.has_fetched = true;
		host_fetch(call);
	}
}

static bool position_check(
	struct host_call *call, uint32_t rank, uint32_t lane, uint64_t want)
{
	struct host_engine *engine = call->engine;
	uint64_t *seen = &engine->seen.positions[rank * BOARD_LANES + lane];
	struct card *card;
	uint64_t now;

	if (position_reached(*seen, want))
		return true;
	if (call->news.has_untold)
		untold_publish(call);
	card = peer_card(engine->peers, rank, call->number);
	/* pairs with the release in word_publish() */
	now = atomic_load_explicit(&card->position[lane], memory_order_acquire);
	for (uint32_t i = call->patience; i && !position_reached(now, want); i--)
		now = atomic_load_explicit(&card->position[lane], memory_order_acquire);
	if (position_reached(now, call->base)) {
		if (!position_reached(*seen, call->base))
			sign_check(call, rank, card);
		*seen = now;
	}
	if (!call->error && position_reached(*seen, want))
		return true;
	host_call_block(call, rank, lane, want);
	return false;
}

/* ---- what the interpreter asks ---- */

static bool call_reached(void *engine, const struct wait *wait, uint32_t tile)
{
	struct host_call *call = engine;
	const struct program *program = call->shape->program;
	uint32_t length = program->lengths[wait->rank * SCHED_LANES_MAX + wait->lane];
	uint64_t retired = (uint64_t)tile * length + wait->position;

	if (wait->kind == WAIT_SENT)
		return remote_has_left(call, wait, tile);
	if (!peer_is_local(call->engine->peers, wait->rank))
		return remote_has_come(call, wait, tile);
	if (wait->kind == WAIT_LOCAL) {
		const struct lane *lane = &call->lanes[wait->lane];

		return (uint64_t)lane->tile * length + lane->move >= retired;
	}
	return position_check(call, wait->rank, wait->lane, call->origin + retired);
}

static void call_move(void *engine, const struct move *move, uint32_t lane, uint32_t tile)
{
	struct host_call *call = engine;
	enum err e = OK;

	if (call->come.has_landed[lane])
		call->come.has_landed[lane] = false;
	else if (move->output_count)
		e = host_move(call, move, tile);
	if (e && !call->error)
		call->error = host_blame(call->engine, e);
	if (move->sent_count && !call->error)
		remote_send(call, move, lane, tile);
}

/* In an eager call nobody waits for what we have received: the card is free again when we
 * are seen in a later call. Storing it anyway would make the next call's first store wait
 * for this line to come back from the peers. Saying nothing at all would leave a root
 * that only sends without a sign of life. A schedule for several hosts may use a slot
 * twice in a call, and then somebody does wait. */
static bool is_unheard(const struct host_call *call, const struct move *move)
{
	return call->plan->eager && !call->engine->remote && call->news.announced &&
	       move->op & IN_RECV && !move->send_count && call->shape->tile_count == 1;
}

static void call_publish(
	void *engine, const struct move *move, uint32_t lane, uint64_t retired)
{
	struct host_call *call = engine;

	/* what went wrong is not announced as done */
	if (call->error || is_unheard(call, move))
		return;
	call->news.announced = true;
	if (call->plan->terse) {
		call->news.untold[lane] = call->origin + retired;
		call->news.has_untold = true;
	} else {
		position_publish(call, lane, call->origin + retired);
	}
}

static const struct lane_ops host_ops = {
	.reached = call_reached, .run = call_move, .publish = call_publish};

/* ---- phases ---- */

/* Where the peer of this host that was seen last is, as far as we know. */
static uint64_t oldest_seen(const struct host_call *call)
{
	const struct host_engine *engine = call->engine;
	uint64_t oldest = call->base;

	for (uint32_t i = 0; i < engine->peers->local_count; i++) {
		uint32_t rank = engine->peers->locals[i];
		uint64_t seen = engine->seen.positions[rank * BOARD_LANES];

		if (rank != engine->rank && position_reached(oldest, seen))
			oldest = seen;
	}
	return oldest;
}

/* My card of BOARD_CARDS calls ago is free once everyone who can see it has entered the
 * call after it. */
static bool card_is_free(struct host_call *call)
{
	struct host_engine *engine = call->engine;
	uint64_t entered = call->number - BOARD_CARDS + 1;
	uint64_t want = entered << BOARD_CALL_SHIFT;

	if (call->number <= BOARD_CARDS || position_reached(engine->seen.entered, want))
		return true;
	for (; call->peer < engine->peers->local_count; call->peer++) {
		uint32_t rank = engine->peers->locals[call->peer];
		uint64_t *seen = &engine->seen.positions[rank * BOARD_LANES];
		uint64_t now;

		if (rank == engine->rank || position_reached(*seen, want))
			continue;
		now = atomic_load_explicit(
			&peer_card(engine->peers, rank, entered)->position[0],
			memory_order_acquire);
		if (!position_reached(now, want)) {
			host_call_block(call, rank, 0, want);
			return false;
		}
		sign_check_old(call, rank, entered);
		*seen = position_reached(now, *seen) ? now : *seen;
	}
	engine->seen.entered = oldest_seen(call);
	return !call->error;
}

/* The rank `steps` after ours on this host: nobody begins with the same peer as anybody
 * else. */
static uint32_t rank_after(const struct host_engine *engine, uint32_t steps)
{
	const struct peers *peers = engine->peers;
	uint32_t local = peers->local + steps;

	return peers
		->locals[local < peers->local_count ? local : local - peers->local_count];
}

/* Everybody's card is looked at next, one after the other: have all the lines come at
 * once. Who is late has to take its line back for it, which costs less. */
static void cards_fetch(const struct host_call *call)
{
	const struct host_engine *engine = call->engine;

	for (uint32_t i = 1; call->plan->terse && i < engine->peers->local_count; i++)
		__builtin_prefetch(
			peer_card(engine->peers, rank_after(engine, i), call->number));
}

void host_call_show(struct host_call *call)
{
	call->engine->memory.shown = (struct host_shown){.out = call->spec->out,
		.bytes = call->plan->out_bytes,
		.shape = &call->plan->shapes[MODE_DIRECT]};
	host_touch(call->engine, TOUCH_CALL);
}

/* Tiles whose buffers have come: whoever reads ours waits for positions of ours, and a
 * lane that has not begun a tile has announced none of it. */
static uint32_t tiles_come(const struct host_call *call, enum lower_mode mode)
{
	const struct shape *all = &call->plan->shapes[mode];
	size_t tiles = tide_come(call->spec->tide) / all->tile_bytes;

	return share_tiles(tiles < all->tile_count ? (uint32_t)tiles : all->tile_count,
		call->engine->calls.share, call->plan->squad);
}

/* Who arrives lends some of its first tile at once. The tiles of all modes are the same
 * between hosts, and only there do buffers come in parts. */
static bool first_has_come(struct host_call *call)
{
	const struct shape *all = &call->plan->shapes[MODE_STAGED];

	call->blocked.awaits_tide = call->spec->tide && !tiles_come(call, MODE_STAGED) &&
				    call->engine->calls.share < all->tile_count;
	return !call->blocked.awaits_tide;
}

/* Show the buffers and say that we are here. Where all of ours can be reached, what we
 * lend at once counts as sent already. */
static void call_arrive(struct host_call *call, struct card *card)
{
	const struct program *direct = call->plan->shapes[MODE_DIRECT].program;
	uint32_t lead = buffers_show(call, card) ? call->plan->lead : 0;

	host_call_show(call);
	for (uint32_t lane = 1; lane < direct->lane_count; lane++)
		position_publish(call, lane, call->base);
	position_publish(call, 0, call->base + lead);
	cards_fetch(call);
}

/* The way through the call is known: its positions, too. */
static void call_settle(struct host_call *call, enum lower_mode mode)
{
	bool could_be_direct = !call->plan->eager;

	call->shape = &call->plan->shapes[mode];
	call->origin = call->base;
	if (could_be_direct && mode == MODE_STAGED)
		call->origin += staged_offset;
}

static void card_write(struct host_call *call)
{
	struct card *card = peer_card(
		call->engine->peers, call->engine->rank, call->number);

	sign_show(call, card);
	call->peer = 0;
	if (call->spec->carry) {
		carry_arrive(call);
	} else if (call->plan->eager) {
		call_settle(call, MODE_STAGED);
		call->phase = PHASE_RUN;
	} else {
		call_arrive(call, card);
		call->phase = PHASE_ARRIVE;
	}
}

/* Bytes of scratch the chosen program needs. */
static enum err scratch_reserve(struct host_engine *engine, const struct shape *shape)
{
	size_t bytes = shape->program->tmp_count * shape->tile_bytes;
	char *scratch;

	if (bytes <= engine->memory.scratch_bytes)
		return OK;
	scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (!scratch)
		return err_set(ERR_SYSTEM, "no memory for %zu bytes of scratch", bytes);
	free(engine->memory.scratch);
	engine->memory.scratch = scratch;
	engine->memory.scratch_bytes = bytes;
	return OK;
}

/* Has a rank of another host left in peace? It may have done its part of the call long
 * before what it sent comes here. */
static bool has_left_far(const struct host_call *call, uint32_t rank)
{
	const struct host_engine *engine = call->engine;

	return !peer_is_local(engine->peers, rank) &&
	       health_has_left(engine->health, rank);
}

/* We need a rank while there is something of it that we wait for, now or later in this
 * call, or of ours that has not left for it. Whoever waits for what it owes to others
 * will say so itself. */
static bool call_needs(const void *what, uint32_t rank)
{
	const struct host_call *call = what;
	struct card *card = peer_card(call->engine->peers, rank, call->number);
	bool has_left = has_left_far(call, rank);
	const struct program *program;

	if (call->spec->carry)
		return carry_needs(call, rank);
	/* not settled yet: it is to arrive; whoever has may even have left again */
	if (!call->shape)
		return !has_left &&
		       !position_reached(atomic_load(&card->position[0]), call->base);
	if (call->engine->remote && remote_owes(call->engine->remote, rank) &&
		!(has_left && remote_is_patient(call->engine, rank)))
		return true;
	program = call->shape->program;
	for (uint32_t i = 0; i < program->wait_count; i++) {
		const struct wait *wait = &program->waits[i];
		uint64_t length = program->lengths[rank * SCHED_LANES_MAX + wait->lane];
		uint64_t want = call->origin + wait->position +
				(call->shape->tile_count - 1) * length;

		if (wait->kind != WAIT_SENT && wait->rank == rank &&
			wait->back < call->shape->tile_count &&
			!position_reached(atomic_load(&card->position[wait->lane]),
				want - wait->back * length) &&
			!(has_left && remote_is_heard(call->engine, rank, wait->lane)))
			return true;
	}
	return false;
}

/* Everyone is here: choose the way, and find the buffers if it leads through them. */
static enum err mode_settle(struct host_call *call)
{
	struct host_engine *engine = call->engine;
	enum lower_mode mode = buffers_mode(call);
	bool direct = mode != MODE_STAGED;
	enum err e = OK;

	call_settle(call, mode);
	if (call->plan->squad > 1) {
		engine->memory.share = shape_share(
			call->shape, engine->calls.share, call->plan->squad);
		call->shape = &engine->memory.share;
	}
	/* who gave up after it arrived may have freed what it showed */
	if (direct)
		e = host_failed_check(engine, call->number);
	if (direct && !e)
		e = buffers_find(call, call->shape->program);
	if (!e)
		e = scratch_reserve(engine, call->shape);
	if (direct) /* announced in call_arrive() */
		call->lanes[0].move = call->plan->lead;
	call->phase = PHASE_RUN;
	return e;
}

static bool everyone_arrived(struct host_call *call)
{
	const struct host_engine *engine = call->engine;

	for (; call->peer + 1 < engine->peers->local_count; call->peer++)
		if (!position_check(
			    call, rank_after(engine, call->peer + 1), 0, call->base))
			return false;
	return true;
}

static bool lanes_run(struct host_call *call, const struct shape *shape)
{
	const struct program *program = shape->program;
	uint64_t stamp;
	bool done;

	do {
		stamp = host_call_stamp(call);
		done = true;
		for (uint32_t lane = 0; lane < program->lane_count; lane++)
			if (lane_step(shape, lane, &call->lanes[lane], &host_ops, call) ==
				LANE_BLOCKED)
				done = false;
		/* one lane may have freed the other */
	} while (!done && program->lane_count > 1 && stamp != host_call_stamp(call));
	if (call->news.has_untold)
		untold_publish(call);
	return done;
}

/* A tile that all lanes have behind them is as it will be. */
static void tiles_tell(const struct host_call *call)
{
	uint32_t tiles = call->shape->tile_count;

	for (uint32_t lane = 0; lane < call->shape->program->lane_count; lane++)
		if (call->lanes[lane].tile < tiles)
			tiles = call->lanes[lane].tile;
	if (call->plan->squad > 1 && !call->error)
		tiles = squad_tell(call, tiles);
	if (!call->error)
		tide_tell(call->spec->tide, tiles * call->shape->tile_bytes);
}

/* As far as the buffers have come. */
static bool lanes_run_tide(struct host_call *call)
{
	struct shape come = *call->shape;
	bool done;

	come.tile_count = tiles_come(call, call->shape->program->mode);
	done = lanes_run(call, &come);
	tiles_tell(call);
	call->blocked.awaits_tide = false;
	if (come.tile_count == call->shape->tile_count)
		return done;
	for (uint32_t lane = 0; lane < come.program->lane_count; lane++)
		if (call->lanes[lane].tile == come.tile_count)
			call->blocked.awaits_tide = true;
	return false;
}

static enum err lanes_step(struct host_call *call)
{
	bool done = call->spec->tide ? lanes_run_tide(call)
				     : lanes_run(call, call->shape);

	return done ? OK : ERR_AGAIN;
}

static bool drained(struct host_call *call)
{
	const struct program *program = call->shape->program;

	for (; call->peer < program->drain_count; call->peer++)
		if (!call_reached(call,
			    &program->waits[program->drain_first + call->peer],
			    call->shape->tile_count - 1))
			return false;
	return true;
}

/* Storing past the caches saves reading what is overwritten, but only pays when the
 * buffers of all ranks would not stay in the last cache anyway. In place the lines to be
 * written have just been read. */
static bool call_streams(const struct host_call *call)
{
	size_t bytes = call->plan->in_bytes + call->plan->out_bytes;

	return !call->plan->eager && call->spec->in != call->spec->out &&
	       bytes / 4 * call->engine->rank_count > call->engine->memory.cache_bytes;
}

/* Nothing to move: nobody waits and nobody is told, but it counts as a call made. */
static void call_empty(
	struct host_engine *engine, const struct host_spec *spec, struct host_call *call)
{
	*call = (struct host_call){.engine = engine, .spec = spec, .phase = PHASE_DONE};
	sign_skip(engine, spec->key.coll);
}

/* Its plan, and what running that needs. A mate has no planner: it runs the first
 * thread's plan. */
static enum err call_plan(struct host_engine *engine, const struct host_spec *spec,
	const struct plan **plan)
{
	enum err e;

	if (spec->carry) {
		*plan = &spec->carry->plan;
		return OK;
	}
	if (!engine->planner) {
		*plan = squad_plan(engine);
		return OK;
	}
	e = plan_get(engine->planner, &spec->key, plan);
	return !e && (*plan)->eager
		       ? scratch_reserve(engine, &(*plan)->shapes[MODE_STAGED])
		       : e;
}

enum err host_call_start(
	struct host_engine *engine, const struct host_spec *spec, struct host_call *call)
{
	struct host_buffers *mine;
	const struct plan *plan;
	enum err e;

	if (!spec->key.count) {
		call_empty(engine, spec, call);
		return OK;
	}
	e = call_plan(engine, spec, &plan);
	if (e)
		return e;
	/* field by field: zeroing it whole costs as much as all the rest of this */
	call->engine = engine;
	call->spec = spec;
	call->plan = plan;
	call->shape = NULL;
	call->number = ++engine->calls.number;
	call->base = call->number << BOARD_CALL_SHIFT;
	call->phase = PHASE_CARD;
	call->patience = 0;
	call->peer = call->come.turns = 0;
	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++)
		call->lanes[i] = (struct lane){0};
	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++) {
		call->news.untold[i] = 0;
		call->come.has_landed[i] = false;
	}
	call->news.has_untold = false;
	call->come.has_fetched = false;
	sign_begin(call);
	call->error = OK;
	call->news.announced = false;
	call->trial_ns = 0;
	call->foreign = false;
	call->blocked.awaits_tide = false;
	host_call_block(call, engine->rank, 0, 0);
	call->streaming = call_streams(call);
	fold_rule(&call->rule, &spec->key, spec->op, spec->scalar, engine->rank_count);
	mine = &engine->memory.buffers[engine->rank];
	mine->in = (char *)(uintptr_t)spec->in;
	mine->out = spec->out;
	mine->scalar = call->rule.scalar;
	return __builtin_expect(plan->squad > 1, 0) ? squad_begin(call) : OK;
}

/* This thread has done with what others have shown. */
static inline void call_let_go(const struct host_call *call)
{
	if (!call->plan->eager)
		host_touch(call->engine, TOUCH_NONE);
}

enum err host_call_step(struct host_call *call)
{
	enum err e;

	if (call->engine->remote && call->phase != PHASE_DONE) {
		if (squad_has_stopped(call->engine))
			return squad_failure(call->engine);
		remote_flush(call);
		e = call->plan->squad > 1 ? squad_turn(call) : OK;
		if (e)
			return e;
	}
	if (call->phase == PHASE_CARD) {
		if (!card_is_free(call))
			return call->error ? call->error : ERR_AGAIN;
		if (!first_has_come(call))
			return ERR_AGAIN;
		card_write(call);
	}
	if (call->phase == PHASE_ARRIVE) {
		if (!everyone_arrived(call))
			return call->error ? call->error : ERR_AGAIN;
		if (call->spec->carry)
			call->phase = PHASE_RUN;
		e = call->spec->carry ? OK : mode_settle(call);
		if (e)
			return e;
	}
	if (call->phase == PHASE_RUN) {
		e = call->spec->carry ? carry_step(call) : lanes_step(call);
		if (e || call->error)
			return call->error ? call->error : e;
		call->peer = 0;
		call->phase = call->spec->carry ? PHASE_JOIN : PHASE_DRAIN;
		if (!call->spec->carry && call->shape->program->drain_count)
			cards_fetch(call);
	}
	if (call->phase == PHASE_DRAIN) {
		if (!drained(call))
			return call->error ? call->error : ERR_AGAIN;
		/* who gave up while we read its buffers may have had them back by then */
		e = call->shape->program->mode == MODE_STAGED
			    ? OK
			    : host_failed_check(call->engine, call->number);
		if (e)
			return e;
		call->phase = PHASE_JOIN;
	}
	if (call->phase == PHASE_JOIN) {
		e = call->plan->squad > 1 && !call->engine->calls.share ? squad_join(call)
									: OK;
		if (e)
			return e;
		if (call->spec->carry)
			carry_end(call);
		call->phase = PHASE_DONE;
		atomic_store_explicit(&call->engine->calls.completed, call->number,
			memory_order_relaxed);
		call->engine->memory.shown.out = NULL;
		call_let_go(call);
		if (call->trial_ns)
			plan_note(call->engine->planner, call->plan,
				call->shape->program->mode, clock_ns() - call->trial_ns);
		/* the next card's line: have it ready to be written */
		__builtin_prefetch(peer_card(call->engine->peers, call->engine->rank,
					   call->number + 1),
			1);
	}
	return OK;
}

void host_call_leave(const struct host_call *call)
{
	if (!call->plan)
		return; /* nothing was to be done */
	if (call->plan->squad > 1 && call->phase != PHASE_DONE &&
		!call->engine->calls.share)
		squad_leave(call->engine);
	call_let_go(call);
}

uint64_t host_call_stamp(const struct host_call *call)
{
	uint64_t stamp = (uint64_t)call->phase + call->peer + call->come.turns;

	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++)
		stamp += ((uint64_t)call->lanes[i].tile << 32) +
			 ((uint64_t)call->lanes[i].move << 12) + call->lanes[i].wait;
	return stamp;
}

/* ---- trouble ---- */

enum err host_call_check(struct host_call *call)
{
	struct host_engine *engine = call->engine;
	struct card *card = peer_card(engine->peers, engine->rank, call->number);
	enum err e;

	if (engine->abort && atomic_load(engine->abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	if (call->phase == PHASE_CARD)
		return host_peers_check(engine, call_needs, call);
	/* say that we are here, so that two ranks that wait for each other in different
	 * calls can find out */
	if (!position_reached(atomic_load(&card->position[0]), call->base))
		position_publish(call, 0, call->base);
	for (uint32_t i = 0; i < engine->peers->local_count; i++) {
		uint32_t rank = engine->peers->locals[i];
		struct card *theirs = peer_card(engine->peers, rank, call->number);

		if (rank != engine->rank &&
			position_reached(atomic_load(&theirs->position[0]), call->base))
			sign_check(call, rank, theirs);
	}
	/* notes tell of the first thread's calls */
	for (uint32_t rank = 0;
		engine->remote && !engine->calls.share && rank < engine->rank_count;
		rank++)
		if (!peer_is_local(engine->peers, rank))
			sign_check_note(call, rank);
	e = call->error ? call->error : host_peers_check(engine, call_needs, call);
	/* Who failed before this call does not come to it. On other hosts we may need
	 * nothing of it, but of somebody who has heard of it and does not come either. */
	return e || !engine->remote ? e : host_failed_check(engine, call->number - 1);
}
