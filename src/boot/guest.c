#include "boot/guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct guest *guest_create(int fd, struct seal *seal, uint64_t now_ns)
{
	struct guest *guest = calloc(1, sizeof(*guest));

	if (!guest)
		return NULL;
	guest->fd = fd;
	guest->watched = -1;
	guest->seal = seal;
	guest->since_ns = now_ns;
	return guest;
}

bool guest_has_output(const struct guest *guest)
{
	return guest->io.out_done < guest->io.out_bytes ||
	       guest->io.payload_done < guest->io.payload_bytes ||
	       (guest->seal && seal_has_output(guest->seal));
}

bool guest_has_input(const struct guest *guest)
{
	return guest->seal && guest->phase < GUEST_TOLD && seal_has_input(guest->seal);
}

static ssize_t some_send(const struct guest *guest, const void *from, size_t bytes)
{
	return guest->seal ? seal_send(guest->seal, from, bytes)
			   : send(guest->fd, from, bytes, MSG_NOSIGNAL);
}

static ssize_t some_recv(const struct guest *guest, void *to, size_t bytes)
{
	return guest->seal ? seal_recv(guest->seal, to, bytes)
			   : recv(guest->fd, to, bytes, 0);
}

/* Send on, advancing *done; false when the peer is lost. */
static bool bytes_send(
	const struct guest *guest, const unsigned char *from, size_t bytes, size_t *done)
{
	while (*done < bytes) {
		ssize_t n = some_send(guest, from + *done, bytes - *done);

		if (n >= 0)
			*done += (size_t)n;
		else if (errno == EAGAIN)
			return true;
		else if (errno != EINTR)
			return false;
	}
	return true;
}

static void guest_flush(struct guest *guest)
{
	bool is_alive = bytes_send(
		guest, guest->io.out, guest->io.out_bytes, &guest->io.out_done);

	if (is_alive && guest->io.out_done == guest->io.out_bytes)
		is_alive = bytes_send(guest, guest->io.payload, guest->io.payload_bytes,
			&guest->io.payload_done);
	if (is_alive && guest->seal && seal_flush(guest->seal))
		is_alive = errno == EAGAIN;
	if (!is_alive || (guest->phase == GUEST_TOLD && !guest_has_output(guest)))
		guest->phase = GUEST_GONE;
}

static void hello_take(struct guest *guest, const unsigned char *secret)
{
	const struct wire_hello *hello = (const void *)guest->io.in;
	struct wire_challenge challenge;

	if (memcmp(hello->magic, wire_magic, sizeof(hello->magic))) {
		if (!guest->seal && seal_is_hello(hello)) {
			guest->fault = SEAL_NO_KEY_THERE;
			seal_turn_away(guest->fd);
		}
		guest->phase = GUEST_GONE;
		return;
	}
	memcpy(guest->nonces.rank, hello->nonce, sizeof(hello->nonce));
	auth_random(guest->nonces.root, sizeof(guest->nonces.root));
	auth_session(secret, &guest->nonces, guest->key);
	memcpy(challenge.nonce, guest->nonces.root, sizeof(challenge.nonce));
	auth_tag(secret, "root", &guest->nonces, sizeof(guest->nonces), challenge.tag);
	memcpy(guest->io.out, &challenge, sizeof(challenge));
	guest->io.out_bytes = sizeof(challenge);
	guest->phase = GUEST_CLAIM;
}

static void claim_take(struct guest *guest)
{
	struct wire_claim claim;

	memcpy(&claim, guest->io.in, sizeof(claim));
	guest->phase = GUEST_GONE;
	if (!auth_check(guest->key, "claim", &claim, offsetof(struct wire_claim, tag),
		    claim.tag))
		return;
	guest->kind = le32toh(claim.kind);
	guest->rank = le32toh(claim.rank);
	guest->rank_count = le32toh(claim.rank_count);
	guest->record_bytes = le32toh(claim.record_bytes);
	if (guest->record_bytes <= BOOT_RECORD_MAX)
		guest->phase = GUEST_RECORD;
}

static void record_take(struct guest *guest)
{
	bool is_right = auth_check(guest->key, "record", guest->io.in,
		guest->record_bytes, guest->io.in + guest->record_bytes);

	guest->phase = is_right ? GUEST_HERE : GUEST_GONE;
}

/* A word of another round, or a second one, is no guest's of ours; but that it cannot go
 * on may follow the word, or have crossed with the verdict of a round. */
