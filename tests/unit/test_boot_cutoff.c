/*
 * A process that hears of no other host calls the others before it takes them for lost,
 * and takes nobody for lost who has spoken, left or ended. The session is made by hand,
 * and so is its time.
 */
#include "boot/cutoff.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/param.h"
#include "boot/session.h"
#include "test.h"

enum { NODES = 200, PER_HOST = 4, CALLS_AT_MOST = 32, SELF = 5 };

static const uint64_t begin_ns = 1000 * CLOCK_SEC;

static struct station nodes[NODES];
static uint64_t hosts[NODES];
static uint32_t node_of[NODES];

static struct session make(uint32_t count)
{
	struct session session = {.rank_count = count,
		.node_count = count,
		.self = SELF,
		.nodes = nodes,
		.hosts = hosts,
		.node_of = node_of};

	memset(nodes, 0, sizeof(nodes));
	for (uint32_t i = 0; i < count; i++) {
		nodes[i].first_rank = node_of[i] = i;
		nodes[i].host = hosts[i] = i / PER_HOST;
	}
	cutoff_heard(&session.cutoff, begin_ns);
	return session;
}

static uint32_t wanted(uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += nodes[i].is_wanted;
	return found;
}

static uint32_t lost(uint32_t count)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++) {
		found += nodes[i].state == NODE_DEAD;
		if (nodes[i].state == NODE_DEAD)
			TRUE(strstr(nodes[i].why, "is cut off"));
	}
	return found;
}

/* Called in doubt, lost in the end: those of other hosts and no others. */
static void others_are_lost(void)
{
	struct session session = make(16);
	uint64_t limit = session_limit_ns();
	uint64_t at = cutoff_tick(&session, begin_ns + 1);

	TRUE(at > begin_ns && at < begin_ns + limit);
	EQ(wanted(16), 0);
	EQ(cutoff_tick(&session, at), begin_ns + limit);
	EQ(wanted(16), 12);
	EQ(lost(16), 0);
	cutoff_tick(&session, begin_ns + limit);
	EQ(lost(16), 12);
	for (uint32_t i = 4; i < 8; i++)
		EQ(nodes[i].state, NODE_THERE);
}

/* A word of anybody, and all begins again; so it does when we were held up ourselves. */
static void one_word_is_enough(void)
{
	struct session session = make(16);
	uint64_t limit = session_limit_ns();

	cutoff_tick(&session, begin_ns + limit - 1);
	cutoff_heard(&session.cutoff, begin_ns + limit - 1);
	cutoff_tick(&session, begin_ns + limit);
	EQ(lost(16), 0);
	cutoff_forgive(&session.cutoff, limit);
	cutoff_tick(&session, begin_ns + 2 * limit);
	EQ(lost(16), 0);
	cutoff_tick(&session, begin_ns + 3 * limit);
	EQ(lost(16), 12);
}

/* Who has ended or left does not answer either. */
static void who_is_gone_is_not_waited_for(void)
{
	struct session session = make(16);
	uint64_t limit = session_limit_ns();

	for (uint32_t i = 0; i < 16; i++)
		if (session_is_remote(&session, i))
			nodes[i].state = i % 2 ? NODE_LEFT : NODE_ABSENT;
	cutoff_tick(&session, begin_ns + limit);
	EQ(wanted(16), 0);
	EQ(lost(16), 0);
	TRUE(cutoff_tick(&session, begin_ns + limit + 1) > begin_ns + limit + 1);
}

/* Not everybody of a large session is called, but somebody of each host. */
static void few_are_called(void)
{
	struct session session = make(NODES);
	uint32_t each = 0;

	cutoff_tick(&session, begin_ns + session_limit_ns() / 2);
	EQ(wanted(NODES), CALLS_AT_MOST);
	for (uint32_t i = 0; i < CALLS_AT_MOST; i++) {
		uint32_t first = (SELF / PER_HOST + 1 + i) * PER_HOST;

		each += nodes[first].is_wanted;
	}
	EQ(each, CALLS_AT_MOST);
}

/* Before anybody was heard the meeting has its own time; who leaves, or was given up,
 * misses nobody; and the user may want no such time at all. */
static void not_always(void)
{
	struct session session = make(16);
	uint64_t late = begin_ns + 2 * session_limit_ns();

	session.cutoff = (struct cutoff){0};
	EQ(cutoff_tick(&session, late), UINT64_MAX);
	session = make(16);
	session.end.is_closing = true;
	EQ(cutoff_tick(&session, late), UINT64_MAX);
	session = make(16);
	nodes[SELF].state = NODE_DEAD;
	EQ(cutoff_tick(&session, late), UINT64_MAX);
	session = make(16);
	setenv("WEFT_SILENCE_SEC", "0", 1);
	param_forget(PARAM_SILENCE);
	EQ(cutoff_tick(&session, late), UINT64_MAX);
	EQ(wanted(16), 0);
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	others_are_lost();
	one_word_is_enough();
	who_is_gone_is_not_waited_for();
	few_are_called();
	not_always();
	return 0;
}
