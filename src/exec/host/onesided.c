#include "exec/host/onesided.h"

#include "exec/host/peers.h"
#include "exec/host/state.h"

static struct signal *signal_of(const struct onesided *onesided)
{
	const struct host_engine *engine = onesided->engine;
	uint32_t from = onesided->awaited ? onesided->peer : engine->rank;
	uint32_t to = onesided->awaited ? engine->rank : onesided->peer;

	return peer_signal(engine->peers, from, to, onesided->signal);
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

enum err onesided_step(struct onesided *onesided)
{
	struct host_engine *engine = onesided->engine;
	struct signal *signal = signal_of(onesided);
	uint64_t *count = &engine->signals[count_of(onesided)];
	uint64_t *awaited = &engine->awaited[count_of(onesided)];
	enum err e = OK;

	if (onesided->awaited) {
		uint64_t want = *awaited + onesided->awaited;

		/* pairs with the release in word_publish(): the data are there too */
		if (!position_reached(
			    atomic_load_explicit(&signal->given, memory_order_acquire),
			    want))
			return ERR_AGAIN;
		*awaited = want;
		return OK;
	}
	if (onesided->bytes) {
		host_touch(engine, TOUCH_WINDOW);
		e = put_store(onesided);
		host_touch(engine, TOUCH_NONE);
	}
	if (!e)
		word_publish(&signal->given, &signal->sleepers, ++*count);
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
	uint64_t before = onesided->engine->awaited[count_of(onesided)];

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
	struct signal *signal = signal_of(onesided);

	*sleepers = &signal->sleepers;
	return &signal->given;
}
