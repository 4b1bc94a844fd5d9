/*
 * socket.c - the network of TCP sockets.
 *
 *      connecting end                               listener
 *        | claim    magic, nonce, claim, tag ---------> |  it knows the key
 *        | <------- welcome   tag                       |  and so does the listener
 *        | bytes of the messages, one after the other > |
 *
 * The listener's handle has a nonce of its own in the tags, so a claim means nothing to
 * another listener, and a claim that was taken is not taken again. A message is its size
 * and its bytes. Bytes go straight between socket and user; only
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

#include "base/clock.h"
#include "base/ring.h"
#include "net/addr.h"
#include "net/net.h"

enum {
	WAYS_MAX = 4, /* interfaces of a listener */
	NONCE_BYTES = 16,
	STRANGERS_MAX = 64, /* connections that have not proved themselves */
	STRANGER_MS = 2000,
	AGAIN_MS = 5,	  /* before a connection that was dropped is tried again */
	TRIES_MAX = 1000, /* .. so often */
	LIST_MAX = 32,
	FRAME_BYTES = 8,
	AHEAD_BYTES = 16 << 10, /* read at once where messages are short */
	AHEAD_TAIL = 256,	/* .. and after a long one */
	SHORT_BYTES = 4 << 10
};

static const uint64_t frame_max = (uint64_t)1 << 62;
static const char claim_magic[8] = {"WEFTNET1"};

struct handle_body {
	uint32_t way_count;
	unsigned char nonce[NONCE_BYTES];
	struct addr ways[WAYS_MAX];
};
_Static_assert(sizeof(struct handle_body) <= NET_HANDLE_BYTES, "a handle holds it");

/* The tag is over all that comes before it and the listener's nonce. */
struct claim_words {
	char magic[sizeof(claim_magic)];
	unsigned char nonce[NONCE_BYTES];
	struct net_claim claim;
	unsigned char tag[AUTH_TAG_BYTES];
};

struct piece {
	uint64_t size; /* as it travels, little-endian */
	char *data;
	size_t bytes;
};

enum end_phase {
	END_LISTENS,
	END_CONNECTING,
	END_CLAIMING, /* our claim is on its way */
	END_GREETED,  /* we await the welcome */
	END_OPEN,
	END_LOST
};

struct stranger {
	int fd; /* owned */
	uint64_t since_ns;
	size_t done;
	struct claim_words words;
};

/* What a listener has of its own. */
struct door {
	unsigned char key[AUTH_KEY_BYTES];
	struct handle_body body;
	int fds[WAYS_MAX]; /* owned */
	struct stranger strangers[STRANGERS_MAX];
	uint32_t stranger_count;
};

/* What a connecting end has until it is welcome. */
struct approach {
	struct net_connect_args args;
	struct handle_body body;
	struct claim_words words;
	unsigned char welcome[AUTH_TAG_BYTES];
	size_t done;
	uint32_t tries;
	uint64_t again_ns; /* not before */
};

struct net_end {
	int fd; /* owned; -1 */
	enum end_phase phase;
	bool is_sender;
	struct door *door;	   /* owned: of a listener */
	struct approach *approach; /* owned: until it is open */
	char where[ADDR_TEXT_BYTES];
	char why[96]; /* it was lost */
	/* what was asked for, first to last: struct piece */
	struct ring pieces;
	size_t piece_done; /* bytes of the first, a sender's with its frame's size */
	uint64_t done;	   /* messages */
	bool has_frame;	   /* of a receiving end: its size is known */
	uint64_t frame_bytes;
	/* read, and not yet asked for */
	char *ahead; /* owned; of a receiving end */
	size_t ahead_first, ahead_count;
};

static struct net_end *end_make(enum end_phase phase)
{
	struct net_end *end = calloc(1, sizeof(*end));

