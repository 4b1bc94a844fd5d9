#include "exec/host/remote.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/param.h"
#include "base/ring.h"
#include "exec/host/carry.h"
#include "exec/host/move.h"
#include "exec/host/peers.h"
#include "exec/host/sign.h"
#include "exec/host/tell.h"

enum { PUSH_US = 50, LEFT_SILENCES = 4 };

/* So many calls in a row, each of so few bytes, make a stream: see streak_go_on(). */
enum { STREAK_CALLS = 8, STREAK_BYTES = 1 << 10 };

/* What a call is, as it travels before its first message. */
struct call_words {
	uint64_t number, sign_hash, count, scalar;
	uint32_t coll, type, op, root;
	uint64_t before; /* the call before it, see sign_before() */
};

/* Messages on their way out, up to this position of our lane. */
struct leaving {
	struct net_request request;
	uint64_t position;
	void *told; /* see tell.h */
};

struct tx {
	struct net_end *end; /* borrowed; NULL until first used */
	struct tx *next;     /* of those with something on its way */
	bool is_listed;
	uint64_t call; /* .. whose words were sent last */
	struct call_words words;
	uint32_t streak;     /* calls of a stream, so far */
	uint64_t left;	     /* position up to which all has left */
	struct ring leaving; /* of struct leaving */
};

struct rx {
	struct net_end *end; /* borrowed; NULL until it has come */
	uint64_t call;	     /* .. whose words have come last */
	struct call_words words;
	uint32_t streak; /* as of a tx */
	struct net_request request;
	bool awaits_words, awaits_message;
	bool is_direct; /* .. which goes to its destination */
	void *told;	/* see tell.h */
	uint64_t came;	/* messages */
	char *inbox;	/* owned */
	size_t inbox_bytes;
};

/* How long nothing has moved between us and a rank that has left. */
struct vigil {
	uint64_t stamp, since_ns;
};

struct host_remote {
	struct wires *wires; /* borrowed */
	const struct net_ops *net;
	const struct host_teller *teller; /* borrowed; or NULL */
	uint32_t rank_count;
	struct tx *tx, *busy;	 /* tx owned: [rank * SCHED_LANES_MAX + lane] */
	struct rx *rx;		 /* owned: the same */
	struct vigil *vigils;	 /* owned: of each rank */
	struct carrier *carrier; /* owned: see carry.h; NULL: nothing was carried */
};

enum err host_remote_create(struct wires *wires, uint32_t rank_count,
	const struct host_teller *teller, struct host_remote **remote)
{
	size_t count = (size_t)rank_count * SCHED_LANES_MAX;
	struct host_remote *r = calloc(1, sizeof(*r));

	if (r) {
		r->wires = wires;
		r->net = wires_net(wires);
		r->rank_count = rank_count;
		r->teller = teller;
		r->tx = calloc(count, sizeof(*r->tx));
		r->rx = calloc(count, sizeof(*r->rx));
		r->vigils = calloc(rank_count, sizeof(*r->vigils));
	}
	if (!r || !r->tx || !r->rx || !r->vigils) {
		host_remote_destroy(r);
		return err_set(ERR_SYSTEM, "no memory for connections with %u ranks",
			rank_count);
	}
	*remote = r;
	return OK;
}

void host_remote_destroy(struct host_remote *remote)
{
	if (!remote)
		return;
	for (uint32_t i = 0; i < remote->rank_count * SCHED_LANES_MAX; i++) {
		if (remote->tx)
			free(remote->tx[i].leaving.things);
		if (remote->rx)
			free(remote->rx[i].inbox);
	}
	free(remote->tx);
	free(remote->rx);
	free(remote->vigils);
	carrier_free(remote->carrier);
	free(remote);
}

struct wires *remote_wires(const struct host_remote *remote)
{
	return remote->wires;
}

void remote_tell(const struct host_remote *remote, struct net_end *end, void *told)
{
	if (told && remote->net->tell)
		remote->net->tell(end, told);
}

/* A connection is lost because the rank at its other end has died or failed; who waits a
 * moment hears of that. */
