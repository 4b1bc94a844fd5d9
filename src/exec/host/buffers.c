/*
 * buffers.c - references on cards, and the addresses they stand for here.
 *
 * What a reference is, and how memory of other processes is mapped, is in link/ref.c.
 */
#include "exec/host/buffers.h"

#include <stdlib.h>

#include "base/clock.h"
#include "exec/host/foreign_move.h"
#include "exec/host/peers.h"

/* Each piece of foreign memory is a system call, and there are n of them. */
enum { FOREIGN_CHUNK_BYTES = 8 << 10 };

static uint64_t buffer_ref(struct host_call *call, enum space space, uint32_t *directory)
{
	size_t bytes = space == SPACE_IN ? call->plan->in_bytes : call->plan->out_bytes;
	const void *buffer = space == SPACE_IN ? call->spec->in : call->spec->out;
	uint64_t ref;

	ref = bytes ? ref_make(call->engine->refs, buffer, bytes, directory) : REF_UNUSED;
	/* a system call for each piece pays from a certain size on */
	if (ref == REF_NONE && call->engine->memory.foreign &&
		call->plan->shapes[MODE_DIRECT].chunk_bytes >=
			FOREIGN_CHUNK_BYTES * (size_t)call->engine->peers->local_count)
		ref = ref_make_foreign(buffer);
	return ref;
}

bool buffers_show(struct host_call *call, struct card *card)
{
	const struct host_engine *engine = call->engine;
	uint32_t directory = card->directory;

	card->refs.in = buffer_ref(call, SPACE_IN, &directory);
	card->refs.out = buffer_ref(call, SPACE_OUT, &directory);
	card->refs.scalar = engine->memory.buffers[engine->rank].scalar.bits;
	card->refs.mode = plan_next_mode(call->plan);
	card->directory = directory;
	return card->refs.in != REF_NONE && card->refs.out != REF_NONE;
}

/* Does a rank show the same buffers as the last time that it showed any? A reference
 * means something else only in another version of the directory. */
static bool is_shown_again(const struct host_buffers *buffers, const struct card *card)
{
	return buffers->in_ref != REF_NONE && card->refs.in == buffers->in_ref &&
	       card->refs.out == buffers->out_ref &&
	       card->directory == buffers->directory;
}

/* Take what a card shows for buffers that are to be found anew. Only what is mapped is
 * known again the next time. */
static void buffers_take(struct host_engine *engine, uint32_t rank,
	const struct card *card, bool is_mapped)
{
	struct host_buffers *buffers = &engine->memory.buffers[rank];
	struct host_buffers shown = {.scalar = buffers->scalar,
		.in_ref = is_mapped ? card->refs.in : REF_NONE,
		.out_ref = card->refs.out,
		.directory = card->directory};

	if (rank == engine->rank) {
		shown.in = buffers->in;
		shown.out = buffers->out;
	}
	*buffers = shown;
	engine->memory.followed = NULL;
}

enum lower_mode buffers_mode(struct host_call *call)
{
	struct host_engine *engine = call->engine;
	bool reachable = true, kernel = false;

	for (uint32_t i = 0; i < engine->peers->local_count; i++) {
		uint32_t rank = engine->peers->locals[i];
		const struct card *card = peer_card(engine->peers, rank, call->number);
		bool has_all, has_foreign;

		engine->memory.buffers[rank].scalar.bits = card->refs.scalar;
		if (is_shown_again(&engine->memory.buffers[rank], card))
			continue;
		has_all = card->refs.in != REF_NONE && card->refs.out != REF_NONE;
		has_foreign = ref_needs_kernel(card->refs.in) ||
			      ref_needs_kernel(card->refs.out);
		buffers_take(engine, rank, card, has_all && !has_foreign);
		reachable = reachable && has_all;
		kernel = kernel || has_foreign;
	}
	if (!reachable)
		return MODE_STAGED;
	if (!kernel)
		return MODE_DIRECT;
	if (!engine->peers->local && !engine->calls.share)
		call->trial_ns = clock_ns();
	return peer_card(engine->peers, engine->peers->locals[0], call->number)
				       ->refs.mode == MODE_STAGED
		       ? MODE_STAGED
		       : MODE_PULL;
}

/* Room to fold a block of every rank's foreign memory. */
static enum err bounce_reserve(struct host_engine *engine)
{
	if (!engine->memory.bounce)
		engine->memory.bounce = aligned_alloc(
			64, foreign_bounce_bytes(engine->rank_count + 1));
	return engine->memory.bounce ? OK
				     : err_set(ERR_SYSTEM, "no memory to bounce through");
}

/* Find the buffer of a peer that a place lies in; where it is known, do nothing. */
static enum err place_follow(struct host_call *call, const struct place *place)
{
	struct host_engine *engine = call->engine;
	struct host_buffers *buffers = &engine->memory.buffers[place->rank];
	bool in = place->space == PLACE_IN, foreign;
	const struct card *card;
	uint64_t ref;
	void *found;
	enum err e;

	if (place->rank == engine->rank || (!in && place->space != PLACE_OUT) ||
		(in ? buffers->in : buffers->out))
		return OK;
	card = peer_card(engine->peers, place->rank, call->number);
	ref = in ? card->refs.in : card->refs.out;
	foreign = ref_is_foreign(engine->refs, place->rank, ref);
	e = host_follow(engine, place->rank, ref, card->directory, &found);
	if (e)
		return e;
	*(in ? &buffers->in : &buffers->out) = found;
	*(in ? &buffers->in_foreign : &buffers->out_foreign) = foreign;
	call->foreign = call->foreign || foreign;
	return OK;
}

enum err buffers_find(struct host_call *call, const struct program *program)
{
	struct host_engine *engine = call->engine;
	enum err e = OK;

	if (engine->memory.followed == program)
		return OK;
	for (uint32_t i = 0; i < program->place_count && !e; i++)
		e = place_follow(call, &program->places[i]);
	if (!e && call->foreign)
		e = bounce_reserve(engine);
	if (!e)
		engine->memory.followed = program;
	return e;
}
