/*
 * socket_door.c - the listener of the network of sockets: who comes, and who gets in.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/bundle.h"
#include "net/socket.h"

enum {
	STRANGERS_MAX = 64, /* connections that have not proved themselves */
	STRANGER_MS = 2000
};

struct stranger {
	int fd; /* owned */
	uint32_t way;
	uint64_t since_ns;
	size_t done;
	struct claim_words words;
};

/* A connection that nobody has asked for yet. */
struct arrival {
	struct net_end *end; /* owned */
	struct net_claim claim;
};

/* What a listener has of its own. */
struct door {
	unsigned char key[AUTH_KEY_BYTES];
	struct net_manner manner;
	char differs[WHY_BYTES];   /* somebody came whose settings are not ours */
	struct net_end *expectant; /* borrowed: bundles that await cables, linked */
	struct ring arrivals;	   /* of struct arrival */
	struct handle_body body;
	int fds[WAYS_MAX]; /* owned */
	struct stranger strangers[STRANGERS_MAX];
	uint32_t stranger_count;
};

const char claim_magic[8] = {"WEFTNET3"};

struct claim_proof claim_proof(const struct claim_words *claim,
	const struct handle_body *listener, const struct welcome_words *welcome)
{
	struct claim_proof proof = {.claim = *claim};

	memcpy(proof.listener, listener->nonce, sizeof(proof.listener));
	memset(proof.claim.tag, 0, sizeof(proof.claim.tag));
	if (welcome)
		proof.welcome = *welcome;
	memset(proof.welcome.tag, 0, sizeof(proof.welcome.tag));
	return proof;
}

struct guard_terms claim_terms(const struct claim_words *claim,
	const struct welcome_words *welcome, const unsigned char *key)
{
	struct guard_terms terms;

	memcpy(terms.key, key, sizeof(terms.key));
	memcpy(terms.nonce, claim->nonce, sizeof(terms.nonce));
	memcpy(terms.caller, claim->public, sizeof(terms.caller));
	memcpy(terms.listener, welcome->public, sizeof(terms.listener));
	return terms;
}

