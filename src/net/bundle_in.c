/*
 * bundle_in.c - blocks read from cables, and put together again.
 */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "net/bundle.h"

/* ---- heads ---- */

static const uint64_t total_max = (uint64_t)1 << 62;

static bool is_data(const struct block_head *head)
{
	return head->kind == htole32(BLOCK_DATA);
}

/* Does it make sense for this end to be told that? */
static bool is_sensible(const struct net_end *end, const struct block_head *head)
{
	const struct bundle *bundle = end->bundle;
	uint32_t bytes = le32toh(head->bytes);
	uint64_t offset = le64toh(head->offset), total = le64toh(head->total);

	switch (le32toh(head->kind)) {
	case BLOCK_DATA:
		return !end->is_sender && bytes <= BLOCK_MOST && total <= total_max &&
		       offset <= total && bytes <= total - offset &&
		       le64toh(head->message) >= end->done &&
		       le64toh(head->message) - end->done < UINT32_MAX;
	case BLOCK_LOST:
		return !end->is_sender && !bytes && offset < bundle->count;
	case BLOCK_NOTE:
		return end->is_sender && bytes == bundle->count * sizeof(uint64_t);
	default:
		return false;
	}
}

static enum err head_broken(struct bundle *bundle, struct fibre *fibre)
{
	snprintf(fibre->cable.why, sizeof(fibre->cable.why),
		"the head of its block %" PRIu64
		" was changed on the way: no byte of it can be trusted",
		fibre->cable.guard.in_count);
	return bundle_broken(bundle, &fibre->cable);
}

static enum err head_read(struct net_end *end, struct fibre *fibre)
{
	struct cable *cable = &fibre->cable;
	enum err e = cable_have(cable, sizeof(fibre->in));

	if (e)
		return e;
	memcpy(&fibre->in, cable_kept(cable), sizeof(fibre->in));
	cable_drop(cable, sizeof(fibre->in));
	if (!guard_check_head(&cable->guard, &fibre->in))
		return head_broken(end->bundle, fibre);
	if (!is_sensible(end, &fibre->in))
		return cable_lost(cable, "it brought what is no message");
	fibre->has_in = true;
	fibre->in_done = 0;
	fibre->in_to = NULL;
	return OK;
}

/* ---- where the bytes go ---- */

/* The message it is of; NULL: nobody has asked for that one yet. */
static struct parcel *parcel_of(const struct net_end *end, const struct block_head *head)
{
	uint64_t index = le64toh(head->message) - end->done;

	return index < end->bundle->parcels.count
		       ? parcel_at(end->bundle, (uint32_t)index)
		       : NULL;
}

/* What nobody has asked for stays in the kernel, unless something that was asked for may
 * stand behind it: what a lost cable held comes again by another, behind newer ones. */
static bool may_keep(const struct bundle *bundle)
{
	if (!bundle->is_mendable || !bundle->parcels.count)
		return false;
	for (uint32_t i = 0; i < bundle->count; i++)
		if (bundle->fibres[i].cable.phase == CABLE_LOST)
			return true;
	return clock_ns() - bundle->times.moved_ns > STALL_MS * CLOCK_MS;
}

static enum err target_choose(struct net_end *end, struct fibre *fibre)
{
	const struct parcel *parcel = is_data(&fibre->in) ? parcel_of(end, &fibre->in)
							  : NULL;
	uint64_t offset = le64toh(fibre->in.offset);
	uint32_t bytes = le32toh(fibre->in.bytes);

	if (!is_data(&fibre->in)) {
		fibre->in_to = (char *)fibre->note;
		return OK;
	}
	if (!parcel && !may_keep(end->bundle))
		return ERR_AGAIN;
	if (parcel && offset <= parcel->bytes && bytes <= parcel->bytes - offset) {
		fibre->in_to = parcel->data + offset;
		return OK;
	}
	fibre->in_store = malloc(bytes ? bytes : 1);
	fibre->in_to = fibre->in_store;
	return fibre->in_to ? OK : cable_lost(&fibre->cable, "no memory for its block");
}

/* The one thing that takes long: others may go on meanwhile. */
static enum err body_receive(
	struct bundle *bundle, struct fibre *fibre, struct iovec list, size_t *direct)
{
	ssize_t got;
	int error;

	fibre->is_busy = true;
	bundle_unlock(bundle);
	got = cable_receive(&fibre->cable, list, AHEAD_TAIL);
	error = errno;
	bundle_lock(bundle);
	fibre->is_busy = false;
	if (fibre->cable.phase == CABLE_LOST)
		return ERR_REMOTE;
	errno = error;
	return cable_received(&fibre->cable, got, list, direct);
}

static enum err body_read(struct bundle *bundle, struct fibre *fibre)
{
	struct cable *cable = &fibre->cable;
	size_t left = le32toh(fibre->in.bytes) - fibre->in_done, bytes = 0;
	char *to = fibre->in_to + fibre->in_done;
	enum err e = OK;

	if (cable->ahead_count) {
		bytes = left < cable->ahead_count ? left : cable->ahead_count;
		memcpy(to, cable_kept(cable), bytes);
		cable_drop(cable, bytes);
	} else if (left >= SHORT_BYTES) {
		e = body_receive(bundle, fibre, (struct iovec){to, left}, &bytes);
	} else {
		e = cable_fill(cable, (struct iovec){0}, AHEAD_BYTES, &bytes);
	}
	if (!e)
		fibre->in_done += bytes;
	return e;
}

