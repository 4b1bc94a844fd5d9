/* The interfaces that are used are those that NCCL would use. */
#include "net/iface.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/param.h"
#include "test.h"

static struct iface all[16];
static uint32_t all_count;

static void add(const char *name, const char *address, uint32_t bits)
{
	struct iface *iface = &all[all_count++];
	bool is_v6 = strchr(address, ':');

	*iface = (struct iface){.prefix_bits = bits};
	snprintf(iface->name, sizeof(iface->name), "%s", name);
	iface->is_loopback = !strcmp(name, "lo");
	iface->addr.family = is_v6 ? ADDR_IPV6 : ADDR_IPV4;
	EQ(inet_pton(is_v6 ? AF_INET6 : AF_INET, address, iface->addr.bytes), 1);
}

/* A host with a control network, two for data, and what Docker and libvirt make. */
static void host_make(void)
{
	all_count = 0;
	add("lo", "127.0.0.1", 8);
	add("docker0", "172.17.0.1", 16);
	add("eth0", "10.77.0.1", 24);
	add("eth1", "10.77.1.1", 24);
	add("eth2", "10.77.2.129", 25);
	add("virbr0", "192.168.122.1", 24);
	add("lo", "::1", 128);
	add("eth0", "fe80::1", 64);
	add("eth0", "fd77::1", 64);
	add("eth1", "fd77:1::1", 64);
	add("tun6", "fe80::2", 64);
}

static void chosen(const struct iface_wish *wish, const char *expected)
{
	struct iface ifaces[IFACES_MAX];
	uint32_t count = iface_choose(all, all_count, wish, ifaces);
	char text[IFACES_MAX * ADDR_LOG_BYTES] = "", each[ADDR_LOG_BYTES];

	for (uint32_t i = 0; i < count; i++) {
		iface_print(&ifaces[i], each);
		strcat(text, each);
	}
	EQ_STR(text, expected);
}

static void named(const char *names, int family, const char *expected)
{
	chosen(&(struct iface_wish){.names = names, .family = family}, expected);
}

static void names_are_obeyed(void)
{
	host_make();
	named("eth1", 0, "eth1:10.77.1.1<0>");
	named("eth", 0, "eth0:10.77.0.1<0>eth1:10.77.1.1<0>eth2:10.77.2.129<0>");
	named("=eth", 0, "");
	named("=eth2,eth0", 0, "eth0:10.77.0.1<0>eth2:10.77.2.129<0>");
	named("^eth,docker,virbr", 0, "lo:127.0.0.1<0>");
	named("^=eth0,lo,docker0,virbr0", 0, "eth1:10.77.1.1<0>eth2:10.77.2.129<0>");
	/* loopback, which such a list does not name either, is of no use beside others */
	named("^docker0", 0,
		"eth0:10.77.0.1<0>eth1:10.77.1.1<0>eth2:10.77.2.129<0>virbr0:192.168.122."
		"1<0>");
	named("lo,eth1", 0, "eth1:10.77.1.1<0>");
	named("=lo", 0, "lo:127.0.0.1<0>");
	named("eth", ADDR_IPV6, "eth0:fd77::1<0>eth1:fd77:1::1<0>");
	named("tun", 0, "");
}

static void order_is_nccls(void)
{
	struct addr near = {.family = ADDR_IPV4};

	host_make();
	named(NULL, 0, "eth0:10.77.0.1<0>eth1:10.77.1.1<0>eth2:10.77.2.129<0>");
	named(NULL, ADDR_IPV6, "eth0:fd77::1<0>eth1:fd77:1::1<0>");
	EQ(inet_pton(AF_INET, "10.77.2.200", near.bytes), 1);
	chosen(&(struct iface_wish){.near = &near}, "eth2:10.77.2.129<0>");
	EQ(inet_pton(AF_INET, "10.77.2.100", near.bytes), 1); /* the other half */
	chosen(&(struct iface_wish){.near = &near},
		"eth0:10.77.0.1<0>eth1:10.77.1.1<0>eth2:10.77.2.129<0>");
	add("ib0", "10.78.0.1", 16);
	chosen(&(struct iface_wish){.near = &near}, "ib0:10.78.0.1<0>");
	all_count = 2;
	named(NULL, 0, "docker0:172.17.0.1<0>");
	all_count = 1;
	named(NULL, 0, "lo:127.0.0.1<0>");
	all_count = 0;
	named(NULL, 0, "");
}

static void set(const char *name, enum param param, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
	param_forget(param);
}

/* On this machine, whatever it is: every one has a loopback. */
static void machine_has_some(void)
{
	struct iface ifaces[IFACES_MAX];
	char why[IFACE_NONE_BYTES];
	uint32_t count = 99;

	EQ(iface_list(IFACE_DATA, ifaces, &count), OK);
	TRUE(count > 0 && count <= IFACES_MAX);
	TRUE(ifaces[0].speed_mbps > 0);
	set("NCCL_SOCKET_IFNAME", PARAM_SOCKET_IFNAME, "=lo");
	EQ(iface_list(IFACE_CONTROL, ifaces, &count), OK);
	EQ(count, 1);
	EQ_STR(ifaces[0].name, "lo");
	TRUE(ifaces[0].is_loopback && addr_is_loopback(&ifaces[0].addr));
	set("NCCL_OOB_NET_IFNAME", PARAM_OOB_NET_IFNAME, "nowhere");
	EQ(iface_list(IFACE_CONTROL, ifaces, &count), OK);
	EQ(count, 0);
	iface_none(IFACE_CONTROL, why);
	TRUE(strstr(why, "NCCL_OOB_NET_IFNAME=nowhere chooses no interface"));
	TRUE(strstr(why, "there are: "));
	EQ(iface_list(IFACE_DATA, ifaces, &count), OK);
	EQ(count, 1);
	set("NCCL_SOCKET_IFNAME", PARAM_SOCKET_IFNAME, NULL);
	set("NCCL_OOB_NET_IFNAME", PARAM_OOB_NET_IFNAME, NULL);
}

int main(void)
{
	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	names_are_obeyed();
	order_is_nccls();
	machine_has_some();
	return 0;
}
