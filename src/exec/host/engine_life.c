/*
 * engine_life.c - how an engine comes about, for a rank or for a thread that runs shares
 * of its calls, and how it goes.
 */
#include <stdlib.h>

#include "base/futex.h"
#include "base/param.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"
#include "exec/host/squad.h"
#include "exec/host/state.h"

enum { SPIN_TURNS = 100, SPIN_TURNS_SHORT = 2, PATIENCE = 64 };

/* Between hosts a turn is a system call or two: next to that a yield costs nothing, and
 * who cannot know whether other hosts are on the same cores (pods, test beds) had better
 * let them run (8 B, 2 hosts of 2 on two cores: 11 us; with SPIN_TURNS 46). */
enum { SPIN_TURNS_REMOTE = 4 };

enum { INBOX_BYTES = 1 << 20 };

/* How long to spin, and whether a rank may keep its core to itself meanwhile. */
static void set_patience(struct host_engine *engine, bool remote)
{
	int64_t asked = param_int(PARAM_SPIN);
	bool crowded = peers_are_crowded(engine->peers);

	if (asked >= 0)
		engine->waits.spin_turns = (uint32_t)asked;
	else if (crowded)
		engine->waits.spin_turns = SPIN_TURNS_SHORT;
	else
		engine->waits.spin_turns = remote ? SPIN_TURNS_REMOTE : SPIN_TURNS;
	engine->waits.has_cores = asked >= 0 ? asked >= SPIN_TURNS : !crowded;
	engine->waits.patience = engine->waits.spin_turns >= SPIN_TURNS ? PATIENCE : 0;
}

static enum err engine_arrays(struct host_engine *engine, bool has_hosts)
{
	size_t n = engine->rank_count;

	engine->seen.positions = calloc(n * BOARD_LANES, sizeof(*engine->seen.positions));
	engine->memory.buffers = calloc(n, sizeof(*engine->memory.buffers));
	engine->letters.posted = calloc(n, sizeof(*engine->letters.posted));
	engine->letters.taken = calloc(n, sizeof(*engine->letters.taken));
	engine->signals.given = calloc(
		n * engine->peers->board->signal_count, sizeof(*engine->signals.given));
	engine->signals.awaited = calloc(
		n * engine->peers->board->signal_count, sizeof(*engine->signals.awaited));
	engine->signals.puts = calloc(n, sizeof(*engine->signals.puts));
	engine->signals.by_port = calloc(n, sizeof(*engine->signals.by_port));
	if (has_hosts)
		engine->signs.past = calloc(SIGNS_PAST, sizeof(*engine->signs.past));
	if (!engine->seen.positions || !engine->memory.buffers ||
		!engine->letters.posted || !engine->letters.taken ||
		!engine->signals.given || !engine->signals.awaited ||
		!engine->signals.puts || !engine->signals.by_port ||
		(has_hosts && !engine->signs.past))
		return err_set(ERR_SYSTEM, "no memory for a communicator of %zu", n);
	return OK;
}

/* Ranks on the host that has most: all plan as if they were there, so that all cut tiles
 * alike. */
static uint32_t crowd_of(const struct peers *peers)
{
	uint32_t most = 0;

	for (uint32_t host = 0; host < peers->host_count; host++) {
		uint32_t count = 0;

		for (uint32_t rank = 0; rank < peers->rank_count; rank++)
			count += peers->hosts[rank] == host;
		most = count > most ? count : most;
	}
	return most;
}

/* What a rank's engine and those of its other threads have in common. */
static enum err engine_make(struct host_engine *en, const struct peers *peers,
	struct wires *wires, bool zero_copy)
{
	enum err e;

