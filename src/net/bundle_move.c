/*
 * bundle_move.c - the cables of a bundle, opened, read and written as far as they go.
 */
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "net/bundle.h"

enum { SERVE_MS = 1, TEST_US = 100 };

/* Nobody waits for one that takes long, where another is open: blocks go by that. */
static void fibres_open(struct net_end *end)
{
	struct bundle *bundle = end->bundle;

	for (uint32_t i = 0; i < bundle->count; i++) {
		struct cable *cable = &bundle->fibres[i].cable;
		enum err e;

		if (cable->phase == CABLE_OPEN || cable->phase == CABLE_LOST ||
			cable->phase == CABLE_AWAITED)
			continue;
		e = approach_move(cable);
		if (e == OK)
			bundle_came(end, i);
		else if (e != ERR_AGAIN)
			bundle_drop(end, i);
	}
}

/* Without the lock: whoever comes in takes it. */
static void door_look(struct bundle *bundle)
{
	uint64_t now;

	if (!bundle->door)
		return;
	now = clock_ns();
	if (now - bundle->times.served_ns < SERVE_MS * CLOCK_MS)
		return;
	bundle->times.served_ns = now;
	(void)door_serve(bundle->door);
}

static bool is_expecting(const struct fibre *fibre)
{
	return fibre->out_count || fibre->flight.count;
}

static void mutes_drop(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	uint64_t now = clock_ns();

	if (now - bundle->times.looked_ns < MUTE_LOOK_MS * CLOCK_MS)
		return;
	bundle->times.looked_ns = now;
	for (uint32_t i = 0; i < bundle->count; i++) {
		struct fibre *fibre = &bundle->fibres[i];

		if (!is_expecting(fibre) ||
			!cable_is_mute(&fibre->cable, bundle->manner.silence_ms))
			continue;
		cable_lost(&fibre->cable, "the other host does not answer");
		bundle_drop(end, i);
	}
}

/* Those there is something to read from: all that are open, or fewer. */
static uint64_t fibres_readable(const struct bundle *bundle)
{
	struct pollfd fds[NET_CABLES_MAX];
	uint64_t readable = 0;

	for (uint32_t i = 0; i < bundle->count; i++)
		fds[i] = (struct pollfd){
			.fd = bundle->fibres[i].cable.fd, .events = POLLIN};
	poll(fds, bundle->count, 0);
	for (uint32_t i = 0; i < bundle->count; i++)
		if (fds[i].revents || bundle->fibres[i].cable.ahead_count ||
			bundle->fibres[i].has_in)
			readable |= (uint64_t)1 << i;
	return readable;
}

static void fibre_look(struct net_end *end, uint32_t index)
{
	struct bundle *bundle = end->bundle;

	if (bundle->is_broken || !fibre_is_open(&bundle->fibres[index]))
		return;
	if (fibre_read(end, index) == ERR_REMOTE && !bundle->is_broken)
		bundle_drop(end, index);
}

/* What is short comes by the first: then there is no need to look at the others. */
static void fibres_read(struct net_end *end, struct portion portion)
{
	struct bundle *bundle = end->bundle;
	uint32_t first = bundle_next(bundle, bundle->count - 1);
	uint64_t readable;

	if (first < bundle->count && first % portion.step == portion.first)
		fibre_look(end, first);
	if (bundle->count == 1 || (!bundle->parcels.count && !bundle->help.is_there))
		return;
	readable = fibres_readable(bundle);
	for (uint32_t i = portion.first; i < bundle->count; i += portion.step)
		if (i != first && readable >> i & 1)
			fibre_look(end, i);
}

/* One block by each cable in turn, as long as one of them has room. */
static void fibres_write(struct net_end *end, struct portion portion)
{
	struct bundle *bundle = end->bundle;
	bool has_moved = true;

	while (has_moved) {
		has_moved = false;
		for (uint32_t i = portion.first; i < bundle->count; i += portion.step) {
			enum err e;

			if (!fibre_is_open(&bundle->fibres[i]))
				continue;
			e = fibre_write(end, i);
			if (e == ERR_REMOTE)
				bundle_drop(end, i);
			has_moved |= e != ERR_AGAIN;
		}
	}
}

/* A cable for what must arrive though `index` may be lost: by another interface, if there
 * is one, else any other that is open. */
static uint32_t other_way(const struct bundle *bundle, uint32_t index)
{
	for (uint32_t i = 0; i < bundle->count; i++)
		if (fibre_is_open(&bundle->fibres[i]) &&
			bundle->fibres[i].cable.way != bundle->fibres[index].cable.way)
			return i;
	return bundle_next(bundle, index);
}

/* A note goes by the cable that brought something last: that one lives. Should it be lost
 * just now, the same note comes by another: the receiver may have all it wants and look
 * no more, or wait itself for a note of the sender's. */
