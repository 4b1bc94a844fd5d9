/*
 * socket.c - the network of TCP sockets: its operations, and the messages.
 *
 * A message is its size and its bytes. Bytes go straight between socket and user; only
 * short messages are read through a buffer, because one system call then brings several.
 */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/bundle.h"
#include "net/socket.h"

enum { LIST_MAX = 32, FRAME_BYTES = 8 };

static const uint64_t frame_max = (uint64_t)1 << 62;

struct piece {
	uint64_t size; /* as it travels, little-endian */
	char *data;
	size_t bytes;
};

struct net_end *end_make(void)
{
	struct net_end *end = calloc(1, sizeof(*end));

	if (!end) {
		err_set(ERR_SYSTEM, "no memory for a connection");
		return NULL;
	}
	end->cable.fd = -1;
	end->cable.phase = CABLE_OPEN;
	return end;
}

void end_close(struct net_end *end)
{
	if (!end)
		return;
	door_close(end->door);
	bundle_close(end);
	cable_close(&end->cable);
	free(end->pieces.things);
	free(end);
}

static enum err socket_connect(const struct net_connect_args *args, struct net_end **end)
{
	static const struct cable_place only = {.count = 1};
	struct net_end *made = end_make();
	enum err e = ERR_SYSTEM;

	if (made)
		e = net_is_bundle(&args->manner)
			    ? bundle_connect(args, made)
			    : approach_make(args, &only, &made->cable);
	if (e) {
		end_close(made);
		return e;
	}
	made->is_sender = true;
	*end = made;
	return OK;
}

/* ---- messages ---- */

static struct piece *piece_at(const struct net_end *end, uint32_t i)
{
	return ring_at(&end->pieces, sizeof(struct piece), i);
}

static enum err piece_add(
	struct net_end *end, char *data, size_t bytes, struct net_request *request)
{
	struct piece *piece = ring_add(&end->pieces, sizeof(*piece));

	if (!piece)
		return ERR_SYSTEM;
	*piece = (struct piece){htole64(bytes), data, bytes};
	*request = (struct net_request){
		.end = end, .goal = end->done + end->pieces.count};
	return OK;
}

static void piece_end(struct net_end *end)
{
	ring_drop(&end->pieces);
	end->piece_done = 0;
	end->done++;
}

/* `bytes` more have been written, of one message or of several. */
static void pieces_written(struct net_end *end, size_t bytes)
{
	end->piece_done += bytes;
	while (end->pieces.count) {
		size_t frame = FRAME_BYTES + piece_at(end, 0)->bytes, all;

		all = end->piece_done;
		if (all < frame)
			break;
		piece_end(end);
		end->piece_done = all - frame;
	}
}

/* What is to be written next: a frame's size and its data, for some frames. */
static uint32_t pieces_list(const struct net_end *end, struct iovec *list)
{
	uint32_t count = 0;
	size_t skip = end->piece_done;

	for (uint32_t i = 0; i < end->pieces.count && count + 2 <= LIST_MAX; i++) {
		struct piece *piece = piece_at(end, i);

		if (skip < FRAME_BYTES) {
			list[count++] = (struct iovec){
				(char *)&piece->size + skip, FRAME_BYTES - skip};
			skip = FRAME_BYTES;
		}
		skip -= FRAME_BYTES;
		if (piece->bytes > skip)
			list[count++] = (struct iovec){
				piece->data + skip, piece->bytes - skip};
		skip = 0;
	}
	return count;
}

static enum err pieces_write(struct net_end *end)
{
	while (end->pieces.count) {
		struct iovec list[LIST_MAX];
		struct msghdr message = {
			.msg_iov = list, .msg_iovlen = pieces_list(end, list)};
		ssize_t sent = sendmsg(end->cable.fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return ERR_AGAIN;
		if (sent < 0 && errno != EINTR)
			return cable_lost(&end->cable, strerror(errno));
		if (sent > 0)
			pieces_written(end, (size_t)sent);
	}
	return OK;
}

/* The size of the frame that comes next. */
static enum err frame_begin(struct net_end *end)
{
	struct cable *cable = &end->cable;
	uint64_t size;
	enum err e = cable_have(cable, FRAME_BYTES);

