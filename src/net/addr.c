#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/param.h"
#include "net/auth.h"

enum { HOST_BYTES = 256 };

union sockaddrs {
	struct sockaddr any;
	struct sockaddr_un local;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

void addr_random(struct addr *addr)
{
	*addr = (struct addr){.family = ADDR_UNIX};
	auth_random(addr->bytes, sizeof(addr->bytes));
}

/* "weft-" and the name in hex, for people who read /proc/net/unix. */
static void name_print(const struct addr *addr, char text[ADDR_TEXT_BYTES])
{
	int used = snprintf(text, ADDR_TEXT_BYTES, "weft-");

	for (size_t i = 0; i < sizeof(addr->bytes); i++)
		used += snprintf(text + used, ADDR_TEXT_BYTES - (size_t)used, "%02x",
			addr->bytes[i]);
}

static socklen_t sockaddr_fill(const struct addr *addr, union sockaddrs *out)
{
	memset(out, 0, sizeof(*out));
	if (addr->family == ADDR_IPV4) {
		out->v4.sin_family = AF_INET;
		out->v4.sin_port = addr->port;
		memcpy(&out->v4.sin_addr, addr->bytes, 4);
		return sizeof(out->v4);
	}
	if (addr->family == ADDR_IPV6) {
		out->v6.sin6_family = AF_INET6;
		out->v6.sin6_port = addr->port;
		out->v6.sin6_scope_id = addr->scope;
		memcpy(&out->v6.sin6_addr, addr->bytes, 16);
		return sizeof(out->v6);
	}
	/* A name that begins with a zero byte is abstract: no file, gone with the socket.
	 */
	char name[ADDR_TEXT_BYTES];
	size_t bytes;

	name_print(addr, name);
	bytes = strlen(name);
	out->local.sun_family = AF_UNIX;
	memcpy(out->local.sun_path + 1, name, bytes);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
}

/* The same to listen at, which the user may want on all of the host's addresses. */
static socklen_t sockaddr_listen(const struct addr *addr, union sockaddrs *out)
{
	socklen_t bytes = sockaddr_fill(addr, out);

	if (!param_int(PARAM_LISTEN_ANY))
		return bytes;
	if (addr->family == ADDR_IPV4)
		out->v4.sin_addr.s_addr = htonl(INADDR_ANY);
	if (addr->family == ADDR_IPV6)
		out->v6.sin6_addr = in6addr_any;
	return bytes;
}

void addr_print(const struct addr *addr, char text[ADDR_TEXT_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";
	unsigned port = ntohs(addr->port);

	if (addr->family == ADDR_UNIX) {
		name_print(addr, text);
	} else if (addr->family == ADDR_IPV4) {
		inet_ntop(AF_INET, addr->bytes, host, sizeof(host));
		snprintf(text, ADDR_TEXT_BYTES, "%s:%u", host, port);
	} else {
		inet_ntop(AF_INET6, addr->bytes, host, sizeof(host));
		snprintf(text, ADDR_TEXT_BYTES, "[%s]:%u", host, port);
	}
}

/* Is this interface's address ours? */
static bool is_at(const struct ifaddrs *entry, const struct addr *addr)
{
	const void *bytes;

	if (!entry->ifa_addr)
		return false;
	if (entry->ifa_addr->sa_family == AF_INET && addr->family == ADDR_IPV4)
		bytes = &((const struct sockaddr_in *)(const void *)entry->ifa_addr)
				 ->sin_addr;
	else if (entry->ifa_addr->sa_family == AF_INET6 && addr->family == ADDR_IPV6)
		bytes = &((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)
				 ->sin6_addr;
	else
		return false;
	return !memcmp(bytes, addr->bytes, addr->family == ADDR_IPV4 ? 4 : 16);
}

/* The interface that has the address, or "?". */
static void interface_find(const struct addr *addr, char name[IF_NAMESIZE])
{
	struct ifaddrs *list = NULL;

	snprintf(name, IF_NAMESIZE, "?");
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next)
		if (is_at(entry, addr)) {
			snprintf(name, IF_NAMESIZE, "%s", entry->ifa_name);
			break;
		}
	freeifaddrs(list);
}

void addr_print_log(const struct addr *addr, char text[ADDR_LOG_BYTES])
{
	char name[IF_NAMESIZE] = "unix", host[ADDR_TEXT_BYTES] = "?";

	if (addr->family == ADDR_UNIX) {
		name_print(addr, host);
	} else {
		interface_find(addr, name);
		inet_ntop(addr->family == ADDR_IPV4 ? AF_INET : AF_INET6, addr->bytes,
			host, sizeof(host));
	}
	snprintf(text, ADDR_LOG_BYTES, "%s:%s<%u>", name, host, ntohs(addr->port));
}

/* Split `host:port` or `[host]:port`; the port is 1 to 65535 in plain digits. */
static enum err text_split(const char *text, char host[HOST_BYTES], unsigned *port)
{
	const char *colon = strrchr(text, ':');
	size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
	size_t bytes = colon ? (size_t)(colon - text) : 0;

	if (!bytes || bytes >= HOST_BYTES || !digits || digits > 5 || colon[1 + digits])
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s is not address:port, as in 10.0.0.1:4000", text);
	*port = (unsigned)strtoul(colon + 1, NULL, 10);
	if (*port < 1 || *port > 65535)
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s: there is no port %u, only 1 to 65535", text,
			*port);
	if (text[0] == '[') {
		if (bytes < 3 || text[bytes - 1] != ']')
			return err_set(
				ERR_ARGUMENT, "NCCL_COMM_ID %s: no closing ]", text);
		text++;
		bytes -= 2;
	} else if (memchr(text, ':', bytes)) {
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s: write an IPv6 address as [address]:port", text);
	}
	memcpy(host, text, bytes);
	host[bytes] = '\0';
	return OK;
}

/* Nobody can be reached at a wildcard, and listening there opens every interface. */
static enum err addr_refuse_odd(const char *text, const struct addr *addr)
{
	static const unsigned char zeros[16];
	bool is_v4 = addr->family == ADDR_IPV4;

