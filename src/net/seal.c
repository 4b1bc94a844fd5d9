#include "net/seal.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	FRAME_BYTES = 4096, /* at most, of what is said */
	LENGTH_BYTES = 4,
	PUBLIC_BYTES = crypto_kx_PUBLICKEYBYTES,
	HEADER_BYTES = crypto_secretstream_xchacha20poly1305_HEADERBYTES,
	SEALING_BYTES = crypto_secretstream_xchacha20poly1305_ABYTES,
	WIRE_BYTES = HEADER_BYTES + LENGTH_BYTES + FRAME_BYTES + SEALING_BYTES
};

/* Changes with every change of what follows. */
static const char hello_magic[SEAL_MAGIC_BYTES + 1] = "WEFTSL01";
static const char answer_magic[SEAL_MAGIC_BYTES + 1] = "WEFTSA01";
static const char notice_magic[SEAL_MAGIC_BYTES + 1] = "WEFTNO01";

struct hello {
	char magic[SEAL_MAGIC_BYTES];
	unsigned char public[PUBLIC_BYTES];
	unsigned char tag[AUTH_TAG_BYTES]; /* of the above, label "seal hello" */
};

/* `tag` is of both public keys and the header, label "seal answer". */
struct answer {
	char magic[SEAL_MAGIC_BYTES];
	unsigned char public[PUBLIC_BYTES];
	unsigned char header[HEADER_BYTES]; /* of the server's frames */
	unsigned char tag[AUTH_TAG_BYTES];
};

struct notice {
	char magic[SEAL_MAGIC_BYTES];
	uint32_t fault; /* enum seal_fault, as the other end is to read it */
	unsigned char zero[SEAL_NOTICE_BYTES - SEAL_MAGIC_BYTES - 4];
};

static_assert(sizeof(struct hello) == 72, "no padding on the wire");
static_assert(sizeof(struct answer) == 96, "no padding on the wire");
static_assert(
	sizeof(struct notice) == sizeof(struct answer), "one in place of the other");
static_assert(AUTH_KEY_BYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES, "a key");

/* What tags and keys are bound to. */
struct bond {
	unsigned char secret[crypto_kx_SESSIONKEYBYTES]; /* zero where there is none */
	unsigned char client[PUBLIC_BYTES], server[PUBLIC_BYTES];
	unsigned char header[HEADER_BYTES];
};

enum phase { PHASE_GREET, PHASE_HEADER, PHASE_OPEN, PHASE_BROKEN };

struct seal {
	int fd; /* borrowed */
	enum seal_role role;
	enum phase phase;
	enum seal_fault fault;
	bool is_ended; /* the other end has said that this was all */
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char public[PUBLIC_BYTES], secret[crypto_kx_SECRETKEYBYTES];
	unsigned char pull_key[AUTH_KEY_BYTES];
	crypto_secretstream_xchacha20poly1305_state push, pull;
	size_t out_done, out_bytes, in_done, plain_done, plain_bytes;
	unsigned char out[WIRE_BYTES], in[WIRE_BYTES], plain[FRAME_BYTES];
};

static void seal_tag(const struct seal *seal, const char *label, const struct bond *bond,
	unsigned char *tag)
{
	auth_tag(seal->key, label, bond, sizeof(*bond), tag);
}

/* ---- bytes ---- */

int seal_flush(struct seal *seal)
{
	while (seal->out_done < seal->out_bytes) {
		ssize_t n = send(seal->fd, seal->out + seal->out_done,
			seal->out_bytes - seal->out_done, MSG_NOSIGNAL);

		if (n >= 0)
			seal->out_done += (size_t)n;
		else if (errno != EINTR)
			return -1;
	}
	seal->out_done = seal->out_bytes = 0;
	return 0;
}

bool seal_has_output(const struct seal *seal)
{
	return seal->out_done < seal->out_bytes;
}

bool seal_has_input(const struct seal *seal)
{
	return seal->plain_done < seal->plain_bytes;
}

static void out_add(struct seal *seal, const void *bytes, size_t count)
{
	assert(seal->out_bytes + count <= sizeof(seal->out));
	memcpy(seal->out + seal->out_bytes, bytes, count);
	seal->out_bytes += count;
}

