#include "net/bundle.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { SERVE_MS = 1 };

/* ---- life ---- */

struct bundle *bundle_make(
	const struct cable_place *place, const struct net_manner *manner)
{
	struct bundle *bundle = calloc(1, sizeof(*bundle));

	if (bundle)
		bundle->fibres = calloc(place->count, sizeof(*bundle->fibres));
	if (!bundle || !bundle->fibres) {
		free(bundle);
		err_set(ERR_SYSTEM, "no memory for a connection");
		return NULL;
	}
	bundle->place = *place;
	bundle->manner = *manner;
	bundle->count = place->count;
	bundle->is_mendable = place->count > 1;
	bundle->moved_ns = clock_ns();
	for (uint32_t i = 0; i < bundle->count; i++)
		bundle->fibres[i].cable.fd = -1;
	return bundle;
}

static void fibre_clear(struct fibre *fibre)
{
	free(fibre->in_store);
	fibre->in_store = NULL;
	fibre->has_in = false;
	fibre->out_count = 0;
	fibre->out_bytes = 0;
}

void bundle_close(struct net_end *end)
{
	struct bundle *bundle = end->bundle;

	if (!bundle)
		return;
	if (bundle->door)
		door_forget(bundle->door, end);
	for (uint32_t i = 0; i < bundle->count; i++) {
		struct fibre *fibre = &bundle->fibres[i];

		/* the last note may have been lost with a cable */
		fibre->note_due = !end->is_sender && bundle->is_mendable;
		if (fibre_is_open(fibre))
			fibre_write(end, i);
		fibre_clear(fibre);
		cable_close(&fibre->cable);
		free(fibre->sealed);
		free(fibre->flight.things);
	}
	for (; bundle->early.count; ring_drop(&bundle->early))
		free(((struct early *)ring_at(&bundle->early, sizeof(struct early), 0))
				->data);
	free(bundle->early.things);
	free(bundle->again.things);
	free(bundle->parcels.things);
	free(bundle->fibres);
	free(bundle);
	end->bundle = NULL;
}

enum err bundle_connect(const struct net_connect_args *args, struct net_end *end)
{
	uint32_t cables = args->manner.cables ? args->manner.cables : 1;
	struct cable_place place = {
		.count = (uint16_t)(cables < NET_CABLES_MAX ? cables : NET_CABLES_MAX)};
	enum err e = OK;

	auth_random(place.end, sizeof(place.end));
	end->bundle = bundle_make(&place, &args->manner);
	if (!end->bundle)
		return ERR_SYSTEM;
	for (uint32_t i = 0; i < place.count && !e; i++) {
		place.index = (uint16_t)i;
		e = approach_make(args, &place, &end->bundle->fibres[i].cable);
	}
	return e;
}

bool bundle_is_at(const struct bundle *bundle, const struct cable_place *place)
{
	return bundle->count == place->count &&
	       !memcmp(bundle->place.end, place->end, sizeof(place->end)) &&
	       bundle->fibres[place->index].cable.phase == CABLE_AWAITED;
}

struct cable *bundle_cable(struct bundle *bundle, uint32_t index)
{
	return &bundle->fibres[index].cable;
}

/* ---- cables that come and go ---- */

static bool is_awaiting(const struct bundle *bundle)
{
	for (uint32_t i = 0; i < bundle->count; i++)
		if (bundle->fibres[i].cable.phase == CABLE_AWAITED)
			return true;
	return false;
}

void bundle_came(struct net_end *end, uint32_t index)
{
	struct bundle *bundle = end->bundle;
	struct fibre *fibre = &bundle->fibres[index];

	if (!fibre->cable.ahead)
		fibre->cable.ahead = malloc(AHEAD_BYTES);
	if (fibre->cable.guard.kind == NET_SEALED)
		fibre->sealed = malloc(BLOCK_GUARDED + OUTS_MAX * SHORT_BYTES);
	if (!fibre->cable.ahead ||
		(fibre->cable.guard.kind == NET_SEALED && !fibre->sealed)) {
		cable_lost(&fibre->cable, "no memory for it");
		bundle_drop(end, index);
	} else if (bundle->is_mendable) {
		cable_keep_alive(&fibre->cable, bundle->manner.silence_ms);
	}
	if (bundle->door && !is_awaiting(bundle))
		door_forget(bundle->door, end);
}

