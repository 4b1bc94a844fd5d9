#include "detour.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "relay.h"

enum { REACH_MS = 1000 };

static const struct relay *relay;
static int process;

void detour_join(const struct relay *joined, int as_process)
{
	process = as_process;
	relay = joined;
}

void detour_strike(void)
{
	if (relay)
		relay_strike(relay);
}

/* What stands behind the program's own functions; threads may look at the same time. */
static void *real_find(const char *name, void *_Atomic *kept)
{
	void *found = atomic_load(kept);

	if (!found) {
		found = dlsym(RTLD_NEXT, name);
		atomic_store(kept, found);
	}
	return found;
}

static int real_connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	static void *_Atomic kept;
	void *found = real_find("connect", &kept);
	__typeof__(&connect) function;

	memcpy(&function, &found, sizeof(function));
	return function(fd, to, bytes);
}

static int real_listen(int fd, int backlog)
{
	static void *_Atomic kept;
	void *found = real_find("listen", &kept);
	__typeof__(&listen) function;

	memcpy(&function, &found, sizeof(function));
	return function(fd, backlog);
}

int detour_listen(int fd, int backlog)
{
	struct relay_page *page = relay ? relay->page : NULL;
	struct sockaddr_in at = {0};
	socklen_t bytes = sizeof(at);
	int rc = real_listen(fd, backlog);

	if (rc || !page || getsockname(fd, (struct sockaddr *)&at, &bytes) ||
		at.sin_family != AF_INET)
		return rc;
	atomic_store(
		&page->listener_of[ntohs(at.sin_port)], (unsigned char)(process + 1));
	atomic_store(
		&page->listens[atomic_fetch_add(&page->listen_count, 1) % RELAY_LISTENS],
		at.sin_port);
	return rc;
}

/* The outward socket: 0, or the errno that the caller is to get. */
static int reach(const struct sockaddr_in *to, int *out)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t bytes = sizeof(int);
	int status = fd < 0 ? errno : 0;

	if (fd < 0)
		return status;
	if (real_connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		status = errno;
	if (status == EINPROGRESS) {
		/* who does not even take a call is reached later, or never */
		status = poll(&ready, 1, REACH_MS) < 0 ? errno : 0;
		if (!status && getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &bytes))
			status = errno;
	}
	if (status)
		close(fd);
	else
		*out = fd;
	return status;
}

/* By its port the relay knows whose it is. */
static uint16_t port_take(int fd)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(at);

	(void)bind(fd, (const struct sockaddr *)&at, sizeof(at)); /* or it is already */
	return getsockname(fd, (struct sockaddr *)&at, &bytes) ? 0 : at.sin_port;
}

static int introduce(const struct detour_intro *intro, int out)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec body = {(void *)(uintptr_t)intro, sizeof(*intro)};
	struct msghdr message = {.msg_iov = &body,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control)};

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SCM_RIGHTS;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &out, sizeof(out));
	return sendmsg(relay->intro[0], &message, MSG_NOSIGNAL) < 0 ? errno : 0;
}

int detour_connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	const struct sockaddr_in *wanted = (const void *)to;
	struct sockaddr_in here = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct detour_intro intro = {.from = process};
	int out = -1, status;

	if (!relay || to->sa_family != AF_INET ||
		ntohl(wanted->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return real_connect(fd, to, bytes);
	status = reach(wanted, &out);
	if (!status) {
		intro.port = port_take(fd);
		intro.to = atomic_load(
				   &relay->page->listener_of[ntohs(wanted->sin_port)]) -
			   1;
		status = introduce(&intro, out);
		close(out);
	}
	if (status) {
		errno = status;
		return -1;
	}
	here.sin_port = relay->port;
	return real_connect(fd, (const struct sockaddr *)&here, sizeof(here));
}