/* .. and this the other. */
static bool body_check(
	struct bundle *bundle, struct fibre *fibre, struct guard_span *wrong)
{
	bool is_right;

	fibre->is_busy = true;
	bundle_unlock(bundle);
	is_right = guard_check_body(&fibre->cable.guard, &fibre->in, fibre->in_to, wrong);
	bundle_lock(bundle);
	fibre->is_busy = false;
	return is_right;
}

/* ---- blocks that have come ---- */

static void parcel_add(struct net_end *end, struct parcel *parcel,
	const struct block_head *head, const char *stored)
{
	uint64_t offset = le64toh(head->offset);
	uint32_t bytes = le32toh(head->bytes);

	if (stored && offset < parcel->bytes)
		memcpy(parcel->data + offset, stored,
			bytes < parcel->bytes - offset ? bytes : parcel->bytes - offset);
	parcel->moved += bytes;
	parcel->is_whole = parcel->moved >= le64toh(head->total);
	end->bundle->notes.has_changed |= parcel->is_whole;
}

static enum err body_broken(
	struct bundle *bundle, struct fibre *fibre, struct guard_span wrong)
{
	uint64_t offset = le64toh(fibre->in.offset);

	snprintf(fibre->cable.why, sizeof(fibre->cable.why),
		"message %" PRIu64 " was changed on the way, in its bytes %" PRIu64
		" to %" PRIu64,
		le64toh(fibre->in.message), offset + wrong.first,
		offset + (wrong.end ? wrong.end - 1 : 0));
	return bundle_broken(bundle, &fibre->cable);
}

/* It waits until it is asked for. */
static enum err early_add(struct bundle *bundle, struct fibre *fibre)
{
	struct early *early = ring_add(&bundle->early, sizeof(*early));

	if (!early)
		return cable_lost(&fibre->cable, "no memory for its block");
	*early = (struct early){fibre->in, fibre->in_store};
	fibre->in_store = NULL;
	return OK;
}

static enum err data_take(struct net_end *end, struct fibre *fibre)
{
	struct bundle *bundle = end->bundle;
	struct parcel *parcel = parcel_of(end, &fibre->in);
	enum err e = OK;

	if (parcel)
		parcel_add(end, parcel, &fibre->in, fibre->in_store);
	else
		e = early_add(bundle, fibre);
	if (e)
		return e;
	fibre->came++;
	bundle->notes.unnoted++;
	bundle->notes.arrivals++;
	bundle_retire(end);
	return OK;
}

void early_take(struct net_end *end)
{
	struct ring *ring = &end->bundle->early;

	for (uint32_t left = ring->count; left; left--) {
		struct early early = *(struct early *)ring_at(ring, sizeof(early), 0);
		struct parcel *parcel = parcel_of(end, &early.head);
		struct early *back;

		ring_drop(ring);
		if (parcel) {
			parcel_add(end, parcel, &early.head, early.data);
			free(early.data);
			continue;
		}
		back = ring_add(ring, sizeof(*back)); /* there was room for it */
		if (back)
			*back = early;
	}
	bundle_retire(end);
}

static enum err note_take(struct net_end *end, struct fibre *fibre)
{
	for (uint32_t i = 0; i < end->bundle->count; i++)
		if (flight_count(end, i, le64toh(fibre->note[i])))
			return cable_lost(
				&fibre->cable, "it counts blocks that were not sent");
	bundle_retire(end);
	helpers_wake(end->bundle); /* there is room in windows again */
	return OK;
}

static void lost_take(struct net_end *end, uint32_t index)
{
	struct bundle *bundle = end->bundle;
	struct fibre *fibre = &bundle->fibres[index];

	if (fibre->cable.phase != CABLE_LOST) {
		cable_lost(&fibre->cable, "the other end has lost it");
		bundle_drop(end, index);
	}
	bundle->notes.has_changed = true;
}

static enum err block_take(struct net_end *end, struct fibre *fibre)
{
	struct guard_span wrong;
	enum err e = OK;

	end->bundle->notes.last = (uint32_t)(fibre - end->bundle->fibres);
	if (!body_check(end->bundle, fibre, &wrong))
		return body_broken(end->bundle, fibre, wrong);
	if (fibre->cable.phase == CABLE_LOST)
		return ERR_REMOTE;
	switch (le32toh(fibre->in.kind)) {
	case BLOCK_DATA:
		e = data_take(end, fibre);
		break;
	case BLOCK_NOTE:
		e = note_take(end, fibre);
		break;
	default:
		lost_take(end, (uint32_t)le64toh(fibre->in.offset));
	}
	free(fibre->in_store);
	fibre->in_store = NULL;
	fibre->has_in = false;
	return e;
}

enum err fibre_read(struct net_end *end, uint32_t index)
{
	struct fibre *fibre = &end->bundle->fibres[index];
	enum err e = OK;

	while (!e && fibre_is_open(fibre)) {
		if (!fibre->has_in)
			e = head_read(end, fibre);
		if (!e && !fibre->in_to)
			e = target_choose(end, fibre);
		while (!e && fibre->in_done < le32toh(fibre->in.bytes))
			e = body_read(end->bundle, fibre);
		if (!e)
			e = block_take(end, fibre);
	}
	return e;
}
