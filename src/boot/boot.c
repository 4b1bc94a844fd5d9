#include "boot/boot.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "boot/id.h"
#include "boot/porch.h"
#include "boot/root.h"
#include "boot/visit.h"
#include "net/addr.h"
#include "net/psk.h"

enum {
	BIND_MS = 5000,	  /* for an earlier meeting to leave the port */
	PORCH_MS = 30000, /* to be let in at a porch .. */
	PORCH_SHARE = 4, /* .. or that part of the time to meet, which others need, too */
	TELL_MS = 2000,	 /* to tell the others that we cannot come */
	END_MS = 200,	 /* for a root of our own to end */
	DISMISS_MS = 200 /* a spare root that does not listen is not worth more */
};

void boot_tidy(void)
{
	roots_tidy();
}

/* Rank 0 of an address: an earlier meeting there may be about to end. */
static enum err root_run_here(struct visit *visit)
{
	uint64_t until = clock_ns() + BIND_MS * CLOCK_MS;
	char why[ERR_TEXT_BYTES];
	enum err e;

	while ((e = id_root_start(&visit->id)) == ERR_AGAIN) {
		if (clock_ns() < until)
			e = visit_pause(visit, VISIT_SLICE_MS);
		if (e == ERR_AGAIN || e == ERR_TIMEOUT)
			return visit_fail(visit, ERR_SYSTEM,
				"another program, or another meeting, listens there: "
				"give NCCL_COMM_ID another port, on all ranks");
		if (e)
			return e;
	}
	if (!e)
		return OK;
	snprintf(why, sizeof(why),
		"%s; NCCL_COMM_ID has to be an address of the host of rank 0",
		err_last());
	return visit_fail(visit, e, why);
}

/* It comes to nothing: the root is not to take this rank for one that has died. */
static void porch_renounce(struct visit *up)
{
	(void)visit_say(up, &(struct visit_word){.what = WIRE_NO_PORCH});
}

/* Take the door of this host's porch: OK when it is ours now. */
static enum err porch_run_here(struct visit *visit, const struct addr *addr, int door)
{
	struct visit up = *visit;
	struct root_args args = {.addr = *addr, .timeout_ns = boot_timeout_ns()};
	enum err e = visit_root(&up, WIRE_PORCH, NULL);

	if (e) {
		close(door);
		return visit_fail(visit, e, up.end.why);
	}
	args.door = door;
	args.rank = visit->args.rank;
	args.up = calloc(1, sizeof(*args.up));
	if (!args.up) {
		porch_renounce(&up);
		visit_close(&up);
		close(door);
		return visit_fail(visit, ERR_SYSTEM, "no memory for a porch");
	}
	args.up->fd = up.fd;
	args.up->seal = up.seal;
	memcpy(args.up->key, up.key, sizeof(up.key));
	memcpy(args.secret, visit->id.secret, sizeof(args.secret));
	if (args.timeout_ns) /* the root of all knows better who is missing */
		args.timeout_ns += VISIT_GRACE_MS / 2 * CLOCK_MS;
	args.is_sealed = psk_get(args.psk);
	e = root_start(&args);
	auth_wipe(&args, sizeof(args));
	auth_wipe(&up, sizeof(up));
	return e;
}

static uint64_t porch_deadline_ns(void)
{
	uint64_t share = boot_timeout_ns() / PORCH_SHARE, most = PORCH_MS * CLOCK_MS;

	return clock_ns() + (share && share < most ? share : most);
}

/* In a large meeting the ranks of a host come to one of them, who speaks for all. Who is
 * first makes the porch; one that cannot goes to the root itself. */
static enum err porch_seek(struct visit *visit)
{
	struct addr addr;
	int door = -1;
	enum err e;

	if (visit->to.family == ADDR_UNIX ||
		visit->args.rank_count < (uint64_t)param_int(PARAM_PORCH_RANKS) ||
		!id_porch(&visit->id, &addr))
		return OK;
	e = addr_listen(&addr, &door, NULL);
	if (!e)
		e = porch_run_here(visit, &addr, door);
	else if (e == ERR_AGAIN)
		e = OK; /* somebody has */
	if (e == ERR_SYSTEM) {
		visit->end.why[0] = '\0';
		return OK;
	}
	if (e)
		return e;
	visit->beyond = visit->to;
	visit->to = addr;
	visit->is_at_porch = true;
	visit->porch_ns = porch_deadline_ns();
	return OK;
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
		while (is_ours && root_is_here(&visit.id.addr) && !visit_pause(&visit, 1))
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
	visit->since_ns = clock_ns();
	visit->deadline_ns = boot_timeout_ns() ? clock_ns() + boot_timeout_ns() +
							 VISIT_GRACE_MS * CLOCK_MS
					       : UINT64_MAX;
}

