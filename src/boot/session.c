#include "boot/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "boot/carry.h"
#include "boot/edges.h"
#include "boot/hub.h"

enum {
	RETRY_MS = 5, /* before the first call is made again; then twice as long .. */
	RETRY_MAX_MS = 100, /* .. up to this */
	MEND_MS = 200,	    /* after somebody left: often all are about to */
	LEAVE_MS = 500,	    /* for our last words to go out .. */
	LINGER_MS = 10,	    /* .. and for the others to hang up; unread words undo them */
	RECALL_MS = 300,    /* .. and for one whose strand was reset to call again */
	HURRY_MS = 5,	    /* all of it for who is in a hurry */
	TRIES_MAX = 30,	    /* calls to a process that we never had a strand to */
	ANSWER_MS = 3000,   /* at least, for somebody at the door of a full house .. */
	CROWD_MS = 10,	    /* .. and for each rank more, as all start at once */
	RECEIPT_MS = 1000   /* the other end is told what came: seldom, as beats are */
};

/* Several beats fit into the silence that is one too many. */
static uint64_t beat_ns(void)
{
	uint64_t silence = session_silence_ns();

	return silence / 5 < CLOCK_SEC ? silence / 5 : CLOCK_SEC;
}

uint64_t session_limit_ns(void)
{
	uint64_t silence = session_silence_ns();

	return silence == UINT64_MAX ? silence : silence - beat_ns() / 2;
}

/* For how long a process that has taken a call may say nothing at all. One that lives and
 * knows nothing of this session yet hangs up before (hub.c). */
static uint64_t answer_ns(const struct session *session)
{
	uint64_t limit = session_limit_ns(), least = ANSWER_MS * CLOCK_MS;

	if (limit == UINT64_MAX)
		return limit;
	limit -= beat_ns();
	return (limit > least ? limit : least) +
	       session->rank_count * CROWD_MS * CLOCK_MS;
}

bool session_is_remote(const struct session *session, uint32_t node)
{
	return session->hosts[node] != session->hosts[session->self];
}

/* ---- what the ranks of this process hear ---- */

static void delivery_add(struct control *control, struct delivery *made,
	const struct delivery *what, const void *bytes)
{
	*made = *what;
	made->next = NULL;
	if (what->size)
		memcpy(made->bytes, bytes, what->size);
	made->bytes[what->size] = '\0';
	*control->last = made;
	control->last = &made->next;
}

/* A message that is dropped would be waited for: its sender counts as lost. */
static void control_is_deaf(struct control *control, uint32_t rank)
{
	static const char why[CONTROL_DEAF_BYTES] = "no memory for a message of it";
	const struct delivery loss = {
		.is_loss = true, .rank = rank, .size = (uint32_t)strlen(why)};

	log_warn("boot: no memory for a message of rank %u", rank);
	if (!control || !control->deaf)
		return;
	delivery_add(control, control->deaf, &loss, why);
	control->deaf = NULL;
}

static void control_hear(
	struct control *control, const struct delivery *what, const void *bytes)
{
	struct delivery *made = malloc(sizeof(*made) + what->size + 1);

	if (made)
		delivery_add(control, made, what, bytes);
	else
		control_is_deaf(control, what->rank);
}

static void all_hear(struct session *session, const struct bulletin *bulletin)
{
	struct delivery what = {.rank = bulletin->head.origin,
		.kind = bulletin->head.kind,
		.size = bulletin->head.bytes};

	for (struct control *at = session->controls; at; at = at->next)
		if (at->rank != bulletin->head.origin)
			control_hear(at, &what, bulletin->bytes);
}

static void loss_hear(const struct session *session, struct control *control,
	uint32_t node, const char *why)
{
	for (uint32_t rank = 0; rank < session->rank_count; rank++)
		if (session->node_of[rank] == node)
			control_hear(control,
				&(struct delivery){.is_loss = true,
					.rank = rank,
					.size = (uint32_t)strlen(why)},
				why);
}

