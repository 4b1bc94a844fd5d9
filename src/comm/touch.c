#include "comm/touch.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/param.h"
#include "comm/state.h"
#include "exec/host/doing.h"

enum told_kind {
	TOLD_STATE = 1,
	TOLD_MAIL,
	TOLD_VOTE,
	TOLD_NOTE,
	TOLD_PUT,
	TOLD_RECEIPT
};

/* Of one version of the library, on machines of one kind: that was checked before. */
struct state_words {
	uint32_t state, code, culprit, has_gone;
	uint64_t failed_at;
	char sentence[BOARD_SENTENCE_BYTES];
};

struct mail_words {
	uint64_t number;
	uint32_t code, unused;
	unsigned char mail[BOARD_MAIL_BYTES];
};

struct vote_words {
	uint64_t number;
	int32_t color, key;
};

enum err touch_listen(struct comm *comm, struct control_peer *mine)
{
	enum err e = control_listen(&mine->addr);

	mine->host = comm->hosts.numbers[comm->rank];
	comm->hosts.has_touch = !e;
	return e;
}

/* ---- what the others tell; in the thread of the control channel ---- */

/* Others read it once the rank is known to have failed or to be lost. */
static bool has_no_sentence(const struct rank_status *status)
{
	return atomic_load(&status->state) == RANK_LIVE &&
	       !pulse_has_stopped(&status->pulse);
}

/* The first failure has the sentence, and whoever has seen the state reads it. It comes
 * without the zeros behind it: most say nothing. Two threads of a rank may tell: what one
 * of them had read before the other wrote may come last. */
static void told_state(struct rank_status *status, const void *bytes, size_t size)
{
	struct state_words words = {0};
	uint32_t known = atomic_load(&status->state);

	memcpy(&words, bytes, size);
	if (has_no_sentence(status)) {
		memcpy(status->sentence, words.sentence, sizeof(status->sentence));
		status->sentence[sizeof(status->sentence) - 1] = '\0';
	}
	if (words.has_gone)
		atomic_store(&status->gone_ns, clock_ns());
	if (words.state < known)
		return;
	atomic_store(&status->culprit, words.culprit);
	atomic_store(&status->code, words.code);
	atomic_store(&status->failed_at, words.failed_at);
	atomic_store(&status->state, words.state);
}

static void told_mail(struct rank_status *status, const struct mail_words *words)
{
	status->mail_code = words->code;
	memcpy(status->mail, words->mail, sizeof(status->mail));
	atomic_store_explicit(&status->mail_number, words->number, memory_order_release);
}

static void told_vote(struct rank_status *status, const struct vote_words *words)
{
	struct vote *vote = &status->votes[words->number % 2];

	vote->color = words->color;
	vote->key = words->key;
	atomic_store_explicit(&vote->number, words->number, memory_order_release);
}

/* Their clock is not ours: `since_ns` came as a time that has passed. */
static void told_note(
	const struct comm *comm, struct rank_status *status, const struct doing *words)
{
	struct doing note;

	memcpy(&note, words, sizeof(note));
	if (!doing_is_sound(comm->peers, &note))
		return;
	note.since_ns = clock_ns() - note.since_ns;
	doing_write(&status->doing, &note);
}

/* How much of what this rank has put there has landed. */
static void told_receipt(const struct comm *comm, uint32_t from, const uint64_t *landed)
{
	struct signal *receipt = peer_shadow_word(comm->peers, from, SHADOW_RECEIPT);
	uint64_t value;

	memcpy(&value, landed, sizeof(value));
	word_publish(&receipt->given, &receipt->sleepers, value);
}

/* A piece of a put: into the window with it, and then the signal. Whoever has failed
 * gets its windows back. */
static void told_put(struct comm *comm, uint32_t from, const char *bytes, size_t size)
{
	struct signal *landed = peer_shadow_word(comm->peers, from, SHADOW_LANDED);
	size_t count = size - sizeof(struct far_put);
	struct signal *signal;
	struct far_put put;
	uint64_t total;
	enum err e = OK;

	memcpy(&put, bytes, sizeof(put));
	if (put.signal >= comm->hosts.board->signal_count)
		e = err_set(ERR_REMOTE, "rank %u gives rank %u signal %u of %u", from,
			comm->rank, put.signal, comm->hosts.board->signal_count);
	if (!e && count && !comm_has_failed(comm))
		e = window_land(comm, from, &put, bytes + sizeof(put), count);
	if (e) {
		comm_trouble(comm, e, from);
		return;
	}
	signal = peer_shadow_signal(comm->peers, from, put.signal);
	if (put.given)
		word_publish(&signal->given, &signal->sleepers, put.given);
	/* what came by a one-sided plugin counts there, too */
	total = atomic_fetch_add(&landed->given, count + FAR_PUT_COST) + count +
		FAR_PUT_COST;
	if (put.wants_receipt)
		(void)control_send(
			comm->hosts.control, from, TOLD_RECEIPT, &total, sizeof(total));
}

void touch_heard(void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size)
{
	struct comm *comm = arg;
	struct rank_status *status = peer_status(comm->peers, from);

	if (peer_is_local(comm->peers, from)) /* it is on the board */
		return;
	if (kind == TOLD_STATE && size >= offsetof(struct state_words, sentence) &&
		size <= sizeof(struct state_words))
		told_state(status, bytes, size);
	if (kind == TOLD_MAIL && size == sizeof(struct mail_words))
		told_mail(status, bytes);
	if (kind == TOLD_VOTE && size == sizeof(struct vote_words))
		told_vote(status, bytes);
	if (kind == TOLD_NOTE && size == sizeof(struct doing))
		told_note(comm, status, bytes);
	if (kind == TOLD_PUT && size >= sizeof(struct far_put))
		told_put(comm, from, bytes, size);
	if (kind == TOLD_RECEIPT && size == sizeof(uint64_t))
		told_receipt(comm, from, bytes);
	if (atomic_load(&comm->life.ready))
		host_engine_wake(comm->engine);
}

