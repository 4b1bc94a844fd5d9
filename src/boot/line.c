#include "boot/line.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/psk.h"

/* Changes with every change of what goes over a line. */
static const char magic[9] = "WEFTCT01";

/* A frame's tag is of its number and of all that follows it here. */
enum { NUMBER_BYTES = 8, FRAME_BYTES = NUMBER_BYTES + (int)sizeof(struct line_head) };
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
static bool line_seal(struct line *line)
{
	unsigned char key[AUTH_KEY_BYTES];
	bool is_sealed = psk_get(key);

	if (is_sealed)
		line->seal = seal_create(
			line->fd, line->is_caller ? SEAL_CLIENT : SEAL_SERVER, key);
	auth_wipe(key, sizeof(key));
	return !is_sealed || line->seal;
}

static struct line *line_create(int fd, bool is_caller, uint64_t now_ns)
{
	struct line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL;
	line->fd = fd;
	line->is_caller = is_caller;
	line->since_ns = line->heard_ns = line->told_ns = now_ns;
	line->polled = -1;
	if (room_make(&line->in, &line->in_room, ROOM_LEAST) &&
		room_make(&line->out, &line->out_room, ROOM_LEAST))
		return line;
	line->fd = -1; /* the caller's again */
	line_destroy(line);
	return NULL;
}

static void line_end(struct line *line, int status)
{
	line->phase = LINE_GONE;
	line->status = status;
}

struct line *line_accept(int fd, uint64_t now_ns)
{
	struct line *line = line_create(fd, false, now_ns);

	if (!line) {
		close(fd);
		return NULL;
	}
	line->phase = LINE_HELLO;
	if (!line_seal(line))
		line_end(line, ENOMEM);
	return line;
}

/* Shut down first: a forked child may hold a copy, which would keep the connection up. */
void line_destroy(struct line *line)
{
	if (!line)
		return;
	seal_destroy(line->seal);
	if (line->fd >= 0) {
		shutdown(line->fd, SHUT_RDWR);
		close(line->fd);
	}
	auth_wipe(line->secret, sizeof(line->secret));
	auth_wipe(line->key, sizeof(line->key));
	free(line->in);
	free(line->out);
	free(line);
}

/* ---- bytes ---- */

static ssize_t some_send(const struct line *line, const void *from, size_t bytes)
{
	return line->seal ? seal_send(line->seal, from, bytes)
			  : send(line->fd, from, bytes, MSG_NOSIGNAL);
}

static ssize_t some_recv(const struct line *line, void *to, size_t bytes)
{
	return line->seal ? seal_recv(line->seal, to, bytes)
			  : recv(line->fd, to, bytes, 0);
}

void line_flush(struct line *line)
{
	if (line->phase == LINE_GONE || line->phase == LINE_CONNECTING)
		return;
	while (line->out_done < line->out_bytes) {
		ssize_t n = some_send(line, line->out + line->out_done,
			line->out_bytes - line->out_done);

		if (n >= 0) {
			line->out_done += (size_t)n;
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR) {
			line_end(line, errno);
			return;
		}
	}
	if (line->seal && seal_flush(line->seal) && errno != EAGAIN)
		line_end(line, errno);
}

static void out_set(struct line *line, const void *bytes, size_t count)
{
	memcpy(line->out, bytes, count);
	line->out_done = 0;
	line->out_bytes = count;
	line_flush(line);
}

/* Have `want` bytes in `in`. False: not yet, or the line is gone. */
static bool in_fill(struct line *line, size_t want, uint64_t now_ns)
{
	if (!room_make(&line->in, &line->in_room, want)) {
		line_end(line, ENOMEM);
		return false;
	}
	while (line->in_done < want) {
		ssize_t n = some_recv(
			line, line->in + line->in_done, want - line->in_done);

		if (n > 0) {
			line->in_done += (size_t)n;
			line->heard_ns = now_ns;
		} else if (n == 0) {
			line_end(line, 0);
			return false;
		} else if (errno == EAGAIN) {
			return false;
		} else if (errno != EINTR) {
			line_end(line, errno == ECONNRESET ? 0 : errno);
			return false;
		}
	}
	return true;
}

/* ---- getting to know each other ---- */

