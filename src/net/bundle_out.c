/*
 * bundle_out.c - messages cut into blocks, and blocks written into cables.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/bundle.h"

/* ---- cutting ---- */

/* Each open cable gets a part of a long message. */
static uint32_t step_choose(const struct bundle *bundle, size_t bytes)
{
	uint32_t most = bundle->manner.guard == NET_SEALED ? BLOCK_SEALED : BLOCK_MOST;
	uint32_t open = 0;
	size_t step;

	for (uint32_t i = 0; i < bundle->count; i++)
		open += fibre_is_open(&bundle->fibres[i]);
	step = (bytes / (open ? open : 1) + 4095) / 4096 * 4096;
	if (step < BLOCK_LEAST)
		return BLOCK_LEAST;
	return step < most ? (uint32_t)step : most;
}

/* Short messages, and the calls' words before them, come first where they all go by the
 * same cable: the others are for what is long. */
static bool is_for(const struct bundle *bundle, const struct fibre *fibre, size_t bytes)
{
	return bytes > SHORT_BYTES ||
	       fibre == &bundle->fibres[bundle_next(bundle, bundle->count - 1)];
}

static bool block_cut(struct net_end *end, const struct fibre *fibre, struct block *block)
{
	struct bundle *bundle = end->bundle;
	struct parcel *parcel;
	uint64_t left;

	if (bundle->cut == bundle->parcels.count)
		return false;
	parcel = parcel_at(bundle, bundle->cut);
	left = parcel->bytes - parcel->moved;
	if (!parcel->step)
		parcel->step = step_choose(bundle, parcel->bytes);
	if (!is_for(bundle, fibre, left))
		return false;
	*block = (struct block){end->done + bundle->cut, parcel->moved,
		(uint32_t)(left < parcel->step ? left : parcel->step)};
	parcel->moved += block->bytes;
	parcel->pending++;
	parcel->is_whole = parcel->moved == parcel->bytes;
	bundle->cut += parcel->is_whole;
	return true;
}

/* What was lost with a cable goes before anything new. */
static bool block_find(
	struct net_end *end, const struct fibre *fibre, struct block *block)
{
	struct ring *again = &end->bundle->again;

	if (!again->count)
		return block_cut(end, fibre, block);
	*block = *(struct block *)ring_at(again, sizeof(*block), 0);
	ring_drop(again);
	return true;
}

/* With several cables it is remembered until a note counts it. */
static bool block_next(struct net_end *end, struct fibre *fibre, struct block *block)
{
	struct block *remembered;

	if (!end->bundle->is_mendable)
		return block_find(end, fibre, block);
	if (fibre->flight.count == WINDOW)
		return false;
	remembered = ring_add(&fibre->flight, sizeof(*remembered));
	if (!remembered)
		return false;
	if (!block_find(end, fibre, block)) {
		fibre->flight.count--;
		return false;
	}
	*remembered = *block;
	return true;
}

/* ---- what is written next ---- */

static void out_add(struct fibre *fibre, struct block_head head, const char *data)
{
	struct out *out = &fibre->outs[fibre->out_count++];
	size_t sealed = fibre->out_bytes; /* more than the bytes before it */

	out->head = head;
	out->data = guard_put(&fibre->cable.guard, &out->head, data,
		fibre->sealed ? fibre->sealed + sealed : NULL);
	fibre->out_bytes += sizeof(out->head) + le32toh(head.bytes);
}

static void out_lost(struct fibre *fibre)
{
	uint32_t index = (uint32_t)__builtin_ctzll(fibre->lost_due);

	fibre->lost_due &= fibre->lost_due - 1;
	out_add(fibre,
		(struct block_head){
			.kind = htole32(BLOCK_LOST), .offset = htole64(index)},
		NULL);
}

/* A cable whose last block is still being read or opened somewhere brings nothing that
 * counts, but its bytes go where the same block would come again. */
static bool is_over(const struct fibre *fibre)
{
	return fibre->cable.phase == CABLE_LOST && !fibre->is_busy;
}

static void out_note(const struct bundle *bundle, struct fibre *fibre)
{
	fibre->note_due = false;
	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct fibre *other = &bundle->fibres[i];

		fibre->note[i] = htole64(
			other->came | (is_over(other) ? NOTE_IS_LAST : 0));
	}
	out_add(fibre,
		(struct block_head){.kind = htole32(BLOCK_NOTE),
			.bytes = htole32(bundle->count * (uint32_t)sizeof(uint64_t))},
		(const char *)fibre->note);
}

static void out_data(struct net_end *end, struct fibre *fibre, const struct block *block)
{
	const struct parcel *parcel = parcel_at(
		end->bundle, (uint32_t)(block->message - end->done));

	out_add(fibre,
		(struct block_head){.kind = htole32(BLOCK_DATA),
			.message = htole64(block->message),
			.offset = htole64(block->offset),
			.total = htole64(parcel->bytes),
			.bytes = htole32(block->bytes)},
		parcel->data + block->offset);
}