static struct control *control_find(const struct session *session, uint32_t rank)
{
	struct control *at = session->controls;

	while (at && at->rank != rank)
		at = at->next;
	return at;
}

/* Give it to its rank if it is its turn; false: not yet. */
static bool direct_hear(
	struct session *session, const struct strand_head *head, const void *bytes)
{
	struct control *control = control_find(session, head->to);

	if (!control || head->after > session->heard[head->origin])
		return false;
	/* a strand that was made late may begin in the middle: what it leaves out comes
	 * by the one before it, and after that this one again */
	if (head->number == control->direct_heard[head->origin] + 1) {
		control->direct_heard[head->origin] = head->number;
		control_hear(control,
			&(struct delivery){.rank = head->origin,
				.kind = head->kind,
				.size = head->bytes},
			bytes);
	}
	return true;
}

/* What was kept back may have its turn now. */
static void held_hear(struct session *session)
{
	for (uint64_t left = session->held.end - session->held.first; left; left--) {
		const struct bulletin *bulletin = bulletins_at(
			&session->held, session->held.first);

		if (!direct_hear(session, &bulletin->head, bulletin->bytes) &&
			!bulletins_append(&session->held, &bulletin->head,
				bulletin->bytes, bulletin->from))
			return;
		bulletins_drop(&session->held);
	}
}

/* ---- strands ---- */

static void strand_add(struct session *session, struct strand *strand, uint32_t node)
{
	strand->held.owner = session;
	strand->held.node = node;
	strand->held.cursor = strand->held.safe = session->log.first;
	strand->held.next = session->strands;
	session->strands = strand;
}

static void retry_later(struct station *node, int trouble, uint64_t now_ns)
{
	uint64_t ms = node->tries < 5 ? (uint64_t)RETRY_MS << node->tries : RETRY_MAX_MS;

	node->tries++;
	node->trouble = trouble;
	node->retry_ns = now_ns + (ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS) * CLOCK_MS;
}

static void node_call(struct session *session, uint32_t index, uint64_t now_ns)
{
	struct station *node = &session->nodes[index];
	struct strand_call call = {.to = node->addr,
		.from_process = session->self,
		.to_process = index,
		.is_edge = node->is_edge};
	struct strand *strand;

	if (!node->trouble_ns)
		node->trouble_ns = now_ns; /* until there is a strand */
	memcpy(call.session, session->id, sizeof(call.session));
	memcpy(call.key, session->key, sizeof(call.key));
	strand = strand_call(&call, now_ns);
	auth_wipe(&call, sizeof(call));
	if (!strand) {
		retry_later(node, errno, now_ns);
		return;
	}
	strand->held.is_edge = node->is_edge;
	strand_add(session, strand, index);
	hub_watch(strand);
}

/* The next process on the circle that lives is always next to us. */
static void successor_want(struct session *session)
{
	for (uint32_t i = 1; i < session->node_count; i++) {
		uint32_t next = (session->self + i) % session->node_count;
		struct station *node = &session->nodes[next];

		if (node->state != NODE_THERE)
			continue;
		if (!session_has_edge(session, next))
			node->is_wanted = node->is_edge = true;
		return;
	}
}

/* ---- who is lost ---- */

void session_lose_here(struct session *session, uint32_t index, const char *why)
{
	struct station *node = &session->nodes[index];

	if (node->state == NODE_DEAD)
		return;
	node->state = NODE_DEAD;
	node->lost_ns = clock_ns();
	node->is_wanted = false;
	snprintf(node->why, sizeof(node->why), "%s", why);
	log_info(LOG_BOOTSTRAP, "boot: the process of rank %u is lost: %s",
		node->first_rank, why);
	for (struct strand *strand = session->strands; strand; strand = strand->held.next)
		if (strand->held.node == index)
			strand->phase = STRAND_GONE;
	for (struct control *at = session->controls; at; at = at->next)
		loss_hear(session, at, index, why);
	successor_want(session);
	hub_changed();
	hub_wake();
}

