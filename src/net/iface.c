#include "net/iface.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/ifname.h"
#include "base/log.h"
#include "base/param.h"

enum { ALL_MAX = 256 };

static bool is_link_local(const struct addr *addr)
{
	return addr->family == ADDR_IPV6 && addr->bytes[0] == 0xfe &&
	       (addr->bytes[1] & 0xc0) == 0x80;
}

static uint32_t bits_count(const struct sockaddr *mask)
{
	struct addr addr;
	uint32_t bits = 0;

	if (!mask || !addr_from_system(mask, &addr))
		return 0;
	for (size_t i = 0; i < sizeof(addr.bytes); i++)
		bits += (uint32_t)__builtin_popcount(addr.bytes[i]);
	return bits;
}

static int64_t speed_read(const char *name)
{
	char path[64], text[32];
	int64_t speed = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", name);
	file = fopen(path, "re");
	if (file && fgets(text, sizeof(text), file))
		speed = strtol(text, NULL, 10);
	if (file)
		fclose(file);
	/* -1, and some drivers' idea of it, means that it does not know */
	return speed > 0 && speed < 100000000 ? speed : IFACE_SPEED_DEFAULT_MBPS;
}

/* Every address of every interface that runs, in the kernel's order. */
static enum err all_read(struct iface *all, uint32_t *count)
{
	struct ifaddrs *list = NULL;

	*count = 0;
	if (getifaddrs(&list))
		return err_set(ERR_SYSTEM, "cannot list network interfaces: %m");
	for (const struct ifaddrs *at = list; at && *count < ALL_MAX; at = at->ifa_next) {
		struct iface *iface = &all[*count];

		if (!at->ifa_addr || !(at->ifa_flags & IFF_RUNNING) ||
			!addr_from_system(at->ifa_addr, &iface->addr))
			continue;
		snprintf(iface->name, sizeof(iface->name), "%s", at->ifa_name);
		iface->prefix_bits = bits_count(at->ifa_netmask);
		iface->is_loopback = at->ifa_flags & IFF_LOOPBACK;
		iface->speed_mbps = 0;
		*count += 1;
	}
	freeifaddrs(list);
	return OK;
}

static bool is_near(const struct iface *iface, const struct addr *near)
{
	uint32_t bytes = iface->prefix_bits / 8, rest = iface->prefix_bits % 8;
	unsigned char mask = (unsigned char)(0xff00u >> rest);

	if (!near || near->family != iface->addr.family || !iface->prefix_bits)
		return false;
	if (memcmp(iface->addr.bytes, near->bytes, bytes))
		return false;
	return !rest || !((iface->addr.bytes[bytes] ^ near->bytes[bytes]) & mask);
}

/* One address per interface, the first that may be used. */
static bool is_usable(const struct iface *iface, const struct iface_wish *wish,
	const struct iface *chosen, uint32_t count)
{
	if ((wish->family && iface->addr.family != wish->family) ||
		is_link_local(&iface->addr))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(chosen[i].name, iface->name))
			return false;
	return count < IFACES_MAX;
}

/* Those of a list of names; without one, those in the network of `wish->near`. */
static uint32_t turn_take(const struct iface *all, uint32_t all_count,
	const struct iface_wish *wish, const char *list, struct iface *ifaces)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < all_count; i++) {
		bool is_meant = list ? ifname_chosen(list, all[i].name, 0)
				     : is_near(&all[i], wish->near);

		if (is_meant && is_usable(&all[i], wish, ifaces, count))
			ifaces[count++] = all[i];
	}
	return count;
}

/* No other host comes by loopback. `^docker0` does not name it, so it is among what is
 * left, and first; it counts where there is nothing else. */
static uint32_t loopback_drop(struct iface *ifaces, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!ifaces[i].is_loopback)
			ifaces[kept++] = ifaces[i];
	return kept ? kept : count;
}

uint32_t iface_choose(const struct iface *all, uint32_t all_count,
	const struct iface_wish *wish, struct iface *ifaces)
{
	uint32_t count = 0;

	if (wish->names) {
		count = turn_take(all, all_count, wish, wish->names, ifaces);
		return loopback_drop(ifaces, count);
	}
	for (uint32_t turn = 0; ifname_turn(turn) && !count; turn++) {
		if (turn == IFNAME_TURNS_FIRST)
			count = turn_take(all, all_count, wish, NULL, ifaces);
		if (!count)
			count = turn_take(
				all, all_count, wish, ifname_turn(turn), ifaces);
	}
	return count;
}

