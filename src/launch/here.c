#include "launch/here.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>

static bool addr_of(const struct ifaddrs *entry, struct addr *addr)
{
	int family = entry->ifa_addr ? entry->ifa_addr->sa_family : AF_UNSPEC;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	*addr = (struct addr){0};
	if (!(entry->ifa_flags & IFF_UP))
		return false;
	if (family == AF_INET) {
		memcpy(&v4, entry->ifa_addr, sizeof(v4));
		addr->family = ADDR_IPV4;
		memcpy(addr->bytes, &v4.sin_addr, 4);
	} else if (family == AF_INET6) {
		memcpy(&v6, entry->ifa_addr, sizeof(v6));
		addr->family = ADDR_IPV6;
		addr->scope = v6.sin6_scope_id;
		memcpy(addr->bytes, &v6.sin6_addr, 16);
	}
	return addr->family;
}

void here_read(struct here *here)
{
	struct ifaddrs *list = NULL;

	here->count = 0;
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *entry = list; entry && here->count < HERE_ADDRS;
		entry = entry->ifa_next)
		here->count += addr_of(entry, &here->addrs[here->count]);
	freeifaddrs(list);
}

bool here_is_loopback(const struct addr *addr)
{
	static const unsigned char one[16] = {[15] = 1};

	return addr->family == ADDR_IPV4 ? addr->bytes[0] == 127
					 : !memcmp(addr->bytes, one, sizeof(one));
}

bool here_has(const struct here *here, const struct addr *addr)
{
	for (int i = 0; i < here->count; i++)
		if (here->addrs[i].family == addr->family &&
			!memcmp(here->addrs[i].bytes, addr->bytes, sizeof(addr->bytes)))
			return true;
	return addr->family == ADDR_IPV4 && here_is_loopback(addr);
}