static bool out_next(struct net_end *end, struct fibre *fibre)
{
	struct block block;

	if (fibre->lost_due)
		out_lost(fibre);
	else if (fibre->note_due)
		out_note(end->bundle, fibre);
	else if (end->is_sender && block_next(end, fibre, &block))
		out_data(end, fibre, &block);
	else
		return false;
	return true;
}

/* ---- writing ---- */

/* Blocks that no note is awaited for have left. */
static void outs_end(struct net_end *end, struct fibre *fibre)
{
	for (uint32_t i = 0; i < fibre->out_count && !end->bundle->is_mendable; i++) {
		const struct block_head *head = &fibre->outs[i].head;
		uint64_t index = le64toh(head->message) - end->done;

		if (head->kind == htole32(BLOCK_DATA))
			parcel_at(end->bundle, (uint32_t)index)->pending--;
	}
	fibre->out_count = 0;
	fibre->out_bytes = fibre->out_done = 0;
	bundle_retire(end);
}

/* Gather blocks as long as they are short. */
static void outs_begin(struct net_end *end, struct fibre *fibre)
{
	fibre->out_done = 0;
	while (fibre->out_count < OUTS_MAX &&
		fibre->out_bytes <= fibre->out_count * (size_t)SHORT_BYTES &&
		out_next(end, fibre))
		;
}

static uint32_t outs_list(const struct fibre *fibre, struct iovec *list)
{
	size_t skip = fibre->out_done;
	uint32_t count = 0;

	for (uint32_t i = 0; i < fibre->out_count; i++) {
		const struct out *out = &fibre->outs[i];
		struct iovec parts[2] = {
			{(char *)(uintptr_t)&out->head, sizeof(out->head)},
			{(char *)(uintptr_t)out->data, le32toh(out->head.bytes)}};

		for (uint32_t j = 0; j < 2; j++) {
			size_t less = skip < parts[j].iov_len ? skip : parts[j].iov_len;

			skip -= less;
			if (parts[j].iov_len > less)
				list[count++] = (struct iovec){
					(char *)parts[j].iov_base + less,
					parts[j].iov_len - less};
		}
	}
	return count;
}

enum err fibre_write(struct net_end *end, uint32_t index)
{
	struct fibre *fibre = &end->bundle->fibres[index];
	struct iovec list[2 * OUTS_MAX];
	struct msghdr message = {.msg_iov = list};
	ssize_t sent;
	int error;

	if (!fibre->out_count)
		outs_begin(end, fibre);
	if (!fibre->out_count)
		return ERR_AGAIN;
	message.msg_iovlen = outs_list(fibre, list);
	fibre->is_busy = true;
	bundle_unlock(end->bundle);
	sent = sendmsg(fibre->cable.fd, &message, MSG_NOSIGNAL);
	error = errno;
	bundle_lock(end->bundle);
	fibre->is_busy = false;
	bundle_retire(end); /* what was noted meanwhile */
	if (fibre->cable.phase == CABLE_LOST)
		return ERR_REMOTE;
	if (sent < 0 && (error == EAGAIN || error == EINTR))
		return ERR_AGAIN;
	if (sent < 0)
		return cable_lost(&fibre->cable, strerror(error));
	fibre->out_done += (size_t)sent;
	if (fibre->out_done < fibre->out_bytes)
		return ERR_AGAIN;
	outs_end(end, fibre);
	return OK;
}

/* ---- what has arrived ---- */

static void flight_return(struct net_end *end, struct fibre *fibre)
{
	struct bundle *bundle = end->bundle;

	for (; fibre->flight.count; ring_drop(&fibre->flight)) {
		struct block *again = ring_add(&bundle->again, sizeof(*again));

		if (!again) {
			snprintf(fibre->cable.why, sizeof(fibre->cable.why),
				"there is no memory to send again what it held");
			bundle_broken(bundle, &fibre->cable);
			return;
		}
		*again = *(struct block *)ring_at(&fibre->flight, sizeof(*again), 0);
	}
}

enum err flight_count(struct net_end *end, uint32_t index, uint64_t note)
{
	struct bundle *bundle = end->bundle;
	struct fibre *fibre = &bundle->fibres[index];
	uint64_t count = note & ~NOTE_IS_LAST;

	if (fibre->is_settled)
		return OK;
	if (count > fibre->noted + fibre->flight.count)
		return ERR_REMOTE;
	for (; fibre->noted < count; fibre->noted++, ring_drop(&fibre->flight)) {
		const struct block *block = ring_at(&fibre->flight, sizeof(*block), 0);

		parcel_at(bundle, (uint32_t)(block->message - end->done))->pending--;
	}
	if (note & NOTE_IS_LAST) {
		if (fibre->cable.phase != CABLE_LOST) {
			cable_lost(&fibre->cable, "the other end has lost it");
			bundle_drop(end, index);
		}
		flight_return(end, fibre);
		fibre->is_settled = true;
	}
	return OK;
}