	if (!end) {
		err_set(ERR_SYSTEM, "no memory for a connection");
		return NULL;
	}
	end->fd = -1;
	end->phase = phase;
	return end;
}

static void door_close(struct door *door)
{
	if (!door)
		return;
	for (uint32_t i = 0; i < door->body.way_count; i++)
		if (door->fds[i] >= 0)
			close(door->fds[i]);
	for (uint32_t i = 0; i < door->stranger_count; i++)
		close(door->strangers[i].fd);
	auth_wipe(door->key, sizeof(door->key));
	free(door);
}

static void approach_end(struct net_end *end)
{
	if (end->approach)
		auth_wipe(end->approach, sizeof(*end->approach));
	free(end->approach);
	end->approach = NULL;
}

static void socket_close(struct net_end *end)
{
	if (!end)
		return;
	door_close(end->door);
	approach_end(end);
	if (end->fd >= 0)
		close(end->fd);
	free(end->pieces.things);
	free(end->ahead);
	free(end);
}

/* ---- listening ---- */

static enum err socket_listen(const struct net_listen_args *args,
	struct net_end **listener, struct net_handle *handle)
{
	struct net_end *end = end_make(END_LISTENS);
	struct door *door = calloc(1, sizeof(*door));
	enum err e = OK;

	if (!end || !door) {
		free(door);
		socket_close(end);
		return err_set(ERR_SYSTEM, "no memory to listen");
	}
	end->door = door;
	memcpy(door->key, args->key, sizeof(door->key));
	auth_random(door->body.nonce, sizeof(door->body.nonce));
	for (uint32_t i = 0; i < args->addr_count && i < WAYS_MAX && !e; i++) {
		struct addr addr = args->addrs[i];

		addr.port = 0;
		door->fds[i] = -1;
		e = addr_listen(&addr, &door->fds[i], &door->body.ways[i]);
		door->body.way_count++;
	}
	if (!e && !door->body.way_count)
		e = err_set(ERR_SYSTEM, "there is no interface to listen on");
	if (e) {
		socket_close(end);
		return e;
	}
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, &door->body, sizeof(door->body));
	*listener = end;
	return OK;
}

/* What the two tags are over: the claim without its tag, for this listener. */
struct claim_proof {
	unsigned char listener[NONCE_BYTES];
	struct claim_words words;
};

static struct claim_proof claim_proof(
	const struct claim_words *words, const struct handle_body *listener)
{
	struct claim_proof proof = {.words = *words};

	memcpy(proof.listener, listener->nonce, sizeof(proof.listener));
	memset(proof.words.tag, 0, sizeof(proof.words.tag));
	return proof;
}

/* When there are too many, who came first has had its chance. */
static void stranger_drop(struct door *door, uint32_t index)
{
	close(door->strangers[index].fd);
	memmove(&door->strangers[index], &door->strangers[index + 1],
		(--door->stranger_count - index) * sizeof(door->strangers[0]));
}

/* 0, or the errno of why somebody who is there cannot come in. */
static int strangers_come(struct door *door)
{
	for (uint32_t i = 0; i < door->body.way_count; i++)
		for (;;) {
			int fd = accept4(
				door->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd < 0 && (errno == EMFILE || errno == ENFILE ||
					      errno == ENOBUFS || errno == ENOMEM))
				return errno;
			if (fd < 0)
				break;
			if (door->stranger_count == STRANGERS_MAX)
				stranger_drop(door, 0);
			door->strangers[door->stranger_count++] = (struct stranger){
				.fd = fd, .since_ns = clock_ns()};
		}
	return 0;
}

/* Has all of its claim come, and is it true? ERR_AGAIN: not yet. */
static enum err stranger_hear(const struct door *door, struct stranger *stranger)
{
	const struct claim_words *words = &stranger->words;
	struct claim_proof proof;
	ssize_t got = recv(stranger->fd, (char *)&stranger->words + stranger->done,
		sizeof(*words) - stranger->done, 0);