static void call_fails(struct host_call *call, uint32_t rank, enum err e)
{
	if (!call->error)
		call->error = host_blame_wire(call->engine, rank, e);
}

bool remote_owes(const struct host_remote *remote, uint32_t rank)
{
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++)
		if (remote->tx[rank * SCHED_LANES_MAX + lane].leaving.count)
			return true;
	return false;
}

/* Changes whenever something moves between us and that rank. */
static uint64_t stamp_of(const struct host_engine *engine, uint32_t rank)
{
	const struct host_remote *remote = engine->remote;
	uint64_t stamp = engine->letters.taken[rank] + engine->letters.posted[rank];

	for (uint32_t lane = 0; lane < SCHED_LANES_MAX; lane++) {
		uint32_t index = rank * SCHED_LANES_MAX + lane;

		stamp += remote->rx[index].came + remote->rx[index].call +
			 remote->tx[index].left - remote->tx[index].leaving.count;
	}
	return stamp;
}

bool remote_is_patient(const struct host_engine *engine, uint32_t rank)
{
	struct vigil *vigil = &engine->remote->vigils[rank];
	uint64_t silence_s = (uint64_t)param_int(PARAM_SILENCE);
	uint64_t now = clock_ns(), stamp = stamp_of(engine, rank);

	if (!vigil->since_ns || vigil->stamp != stamp)
		*vigil = (struct vigil){stamp, now};
	return !silence_s ||
	       now - vigil->since_ns < LEFT_SILENCES * silence_s * CLOCK_SEC;
}

/* It may stand at the door: who left in peace was let in before it could send. */
bool remote_is_heard(const struct host_engine *engine, uint32_t rank, uint32_t purpose)
{
	struct net_end *end;

	return !wires_from(
		       engine->remote->wires, rank, (enum wire_purpose)purpose, &end) &&
	       remote_is_patient(engine, rank);
}

/* ---- sending ---- */

static struct call_words words_of(const struct host_call *call)
{
	const struct plan_key *key = &call->spec->key;

	return (struct call_words){.number = call->number,
		.sign_hash = call->sign,
		.count = key->count,
		.scalar = call->rule.scalar.bits,
		.coll = key->coll,
		.type = key->type,
		.op = call->spec->op,
		.root = key->root,
		.before = sign_before(call)};
}

/* What has a root flows to it, or from it: no rank waits for somebody who needs what it
 * has sent. So the messages of one small call after the other may go together when their
 * receiver is behind. In other calls a rank may wait for one that waits for it. */
static void streak_go_on(
	const struct host_call *call, struct net_end *end, uint32_t *streak)
{
	const struct plan_key *key = &call->spec->key;
	bool flows = coll_has_root(key->coll) &&
		     key->count * dtype_size(key->type) <= STREAK_BYTES;

	if (!flows)
		*streak = 0;
	else if (*streak < STREAK_CALLS)
		++*streak;
	wires_bunch(call->engine->remote->wires, end, *streak == STREAK_CALLS);
}

static enum err tx_open(
	struct host_call *call, struct tx *tx, uint32_t rank, enum wire_purpose purpose)
{
	struct host_remote *remote = call->engine->remote;
	struct net_request request;
	enum err e = OK;

	if (!tx->end)
		e = wires_to(remote->wires, rank, purpose, &tx->end);
	if (e || tx->call == call->number)
		return e;
	/* what was sent in the call before has left, this too */
	tx->call = call->number;
	tx->words = words_of(call);
	streak_go_on(call, tx->end, &tx->streak);
	return remote->net->send(tx->end, &tx->words, sizeof(tx->words), &request);
}

/* Write on. OK when all has left. */
static enum err tx_push(const struct host_remote *remote, struct tx *tx)
{
	while (tx->leaving.count) {
		const struct leaving *leaving = ring_at(
			&tx->leaving, sizeof(*leaving), 0);
		enum err e = remote->net->test(&leaving->request, 0);

		if (e)
			return e;
		tx->left = leaving->position;
		tell_over(remote->teller, leaving->told);
		ring_drop(&tx->leaving);
	}
	return OK;
}

