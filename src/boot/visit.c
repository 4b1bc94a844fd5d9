#include "boot/visit.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "net/addr.h"
#include "net/psk.h"

enum {
	SLICE_MAX_MS = 100,   /* of a slice, where there are many that look */
	MET_PATIENCE_MS = 500 /* with a root that has brought all together */
};

enum err visit_fail(struct visit *visit, enum err code, const char *why)
{
	snprintf(visit->end.why, sizeof(visit->end.why), "%s", why);
	return code;
}

/* Do all ranks have the id by a text of the user's? */
static bool is_id_of_text(const struct visit *visit)
{
	return visit->id.addr.family != ADDR_UNIX;
}

static enum err root_silent(struct visit *visit)
{
	bool is_tried = visit->end.connect_errno;
	char why[256];

	if (visit->args.root)
		snprintf(why, sizeof(why),
			"%s, where the ranks meet, did not answer in time",
			visit->args.root);
	else if (visit->is_root_known)
		snprintf(why, sizeof(why), "the root did not answer in time");
	else
		snprintf(why, sizeof(why), "no root answered in time%s%s%s",
			is_tried ? ": " : "",
			is_tried ? strerror(visit->end.connect_errno) : "",
			!is_id_of_text(visit)
				? ""
				: "; does rank 0 run, and on the host that NCCL_COMM_ID "
				  "names?");
	return visit_fail(visit, ERR_TIMEOUT, why);
}

enum err visit_root_gone(struct visit *visit)
{
	const char *root = visit->args.root ? visit->args.root
					    : "the process in which the ranks meet";
	char why[128];

	if (visit->end.own_errno) {
		snprintf(why, sizeof(why), "cannot hear %s: %s", root,
			strerror(visit->end.own_errno));
		return visit_fail(visit, ERR_SYSTEM, why);
	}
	if (visit->args.is_root_lost)
		*visit->args.is_root_lost = true;
	snprintf(why, sizeof(why), "%s has gone while the communicator was made", root);
	return visit_fail(visit, ERR_REMOTE, why);
}

static bool is_aborted(const struct visit *visit)
{
	return visit->args.abort &&
	       atomic_load_explicit(visit->args.abort, memory_order_relaxed);
}

/* Whoever has the porch's door may stand still, or not get to the root itself. */
static bool is_porch_overdue(const struct visit *visit)
{
	return visit->is_at_porch && !visit->is_let_in && clock_ns() >= visit->porch_ns;
}

static void porch_pass(struct visit *visit)
{
	visit->is_at_porch = false;
	visit->to = visit->beyond;
}

/* The root says who is missing (stall.h), unless it is missing itself. */
static void root_miss(struct visit *visit)
{
	char where[ADDR_TEXT_BYTES];

	if (visit->has_warned || visit->is_let_in || !visit->since_ns ||
		!clock_is_over(visit->since_ns, param_int(PARAM_STALL)))
		return;
	visit->has_warned = true;
	addr_print(&visit->to, where);
	log_warn("rank %u has waited %ld s for an answer at %s, where the ranks are to "
		 "meet: the process there is stopped or cannot be reached",
		visit->args.rank, (long)param_int(PARAM_STALL), where);
}

/* May we go on waiting? ERR_AGAIN: somewhere else. */
static enum err wait_check(struct visit *visit)
{
	bool has_met = visit->round > 0;
	bool is_long = clock_ns() - visit->since_ns > MET_PATIENCE_MS * CLOCK_MS;
	bool is_hoping = visit->args.hope && (!has_met || is_long);
	enum err e = is_hoping ? visit->args.hope(visit->args.hope_arg, has_met) : OK;

	if (e) {
		visit->end.is_hopeless = true;
		return visit_fail(visit, e, err_last());
	}
	if (is_aborted(visit))
		return visit_fail(visit, ERR_REMOTE,
			"the communicator was aborted while it was made");
	if (clock_ns() >= visit->deadline_ns)
		return root_silent(visit);
	root_miss(visit);
	return is_porch_overdue(visit) ? ERR_AGAIN : OK;
}

/* Sleep a little before trying again. */
enum err visit_pause(struct visit *visit, int ms)
{
	poll(NULL, 0, clock_left_ms(visit->deadline_ns, ms));
	return wait_check(visit);
}

static short socket_events(const struct visit *visit, short events)
{
	return visit->seal ? seal_events(visit->seal, events) : events;
}