	if (!memcmp(addr->bytes, zeros, sizeof(zeros)))
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s is a wildcard; name the address to listen on",
			text);
	if ((is_v4 && addr->bytes[0] >= 224) || (!is_v4 && addr->bytes[0] == 0xff))
		return err_set(
			ERR_ARGUMENT, "NCCL_COMM_ID %s is a multicast address", text);
	return OK;
}

bool addr_is_loopback(const struct addr *addr)
{
	if (addr->family == ADDR_IPV4)
		return addr->bytes[0] == 127;
	return addr->family == ADDR_IPV6 &&
	       IN6_IS_ADDR_LOOPBACK((const struct in6_addr *)(const void *)addr->bytes);
}

int addr_family_wanted(void)
{
	const char *text = param_text(PARAM_SOCKET_FAMILY);

	if (text && !strcmp(text, "AF_INET"))
		return ADDR_IPV4;
	return text && !strcmp(text, "AF_INET6") ? ADDR_IPV6 : 0;
}

bool addr_from_system(const struct sockaddr *from, struct addr *addr)
{
	union sockaddrs any;

	*addr = (struct addr){0};
	if (from->sa_family == AF_INET) {
		memcpy(&any.v4, from, sizeof(any.v4));
		addr->family = ADDR_IPV4;
		addr->port = any.v4.sin_port;
		memcpy(addr->bytes, &any.v4.sin_addr, 4);
		return true;
	}
	if (from->sa_family != AF_INET6)
		return false;
	memcpy(&any.v6, from, sizeof(any.v6));
	addr->family = ADDR_IPV6;
	addr->port = any.v6.sin6_port;
	addr->scope = any.v6.sin6_scope_id;
	memcpy(addr->bytes, &any.v6.sin6_addr, 16);
	return true;
}

/* A host may have its own name at loopback, too, where nobody else finds it. */
static bool found_choose(const struct addrinfo *found, struct addr *addr)
{
	int family = addr_family_wanted();
	bool is_any = false;

	for (; found; found = found->ai_next) {
		struct addr each;

		if (!addr_from_system(found->ai_addr, &each) ||
			(family && each.family != family))
			continue;
		if (!is_any || !addr_is_loopback(&each))
			*addr = each;
		is_any = true;
		if (!addr_is_loopback(&each))
			return true;
	}
	return is_any;
}

enum err addr_parse(const char *text, struct addr *addr)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	struct addr fresh = {0};
	char host[HOST_BYTES];
	unsigned port = 0;
	enum err e = text_split(text, host, &port);
	bool is_found;
	int rc;

	if (e)
		return e;
	rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc)
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s: no address is known here for %s (%s); give the "
			"host of rank 0 by its address, or by a name that all hosts know",
			text, host, gai_strerror(rc));
	is_found = found_choose(found, &fresh);
	freeaddrinfo(found);
	if (!is_found)
		return err_set(ERR_ARGUMENT,
			"NCCL_COMM_ID %s: it has no address that NCCL_SOCKET_FAMILY "
			"allows",
			text);
	fresh.port = htons((uint16_t)port);
	e = addr_refuse_odd(text, &fresh);
	if (!e)
		*addr = fresh;
	return e;
}

