#include "boot/boot.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "boot/id.h"
#include "boot/root.h"
#include "boot/wire.h"
#include "net/addr.h"
#include "net/psk.h"
#include "net/seal.h"

enum {
	SLICE_MS = 10,	    /* how often a waiting rank looks at the abort word .. */
	SLICE_MAX_MS = 100, /* .. where there are many that do */
	GRACE_MS = 1000,    /* we outwait the root, which knows who is missing */
	BIND_MS = 5000,	    /* for an earlier meeting to leave the port */
	HEAR_MS = 50,	 /* for what was said to us before we could not speak any more */
	TELL_MS = 2000,	 /* to tell the others that we cannot come */
	END_MS = 200,	 /* for a root of our own to end */
	DISMISS_MS = 200 /* a spare root that does not listen is not worth more */
};

/* One rank's visit to the root. Functions below return a bare code and leave the reason
 * in `why`; boot_meet() makes the sentence, so that a dismissal can fail in silence.
 * ERR_AGAIN: the connection is lost, try another. */
struct visit {
	struct boot_args args; /* what it points to is the caller's */
	struct id_body id;
	struct addr to;	   /* where the root is, as seen from here */
	int connect_errno; /* how the last try to reach it ended */
	uint64_t deadline_ns;
	int fd;		    /* owned; -1 between connections */
	struct seal *seal;  /* owned; NULL: nothing is encrypted, or no connection */
	bool is_root_known; /* it has once proved itself: when refused now, it has gone */
	struct auth_nonces nonces;
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char meeting[WIRE_MEETING_BYTES]; /* which one it is, of one id's */
	uint32_t round;				   /* verdicts heard */
	size_t payload_bytes; /* that the next verdict brings when all is well */
	bool is_over;	      /* the last of them, or a failure */
	char why[WIRE_SENTENCE_MAX + 1];
};

static enum err fail(struct visit *visit, enum err code, const char *why)
{
	snprintf(visit->why, sizeof(visit->why), "%s", why);
	return code;
}

void boot_tidy(void)
{
	roots_tidy();
}

static enum err root_silent(struct visit *visit)
{
	char why[128];

	if (visit->args.root)
		snprintf(why, sizeof(why),
			"%s, where the ranks meet, did not answer in time",
			visit->args.root);
	else if (visit->connect_errno)
		snprintf(why, sizeof(why), "no root answered in time: %s",
			strerror(visit->connect_errno));
	else
		snprintf(why, sizeof(why), "%s",
			visit->is_root_known ? "the root did not answer in time"
					     : "no root answered in time");
	return fail(visit, ERR_TIMEOUT, why);
}

static enum err root_gone(struct visit *visit)
{
	char why[128];

	if (visit->args.is_root_lost)
		*visit->args.is_root_lost = true;
	snprintf(why, sizeof(why), "%s has gone while the communicator was made",
		visit->args.root ? visit->args.root
				 : "the process in which the ranks meet");
	return fail(visit, ERR_REMOTE, why);
}

static bool is_aborted(const struct visit *visit)
{
	return visit->args.abort &&
	       atomic_load_explicit(visit->args.abort, memory_order_relaxed);
}

/* May we go on waiting? */
static enum err wait_check(struct visit *visit)
{
	/* once all have met, the root sees who is lost */
	bool is_hoping = visit->args.hope && !visit->round;
	enum err e = is_hoping ? visit->args.hope(visit->args.hope_arg) : OK;

	if (e)
		return fail(visit, e, err_last());
	if (is_aborted(visit))
		return fail(visit, ERR_REMOTE,
			"the communicator was aborted while it was made");
	if (clock_ns() >= visit->deadline_ns)
		return root_silent(visit);
	return OK;
}

/* Sleep a little before trying again. */
static enum err pause_ms(struct visit *visit, int ms)
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
	uint32_t ms = SLICE_MS + visit->args.rank_count / 10;

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
		if (e && !is_aborted(visit) && poll(&wait, 1, HEAR_MS) > 0)
			return OK;
		if (e)
			return e;
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
	if (errno != EPROTO)
		return ERR_AGAIN;
	return fail(visit, ERR_USAGE, seal_fault_text(seal_fault(visit->seal)));
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
		if (visit->id.addr.family != ADDR_UNIX && !visit->is_root_known)
			return ERR_AGAIN;
		if (visit->args.is_root_lost)
			*visit->args.is_root_lost = true;
		return fail(visit, ERR_REMOTE,
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
		return fail(visit, ERR_SYSTEM, why);
	}
}

