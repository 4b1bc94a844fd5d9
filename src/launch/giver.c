/* Rank 0's side of master.h: one poll() loop, in which a stranger costs nobody anything.
 */
#include "launch/giver.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/lobby.h"
#include "launch/master.h"
#include "net/seal.h"

enum {
	VISITORS_MAX = 64,
	VISIT_MS = 2000, /* to ask; a stranger is put out then */
	CROWD_MS = 100,	 /* the same when no chair is left */
	SLICE_MS = 200,
	NAMED_MAX = 8 /* missing ranks that a sentence names */
};

struct visitor {
	int fd;		   /* owned; -1: an empty chair */
	struct seal *seal; /* owned */
	uint64_t since_ns;
	size_t in_done, out_done;
	bool has_asked;
	struct giver_question question;
};

struct giver {
	const struct master_args *args;
	const unsigned char *bytes;
	size_t count;
	struct lobby lobby;
	unsigned char key[AUTH_KEY_BYTES];
	unsigned char *has_it; /* by rank */
	int left;
	uint64_t stall_ns; /* when a warning says who is missing; UINT64_MAX: never */
	struct visitor visitors[VISITORS_MAX];
};

static void visitor_leave(struct visitor *visitor)
{
	seal_destroy(visitor->seal);
	close(visitor->fd);
	*visitor = (struct visitor){.fd = -1};
}

static bool question_fits(
	const struct giver *giver, const struct giver_question *question)
{
	const struct launch *launch = giver->args->launch;

	return !memcmp(question->magic, giver_magic, sizeof(question->magic)) &&
	       question->number == giver->args->number && question->rank > 0 &&
	       question->rank_count == (uint32_t)launch->rank_count &&
	       question->rank < question->rank_count;
}

/* 1: go on, 0: not now, -1: it has gone. */
static int step(ssize_t n)
{
	if (n > 0)
		return 1;
	return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
}

static int visitor_hear(const struct giver *giver, struct visitor *visitor)
{
	char *to = (char *)&visitor->question;
	ssize_t n = seal_recv(visitor->seal, to + visitor->in_done,
		sizeof(visitor->question) - visitor->in_done);

	if (n > 0)
		visitor->in_done += (size_t)n;
	if (visitor->in_done == sizeof(visitor->question)) {
		if (!question_fits(giver, &visitor->question))
			return -1;
		visitor->has_asked = true;
	}
	return step(n);
}

static int visitor_tell(const struct giver *giver, struct visitor *visitor)
{
	ssize_t n;

	if (visitor->out_done == giver->count)
		return seal_flush(visitor->seal) ? step(-1) : 1;
	n = seal_send(visitor->seal, giver->bytes + visitor->out_done,
		giver->count - visitor->out_done);
	if (n > 0)
		visitor->out_done += (size_t)n;
	return step(n);
}

static bool is_told(const struct giver *giver, const struct visitor *visitor)
{
	return visitor->out_done == giver->count && !seal_has_output(visitor->seal);
}

/* It closes when it has all; only then does it count, and only then do we close. */
static void visitor_done(struct giver *giver, struct visitor *visitor)
{
	uint32_t rank = visitor->question.rank;
	char byte;

	if (recv(visitor->fd, &byte, 1, MSG_DONTWAIT) < 0 &&
		(errno == EAGAIN || errno == EINTR))
		return;
	giver->left -= !giver->has_it[rank];
	giver->has_it[rank] = 1;
	visitor_leave(visitor);
}

static void visitor_move(struct giver *giver, struct visitor *visitor)
{
	int well = 1;

	while (well > 0 && !visitor->has_asked)
		well = visitor_hear(giver, visitor);
	while (well > 0 && !is_told(giver, visitor))
		well = visitor_tell(giver, visitor);
	if (well < 0)
		visitor_leave(visitor);
	else if (visitor->has_asked && is_told(giver, visitor))
		visitor_done(giver, visitor);
}

/* Put out who has not asked in time. */
static void visitors_judge(struct giver *giver)
{
	uint64_t now = clock_ns(), limit_ms = VISIT_MS;
	int taken = 0;

	for (int i = 0; i < VISITORS_MAX; i++)
		taken += giver->visitors[i].fd >= 0;
	if (taken == VISITORS_MAX)
		limit_ms = CROWD_MS;
	for (int i = 0; i < VISITORS_MAX; i++) {
		struct visitor *visitor = &giver->visitors[i];

		if (visitor->fd >= 0 && !visitor->has_asked &&
			now - visitor->since_ns > limit_ms * CLOCK_MS)
			visitor_leave(visitor);
	}
}

