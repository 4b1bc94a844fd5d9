/* For a program that takes over nothing else: what it connects to goes by the relay. */
#include "detour.h"

#define SEEN __attribute__((visibility("default")))

SEEN int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	return detour_connect(fd, to, bytes);
}

SEEN int listen(int fd, int backlog)
{
	return detour_listen(fd, backlog);
}