static void notes_owe(struct bundle *bundle)
{
	uint32_t by = bundle->notes.last;

	if (!bundle->is_mendable ||
		(!bundle->notes.has_changed && bundle->notes.unnoted < NOTE_EVERY))
		return;
	bundle->notes.has_changed = false;
	bundle->notes.unnoted = 0;
	if (!fibre_is_open(&bundle->fibres[by]))
		by = bundle_next(bundle, by);
	if (by == bundle->count)
		return;
	bundle->fibres[by].note_due = true;
	bundle->fibres[other_way(bundle, by)].note_due = true;
	helpers_wake(bundle);
}

static bool is_expected(const struct bundle *bundle)
{
	bool expects = false;

	for (uint32_t i = 0; i < bundle->count; i++)
		expects |= is_expecting(&bundle->fibres[i]);
	return expects && bundle->is_mendable;
}

static void bundle_send(struct net_end *end, struct portion portion)
{
	fibres_write(end, portion);
	if (!is_expected(end->bundle))
		return;
	fibres_read(end, portion);
	fibres_write(end, portion);
}

static void bundle_take(struct net_end *end, struct portion portion)
{
	struct bundle *bundle = end->bundle;
	uint64_t before = bundle->notes.arrivals;

	if (bundle->early.count)
		early_take(end);
	fibres_read(end, portion);
	if (bundle->notes.arrivals != before)
		bundle->times.moved_ns = clock_ns();
	notes_owe(bundle);
	fibres_write(end, portion);
}

bool bundle_is_lost(const struct bundle *bundle)
{
	bool is_awaiting = false;

	if (bundle->is_broken)
		return true;
	for (uint32_t i = 0; i < bundle->count; i++) {
		enum cable_phase phase = bundle->fibres[i].cable.phase;

		if (phase != CABLE_LOST && phase != CABLE_AWAITED)
			return false;
		is_awaiting |= phase == CABLE_AWAITED;
	}
	return !is_awaiting || !bundle->door ||
	       clock_ns() - bundle->times.lost_ns > AWAIT_MS * CLOCK_MS;
}

void bundle_move(struct net_end *end, struct portion portion)
{
	if (end->is_sender)
		bundle_send(end, portion);
	else
		bundle_take(end, portion);
}

/* Cables that come and go, which only the caller looks after; and all the rest, where
 * there are no helpers. */
static enum err test_once(struct net_end *end, uint64_t goal)
{
	static const struct portion all = {0, 1};
	struct bundle *bundle = end->bundle;

	if (end->done < goal && !bundle_is_lost(bundle)) {
		fibres_open(end);
		if (!bundle->help.is_there)
			bundle_move(end, all);
		if (end->is_sender && is_expected(bundle))
			mutes_drop(end);
	}
	if (end->done >= goal)
		return OK;
	if (!bundle_is_lost(bundle))
		return ERR_AGAIN;
	return err_set(ERR_REMOTE, "the connection with %s was lost: %s", bundle->where,
		bundle->why);
}

short fibre_events(const struct fibre *fibre)
{
	bool is_writing = fibre->out_count || fibre->cable.phase == CABLE_CONNECTING ||
			  fibre->cable.phase == CABLE_CLAIMING;
	/* what waits to be asked for would be no news */
	bool is_reading = !fibre->has_in || fibre->in_to;

	return (short)((is_reading ? POLLIN : 0) | (is_writing ? POLLOUT : 0));
}

static void test_sleep(struct bundle *bundle, uint32_t wait_us)
{
	struct timespec time = {.tv_nsec = (long)wait_us * 1000};
	struct pollfd fds[NET_CABLES_MAX];

	if (bundle->help.is_there) {
		clock_gettime(CLOCK_REALTIME, &time);
		time.tv_nsec += (long)wait_us * 1000;
		time.tv_sec += time.tv_nsec / (long)CLOCK_SEC;
		time.tv_nsec %= (long)CLOCK_SEC;
		pthread_cond_timedwait(&bundle->news, &bundle->lock, &time);
		return;
	}
	for (uint32_t i = 0; i < bundle->count; i++)
		fds[i] = (struct pollfd){.fd = bundle->fibres[i].cable.fd,
			.events = fibre_events(&bundle->fibres[i])};
	ppoll(fds, bundle->count, &time, NULL);
}

/* Who asks again and again must not keep the lock from those who do the work. */
static bool is_left_to_helpers(
	struct bundle *bundle, uint64_t goal, uint32_t wait_us, enum err *e)
{
	uint64_t now;

	if (!bundle->help.is_there)
		return false;
	*e = OK;
	if (atomic_load(&bundle->help.shown) >= goal)
		return true;
	now = clock_ns();
	*e = ERR_AGAIN;
	if (!wait_us && now - bundle->help.tested_ns < TEST_US * CLOCK_MS / 1000)
		return true;
	bundle->help.tested_ns = now;
	return false;
}

enum err bundle_test(const struct net_request *request, uint32_t wait_us)
{
	struct net_end *end = request->end;
	enum err e;

	if (is_left_to_helpers(end->bundle, request->goal, wait_us, &e))
		return e;
	door_look(end->bundle);
	bundle_lock(end->bundle);
	e = test_once(end, request->goal);
	if (e == ERR_AGAIN && wait_us) {
		test_sleep(end->bundle, wait_us);
		e = test_once(end, request->goal);
	}
	bundle_unlock(end->bundle);
	return e;
}
