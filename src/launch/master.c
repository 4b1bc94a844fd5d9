/* The side of the ranks that ask, and what both sides need; giver.c is rank 0's. */
#include "launch/master.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "launch/giver.h"
#include "net/seal.h"

enum { CALL_MS = 1000, PAUSE_MS = 20, PAUSE_MAX_MS = 250, WHY_BYTES = 200 };

/* Once per process. */
static void secret_is_missing(const char *master)
{
	static atomic_bool is_said;

	if (!atomic_exchange(&is_said, true))
		log_warn("the ranks find each other at %s and WEFT_SECRET is not set: "
			 "whoever reaches that port can join the job; set WEFT_SECRET to "
			 "the same text on all ranks",
			master);
}

void giver_key(const struct launch *launch, unsigned char key[AUTH_KEY_BYTES])
{
	const char *shared = param_text(PARAM_SECRET);
	unsigned char secret[AUTH_KEY_BYTES];

	if (!shared)
		secret_is_missing(launch->master);
	auth_digest(shared ? shared : "", shared ? strlen(shared) : 0, secret);
	auth_tag(secret, "launch", launch->job, strlen(launch->job), key);
	auth_wipe(secret, sizeof(secret));
}

int giver_port(const struct launch *launch, int turn)
{
	int offset;

	if (launch->is_port_given)
		return turn ? 0 : launch->port;
	if (turn >= MASTER_PORTS)
		return 0;
	offset = (launch->port - LAUNCH_PORT_FIRST + turn) % LAUNCH_PORT_SPAN;
	return LAUNCH_PORT_FIRST + offset;
}

void giver_ports_print(const struct launch *launch, char text[GIVER_PORTS_BYTES])
{
	if (launch->is_port_given)
		snprintf(text, GIVER_PORTS_BYTES, "port %d", launch->port);
	else
		snprintf(text, GIVER_PORTS_BYTES, "ports %d to %d", giver_port(launch, 0),
			giver_port(launch, MASTER_PORTS - 1));
}

uint64_t giver_stall_ns(void)
{
	uint64_t seconds = (uint64_t)param_int(PARAM_STALL);

	return seconds ? clock_ns() + seconds * CLOCK_SEC : UINT64_MAX;
}

void giver_warn(const char *sentence)
{
	long seconds = (long)param_int(PARAM_BOOT_TIMEOUT);

	if (seconds)
		log_warn("%s; after %ld s (WEFT_BOOT_TIMEOUT_SEC) that is an error",
			sentence, seconds);
	else
		log_warn("%s; WEFT_BOOT_TIMEOUT_SEC=0 waits for ever", sentence);
}

/* Whatever NCCL_SOCKET_FAMILY says of the ranks' own connections: this address is given.
 */
static bool addr_of(const struct addrinfo *entry, int port, struct addr *addr)
{
	bool is_good = addr_from_system(entry->ai_addr, addr);

	addr->port = htons((uint16_t)port);
	return is_good;
}

/* The name may be known only once rank 0's pod is there, so a failure is not the end. */
int giver_resolve(
	const struct launch *launch, int port, struct addr addrs[GIVER_ADDRS], int *count)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int rc = getaddrinfo(launch->master, NULL, &hints, &found);

	*count = 0;
	for (const struct addrinfo *entry = rc ? NULL : found;
		entry && *count < GIVER_ADDRS; entry = entry->ai_next)
		*count += addr_of(entry, port, &addrs[*count]);
	if (found)
		freeaddrinfo(found);
	return rc || *count ? rc : EAI_NONAME;
}

/* ---- one visit ---- */

struct caller {
	const struct master_args *args;
	unsigned char key[AUTH_KEY_BYTES];
	uint64_t until_ns; /* of this visit */
	int fd;
	struct seal *seal;
	char why[WHY_BYTES]; /* what the last visit that found somebody came to */
};

static bool caller_wait(struct caller *caller, short events)
{
	struct pollfd wait = {.fd = caller->fd,
		.events = caller->seal ? seal_events(caller->seal, events) : events};

	return poll(&wait, 1, clock_left_ms(caller->until_ns, CALL_MS)) > 0;
}

static bool caller_connect(struct caller *caller, const struct addr *addr)
{
	int status = addr_connect(addr, &caller->fd);

	if (status == EINPROGRESS)
		status = caller_wait(caller, POLLOUT) ? addr_connected(caller->fd)
						      : ETIMEDOUT;
	return !status;
}