	if (!got || (got < 0 && errno != EAGAIN && errno != EINTR))
		return ERR_REMOTE;
	if (got > 0)
		stranger->done += (size_t)got;
	if (stranger->done >= sizeof(words->magic) &&
		memcmp(words->magic, claim_magic, sizeof(claim_magic)))
		return ERR_REMOTE;
	if (stranger->done < sizeof(*words))
		return clock_ns() - stranger->since_ns > STRANGER_MS * CLOCK_MS
			       ? ERR_REMOTE
			       : ERR_AGAIN;
	proof = claim_proof(words, &door->body);
	return auth_check(door->key, "claim", &proof, sizeof(proof), words->tag)
		       ? OK
		       : ERR_REMOTE;
}

/* It fits in the empty buffer of a new connection. */
static bool stranger_welcome(const struct door *door, const struct stranger *stranger)
{
	struct claim_proof proof = claim_proof(&stranger->words, &door->body);
	unsigned char tag[AUTH_TAG_BYTES];

	auth_tag(door->key, "welcome", &proof, sizeof(proof), tag);
	return send(stranger->fd, tag, sizeof(tag), MSG_NOSIGNAL) == sizeof(tag);
}

static void where_print(int fd, char text[ADDR_TEXT_BYTES])
{
	struct sockaddr_storage name = {0};
	socklen_t bytes = sizeof(name);
	struct addr addr;

	snprintf(text, ADDR_TEXT_BYTES, "an end that has gone");
	if (!getpeername(fd, (struct sockaddr *)&name, &bytes) &&
		addr_from_system((const struct sockaddr *)&name, &addr))
		addr_print(&addr, text);
}

static enum err socket_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end)
{
	struct door *door = listener->door;

	errno = strangers_come(door);
	if (errno)
		return err_set(ERR_SYSTEM, "a connection from another rank: %m");
	for (uint32_t i = 0; i < door->stranger_count;) {
		struct stranger *stranger = &door->strangers[i];
		enum err e = stranger_hear(door, stranger);
		struct net_end *made;

		if (e == ERR_AGAIN) {
			i++;
			continue;
		}
		made = e ? NULL : end_make(END_OPEN);
		if (made)
			made->ahead = malloc(AHEAD_BYTES);
		if (!made || !made->ahead || !stranger_welcome(door, stranger)) {
			socket_close(made);
			stranger_drop(door, i);
			continue;
		}
		*claim = stranger->words.claim;
		made->fd = dup(stranger->fd);
		where_print(stranger->fd, made->where);
		stranger_drop(door, i);
		if (made->fd < 0) {
			socket_close(made);
			return err_set(ERR_SYSTEM, "a connection from another rank: %m");
		}
		*end = made;
		return OK;
	}
	return ERR_AGAIN;
}

/* ---- connecting ---- */

static enum err end_lost(struct net_end *end, const char *why)
{
	end->phase = END_LOST;
	snprintf(end->why, sizeof(end->why), "%s", why);
	approach_end(end);
	return err_set(
		ERR_REMOTE, "the connection with %s was lost: %s", end->where, end->why);
}

/* Dropped before it was welcome, as happens where strangers crowd: come again. */
static enum err approach_again(struct net_end *end, const char *why)
{
	struct approach *approach = end->approach;

	if (end->fd >= 0)
		close(end->fd);
	end->fd = -1;
	if (++approach->tries > TRIES_MAX)
		return end_lost(end, why);
	approach->again_ns = clock_ns() + AGAIN_MS * CLOCK_MS;
	end->phase = END_CONNECTING;
	return ERR_AGAIN;
}

static enum err approach_begin(struct net_end *end)
{
	struct approach *approach = end->approach;
	uint32_t way = approach->args.way % approach->body.way_count;
	struct claim_proof proof;
	int status;

