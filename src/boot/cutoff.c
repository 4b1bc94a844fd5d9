#include "boot/cutoff.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/host.h"
#include "boot/session.h"

/* In doubt, so many are called: each host is asked, and a thousand processes do not open
 * a million connections. */
enum { CALLS_MAX = 32 };

enum { NAME_BYTES = 32 };

void cutoff_heard(struct cutoff *cutoff, uint64_t now_ns)
{
	cutoff->heard_ns = now_ns;
	cutoff->is_in_doubt = false;
}

void cutoff_forgive(struct cutoff *cutoff, uint64_t late_ns)
{
	if (cutoff->heard_ns)
		cutoff->heard_ns += late_ns;
}

/* Of another host, and neither lost nor known to have left. */
static bool is_away(const struct session *session, uint32_t node)
{
	return session->nodes[node].state == NODE_THERE &&
	       session_is_remote(session, node);
}

static bool is_asked(const struct session *session, uint32_t node)
{
	return session->nodes[node].is_wanted || session_has_strand(session, node);
}

/* Whom we have asked, or have a strand to, and who has not said a word. One that refuses
 * a call is not among them: its process has ended, and that is no sign of a network that
 * has. */
static bool is_anyone_mute(const struct session *session)
{
	for (uint32_t i = 0; i < session->node_count; i++)
		if (is_away(session, i) && is_asked(session, i))
			return true;
	return false;
}

/* Call one of each run of processes of one host, or all others; returns how many. */
static uint32_t others_call(struct session *session, bool is_one_of_each, uint32_t most)
{
	uint32_t count = 0, last = session->self;

	for (uint32_t i = 1; i < session->node_count && count < most; i++) {
		uint32_t node = (session->self + i) % session->node_count;
		bool is_same = session->hosts[node] == session->hosts[last];

		last = node;
		if (!is_away(session, node) || is_asked(session, node) ||
			(is_one_of_each && is_same))
			continue;
		session->nodes[node].is_wanted = true;
		count++;
	}
	return count;
}

static void doubt(struct session *session)
{
	uint32_t count;

	if (session->cutoff.is_in_doubt)
		return;
	session->cutoff.is_in_doubt = true;
	count = others_call(session, true, CALLS_MAX);
	others_call(session, false, CALLS_MAX - count);
}

/* What has come and was not read yet. */
static void strands_read(struct session *session, uint64_t now_ns)
{
	for (struct strand *strand = session->strands; strand; strand = strand->held.next)
		if (strand->phase != STRAND_GONE)
			session_serve(strand, now_ns);
}

/* Not told to anybody: those who would hear it are in the same place. */
static void others_lose(struct session *session)
{
	char name[NAME_BYTES] = "", why[STATION_WHY_BYTES];
	uint64_t identity;

	(void)host_identity(name, sizeof(name), &identity);
	snprintf(why, sizeof(why),
		"host %s is cut off: nothing came from others for %llu s",
		name[0] ? name : "here",
		(unsigned long long)(session_silence_ns() / CLOCK_SEC));
	for (uint32_t i = 0; i < session->node_count; i++)
		if (is_away(session, i))
			session_lose_here(session, i, why);
}

uint64_t cutoff_tick(struct session *session, uint64_t now_ns)
{
	const struct cutoff *cutoff = &session->cutoff;
	uint64_t limit = session_limit_ns();

	if (!cutoff->heard_ns || limit == UINT64_MAX || session->end.is_closing ||
		session_is_given_up(session))
		return UINT64_MAX;
	if (now_ns < cutoff->heard_ns + limit / 2)
		return cutoff->heard_ns + limit / 2;
	doubt(session);
	if (now_ns >= cutoff->heard_ns + limit)
		strands_read(session, now_ns);
	if (now_ns < cutoff->heard_ns + limit)
		return cutoff->heard_ns + limit;
	if (is_anyone_mute(session))
		others_lose(session);
	else
		session->cutoff.heard_ns = now_ns; /* nobody is left to be heard */
	return now_ns + limit / 2;
}
