/* Only an address that can be listened on exactly is taken. */
#include "net/addr.h"

#include <arpa/inet.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/param.h"
#include "net/auth.h"
#include "test.h"

static void good(const char *text, enum addr_family family, int port)
{
	char again[ADDR_TEXT_BYTES];
	struct addr addr;

	EQ(addr_parse(text, &addr), OK);
	EQ(addr.family, family);
	EQ(ntohs(addr.port), port);
	addr_print(&addr, again);
	EQ_STR(again, text);
}

static void set(const char *name, enum param param, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	param_forget(param);
}

/* A port that is free, or one of a few; two never get the same. */
static void ports_are_found(void)
{
	struct addr any, bound, second, third;
	int fds[4];

	EQ(addr_parse("127.0.0.1:1", &any), OK);
	any.port = 0;
	EQ(addr_listen(&any, &fds[0], &bound), OK);
	TRUE(bound.port != 0);
	EQ(addr_listen(&bound, &fds[1], NULL), ERR_AGAIN);
	close(fds[0]);
	EQ(addr_listen(&bound, &fds[0], &second), OK);
	EQ(bound.port, second.port);
	set("WEFT_PORT_RANGE", PARAM_PORT_RANGE, "30011-30012");
	EQ(addr_listen(&any, &fds[1], &second), OK);
	EQ(addr_listen(&any, &fds[2], &third), OK);
	EQ(ntohs(second.port) + ntohs(third.port), 30011 + 30012);
	EQ(addr_listen(&any, &fds[3], &third), ERR_SYSTEM);
	TRUE(strstr(err_last(), "ports 30011 to 30012 (WEFT_PORT_RANGE)"));
	set("WEFT_PORT_RANGE", PARAM_PORT_RANGE, "30012-30011");
	EQ(addr_listen(&any, &fds[3], &third), ERR_ARGUMENT);
	set("WEFT_PORT_RANGE", PARAM_PORT_RANGE, NULL);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
}

/* Only who is asked for is reached, unless the user wants to be reached anyhow. */
static void listens_where_told(void)
{
	for (int is_any = 0; is_any < 2; is_any++) {
		struct addr here, other, bound;
		int listener, fd, got, status;

		set("WEFT_LISTEN_ANY", PARAM_LISTEN_ANY, is_any ? "1" : NULL);
		EQ(addr_parse("127.0.0.1:1", &here), OK);
		here.port = 0;
		EQ(addr_listen(&here, &listener, &bound), OK);
		EQ(addr_accept(listener, &got), EAGAIN);
		other = bound;
		other.bytes[3] = 2; /* 127.0.0.2 is this host, too */
		status = addr_connect(&other, &fd);
		while (status == EINPROGRESS)
			status = addr_connected(fd);
		EQ(status, is_any ? 0 : ECONNREFUSED);
		close(fd);
		if (is_any) {
			EQ(addr_accept(listener, &got), 0);
			close(got);
		}
		close(listener);
	}
	set("WEFT_LISTEN_ANY", PARAM_LISTEN_ANY, NULL);
}

static void family_is_obeyed(void)
{
	struct addr addr;

	set("NCCL_SOCKET_FAMILY", PARAM_SOCKET_FAMILY, "AF_INET6");
	EQ(addr_parse("127.0.0.1:80", &addr), ERR_ARGUMENT);
	EQ(addr_parse("[::1]:80", &addr), OK);
	set("NCCL_SOCKET_FAMILY", PARAM_SOCKET_FAMILY, "AF_INET");
	EQ(addr_parse("[::1]:80", &addr), ERR_ARGUMENT);
	EQ(addr_parse("localhost:80", &addr), OK);
	EQ(addr.family, ADDR_IPV4);
	TRUE(addr_is_loopback(&addr));
	set("NCCL_SOCKET_FAMILY", PARAM_SOCKET_FAMILY, NULL);
}

int main(void)
{
	static const char *const bad[] = {"", ":", "1.2.3.4", "1.2.3.4:", ":80",
		"1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:123456", "1.2.3.4:-1",
		"1.2.3.4:+1", "1.2.3.4:80x", "1.2.3.4: 80", "::1:80", "[::1:80",
		"[::1]80", "[]:80", "0.0.0.0:80", "[::]:80", "224.0.0.1:80",
		"255.255.255.255:80", "[ff02::1]:80", "1.2.3.256:80x"};
	struct addr addr = {.port = 7};

	good("127.0.0.1:80", ADDR_IPV4, 80);
	good("10.1.2.3:65535", ADDR_IPV4, 65535);
	good("[::1]:1", ADDR_IPV6, 1);
	good("[2001:db8::5]:5000", ADDR_IPV6, 5000);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (addr_parse(bad[i], &addr) != ERR_ARGUMENT)
			EQ_STR(bad[i], "refused");
		EQ(addr.port, 7); /* untouched */
	}
	EQ(auth_init(), OK);
	ports_are_found();
	listens_where_told();
	family_is_obeyed();
	return 0;
}
