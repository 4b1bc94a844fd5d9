#include "exec/host/peers.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "link/region.h"

enum {
	DEATH_MS =
		100, /* a dying process loses its memory a little before its end shows */
	SETTLE_US = 1000,
	LEAVE_US = 100,		   /* between looks */
	LEAVE_NS = 5000000,	   /* for ranks of other processes, all together */
	LEAVE_HERE_NS = 1000000000 /* for threads, which are never stopped alone */
};

bool host_peer_is_dead(const struct host_engine *engine, uint32_t rank)
{
	return pulse_has_stopped(&board_status(engine->board, rank)->pulse) ||
	       watch_has_ended(engine->watches[rank]);
}

static enum err peer_dead(struct host_engine *engine, uint32_t rank)
{
	engine->culprit = rank;
	return err_set(ERR_REMOTE, "rank %u (process %u) died", rank,
		board_status(engine->board, rank)->pid);
}

/* Misuse and a patience that ended are everybody's; the rest happened elsewhere. A rank
 * that blames another has said all there is to say. */
static enum err peer_gone(struct host_engine *engine, uint32_t rank, uint32_t state)
{
	const struct rank_status *status = board_status(engine->board, rank);
	uint32_t culprit = atomic_load(&status->culprit);
	enum err code = (enum err)atomic_load(&status->code);
	char why[BOARD_SENTENCE_BYTES];

	engine->culprit = rank;
	if (state == RANK_LEFT)
		return err_set(ERR_REMOTE,
			"rank %u destroyed its communicator before this call was "
			"complete",
			rank);
	memcpy(why, status->sentence, sizeof(why));
	why[sizeof(why) - 1] = '\0';
	if (code != ERR_USAGE && code != ERR_TIMEOUT)
		code = ERR_REMOTE;
	if (culprit < engine->rank_count && culprit != rank)
		engine->culprit = culprit;
	if (!strncmp(why, "rank", 4)) /* it names whom it means */
		return err_set(code, "%s", why);
	return err_set(code, "rank %u failed: %s", rank,
		why[0] ? why : err_name((enum err)atomic_load(&status->code)));
}

enum err host_failed_check(struct host_engine *engine, uint64_t number)
{
	/* what was read of others before is not younger than what is read now */
	atomic_thread_fence(memory_order_acquire);
	for (uint32_t rank = 0; rank < engine->rank_count; rank++) {
		const struct rank_status *status = board_status(engine->board, rank);

		if (rank != engine->rank &&
			atomic_load_explicit(&status->state, memory_order_acquire) ==
				RANK_FAILED &&
			atomic_load(&status->failed_at) <= number)
			return peer_gone(engine, rank, RANK_FAILED);
	}
	return OK;
}

static enum err dead_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what)
{
	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (rank != engine->rank &&
			atomic_load(&board_status(engine->board, rank)->state) ==
				RANK_LIVE &&
			host_peer_is_dead(engine, rank) && needed(what, rank))
			return peer_dead(engine, rank);
	return OK;
}

/* Deaths first: they are the cause of whatever the others report. Who left or failed
 * before its process ended is not dead but gone. */
enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what)
{
	enum err e = dead_check(engine, needed, what);

	for (uint32_t rank = 0; rank < engine->rank_count && !e; rank++) {
		uint32_t state = atomic_load(&board_status(engine->board, rank)->state);

		if (rank == engine->rank ||
			(state != RANK_FAILED && state != RANK_LEFT) ||
			!needed(what, rank))
			continue;
		/* it may have failed for a death that came after our look */
		e = dead_check(engine, needed, what);
		if (!e)
			e = peer_gone(engine, rank, state);
	}
	return e;
}

/* Who has left has made all its calls, and nobody touches its memory any more. */
static bool has_not_left(const void *what, uint32_t rank)
{
	const struct host_engine *engine = what;

	return atomic_load(&board_status(engine->board, rank)->state) != RANK_LEFT;
}

void host_touch(const struct host_engine *engine, enum touch_kind kind)
{
	atomic_store_explicit(&board_status(engine->board, engine->rank)->touching, kind,
		memory_order_release);
}

static bool is_here(const struct host_engine *engine, uint32_t rank)
{
	return board_status(engine->board, rank)->pid == (uint32_t)getpid();
}

/* Nothing of that process runs any more: then no store of it is on the way. The pulse
 * alone stops with the first thread of a dying process. */
static bool is_quiet(const struct host_engine *engine, uint32_t rank)
{
	return atomic_load(&board_status(engine->board, rank)->touching) == TOUCH_NONE ||
	       watch_has_ended(engine->watches[rank]);
}

/* Bytes of OUT that others were to write: all but what this rank writes itself. */
static void shown_withdraw(struct host_engine *engine)
{
	const struct host_shown *shown = &engine->shown;
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
	for (uint32_t rank = 0; rank < engine->rank_count; rank++) {
		uint64_t limit = is_here(engine, rank) ? LEAVE_HERE_NS : LEAVE_NS;

		while (rank != engine->rank && !is_quiet(engine, rank) &&
			clock_ns() - start < limit)
			usleep(LEAVE_US);
		if (rank == engine->rank || is_here(engine, rank) ||
			is_quiet(engine, rank))
			continue;
		is_stuck = true;
		in_window = in_window ||
			    atomic_load(&board_status(engine->board, rank)->touching) ==
				    TOUCH_WINDOW;
	}
	if (is_stuck && engine->shown.out)
		shown_withdraw(engine);
	engine->shown.out = NULL;
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

enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer)
{
	enum err e = ref_follow(engine->refs, rank, ref, directory, pointer);

	return e ? host_blame(engine, e) : OK;
}