static enum err root_connect(struct visit *visit)
{
	int status = addr_connect(&visit->to, &visit->fd);

	if (status == EINPROGRESS) {
		enum err e;

		visit->connect_errno = ETIMEDOUT;
		e = socket_wait(visit, POLLOUT);
		if (e)
			return e;
		status = addr_connected(visit->fd);
	}
	visit->connect_errno = status;
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
	return is_sealed && !visit->seal ? fail(visit, ERR_SYSTEM, err_last()) : OK;
}

/* Somebody who listens there has failed to prove itself. */
static enum err root_is_strange(struct visit *visit, const void *answer)
{
	if (!visit->seal && seal_is_notice(answer))
		return fail(visit, ERR_USAGE,
			"who listens there wants encryption and this process has no "
			"pre-shared key: call ncclSetEncryption with the same key in all "
			"processes");
	return fail(visit, ERR_USAGE,
		"who listens there does not know this id's secret: ranks have different "
		"ids, or it is another program");
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
	visit->is_root_known = true;
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
	return fail(visit, ERR_REMOTE, "the root's answer was changed on the way");
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
	visit->is_over = true;
	return fail(visit, code, text);
}

static enum err verdict_recv(struct visit *visit, void *records)
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

/* What a rank has to say in a round. */
struct word {
	enum err code; /* how it went; the reason is in visit->why or err_last() */
	bool is_last;
	const void *record; /* `record_bytes` of it */
	uint32_t record_bytes;
};

/* The word, and its record if it goes well, in one message. */
static enum err say_send(struct visit *visit, const struct word *word)
{
	uint32_t record_bytes = word->code ? 0 : word->record_bytes;
	struct wire_say say = {.round = htole32(visit->round),
		.code = htole32((uint32_t)word->code),
		.is_last = htole32(word->is_last),
		.record_bytes = htole32(record_bytes)};
	unsigned char message[sizeof(say) + BOOT_GATHER_MAX + AUTH_TAG_BYTES];
	size_t bytes = 0;