void session_lose(
	struct session *session, uint32_t node, const char *why, uint64_t now_ns)
{
	struct control *from = session->controls;
	struct strand_head head = {.type = BULLETIN_LOST,
		.to = CONTROL_ALL,
		.kind = session->nodes[node].first_rank,
		.bytes = (uint32_t)strlen(why)};

	if (session->nodes[node].state == NODE_DEAD)
		return;
	/* before its strands are closed: if it lives, it is to know */
	if (from && session_say(from, &head, why, now_ns))
		log_warn("boot: the others were not told that rank %u is lost: %s",
			head.kind, err_last());
	session_lose_here(session, node, why);
}

/* No strand to a process comes about, or the last one broke. Refused: it has ended, and
 * if we knew it, without a word. */
static void node_trouble(
	struct session *session, uint32_t index, int status, uint64_t now_ns)
{
	struct station *node = &session->nodes[index];
	bool is_known = node->was_open || node->is_first || node->is_expected;
	uint64_t limit = session_limit_ns();
	char why[96];

	if (node->state != NODE_THERE || !node->is_wanted)
		return;
	if (status == ECONNREFUSED && is_known) {
		session_lose(session, index, "its process has ended", now_ns);
		return;
	}
	retry_later(node, status, now_ns);
	if (status == ECONNREFUSED || (!is_known && node->tries > TRIES_MAX)) {
		node->state = NODE_ABSENT;
		node->trouble_ns = now_ns;
		node->is_wanted = false;
		if (node->is_edge)
			successor_want(session);
		return;
	}
	/* it takes calls and hangs up: it may not have come so far yet */
	if (now_ns - node->trouble_ns < limit || (!status && !node->was_open))
		return;
	if (status)
		snprintf(why, sizeof(why), "it cannot be reached: %s", strerror(status));
	else
		snprintf(why, sizeof(why), "it does not answer any more");
	session_lose(session, index, why, now_ns);
}

bool session_is_given_up(const struct session *session)
{
	return session->nodes[session->self].state == NODE_DEAD;
}

/* A strand is no more. */
static void strand_lost(struct strand *strand, uint64_t now_ns)
{
	struct session *session = strand->held.owner;
	struct station *node = &session->nodes[strand->held.node];

	/* our last words may be lost, and it would take us for lost */
	if (session->end.is_closing && strand->is_reset && strand->held.was_open &&
		!strand->held.has_left && !session->end.is_hurried &&
		node->state == NODE_THERE)
		session->end.recall_ns = now_ns + RECALL_MS * CLOCK_MS;
	if (session->end.is_closing || strand->held.has_left ||
		node->state != NODE_THERE || session_is_given_up(session) ||
		session_has_strand(session, strand->held.node))
		return;
	if (!strand->held.was_open) {
		node_trouble(session, strand->held.node, strand->status, now_ns);
		return;
	}
	/* has it ended, or only the connection? Who ended answers no call. */
	node->is_wanted = true;
	node->is_edge = node->is_edge || strand->held.is_edge;
	node->trouble_ns = 0;
	node->tries = 0;
	node_call(session, strand->held.node, now_ns);
}

/* ---- what comes in ---- */