static int socket_make(const union sockaddrs *to)
{
	int one = 1;
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	/* Small messages, one after the other: never wait to fill a packet. */
	if (fd >= 0 && to->any.sa_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* A socket that listens at `at`: 0 or the errno. */
static int listen_at(const union sockaddrs *at, socklen_t bytes, int *fd)
{
	int made = socket_make(at), one = 1, saved;

	if (made < 0)
		return errno;
	/* The last meeting's connections may still be in TIME_WAIT. */
	if (at->any.sa_family != AF_UNIX)
		setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(made, &at->any, bytes) && !listen(made, SOMAXCONN)) {
		*fd = made;
		return 0;
	}
	saved = errno;
	close(made);
	return saved;
}

/* WEFT_PORT_RANGE. Without one, port 0 lets the system choose. */
static enum err ports_read(uint32_t *first, uint32_t *count)
{
	const char *text = param_text(PARAM_PORT_RANGE);
	unsigned low = 0, high = 0;
	int used = 0;

	*first = 0;
	*count = 1;
	if (!text)
		return OK;
	if (sscanf(text, "%5u-%5u%n", &low, &high, &used) != 2 || text[used] || !low ||
		high < low || high > 65535)
		return err_set(ERR_ARGUMENT,
			"WEFT_PORT_RANGE %s is not first-last, two ports from 1 to 65535",
			text);
	*first = low;
	*count = high - low + 1;
	return OK;
}

/* Try the ports of the range, from any of them on, so that processes that start together
 * seldom ask for the same. */
static enum err listen_in_range(struct addr *addr, int *fd)
{
	uint32_t first, count, begin;
	union sockaddrs at;
	int status = EADDRINUSE;
	char text[ADDR_TEXT_BYTES];
	enum err e = ports_read(&first, &count);

	if (e)
		return e;
	auth_random(&begin, sizeof(begin));
	for (uint32_t i = 0; i < count && status == EADDRINUSE; i++) {
		addr->port = htons((uint16_t)(first + (begin + i) % count));
		status = listen_at(&at, sockaddr_listen(addr, &at), fd);
	}
	if (!status)
		return OK;
	addr->port = 0;
	addr_print(addr, text);
	errno = status;
	return first ? err_set(ERR_SYSTEM,
			       "listen at %s, ports %u to %u (WEFT_PORT_RANGE): %m%s",
			       text, first, first + count - 1,
			       status == EADDRINUSE ? "; give a wider range" : "")
		     : err_set(ERR_SYSTEM, "listen at %s: %m", text);
}

/* The port that the system has chosen. */
static enum err port_ask(int fd, struct addr *addr)
{
	union sockaddrs at;
	socklen_t bytes = sizeof(at);
	struct addr found;

	memset(&at, 0, sizeof(at));
	if (getsockname(fd, &at.any, &bytes) || !addr_from_system(&at.any, &found))
		return err_set(ERR_SYSTEM, "getsockname: %m");
	addr->port = found.port;
	return OK;
}

enum err addr_listen(const struct addr *addr, int *fd, struct addr *bound)
{
	struct addr here = *addr;
	char text[ADDR_TEXT_BYTES];
	union sockaddrs at;
	int made = -1, status;
	enum err e = OK;

	if (addr->family != ADDR_UNIX && !addr->port) {
		e = listen_in_range(&here, &made);
		if (!e)
			e = port_ask(made, &here);
	} else {
		status = listen_at(&at, sockaddr_listen(addr, &at), &made);
		if (status == EADDRINUSE)
			return ERR_AGAIN;
		addr_print(addr, text);
		errno = status;
		if (status)
			e = err_set(ERR_SYSTEM, "listen at %s: %m", text);
	}
	if (e) {
		if (made >= 0)
			close(made);
		return e;
	}
	*fd = made;
	if (bound)
		*bound = here;
	return OK;
}

int addr_accept(int listener, int *fd)
{
	int one = 1;

	do
		*fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	while (*fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (*fd < 0)
		return errno;
	/* does nothing to a Unix socket */
	setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

int addr_connect(const struct addr *addr, int *fd)
{
	union sockaddrs to;
	socklen_t bytes = sockaddr_fill(addr, &to);

	*fd = socket_make(&to);
	if (*fd < 0)
		return errno;
	if (!connect(*fd, &to.any, bytes))
		return 0;
	/* An interrupted connect goes on by itself. */
	return errno == EINTR ? EINPROGRESS : errno;
}

int addr_connected(int fd)
{
	socklen_t bytes = sizeof(int);
	int status = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &status, &bytes) ? errno : status;
}