/* Have `want` bytes in `in`, and no more of the socket's: 0, or -1 as recv(). */
static int in_fill(struct seal *seal, size_t want)
{
	while (seal->in_done < want) {
		ssize_t n = recv(
			seal->fd, seal->in + seal->in_done, want - seal->in_done, 0);

		if (n > 0) {
			seal->in_done += (size_t)n;
		} else if (n == 0) {
			errno = ECONNRESET;
			return -1;
		} else if (errno != EINTR) {
			return -1;
		}
	}
	return 0;
}

/* ---- what went wrong ---- */

/* Nothing of this connection is believed any more. */
static int broken(struct seal *seal, enum seal_fault fault)
{
	seal->phase = PHASE_BROKEN;
	seal->fault = fault;
	seal->out_done = seal->out_bytes = 0;
	seal->plain_done = seal->plain_bytes = 0;
	errno = EPROTO;
	return -1;
}

/* A few bytes fit into a socket that nothing was sent on. What the other end has said is
 * taken first: unread bytes would make the kernel cut the connection. */
static void notice_send(int fd, enum seal_fault fault)
{
	struct notice notice = {.fault = htole32((uint32_t)fault)};
	char waste[512];

	while (recv(fd, waste, sizeof(waste), MSG_DONTWAIT) > 0)
		;
	memcpy(notice.magic, notice_magic, sizeof(notice.magic));
	if (send(fd, &notice, sizeof(notice), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return; /* it finds out by itself */
}

static int notice_take(struct seal *seal)
{
	struct notice notice;

	memcpy(&notice, seal->in, sizeof(notice));
	switch (le32toh(notice.fault)) {
	case SEAL_NO_KEY_THERE:
		return broken(seal, SEAL_NO_KEY_THERE);
	case SEAL_KEY_DIFFERS:
		return broken(seal, SEAL_KEY_DIFFERS);
	default:
		return broken(seal, SEAL_FORGED);
	}
}

enum seal_fault seal_fault(const struct seal *seal)
{
	return seal->fault;
}

const char *seal_fault_text(enum seal_fault fault)
{
	static const char *const texts[] = {[SEAL_WELL] = "nothing is wrong",
		[SEAL_PLAIN] = "the other process does not encrypt: call "
			       "ncclSetEncryption there, too",
		[SEAL_OTHER_KEY] = "the other process does not have our pre-shared key",
		[SEAL_NO_KEY_THERE] =
			"the other process has no pre-shared key: call ncclSetEncryption "
			"there, too",
		[SEAL_KEY_DIFFERS] = "the other process has another pre-shared key: give "
				     "all processes "
				     "the same",
		[SEAL_FORGED] = "the bytes were changed on the way"};

	return texts[fault];
}

/* ---- getting to know each other ---- */

static void hello_send(struct seal *seal)
{
	struct bond bond = {0};
	struct hello hello;

	memcpy(hello.magic, hello_magic, sizeof(hello.magic));
	memcpy(hello.public, seal->public, sizeof(hello.public));
	memcpy(bond.client, seal->public, sizeof(bond.client));
	seal_tag(seal, "seal hello", &bond, hello.tag);
	out_add(seal, &hello, sizeof(hello));
}

/* Both directions' keys; -1 when the other's public key is none. */
static int keys_make(struct seal *seal, struct bond *bond, unsigned char *push_key)
{
	bool is_client = seal->role == SEAL_CLIENT;
	unsigned char rx[crypto_kx_SESSIONKEYBYTES], tx[crypto_kx_SESSIONKEYBYTES];
	int wrong = is_client ? crypto_kx_client_session_keys(
					rx, tx, seal->public, seal->secret, bond->server)
			      : crypto_kx_server_session_keys(
					rx, tx, seal->public, seal->secret, bond->client);

	if (wrong)
		return broken(seal, SEAL_OTHER_KEY);
	memcpy(bond->secret, tx, sizeof(tx));
	seal_tag(seal, is_client ? "client to server" : "server to client", bond,
		push_key);
	memcpy(bond->secret, rx, sizeof(rx));
	seal_tag(seal, is_client ? "server to client" : "client to server", bond,
		seal->pull_key);
	auth_wipe(bond->secret, sizeof(bond->secret));
	auth_wipe(seal->secret, sizeof(seal->secret));
	auth_wipe(rx, sizeof(rx));
	auth_wipe(tx, sizeof(tx));
	return 0;
}

/* The server's: nothing but the magic is looked at before the tag. */
static int hello_take(struct seal *seal)
{
	unsigned char push_key[AUTH_KEY_BYTES];
	struct bond bond = {0};
	struct answer answer;
	struct hello hello;

	memcpy(&hello, seal->in, sizeof(hello));
	memcpy(bond.client, hello.public, sizeof(bond.client));
	if (!auth_check(seal->key, "seal hello", &bond, sizeof(bond), hello.tag)) {
		notice_send(seal->fd, SEAL_KEY_DIFFERS);
		return broken(seal, SEAL_OTHER_KEY);
	}
	memcpy(bond.server, seal->public, sizeof(bond.server));
	if (keys_make(seal, &bond, push_key))
		return -1;
	memcpy(answer.magic, answer_magic, sizeof(answer.magic));
	memcpy(answer.public, seal->public, sizeof(answer.public));
	crypto_secretstream_xchacha20poly1305_init_push(
		&seal->push, answer.header, push_key);
	auth_wipe(push_key, sizeof(push_key));
	memcpy(bond.header, answer.header, sizeof(bond.header));
	seal_tag(seal, "seal answer", &bond, answer.tag);
	out_add(seal, &answer, sizeof(answer));
	seal->phase = PHASE_HEADER;
	return 0;
}

/* The client's. The header of its own frames follows at once. */
static int answer_take(struct seal *seal)
{
	unsigned char push_key[AUTH_KEY_BYTES], header[HEADER_BYTES];
	struct bond bond = {0};
	struct answer answer;

	memcpy(&answer, seal->in, sizeof(answer));
	memcpy(bond.client, seal->public, sizeof(bond.client));
	memcpy(bond.server, answer.public, sizeof(bond.server));
	memcpy(bond.header, answer.header, sizeof(bond.header));
	if (memcmp(answer.magic, answer_magic, sizeof(answer.magic)) ||
		!auth_check(seal->key, "seal answer", &bond, sizeof(bond), answer.tag))
		return broken(seal, SEAL_OTHER_KEY);
	memset(bond.header, 0, sizeof(bond.header));
	if (keys_make(seal, &bond, push_key))
		return -1;
	crypto_secretstream_xchacha20poly1305_init_push(&seal->push, header, push_key);
	auth_wipe(push_key, sizeof(push_key));
	if (crypto_secretstream_xchacha20poly1305_init_pull(
		    &seal->pull, answer.header, seal->pull_key))
		return broken(seal, SEAL_FORGED);
	out_add(seal, header, sizeof(header));
	seal->phase = PHASE_OPEN;
	return 0;
}

/* One message further. */
static int greet(struct seal *seal)
{
	bool is_client = seal->role == SEAL_CLIENT;
	size_t bytes = is_client ? sizeof(struct answer) : sizeof(struct hello);

	if (in_fill(seal, SEAL_MAGIC_BYTES))
		return -1;
	/* who has no key says less, and waits */
	if (!is_client && !seal_is_hello(seal->in)) {
		notice_send(seal->fd, SEAL_PLAIN);
		return broken(seal, SEAL_PLAIN);
	}
	if (in_fill(seal, bytes))
		return -1;
	seal->in_done = 0;
	if (is_client && seal_is_notice(seal->in))
		return notice_take(seal);
	return is_client ? answer_take(seal) : hello_take(seal);
}

/* The server learns last how the client's frames begin. */
static int header_take(struct seal *seal)
{
	if (in_fill(seal, HEADER_BYTES))
		return -1;
	seal->in_done = 0;
	if (crypto_secretstream_xchacha20poly1305_init_pull(
		    &seal->pull, seal->in, seal->pull_key))
		return broken(seal, SEAL_FORGED);
	seal->phase = PHASE_OPEN;
	return 0;
}

/* Until frames can go, or no further: 0, or -1 as recv(). */
static int open_up(struct seal *seal)
{
	/* who does not hear us any more may have said something before */
	seal_flush(seal);
	if (seal->phase == PHASE_GREET && greet(seal))
		return -1;
	if (seal->phase == PHASE_HEADER && header_take(seal))
		return -1;
	if (seal->phase != PHASE_BROKEN)
		return 0;
	errno = EPROTO;
	return -1;
}

/* ---- frames ---- */

static void frame_push(
	struct seal *seal, const void *from, uint32_t bytes, unsigned char kind)
{
	uint32_t length = htole32(bytes);

	assert(seal->out_bytes + LENGTH_BYTES + bytes + SEALING_BYTES <=
		sizeof(seal->out));
	out_add(seal, &length, sizeof(length));
	crypto_secretstream_xchacha20poly1305_push(&seal->push,
		seal->out + seal->out_bytes, NULL, from, bytes,
		(const unsigned char *)&length, sizeof(length), kind);
	seal->out_bytes += bytes + SEALING_BYTES;
}

/* Room for a frame: everything but a header has gone. */
static int out_clear(struct seal *seal)
{
	if (open_up(seal))
		return -1;
	return seal_flush(seal);
}

ssize_t seal_send(struct seal *seal, const void *from, size_t bytes)
{
	uint32_t taken = bytes < FRAME_BYTES ? (uint32_t)bytes : FRAME_BYTES;

	if (out_clear(seal))
		return -1;
	if (!taken)
		return 0;
	frame_push(seal, from, taken, 0);
	if (seal_flush(seal) && errno != EAGAIN)
		return -1;
	return (ssize_t)taken;
}

int seal_end(struct seal *seal)
{
	if (out_clear(seal))
		return -1;
	frame_push(seal, NULL, 0, crypto_secretstream_xchacha20poly1305_TAG_FINAL);
	return seal_flush(seal);
}

/* The next frame's bytes are in `plain`: 0, or -1 as recv(). */
static int frame_pull(struct seal *seal)
{
	unsigned long long got = 0;
	unsigned char kind = 0;
	uint32_t length, bytes;

	if (in_fill(seal, LENGTH_BYTES))
		return -1;
	memcpy(&length, seal->in, sizeof(length));
	bytes = le32toh(length);
	if (bytes > FRAME_BYTES)
		return broken(seal, SEAL_FORGED);
	if (in_fill(seal, LENGTH_BYTES + bytes + SEALING_BYTES))
		return -1;
	seal->in_done = 0;
	if (crypto_secretstream_xchacha20poly1305_pull(&seal->pull, seal->plain, &got,
		    &kind, seal->in + LENGTH_BYTES, bytes + SEALING_BYTES,
		    (const unsigned char *)&length, sizeof(length)))
		return broken(seal, SEAL_FORGED);
	seal->is_ended = kind == crypto_secretstream_xchacha20poly1305_TAG_FINAL;
	seal->plain_done = 0;
	seal->plain_bytes = (size_t)got;
	return 0;
}

ssize_t seal_recv(struct seal *seal, void *to, size_t bytes)
{
	size_t left;

	while (!seal_has_input(seal)) {
		if (seal->is_ended)
			return 0;
		if (open_up(seal) || frame_pull(seal))
			return -1;
	}
	left = seal->plain_bytes - seal->plain_done;
	left = left < bytes ? left : bytes;
	memcpy(to, seal->plain + seal->plain_done, left);
	seal->plain_done += left;
	return (ssize_t)left;
}

/* ---- life ---- */

short seal_events(const struct seal *seal, short events)
{
	/* what is to be sent waits for what the other end says first */
	if (seal->phase == PHASE_GREET || seal->phase == PHASE_HEADER)
		events = POLLIN;
	return (short)(events | (seal_has_output(seal) ? POLLOUT : 0));
}

struct seal *seal_create(
	int fd, enum seal_role role, const unsigned char key[AUTH_KEY_BYTES])
{
	struct seal *seal = auth_init() ? NULL : calloc(1, sizeof(*seal));

	if (!seal) {
		err_set(ERR_SYSTEM, "no memory for an encrypted connection");
		return NULL;
	}
	seal->fd = fd;
	seal->role = role;
	memcpy(seal->key, key, AUTH_KEY_BYTES);
	crypto_kx_keypair(seal->public, seal->secret);
	if (role == SEAL_CLIENT)
		hello_send(seal);
	return seal;
}

void seal_destroy(struct seal *seal)
{
	if (!seal)
		return;
	auth_wipe(seal, sizeof(*seal));
	free(seal);
}

bool seal_is_hello(const void *bytes)
{
	return !memcmp(bytes, hello_magic, SEAL_MAGIC_BYTES);
}

void seal_turn_away(int fd)
{
	notice_send(fd, SEAL_NO_KEY_THERE);
}

bool seal_is_notice(const void *bytes)
{
	return !memcmp(bytes, notice_magic, SEAL_MAGIC_BYTES);
}