uint32_t bundle_next(const struct bundle *bundle, uint32_t index)
{
	for (uint32_t i = 1; i <= bundle->count; i++)
		if (fibre_is_open(&bundle->fibres[(index + i) % bundle->count]))
			return (index + i) % bundle->count;
	return bundle->count;
}

/* The other end has to know of every cable that is lost, and who told it may be lost,
 * too. */
static void losses_tell(struct bundle *bundle)
{
	uint32_t by = bundle_next(bundle, bundle->count - 1);

	for (uint32_t i = 0; i < bundle->count && by < bundle->count; i++)
		if (bundle->fibres[i].cable.phase == CABLE_LOST &&
			!bundle->fibres[i].is_settled)
			bundle->fibres[by].lost_due |= (uint64_t)1 << i;
}

void bundle_drop(struct net_end *end, uint32_t index)
{
	struct bundle *bundle = end->bundle;
	struct cable *cable = &bundle->fibres[index].cable;
	uint32_t open = 0;

	if (cable->fd >= 0)
		close(cable->fd);
	cable->fd = -1;
	fibre_clear(&bundle->fibres[index]);
	for (uint32_t i = 0; i < bundle->count; i++)
		open += fibre_is_open(&bundle->fibres[i]);
	memcpy(bundle->why, cable->why, sizeof(bundle->why));
	memcpy(bundle->where, cable->where, sizeof(bundle->where));
	log_info(LOG_NET,
		"NET/Socket : a connection with %s was lost (%s), %u of %u are left",
		cable->where[0] ? cable->where : "another rank", cable->why, open,
		bundle->count);
	bundle->has_changed = true;
	if (end->is_sender)
		losses_tell(bundle);
}

enum err bundle_broken(struct bundle *bundle, const struct cable *cable)
{
	memcpy(bundle->why, cable->why, sizeof(bundle->why));
	memcpy(bundle->where, cable->where, sizeof(bundle->where));
	bundle->is_broken = true;
	return ERR_REMOTE;
}

/* ---- messages ---- */

enum err bundle_ask(
	struct net_end *end, char *data, size_t bytes, struct net_request *request)
{
	struct ring *parcels = &end->bundle->parcels;
	struct parcel *parcel = ring_add(parcels, sizeof(*parcel));

	if (!parcel)
		return ERR_SYSTEM;
	*parcel = (struct parcel){.data = data, .bytes = bytes};
	*request = (struct net_request){.end = end, .goal = end->done + parcels->count};
	return OK;
}

void bundle_retire(struct net_end *end)
{
	struct bundle *bundle = end->bundle;

	while (bundle->parcels.count) {
		const struct parcel *parcel = parcel_at(bundle, 0);

		if (!parcel->is_whole || parcel->pending)
			break;
		ring_drop(&bundle->parcels);
		bundle->cut -= end->is_sender;
		end->done++;
	}
}

/* ---- moving ---- */

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

static void door_look(struct bundle *bundle)
{
	uint64_t now = clock_ns();

	if (now - bundle->served_ns < SERVE_MS * CLOCK_MS)
		return;
	bundle->served_ns = now;
	door_serve(bundle->door);
}

static bool is_expecting(const struct fibre *fibre)
{
	return fibre->out_count || fibre->flight.count;
}

