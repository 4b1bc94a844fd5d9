#include "exec/host/p2p.h"

#include <string.h>
#include <unistd.h>

#include "exec/host/cut.h"
#include "exec/host/p2p_far.h"
#include "exec/host/peers.h"
#include "exec/host/remote.h"
#include "exec/host/state.h"
#include "link/foreign.h"

/* Below this a copy through the slot beats waiting for the receiver. */
enum { EAGER_BYTES = 4 << 10 };

/* From here on the kernel's one copy beats two of ours. */
enum { FOREIGN_BYTES = 16 << 10 };

void p2p_init(struct p2p *p2p, struct host_engine *engine, bool is_send, uint32_t peer)
{
	*p2p = (struct p2p){.engine = engine, .is_send = is_send, .peer = peer};
}

static bool is_near(const struct p2p *p2p)
{
	return peer_is_local(p2p->engine->peers, p2p->peer);
}

/* With one that is near. */
static enum err pair_meet(struct p2p *p2p)
{
	const struct host_engine *engine = p2p->engine;

	if (p2p->pair)
		return OK;
	return p2p->is_send
		       ? peer_pair(engine->peers, engine->rank, p2p->peer, &p2p->pair)
		       : peer_pair(engine->peers, p2p->peer, engine->rank, &p2p->pair);
}

static enum err refused(const struct p2p *p2p, const struct box *box)
{
	return err_set(ERR_USAGE,
		"rank %u sends %zu bytes to rank %u, which expects %lu: a send and its "
		"receive "
		"must have the same size",
		p2p->engine->rank, p2p->bytes, p2p->peer, (unsigned long)box->expected);
}

static void letter_post(struct p2p *p2p, struct box *box, const struct letter *letter)
{
	uint64_t number = p2p->engine->letters.posted[p2p->peer]++;

	box->letters[number % BOX_LETTERS] = *letter;
	word_publish(&box->posted, &box->posted_sleepers, number + 1);
	p2p->started = true;
	p2p->done += letter->bytes;
}

static enum err send_piece(struct p2p *p2p, struct box *box)
{
	struct host_engine *engine = p2p->engine;
	size_t room = engine->peers->board->pair_bytes, left = p2p->bytes - p2p->done;
	struct letter letter = {.total = p2p->bytes, .bytes = left < room ? left : room};
	char *slot = pair_slot(
		engine->peers->board, p2p->pair, engine->letters.posted[p2p->peer]);

	if (letter.bytes)
		memcpy(slot, p2p->data + p2p->done, letter.bytes);
	letter_post(p2p, box, &letter);
	return p2p->done == p2p->bytes ? OK : ERR_AGAIN;
}

static enum err send_step(struct p2p *p2p, struct box *box)
{
	struct host_engine *engine = p2p->engine;
	uint64_t posted = engine->letters.posted[p2p->peer];
	uint64_t taken = atomic_load_explicit(&box->taken, memory_order_acquire);
	struct letter letter = {.total = p2p->bytes, .bytes = p2p->bytes};

	/* before it was set, the receiver wrote what it expects */
	if (atomic_load_explicit(&box->refused, memory_order_acquire))
		return refused(p2p, box);
	if (p2p->lent)
		return taken == posted ? OK : ERR_AGAIN;
	if (posted - taken >= BOX_LETTERS)
		return ERR_AGAIN;
	if (!p2p->started && p2p->bytes > EAGER_BYTES)
		letter.ref = ref_make(
			engine->refs, p2p->data, p2p->bytes, &letter.directory);
	if (letter.ref == REF_NONE && !p2p->started && engine->memory.foreign &&
		p2p->bytes >= FOREIGN_BYTES)
		letter.ref = ref_make_foreign(p2p->data);
	if (letter.ref == REF_NONE)
		return send_piece(p2p, box);
	letter_post(p2p, box, &letter);
	p2p->lent = true;
	return ERR_AGAIN;
}

static bool p2p_needs(const void *what, uint32_t rank)
{
	return rank == ((const struct p2p *)what)->peer;
}

/* Copy what a letter brings to where it belongs. */
static enum err letter_fetch(
	struct p2p *p2p, const struct letter *letter, uint64_t number)
{
	struct host_engine *engine = p2p->engine;
	char *to = p2p->data + p2p->done;
	void *from = pair_slot(engine->peers->board, p2p->pair, number);
	enum err e = OK;