static void hello_send(struct line *line)
{
	struct line_hello hello;

	memcpy(hello.magic, magic, sizeof(hello.magic));
	memcpy(hello.session, line->session, sizeof(hello.session));
	auth_random(hello.nonce, sizeof(hello.nonce));
	memcpy(line->nonces.rank, hello.nonce, sizeof(hello.nonce));
	line->phase = LINE_CHALLENGE;
	out_set(line, &hello, sizeof(hello));
}

static void connected(struct line *line)
{
	int status = addr_connected(line->fd);

	if (status)
		line_end(line, status);
	else if (!line_seal(line))
		line_end(line, ENOMEM);
	else
		hello_send(line);
}

struct line *line_call(const struct line_call *call, uint64_t now_ns)
{
	struct line *line;
	int fd = -1, status = addr_connect(&call->to, &fd);

	if (fd < 0)
		return NULL;
	line = line_create(fd, true, now_ns);
	if (!line) {
		close(fd);
		return NULL;
	}
	memcpy(line->session, call->session, sizeof(line->session));
	memcpy(line->secret, call->key, sizeof(line->secret));
	line->claim = (struct line_claim){.from = call->from_process,
		.to = call->to_process,
		.is_edge = call->is_edge};
	line->phase = LINE_CONNECTING;
	if (!status)
		connected(line);
	else if (status != EINPROGRESS)
		line_end(line, status);
	return line;
}

static void hello_take(struct line *line)
{
	const struct line_hello *hello = (const void *)line->in;

	if (memcmp(hello->magic, magic, sizeof(hello->magic))) {
		if (!line->seal && seal_is_hello(hello))
			seal_turn_away(line->fd);
		line_end(line, EPROTO);
		return;
	}
	memcpy(line->session, hello->session, sizeof(line->session));
	memcpy(line->nonces.rank, hello->nonce, sizeof(hello->nonce));
	line->phase = LINE_ASKED;
}

void line_answer(struct line *line, const unsigned char key[AUTH_KEY_BYTES])
{
	struct line_challenge challenge;

	assert(line->phase == LINE_ASKED);
	auth_random(line->nonces.root, sizeof(line->nonces.root));
	auth_session(key, &line->nonces, line->key);
	memcpy(challenge.nonce, line->nonces.root, sizeof(challenge.nonce));
	auth_tag(key, "control", &line->nonces, sizeof(line->nonces), challenge.tag);
	line->phase = LINE_CLAIM;
	out_set(line, &challenge, sizeof(challenge));
}

static void challenge_take(struct line *line)
{
	struct line_challenge challenge;
	struct line_claim claim = {.from = htole32(line->claim.from),
		.to = htole32(line->claim.to),
		.is_edge = htole32(line->claim.is_edge)};

	memcpy(&challenge, line->in, sizeof(challenge));
	memcpy(line->nonces.root, challenge.nonce, sizeof(challenge.nonce));
	if (!auth_check(line->secret, "control", &line->nonces, sizeof(line->nonces),
		    challenge.tag)) {
		line_end(line, EPROTO);
		return;
	}
	auth_session(line->secret, &line->nonces, line->key);
	auth_tag(line->key, "control claim", &claim, offsetof(struct line_claim, tag),
		claim.tag);
	line->phase = LINE_OPEN;
	out_set(line, &claim, sizeof(claim));
}

static void claim_take(struct line *line)
{
	struct line_claim claim;

	memcpy(&claim, line->in, sizeof(claim));
	if (!auth_check(line->key, "control claim", &claim,
		    offsetof(struct line_claim, tag), claim.tag)) {
		line_end(line, EPROTO);
		return;
	}
	line->claim.from = le32toh(claim.from);
	line->claim.to = le32toh(claim.to);
	line->claim.is_edge = le32toh(claim.is_edge);
	line->phase = LINE_OPEN;
}

/* ---- frames ---- */

static const char *label(const struct line *line, bool is_out)
{
	return line->is_caller == is_out ? "control frame >" : "control frame <";
}

void line_head_get(const struct line *line, struct line_head *head)
{
	memcpy(head, line->in + NUMBER_BYTES, sizeof(*head));
	head->bytes = le32toh(head->bytes);
	head->type = le32toh(head->type);
	head->origin = le32toh(head->origin);
	head->to = le32toh(head->to);
	head->number = le64toh(head->number);
	head->after = le64toh(head->after);
	head->kind = le32toh(head->kind);
}