static void mutes_drop(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	uint64_t now = clock_ns();

	if (now - bundle->looked_ns < MUTE_LOOK_MS * CLOCK_MS)
		return;
	bundle->looked_ns = now;
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
static void fibres_read(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	uint32_t first = bundle_next(bundle, bundle->count - 1);
	uint64_t readable;

	if (first < bundle->count)
		fibre_look(end, first);
	if (bundle->count == 1 || !bundle->parcels.count)
		return;
	readable = fibres_readable(bundle);
	for (uint32_t i = 0; i < bundle->count; i++)
		if (i != first && readable >> i & 1)
			fibre_look(end, i);
}

/* One block by each cable in turn, as long as one of them has room. */
static void fibres_write(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	bool has_moved = true;

	while (has_moved) {
		has_moved = false;
		for (uint32_t i = 0; i < bundle->count; i++) {
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

/* Do they go to different addresses of the other host? */
static bool is_other_way(const struct fibre *a, const struct fibre *b)
{
	const char *port_a = strrchr(a->cable.where, ':');
	const char *port_b = strrchr(b->cable.where, ':');

	return port_a && port_b &&
	       (port_a - a->cable.where != port_b - b->cable.where ||
		       strncmp(a->cable.where, b->cable.where,
			       (size_t)(port_a - a->cable.where)) != 0);
}

/* A note goes by the cable that brought something last: that one lives. Should it be lost
 * just now, the same note comes by another interface: the receiver may have all it wants
 * and look no more, or wait itself for a note of the sender's. */
static void notes_owe(struct bundle *bundle)
{
	uint32_t by = bundle->last;

	if (!bundle->is_mendable ||
		(!bundle->has_changed && bundle->unnoted < NOTE_EVERY))
		return;
	bundle->has_changed = false;
	bundle->unnoted = 0;
	if (!fibre_is_open(&bundle->fibres[by]))
		by = bundle_next(bundle, by);
	if (by == bundle->count)
		return;
	bundle->fibres[by].note_due = true;
	for (uint32_t i = 0; i < bundle->count; i++)
		if (fibre_is_open(&bundle->fibres[i]) &&
			is_other_way(&bundle->fibres[i], &bundle->fibres[by])) {
			bundle->fibres[i].note_due = true;
			break;
		}
}

static void bundle_send(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	bool expects = false;

	fibres_write(end);
	for (uint32_t i = 0; i < bundle->count; i++)
		expects |= is_expecting(&bundle->fibres[i]);
	if (!expects || !bundle->is_mendable)
		return;
	fibres_read(end);
	mutes_drop(end);
	fibres_write(end);
}

static void bundle_take(struct net_end *end)
{
	struct bundle *bundle = end->bundle;
	uint64_t before = bundle->arrivals;

	if (bundle->door)
		door_look(bundle);
	if (bundle->early.count)
		early_take(end);
	fibres_read(end);
	if (bundle->arrivals != before)
		bundle->moved_ns = clock_ns();
	notes_owe(bundle);
	fibres_write(end);
}

static bool is_lost(const struct bundle *bundle)
{
	if (bundle->is_broken)
		return true;
	for (uint32_t i = 0; i < bundle->count; i++)
		if (bundle->fibres[i].cable.phase != CABLE_LOST &&
			bundle->fibres[i].cable.phase != CABLE_AWAITED)
			return false;
	return true;
}

enum err bundle_move(struct net_end *end)
{
	struct bundle *bundle = end->bundle;

	if (!is_lost(bundle)) {
		fibres_open(end);
		if (end->is_sender)
			bundle_send(end);
		else
			bundle_take(end);
	}
	if (is_lost(bundle))
		return err_set(ERR_REMOTE, "the connection with %s was lost: %s",
			bundle->where, bundle->why);
	return bundle->parcels.count ? ERR_AGAIN : OK;
}

void bundle_sleep(const struct net_end *end, uint32_t wait_us)
{
	const struct bundle *bundle = end->bundle;
	struct timespec time = {.tv_nsec = (long)wait_us * 1000};
	struct pollfd fds[NET_CABLES_MAX];

	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct fibre *fibre = &bundle->fibres[i];
		bool is_writing = fibre->out_count > 0 ||
				  fibre->cable.phase == CABLE_CONNECTING ||
				  fibre->cable.phase == CABLE_CLAIMING;
		/* what waits to be asked for would be no news */
		bool is_reading = !fibre->has_in || fibre->in_to;

		fds[i] = (struct pollfd){.fd = fibre->cable.fd,
			.events = (short)((is_reading ? POLLIN : 0) |
					  (is_writing ? POLLOUT : 0))};
	}
	ppoll(fds, bundle->count, &time, NULL);
}