static void flood_take(struct session *session, const struct strand *strand,
	const struct strand_head *head, const void *bytes, uint64_t now_ns)
{
	const struct bulletin *bulletin;
	char why[256];

	if (head->origin >= session->rank_count ||
		session->node_of[head->origin] == session->self ||
		head->number <= session->heard[head->origin])
		return;
	/* A strand that was made late may begin in the middle: what it leaves out comes
	 * by another, and after that this one again. A loss does not wait. */
	if (head->number == session->heard[head->origin] + 1)
		session->heard[head->origin] = head->number;
	else if (head->type != BULLETIN_LOST)
		return;
	if (!bulletins_append(&session->log, head, bytes, strand->held.node)) {
		for (struct control *at = session->controls; at; at = at->next)
			control_is_deaf(at, head->origin);
		return;
	}
	bulletin = bulletins_at(&session->log, session->log.end - 1);
	if (head->type == BULLETIN_FLOOD)
		all_hear(session, bulletin);
	else
		snprintf(why, sizeof(why), "%.*s", (int)head->bytes,
			(const char *)bulletin->bytes);
	held_hear(session);
	if (head->type != BULLETIN_LOST)
		return; /* the clock has it carried, with what else comes now */
	carry_hurry(session);
	carry_all(session, now_ns);
	if (head->kind < session->rank_count)
		session_lose_here(session, session->node_of[head->kind], why);
}

static void direct_take(
	struct session *session, const struct strand_head *head, const void *bytes)
{
	if (head->origin >= session->rank_count || head->to >= session->rank_count ||
		session->node_of[head->to] != session->self)
		return;
	if (!direct_hear(session, head, bytes) &&
		!bulletins_append(&session->held, head, bytes, 0))
		control_is_deaf(control_find(session, head->to), head->origin);
}

/* The other end is to know of it by and by. */
static void bulletin_count(struct strand *strand, uint64_t now_ns)
{
	strand->held.taken++;
	if (!strand->held.owed_ns)
		strand->held.owed_ns = now_ns;
}

static void bulletin_take(struct strand *strand, const struct strand_head *head,
	const void *bytes, uint64_t now_ns)
{
	bulletin_count(strand, now_ns);
	if (head->type == BULLETIN_DIRECT)
		direct_take(strand->held.owner, head, bytes);
	else
		flood_take(strand->held.owner, strand, head, bytes, now_ns);
}

static bool is_bulletin(uint32_t type)
{
	return type == BULLETIN_FLOOD || type == BULLETIN_LOST || type == BULLETIN_DIRECT;
}

/* What does not add up is of no use to anybody: leave it and what follows. */
static void many_take(
	struct strand *strand, const unsigned char *at, size_t left, uint64_t now_ns)
{
	struct strand_head head;

	while (left >= sizeof(head)) {
		strand_head_get(at, &head);
		at += sizeof(head);
		left -= sizeof(head);
		if (!is_bulletin(head.type) || head.bytes > left)
			return;
		bulletin_take(strand, &head, at, now_ns);
		at += head.bytes;
		left -= head.bytes;
	}
}

static void leave_take(struct strand *strand, uint64_t now_ns)
{
	struct session *session = strand->held.owner;
	struct station *node = &session->nodes[strand->held.node];

	strand->held.has_left = true;
	strand->phase = STRAND_GONE;
	if (node->state == NODE_THERE)
		node->state = NODE_LEFT;
	node->is_wanted = false;
	if (!session->mend_ns)
		session->mend_ns = now_ns + MEND_MS * CLOCK_MS;
}

static void frame_take(struct strand *strand, uint64_t now_ns)
{
	struct strand_head head;

	strand_head(strand, &head);
	if (is_bulletin(head.type))
		bulletin_take(strand, &head, strand_bytes(strand), now_ns);
	else if (head.type == BULLETIN_MANY)
		many_take(strand, strand_bytes(strand), head.bytes, now_ns);
	else if (head.type == BULLETIN_LEAVE)
		leave_take(strand, now_ns);
	else if (head.type == BULLETIN_BEAT)
		carry_receipt(strand, head.number);
}

static void strand_opened(struct strand *strand)
{
	struct station *node = &strand->held.owner->nodes[strand->held.node];

	strand->held.was_open = node->was_open = true;
	node->trouble_ns = 0;
	node->tries = 0;
	hub_changed();
}

