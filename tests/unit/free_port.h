#ifndef FREE_PORT_H
#define FREE_PORT_H

/* Ports for tests that name one in advance. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT_FIRST = 20000, PORT_COUNT = 12000 };

/* Can the loopback's `port` be listened at? */
static inline int port_is_free(int family, int port)
{
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_addr = in6addr_loopback,
		.sin6_port = htons((uint16_t)port)};
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port)};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int rc = -1;

	if (fd < 0)
		return 0;
	if (family == AF_INET)
		rc = bind(fd, (const struct sockaddr *)&v4, sizeof(v4));
	else
		rc = bind(fd, (const struct sockaddr *)&v6, sizeof(v6));
	close(fd);
	return !rc;
}

/* A port at which nobody listens now; below 32768, so that the system gives it to nobody
   who connects meanwhile. Every process and every call looks from another place on. 0
   where there is none, as for IPv6 on a host without. */
static inline int port_find(int family)
{
	static unsigned calls;
	unsigned from = (unsigned)getpid() * 37u + calls++ * 7919u;

	for (unsigned i = 0; i < PORT_COUNT; i++) {
		int port = PORT_FIRST + (int)((from + i) % PORT_COUNT);

		if (port_is_free(family, port))
			return port;
	}
	return 0;
}

#endif
