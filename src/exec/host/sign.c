#include "exec/host/sign.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "exec/host/doing.h"

/* An odd multiplier, so that equal calls after a difference keep it. */
static uint64_t chained(uint64_t chain, uint64_t own)
{
	return hash_spread(chain) + own;
}

static struct call_sign sign_of(const struct host_call *call)
{
	const struct plan_key *key = &call->spec->key;

	return (struct call_sign){.coll = key->coll,
		.type = key->type,
		.op = call->spec->op,
		.root = key->root,
		.count = key->count};
}

void sign_begin(struct host_call *call)
{
	struct host_engine *engine = call->engine;

	engine->signs.chain = chained(
		engine->signs.chain, hash_add(call->plan->sign, call->spec->op));
	call->sign = engine->signs.chain;
	if (engine->signs.past)
		engine->signs.past[call->number % SIGNS_PAST] = (struct past_sign){
			call->number, call->sign, sign_of(call)};
}

void sign_skip(struct host_engine *engine, enum coll coll)
{
	engine->signs.chain = chained(engine->signs.chain, 1u + coll);
}

void sign_show(const struct host_call *call, struct card *card)
{
	atomic_store_explicit(&card->sign_hash, call->sign, memory_order_release);
	card->sign = sign_of(call);
}

void sign_print(const struct call_sign *sign, char text[SIGN_TEXT_BYTES])
{
	const char *type = sign->type < DTYPE_COUNT ? dtype_name(sign->type) : "?";
	const char *op = sign->op < REDOP_COUNT ? redop_name(sign->op) : "?";
	bool is_coll = sign->coll < COLL_COUNT;
	int used;

	if (sign->coll == COLL_ALL_GATHER && sign->op == OP_MEETING) {
		snprintf(text, SIGN_TEXT_BYTES,
			"a collective with device memory, its first");
		return;
	}
	used = snprintf(text, SIGN_TEXT_BYTES, "%s of %lu %s",
		is_coll ? coll_name(sign->coll) : "?", (unsigned long)sign->count, type);
	if (is_coll && coll_reduces(sign->coll))
		used += snprintf(text + used, SIGN_TEXT_BYTES - (size_t)used, ", %s", op);
	if (is_coll && coll_has_root(sign->coll))
		snprintf(text + used, SIGN_TEXT_BYTES - (size_t)used, ", root %u",
			sign->root);
}

/* Which call the card shows: the one the rank last announced anything of. */
static uint64_t card_number(const struct card *card)
{
	uint64_t newest = 0;

	for (uint32_t lane = 0; lane < BOARD_LANES; lane++) {
		uint64_t now = atomic_load_explicit(
			&card->position[lane], memory_order_acquire);

		newest = now > newest ? now : newest;
	}
	return newest >> BOARD_CALL_SHIFT;
}

/* The sign of call `number` on a rank's card, as long as it is there: the card is written
 * anew for call number + BOARD_CARDS, after the rank has shown itself in the call before
 * that. */
static bool card_sign(
	const struct peers *peers, uint32_t rank, uint64_t number, uint64_t *hash)
{
	const struct card *card = peer_card(peers, rank, number);

	if (card_number(card) != number)
		return false;
	*hash = atomic_load_explicit(&card->sign_hash, memory_order_acquire);
	return card_number(peer_card(peers, rank, number + BOARD_CARDS - 1)) <
	       number + BOARD_CARDS - 1;
}

/* Our own card is not written anew while we look. */
static uint64_t own_sign(const struct host_engine *engine, uint64_t number)
{
	return atomic_load_explicit(
		&peer_card(engine->peers, engine->rank, number)->sign_hash,
		memory_order_relaxed);
}

static enum err signs_differ(const struct host_engine *engine, uint32_t rank,
	const struct call_sign *theirs, const struct call_sign *ours)
{
	char their_text[SIGN_TEXT_BYTES], our_text[SIGN_TEXT_BYTES];

	sign_print(theirs, their_text);
	sign_print(ours, our_text);
	if (!strcmp(their_text, our_text))
		return err_set(ERR_USAGE,
			"ranks %u and %u both call %s, but after other calls or in "
			"another way: all ranks must make the same calls, in the same "
			"order and with the same environment",
			rank, engine->rank, our_text);
	return err_set(ERR_USAGE,
		"rank %u calls %s where rank %u calls %s: all ranks must make the same "
		"call",
		rank, their_text, engine->rank, our_text);
}

/* The signs of call `number` differ: name the first call in which they do. */
static enum err mismatch(struct host_engine *engine, uint32_t rank, uint64_t number)
{
	uint64_t first = number > BOARD_CARDS - 1 ? number - (BOARD_CARDS - 1) : 1;

	for (; first < number; first++) {
		uint64_t theirs;

		if (card_sign(engine->peers, rank, first, &theirs) &&
			theirs != own_sign(engine, first))
			break;
	}
	return signs_differ(engine, rank, &peer_card(engine->peers, rank, first)->sign,
		&peer_card(engine->peers, engine->rank, first)->sign);
}

