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
		return err_set(ERR_ARGUMENT, "NCCL_COMM_ID %s is not address:port", text);
	*port = (unsigned)strtoul(colon + 1, NULL, 10);
	if (*port < 1 || *port > 65535)
		return err_set(ERR_ARGUMENT, "NCCL_COMM_ID %s: no port %u", text, *port);
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

enum err addr_parse(const char *text, struct addr *addr)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	struct addr fresh = {0};
	char host[HOST_BYTES];
	unsigned port = 0;
	enum err e = text_split(text, host, &port);
	int rc;

	if (e)
		return e;
	rc = getaddrinfo(host, NULL, &hints, &found);
	if (rc)
		return err_set(
			ERR_ARGUMENT, "NCCL_COMM_ID %s: %s", text, gai_strerror(rc));
	fresh.port = htons((uint16_t)port);
	if (found->ai_family == AF_INET) {
		struct sockaddr_in v4;

		memcpy(&v4, found->ai_addr, sizeof(v4));
		fresh.family = ADDR_IPV4;
		memcpy(fresh.bytes, &v4.sin_addr, 4);
	} else {
		struct sockaddr_in6 v6;

		memcpy(&v6, found->ai_addr, sizeof(v6));
		fresh.family = ADDR_IPV6;
		fresh.scope = v6.sin6_scope_id;
		memcpy(fresh.bytes, &v6.sin6_addr, 16);
	}
	freeaddrinfo(found);
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

enum err addr_listen(const struct addr *addr, int *fd)
{
	char text[ADDR_TEXT_BYTES];
	union sockaddrs at;
	socklen_t bytes = sockaddr_fill(addr, &at);
	int made = socket_make(&at), one = 1, saved;

	addr_print(addr, text);
	if (made < 0)
		return err_set(ERR_SYSTEM, "no socket to listen at %s: %m", text);
	/* The last meeting's connections may still be in TIME_WAIT. */
	if (addr->family != ADDR_UNIX)
		setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(made, &at.any, bytes) && !listen(made, SOMAXCONN)) {
		*fd = made;
		return OK;
	}
	saved = errno;
	close(made);
	if (saved == EADDRINUSE)
		return ERR_AGAIN;
	errno = saved;
	return err_set(ERR_SYSTEM, "listen at %s: %m", text);
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