void session_serve(struct strand *strand, uint64_t now_ns)
{
	enum strand_news news;
	uint64_t heard = strand->heard_ns;

	strand_flush(strand);
	while ((news = strand_read(strand, now_ns)) != STRAND_NOTHING) {
		if (news != STRAND_FRAME)
			continue;
		/* its first words say that the other end has taken the strand up: before
		 * that it could leave without a word */
		if (!strand->held.was_open)
			strand_opened(strand);
		frame_take(strand, now_ns);
	}
	if (strand->heard_ns != heard &&
		session_is_remote(strand->held.owner, strand->held.node))
		cutoff_heard(&strand->held.owner->cutoff, now_ns);
	carry_on(strand, now_ns);
}

bool session_adopt(struct session *session, struct strand *strand, uint64_t now_ns)
{
	const struct strand_claim *claim = &strand->claim;

	if (claim->to != session->self || claim->from >= session->node_count ||
		claim->from == session->self ||
		session->nodes[claim->from].state == NODE_DEAD)
		return false;
	strand->held.is_edge = claim->is_edge;
	strand_add(session, strand, claim->from);
	strand_opened(strand);
	if (session_is_remote(session, strand->held.node))
		cutoff_heard(&session->cutoff, now_ns);
	carry_beat(strand, now_ns);
	return true;
}

void session_replay(struct session *session, struct control *control)
{
	for (uint64_t i = session->log.first; i < session->log.end; i++) {
		const struct bulletin *bulletin = bulletins_at(&session->log, i);
		const struct strand_head *head = &bulletin->head;
		char why[256];

		if (head->type == BULLETIN_FLOOD && head->origin != control->rank)
			control_hear(control,
				&(struct delivery){.rank = head->origin,
					.kind = head->kind,
					.size = head->bytes},
				bulletin->bytes);
		if (head->type != BULLETIN_LOST || head->kind >= session->rank_count)
			continue;
		snprintf(why, sizeof(why), "%.*s", (int)head->bytes,
			(const char *)bulletin->bytes);
		loss_hear(session, control, session->node_of[head->kind], why);
	}
	held_hear(session);
}

/* ---- what goes out ---- */

enum err session_say(struct control *from, const struct strand_head *head,
	const void *bytes, uint64_t now_ns)
{
	struct session *session = from->session;
	struct strand_head sent = *head;
	uint32_t node = head->type == BULLETIN_DIRECT ? session->node_of[head->to]
						      : session->self;

	sent.origin = from->rank;
	sent.number = head->type == BULLETIN_DIRECT ? from->direct_sent[head->to] + 1
						    : from->flooded + 1;
	sent.after = head->type == BULLETIN_DIRECT ? from->flooded : 0;
	if (head->type != BULLETIN_DIRECT || node != session->self) {
		if (!bulletins_append(&session->log, &sent, bytes, session->self))
			return err_set(ERR_SYSTEM, "no memory for a message");
	}
	if (head->type == BULLETIN_DIRECT) {
		from->direct_sent[head->to]++;
	} else {
		from->flooded++;
		session->heard[from->rank] = sent.number;
	}
	if (head->type == BULLETIN_FLOOD)
		all_hear(session, bulletins_at(&session->log, session->log.end - 1));
	else if (node == session->self && head->type == BULLETIN_DIRECT)
		direct_take(session, &sent, bytes);
	if (head->type == BULLETIN_DIRECT && node != session->self &&
		session->nodes[node].state == NODE_THERE &&
		!session_has_strand(session, node) && !session->nodes[node].is_wanted) {
		session->nodes[node].is_wanted = true;
		node_call(session, node, now_ns);
	}
	if (head->type != BULLETIN_FLOOD)
		carry_hurry(session);
	carry_all(session, now_ns);
	hub_wake();
	return OK;
}

/* ---- the clock ---- */

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t add_ns(uint64_t at_ns, uint64_t more_ns)
{
	return more_ns > UINT64_MAX - at_ns ? UINT64_MAX : at_ns + more_ns;
}