static const char *names_wanted(enum iface_use use)
{
	const char *own = use == IFACE_CONTROL ? param_text(PARAM_OOB_NET_IFNAME) : NULL;

	return own ? own : param_text(PARAM_SOCKET_IFNAME);
}

/* All addresses in a list of its own, for the caller to free. */
static enum err all_get(struct iface **all, uint32_t *count)
{
	enum err e;

	*all = calloc(ALL_MAX, sizeof(**all));
	if (!*all)
		return err_set(ERR_SYSTEM, "no memory to list network interfaces");
	e = all_read(*all, count);
	if (e)
		free(*all);
	return e;
}

enum err iface_list(enum iface_use use, struct iface *ifaces, uint32_t *count)
{
	const char *near = param_text(PARAM_COMM_ID);
	struct iface_wish wish = {
		.names = names_wanted(use), .family = addr_family_wanted()};
	struct iface *all;
	struct addr met;
	uint32_t all_count;
	enum err e = all_get(&all, &all_count);

	if (e)
		return e;
	if (near && !wish.names && !addr_parse(near, &met))
		wish.near = &met;
	*count = iface_choose(all, all_count, &wish, ifaces);
	for (uint32_t i = 0; i < *count; i++)
		ifaces[i].speed_mbps = speed_read(ifaces[i].name);
	free(all);
	return OK;
}

void iface_none(enum iface_use use, char text[IFACE_NONE_BYTES])
{
	static const struct iface_wish every = {.names = "^"};
	bool is_own = use == IFACE_CONTROL && param_text(PARAM_OOB_NET_IFNAME);
	const char *names = names_wanted(use), *family = param_text(PARAM_SOCKET_FAMILY);
	struct iface there[IFACES_MAX] = {0}, *all;
	uint32_t count = 0, all_count;
	size_t used = 0;

	if (names)
		used += (size_t)snprintf(text + used, IFACE_NONE_BYTES - used,
			"%s=%.60s ",
			is_own ? "NCCL_OOB_NET_IFNAME" : "NCCL_SOCKET_IFNAME", names);
	if (family)
		used += (size_t)snprintf(text + used, IFACE_NONE_BYTES - used,
			"NCCL_SOCKET_FAMILY=%.20s ", family);
	used += (size_t)snprintf(text + used, IFACE_NONE_BYTES - used,
		"%s no interface by which other hosts come; there are:",
		names && family	  ? "choose"
		: names || family ? "chooses"
				  : "there is");
	if (!all_get(&all, &all_count)) {
		count = iface_choose(all, all_count, &every, there);
		free(all);
	}
	for (uint32_t i = 0; i < count && used + IF_NAMESIZE + 3 < IFACE_NONE_BYTES; i++)
		used += (size_t)snprintf(text + used, IFACE_NONE_BYTES - used, "%s %s",
			i ? "," : "", there[i].name);
}

void iface_print(const struct iface *iface, char text[ADDR_LOG_BYTES])
{
	char host[INET6_ADDRSTRLEN] = "?";

	inet_ntop(iface->addr.family == ADDR_IPV4 ? AF_INET : AF_INET6, iface->addr.bytes,
		host, sizeof(host));
	snprintf(text, ADDR_LOG_BYTES, "%s:%s<0>", iface->name, host);
}

void iface_log(const struct iface *ifaces, uint32_t count)
{
	static atomic_bool is_said;
	char text[IFACES_MAX * (ADDR_LOG_BYTES + 8)] = "", each[ADDR_LOG_BYTES];
	size_t used = 0;

	if (!log_is_on(LOG_INFO, LOG_INIT | LOG_NET) || atomic_exchange(&is_said, true))
		return;
	for (uint32_t i = 0; i < count; i++) {
		iface_print(&ifaces[i], each);
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, " [%u]%s", i, each);
	}
	log_info(LOG_INIT | LOG_NET, "NET/Socket : Using%s", text);
}
