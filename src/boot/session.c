#include "boot/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "boot/edges.h"
#include "boot/hub.h"

enum {
	RETRY_MS = 5, /* before the first call is made again; then twice as long .. */
	RETRY_MAX_MS = 100, /* .. up to this */
	LEAVE_MS = 500,	    /* for the others to take our last words */
	TRIES_MAX = 30,	    /* calls to a process that we never had a line to */
	KEPT_NOTES = 1024,  /* that a line made again may carry again .. */
	KEPT_BYTES = 1 << 20,
	LOG_BYTES_MAX = 1 << 26 /* .. and no matter how slow a line is */
};

uint64_t session_silence_ns(void)
{
	uint64_t seconds = (uint64_t)param_int(PARAM_SILENCE);

	return seconds ? seconds * CLOCK_SEC : UINT64_MAX;
}

/* Several beats fit into the silence that is one too many. */
static uint64_t beat_ns(void)
{
	uint64_t silence = session_silence_ns();

	return silence / 5 < CLOCK_SEC ? silence / 5 : CLOCK_SEC;
}

/* A beat may have been due when the other end fell silent, and the clock is looked at now
 * and then: what is left of the time the user gives. */
static uint64_t limit_ns(void)
{
	uint64_t silence = session_silence_ns();

	return silence == UINT64_MAX ? silence : silence - beat_ns() / 2;
}

static bool is_remote(const struct session *session, uint32_t node)
{
	return session->hosts[node] != session->hosts[session->self];
}

/* ---- what the ranks of this process hear ---- */

static void control_hear(
	struct control *control, const struct delivery *what, const void *bytes)
{
	struct delivery *made = malloc(sizeof(*made) + what->size + 1);

	if (!made) { /* nothing better can be done in this thread */
		log_warn("boot: no memory for a message of rank %u", what->rank);
		return;
	}
	*made = *what;
	made->next = NULL;
	if (what->size)
		memcpy(made->bytes, bytes, what->size);
	made->bytes[what->size] = '\0';
	*control->last = made;
	control->last = &made->next;
}

static void all_hear(struct session *session, const struct note *note)
{
	struct delivery what = {.rank = note->head.origin,
		.kind = note->head.kind,
		.size = note->head.bytes};

	for (struct control *at = session->controls; at; at = at->next)
		if (at->rank != note->head.origin)
			control_hear(at, &what, note->bytes);
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
	struct session *session, const struct line_head *head, const void *bytes)
{
	struct control *control = control_find(session, head->to);

	if (!control || head->after > session->heard[head->origin])
		return false;
	if (head->number > control->direct_heard[head->origin]) {
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
		const struct note *note = notes_at(&session->held, session->held.first);

		if (!direct_hear(session, &note->head, note->bytes) &&
			!notes_append(
				&session->held, &note->head, note->bytes, note->from))
			return;
		notes_drop(&session->held);
	}
}

/* ---- lines ---- */

static bool node_has_line(const struct session *session, uint32_t node)
{
	for (const struct line *line = session->lines; line; line = line->next)
		if (line->node == node && line->phase != LINE_GONE)
			return true;
	return false;
}

static bool line_carries(
	const struct session *session, const struct line *line, const struct note *note)
{
	if (note->head.type == NOTE_DIRECT)
		return session->node_of[note->head.to] == line->node;
	return line->is_edge && note->from != line->node;
}

static void leave_write(struct line *line, uint64_t now_ns)
{
	struct line_head head = {.type = NOTE_LEAVE};

	line->is_leaving = true;
	line_write(line, &head, NULL, now_ns);
}

/* Carry on with the log. */
static void line_pump(struct line *line, uint64_t now_ns)
{
	struct session *session = line->owner;
	const struct notes *log = &session->log;

	if (line->cursor < log->first)
		line->cursor = log->first;
	while (line_is_idle(line) && line->cursor < log->end) {
		const struct note *note = notes_at(log, line->cursor++);

		if (line_carries(session, line, note))
			line_write(line, &note->head, note->bytes, now_ns);
	}
	if (session->is_closing && line_is_idle(line) && !line->is_leaving)
		leave_write(line, now_ns);
	if (line->is_leaving && line_is_idle(line))
		line->phase = LINE_GONE;
	hub_watch(line);
}

/* Forget what every line has carried, but for what a broken one might need again. */
static void log_trim(struct session *session)
{
	struct notes *log = &session->log;
	uint64_t needed = log->end;

	for (const struct line *line = session->lines; line; line = line->next)
		if (line->phase != LINE_GONE && line->cursor < needed)
			needed = line->cursor;
	while (log->first < log->end &&
		((log->first < needed && (log->end - log->first > KEPT_NOTES ||
						 log->bytes > KEPT_BYTES)) ||
			log->bytes > LOG_BYTES_MAX))
		notes_drop(log);
}

