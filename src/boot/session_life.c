/*
 * session_life.c - the sessions of this process: made with the first rank of a
 * communicator, ended after the last.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/param.h"
#include "boot/carry.h"
#include "boot/edges.h"
#include "boot/hub.h"
#include "boot/roster.h"
#include "boot/session.h"

/* Guarded by the hub's lock, as is the next. */
static struct session *sessions;

/* The last ones that closed: who asks for one of them need not wait for it. */
enum { CLOSED_MAX = 64 };
static unsigned char closed[CLOSED_MAX][STRAND_SESSION_BYTES];
static uint32_t closed_count;

bool session_was_there(const unsigned char id[STRAND_SESSION_BYTES])
{
	for (uint32_t i = 0; i < CLOSED_MAX && i < closed_count; i++)
		if (!memcmp(closed[i], id, STRAND_SESSION_BYTES))
			return true;
	return false;
}

struct session *session_list(void)
{
	return sessions;
}

struct session *session_find(const unsigned char id[STRAND_SESSION_BYTES])
{
	struct session *at = sessions;

	while (at && (at->end.is_closing || memcmp(at->id, id, STRAND_SESSION_BYTES)))
		at = at->next;
	return at;
}

struct session *session_find_any(const unsigned char id[STRAND_SESSION_BYTES])
{
	struct session *at = session_find(id);

	if (at)
		return at;
	at = sessions;
	while (at && memcmp(at->id, id, STRAND_SESSION_BYTES))
		at = at->next;
	return at;
}

/* Strangers see the name; it says nothing of the key. */
static void id_make(const unsigned char key[AUTH_KEY_BYTES], unsigned char *id)
{
	unsigned char tag[AUTH_TAG_BYTES];

	auth_tag(key, "control session", "", 0, tag);
	memcpy(id, tag, STRAND_SESSION_BYTES);
}

static void edges_want(struct session *session)
{
	uint32_t nodes[EDGES_MAX];
	uint32_t count = edges_list(
		session->self, session->node_count, session->hosts, nodes);

	for (uint32_t i = 0; i < count; i++)
		session->nodes[nodes[i]].is_expected = true;
	count = edges_to_call(session->self, session->node_count, session->hosts, nodes);
	for (uint32_t i = 0; i < count; i++) {
		struct station *node = &session->nodes[nodes[i]];

		node->is_wanted = node->is_edge = node->is_first = true;
		node->is_expected = false;
	}
}

/* Takes over what the roster has. */
static enum err nodes_make(
	struct session *session, const struct control_peer *peers, struct roster *roster)
{
	uint32_t count = roster->node_count;

	session->nodes = calloc(count, sizeof(*session->nodes));
	session->hosts = calloc(count, sizeof(*session->hosts));
	session->heard = calloc(roster->rank_count, sizeof(*session->heard));
	if (!session->nodes || !session->hosts || !session->heard)
		return err_set(ERR_SYSTEM, "no memory to keep in touch with %u ranks",
			roster->rank_count);
	for (uint32_t i = 0; i < count; i++) {
		const struct control_peer *peer = &peers[roster->first_rank[i]];

		session->nodes[i].addr = peer->addr;
		session->nodes[i].host = session->hosts[i] = peer->host;
		session->nodes[i].first_rank = roster->first_rank[i];
	}
	session->rank_count = roster->rank_count;
	session->node_count = count;
	session->node_of = roster->node_of;
	roster->node_of = NULL;
	return OK;
}

static enum err session_make(const struct control_args *args, struct session *session)
{
	struct roster roster = {0};
	enum err e = roster_make(args->peers, args->rank_count, &roster);

	if (!e)
		e = nodes_make(session, args->peers, &roster);
	roster_fini(&roster);
	if (e)
		return e;
	session->self = session->node_of[args->rank];
	session->since_ns = clock_ns();
	edges_want(session);
	return OK;
}

enum err session_get(const struct control_args *args, struct session **session)
{
	unsigned char id[STRAND_SESSION_BYTES];
	struct session *made;
	enum err e;

	id_make(args->key, id);
	*session = session_find(id);
	if (*session)
		return OK;
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory to keep in touch with other ranks");
	memcpy(made->id, id, sizeof(made->id));
	memcpy(made->key, args->key, sizeof(made->key));
	e = session_make(args, made);
	if (e) {
		session_destroy(made);
		return e;
	}
	made->next = sessions;
	sessions = made;
	hub_greet();
	*session = made;
	return OK;
}