/* Somebody listens there and is not whom we look for. */
static bool caller_judge(struct caller *caller, short events)
{
	if (errno == EAGAIN)
		return caller_wait(caller, events);
	if (errno == EINTR)
		return true;
	if (errno == EPROTO)
		snprintf(caller->why, sizeof(caller->why), "; who answers there %s",
			"is not rank 0 of this job, or WEFT_SECRET differs");
	return false;
}

static bool caller_ask(struct caller *caller, const struct giver_question *question)
{
	bool is_sent = false;

	while (!is_sent || seal_has_output(caller->seal)) {
		ssize_t n = is_sent ? seal_flush(caller->seal)
				    : seal_send(
					      caller->seal, question, sizeof(*question));

		if (n < 0 && !caller_judge(caller, POLLOUT))
			return false;
		is_sent = is_sent || n == (ssize_t)sizeof(*question);
		if (n >= 0 && !is_sent)
			return false;
	}
	return true;
}

static bool caller_hear(struct caller *caller, unsigned char *bytes, size_t count)
{
	while (count > 0) {
		ssize_t n = seal_recv(caller->seal, bytes, count);

		if (!n || (n < 0 && !caller_judge(caller, POLLIN)))
			return false;
		if (n > 0) {
			bytes += n;
			count -= (size_t)n;
		}
	}
	return true;
}

static bool visit_one(
	struct caller *caller, const struct addr *addr, void *bytes, size_t count)
{
	const struct launch *launch = caller->args->launch;
	struct giver_question question = {.number = caller->args->number,
		.rank = (uint32_t)launch->rank,
		.rank_count = (uint32_t)launch->rank_count};
	bool is_good;

	memcpy(question.magic, giver_magic, sizeof(question.magic));
	caller->until_ns = clock_ns() + CALL_MS * CLOCK_MS;
	is_good = caller_connect(caller, addr);
	if (is_good) {
		caller->seal = seal_create(caller->fd, SEAL_CLIENT, caller->key);
		is_good = caller->seal && caller_ask(caller, &question) &&
			  caller_hear(caller, bytes, count);
	}
	seal_destroy(caller->seal);
	caller->seal = NULL;
	if (caller->fd >= 0)
		close(caller->fd);
	caller->fd = -1;
	return is_good;
}

/* All ports once. `rc` is what the name came to. */
static bool visit_all(struct caller *caller, void *bytes, size_t count, int *rc)
{
	const struct launch *launch = caller->args->launch;
	struct addr addrs[GIVER_ADDRS];
	int port, found;

	for (int turn = 0; (port = giver_port(launch, turn)); turn++) {
		*rc = giver_resolve(launch, port, addrs, &found);
		if (*rc)
			return false;
		for (int i = 0; i < found; i++)
			if (visit_one(caller, &addrs[i], bytes, count))
				return true;
	}
	return false;
}

static void nobody_print(
	const struct caller *caller, int rc, char text[GIVER_SENTENCE_BYTES])
{
	const struct launch *launch = caller->args->launch;
	char ports[GIVER_PORTS_BYTES];

	giver_ports_print(launch, ports);
	snprintf(text, GIVER_SENTENCE_BYTES,
		"rank %d of %d (%s) has found no rank 0 at %s, %s%s%s%s", launch->rank,
		launch->rank_count, launch_name(launch->kind), launch->master, ports,
		rc ? ": " : "", rc ? gai_strerror(rc) : "", caller->why);
}

enum err master_take(const struct master_args *args, void *bytes, size_t count)
{
	struct caller caller = {.args = args, .fd = -1};
	uint64_t stall_ns = giver_stall_ns();
	char text[GIVER_SENTENCE_BYTES];
	enum err e = auth_init();
	int rc = 0, pause = PAUSE_MS;

	if (e)
		return e;
	giver_key(args->launch, caller.key);
	while (!visit_all(&caller, bytes, count, &rc)) {
		if (clock_ns() >= args->deadline_ns) {
			nobody_print(&caller, rc, text);
			e = err_set(ERR_TIMEOUT, "%s", text);
			break;
		}
		if (clock_ns() >= stall_ns) {
			stall_ns = UINT64_MAX;
			nobody_print(&caller, rc, text);
			giver_warn(text);
		}
		poll(NULL, 0, clock_left_ms(args->deadline_ns, pause));
		pause = pause < PAUSE_MAX_MS ? 2 * pause : PAUSE_MAX_MS;
	}
	auth_wipe(caller.key, sizeof(caller.key));
	return e;
}