	if (e)
		return e;
	memcpy(&size, cable_kept(cable), sizeof(size));
	cable_drop(cable, sizeof(size));
	end->frame_bytes = le64toh(size);
	if (end->frame_bytes > frame_max)
		return cable_lost(&end->cable, "it brought what is no message");
	end->has_frame = true;
	return OK;
}

/* Some of the frame's bytes: what there is no room for is dropped. */
static enum err frame_move(struct net_end *end)
{
	const struct piece *piece = piece_at(end, 0);
	size_t left = end->frame_bytes - end->piece_done, bytes = left;
	size_t room = piece->bytes > end->piece_done ? piece->bytes - end->piece_done : 0;
	struct iovec list = {0};
	enum err e;

	if (end->cable.ahead_count) {
		bytes = left < end->cable.ahead_count ? left : end->cable.ahead_count;
		if (room)
			memcpy(piece->data + end->piece_done, cable_kept(&end->cable),
				bytes < room ? bytes : room);
		cable_drop(&end->cable, bytes);
		end->piece_done += bytes;
		return OK;
	}
	if (left >= SHORT_BYTES && left <= room)
		list = (struct iovec){piece->data + end->piece_done, left};
	e = cable_fill(
		&end->cable, list, list.iov_len ? AHEAD_TAIL : AHEAD_BYTES, &bytes);
	if (!e)
		end->piece_done += bytes;
	return e;
}

static enum err pieces_read(struct net_end *end)
{
	enum err e = OK;

	while (end->pieces.count && !e) {
		if (!end->has_frame)
			e = frame_begin(end);
		while (!e && end->piece_done < end->frame_bytes)
			e = frame_move(end);
		if (!e) {
			end->has_frame = false;
			piece_end(end);
		}
	}
	return e;
}

static enum err end_move(struct net_end *end)
{
	struct cable *cable = &end->cable;
	enum err e = cable->phase == CABLE_OPEN ? OK : approach_move(cable);

	if (!e)
		e = end->is_sender ? pieces_write(end) : pieces_read(end);
	if (e == ERR_REMOTE)
		err_set(e, "the connection with %s was lost: %s", cable->where,
			cable->why);
	return e;
}

static enum err socket_recv(
	struct net_end *end, void *data, size_t bytes, struct net_request *request)
{
	return end->bundle ? bundle_ask(end, data, bytes, request)
			   : piece_add(end, data, bytes, request);
}

/* Only queued, so that what is sent together leaves together: see test. */
static enum err socket_send(
	struct net_end *end, const void *data, size_t bytes, struct net_request *request)
{
	return socket_recv(end, (char *)(uintptr_t)data, bytes, request);
}

static void end_sleep(const struct net_end *end, uint32_t wait_us)
{
	bool is_writing = end->is_sender && end->cable.phase != CABLE_GREETED;
	struct pollfd poll_fd = {
		.fd = end->cable.fd, .events = is_writing ? POLLOUT : POLLIN};
	struct timespec time = {.tv_nsec = (long)wait_us * 1000};

	ppoll(&poll_fd, end->cable.fd >= 0, &time, NULL);
}

static enum err socket_test(const struct net_request *request, uint32_t wait_us)
{
	struct net_end *end = request->end;
	enum err e;

	if (end->bundle)
		return bundle_test(request, wait_us);
	if (end->done >= request->goal)
		return OK;
	e = end_move(end);
	if (e == ERR_AGAIN && wait_us && end->done < request->goal) {
		end_sleep(end, wait_us);
		e = end_move(end);
	}
	if (end->done >= request->goal)
		return OK;
	return e ? e : ERR_AGAIN;
}

const struct net_ops net_socket = {
	.name = "Socket",
	.listen = door_listen,
	.connect = socket_connect,
	.accept = door_accept,
	.send = socket_send,
	.recv = socket_recv,
	.test = socket_test,
	.close = end_close,
};