void session_attach(struct session *session, struct control *control)
{
	control->session = session;
	control->next = session->controls;
	session->controls = control;
	session_replay(session, control);
	hub_wake();
}

void session_detach(struct session *session, struct control *control, uint64_t now_ns)
{
	struct control **at = &session->controls;

	while (*at != control)
		at = &(*at)->next;
	*at = control->next;
	if (session->controls)
		return;
	session->end.is_closing = true;
	session->end.since_ns = now_ns;
	memcpy(closed[closed_count++ % CLOSED_MAX], session->id, STRAND_SESSION_BYTES);
	carry_all(session, now_ns);
	hub_wake();
}

uint64_t session_silence_ns(void)
{
	uint64_t seconds = (uint64_t)param_int(PARAM_SILENCE);

	return seconds ? seconds * CLOCK_SEC : UINT64_MAX;
}

void session_forget(void)
{
	for (struct session *at = sessions; at; at = at->next) {
		for (struct strand *strand = at->strands; strand;
			strand = strand->held.next) {
			close(strand->fd);
			strand->fd = -1;
			strand->phase = STRAND_GONE;
		}
		for (struct control *control = at->controls; control;
			control = control->next)
			control->is_called = false;
	}
	sessions = NULL;
}

/* Later, but not than now: other threads make calls while this one is held up. */
static void put_off(uint64_t *at_ns, uint64_t late_ns, uint64_t now_ns)
{
	uint64_t most = now_ns > *at_ns ? now_ns - *at_ns : 0;

	*at_ns += late_ns < most ? late_ns : most;
}

void session_forgive(struct session *session, uint64_t late_ns, uint64_t now_ns)
{
	for (struct strand *strand = session->strands; strand;
		strand = strand->held.next) {
		put_off(&strand->heard_ns, late_ns, now_ns);
		put_off(&strand->since_ns, late_ns, now_ns);
	}
	put_off(&session->since_ns, late_ns, now_ns);
	cutoff_forgive(&session->cutoff, late_ns);
	for (uint32_t i = 0; i < session->node_count; i++)
		if (session->nodes[i].trouble_ns)
			put_off(&session->nodes[i].trouble_ns, late_ns, now_ns);
}

const struct station *session_lost_first(const struct session *session)
{
	const struct station *first = NULL;

	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct station *node = &session->nodes[i];

		if (node->state == NODE_DEAD &&
			(!first || node->lost_ns < first->lost_ns))
			first = node;
	}
	return first;
}

uint32_t session_unsettled(const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++)
		if (session->nodes[i].is_first && !session->nodes[i].was_open)
			return i;
	return session->node_count;
}

uint32_t session_awaited(const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct station *node = &session->nodes[i];

		if (node->is_expected && !node->was_open && node->state == NODE_THERE)
			return i;
	}
	return session->node_count;
}

bool session_has_strand(const struct session *session, uint32_t node)
{
	for (const struct strand *strand = session->strands; strand;
		strand = strand->held.next)
		if (strand->held.node == node && strand->phase != STRAND_GONE)
			return true;
	return false;
}

bool session_has_edge(const struct session *session, uint32_t node)
{
	for (const struct strand *strand = session->strands; strand;
		strand = strand->held.next)
		if (strand->held.node == node && strand->phase != STRAND_GONE &&
			strand->held.is_edge)
			return true;
	return false;
}

bool session_is_joined(const struct session *session, uint32_t node)
{
	return session->nodes[node].is_edge ? session_has_edge(session, node)
					    : session_has_strand(session, node);
}

bool session_is_over(const struct session *session, uint64_t now_ns)
{
	return session->end.is_closing && !session->strands &&
	       now_ns >= session->end.recall_ns;
}

void session_destroy(struct session *session)
{
	struct session **at = &sessions;

	while (*at && *at != session)
		at = &(*at)->next;
	if (*at)
		*at = session->next;
	while (session->strands) {
		struct strand *strand = session->strands;

		session->strands = strand->held.next;
		hub_drop(strand);
	}
	bulletins_fini(&session->log);
	bulletins_fini(&session->held);
	free(session->node_of);
	free(session->nodes);
	free(session->hosts);
	free(session->heard);
	auth_wipe(session->key, sizeof(session->key));
	free(session);
}