void sign_differs(struct host_call *call, uint32_t rank)
{
	if (!call->error)
		call->error = mismatch(call->engine, rank, call->number);
}

void sign_check_old(struct host_call *call, uint32_t rank, uint64_t number)
{
	struct host_engine *engine = call->engine;
	uint64_t theirs;

	if (!call->error && card_sign(engine->peers, rank, number, &theirs) &&
		theirs != own_sign(engine, number))
		call->error = mismatch(engine, rank, number);
}

/* It may be in an earlier call than we, who did not have to wait for it there. */
void sign_check_past(
	struct host_call *call, uint32_t rank, const struct past_sign *theirs)
{
	struct host_engine *engine = call->engine;
	const struct past_sign *ours = &engine->signs.past[theirs->number % SIGNS_PAST];

	if (!call->error && ours->number == theirs->number && ours->hash != theirs->hash)
		call->error = signs_differ(engine, rank, &theirs->sign, &ours->sign);
}

/* Bits of a packed call, from the lowest. */
enum { PACK_COLL = 4, PACK_TYPE = 5, PACK_OP = 5, PACK_ROOT = 17, PACK_COUNT = 33 };
_Static_assert(PACK_COLL + PACK_TYPE + PACK_OP + PACK_ROOT + PACK_COUNT == 64 &&
		       COLL_COUNT < 1 << PACK_COLL && DTYPE_COUNT <= 1 << PACK_TYPE &&
		       REDOP_COUNT <= 1 << PACK_OP,
	"a call fits in a word");

uint64_t sign_before(const struct host_call *call)
{
	const struct past_sign *past =
		&call->engine->signs.past[(call->number - 1) % SIGNS_PAST];
	const struct call_sign *sign = &past->sign;

	if (call->number < 2 || past->number != call->number - 1 ||
		sign->root >> PACK_ROOT || sign->count >> PACK_COUNT)
		return 0;
	return ((((sign->count << PACK_ROOT | sign->root) << PACK_OP | sign->op)
				<< PACK_TYPE |
			sign->type)
		       << PACK_COLL) |
	       (sign->coll + 1);
}

static uint32_t take_bits(uint64_t *word, uint32_t bits)
{
	uint32_t value = (uint32_t)(*word & (((uint64_t)1 << bits) - 1));

	*word >>= bits;
	return value;
}

static struct call_sign unpack(uint64_t word)
{
	struct call_sign sign = {.coll = take_bits(&word, PACK_COLL) - 1};

	sign.type = take_bits(&word, PACK_TYPE);
	sign.op = take_bits(&word, PACK_OP);
	sign.root = take_bits(&word, PACK_ROOT);
	sign.count = word;
	return sign;
}

void sign_check_before(
	struct host_call *call, uint32_t rank, uint64_t number, uint64_t before)
{
	struct call_sign theirs = unpack(before), ours = sign_of(call);
	char their_text[SIGN_TEXT_BYTES], our_text[SIGN_TEXT_BYTES];
	uint64_t behind = number - call->number;

	if (behind == 0)
		ours = unpack(sign_before(call));
	if (call->error || behind > 1 || theirs.coll >= COLL_COUNT ||
		ours.coll >= COLL_COUNT)
		return;
	sign_print(&theirs, their_text);
	sign_print(&ours, our_text);
	if (strcmp(their_text, our_text))
		call->error = signs_differ(call->engine, rank, &theirs, &ours);
}

void sign_check_note(struct host_call *call, uint32_t rank)
{
	struct doing note;

	if (!call->error && doing_read(call->engine->peers, rank, &note) &&
		note.kind == DOING_COLL)
		sign_check_past(call, rank,
			&(struct past_sign){note.number, note.sign_hash, note.sign});
}

/* Who has left, failed or made fewer calls is not compared. */
static enum err last_check(struct host_engine *engine, uint32_t rank)
{
	uint64_t theirs;

	if (!engine->calls.number || rank == engine->rank ||
		!card_sign(engine->peers, rank, engine->calls.number, &theirs) ||
		theirs == own_sign(engine, engine->calls.number))
		return OK;
	return mismatch(engine, rank, engine->calls.number);
}

enum err host_signs_check(struct host_engine *engine)
{
	enum err e = OK;

	for (uint32_t i = 0; i < engine->peers->local_count && !e; i++) {
		uint32_t rank = engine->peers->locals[i];
		const struct pair_room *pair = peer_pair_find(
			engine->peers, rank, engine->rank);
		uint64_t posted = pair ? atomic_load(&pair->box.posted) : 0;

		e = last_check(engine, rank);
		if (!e && pair && posted != engine->letters.taken[rank])
			e = err_set(ERR_USAGE,
				"rank %u has sent %lu bytes to rank %u that were never "
				"received",
				rank,
				(unsigned long)pair->box
					.letters[engine->letters.taken[rank] %
						 BOX_LETTERS]
					.total,
				engine->rank);
	}
	return e;
}
