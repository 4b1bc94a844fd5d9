#include "net/bundle.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* ---- life ---- */

static void bundle_free(struct bundle *bundle)
{
	pthread_cond_destroy(&bundle->news);
	pthread_mutex_destroy(&bundle->lock);
	free(bundle->early.things);
	free(bundle->again.things);
	free(bundle->parcels.things);
	free(bundle->fibres);
	free(bundle);
}

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
	bundle->times.moved_ns = clock_ns();
	for (uint32_t i = 0; i < bundle->count; i++)
		bundle->fibres[i].cable.fd = -1;
	pthread_mutex_init(&bundle->lock, NULL);
	pthread_cond_init(&bundle->news, NULL);
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
	helpers_stop(bundle);
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
	bundle_free(bundle);
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

	if (bundle->fibres[index].is_busy) { /* who is at it comes here then */
		shutdown(cable->fd, SHUT_RDWR);
		return;
	}
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
	bundle->notes.has_changed = true;
	bundle->times.lost_ns = clock_ns();
	if (end->is_sender)
		losses_tell(bundle);
	helpers_wake(bundle);
}

void bundle_came(struct net_end *end, uint32_t index)
{
	struct bundle *bundle = end->bundle;
	struct fibre *fibre = &bundle->fibres[index];

	if (!fibre->cable.ahead)
		fibre->cable.ahead = malloc(AHEAD_BYTES);
	if (fibre->cable.guard.kind == NET_SEALED)
		fibre->sealed = malloc(BLOCK_SEALED + OUTS_MAX * SHORT_BYTES);
	if (!fibre->cable.ahead ||
		(fibre->cable.guard.kind == NET_SEALED && !fibre->sealed)) {
		cable_lost(&fibre->cable, "no memory for it");
		bundle_drop(end, index);
	} else if (bundle->is_mendable) {
		cable_keep_alive(&fibre->cable, bundle->manner.silence_ms);
	}
	if (bundle->door && !is_awaiting(bundle))
		door_forget(bundle->door, end);
	/* those that were lost while none was open */
	bundle->notes.has_changed |= bundle->times.lost_ns != 0;
	if (end->is_sender)
		losses_tell(bundle);
	helpers_wake(bundle);
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
	struct parcel *parcel;
	enum err e = helpers_start(end); /* at the first, where there are any */

	if (e)
		return e;
	bundle_lock(end->bundle);
	parcel = ring_add(parcels, sizeof(*parcel));
	if (parcel) {
		*parcel = (struct parcel){.data = data, .bytes = bytes};
		*request = (struct net_request){
			.end = end, .goal = end->done + parcels->count};
		helpers_wake(end->bundle);
	}
	bundle_unlock(end->bundle);
	return parcel ? OK : ERR_SYSTEM;
}

/* Is some thread about to write a block of it? It may be noted already, when it went by
 * another cable or came before the system call that sent it was over; but its memory is
 * the caller's only after that. */
static bool is_in_hand(const struct bundle *bundle, uint64_t message)
{
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct fibre *fibre = &bundle->fibres[i];

		for (uint32_t j = 0; fibre->is_busy && j < fibre->out_count; j++)
			if (fibre->outs[j].head.kind == htole32(BLOCK_DATA) &&
				le64toh(fibre->outs[j].head.message) == message)
				return true;
	}
	return false;
}

void bundle_retire(struct net_end *end)
{
	struct bundle *bundle = end->bundle;

	while (bundle->parcels.count) {
		const struct parcel *parcel = parcel_at(bundle, 0);

		if (!parcel->is_whole || parcel->pending ||
			(end->is_sender && is_in_hand(bundle, end->done)))
			break;
		ring_drop(&bundle->parcels);
		bundle->cut -= end->is_sender;
		end->done++;
	}
	if (bundle->help.is_there && end->done != atomic_load(&bundle->help.shown)) {
		atomic_store(&bundle->help.shown, end->done);
		pthread_cond_signal(&bundle->news);
	}
}