/* Say what we have taken, if the other end waits for that. */
static uint64_t receipt_tick(struct strand *strand, uint64_t now_ns)
{
	uint64_t due = strand->held.owed_ns + RECEIPT_MS * CLOCK_MS;

	if (!strand->held.owed_ns)
		return UINT64_MAX;
	if (now_ns < due)
		return due;
	if (strand_is_idle(strand)) {
		carry_beat(strand, now_ns);
		hub_watch(strand);
	}
	return UINT64_MAX; /* what cannot be written now is written when it can */
}

/* Whoever is at the other end says nothing for too long. */
static void silence_blame(struct strand *strand, uint64_t silent_ns, uint64_t now_ns)
{
	char why[64];

	snprintf(why, sizeof(why), "nothing was heard of it for %llu s",
		(unsigned long long)((silent_ns + CLOCK_SEC / 2) / CLOCK_SEC));
	session_lose(strand->held.owner, strand->held.node, why, now_ns);
}

/* Look after a call that has not been answered yet. */
static uint64_t call_tick(struct strand *strand, uint64_t now_ns)
{
	bool is_asking = strand->phase == STRAND_CHALLENGE;
	uint64_t limit = is_asking ? answer_ns(strand->held.owner) : session_limit_ns();
	uint64_t end = add_ns(is_asking ? strand->heard_ns : strand->since_ns, limit);

	if (now_ns < end)
		return end;
	if (is_asking) /* but for what has come and was not read yet */
		session_serve(strand, now_ns);
	if (strand->phase == STRAND_CHALLENGE) {
		silence_blame(strand, limit, now_ns);
		return now_ns;
	}
	if (strand->phase == STRAND_CONNECTING) {
		strand->status = ETIMEDOUT;
		strand->phase = STRAND_GONE;
	}
	return is_asking ? now_ns : UINT64_MAX;
}

/* Say that we are here, and listen whether the other end does. */
static uint64_t strand_tick(struct strand *strand, uint64_t now_ns)
{
	struct session *session = strand->held.owner;
	uint64_t beat = add_ns(strand->told_ns, beat_ns());
	uint64_t limit = session_limit_ns(), end, receipt;

	if (strand->phase != STRAND_OPEN)
		return call_tick(strand, now_ns);
	receipt = sooner(receipt_tick(strand, now_ns), carry_due_ns(strand));
	if (!session_is_remote(session, strand->held.node))
		return receipt;
	end = add_ns(strand->heard_ns, limit);
	if (now_ns >= end) { /* but for what has come and was not read yet */
		session_serve(strand, now_ns);
		end = add_ns(strand->heard_ns, limit);
	}
	if (now_ns >= end && strand->phase == STRAND_OPEN) {
		silence_blame(strand, session_silence_ns(), now_ns);
		return now_ns;
	}
	if (now_ns >= beat && strand_is_idle(strand)) {
		carry_beat(strand, now_ns);
		hub_watch(strand);
	}
	beat = add_ns(strand->told_ns, beat_ns());
	/* what cannot be written now is written when it can */
	return sooner(receipt, sooner(end, beat > now_ns ? beat : end));
}

static struct strand *gone_take(struct session *session)
{
	struct strand **at = &session->strands, *gone;

	while (*at && (*at)->phase != STRAND_GONE)
		at = &(*at)->held.next;
	gone = *at;
	if (gone)
		*at = gone->held.next;
	return gone;
}

/* Take the strands off that are gone, and see what that means. One by one: until it is
 * this one's turn, the log is kept for it. */
static void strands_sweep(struct session *session, uint64_t now_ns)
{
	struct strand *gone;

	while ((gone = gone_take(session))) {
		strand_lost(gone, now_ns);
		hub_drop(gone);
	}
}