/* The bytes of a message: of `count` chunks. */
static size_t message_bytes(
	const struct shape *shape, const struct move *move, uint32_t chunk, uint32_t tile)
{
	size_t bytes = 0;

	for (uint32_t j = 0; j < move->count; j++)
		bytes += message_piece(shape, chunk, tile, j);
	return bytes;
}

static enum err message_send(struct host_call *call, const struct move *move,
	const struct sent *sent, struct tx *tx, uint32_t tile)
{
	const struct net_ops *net = call->engine->remote->net;
	const struct program *program = call->shape->program;
	uint32_t lane = (uint32_t)(tx - call->engine->remote->tx) % SCHED_LANES_MAX;
	const struct lane_moves *moves = &program->lanes[lane];
	struct net_request request;
	struct host_message message = {.peer = sent->rank,
		.lane = lane,
		.is_send = true,
		.bytes = message_bytes(call->shape, move, sent->chunk, tile)};
	void *told = tell_began(call, &message);
	struct leaving *leaving;
	enum err e = OK;

	for (uint32_t j = 0; j < move->count && !e; j++) {
		remote_tell(call->engine->remote, tx->end, told);
		e = net->send(tx->end,
			host_place(call, &program->places[sent->place], tile, j),
			message_piece(call->shape, sent->chunk, tile, j), &request);
	}
	leaving = e ? NULL : ring_add(&tx->leaving, sizeof(*leaving));
	if (!leaving)
		return e ? e : ERR_SYSTEM;
	leaving->request = request;
	leaving->told = told;
	leaving->position = call->origin + (uint64_t)tile * moves->count +
			    (uint64_t)(move - moves->moves) + 1;
	return OK;
}

void remote_send(
	struct host_call *call, const struct move *move, uint32_t lane, uint32_t tile)
{
	struct host_remote *remote = call->engine->remote;

	for (uint32_t i = 0; i < move->sent_count && !call->error; i++) {
		const struct sent *sent =
			&call->shape->program->sents[move->sent_first + i];
		struct tx *tx = &remote->tx[sent->rank * SCHED_LANES_MAX + lane];
		enum err e = tx_open(call, tx, sent->rank, (enum wire_purpose)lane);

		if (!e)
			e = message_send(call, move, sent, tx, tile);
		if (!e)
			e = tx_push(remote, tx);
		if (e == ERR_AGAIN && !tx->is_listed) {
			tx->is_listed = true;
			tx->next = remote->busy;
			remote->busy = tx;
		}
		if (e && e != ERR_AGAIN)
			call_fails(call, sent->rank, e);
	}
}

bool remote_flush(struct host_call *call)
{
	struct host_remote *remote = call->engine->remote;
	struct tx **link = &remote->busy;

	while (*link && !call->error) {
		struct tx *tx = *link;
		enum err e = tx_push(remote, tx);

		if (e && e != ERR_AGAIN)
			call_fails(
				call, (uint32_t)(tx - remote->tx) / SCHED_LANES_MAX, e);
		if (e) {
			link = &tx->next;
			continue;
		}
		*link = tx->next;
		tx->is_listed = false;
	}
	return !remote->busy;
}

bool remote_has_left(struct host_call *call, const struct wait *wait, uint32_t tile)
{
	struct host_remote *remote = call->engine->remote;
	const struct lane *lane = &call->lanes[wait->lane];
	uint32_t count = call->shape->program->lanes[wait->lane].count;
	struct tx *tx = &remote->tx[wait->rank * SCHED_LANES_MAX + wait->lane];
	uint64_t retired = (uint64_t)tile * count + wait->position;
	uint64_t want = call->origin + retired;

	if (call->error) /* its cause was found; nothing more is to be said */
		return false;
	if (tx->leaving.count)
		remote_flush(call);
	/* another lane may not have sent it yet */
	if ((uint64_t)lane->tile * count + lane->move >= retired &&
		(!tx->leaving.count || position_reached(tx->left, want)))
		return !call->error;
	host_call_block(call, wait->rank, wait->lane, want);
	call->blocked.is_leaving = true;
	return false;
}

