/*
 * socket.c - the network of TCP sockets: its operations, and the messages.
 *
 * A message is a frame and its bytes. Bytes go straight between socket and user; those of
 * the shortest travel in the frame, and what is short is read through a buffer, because
 * one system call then brings several.
 *
 * Everything has a multiple of a cache line on the wire. The kernel puts what a thread
 * sends one after the other into its pages, so a single odd length would move all that
 * follows, and its copies are up to twice as slow from or to such places.
 */
#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/bundle.h"
#include "net/socket.h"

enum { LINE_BYTES = 64, FRAME_ROOM = 56, PIECE_PARTS = 3, LIST_MAX = 48 };
enum { WATCH_NS = 100000000 };

static const uint64_t frame_max = (uint64_t)1 << 62;

/* As it travels. */
struct frame {
	uint64_t size;	       /* of the message, little-endian */
	char data[FRAME_ROOM]; /* the message, where it is that short */
};
_Static_assert(sizeof(struct frame) == LINE_BYTES, "no padding on the wire");

struct piece {
	struct frame frame; /* a sender's */
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
	made->silence_ms = net_bare_silence(&args->manner);
	*end = made;
	return OK;
}

/* ---- messages ---- */

static struct piece *piece_at(const struct net_end *end, uint32_t i)
{
	return ring_at(&end->pieces, sizeof(struct piece), i);
}

/* What follows the frame of a message of so many bytes. */
static size_t body_bytes(size_t bytes)
{
	return bytes <= FRAME_ROOM ? 0
				   : (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

static enum err piece_add(
	struct net_end *end, char *data, size_t bytes, struct net_request *request)
{
	struct piece *piece = ring_add(&end->pieces, sizeof(*piece));

	if (!piece)
		return ERR_SYSTEM;
	piece->data = data;
	piece->bytes = bytes;
	if (end->is_sender) {
		piece->frame = (struct frame){.size = htole64(bytes)};
		if (bytes && bytes <= FRAME_ROOM)
			memcpy(piece->frame.data, data, bytes);
	}
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
		size_t frame = LINE_BYTES + body_bytes(piece_at(end, 0)->bytes), all;

		all = end->piece_done;
		if (all < frame)
			break;
		piece_end(end);
		end->piece_done = all - frame;
	}
}

/* The frame, the bytes, and what fills up the last line, all after the first `skip`. */
static uint32_t piece_list(struct piece *piece, size_t skip, struct iovec *list)
{
	static char filler[LINE_BYTES];
	size_t body = body_bytes(piece->bytes), data = body ? piece->bytes : 0;
	const struct iovec parts[PIECE_PARTS] = {
		{&piece->frame, LINE_BYTES}, {piece->data, data}, {filler, body - data}};
	uint32_t count = 0;

	for (uint32_t i = 0; i < PIECE_PARTS; i++) {
		size_t less = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		skip -= less;
		if (parts[i].iov_len > less)
			list[count++] = (struct iovec){(char *)parts[i].iov_base + less,
				parts[i].iov_len - less};
	}
	return count;
}

/* What is to be written next, of some messages. */
static uint32_t pieces_list(const struct net_end *end, struct iovec *list)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < end->pieces.count && count + PIECE_PARTS <= LIST_MAX;
		i++)
		count += piece_list(
			piece_at(end, i), i ? 0 : end->piece_done, list + count);
	return count;
}

/* The socket is full. Is there still a host that takes it? Asked now and then. What the
 * kernel knows of answers counts from the last one, which may have come before a long
 * time in which nothing was sent. */
static enum err full_check(struct net_end *end)
{
	uint64_t now = clock_ns();

	if (!end->full_ns)
		end->full_ns = now;
	if (now - end->watched_ns < WATCH_NS)
		return ERR_AGAIN;
	end->watched_ns = now;
	return now - end->full_ns >= end->silence_ms * CLOCK_MS &&
			       cable_is_mute(&end->cable, end->silence_ms)
		       ? cable_lost(&end->cable, cable_unanswered)
		       : ERR_AGAIN;
}

static enum err pieces_write(struct net_end *end)
{
	while (end->pieces.count) {
		struct iovec list[LIST_MAX];
		struct msghdr message = {
			.msg_iov = list, .msg_iovlen = pieces_list(end, list)};
		ssize_t sent = sendmsg(end->cable.fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return full_check(end);
		if (sent < 0 && errno != EINTR)
			return cable_lost(&end->cable, strerror(errno));
		if (sent > 0) {
			end->full_ns = 0;
			pieces_written(end, (size_t)sent);
		}
	}
	return OK;
}

/* The frame that comes next, and with it all of a message that is short enough. */
static enum err frame_begin(struct net_end *end)
{
	const struct piece *piece = piece_at(end, 0);
	struct cable *cable = &end->cable;
	struct frame frame;
	enum err e = cable_have(cable, sizeof(frame));

	if (e)
		return e;
	memcpy(&frame, cable_kept(cable), sizeof(frame));
	cable_drop(cable, sizeof(frame));
	end->frame_bytes = le64toh(frame.size);
	if (end->frame_bytes > frame_max)
		return cable_lost(&end->cable, "it brought what is no message");
	end->has_frame = true;
	if (piece->bytes && end->frame_bytes <= FRAME_ROOM)
		memcpy(piece->data, frame.data,
			end->frame_bytes < piece->bytes ? end->frame_bytes
							: piece->bytes);
	return OK;
}

/* Some of the bytes after the frame: what there is no room for is dropped. */
static enum err frame_move(struct net_end *end)
{
	const struct piece *piece = piece_at(end, 0);
	size_t done = end->piece_done, left = body_bytes(end->frame_bytes) - done;
	size_t wanted = piece->bytes < end->frame_bytes ? piece->bytes : end->frame_bytes;
	size_t room = wanted > done ? wanted - done : 0, bytes = 0;
	struct iovec list = {0};
	enum err e;

	if (end->cable.ahead_count) {
		bytes = left < end->cable.ahead_count ? left : end->cable.ahead_count;
		if (room)
			memcpy(piece->data + done, cable_kept(&end->cable),
				bytes < room ? bytes : room);
		cable_drop(&end->cable, bytes);
		end->piece_done += bytes;
		return OK;
	}
	if (room >= SHORT_BYTES && wanted == end->frame_bytes)
		list = (struct iovec){piece->data + done, room};
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
		while (!e && end->piece_done < body_bytes(end->frame_bytes))
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

void net_socket_rest(struct net_end *end)
{
	if (end && end->bundle)
		helpers_stop(end->bundle);
}

/* A sender follows Nagle's rule, which looks for an answer of the other kernel. That one
 * answers what is short as soon as it was read, unless it has sent something by this
 * connection lately, as the welcome: then it has an answer wait for more to go along,
 * which is right for all other calls (8 B of all_reduce take 7.2 us so, and 8.4 us with
 * answers at once). */
void net_socket_bunch(struct net_end *end, bool in_bunches)
{
	int value = end && end->is_sender ? !in_bunches : in_bunches;

	if (!end || end->bundle || end->in_bunches == in_bunches ||
		end->cable.phase != CABLE_OPEN)
		return;
	if (!setsockopt(end->cable.fd, IPPROTO_TCP,
		    end->is_sender ? TCP_NODELAY : TCP_QUICKACK, &value, sizeof(value)))
		end->in_bunches = in_bunches;
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