const void *line_bytes(const struct line *line)
{
	return line->in + FRAME_BYTES;
}

/* The number comes not over the wire but from the count. */
static enum line_news frame_read(struct line *line, uint64_t now_ns)
{
	uint64_t number = htole64(line->in_number);
	struct line_head head;
	size_t bytes;

	if (line->in_done < NUMBER_BYTES)
		line->in_done = NUMBER_BYTES;
	if (!in_fill(line, FRAME_BYTES, now_ns))
		return LINE_NOTHING;
	line_head_get(line, &head);
	if (head.bytes > LINE_PAYLOAD_MAX) {
		line_end(line, EPROTO);
		return LINE_NOTHING;
	}
	bytes = FRAME_BYTES + head.bytes;
	if (!in_fill(line, bytes + AUTH_TAG_BYTES, now_ns))
		return LINE_NOTHING;
	memcpy(line->in, &number, sizeof(number));
	line->in_done = 0;
	line->in_number++;
	if (auth_check(line->key, label(line, false), line->in, bytes, line->in + bytes))
		return LINE_FRAME;
	line_end(line, EPROTO);
	return LINE_NOTHING;
}

static enum line_news greeting_read(struct line *line, uint64_t now_ns)
{
	size_t bytes = line->phase == LINE_HELLO   ? sizeof(struct line_hello)
		       : line->phase == LINE_CLAIM ? sizeof(struct line_claim)
						   : sizeof(struct line_challenge);

	if (!in_fill(line, bytes, now_ns))
		return LINE_NOTHING;
	line->in_done = 0;
	if (line->phase == LINE_HELLO)
		hello_take(line);
	else if (line->phase == LINE_CLAIM)
		claim_take(line);
	else
		challenge_take(line);
	return line->phase == LINE_GONE ? LINE_NOTHING : LINE_MOVED;
}

enum line_news line_read(struct line *line, uint64_t now_ns)
{
	struct pollfd ready = {.fd = line->fd, .events = POLLOUT};

	switch (line->phase) {
	case LINE_CONNECTING:
		if (poll(&ready, 1, 0) <= 0)
			return LINE_NOTHING;
		connected(line);
		return line->phase == LINE_GONE ? LINE_NOTHING : LINE_MOVED;
	case LINE_ASKED:
	case LINE_GONE:
		return LINE_NOTHING;
	case LINE_OPEN:
		return frame_read(line, now_ns);
	default:
		return greeting_read(line, now_ns);
	}
}

bool line_write(struct line *line, const struct line_head *head, const void *bytes,
	uint64_t now_ns)
{
	struct line_head wire = {.bytes = htole32(head->bytes),
		.type = htole32(head->type),
		.origin = htole32(head->origin),
		.to = htole32(head->to),
		.number = htole64(head->number),
		.after = htole64(head->after),
		.kind = htole32(head->kind)};
	uint64_t number = htole64(line->out_number);
	size_t count = FRAME_BYTES + head->bytes;

	assert(line_is_idle(line) && head->bytes <= LINE_PAYLOAD_MAX);
	if (!room_make(&line->out, &line->out_room, count + AUTH_TAG_BYTES)) {
		line_end(line, ENOMEM);
		return false;
	}
	memcpy(line->out, &number, sizeof(number));
	memcpy(line->out + NUMBER_BYTES, &wire, sizeof(wire));
	if (head->bytes)
		memcpy(line->out + FRAME_BYTES, bytes, head->bytes);
	auth_tag(line->key, label(line, true), line->out, count, line->out + count);
	line->out_number++;
	line->out_done = NUMBER_BYTES;
	line->out_bytes = count + AUTH_TAG_BYTES;
	line->told_ns = now_ns;
	line_flush(line);
	return line->phase != LINE_GONE;
}

bool line_is_idle(const struct line *line)
{
	return line->phase == LINE_OPEN && line->out_done == line->out_bytes &&
	       !(line->seal && seal_has_output(line->seal));
}

short line_events(const struct line *line)
{
	short events = POLLIN;

	if (line->phase == LINE_CONNECTING)
		return POLLOUT;
	if (line->phase == LINE_ASKED)
		return 0;
	if (line->out_done < line->out_bytes)
		events |= POLLOUT;
	return line->seal ? seal_events(line->seal, events) : events;
}