/* False: nobody is at this door. */
static bool visitor_let_in(struct giver *giver, struct visitor *chair, int door)
{
	int fd = accept4(door, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return false;
	*chair = (struct visitor){.fd = fd, .since_ns = clock_ns()};
	chair->seal = seal_create(fd, SEAL_SERVER, giver->key);
	if (!chair->seal)
		visitor_leave(chair);
	return true;
}

static void visitors_let_in(struct giver *giver)
{
	for (int i = 0, door = 0; i < VISITORS_MAX && door < giver->lobby.count; i++) {
		struct visitor *chair = &giver->visitors[i];

		while (chair->fd < 0 && door < giver->lobby.count &&
			!visitor_let_in(giver, chair, giver->lobby.fds[door]))
			door++;
	}
}

static short visitor_events(const struct giver *giver, const struct visitor *visitor)
{
	if (!visitor->has_asked)
		return seal_events(visitor->seal, POLLIN);
	if (is_told(giver, visitor))
		return POLLIN; /* for its end */
	return seal_events(visitor->seal, POLLOUT);
}

static void serve_once(struct giver *giver)
{
	struct pollfd waits[VISITORS_MAX + LOBBY_SOCKETS];
	int doors = giver->lobby.count;
	bool has_chair = false;

	for (int i = 0; i < VISITORS_MAX; i++) {
		struct visitor *visitor = &giver->visitors[i];

		has_chair = has_chair || visitor->fd < 0;
		waits[i] = (struct pollfd){.fd = visitor->fd};
		if (visitor->fd >= 0)
			waits[i].events = visitor_events(giver, visitor);
	}
	for (int i = 0; i < doors; i++)
		waits[VISITORS_MAX + i] = (struct pollfd){
			.fd = has_chair ? giver->lobby.fds[i] : -1, .events = POLLIN};
	poll(waits, VISITORS_MAX + (nfds_t)doors,
		clock_left_ms(giver->args->deadline_ns, SLICE_MS));
	for (int i = 0; i < VISITORS_MAX; i++)
		if (waits[i].revents)
			visitor_move(giver, &giver->visitors[i]);
	visitors_judge(giver);
	visitors_let_in(giver);
}

static enum err some_missing(const struct giver *giver)
{
	const struct launch *launch = giver->args->launch;
	char where[ADDR_TEXT_BYTES], names[NAMED_MAX * 8] = "";
	int used = 0, named = 0;

	for (int rank = 1; rank < launch->rank_count && named < NAMED_MAX; rank++)
		if (!giver->has_it[rank])
			used += snprintf(names + used, sizeof(names) - (size_t)used,
				"%s%d", named++ ? ", " : "", rank);
	addr_print(&giver->lobby.addr, where);
	return err_set(ERR_TIMEOUT,
		"rank 0 has waited at %s (%s) and %d of %d ranks did not come: %s%s",
		where, launch_name(launch->kind), giver->left, launch->rank_count, names,
		giver->left > named ? ", .." : "");
}

static void absence_warn(struct giver *giver)
{
	if (clock_ns() < giver->stall_ns)
		return;
	giver->stall_ns = UINT64_MAX;
	some_missing(giver);
	giver_warn();
}

static enum err serve_all(struct giver *giver)
{
	enum err e = OK;

	while (giver->left > 0 && !e) {
		serve_once(giver);
		if (giver->left > 0 && clock_ns() >= giver->args->deadline_ns)
			e = some_missing(giver);
		else if (giver->left > 0)
			absence_warn(giver);
	}
	for (int i = 0; i < VISITORS_MAX; i++)
		if (giver->visitors[i].fd >= 0)
			visitor_leave(&giver->visitors[i]);
	return e;
}

enum err master_give(const struct master_args *args, const void *bytes, size_t count)
{
	struct giver *giver = calloc(
		1, sizeof(*giver) + (size_t)args->launch->rank_count);
	enum err e = giver ? auth_init() : ERR_SYSTEM;

	if (!giver)
		return err_set(ERR_SYSTEM, "no memory to wait for the other ranks");
	giver->args = args;
	giver->bytes = bytes;
	giver->count = count;
	giver->left = args->launch->rank_count - 1;
	giver->stall_ns = giver_stall_ns();
	giver->has_it = (unsigned char *)(giver + 1);
	for (int i = 0; i < VISITORS_MAX; i++)
		giver->visitors[i].fd = -1;
	if (!e)
		e = lobby_open(args, &giver->lobby);
	if (!e) {
		giver_key(args->launch, giver->key);
		e = serve_all(giver);
		lobby_close(&giver->lobby);
		auth_wipe(giver->key, sizeof(giver->key));
	}
	free(giver);
	return e;
}