	en->peers = peers;
	en->rank = peers->rank;
	en->culprit = en->rank;
	en->rank_count = peers->rank_count;
	en->memory.zero_copy = zero_copy;
	en->memory.cache_bytes = kernel_copy_threshold();
	set_patience(en, wires);
	e = engine_arrays(en, wires);
	if (!e)
		e = ref_table_create(en->peers, zero_copy, &en->refs);
	if (!e && wires)
		e = host_remote_create(wires, en->rank_count, en->teller, &en->remote);
	return e;
}

enum err host_engine_create(
	const struct host_engine_args *args, struct host_engine **engine)
{
	struct host_engine *en = calloc(1, sizeof(*en));
	struct plan_room room = {.rank_count = args->peers->rank_count,
		.rank = args->peers->rank,
		.inline_bytes = BOARD_INLINE,
		.squad = args->squad,
		.inbox_bytes = INBOX_BYTES,
		.tile_bytes = args->tile_bytes,
		.hosts = args->wires ? args->peers->hosts : NULL,
		.limits = args->limits};
	enum err e;

	if (!en)
		return err_set(ERR_SYSTEM, "no memory for an engine");
	board_room(crowd_of(args->peers), &room.eager_bytes, &room.bulk_bytes);
	en->health = args->health;
	en->abort = args->abort;
	en->far = args->far;
	en->teller = args->teller;
	en->calls.squad_max = args->squad.threads;
	e = engine_make(en, args->peers, args->wires, args->zero_copy);
	if (!e)
		e = planner_create(&room, &en->planner);
	if (e) {
		host_engine_destroy(en);
		return e;
	}
	health_count(en->health, &en->calls.completed);
	*engine = en;
	return OK;
}

enum err host_engine_for_mate(const struct host_engine *engine, const struct peers *peers,
	struct wires *wires, struct host_engine **made)
{
	struct host_engine *en = calloc(1, sizeof(*en));
	enum err e;

	if (!en)
		return err_set(ERR_SYSTEM, "no memory for an engine");
	en->health = engine->health;
	en->abort = engine->abort;
	en->calls.share = 1; /* whichever: not the first */
	e = engine_make(en, peers, wires, engine->memory.zero_copy);
	if (e)
		host_engine_destroy(en);
	else
		*made = en;
	return e;
}

void host_engine_rest(struct host_engine *engine)
{
	if (!engine || engine->calls.share)
		return;
	squad_end(engine->calls.squad);
	engine->calls.squad = NULL;
}

void host_engine_destroy(struct host_engine *engine)
{
	if (!engine)
		return;
	host_engine_rest(engine);
	if (!engine->calls.share)
		health_count(engine->health, NULL);
	ref_table_destroy(engine->refs);
	planner_destroy(engine->planner);
	host_remote_destroy(engine->remote);
	free(engine->seen.positions);
	free(engine->memory.buffers);
	free(engine->letters.posted);
	free(engine->letters.taken);
	free(engine->signals.given);
	free(engine->signals.awaited);
	free(engine->signals.puts);
	free(engine->signals.by_port);
	free(engine->signs.past);
	free(engine->memory.scratch);
	free(engine->memory.bounce);
	free(engine);
}

void host_engine_reach(struct host_engine *engine, bool foreign)
{
	/* the kernel's copies hold up ranks that share a core (2 MiB, 4 ranks on 2 cores:
	 * 900 us against 400 us through the stage) */
	engine->memory.foreign = foreign && engine->waits.has_cores;
}

uint32_t host_engine_culprit(const struct host_engine *engine)
{
	return engine->culprit;
}

void host_engine_wake(struct host_engine *engine)
{
	const void *word = atomic_load(&engine->asleep);

	if (word)
		futex_wake(word);
	if (!engine->calls.share)
		squad_wake(engine->calls.squad);
}

struct planner *host_engine_planner(const struct host_engine *engine)
{
	return engine->planner;
}

uint64_t host_engine_show(
	struct host_engine *engine, const void *ptr, size_t bytes, uint32_t *directory)
{
	return ref_make(engine->refs, ptr, bytes, directory);
}
