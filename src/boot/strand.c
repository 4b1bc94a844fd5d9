#include "boot/strand.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/psk.h"

/* Changes with every change of what goes over a strand. */
static const char magic[9] = "WEFTCT03";

/* A frame's tag is of its number and of all that follows it here. */
enum { NUMBER_BYTES = 8, FRAME_BYTES = NUMBER_BYTES + (int)sizeof(struct strand_head) };
enum { ROOM_LEAST = 512 };

/* ---- life ---- */

static bool room_make(unsigned char **at, size_t *room, size_t wanted)
{
	size_t bytes = wanted > ROOM_LEAST ? wanted : ROOM_LEAST;
	unsigned char *made;

	if (wanted <= *room)
		return true;
	made = realloc(*at, bytes);
	if (!made)
		return false;
	*at = made;
	*room = bytes;
	return true;
}

/* Where this process has a key, nothing is said in the clear. */
static bool strand_seal(struct strand *strand)
{
	unsigned char key[AUTH_KEY_BYTES];
	bool is_sealed = psk_get(key);

	if (is_sealed)
		strand->seal = seal_create(
			strand->fd, strand->is_caller ? SEAL_CLIENT : SEAL_SERVER, key);
	auth_wipe(key, sizeof(key));
	return !is_sealed || strand->seal;
}

static struct strand *strand_create(int fd, bool is_caller, uint64_t now_ns)
{
	struct strand *strand = calloc(1, sizeof(*strand));

	if (!strand)
		return NULL;
	strand->fd = fd;
	strand->is_caller = is_caller;
	strand->since_ns = strand->heard_ns = strand->told_ns = now_ns;
	strand->held.polled = -1;
	if (room_make(&strand->in.data, &strand->in.room, ROOM_LEAST) &&
		room_make(&strand->out.data, &strand->out.room, ROOM_LEAST))
		return strand;
	strand->fd = -1; /* the caller's again */
	strand_destroy(strand);
	return NULL;
}

static void strand_end(struct strand *strand, int status)
{
	strand->phase = STRAND_GONE;
	strand->status = status;
}

/* By errno. Who hangs up is seen by who writes, too, and that is no other trouble. */
static void strand_break(struct strand *strand)
{
	bool is_closed = errno == ECONNRESET || errno == EPIPE;

	strand->is_reset = true;
	strand_end(strand, is_closed ? 0 : errno);
}

/* The same while writing: the last words of who hung up may still be there to be read,
 * and after them its end. */
static void strand_silence(struct strand *strand)
{
	if (strand->phase != STRAND_OPEN) {
		strand_break(strand);
		return;
	}
	strand->is_mute = true;
	strand->out.done = strand->out.bytes;
}

void strand_finish(struct strand *strand)
{
	shutdown(strand->fd, SHUT_WR);
	strand->is_mute = true;
}

struct strand *strand_accept(int fd, uint64_t now_ns)
{
	struct strand *strand = strand_create(fd, false, now_ns);

	if (!strand) {
		close(fd);
		return NULL;
	}
	strand->phase = STRAND_HELLO;
	if (!strand_seal(strand))
		strand_end(strand, ENOMEM);
	return strand;
}

/* Shut down first: a forked child may hold a copy, which would keep the connection up. */
void strand_destroy(struct strand *strand)
{
	if (!strand)
		return;
	seal_destroy(strand->seal);
	if (strand->fd >= 0) {
		shutdown(strand->fd, SHUT_RDWR);
		close(strand->fd);
	}
	auth_wipe(strand->secret, sizeof(strand->secret));
	auth_wipe(strand->key, sizeof(strand->key));
	free(strand->in.data);
	free(strand->out.data);
	free(strand);
}

/* ---- bytes ---- */

static ssize_t some_send(const struct strand *strand, const void *from, size_t bytes)
{
	return strand->seal ? seal_send(strand->seal, from, bytes)
			    : send(strand->fd, from, bytes, MSG_NOSIGNAL);
}

static ssize_t some_recv(const struct strand *strand, void *to, size_t bytes)
{
	return strand->seal ? seal_recv(strand->seal, to, bytes)
			    : recv(strand->fd, to, bytes, 0);
}

void strand_flush(struct strand *strand)
{
	if (strand->phase == STRAND_GONE || strand->phase == STRAND_CONNECTING ||
		strand->is_mute)
		return;
	while (strand->out.done < strand->out.bytes) {
		ssize_t n = some_send(strand, strand->out.data + strand->out.done,
			strand->out.bytes - strand->out.done);

		if (n >= 0) {
			strand->out.done += (size_t)n;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			strand_silence(strand);
			return;
		}
	}
	if (strand->seal && seal_flush(strand->seal) && errno != EAGAIN)
		strand_silence(strand);
}

static void out_set(struct strand *strand, const void *bytes, size_t count)
{
	memcpy(strand->out.data, bytes, count);
	strand->out.done = 0;
	strand->out.bytes = count;
	strand_flush(strand);
}

