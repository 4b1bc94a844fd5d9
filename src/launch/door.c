#include "launch/door.h"

#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "launch/giver.h"
#include "launch/here.h"

enum { AGAIN_MS = 200 };

/* The addresses to listen at. */
struct places {
	int count;
	struct addr addrs[DOOR_SOCKETS];
};

static bool is_link_local(const struct addr *addr)
{
	return addr->family == ADDR_IPV6 && addr->bytes[0] == 0xfe;
}

static void places_add(struct places *places, const struct addr *addr)
{
	if (places->count < DOOR_SOCKETS)
		places->addrs[places->count++] = *addr;
}

/* Only who comes from elsewhere knows this host by another address. */
static bool is_met_elsewhere(const struct launch *launch, const struct places *places)
{
	bool is_loopback_meant = !strcmp(launch->master, "localhost") ||
				 !strncmp(launch->master, "127.", 4) ||
				 !strcmp(launch->master, "::1");

	for (int i = 0; i < places->count; i++)
		if (!here_is_loopback(&places->addrs[i]))
			return false;
	return places->count && !is_loopback_meant &&
	       launch->local_count != launch->rank_count;
}

/* 0 or what getaddrinfo() says. */
static int places_find(const struct launch *launch, int port, struct places *places)
{
	struct addr addrs[GIVER_ADDRS];
	struct here here;
	int count = 0, rc = giver_resolve(launch, port, addrs, &count);

	here_read(&here);
	places->count = 0;
	for (int i = 0; i < count; i++)
		if (here_has(&here, &addrs[i]))
			places_add(places, &addrs[i]);
	if (!is_met_elsewhere(launch, places))
		return rc;
	for (int i = 0; i < here.count; i++) {
		here.addrs[i].port = addrs[0].port;
		if (!here_is_loopback(&here.addrs[i]) && !is_link_local(&here.addrs[i]))
			places_add(places, &here.addrs[i]);
	}
	return rc;
}

/* ERR_AGAIN: somebody listens at one of them, so another port is better. */
static enum err places_open(const struct places *places, struct door *door)
{
	enum err e = OK;

	door->count = 0;
	for (int i = 0; i < places->count && !e; i++) {
		e = addr_listen(&places->addrs[i], &door->fds[door->count], NULL);
		door->count += !e;
	}
	door->addr = places->addrs[0];
	if (e)
		door_close(door);
	return e;
}

static enum err not_here(const struct launch *launch)
{
	return err_set(ERR_SYSTEM,
		"rank 0 (%s) is to wait for the others at %s, which is no address of "
		"this "
		"host: start rank 0 there, or set WEFT_MASTER to rank 0's host",
		launch_name(launch->kind), launch->master);
}

static enum err all_taken(const struct launch *launch)
{
	char ports[GIVER_PORTS_BYTES];

	giver_ports_print(launch, ports);
	return err_set(ERR_SYSTEM,
		"rank 0 (%s) is to wait for the others at %s, and other programs do so "
		"at "
		"%s: set WEFT_MASTER=host:port",
		launch_name(launch->kind), launch->master, ports);
}

enum err door_open(const struct master_args *args, struct door *door)
{
	const struct launch *launch = args->launch;
	struct places places;
	int port, rc = 0;

	do {
		for (int turn = 0; (port = giver_port(launch, turn)); turn++) {
			enum err e;

			rc = places_find(launch, port, &places);
			if (rc)
				break;
			if (!places.count)
				return not_here(launch);
			e = places_open(&places, door);
			if (e != ERR_AGAIN)
				return e;
		}
		poll(NULL, 0, clock_left_ms(args->deadline_ns, AGAIN_MS));
	} while (clock_ns() < args->deadline_ns);
	if (!rc)
		return all_taken(launch);
	return err_set(ERR_SYSTEM,
		"rank 0 (%s) is to wait for the others at %s, whose address is not "
		"known: "
		"%s",
		launch_name(launch->kind), launch->master, gai_strerror(rc));
}

void door_close(struct door *door)
{
	for (int i = 0; i < door->count; i++)
		close(door->fds[i]);
	door->count = 0;
}
