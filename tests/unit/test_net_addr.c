/* Only an address that can be listened on exactly is taken. */
#include "net/addr.h"

#include <arpa/inet.h>

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
	return 0;
}