/* Have `want` bytes in `in`. False: not yet, or the strand is gone. */
static bool in_fill(struct strand *strand, size_t want, uint64_t now_ns)
{
	if (!room_make(&strand->in.data, &strand->in.room, want)) {
		strand_end(strand, ENOMEM);
		return false;
	}
	while (strand->in.done < want) {
		ssize_t n = some_recv(strand, strand->in.data + strand->in.done,
			want - strand->in.done);

		if (n > 0) {
			strand->in.done += (size_t)n;
			strand->heard_ns = now_ns;
		} else if (n == 0) {
			strand_end(strand, 0);
			return false;
		} else if (errno == EAGAIN) {
			return false;
		} else if (errno != EINTR) {
			strand_break(strand);
			return false;
		}
	}
	return true;
}

/* ---- getting to know each other ---- */

static void hello_send(struct strand *strand)
{
	struct strand_hello hello;

	memcpy(hello.magic, magic, sizeof(hello.magic));
	memcpy(hello.session, strand->session, sizeof(hello.session));
	auth_random(hello.nonce, sizeof(hello.nonce));
	memcpy(strand->nonces.rank, hello.nonce, sizeof(hello.nonce));
	strand->phase = STRAND_CHALLENGE;
	out_set(strand, &hello, sizeof(hello));
}

static void connected(struct strand *strand)
{
	int status = addr_connected(strand->fd);

	if (status)
		strand_end(strand, status);
	else if (!strand_seal(strand))
		strand_end(strand, ENOMEM);
	else
		hello_send(strand);
}

struct strand *strand_call(const struct strand_call *call, uint64_t now_ns)
{
	struct strand *strand;
	int fd = -1, status = addr_connect(&call->to, &fd);

	if (fd < 0)
		return NULL;
	strand = strand_create(fd, true, now_ns);
	if (!strand) {
		close(fd);
		return NULL;
	}
	memcpy(strand->session, call->session, sizeof(strand->session));
	memcpy(strand->secret, call->key, sizeof(strand->secret));
	strand->claim = (struct strand_claim){.from = call->from_process,
		.to = call->to_process,
		.is_edge = call->is_edge};
	strand->phase = STRAND_CONNECTING;
	if (!status)
		connected(strand);
	else if (status != EINPROGRESS)
		strand_end(strand, status);
	return strand;
}

static void hello_take(struct strand *strand)
{
	const struct strand_hello *hello = (const void *)strand->in.data;

	if (memcmp(hello->magic, magic, sizeof(hello->magic))) {
		if (!strand->seal && seal_is_hello(hello))
			seal_turn_away(strand->fd);
		strand_end(strand, EPROTO);
		return;
	}
	memcpy(strand->session, hello->session, sizeof(strand->session));
	memcpy(strand->nonces.rank, hello->nonce, sizeof(hello->nonce));
	strand->phase = STRAND_ASKED;
}

void strand_answer(struct strand *strand, const unsigned char key[AUTH_KEY_BYTES])
{
	struct strand_challenge challenge;

	assert(strand->phase == STRAND_ASKED);
	auth_random(strand->nonces.root, sizeof(strand->nonces.root));
	auth_session(key, &strand->nonces, strand->key);
	memcpy(challenge.nonce, strand->nonces.root, sizeof(challenge.nonce));
	auth_tag(key, "control", &strand->nonces, sizeof(strand->nonces), challenge.tag);
	strand->phase = STRAND_CLAIM;
	out_set(strand, &challenge, sizeof(challenge));
}

static void challenge_take(struct strand *strand)
{
	struct strand_challenge challenge;
	struct strand_claim claim = {.from = htole32(strand->claim.from),
		.to = htole32(strand->claim.to),
		.is_edge = htole32(strand->claim.is_edge)};

	memcpy(&challenge, strand->in.data, sizeof(challenge));
	memcpy(strand->nonces.root, challenge.nonce, sizeof(challenge.nonce));
	if (!auth_check(strand->secret, "control", &strand->nonces,
		    sizeof(strand->nonces), challenge.tag)) {
		strand_end(strand, EPROTO);
		return;
	}
	auth_session(strand->secret, &strand->nonces, strand->key);
	auth_tag(strand->key, "control claim", &claim, offsetof(struct strand_claim, tag),
		claim.tag);
	strand->phase = STRAND_OPEN;
	out_set(strand, &claim, sizeof(claim));
}

static void claim_take(struct strand *strand)
{
	struct strand_claim claim;

	memcpy(&claim, strand->in.data, sizeof(claim));
	if (!auth_check(strand->key, "control claim", &claim,
		    offsetof(struct strand_claim, tag), claim.tag)) {
		strand_end(strand, EPROTO);
		return;
	}
	strand->claim.from = le32toh(claim.from);
	strand->claim.to = le32toh(claim.to);
	strand->claim.is_edge = le32toh(claim.is_edge);
	strand->phase = STRAND_OPEN;
}

/* ---- frames ---- */

static const char *label(const struct strand *strand, bool is_out)
{
	return strand->is_caller == is_out ? "control frame >" : "control frame <";
}

void strand_head_put(const struct strand_head *head, void *wire)
{
	struct strand_head little = {.bytes = htole32(head->bytes),
		.type = htole32(head->type),
		.origin = htole32(head->origin),
		.to = htole32(head->to),
		.number = htole64(head->number),
		.after = htole64(head->after),
		.kind = htole32(head->kind)};

	memcpy(wire, &little, sizeof(little));
}