/* A thousand ranks that all look every 10 ms leave two cores no time to meet. */
static int slice_ms(const struct visit *visit)
{
	uint32_t ms = VISIT_SLICE_MS + visit->args.rank_count / 10;

	return ms < SLICE_MAX_MS ? (int)ms : SLICE_MAX_MS;
}

/* Wait until the socket is ready for `events`, or broken. */
static enum err socket_wait(struct visit *visit, short events)
{
	for (;;) {
		struct pollfd wait = {
			.fd = visit->fd, .events = socket_events(visit, events)};
		int n = poll(
			&wait, 1, clock_left_ms(visit->deadline_ns, slice_ms(visit)));
		enum err e;

		if (n > 0)
			return OK;
		e = wait_check(visit);
		/* what the root says of a failure is better than what we make of it */
		if (e && !is_aborted(visit) && poll(&wait, 1, VISIT_HEAR_MS) > 0)
			return OK;
		if (e)
			return e;
	}
}

/* Is it the other end that has gone, or the way to it? Anything else is this process's
 * own trouble. */
static bool is_of_the_peer(int status)
{
	switch (status) {
	case ECONNRESET:
	case ECONNABORTED:
	case EPIPE:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
		return true;
	default:
		return false;
	}
}

/* What an errno of the connection means. Who listens and has another key, or none, has so
 * for good. */
static enum err socket_judge(struct visit *visit, short events)
{
	if (errno == EAGAIN)
		return socket_wait(visit, events);
	if (errno == EINTR)
		return OK;
	if (errno != EPROTO) {
		visit->end.own_errno = is_of_the_peer(errno) ? 0 : errno;
		return ERR_AGAIN;
	}
	return visit_fail(visit, ERR_USAGE, seal_fault_text(seal_fault(visit->seal)));
}

static ssize_t some_send(struct visit *visit, const void *from, size_t bytes)
{
	return visit->seal ? seal_send(visit->seal, from, bytes)
			   : send(visit->fd, from, bytes, MSG_NOSIGNAL);
}

static ssize_t some_recv(struct visit *visit, void *to, size_t bytes)
{
	return visit->seal ? seal_recv(visit->seal, to, bytes)
			   : recv(visit->fd, to, bytes, 0);
}

static enum err bytes_send(struct visit *visit, const void *from, size_t bytes)
{
	const unsigned char *at = from;
	enum err e = OK;

	while (bytes > 0 && !e) {
		ssize_t n = some_send(visit, at, bytes);

		if (n < 0) {
			e = socket_judge(visit, POLLOUT);
			continue;
		}
		at += n;
		bytes -= (size_t)n;
	}
	while (!e && visit->seal && seal_flush(visit->seal))
		e = socket_judge(visit, POLLOUT);
	return e;
}

static enum err bytes_recv(struct visit *visit, void *to, size_t bytes)
{
	unsigned char *at = to;

	while (bytes > 0) {
		ssize_t n = some_recv(visit, at, bytes);
		enum err e = OK;

		if (n > 0) {
			at += n;
			bytes -= (size_t)n;
		} else {
			e = n ? socket_judge(visit, POLLIN) : ERR_AGAIN;
		}
		if (e)
			return e;
	}
	return OK;
}

/* What a failed connect means. A Unix root listens from before its id exists, so a
 * refusal is final; a TCP root may still come. */
static enum err connect_judge(struct visit *visit, int status)
{
	char why[128];

	switch (status) {
	case 0:
		return OK;
	case ECONNREFUSED:
		if (visit->is_at_porch) { /* it has ended, or never begun */
			porch_pass(visit);
			return ERR_AGAIN;
		}
		if (visit->id.addr.family != ADDR_UNIX && !visit->is_root_known)
			return ERR_AGAIN;
		if (visit->args.is_root_lost)
			*visit->args.is_root_lost = true;
		return visit_fail(visit, ERR_REMOTE,
			"nobody listens any more: the meeting is over or the process "
			"that made the id has gone");
	case EAGAIN:
	case EINTR:
	case ECONNRESET:
	case ECONNABORTED:
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EADDRNOTAVAIL:
		return ERR_AGAIN;
	case EMFILE:
	case ENFILE:
		/* whoever only wants to say that it cannot come waits for one to be free
		 */
		if (visit->args.failed)
			return ERR_AGAIN;
		/* fall through */
	default:
		errno = status;
		snprintf(why, sizeof(why), "connect: %m");
		return visit_fail(visit, ERR_SYSTEM, why);
	}
}

static enum err root_connect(struct visit *visit)
{
	int status = addr_connect(&visit->to, &visit->fd);