/* ---- receiving ---- */

/* What it says of the call goes where a rank of this host would have shown it. */
static void words_take(struct host_call *call, uint32_t rank, struct rx *rx)
{
	const struct call_words *words = &rx->words;
	struct card *card = peer_card(call->engine->peers, rank, call->number);

	rx->call = call->number;
	card->sign = (struct call_sign){
		words->coll, words->type, words->op, words->root, words->count};
	atomic_store_explicit(&card->sign_hash, words->sign_hash, memory_order_relaxed);
	/* the other lane's words may have come before, and messages with them */
	if (!position_reached(atomic_load(&card->position[0]), call->base))
		atomic_store_explicit(
			&card->position[0], call->base, memory_order_release);
	call->engine->memory.buffers[rank].scalar.bits = words->scalar;
	if (words->number != call->number)
		sign_check_past(call, rank,
			&(struct past_sign){words->number, words->sign_hash, card->sign});
	if (words->sign_hash != call->sign)
		sign_check_before(call, rank, words->number, words->before);
	sign_check(call, rank, card);
}

/* Ask for the words of the call, and for a message when they have come. */
static enum err words_await(
	struct host_call *call, const struct wait *wait, struct rx *rx)
{
	struct host_remote *remote = call->engine->remote;
	enum err e = OK;

	if (!rx->end)
		e = wires_from(remote->wires, wait->rank, (enum wire_purpose)wait->lane,
			&rx->end);
	if (!e && !rx->awaits_words) {
		e = remote->net->recv(
			rx->end, &rx->words, sizeof(rx->words), &rx->request);
		rx->awaits_words = !e;
	}
	if (!e)
		e = remote->net->test(&rx->request, 0);
	if (!e) {
		rx->awaits_words = false;
		streak_go_on(call, rx->end, &rx->streak);
		words_take(call, wait->rank, rx);
	}
	return e ? e : call->error;
}

/* Nothing of the destination is still on its way to somebody. */
static bool is_destination_free(
	struct host_call *call, const struct move *move, uint32_t tile)
{
	for (uint32_t i = 0; i < move->wait_count; i++) {
		const struct wait *wait =
			&call->shape->program->waits[move->wait_first + i];

		if (wait->kind == WAIT_SENT && tile >= wait->back &&
			!remote_has_left(call, wait, tile - wait->back))
			return false;
	}
	return true;
}

static enum err inbox_reserve(struct rx *rx, size_t bytes)
{
	if (bytes <= rx->inbox_bytes)
		return OK;
	free(rx->inbox);
	rx->inbox = aligned_alloc(64, (bytes + 63) / 64 * 64);
	rx->inbox_bytes = rx->inbox ? bytes : 0;
	return rx->inbox ? OK
			 : err_set(ERR_SYSTEM, "no memory for a message of %zu bytes",
				   bytes);
}

/* What the move takes from that rank. */
static const struct place *inbox_place(
	const struct program *program, const struct move *move, uint32_t rank)
{
	const struct place *place = &program->places[move->input_first];

	while (place->rank != rank ||
		(place->space != PLACE_INBOX && place->space != PLACE_INBOX_IN))
		place++;
	return place;
}

static enum err message_await(struct host_call *call, const struct move *move,
	uint32_t rank, struct rx *rx, uint32_t tile)
{
	const struct net_ops *net = call->engine->remote->net;
	const struct program *program = call->shape->program;
	const struct place *out = &program->places[move->output_first];
	uint32_t chunk = inbox_place(program, move, rank)->chunk;
	uint32_t lane = (uint32_t)(rx - call->engine->remote->rx) % SCHED_LANES_MAX;
	struct host_message message = {.peer = rank,
		.lane = lane,
		.bytes = message_bytes(call->shape, move, chunk, tile)};
	enum err e;

	rx->is_direct = host_move_is_copy(call, move) &&
			is_destination_free(call, move, tile);
	e = rx->is_direct ? OK : inbox_reserve(rx, call->shape->inbox_bytes);
	rx->told = e ? NULL : tell_began(call, &message);
	for (uint32_t j = 0; j < move->count && !e; j++) {
		remote_tell(call->engine->remote, rx->end, rx->told);
		e = net->recv(rx->end,
			rx->is_direct ? host_place(call, out, tile, j)
				      : rx->inbox + j * call->shape->staged_bytes,
			message_piece(call->shape, chunk, tile, j), &rx->request);
	}
	rx->awaits_message = !e;
	return e;
}