static void shadow_lose(struct comm *comm, uint32_t rank, const char *why)
{
	struct rank_status *status = peer_status(comm->peers, rank);

	if (has_no_sentence(status))
		snprintf(status->sentence, sizeof(status->sentence), "%s", why);
	pulse_mark_stopped(&status->pulse);
}

void touch_lost(void *arg, uint32_t rank, const char *why)
{
	struct comm *comm = arg;
	char given_up[BOARD_SENTENCE_BYTES];

	/* they have given us up: to us, that is the end of all of them */
	snprintf(given_up, sizeof(given_up), "it has given rank %u up: %s", rank, why);
	for (uint32_t i = 0; rank == comm->rank && i < comm->rank_count; i++)
		if (!peer_is_local(comm->peers, i))
			shadow_lose(comm, i, given_up);
	if (!peer_is_local(comm->peers, rank))
		shadow_lose(comm, rank, why);
	if (!atomic_load(&comm->life.ready))
		return;
	/* of a rank of this host the board knows when it dies, and not when it stands
	 * still */
	if (rank != comm->rank && peer_is_local(comm->peers, rank))
		health_give_up(comm->health, rank, why);
	host_engine_wake(comm->engine);
}

/* ---- the channel ---- */

enum err touch_open(struct comm *comm, const struct meeting *meeting,
	const struct control_peer *peers)
{
	struct control_args args = {.rank = comm->rank,
		.rank_count = comm->rank_count,
		.peers = peers,
		.arg = comm,
		.on_message = touch_heard,
		.on_lost = touch_lost};
	enum err e;

	boot_key(meeting, "control", args.key);
	e = control_open(&args, &comm->hosts.control);
	auth_wipe(args.key, sizeof(args.key));
	return e;
}

enum err touch_settle(struct comm *comm)
{
	int64_t limit_s = param_int(PARAM_BOOT_TIMEOUT);

	return comm->hosts.control
		       ? control_settle(comm->hosts.control,
				 limit_s > 0 ? clock_ns() + (uint64_t)limit_s * CLOCK_SEC
					     : 0,
				 &comm->life.abort)
		       : OK;
}

enum err touch_check(const struct comm *comm)
{
	return comm->hosts.control ? control_check(comm->hosts.control) : OK;
}

void touch_close(struct comm *comm)
{
	if (comm->hosts.control && atomic_load(&comm->life.abort))
		control_hurry(comm->hosts.control);
	control_close(comm->hosts.control);
	comm->hosts.control = NULL;
	if (comm->hosts.has_touch)
		control_unlisten();
	comm->hosts.has_touch = false;
}

static void tell(struct comm *comm, enum told_kind kind, const void *bytes, size_t size)
{
	/* who cannot be told now will hear that the connection is lost */
	(void)control_send(comm->hosts.control, CONTROL_ALL, kind, bytes, size);
}

void touch_state(struct comm *comm)
{
	const struct rank_status *status;
	struct state_words words = {0};

	if (!comm->hosts.control)
		return;
	status = peer_status(comm->peers, comm->rank);
	words.state = atomic_load(&status->state);
	words.code = atomic_load(&status->code);
	words.culprit = atomic_load(&status->culprit);
	words.failed_at = atomic_load(&status->failed_at);
	words.has_gone = atomic_load(&status->gone_ns) != 0;
	/* another thread of ours may be writing it; then that one tells it, too */
	if (words.state != RANK_LIVE)
		memcpy(words.sentence, status->sentence, sizeof(words.sentence));
	tell(comm, TOLD_STATE, &words,
		offsetof(struct state_words, sentence) +
			strnlen(words.sentence, sizeof(words.sentence)));
}

void touch_mail(struct comm *comm)
{
	const struct rank_status *status;
	struct mail_words words = {0};

	if (!comm->hosts.control)
		return;
	status = peer_status(comm->peers, comm->rank);
	words.number = atomic_load(&status->mail_number);
	words.code = status->mail_code;
	memcpy(words.mail, status->mail, sizeof(words.mail));
	tell(comm, TOLD_MAIL, &words, sizeof(words));
	auth_wipe(&words, sizeof(words));
}

void touch_vote(struct comm *comm, uint64_t number)
{
	const struct vote *vote;
	struct vote_words words;

	if (!comm->hosts.control)
		return;
	vote = &peer_status(comm->peers, comm->rank)->votes[number % 2];
	words = (struct vote_words){number, vote->color, vote->key};
	tell(comm, TOLD_VOTE, &words, sizeof(words));
}

void touch_note(struct comm *comm)
{
	struct doing words;

	if (!comm->hosts.control)
		return;
	/* this rank's thread, which writes it, is here */
	memcpy(&words, &peer_status(comm->peers, comm->rank)->doing, sizeof(words));
	words.since_ns = clock_ns() - words.since_ns;
	tell(comm, TOLD_NOTE, &words, sizeof(words));
}

enum err touch_put(struct comm *comm, uint32_t to, const struct far_put *put,
	const void *data, size_t bytes)
{
	char *message = malloc(sizeof(*put) + bytes);
	enum err e;

	if (!message)
		return err_set(ERR_SYSTEM, "no memory to put %zu bytes", bytes);
	memcpy(message, put, sizeof(*put));
	if (bytes)
		memcpy(message + sizeof(*put), data, bytes);
	e = control_send(
		comm->hosts.control, to, TOLD_PUT, message, sizeof(*put) + bytes);
	free(message);
	return e;
}
