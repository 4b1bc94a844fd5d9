/*
 * spy.h - somebody between a client and its server: passes everything on and keeps a copy
 * of what the first of them to connect says and hears.
 */
#ifndef UNIT_SPY_H
#define UNIT_SPY_H

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

struct spy {
	int listener;
	uint16_t port; /* of the root */
	pthread_t thread;
	unsigned char bytes[1 << 16];
	size_t count;
};

static inline int port_connect(uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = port};
	int fd;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (;;) { /* until the root is there */
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (!connect(fd, (struct sockaddr *)&at, sizeof(at)))
			return fd;
		close(fd);
		usleep(1000);
	}
}

static inline void *spy_run(void *argument)
{
	struct spy *spy = argument;
	int ends[2] = {accept(spy->listener, NULL, NULL), port_connect(spy->port)};

	for (;;) {
		struct pollfd polls[2] = {{.fd = ends[0], .events = POLLIN},
			{.fd = ends[1], .events = POLLIN}};

		poll(polls, 2, -1);
		for (int i = 0; i < 2; i++) {
			unsigned char *to = spy->bytes + spy->count;
			ssize_t n = 0;

			if (!polls[i].revents)
				continue;
			n = recv(ends[i], to, sizeof(spy->bytes) - spy->count, 0);
			if (n <= 0 ||
				send(ends[1 - i], to, (size_t)n, MSG_NOSIGNAL) != n) {
				close(ends[0]);
				close(ends[1]);
				return NULL;
			}
			spy->count += (size_t)n;
		}
	}
}

static inline uint16_t spy_start(struct spy *spy, uint16_t port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	spy->port = port;
	spy->count = 0;
	spy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EQ(bind(spy->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	EQ(listen(spy->listener, 1), 0);
	EQ(getsockname(spy->listener, (struct sockaddr *)&at, &bytes), 0);
	EQ(pthread_create(&spy->thread, NULL, spy_run, spy), 0);
	return at.sin_port;
}

#endif