/* Those that stay must stay joined. */
static uint64_t mend_tick(struct session *session, uint64_t now_ns)
{
	if (!session->mend_ns || session->end.is_closing)
		return UINT64_MAX;
	if (now_ns < session->mend_ns)
		return session->mend_ns;
	session->mend_ns = 0;
	successor_want(session);
	return UINT64_MAX;
}

/* Who is absent may have left in peace, and the word of that is on its way to us. When it
 * has not come for so long, we are cut off from those who would bring it. Who is missed
 * after a loss has ended because of it, as far as we can tell. */
static uint64_t absent_tick(struct session *session, uint32_t index, uint64_t now_ns)
{
	uint64_t missed = session->nodes[index].trouble_ns;
	uint64_t end = add_ns(missed, session_limit_ns());
	const struct station *lost;
	char why[STATION_WHY_BYTES] = "its process has ended";

	if (now_ns < end)
		return end;
	lost = session_lost_first(session);
	if (lost && missed >= lost->lost_ns)
		snprintf(why, sizeof(why),
			"its process has ended, after rank %u was lost",
			lost->first_rank);
	session_lose_here(session, index, why);
	return UINT64_MAX;
}

/* Who was to call us and has not may stand still: then nobody but those whom it was to
 * call can notice. So we call it. */
static uint64_t expected_tick(struct session *session, uint32_t index, uint64_t now_ns)
{
	struct station *node = &session->nodes[index];
	uint64_t due = add_ns(
		session->since_ns + session->rank_count * CROWD_MS * CLOCK_MS, beat_ns());

	if (!node->is_expected || node->was_open || node->is_wanted ||
		node->state != NODE_THERE)
		return UINT64_MAX;
	if (now_ns < due)
		return due;
	node->is_wanted = node->is_edge = true;
	return now_ns;
}

static uint64_t calls_tick(struct session *session, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (session->end.is_closing || session_is_given_up(session))
		return next;
	for (uint32_t i = 0; i < session->node_count; i++) {
		struct station *node = &session->nodes[i];

		if (node->state == NODE_ABSENT)
			next = sooner(next, absent_tick(session, i, now_ns));
		next = sooner(next, expected_tick(session, i, now_ns));
		if (!node->is_wanted || node->state != NODE_THERE ||
			session_is_joined(session, i))
			continue;
		if (now_ns >= node->retry_ns)
			node_call(session, i, now_ns);
		next = sooner(next, node->retry_ns > now_ns ? node->retry_ns : now_ns);
	}
	return next;
}

/* Strands end when the other end has hung up, or when it takes too long. */
static uint64_t closing_tick(struct session *session, uint64_t now_ns)
{
	uint64_t last = session->end.since_ns +
			(session->end.is_hurried ? HURRY_MS : LEAVE_MS) * CLOCK_MS;
	uint64_t next;

	if (session->end.recall_ns > last)
		last = session->end.recall_ns;
	next = session->end.recall_ns > now_ns ? session->end.recall_ns : last;
	for (struct strand *strand = session->strands; strand;
		strand = strand->held.next) {
		uint64_t end = last;

		if (strand->is_mute)
			end = sooner(end, strand->told_ns + LINGER_MS * CLOCK_MS);
		if (now_ns >= end || strand->phase != STRAND_OPEN)
			strand->phase = STRAND_GONE;
		next = sooner(next, end);
	}
	return next;
}

uint64_t session_tick(struct session *session, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	carry_all(session, now_ns);
	for (struct strand *strand = session->strands; strand; strand = strand->held.next)
		next = sooner(next, strand_tick(strand, now_ns));
	if (session->end.is_closing)
		next = sooner(next, closing_tick(session, now_ns));
	strands_sweep(session, now_ns);
	next = sooner(next, mend_tick(session, now_ns));
	next = sooner(next, cutoff_tick(session, now_ns));
	next = sooner(next, calls_tick(session, now_ns));
	for (const struct strand *strand = session->strands; strand;
		strand = strand->held.next)
		if (strand->phase == STRAND_GONE)
			next = now_ns;
	return next;
}