static void say_take(struct guest *guest)
{
	const struct wire_say *say = (const void *)guest->io.in;
	uint32_t code = le32toh(say->code), bytes = le32toh(say->bytes);
	uint32_t round = le32toh(say->round), brings = le32toh(say->record_bytes);
	uint32_t what = guest->kind == WIRE_PORCH ? le32toh(say->what) : WIRE_SAYS;

	if ((guest->round.has_said && !code) || guest->round.has_recanted ||
		(round != guest->round.number &&
			!(code && round + 1 == guest->round.number)) ||
		code > ERR_TIMEOUT || bytes > WIRE_SENTENCE_MAX || what > WIRE_NO_PORCH ||
		brings > (code ? 0 : BOOT_GATHER_MAX) ||
		!auth_check(guest->key, "say", say, offsetof(struct wire_say, tag),
			say->tag)) {
		guest->phase = GUEST_GONE;
		return;
	}
	guest->round.has_recanted = guest->round.has_said;
	guest->round.has_said = !brings;
	guest->bring_bytes = guest->round.said.brings = brings;
	guest->round.said.what = what;
	guest->round.said.rank = guest->kind == WIRE_PORCH ? le32toh(say->rank)
							   : guest->rank;
	guest->round.said.rank_count = guest->kind == WIRE_PORCH
					       ? le32toh(say->rank_count)
					       : guest->rank_count;
	guest->round.said.code = (enum err)code;
	guest->round.said.is_last = say->is_last != 0;
	memcpy(guest->round.said.sentence, say->sentence, bytes);
	guest->round.said.sentence[bytes] = '\0';
}

/* The record of a round is where the root wants it, its tag in `in`. */
static void brought_take(struct guest *guest)
{
	guest->round.has_said = auth_check(
		guest->key, "gather", guest->bring_to, guest->bring_bytes, guest->io.in);
	guest->bring_bytes = 0;
	guest->bring_to = NULL;
	if (!guest->round.has_said)
		guest->phase = GUEST_GONE;
}

/* Bytes of the message we await. */
static size_t message_bytes(const struct guest *guest)
{
	switch (guest->phase) {
	case GUEST_HELLO:
		return sizeof(struct wire_hello);
	case GUEST_CLAIM:
		return sizeof(struct wire_claim);
	case GUEST_RECORD:
		return guest->record_bytes + AUTH_TAG_BYTES;
	default:
		return guest->bring_to ? guest->bring_bytes + AUTH_TAG_BYTES
				       : sizeof(struct wire_say);
	}
}

/* Take what has come of a message of so many bytes. */
static ssize_t message_recv(struct guest *guest, size_t bytes)
{
	size_t done = guest->io.in_done, begin = guest->bring_to ? guest->bring_bytes : 0;

	if (done < begin)
		return some_recv(guest, guest->bring_to + done, begin - done);
	return some_recv(guest, guest->io.in + (done - begin), bytes - done);
}

static void message_take(struct guest *guest, const unsigned char *secret)
{
	guest->io.in_done = 0;
	switch (guest->phase) {
	case GUEST_HELLO:
		hello_take(guest, secret);
		break;
	case GUEST_CLAIM:
		claim_take(guest);
		break;
	case GUEST_RECORD:
		record_take(guest);
		break;
	default:
		if (guest->bring_to)
			brought_take(guest);
		else
			say_take(guest);
	}
}

/* Read until the socket is empty. Every message moves the phase on, or is the one word of
 * a round, which bounds it. */
static void guest_listen(struct guest *guest, const unsigned char *secret)
{
	while (guest->phase < GUEST_TOLD && !guest_is_bringing(guest)) {
		size_t bytes = message_bytes(guest);
		ssize_t n = message_recv(guest, bytes);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			if (n && errno == EPROTO)
				guest->fault = seal_fault(guest->seal);
			guest->phase = GUEST_GONE;
			return;
		}
		guest->io.in_done += (size_t)n;
		if (guest->io.in_done < bytes)
			continue;
		message_take(guest, secret);
		/* The record lies in `in` until the root has copied it; a word is looked
		 * at before the next. */
		if (guest->phase == GUEST_HERE)
			return;
	}
}

void guest_move(struct guest *guest, const unsigned char *secret)
{
	guest_listen(guest, secret);
	if (guest->phase != GUEST_GONE && guest_has_output(guest))
		guest_flush(guest);
}

void guest_tell(struct guest *guest, const struct guest_news *news)
{
	struct wire_verdict verdict = {.round = htole32(guest->round.number),
		.code = htole32((uint32_t)news->code),
		.bytes = htole32((uint32_t)news->bytes)};

	memcpy(verdict.meeting, news->meeting, sizeof(verdict.meeting));
	memcpy(verdict.digest, news->digest, sizeof(verdict.digest));
	auth_tag(guest->key, "verdict", &verdict, offsetof(struct wire_verdict, tag),
		verdict.tag);
	memcpy(guest->io.out, &verdict, sizeof(verdict));
	guest->io.out_bytes = sizeof(verdict);
	guest->io.out_done = 0;
	guest->io.payload = news->payload;
	guest->io.payload_bytes = news->bytes;
	guest->io.payload_done = 0;
	guest->round.number++;
	guest->round.has_said = guest->round.has_recanted = false;
	if (news->is_last)
		guest->phase = GUEST_TOLD;
	guest_flush(guest);
}

/* The application may have forked: a copy of the socket in its child would keep the
 * connection up, and the peer waiting, were it only closed. */
void guest_destroy(struct guest *guest)
{
	seal_destroy(guest->seal);
	shutdown(guest->fd, SHUT_RDWR);
	close(guest->fd);
	auth_wipe(guest->key, sizeof(guest->key));
	free(guest->bag);
	free(guest);
}