/* Where the root is in this process nothing is needed to reach it. */
static bool refuse_here(const struct visit *visit, enum err code)
{
	struct root_args root = {.addr = visit->id.addr};
	struct refusal refusal = {.code = code,
		.rank = visit->args.rank,
		.rank_count = visit->args.rank_count,
		.count = !visit->is_at_porch};
	bool found;

	memcpy(root.secret, visit->id.secret, sizeof(root.secret));
	found = root_refuse(&root, &refusal);
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
		e = porch_seek(visit);
	if (!e)
		e = visit_root(visit, WIRE_MEET, records);
	spares_dismiss(args);
	addr_print(&visit->to, where);
	/* Without a reason here, whoever failed has said it already. */
	if (e && visit->end.why[0])
		err_set(e, "ranks could not meet at %s%s%s (rank %u of %u): %s", where,
			args->root ? " of " : "", args->root ? args->root : "",
			args->rank, args->rank_count, visit->end.why);
	if (e == ERR_TIMEOUT && refuse_here(visit, e))
		root_await_end(visit);
	/* a porch has said it; a root of this process may know nothing of it */
	if (e && e != ERR_TIMEOUT && visit->is_at_porch)
		(void)refuse_here(visit, e);
	/* It could not be reached, perhaps for want of a descriptor: a last try. Not
	 * where the caller knows of somebody who is lost: it may be the root's own
	 * process, and the others know it as well. */
	if (e && e != ERR_TIMEOUT && !visit->is_root_known && !visit->end.is_hopeless) {
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

uint32_t boot_root_pid(const struct meeting *meeting)
{
	const struct visit *visit = &meeting->visit;
	struct ucred there = {0};
	socklen_t room = sizeof(there);

	if (visit->to.family != ADDR_UNIX ||
		getsockopt(visit->fd, SOL_SOCKET, SO_PEERCRED, &there, &room))
		return 0;
	return (uint32_t)there.pid;
}

void boot_root_name(struct meeting *meeting, const char *name)
{
	meeting->visit.args.root = name;
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
	return !strncmp(visit->end.why, name, strlen(name));
}

/* Say it, and hear how it went with all; their records go to `records`. */
static enum err round_make(
	struct visit *visit, const struct visit_word *word, void *records)
{
	enum err mine = word->code, e;
	bool is_mute;

	/* an earlier round has failed for all, and nobody listens any more */
	if (visit->end.is_over && mine)
		return mine;
	deadline_set(visit);
	visit->end.why[0] = '\0';
	visit->end.own_errno = 0;
	visit->payload_bytes = (size_t)visit->args.rank_count * word->record_bytes;
	e = visit_say(visit, word);
	/* the root may have told everybody of a failure, and closed, before it heard us
	 */
	is_mute = e == ERR_AGAIN;
	if (is_mute)
		visit->deadline_ns = clock_ns() + VISIT_HEAR_MS * CLOCK_MS;
	if (!e || is_mute)
		e = visit_hear(visit, records);
	/* .. and not a verdict that somebody's time was over */
	if (is_mute && e == ERR_TIMEOUT && !visit->end.is_over)
		e = visit_fail(visit, ERR_SYSTEM,
			"cannot send to the process in which the ranks meet");
	if (e == ERR_AGAIN)
		e = visit_root_gone(visit);
	if (e && !visit->end.is_over)
		visit_give_up(visit, e);
	visit->end.is_over = visit->end.is_over || mine || e || word->is_last;
	/* whoever failed first is the cause: what failed here may only follow from it */
	if (mine && (!e || !visit->end.why[0] || is_about_us(visit)))
		return mine;
	return e ? err_set(e, "%s", visit->end.why) : OK;
}

enum err boot_agree(struct meeting *meeting, enum err mine, bool is_last)
{
	struct visit_word word = {.code = mine, .is_last = is_last};

	return round_make(&meeting->visit, &word, NULL);
}

enum err boot_gather(struct meeting *meeting, enum err mine, const void *record,
	uint32_t bytes, void *records)
{
	struct visit_word word = {.code = mine, .record = record, .record_bytes = bytes};

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