static void lines_pump(struct session *session, uint64_t now_ns)
{
	for (struct line *line = session->lines; line; line = line->next)
		line_pump(line, now_ns);
	log_trim(session);
}

static void line_add(struct session *session, struct line *line, uint32_t node)
{
	line->owner = session;
	line->node = node;
	line->cursor = session->log.first;
	line->next = session->lines;
	session->lines = line;
}

static void retry_later(struct node *node, int trouble, uint64_t now_ns)
{
	uint64_t ms = node->tries < 5 ? (uint64_t)RETRY_MS << node->tries : RETRY_MAX_MS;

	node->tries++;
	node->trouble = trouble;
	node->retry_ns = now_ns + (ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS) * CLOCK_MS;
}

static void node_call(struct session *session, uint32_t index, uint64_t now_ns)
{
	struct node *node = &session->nodes[index];
	struct line_call call = {.to = node->addr,
		.from_process = session->self,
		.to_process = index,
		.is_edge = node->is_edge};
	struct line *line;

	if (!node->trouble_ns)
		node->trouble_ns = now_ns; /* until there is a line */
	memcpy(call.session, session->id, sizeof(call.session));
	memcpy(call.key, session->key, sizeof(call.key));
	line = line_call(&call, now_ns);
	auth_wipe(&call, sizeof(call));
	if (!line) {
		retry_later(node, errno, now_ns);
		return;
	}
	line->is_edge = node->is_edge;
	line_add(session, line, index);
	hub_watch(line);
}

/* The next process on the circle that lives is always next to us. */
static void successor_want(struct session *session)
{
	for (uint32_t i = 1; i < session->node_count; i++) {
		uint32_t next = (session->self + i) % session->node_count;
		struct node *node = &session->nodes[next];

		if (node->state != NODE_THERE)
			continue;
		if (!node_has_line(session, next))
			node->is_wanted = node->is_edge = true;
		return;
	}
}

/* ---- who is lost ---- */

static void loss_take(struct session *session, uint32_t index, const char *why)
{
	struct node *node = &session->nodes[index];

	if (node->state == NODE_DEAD)
		return;
	node->state = NODE_DEAD;
	node->is_wanted = false;
	log_info(LOG_BOOTSTRAP, "boot: the process of rank %u is lost: %s",
		node->first_rank, why);
	for (struct line *line = session->lines; line; line = line->next)
		if (line->node == index)
			line->phase = LINE_GONE;
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
	struct line_head head = {.type = NOTE_LOST,
		.to = CONTROL_ALL,
		.kind = session->nodes[node].first_rank,
		.bytes = (uint32_t)strlen(why)};

	if (session->nodes[node].state == NODE_DEAD)
		return;
	/* before its lines are closed: if it lives, it is to know */
	if (from && session_say(from, &head, why, now_ns))
		log_warn("boot: the others were not told that rank %u is lost: %s",
			head.kind, err_last());
	loss_take(session, node, why);
}

/* No line to a process comes about, or the last one broke. Refused: it has ended, and if
 * we knew it, without a word. */