void strand_head_get(const void *wire, struct strand_head *head)
{
	memcpy(head, wire, sizeof(*head));
	head->bytes = le32toh(head->bytes);
	head->type = le32toh(head->type);
	head->origin = le32toh(head->origin);
	head->to = le32toh(head->to);
	head->number = le64toh(head->number);
	head->after = le64toh(head->after);
	head->kind = le32toh(head->kind);
}

void strand_head(const struct strand *strand, struct strand_head *head)
{
	strand_head_get(strand->in.data + NUMBER_BYTES, head);
}

const void *strand_bytes(const struct strand *strand)
{
	return strand->in.data + FRAME_BYTES;
}

/* The number comes not over the wire but from the count. */
static enum strand_news frame_read(struct strand *strand, uint64_t now_ns)
{
	uint64_t number = htole64(strand->in.number);
	struct strand_head head;
	size_t bytes;

	if (strand->in.done < NUMBER_BYTES)
		strand->in.done = NUMBER_BYTES;
	if (!in_fill(strand, FRAME_BYTES, now_ns))
		return STRAND_NOTHING;
	strand_head(strand, &head);
	if (head.bytes > STRAND_PAYLOAD_MAX) {
		strand_end(strand, EPROTO);
		return STRAND_NOTHING;
	}
	bytes = FRAME_BYTES + head.bytes;
	if (!in_fill(strand, bytes + AUTH_TAG_BYTES, now_ns))
		return STRAND_NOTHING;
	memcpy(strand->in.data, &number, sizeof(number));
	strand->in.done = 0;
	strand->in.number++;
	if (auth_check(strand->key, label(strand, false), strand->in.data, bytes,
		    strand->in.data + bytes))
		return STRAND_FRAME;
	strand_end(strand, EPROTO);
	return STRAND_NOTHING;
}

static enum strand_news greeting_read(struct strand *strand, uint64_t now_ns)
{
	size_t bytes = strand->phase == STRAND_HELLO   ? sizeof(struct strand_hello)
		       : strand->phase == STRAND_CLAIM ? sizeof(struct strand_claim)
						       : sizeof(struct strand_challenge);

	if (!in_fill(strand, bytes, now_ns))
		return STRAND_NOTHING;
	strand->in.done = 0;
	if (strand->phase == STRAND_HELLO)
		hello_take(strand);
	else if (strand->phase == STRAND_CLAIM)
		claim_take(strand);
	else
		challenge_take(strand);
	return strand->phase == STRAND_GONE ? STRAND_NOTHING : STRAND_MOVED;
}

enum strand_news strand_read(struct strand *strand, uint64_t now_ns)
{
	struct pollfd ready = {.fd = strand->fd, .events = POLLOUT};

	switch (strand->phase) {
	case STRAND_CONNECTING:
		if (poll(&ready, 1, 0) <= 0)
			return STRAND_NOTHING;
		connected(strand);
		return strand->phase == STRAND_GONE ? STRAND_NOTHING : STRAND_MOVED;
	case STRAND_ASKED:
	case STRAND_GONE:
		return STRAND_NOTHING;
	case STRAND_OPEN:
		return frame_read(strand, now_ns);
	default:
		return greeting_read(strand, now_ns);
	}
}

bool strand_write(struct strand *strand, const struct strand_head *head,
	const void *bytes, uint64_t now_ns)
{
	uint64_t number = htole64(strand->out.number);
	size_t count = FRAME_BYTES + head->bytes;

	assert(strand_is_idle(strand) && head->bytes <= STRAND_PAYLOAD_MAX);
	if (!room_make(&strand->out.data, &strand->out.room, count + AUTH_TAG_BYTES)) {
		strand_end(strand, ENOMEM);
		return false;
	}
	memcpy(strand->out.data, &number, sizeof(number));
	strand_head_put(head, strand->out.data + NUMBER_BYTES);
	if (head->bytes)
		memcpy(strand->out.data + FRAME_BYTES, bytes, head->bytes);
	auth_tag(strand->key, label(strand, true), strand->out.data, count,
		strand->out.data + count);
	strand->out.number++;
	strand->out.done = NUMBER_BYTES;
	strand->out.bytes = count + AUTH_TAG_BYTES;
	strand->told_ns = now_ns;
	strand_flush(strand);
	return strand->phase != STRAND_GONE;
}

bool strand_is_idle(const struct strand *strand)
{
	return strand->phase == STRAND_OPEN && !strand->is_mute &&
	       strand->out.done == strand->out.bytes &&
	       !(strand->seal && seal_has_output(strand->seal));
}

short strand_events(const struct strand *strand)
{
	short events = POLLIN;

	if (strand->phase == STRAND_CONNECTING)
		return POLLOUT;
	if (strand->phase == STRAND_ASKED)
		return 0;
	if (strand->out.done < strand->out.bytes)
		events |= POLLOUT;
	return strand->seal ? seal_events(strand->seal, events) : events;
}
