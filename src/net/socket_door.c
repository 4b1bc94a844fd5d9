/*
 * socket_door.c - the listener of the network of sockets: who comes, and who gets in.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/socket.h"

enum {
	STRANGERS_MAX = 64, /* connections that have not proved themselves */
	STRANGER_MS = 2000
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

const char claim_magic[8] = {"WEFTNET1"};

struct claim_proof claim_proof(
	const struct claim_words *words, const struct handle_body *listener)
{
	struct claim_proof proof = {.words = *words};

	memcpy(proof.listener, listener->nonce, sizeof(proof.listener));
	memset(proof.words.tag, 0, sizeof(proof.words.tag));
	return proof;
}

void door_close(struct door *door)
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

enum err door_listen(const struct net_listen_args *args, struct net_end **listener,
	struct net_handle *handle)
{
	struct net_end *end = end_make();
	struct door *door = calloc(1, sizeof(*door));
	enum err e = OK;

	if (!end || !door) {
		free(door);
		end_close(end);
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
		end_close(end);
		return e;
	}
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, &door->body, sizeof(door->body));
	*listener = end;
	return OK;
}

/* When there are too many, who came first has had its chance. */
static void stranger_drop(struct door *door, uint32_t index)
{
	if (door->strangers[index].fd >= 0)
		close(door->strangers[index].fd);
	memmove(&door->strangers[index], &door->strangers[index + 1],
		(--door->stranger_count - index) * sizeof(door->strangers[0]));
}

static void strangers_come(struct door *door)
{
	for (uint32_t i = 0; i < door->body.way_count; i++)
		for (;;) {
			int fd = accept4(
				door->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd < 0)
				break;
			if (door->stranger_count == STRANGERS_MAX)
				stranger_drop(door, 0);
			door->strangers[door->stranger_count++] = (struct stranger){
				.fd = fd, .since_ns = clock_ns()};
		}
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

	text[0] = '\0';
	if (!getpeername(fd, (struct sockaddr *)&name, &bytes) &&
		addr_from_system((const struct sockaddr *)&name, &addr))
		addr_print(&addr, text);
}

/* An end for who was welcome; its socket has not been taken over yet. */
static struct net_end *guest_end(const struct door *door, const struct stranger *stranger)
{
	struct net_end *end = end_make();

	if (end && !(end->cable.ahead = malloc(AHEAD_BYTES))) {
		end_close(end);
		end = NULL;
	}
	if (end && !stranger_welcome(door, stranger)) {
		end_close(end);
		end = NULL;
	}
	if (end)
		where_print(stranger->fd, end->cable.where);
	return end;
}

enum err door_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end)
{
	struct door *door = listener->door;

	strangers_come(door);
	for (uint32_t i = 0; i < door->stranger_count;) {
		struct stranger *stranger = &door->strangers[i];
		enum err e = stranger_hear(door, stranger);
		struct net_end *made;

		if (e == ERR_AGAIN) {
			i++;
			continue;
		}
		made = e ? NULL : guest_end(door, stranger);
		if (made) {
			*claim = stranger->words.claim;
			made->cable.fd = stranger->fd;
			stranger->fd = -1;
			*end = made;
		}
		stranger_drop(door, i);
		if (made)
			return OK;
	}
	return ERR_AGAIN;
}