static void node_trouble(
	struct session *session, uint32_t index, int status, uint64_t now_ns)
{
	struct node *node = &session->nodes[index];
	bool is_known = node->was_open || node->is_first;
	uint64_t limit = limit_ns();
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

/* The others have: no use in calling them. */
static bool is_given_up(const struct session *session)
{
	return session->nodes[session->self].state == NODE_DEAD;
}

/* A line is no more. */
static void line_lost(struct line *line, uint64_t now_ns)
{
	struct session *session = line->owner;
	struct node *node = &session->nodes[line->node];

	if (session->is_closing || line->has_left || node->state != NODE_THERE ||
		is_given_up(session) || node_has_line(session, line->node))
		return;
	if (!line->was_open) {
		node_trouble(session, line->node, line->status, now_ns);
		return;
	}
	/* has it ended, or only the connection? Who ended answers no call. */
	node->is_wanted = true;
	node->is_edge = node->is_edge || line->is_edge;
	node->trouble_ns = 0;
	node->tries = 0;
	node_call(session, line->node, now_ns);
}

/* ---- what comes in ---- */

static void flood_take(struct session *session, const struct line *line,
	const struct line_head *head, const void *bytes, uint64_t now_ns)
{
	const struct note *note;
	char why[256];

	if (head->origin >= session->rank_count ||
		session->node_of[head->origin] == session->self ||
		head->number <= session->heard[head->origin])
		return;
	session->heard[head->origin] = head->number;
	if (!notes_append(&session->log, head, bytes, line->node)) {
		log_warn("boot: no memory for a message of rank %u", head->origin);
		return;
	}
	note = notes_at(&session->log, session->log.end - 1);
	if (head->type == NOTE_FLOOD)
		all_hear(session, note);
	else
		snprintf(why, sizeof(why), "%.*s", (int)head->bytes,
			(const char *)note->bytes);
	held_hear(session);
	lines_pump(session, now_ns);
	if (head->type == NOTE_LOST && head->kind < session->rank_count)
		loss_take(session, session->node_of[head->kind], why);
}

static void direct_take(
	struct session *session, const struct line_head *head, const void *bytes)
{
	if (head->origin >= session->rank_count || head->to >= session->rank_count ||
		session->node_of[head->to] != session->self)
		return;
	if (!direct_hear(session, head, bytes) &&
		!notes_append(&session->held, head, bytes, 0))
		log_warn("boot: no memory for a message of rank %u", head->origin);
}

static void frame_take(struct line *line, uint64_t now_ns)
{
	struct session *session = line->owner;
	struct line_head head;

	line_head_get(line, &head);
	switch (head.type) {
	case NOTE_LEAVE:
		line->has_left = true;
		line->phase = LINE_GONE;
		if (session->nodes[line->node].state == NODE_THERE)
			session->nodes[line->node].state = NODE_LEFT;
		session->nodes[line->node].is_wanted = false;
		break;
	case NOTE_FLOOD:
	case NOTE_LOST:
		flood_take(session, line, &head, line_bytes(line), now_ns);
		break;
	case NOTE_DIRECT:
		direct_take(session, &head, line_bytes(line));
		break;
	default: /* a beat */
		break;
	}
}

static void line_opened(struct line *line)
{
	struct node *node = &line->owner->nodes[line->node];

	line->was_open = node->was_open = true;
	node->trouble_ns = 0;
	node->tries = 0;
	hub_changed();
}

void session_serve(struct line *line, uint64_t now_ns)
{
	enum line_news news;

	line_flush(line);
	while ((news = line_read(line, now_ns)) != LINE_NOTHING) {
		if (news == LINE_FRAME)
			frame_take(line, now_ns);
		else if (line->phase == LINE_OPEN)
			line_opened(line);
	}
	line_pump(line, now_ns);
}

bool session_adopt(struct session *session, struct line *line)
{
	const struct line_claim *claim = &line->claim;

	if (claim->to != session->self || claim->from >= session->node_count ||
		claim->from == session->self || session->is_closing ||
		session->nodes[claim->from].state == NODE_DEAD)
		return false;
	line->is_edge = claim->is_edge;
	line_add(session, line, claim->from);
	line_opened(line);
	return true;
}

void session_replay(struct session *session, struct control *control)
{
	for (uint64_t i = session->log.first; i < session->log.end; i++) {
		const struct note *note = notes_at(&session->log, i);
		const struct line_head *head = &note->head;
		char why[256];

		if (head->type == NOTE_FLOOD && head->origin != control->rank)
			control_hear(control,
				&(struct delivery){.rank = head->origin,
					.kind = head->kind,
					.size = head->bytes},
				note->bytes);
		if (head->type != NOTE_LOST || head->kind >= session->rank_count)
			continue;
		snprintf(why, sizeof(why), "%.*s", (int)head->bytes,
			(const char *)note->bytes);
		loss_hear(session, control, session->node_of[head->kind], why);
	}
	held_hear(session);
}

void session_pump(struct session *session, uint64_t now_ns)
{
	lines_pump(session, now_ns);
}

/* ---- what goes out ---- */

enum err session_say(struct control *from, const struct line_head *head,
	const void *bytes, uint64_t now_ns)
{
	struct session *session = from->session;
	struct line_head sent = *head;
	uint32_t node = head->type == NOTE_DIRECT ? session->node_of[head->to]
						  : session->self;

	sent.origin = from->rank;
	sent.number = head->type == NOTE_DIRECT ? from->direct_sent[head->to] + 1
						: from->flooded + 1;
	sent.after = head->type == NOTE_DIRECT ? from->flooded : 0;
	if (head->type != NOTE_DIRECT || node != session->self) {
		if (!notes_append(&session->log, &sent, bytes, session->self))
			return err_set(ERR_SYSTEM, "no memory for a message");
	}
	if (head->type == NOTE_DIRECT) {
		from->direct_sent[head->to]++;
	} else {
		from->flooded++;
		session->heard[from->rank] = sent.number;
	}
	if (head->type == NOTE_FLOOD)
		all_hear(session, notes_at(&session->log, session->log.end - 1));
	else if (node == session->self && head->type == NOTE_DIRECT)
		direct_take(session, &sent, bytes);
	if (head->type == NOTE_DIRECT && node != session->self &&
		session->nodes[node].state == NODE_THERE &&
		!node_has_line(session, node) && !session->nodes[node].is_wanted) {
		session->nodes[node].is_wanted = true;
		node_call(session, node, now_ns);
	}
	lines_pump(session, now_ns);
	hub_wake();
	return OK;
}

/* ---- the clock ---- */

void session_forgive(struct session *session, uint64_t late_ns)
{
	for (struct line *line = session->lines; line; line = line->next) {
		line->heard_ns += late_ns;
		line->since_ns += late_ns;
	}
	for (uint32_t i = 0; i < session->node_count; i++)
		if (session->nodes[i].trouble_ns)
			session->nodes[i].trouble_ns += late_ns;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t add_ns(uint64_t at_ns, uint64_t more_ns)
{
	return more_ns > UINT64_MAX - at_ns ? UINT64_MAX : at_ns + more_ns;
}

/* Say that we are here, and listen whether the other end does. */
static uint64_t line_tick(struct line *line, uint64_t now_ns)
{
	struct session *session = line->owner;
	uint64_t beat = add_ns(line->told_ns, beat_ns());
	uint64_t limit = limit_ns(), end;
	char why[64];

	if (line->phase != LINE_OPEN) {
		end = add_ns(line->since_ns, limit);
		if (line->phase == LINE_CONNECTING && now_ns >= end) {
			line->status = ETIMEDOUT;
			line->phase = LINE_GONE;
		}
		return end > now_ns ? end : UINT64_MAX;
	}
	if (!is_remote(session, line->node))
		return UINT64_MAX;
	end = add_ns(line->heard_ns, limit);
	if (now_ns >= end) { /* but for what has come and was not read yet */
		session_serve(line, now_ns);
		end = add_ns(line->heard_ns, limit);
	}
	if (now_ns >= end && line->phase == LINE_OPEN) {
		snprintf(why, sizeof(why), "nothing was heard of it for %llu s",
			(unsigned long long)(session_silence_ns() / CLOCK_SEC));
		session_lose(session, line->node, why, now_ns);
		return now_ns;
	}
	if (now_ns >= beat && line_is_idle(line)) {
		line_write(line, &(struct line_head){.type = NOTE_BEAT}, NULL, now_ns);
		hub_watch(line);
	}
	beat = add_ns(line->told_ns, beat_ns());
	/* what cannot be written now is written when it can */
	return sooner(end, beat > now_ns ? beat : end);
}

/* Take the lines off that are gone, and see what that means. */
static void lines_sweep(struct session *session, uint64_t now_ns)
{
	struct line *gone = NULL;

	for (struct line **at = &session->lines; *at;) {
		struct line *line = *at;

		if (line->phase != LINE_GONE) {
			at = &line->next;
			continue;
		}
		*at = line->next;
		line->next = gone;
		gone = line;
	}
	while (gone) {
		struct line *line = gone;

		gone = line->next;
		line_lost(line, now_ns);
		hub_drop(line);
	}
}

static uint64_t calls_tick(struct session *session, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (session->is_closing || is_given_up(session))
		return next;
	for (uint32_t i = 0; i < session->node_count; i++) {
		struct node *node = &session->nodes[i];

		if (!node->is_wanted || node->state != NODE_THERE ||
			node_has_line(session, i))
			continue;
		if (now_ns >= node->retry_ns)
			node_call(session, i, now_ns);
		next = sooner(next, node->retry_ns > now_ns ? node->retry_ns : now_ns);
	}
	return next;
}

uint64_t session_tick(struct session *session, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	for (struct line *line = session->lines; line; line = line->next)
		next = sooner(next, line_tick(line, now_ns));
	if (session->is_closing) {
		uint64_t end = session->closing_ns + LEAVE_MS * CLOCK_MS;

		for (struct line *line = session->lines; line; line = line->next)
			if (now_ns >= end || line->phase != LINE_OPEN)
				line->phase = LINE_GONE;
		next = sooner(next, end);
	}
	lines_sweep(session, now_ns);
	next = sooner(next, calls_tick(session, now_ns));
	for (const struct line *line = session->lines; line; line = line->next)
		if (line->phase == LINE_GONE)
			next = now_ns;
	return next;
}