	if (letter->ref != REF_NONE)
		e = host_failed_check(engine, UINT64_MAX);
	if (letter->ref != REF_NONE && !e)
		e = host_follow(engine, p2p->peer, letter->ref, letter->directory, &from);
	if (e || !letter->bytes)
		return e;
	if (!ref_is_foreign(engine->refs, p2p->peer, letter->ref)) {
		kernel_copy(to, from, letter->bytes);
		return OK;
	}
	e = foreign_read(
		peer_status(engine->peers, p2p->peer)->pid, to, from, letter->bytes);
	return e ? host_blame(engine, e) : OK;
}

static enum err recv_step(struct p2p *p2p, struct box *box)
{
	struct host_engine *engine = p2p->engine;
	uint64_t number = engine->letters.taken[p2p->peer];
	struct letter letter;
	enum err e;

	if (atomic_load_explicit(&box->posted, memory_order_acquire) == number)
		return ERR_AGAIN;
	letter = box->letters[number % BOX_LETTERS];
	if (letter.total != p2p->bytes || letter.bytes > p2p->bytes - p2p->done) {
		box->expected = p2p->bytes;
		atomic_store(&box->refused, 1);
		word_publish(&box->taken, &box->taken_sleepers, number);
		return err_set(ERR_USAGE,
			"rank %u receives %zu bytes from rank %u, which sends %lu: a "
			"send and its receive must have the same size",
			engine->rank, p2p->bytes, p2p->peer, (unsigned long)letter.total);
	}
	host_touch(engine, TOUCH_CALL);
	e = letter_fetch(p2p, &letter, number);
	host_touch(engine, TOUCH_NONE);
	/* a sender that gave up meanwhile may have had its buffer back by then */
	if (!e && letter.ref != REF_NONE)
		e = host_failed_check(engine, UINT64_MAX);
	if (e)
		return e;
	p2p->done += letter.bytes;
	engine->letters.taken[p2p->peer] = number + 1;
	word_publish(&box->taken, &box->taken_sleepers, number + 1);
	return p2p->done == p2p->bytes ? OK : ERR_AGAIN;
}

enum err p2p_step(struct p2p *p2p)
{
	struct box *box;
	enum err e;
	size_t before;

	if (!is_near(p2p))
		return far_step(p2p);
	e = pair_meet(p2p);
	if (e)
		return e;
	box = &p2p->pair->box;

	do { /* pieces go on as long as there are letters */
		before = p2p->done;
		e = p2p->is_send ? send_step(p2p, box) : recv_step(p2p, box);
	} while (e == ERR_AGAIN && p2p->done != before && !p2p->lent);
	return e;
}

enum err p2p_check(struct p2p *p2p)
{
	if (p2p->engine->abort && atomic_load(p2p->engine->abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	if (p2p->share.number)
		cut_block(p2p);
	/* what was posted before the sender left can still be taken */
	if (is_near(p2p) && !p2p->is_send &&
		atomic_load(&p2p->pair->box.posted) !=
			p2p->engine->letters.taken[p2p->peer])
		return OK;
	if (!is_near(p2p) && !p2p->is_send &&
		health_has_left(p2p->engine->health, p2p->peer) && far_is_heard(p2p))
		return OK;
	return host_peers_check(p2p->engine, p2p_needs, p2p);
}

struct doing p2p_doing(const struct p2p *p2p)
{
	uint64_t before = p2p->engine->letters.taken[p2p->peer];

	if (p2p->is_send)
		before = is_near(p2p) ? atomic_load(&p2p->pair->box.taken)
				      : p2p->engine->letters.posted[p2p->peer] -
						(p2p->far.asked > 0);
	return (struct doing){.kind = p2p->is_send ? DOING_SEND : DOING_RECV,
		.rank = p2p->peer,
		.number = before,
		.is_leaving = p2p->is_send && !is_near(p2p),
		.sign = {.count = p2p->bytes}};
}

_Atomic uint64_t *p2p_word(const struct p2p *p2p, _Atomic uint32_t **sleepers)
{
	struct box *box = &p2p->pair->box;

	*sleepers = p2p->is_send ? &box->taken_sleepers : &box->posted_sleepers;
	return p2p->is_send ? &box->taken : &box->posted;
}

bool p2p_awaits_tide(const struct p2p *p2p)
{
	return p2p->tide &&
	       (p2p->share.is_over ? cut_awaits_tide(p2p) : far_awaits_tide(p2p));
}

uint64_t p2p_stamp(const struct p2p *p2p)
{
	return p2p->done + p2p->started + p2p->far.asked + p2p->far.over +
	       p2p->share.seen;
}

void p2p_sleep(const struct p2p *p2p, uint32_t timeout_us)
{
	far_sleep(p2p, timeout_us);
}