	if (word->code) {
		const char *why = visit->why[0] ? visit->why : err_last();

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

static void visit_close(struct visit *visit)
{
	seal_destroy(visit->seal);
	visit->seal = NULL;
	if (visit->fd >= 0)
		close(visit->fd);
	visit->fd = -1;
}

/* We go before all is decided: the others hear why. Whatever fits in the socket. */
static void visit_give_up(struct visit *visit, enum err code)
{
	if (visit->fd >= 0 && code != ERR_AGAIN && !visit->is_over) {
		visit->deadline_ns = 0; /* no more waiting */
		visit->args.hope = NULL;
		say_send(visit, &(struct word){.code = code, .is_last = true});
	}
	visit_close(visit);
}

static enum err visit_once(struct visit *visit, enum wire_kind kind, void *records)
{
	bool is_known;
	enum err e;

	visit->round = 0;
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
		e = say_send(visit,
			&(struct word){.code = visit->args.failed, .is_last = true});
	if (!e && kind != WIRE_DISMISS)
		e = verdict_recv(visit, records);
	if (e && is_known && !visit->round)
		visit_give_up(visit, e);
	if (e || kind != WIRE_MEET)
		visit_close(visit);
	return e;
}

/* The root drops us, or its queue is full, only when there is a crowd: come again. */
static enum err visit_root(struct visit *visit, enum wire_kind kind, void *records)
{
	for (int wait_ms = 1;; wait_ms = wait_ms < SLICE_MS ? wait_ms + 1 : wait_ms) {
		enum err e = visit_once(visit, kind, records);

		if (e == ERR_AGAIN)
			e = pause_ms(visit, wait_ms);
		else
			return e;
		if (e)
			return e;
	}
}

/* Rank 0 of an address: an earlier meeting there may be about to end. */
static enum err root_run_here(struct visit *visit)
{
	uint64_t until = clock_ns() + BIND_MS * CLOCK_MS;
	enum err e;

	while ((e = id_root_start(&visit->id)) == ERR_AGAIN) {
		if (clock_ns() >= until)
			return fail(visit, ERR_SYSTEM,
				"another program, or another meeting, listens there");
		e = pause_ms(visit, SLICE_MS);
		if (e)
			return e;
	}
	return e;
}

/* Tell the roots of the ids we do not use to go home; that they do not hear is no harm.
 * Rank 0 tells all of them; every rank sees those of its own process off, whose thread
 * and descriptors would stay until somebody joins them. */
static void spares_dismiss(const struct boot_args *args)
{
	for (uint32_t i = 1; i < args->id_count; i++) {
		struct visit visit = {.args = *args, .fd = -1};
		bool is_ours;

		if (id_read(&args->ids[i], &visit.id, &visit.to))
			continue;
		visit.args.hope = NULL;
		visit.deadline_ns = clock_ns() + DISMISS_MS * CLOCK_MS;
		is_ours = root_is_here(&visit.id.addr);
		if ((is_ours || args->rank == 0) && visit.id.addr.family == ADDR_UNIX)
			visit_root(&visit, WIRE_DISMISS, NULL);
		while (is_ours && root_is_here(&visit.id.addr) && !pause_ms(&visit, 1))
			;
		auth_wipe(&visit, sizeof(visit));
	}
}

static enum err args_check(const struct boot_args *args)
{
	if (!args->id_count)
		return err_set(ERR_ARGUMENT, "no unique id to meet at");
	if (args->rank >= args->rank_count || args->rank_count > WIRE_RANKS_MAX)
		return err_set(ERR_ARGUMENT,
			"there is no rank %u among %u ranks (%d at most)", args->rank,
			args->rank_count, WIRE_RANKS_MAX);
	if (args->record_bytes > BOOT_RECORD_MAX)
		return err_set(ERR_ARGUMENT, "a boot record of %u bytes, at most %d",
			args->record_bytes, BOOT_RECORD_MAX);
	return OK;
}

struct meeting {
	struct visit visit;
};

static void deadline_set(struct visit *visit)
{
	visit->deadline_ns = boot_timeout_ns() ? clock_ns() + boot_timeout_ns() +
							 GRACE_MS * CLOCK_MS
					       : UINT64_MAX;
}

/* Where the root is in this process nothing is needed to reach it. */
static bool refuse_here(const struct visit *visit, enum err code)
{
	struct root_args root = {.addr = visit->id.addr};
	bool found;

	memcpy(root.secret, visit->id.secret, sizeof(root.secret));
	found = root_refuse(&root, visit->args.rank, visit->args.rank_count, code);
	auth_wipe(&root, sizeof(root));
	return found;
}

/* A root of this process, whose time is over too, ends by itself: before this rank does,
 * so that nothing is left. */
static void root_await_end(const struct visit *visit)
{
	uint64_t end = clock_ns() + END_MS * CLOCK_MS;

	while (root_is_here(&visit->id.addr) && clock_ns() < end)
		poll(NULL, 0, 1);
}

static enum err visit_begin(struct visit *visit, void *records)
{
	const struct boot_args *args = &visit->args;
	char where[ADDR_TEXT_BYTES];
	enum err e = OK;

	id_log(&visit->id);
	deadline_set(visit);
	if (visit->id.addr.family != ADDR_UNIX && args->rank == 0)
		e = root_run_here(visit);
	if (!e)
		e = visit_root(visit, WIRE_MEET, records);
	spares_dismiss(args);
	addr_print(&visit->to, where);
	/* Without a reason here, whoever failed has said it already. */
	if (e && visit->why[0])
		err_set(e, "ranks could not meet at %s%s%s (rank %u of %u): %s", where,
			args->root ? " of " : "", args->root ? args->root : "",
			args->rank, args->rank_count, visit->why);
	if (e == ERR_TIMEOUT && refuse_here(visit, e))
		root_await_end(visit);
	/* It could not be reached, perhaps for want of a descriptor: a last try. */
	if (e && e != ERR_TIMEOUT && !visit->is_root_known &&
		visit->id.addr.family == ADDR_UNIX) {
		struct boot_args refusal = *args;

		refusal.failed = e;
		boot_refuse(&refusal);
	}
	return e;
}

enum err boot_meet(const struct boot_args *args, void *records, struct meeting **meeting)
{
	struct meeting *m;
	enum err e = args->failed;

	if (e) {
		boot_refuse(args);
		return e;
	}
	m = calloc(1, sizeof(*m));
	if (!m) {
		struct boot_args refusal = *args;

		refusal.failed = err_set(ERR_SYSTEM, "no memory for a meeting");
		boot_refuse(&refusal);
		return refusal.failed;
	}
	m->visit.fd = -1;
	e = auth_init();
	if (!e)
		e = args_check(args);
	if (!e)
		e = id_read(&args->ids[0], &m->visit.id, &m->visit.to);
	if (!e) {
		m->visit.args = *args;
		e = visit_begin(&m->visit, records);
	}
	if (e)
		boot_leave(m);
	else
		*meeting = m;
	return e;
}

void boot_refuse(const struct boot_args *args)
{
	struct visit visit = {.args = *args, .fd = -1};
	char sentence[ERR_TEXT_BYTES];

	snprintf(sentence, sizeof(sentence), "%s", err_last());
	visit.args.hope = NULL;
	/* not worth more: nobody waits for this rank's sake */
	visit.deadline_ns = clock_ns() + TELL_MS * CLOCK_MS;
	if (!auth_init() && !args_check(args) &&
		!id_read(&args->ids[0], &visit.id, &visit.to) &&
		!refuse_here(&visit, args->failed))
		visit_root(&visit, WIRE_CANNOT, NULL);
	auth_wipe(&visit, sizeof(visit));
	err_adopt(sentence);
}

/* Was it this rank that the root names as the one that failed? */
static bool is_about_us(const struct visit *visit)
{
	char name[32];

	snprintf(name, sizeof(name), "rank %u: ", visit->args.rank);
	return !strncmp(visit->why, name, strlen(name));
}

/* Say it, and hear how it went with all; their records go to `records`. */
static enum err round_make(struct visit *visit, const struct word *word, void *records)
{
	enum err mine = word->code, e;
	bool is_mute;

	deadline_set(visit);
	visit->why[0] = '\0';
	visit->payload_bytes = (size_t)visit->args.rank_count * word->record_bytes;
	e = say_send(visit, word);
	/* the root may have told everybody of a failure, and closed, before it heard us
	 */
	is_mute = e == ERR_AGAIN;
	if (is_mute)
		visit->deadline_ns = clock_ns() + HEAR_MS * CLOCK_MS;
	if (!e || is_mute)
		e = verdict_recv(visit, records);
	if (is_mute && e == ERR_TIMEOUT)
		e = fail(visit, ERR_SYSTEM,
			"cannot send to the process in which the ranks meet");
	if (e == ERR_AGAIN)
		e = root_gone(visit);
	if (e && !visit->is_over)
		visit_give_up(visit, e);
	visit->is_over = visit->is_over || mine || e || word->is_last;
	/* whoever failed first is the cause: what failed here may only follow from it */
	if (mine && (!e || !visit->why[0] || is_about_us(visit)))
		return mine;
	return e ? err_set(e, "%s", visit->why) : OK;
}

enum err boot_agree(struct meeting *meeting, enum err mine, bool is_last)
{
	struct word word = {.code = mine, .is_last = is_last};

	return round_make(&meeting->visit, &word, NULL);
}

enum err boot_gather(struct meeting *meeting, enum err mine, const void *record,
	uint32_t bytes, void *records)
{
	struct word word = {.code = mine, .record = record, .record_bytes = bytes};

	if (bytes > BOOT_GATHER_MAX && !mine)
		word.code = err_set(ERR_ARGUMENT, "a record of %u bytes, at most %d",
			bytes, BOOT_GATHER_MAX);
	return round_make(&meeting->visit, &word, records);
}

void boot_key(const struct meeting *meeting, const char *label,
	unsigned char key[AUTH_KEY_BYTES])
{
	const struct visit *visit = &meeting->visit;

	auth_tag(visit->id.secret, label, visit->meeting, sizeof(visit->meeting), key);
}

void boot_leave(struct meeting *meeting)
{
	if (!meeting)
		return;
	visit_close(&meeting->visit);
	auth_wipe(&meeting->visit, sizeof(meeting->visit));
	free(meeting);
}