void guards_differ(enum net_guard here, enum net_guard there, char why[WHY_BYTES])
{
	static const char *const kinds[] = {[NET_BARE] = "without checksums",
		[NET_SUMMED] = "with checksums",
		[NET_SEALED] = "encrypted"};

	snprintf(why, WHY_BYTES, "this end sends %s and the other %s: %s", kinds[here],
		there <= NET_SEALED ? kinds[there] : "otherwise",
		here == NET_SEALED || there == NET_SEALED
			? "call ncclSetEncryption in all processes or in none"
			: "set WEFT_CHECKSUM alike everywhere");
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
	while (door->expectant)
		door_forget(door, door->expectant);
	for (; door->arrivals.count; ring_drop(&door->arrivals))
		end_close(((struct arrival *)ring_at(
				   &door->arrivals, sizeof(struct arrival), 0))
				  ->end);
	free(door->arrivals.things);
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
	door->manner = args->manner;
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

/* 0, or the errno of why somebody who is there cannot come in. */
static int strangers_come(struct door *door)
{
	int one = 1;

	for (uint32_t i = 0; i < door->body.way_count; i++)
		for (;;) {
			int fd = accept4(
				door->fds[i], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

			if (fd < 0 && (errno == EMFILE || errno == ENFILE ||
					      errno == ENOBUFS || errno == ENOMEM))
				return errno;
			if (fd < 0)
				break;
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			if (door->stranger_count == STRANGERS_MAX)
				stranger_drop(door, 0);
			door->strangers[door->stranger_count++] = (struct stranger){
				.fd = fd, .way = i, .since_ns = clock_ns()};
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
	proof = claim_proof(words, &door->body, NULL);
	if (!auth_check(door->key, "claim", &proof, sizeof(proof), words->tag))
		return ERR_REMOTE;
	return words->place.count && words->place.count <= NET_CABLES_MAX &&
			       words->place.index < words->place.count &&
			       (words->is_bundle || words->place.count == 1)
		       ? OK
		       : ERR_REMOTE;
}

/* It fits in the empty buffer of a new connection. */
static bool welcome_send(const struct door *door, const struct stranger *stranger,
	struct welcome_words *welcome)
{
	struct claim_proof proof = claim_proof(&stranger->words, &door->body, welcome);

	auth_tag(door->key, "welcome", &proof, sizeof(proof), welcome->tag);
	return send(stranger->fd, welcome, sizeof(*welcome), MSG_NOSIGNAL) ==
	       sizeof(*welcome);
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

/* Its cable, now that it has proved itself. The socket is the cable's from then on. */
static bool stranger_welcome(
	const struct door *door, struct stranger *stranger, struct cable *cable)
{
	struct welcome_words welcome = {.guard = (uint32_t)door->manner.guard};
	struct guard_terms terms;
	bool is_right;

	guard_init(&cable->guard, door->manner.guard);
	memcpy(welcome.public, cable->guard.public, sizeof(welcome.public));
	terms = claim_terms(&stranger->words, &welcome, door->key);
	is_right = guard_agree(&cable->guard, true, &terms);
	auth_wipe(&terms, sizeof(terms));
	if (!cable->ahead)
		cable->ahead = malloc(AHEAD_BYTES);
	if (!is_right || !cable->ahead || !welcome_send(door, stranger, &welcome))
		return false;
	where_print(stranger->fd, cable->where);
	cable->fd = stranger->fd;
	cable->way = stranger->way;
	cable->phase = CABLE_OPEN;
	if (!stranger->words.is_bundle)
		cable_keep_alive(cable, net_bare_silence(&door->manner));
	stranger->fd = -1;
	return true;
}

/* The end whose first cable this is. */
static struct net_end *arrival_end(
	const struct door *door, const struct claim_words *words)
{
	struct net_end *end = end_make();

	if (!end || !words->is_bundle)
		return end;
	end->bundle = bundle_make(&words->place, &door->manner);
	if (!end->bundle) {
		end_close(end);
		end = NULL;
	}
	return end;
}

static struct net_end *expectant_find(
	const struct door *door, const struct cable_place *place)
{
	struct net_end *end = door->expectant;

	while (end && !bundle_is_at(end->bundle, place))
		end = end->bundle->next_expectant;
	return end;
}

static void door_remember(struct door *door, struct net_end *end)
{
	end->bundle->door = door;
	end->bundle->next_expectant = door->expectant;
	door->expectant = end;
}

void door_forget(struct door *door, struct net_end *end)
{
	struct net_end **link = &door->expectant;

	while (*link && *link != end)
		link = &(*link)->bundle->next_expectant;
	if (*link)
		*link = end->bundle->next_expectant;
	end->bundle->door = NULL;
}

/* A cable of an end that is there, or the first of a new one. */
static void stranger_enter(struct door *door, struct stranger *stranger)
{
	const struct claim_words *words = &stranger->words;
	struct net_end *there = expectant_find(door, &words->place);
	struct net_end *end = there ? there : arrival_end(door, words);
	struct arrival *arrival;
	bool is_in;

	if (!end)
		return;
	bundle_lock(end->bundle);
	is_in = stranger_welcome(door, stranger,
		end->bundle ? bundle_cable(end->bundle, words->place.index)
			    : &end->cable);
	if (is_in && end->bundle)
		bundle_came(end, words->place.index);
	bundle_unlock(end->bundle);
	if (!is_in && !there)
		end_close(end);
	if (!is_in || there)
		return;
	if (end->bundle && words->place.count > 1)
		door_remember(door, end);
	arrival = ring_add(&door->arrivals, sizeof(*arrival));
	if (!arrival) {
		end_close(end);
		return;
	}
	*arrival = (struct arrival){end, words->claim};
}

/* It belongs here, and does otherwise: both are told. */
static void stranger_refuse(struct door *door, const struct stranger *stranger)
{
	struct welcome_words welcome = {
		.is_refused = 1, .guard = (uint32_t)door->manner.guard};

	guards_differ(
		door->manner.guard, (enum net_guard)stranger->words.guard, door->differs);
	welcome_send(door, stranger, &welcome);
}

int door_serve(struct door *door)
{
	int why = strangers_come(door);

	for (uint32_t i = 0; i < door->stranger_count;) {
		struct stranger *stranger = &door->strangers[i];
		enum err e = stranger_hear(door, stranger);

		if (e == ERR_AGAIN) {
			i++;
			continue;
		}
		if (!e && stranger->words.guard != (uint16_t)door->manner.guard)
			stranger_refuse(door, stranger);
		else if (!e)
			stranger_enter(door, stranger);
		stranger_drop(door, i);
	}
	return why;
}

enum err door_accept(
	struct net_end *listener, struct net_claim *claim, struct net_end **end)
{
	struct door *door = listener->door;
	const struct arrival *arrival;
	int why = door_serve(door);

	if (!door->arrivals.count && why) {
		errno = why;
		return err_set(ERR_SYSTEM, "a connection from another rank: %m");
	}
	if (!door->arrivals.count)
		return door->differs[0] ? err_set(ERR_USAGE,
						  "a rank of another host "
						  "cannot connect: %s",
						  door->differs)
					: ERR_AGAIN;
	arrival = ring_at(&door->arrivals, sizeof(*arrival), 0);
	*claim = arrival->claim;
	*end = arrival->end;
	ring_drop(&door->arrivals);
	return OK;
}