	if (clock_ns() < approach->again_ns)
		return ERR_AGAIN;
	auth_random(approach->words.nonce, sizeof(approach->words.nonce));
	proof = claim_proof(&approach->words, &approach->body);
	auth_tag(approach->args.key, "claim", &proof, sizeof(proof), approach->words.tag);
	addr_print(&approach->body.ways[way], end->where);
	status = addr_connect(&approach->body.ways[way], &end->fd);
	approach->done = 0;
	if (!status || status == EINPROGRESS)
		return OK;
	if (status == EAGAIN)
		return approach_again(end, "the listener's queue is full");
	return end_lost(end, strerror(status));
}

/* Is the socket ready for that, without waiting? */
static bool is_ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	return poll(&poll_fd, 1, 0) > 0;
}

static enum err approach_connected(struct net_end *end)
{
	int status = addr_connected(end->fd); /* told only once */

	if (status)
		return end_lost(end, strerror(status));
	end->phase = END_CLAIMING;
	return OK;
}

static enum err approach_claim(struct net_end *end)
{
	struct approach *approach = end->approach;
	ssize_t sent = send(end->fd, (char *)&approach->words + approach->done,
		sizeof(approach->words) - approach->done, MSG_NOSIGNAL);

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (sent < 0)
		return approach_again(end, strerror(errno));
	approach->done += (size_t)sent;
	if (approach->done < sizeof(approach->words))
		return ERR_AGAIN;
	approach->done = 0;
	end->phase = END_GREETED;
	return OK;
}

static enum err approach_hear(struct net_end *end)
{
	struct approach *approach = end->approach;
	struct claim_proof proof = claim_proof(&approach->words, &approach->body);
	ssize_t got = recv(end->fd, approach->welcome + approach->done,
		sizeof(approach->welcome) - approach->done, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (got <= 0)
		return approach_again(end, "the other end does not take it");
	approach->done += (size_t)got;
	if (approach->done < sizeof(approach->welcome))
		return ERR_AGAIN;
	if (!auth_check(approach->args.key, "welcome", &proof, sizeof(proof),
		    approach->welcome))
		return end_lost(end, "the other end does not know the communicator");
	end->phase = END_OPEN;
	approach_end(end);
	return OK;
}

/* One step after the other until it is open, or has to wait. */
static enum err end_open(struct net_end *end)
{
	enum err e = OK;

	while (!e && end->phase != END_OPEN) {
		switch (end->phase) {
		case END_CONNECTING:
			if (end->fd < 0)
				e = approach_begin(end);
			else if (!is_ready(end->fd, POLLOUT))
				e = ERR_AGAIN;
			else
				e = approach_connected(end);
			break;
		case END_CLAIMING:
			e = approach_claim(end);
			break;
		case END_GREETED:
			e = approach_hear(end);
			break;
		default:
			e = err_set(ERR_REMOTE, "the connection with %s was lost: %s",
				end->where, end->why);
		}
	}
	return e;
}

static enum err socket_connect(const struct net_connect_args *args, struct net_end **end)
{
	struct net_end *made = end_make(END_CONNECTING);
	struct approach *approach = calloc(1, sizeof(*approach));

	if (!made || !approach) {
		free(approach);
		socket_close(made);
		return err_set(ERR_SYSTEM, "no memory for a connection");
	}
	made->is_sender = true;
	made->approach = approach;
	approach->args = *args;
	memcpy(&approach->body, args->handle->bytes, sizeof(approach->body));
	approach->args.handle = NULL;
	memcpy(approach->words.magic, claim_magic, sizeof(claim_magic));
	approach->words.claim = args->claim;
	if (!approach->body.way_count || approach->body.way_count > WAYS_MAX) {
		socket_close(made);
		return err_set(ERR_REMOTE,
			"another rank's address on the network means nothing");
	}
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
		ssize_t sent = sendmsg(end->fd, &message, MSG_NOSIGNAL);

