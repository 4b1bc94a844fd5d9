/*
 * socket_approach.c - a connection that is being made: connect, claim, and be welcome.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/socket.h"

enum {
	AGAIN_MS = 5,	 /* before a connection that was dropped is tried again */
	TRIES_MAX = 1000 /* .. so often */
};

/* What a connecting end has until it is welcome. */
struct approach {
	struct net_connect_args args;
	struct handle_body body;
	struct claim_words words;
	struct welcome_words welcome;
	size_t done;
	uint32_t tries;
	uint64_t again_ns; /* not before */
};

/* Dropped before it was welcome, as happens where strangers crowd: come again. */
static enum err approach_again(struct cable *cable, const char *why)
{
	struct approach *approach = cable->approach;

	if (cable->fd >= 0)
		close(cable->fd);
	cable->fd = -1;
	if (++approach->tries > TRIES_MAX)
		return cable_lost(cable, why);
	approach->again_ns = clock_ns() + AGAIN_MS * CLOCK_MS;
	cable->phase = CABLE_CONNECTING;
	return ERR_AGAIN;
}

void approach_end(struct cable *cable)
{
	if (cable->approach)
		auth_wipe(cable->approach, sizeof(*cable->approach));
	free(cable->approach);
	cable->approach = NULL;
}

static enum err approach_begin(struct cable *cable)
{
	struct approach *approach = cable->approach;
	uint32_t way = (approach->args.way + approach->words.place.index) %
		       approach->body.way_count;
	struct claim_proof proof;
	int status;

	if (clock_ns() < approach->again_ns)
		return ERR_AGAIN;
	auth_random(approach->words.nonce, sizeof(approach->words.nonce));
	proof = claim_proof(&approach->words, &approach->body, NULL);
	auth_tag(approach->args.key, "claim", &proof, sizeof(proof), approach->words.tag);
	cable->way = way;
	addr_print(&approach->body.ways[way], cable->where);
	status = addr_connect(&approach->body.ways[way], &cable->fd);
	approach->done = 0;
	if (!status || status == EINPROGRESS)
		return OK;
	if (status == EAGAIN)
		return approach_again(cable, "the listener's queue is full");
	return cable_lost(cable, strerror(status));
}

/* Is the socket ready for that, without waiting? */
static bool is_ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	return poll(&poll_fd, 1, 0) > 0;
}

static enum err approach_connected(struct cable *cable)
{
	int status = addr_connected(cable->fd); /* told only once */

	if (status)
		return cable_lost(cable, strerror(status));
	cable->phase = CABLE_CLAIMING;
	return OK;
}

static enum err approach_claim(struct cable *cable)
{
	struct approach *approach = cable->approach;
	ssize_t sent = send(cable->fd, (char *)&approach->words + approach->done,
		sizeof(approach->words) - approach->done, MSG_NOSIGNAL);

	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (sent < 0)
		return approach_again(cable, strerror(errno));
	approach->done += (size_t)sent;
	if (approach->done < sizeof(approach->words))
		return ERR_AGAIN;
	approach->done = 0;
	cable->phase = CABLE_GREETED;
	return OK;
}

/* The listener is who it should be; does it do as we do? */
static enum err approach_enter(struct cable *cable)
{
	struct approach *approach = cable->approach;
	const struct welcome_words *welcome = &approach->welcome;
	struct guard_terms terms;
	char why[WHY_BYTES];
	bool is_right;

	if (welcome->is_refused) {
		guards_differ(cable->guard.kind, (enum net_guard)welcome->guard, why);
		return cable_lost(cable, why);
	}
	terms = claim_terms(&approach->words, welcome, approach->args.key);
	is_right = guard_agree(&cable->guard, false, &terms);
	auth_wipe(&terms, sizeof(terms));
	if (!is_right)
		return cable_lost(cable, "the other end's half of a key is none");
	cable->phase = CABLE_OPEN;
	approach_end(cable);
	return OK;
}

static enum err approach_hear(struct cable *cable)
{
	struct approach *approach = cable->approach;
	struct claim_proof proof;
	ssize_t got = recv(cable->fd, (char *)&approach->welcome + approach->done,
		sizeof(approach->welcome) - approach->done, 0);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ERR_AGAIN;
	if (got <= 0)
		return approach_again(cable, "the other end does not take it");
	approach->done += (size_t)got;
	if (approach->done < sizeof(approach->welcome))
		return ERR_AGAIN;
	proof = claim_proof(&approach->words, &approach->body, &approach->welcome);
	if (!auth_check(approach->args.key, "welcome", &proof, sizeof(proof),
		    approach->welcome.tag))
		return cable_lost(cable, "the other end does not know the communicator");
	return approach_enter(cable);
}

enum err approach_move(struct cable *cable)
{
	enum err e = OK;

	while (!e && cable->phase != CABLE_OPEN) {
		switch (cable->phase) {
		case CABLE_CONNECTING:
			if (cable->fd < 0)
				e = approach_begin(cable);
			else if (!is_ready(cable->fd, POLLOUT))
				e = ERR_AGAIN;
			else
				e = approach_connected(cable);
			break;
		case CABLE_CLAIMING:
			e = approach_claim(cable);
			break;
		case CABLE_GREETED:
			e = approach_hear(cable);
			break;
		default:
			e = ERR_REMOTE;
		}
	}
	return e;
}

enum err approach_make(const struct net_connect_args *args,
	const struct cable_place *place, struct cable *cable)
{
	struct approach *approach = calloc(1, sizeof(*approach));

	if (!approach)
		return err_set(ERR_SYSTEM, "no memory for a connection");
	cable->approach = approach;
	cable->phase = CABLE_CONNECTING;
	guard_init(&cable->guard, args->manner.guard);
	approach->args = *args;
	memcpy(&approach->body, args->handle->bytes, sizeof(approach->body));
	approach->args.handle = NULL;
	memcpy(approach->words.magic, claim_magic, sizeof(claim_magic));
	approach->words.claim = args->claim;
	approach->words.place = *place;
	approach->words.guard = (uint16_t)args->manner.guard;
	approach->words.is_bundle = net_is_bundle(&args->manner);
	memcpy(approach->words.public, cable->guard.public,
		sizeof(approach->words.public));
	if (!approach->body.way_count || approach->body.way_count > WAYS_MAX)
		return err_set(ERR_REMOTE,
			"another rank's address on the network means nothing");
	return OK;
}