	if (status == EINPROGRESS) {
		enum err e;

		visit->end.connect_errno = ETIMEDOUT;
		e = socket_wait(visit, POLLOUT);
		if (e)
			return e;
		status = addr_connected(visit->fd);
	}
	visit->end.connect_errno = status;
	return connect_judge(visit, status);
}

/* Where this process has a key, nothing is said in the clear. */
static enum err root_seal(struct visit *visit)
{
	unsigned char key[AUTH_KEY_BYTES];
	bool is_sealed = psk_get(key);

	if (is_sealed)
		visit->seal = seal_create(visit->fd, SEAL_CLIENT, key);
	auth_wipe(key, sizeof(key));
	return is_sealed && !visit->seal ? visit_fail(visit, ERR_SYSTEM, err_last()) : OK;
}

/* Somebody who listens there has failed to prove itself. */
static enum err root_is_strange(struct visit *visit, const void *answer)
{
	if (!visit->seal && seal_is_notice(answer))
		return visit_fail(visit, ERR_USAGE,
			"who listens there wants encryption and this process has no "
			"pre-shared key: call ncclSetEncryption with the same key in all "
			"processes");
	return visit_fail(visit, ERR_USAGE,
		is_id_of_text(visit)
			? "who listens there does not know this id's secret: it is "
			  "another "
			  "program, or NCCL_COMM_ID or WEFT_SECRET is not the same text "
			  "on "
			  "all ranks"
			: "who listens there does not know this id's secret: ranks have "
			  "different ids, or it is another program");
}

/* Exchange nonces; the root proves itself first, so a wrong id is noticed at once. */
static enum err root_verify(struct visit *visit)
{
	struct wire_hello hello;
	struct wire_challenge challenge;
	enum err e;

	memcpy(hello.magic, wire_magic, sizeof(hello.magic));
	auth_random(hello.nonce, sizeof(hello.nonce));
	memcpy(visit->nonces.rank, hello.nonce, sizeof(hello.nonce));
	e = bytes_send(visit, &hello, sizeof(hello));
	if (!e)
		e = bytes_recv(visit, &challenge, sizeof(challenge));
	if (e)
		return e;
	memcpy(visit->nonces.root, challenge.nonce, sizeof(challenge.nonce));
	if (!auth_check(visit->id.secret, "root", &visit->nonces, sizeof(visit->nonces),
		    challenge.tag))
		return root_is_strange(visit, &challenge);
	auth_session(visit->id.secret, &visit->nonces, visit->key);
	visit->is_root_known = visit->is_let_in = true;
	return OK;
}

/* Claim and record in one message, so that the root wakes once. */
static enum err claim_send(struct visit *visit, enum wire_kind kind)
{
	const struct boot_args *args = &visit->args;
	uint32_t record_bytes = kind == WIRE_MEET ? args->record_bytes : 0;
	struct wire_claim claim = {.kind = htole32(kind),
		.rank = htole32(args->rank),
		.rank_count = htole32(args->rank_count),
		.record_bytes = htole32(record_bytes)};
	unsigned char message[sizeof(claim) + BOOT_RECORD_MAX + AUTH_TAG_BYTES];
	unsigned char *record = message + sizeof(claim);

	auth_tag(
		visit->key, "claim", &claim, offsetof(struct wire_claim, tag), claim.tag);
	memcpy(message, &claim, sizeof(claim));
	if (record_bytes)
		memcpy(record, args->record, record_bytes);
	auth_tag(visit->key, "record", record, record_bytes, record + record_bytes);
	return bytes_send(visit, message, sizeof(claim) + record_bytes + AUTH_TAG_BYTES);
}

static enum err forged(struct visit *visit)
{
	return visit_fail(visit, ERR_REMOTE, "the root's answer was changed on the way");
}

/* A failure's payload is its sentence. */
static enum err sentence_recv(struct visit *visit, const struct wire_verdict *verdict)
{
	unsigned char digest[AUTH_TAG_BYTES];
	char text[WIRE_SENTENCE_MAX + 1];
	uint32_t bytes = le32toh(verdict->bytes);
	enum err code = (enum err)le32toh(verdict->code), e;

	if (bytes > WIRE_SENTENCE_MAX || code < OK || code > ERR_TIMEOUT)
		return forged(visit);
	e = bytes_recv(visit, text, bytes);
	if (e)
		return e;
	auth_digest(text, bytes, digest);
	if (memcmp(digest, verdict->digest, sizeof(digest)))
		return forged(visit);
	text[bytes] = '\0';
	visit->end.is_over = true;
	return visit_fail(visit, code, text);
}