		if (sent < 0 && errno == EAGAIN)
			return ERR_AGAIN;
		if (sent < 0 && errno != EINTR)
			return end_lost(end, strerror(errno));
		if (sent > 0)
			pieces_written(end, (size_t)sent);
	}
	return OK;
}

/* Read `list` and then ahead, at most `ahead` bytes of that. */
static enum err ahead_fill(
	struct net_end *end, struct iovec list, size_t ahead, size_t *direct)
{
	struct iovec both[2] = {list, {end->ahead + end->ahead_count, ahead}};
	struct msghdr message = {.msg_iov = list.iov_len ? both : both + 1,
		.msg_iovlen = list.iov_len ? 2 : 1};
	ssize_t got = recvmsg(end->fd, &message, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (got < 0)
		return end_lost(end, strerror(errno));
	if (!got)
		return end_lost(end, "the other end has closed it");
	*direct = (size_t)got < list.iov_len ? (size_t)got : list.iov_len;
	end->ahead_count += (size_t)got - *direct;
	return OK;
}

static void ahead_drop(struct net_end *end, size_t bytes)
{
	end->ahead_first += bytes;
	end->ahead_count -= bytes;
}

/* The size of the frame that comes next. */
static enum err frame_begin(struct net_end *end)
{
	uint64_t size;
	size_t direct;
	enum err e = OK;

	while (end->ahead_count < FRAME_BYTES && !e) {
		memmove(end->ahead, end->ahead + end->ahead_first, end->ahead_count);
		end->ahead_first = 0;
		e = ahead_fill(
			end, (struct iovec){0}, AHEAD_BYTES - end->ahead_count, &direct);
	}
	if (e)
		return e;
	memcpy(&size, end->ahead + end->ahead_first, sizeof(size));
	ahead_drop(end, sizeof(size));
	end->frame_bytes = le64toh(size);
	if (end->frame_bytes > frame_max)
		return end_lost(end, "it brought what is no message");
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

	if (end->ahead_count) {
		bytes = left < end->ahead_count ? left : end->ahead_count;
		if (room)
			memcpy(piece->data + end->piece_done,
				end->ahead + end->ahead_first,
				bytes < room ? bytes : room);
		ahead_drop(end, bytes);
		end->piece_done += bytes;
		return OK;
	}
	end->ahead_first = 0;
	if (left >= SHORT_BYTES && left <= room)
		list = (struct iovec){piece->data + end->piece_done, left};
	e = ahead_fill(end, list, list.iov_len ? AHEAD_TAIL : AHEAD_BYTES, &bytes);
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
	enum err e = end->phase == END_OPEN ? OK : end_open(end);

	if (e)
		return e;
	return end->is_sender ? pieces_write(end) : pieces_read(end);
}

/* Only queued, so that what is sent together leaves together: see test. */
static enum err socket_send(
	struct net_end *end, const void *data, size_t bytes, struct net_request *request)
{
	return piece_add(end, (char *)(uintptr_t)data, bytes, request);
}

static enum err socket_recv(
	struct net_end *end, void *data, size_t bytes, struct net_request *request)
{
	return piece_add(end, data, bytes, request);
}

static void end_sleep(const struct net_end *end, uint32_t wait_us)
{
	bool is_writing = end->is_sender && end->phase != END_GREETED;
	struct pollfd poll_fd = {.fd = end->fd, .events = is_writing ? POLLOUT : POLLIN};
	struct timespec time = {.tv_nsec = (long)wait_us * 1000};

	ppoll(&poll_fd, end->fd >= 0, &time, NULL);
}

static enum err socket_test(const struct net_request *request, uint32_t wait_us)
{
	struct net_end *end = request->end;
	enum err e;

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
	.listen = socket_listen,
	.connect = socket_connect,
	.accept = socket_accept,
	.send = socket_send,
	.recv = socket_recv,
	.test = socket_test,
	.close = socket_close,
};
