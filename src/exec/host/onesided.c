#include "exec/host/onesided.h"

#include "exec/host/peers.h"
#include "exec/host/state.h"

static struct box *signal_box(const struct onesided *onesided)
{
	const struct host_engine *engine = onesided->engine;

	return onesided->awaited ? board_box(engine->board, onesided->peer, engine->rank)
				 : board_box(engine->board, engine->rank, onesided->peer);
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

enum err onesided_step(struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;
	struct box *box = signal_box(onesided);
	uint64_t *count = &engine->signals[onesided->peer];
	enum err e = OK;

	if (onesided->awaited) {
		uint64_t want = engine->awaited[onesided->peer] + onesided->awaited;

		/* pairs with the release in word_publish(): the data are there too */
		if (!position_reached(
			    atomic_load_explicit(&box->signals, memory_order_acquire),
			    want))
			return ERR_AGAIN;
		engine->awaited[onesided->peer] = want;
		return OK;
	}
	if (onesided->bytes) {
		host_touch(engine, TOUCH_WINDOW);
		e = put_store(onesided);
		host_touch(engine, TOUCH_NONE);
	}
	if (!e)
		word_publish(&box->signals, &box->signal_sleepers, ++*count);
	return e;
}

static bool onesided_needs(const void *what, uint32_t rank)
{
	return rank == ((const struct onesided *)what)->peer;
}

enum err onesided_check(struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;

	if (engine->abort && atomic_load(engine->abort))
		return err_set(ERR_REMOTE, "the communicator was aborted");
	return host_peers_check(engine, onesided_needs, onesided);
}

struct doing onesided_doing(const struct onesided *onesided)
{
	uint64_t before = onesided->engine->awaited[onesided->peer];

	return (struct doing){.kind = DOING_SIGNAL,
		.rank = onesided->peer,
		.number = before,
		.want = before + onesided->awaited,
		.sign = {.count = onesided->awaited}};
}

_Atomic uint64_t *onesided_word(
	const struct onesided *onesided, _Atomic uint32_t **sleepers)
{
	struct box *box = signal_box(onesided);

	*sleepers = &box->signal_sleepers;
	return &box->signals;
}
