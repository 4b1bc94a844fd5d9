#include "boot/carry.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "boot/hub.h"
#include "boot/session.h"

enum {
	RECEIPT_COUNT = 64, /* bulletins that the other end is told of at once */
	KEPT_COUNT = 1024,  /* that a strand made again may carry again .. */
	KEPT_BYTES = 1 << 20,
	LOG_BYTES_MAX = 1 << 26, /* .. and no matter how slow a strand is */
	MANY_BYTES = 1 << 12,	 /* of bulletins in one frame, unless one has more */
	MANY_RANKS = 64,  /* from so many on, what is said at once is gathered .. */
	GATHER_NS = 32000 /* .. for so long for each of them */
};

static uint64_t gather_ns(const struct session *session)
{
	return session->rank_count < MANY_RANKS
		       ? 0
		       : (uint64_t)session->rank_count * GATHER_NS;
}

static bool is_carried(const struct session *session, const struct strand *strand,
	const struct bulletin *bulletin)
{
	if (bulletin->head.type == BULLETIN_DIRECT)
		return session->node_of[bulletin->head.to] == strand->held.node;
	return strand->held.is_edge && bulletin->from != strand->held.node;
}

static void leave_write(struct strand *strand, uint64_t now_ns)
{
	struct strand_head head = {.type = BULLETIN_LEAVE};

	strand->held.is_leaving = true;
	strand_write(strand, &head, NULL, now_ns);
}

void carry_beat(struct strand *strand, uint64_t now_ns)
{
	struct strand_head head = {.type = BULLETIN_BEAT, .number = strand->held.taken};

	strand->held.taken_told = strand->held.taken;
	strand->held.owed_ns = 0;
	strand_write(strand, &head, NULL, now_ns);
}

void carry_receipt(struct strand *strand, uint64_t count)
{
	const struct session *session = strand->held.owner;

	while (strand->held.safe < strand->held.cursor &&
		strand->held.safe_count < count) {
		const struct bulletin *bulletin = bulletins_at(
			&session->log, strand->held.safe++);

		if (is_carried(session, strand, bulletin))
			strand->held.safe_count++;
	}
}

/* ---- what goes out ---- */

void carry_hurry(struct session *session)
{
	session->hurried = session->log.end;
}

uint64_t carry_due_ns(const struct strand *strand)
{
	const struct session *session = strand->held.owner;

	if (strand->held.cursor == session->log.end || !strand_is_idle(strand))
		return UINT64_MAX;
	if (strand->held.cursor < session->hurried || session->end.is_closing)
		return 0;
	return strand->held.carried_ns + gather_ns(session);
}

/* The next bulletin that this strand carries; NULL: there is none. */
static const struct bulletin *next_take(struct strand *strand)
{
	const struct session *session = strand->held.owner;

	while (strand->held.cursor < session->log.end) {
		const struct bulletin *bulletin = bulletins_at(
			&session->log, strand->held.cursor);

		if (is_carried(session, strand, bulletin))
			return bulletin;
		strand->held.cursor++;
	}
	return NULL;
}

/* One frame of what this strand is to carry next. False: nothing. */
static bool frame_write(struct strand *strand, uint64_t now_ns)
{
	static unsigned char many[MANY_BYTES]; /* the hub's lock guards it, too */
	const struct bulletin *first = next_take(strand), *next;
	struct strand_head head = {.type = BULLETIN_MANY};
	size_t bytes;

	if (!first)
		return false;
	strand->held.cursor++;
	strand->held.carried_ns = now_ns;
	for (next = first; next; next = next_take(strand)) {
		bytes = sizeof(next->head) + next->head.bytes;
		if (head.bytes + bytes > sizeof(many))
			break;
		strand_head_put(&next->head, many + head.bytes);
		memcpy(many + head.bytes + sizeof(next->head), next->bytes,
			next->head.bytes);
		head.bytes += (uint32_t)bytes;
		strand->held.cursor += next != first;
	}
	if (head.bytes > sizeof(first->head) + first->head.bytes)
		strand_write(strand, &head, many, now_ns);
	else
		strand_write(strand, &first->head, first->bytes, now_ns);
	return true;
}

void carry_on(struct strand *strand, uint64_t now_ns)
{
	struct session *session = strand->held.owner;

	if (strand->held.taken - strand->held.taken_told >= RECEIPT_COUNT &&
		strand_is_idle(strand))
		carry_beat(strand, now_ns);
	if (carry_due_ns(strand) <= now_ns)
		while (strand_is_idle(strand) && frame_write(strand, now_ns))
			;
	if (session->end.is_closing && strand_is_idle(strand) && !strand->held.is_leaving)
		leave_write(strand, now_ns);
	if (strand->held.is_leaving && strand_is_idle(strand))
		strand_finish(strand);
	hub_watch(strand);
}

/* ---- what is kept ---- */

/* From this bulletin on the other end may miss what this strand was to carry. */
static uint64_t strand_needs(const struct strand *strand)
{
	const struct session *session = strand->held.owner;
	uint64_t at = strand->held.safe;

	while (at < strand->held.cursor &&
		!is_carried(session, strand, bulletins_at(&session->log, at)))
		at++;
	return at;
}

/* Forget the oldest, though a strand may need it. */
static void log_drop(struct session *session)
{
	struct bulletins *log = &session->log;
	const struct bulletin *oldest = bulletins_at(log, log->first);

	for (struct strand *strand = session->strands; strand;
		strand = strand->held.next) {
		if (strand->held.safe > log->first)
			continue;
		if (strand->held.cursor > log->first &&
			is_carried(session, strand, oldest))
			strand->held.safe_count++;
		strand->held.safe = log->first + 1;
		if (strand->held.cursor < strand->held.safe)
			strand->held.cursor = strand->held.safe;
	}
	bulletins_drop(log);
}

static bool log_is_long(const struct bulletins *log)
{
	return log->end - log->first > KEPT_COUNT || log->bytes > KEPT_BYTES;
}

/* Forget what has arrived over every strand, but for what one that broke unseen might
 * need again. One that is gone and was not looked at yet may be made again. */
static void log_trim(struct session *session)
{
	struct bulletins *log = &session->log;
	uint64_t needed = log->end;

	for (struct strand *strand = session->strands; strand;
		strand = strand->held.next) {
		if (session->nodes[strand->held.node].state != NODE_THERE)
			continue;
		strand->held.safe = strand_needs(strand);
		if (strand->held.safe < needed)
			needed = strand->held.safe;
	}
	/* a strand that is still to be made carries all of it */
	for (uint32_t i = 0; i < session->node_count && needed > log->first; i++)
		if (session->nodes[i].is_wanted &&
			session->nodes[i].state == NODE_THERE &&
			!session_is_joined(session, i))
			needed = log->first;
	while (log->first < log->end &&
		((log->first < needed && log_is_long(log)) || log->bytes > LOG_BYTES_MAX))
		log_drop(session);
}

void carry_all(struct session *session, uint64_t now_ns)
{
	for (struct strand *strand = session->strands; strand; strand = strand->held.next)
		carry_on(strand, now_ns);
	if (log_is_long(&session->log))
		log_trim(session);
}