bool remote_has_come(struct host_call *call, const struct wait *wait, uint32_t tile)
{
	struct host_remote *remote = call->engine->remote;
	const struct lane *lane = &call->lanes[wait->lane];
	const struct program *program = call->shape->program;
	const struct move *move = &program->lanes[wait->lane].moves[lane->move];
	struct rx *rx = &remote->rx[wait->rank * SCHED_LANES_MAX + wait->lane];
	struct card *card = peer_card(call->engine->peers, wait->rank, call->number);
	uint64_t want =
		call->origin +
		(uint64_t)tile *
			program->lengths[wait->rank * SCHED_LANES_MAX + wait->lane] +
		wait->position;
	enum err e = OK;

	if (call->error)
		return false;
	if (rx->call != call->number)
		e = words_await(call, wait, rx);
	if (!e && !rx->awaits_message)
		e = message_await(call, move, wait->rank, rx, lane->tile);
	if (!e)
		e = remote->net->test(&rx->request, 0);
	if (!e && !call->error) {
		rx->awaits_message = false;
		rx->came++;
		tell_over(remote->teller, rx->told);
		call->come.has_landed[wait->lane] = rx->is_direct;
		atomic_store_explicit(
			&card->position[wait->lane], want, memory_order_release);
		return true;
	}
	if (e && e != ERR_AGAIN)
		call_fails(call, wait->rank, e);
	host_call_block(call, wait->rank, wait->lane, want);
	return false;
}

enum err remote_open_out(
	struct host_call *call, uint32_t rank, uint32_t lane, struct net_end **end)
{
	struct tx *tx = &call->engine->remote->tx[rank * SCHED_LANES_MAX + lane];
	enum err e = tx_open(call, tx, rank, (enum wire_purpose)lane);

	*end = e ? NULL : tx->end;
	return e;
}

enum err remote_open_in(
	struct host_call *call, uint32_t rank, uint32_t lane, struct net_end **end)
{
	struct rx *rx = &call->engine->remote->rx[rank * SCHED_LANES_MAX + lane];
	const struct wait wait = {.rank = (uint16_t)rank, .lane = (uint8_t)lane};
	enum err e = rx->call == call->number ? OK : words_await(call, &wait, rx);

	*end = e ? NULL : rx->end;
	return e;
}

struct carrier **remote_carrier(struct host_remote *remote)
{
	return &remote->carrier;
}

void remote_note_come(struct host_remote *remote, uint32_t rank, uint32_t lane)
{
	remote->rx[rank * SCHED_LANES_MAX + lane].came++;
}

char *remote_inbox(const struct host_engine *engine, const struct place *place)
{
	return engine->remote->rx[place->rank * SCHED_LANES_MAX + place->lane].inbox;
}

/* ---- waiting ---- */

void remote_sleep(struct host_call *call, uint32_t timeout_us)
{
	struct host_remote *remote = call->engine->remote;
	uint32_t index = call->blocked.rank * SCHED_LANES_MAX + call->blocked.lane;
	const struct rx *rx = &remote->rx[index];
	const struct tx *tx = &remote->tx[index];
	const struct leaving *leaving;

	/* what is still to leave may be what the others wait for */
	if (remote->busy && timeout_us > PUSH_US)
		timeout_us = PUSH_US;
	if (!call->error && (rx->awaits_words || rx->awaits_message)) {
		remote->net->test(&rx->request, timeout_us);
	} else if (!call->error && tx->leaving.count) {
		leaving = ring_at(&tx->leaving, sizeof(*leaving), 0);
		remote->net->test(&leaving->request, timeout_us);
	} else {
		usleep(timeout_us < PUSH_US ? timeout_us : PUSH_US);
	}
}
