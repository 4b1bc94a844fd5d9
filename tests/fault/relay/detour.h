/*
 * detour.h - a process's way into the relay: its connections to 127.0.0.0/8 go there.
 *
 * Who listens at a port, and whether anybody does, is as without a relay: a process that
 * has ended refuses a call. A program has these either by detour_own.c, which defines
 * connect() and listen(), or by definitions of its own that end here.
 */
#ifndef RELAY_DETOUR_H
#define RELAY_DETOUR_H

#include <stdint.h>
#include <sys/socket.h>

struct relay;

/* From now on, as this process of the job; borrowed. */
void detour_join(const struct relay *relay, int process);

/* The trouble begins: see relay_strike(). Without a relay nothing happens. */
void detour_strike(void);

int detour_connect(int fd, const struct sockaddr *to, socklen_t bytes);
int detour_listen(int fd, int backlog);

/* What travels with the outward socket. */
struct detour_intro {
	uint16_t port; /* of the inward socket, in network order */
	int from, to;  /* processes; -1: unknown */
};

#endif
