#include "boot/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "boot/hub.h"
#include "boot/session.h"

enum {
	SLICE_MS = 10,	    /* how often a waiting rank looks at the abort word .. */
	SLICE_MAX_MS = 100, /* .. where there are many that do */
	TRIES_WITHOUT = 4   /* calls that may fail for want of a descriptor */
};

enum err control_listen(struct addr *addr)
{
	return hub_get(addr);
}

void control_unlisten(void)
{
	hub_put();
}

void control_free(struct control *control)
{
	while (control->first) {
		struct delivery *what = control->first;

		control->first = what->next;
		free(what);
	}
	free(control->direct_sent);
	free(control->direct_heard);
	free(control->deaf);
	free(control);
}

static struct control *control_make(const struct control_args *args)
{
	struct control *control = calloc(1, sizeof(*control));

	if (!control)
		return NULL;
	control->rank = args->rank;
	control->arg = args->arg;
	control->on_message = args->on_message;
	control->on_lost = args->on_lost;
	control->last = &control->first;
	control->direct_sent = calloc(args->rank_count, sizeof(uint64_t));
	control->direct_heard = calloc(args->rank_count, sizeof(uint64_t));
	control->deaf = malloc(sizeof(*control->deaf) + CONTROL_DEAF_BYTES);
	if (control->direct_sent && control->direct_heard && control->deaf)
		return control;
	control_free(control);
	return NULL;
}

enum err control_open(const struct control_args *args, struct control **control)
{
	struct control *made = control_make(args);
	struct session *session;
	enum err e;

	if (!made)
		return err_set(ERR_SYSTEM, "no memory to keep in touch with other ranks");
	hub_lock();
	e = session_get(args, &session);
	if (!e)
		session_attach(session, made);
	hub_unlock();
	if (e)
		control_free(made);
	else
		*control = made;
	return e;
}

static enum err loss_report(const struct station *lost)
{
	return err_set(ERR_REMOTE, "rank %u was lost while the communicator was made: %s",
		lost->first_rank, lost->why);
}

/* Who waits for us cannot know that we have no descriptor for it: we say so. */
static enum err starved_report(const struct session *session)
{
	uint32_t awaited = session_awaited(session);
	int cause = hub_starved();

	if (!cause || awaited == session->node_count)
		return OK;
	return err_set(ERR_SYSTEM, "rank %u cannot be let in: %s; see ulimit -n",
		session->nodes[awaited].first_rank, strerror(cause));
}

enum err control_check(const struct control *control)
{
	const struct station *lost;
	enum err e;

	hub_lock();
	lost = session_lost_first(control->session);
	e = lost ? loss_report(lost) : starved_report(control->session);
	hub_unlock();
	return e;
}

/* We ourselves lack what it takes to call anybody: time does not help. */
static bool is_destitute(const struct station *node)
{
	return (node->trouble == EMFILE || node->trouble == ENFILE) &&
	       node->tries >= TRIES_WITHOUT;
}

static enum err settle_fail(const struct station *node)
{
	char where[ADDR_TEXT_BYTES];

	addr_print(&node->addr, where);
	return err_set(ERR_TIMEOUT,
		"rank %u was not reached at %s in time: %s; see NCCL_SOCKET_IFNAME and "
		"firewalls",
		node->first_rank, where,
		node->trouble ? strerror(node->trouble) : "it does not answer");
}

enum err control_settle(
	struct control *control, uint64_t deadline_ns, const atomic_int *abort)
{
	struct session *session = control->session;
	uint32_t slice = SLICE_MS + session->rank_count / 10;
	const struct station *lost;
	uint32_t missing;
	enum err e = OK;

	hub_lock();
	for (;;) {
		missing = session_unsettled(session);
		lost = session_lost_first(session);
		if (lost)
			e = loss_report(lost);
		else if (abort && atomic_load_explicit(abort, memory_order_relaxed))
			e = err_set(ERR_REMOTE,
				"the communicator was aborted while it was made");
		else if (missing < session->node_count &&
			 is_destitute(&session->nodes[missing]))
			e = err_set(ERR_SYSTEM,
				"no connection with rank %u: %s; see ulimit -n",
				session->nodes[missing].first_rank,
				strerror(session->nodes[missing].trouble));
		else if (missing < session->node_count && deadline_ns &&
			 clock_ns() >= deadline_ns)
			e = settle_fail(&session->nodes[missing]);
		else
			e = starved_report(session);
		if (e || missing == session->node_count)
			break;
		hub_sleep(slice < SLICE_MAX_MS ? slice : SLICE_MAX_MS);
	}
	hub_unlock();
	return e;
}

enum err control_send(struct control *control, uint32_t to, uint32_t kind,
	const void *bytes, size_t size)
{
	struct session *session = control->session;
	struct strand_head head = {
		.type = to == CONTROL_ALL ? BULLETIN_FLOOD : BULLETIN_DIRECT,
		.to = to,
		.kind = kind,
		.bytes = (uint32_t)size};
	enum err e = OK;

	if (size > CONTROL_BYTES_MAX)
		return err_set(ERR_ARGUMENT, "a message of %zu bytes, at most %d", size,
			CONTROL_BYTES_MAX);
	if (to != CONTROL_ALL && to >= session->rank_count)
		return err_set(ERR_ARGUMENT, "a message to rank %u of %u", to,
			session->rank_count);
	hub_lock();
	if (to == CONTROL_ALL || session->nodes[session->node_of[to]].state != NODE_DEAD)
		e = session_say(control, &head, bytes, clock_ns());
	hub_unlock();
	return e;
}

void control_tell_lost(struct control *control, uint32_t rank, const char *why)
{
	struct session *session = control->session;

	hub_lock();
	if (rank < session->rank_count)
		session_lose(session, session->node_of[rank], why, clock_ns());
	hub_unlock();
}

void control_hurry(struct control *control)
{
	hub_lock();
	control->session->end.is_hurried = true;
	hub_unlock();
}

void control_close(struct control *control)
{
	bool is_within;

	if (!control)
		return;
	hub_lock();
	is_within = control->is_called && hub_is_self();
	while (control->is_called && !is_within)
		hub_sleep(SLICE_MS);
	session_detach(control->session, control, clock_ns());
	control->is_closed = is_within;
	hub_unlock();
	if (!is_within)
		control_free(control);
}