enum err visit_hear(struct visit *visit, void *records)
{
	size_t bytes = visit->payload_bytes;
	struct wire_verdict verdict;
	unsigned char digest[AUTH_TAG_BYTES];
	enum err e = bytes_recv(visit, &verdict, sizeof(verdict));

	if (e)
		return e;
	if (!auth_check(visit->key, "verdict", &verdict,
		    offsetof(struct wire_verdict, tag), verdict.tag))
		return forged(visit);
	if (le32toh(verdict.round) != visit->round)
		return forged(visit);
	memcpy(visit->meeting, verdict.meeting, sizeof(visit->meeting));
	visit->round++;
	if (le32toh(verdict.code) != OK)
		return sentence_recv(visit, &verdict);
	if (le32toh(verdict.bytes) != bytes)
		return forged(visit);
	e = bytes_recv(visit, records, bytes);
	if (e)
		return e;
	auth_digest(records, bytes, digest);
	return memcmp(digest, verdict.digest, sizeof(digest)) ? forged(visit) : OK;
}

/* The word, and its record if it goes well, in one message. */
enum err visit_say(struct visit *visit, const struct visit_word *word)
{
	uint32_t record_bytes = word->code ? 0 : word->record_bytes;
	struct wire_say say = {.round = htole32(visit->round),
		.code = htole32((uint32_t)word->code),
		.is_last = htole32(word->is_last),
		.record_bytes = htole32(record_bytes),
		.what = htole32(word->what)};
	unsigned char message[sizeof(say) + BOOT_GATHER_MAX + AUTH_TAG_BYTES];
	size_t bytes = 0;

	if (word->code) {
		const char *why = visit->end.why[0] ? visit->end.why : err_last();

		bytes = strnlen(why, sizeof(say.sentence));
		memcpy(say.sentence, why, bytes);
	}
	say.bytes = htole32((uint32_t)bytes);
	auth_tag(visit->key, "say", &say, offsetof(struct wire_say, tag), say.tag);
	memcpy(message, &say, sizeof(say));
	bytes = sizeof(say);
	if (record_bytes) {
		memcpy(message + bytes, word->record, record_bytes);
		auth_tag(visit->key, "gather", word->record, record_bytes,
			message + bytes + record_bytes);
		bytes += record_bytes + AUTH_TAG_BYTES;
	}
	return bytes_send(visit, message, bytes);
}

void visit_close(struct visit *visit)
{
	seal_destroy(visit->seal);
	visit->seal = NULL;
	if (visit->fd >= 0)
		close(visit->fd);
	visit->fd = -1;
}

/* We go before all is decided: the others hear why. Whatever fits in the socket. */
void visit_give_up(struct visit *visit, enum err code)
{
	if (visit->fd >= 0 && code != ERR_AGAIN && !visit->end.is_over) {
		visit->deadline_ns = 0; /* no more waiting */
		visit->args.hope = NULL;
		visit_say(visit, &(struct visit_word){.code = code, .is_last = true});
	}
	visit_close(visit);
}

static enum err visit_once(struct visit *visit, enum wire_kind kind, void *records)
{
	bool is_known;
	enum err e;

	visit->round = 0;
	visit->is_let_in = false;
	visit->payload_bytes = (size_t)visit->args.rank_count * visit->args.record_bytes;
	e = root_connect(visit);
	if (!e)
		e = root_seal(visit);
	if (!e)
		e = root_verify(visit);
	if (!e)
		e = claim_send(visit, kind);
	is_known = !e && kind == WIRE_MEET;
	if (!e && kind == WIRE_CANNOT)
		e = visit_say(visit, &(struct visit_word){.code = visit->args.failed,
					     .is_last = true});
	if (!e && (kind == WIRE_MEET || kind == WIRE_CANNOT))
		e = visit_hear(visit, records);
	if (e && is_known && !visit->round)
		visit_give_up(visit, e);
	if (e || (kind != WIRE_MEET && kind != WIRE_PORCH))
		visit_close(visit);
	return e;
}

/* The root drops us, or its queue is full, only when there is a crowd: come again. */
enum err visit_root(struct visit *visit, enum wire_kind kind, void *records)
{
	for (int wait_ms = 1;;
		wait_ms = wait_ms < VISIT_SLICE_MS ? wait_ms + 1 : wait_ms) {
		enum err e = visit_once(visit, kind, records);

		if (e != ERR_AGAIN)
			return e;
		if (is_porch_overdue(visit))
			porch_pass(visit);
		e = visit_pause(visit, wait_ms);
		if (e && e != ERR_AGAIN)
			return e;
	}
}
