#include "topo/nets.h"

#include <ifaddrs.h>
#include <linux/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ifname.h"
#include "base/param.h"

enum {
	SPEED_DEFAULT_MBPS = 10000, /* NCCL's when an interface does not say */
	SOCKET_CONNECTIONS = 65536,
	IB_CONNECTIONS = 131072, /* queue pairs of a ConnectX; sysfs does not tell */
	EFA_CONNECTIONS = 262144,
	PORTS_MAX = 16
};

static struct net_seen *net_add(struct nets_seen *nets, const char *name)
{
	struct net_seen *net;

	if (nets->count == NETS_MAX)
		return NULL;
	net = &nets->nets[nets->count++];
	*net = (struct net_seen){0};
	snprintf(net->name, sizeof(net->name), "%s", name);
	return net;
}

/* "1070:fd03:00d6:505c": NCCL keeps the bytes as they come from the wire, so on our
 * machines the first is the lowest. */
static uint64_t guid_parse(const char *text)
{
	unsigned words[4];
	uint64_t guid = 0;

	if (sscanf(text, "%4x:%4x:%4x:%4x", &words[0], &words[1], &words[2], &words[3]) !=
		4)
		return 0;
	for (int i = 3; i >= 0; i--)
		guid = guid << 16 | (words[i] & 0xff) << 8 | words[i] >> 8;
	return guid;
}

/* Can an RDMA device register GPU memory? Through the driver's own module, or through
 * dma-buf, which NVIDIA's open kernel module offers. */
static bool gdr_is_there(const struct seen *seen, const char *device)
{
	static const char *const files[] = {"module/nvidia_peermem/version",
		"kernel/mm/memory_peers/nv_mem/version",
		"kernel/mm/memory_peers/nv_mem_nc/version"};
	char text[256];
	FILE *file;
	bool is_open;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (seen_text(seen, text, sizeof(text), "%s", files[i]))
			return true;
	if (seen_text(seen, text, sizeof(text), "class/infiniband/%s/device/p2p", device))
		return true;
	file = seen_is_here(seen) ? fopen("/proc/driver/nvidia/version", "re") : NULL;
	if (!file)
		return false;
	is_open = fgets(text, sizeof(text), file) && strstr(text, "Open Kernel Module");
	fclose(file);
	return is_open;
}

/* NCCL folds the functions of a card, physical and virtual, into function 0. Where that
 * one is not visible the device loses its place. */
static void ib_busid(const struct seen *seen, struct net_seen *net)
{
	char busid[SEEN_BUSID_BYTES];
	struct seen_pci pci;
	size_t bytes;

	if (!seen_busid(seen, busid, "class/infiniband/%s/device", net->name))
		return;
	bytes = strlen(busid);
	busid[bytes - 1] = busid[bytes - 3] = busid[bytes - 4] = '0';
	if (seen_pci(seen, busid, &pci))
		memcpy(net->busid, busid, sizeof(net->busid));
}

/* Ports of one card that are separate devices get separate numbers. */
static int ib_port(const struct nets_seen *nets, const struct net_seen *net, int port)
{
	for (uint32_t i = 0; i < nets->count; i++)
		if (&nets->nets[i] != net && net->busid[0] &&
			!strcmp(nets->nets[i].busid, net->busid))
			port++;
	return port;
}

static bool port_is_active(const struct seen *seen, const char *device, int port)
{
	char text[SEEN_TEXT_BYTES];

	return seen_text(seen, text, sizeof(text), "class/infiniband/%s/ports/%d/state",
		       device, port) &&
	       strtol(text, NULL, 10) == 4;
}

static int64_t port_speed(const struct seen *seen, const char *device, int port)
{
	char text[SEEN_TEXT_BYTES];
	float gbps = 0;

	if (seen_text(seen, text, sizeof(text), "class/infiniband/%s/ports/%d/rate",
		    device, port))
		gbps = strtof(text, NULL);
	return gbps > 0 && gbps < 1e6f ? (int64_t)(gbps * 1000) : SPEED_DEFAULT_MBPS;
}

static bool is_efa(const struct seen *seen, const char *device)
{
	char text[SEEN_TEXT_BYTES];

	return seen_text(seen, text, sizeof(text), "class/infiniband/%s/device/vendor",
		       device) &&
	       !strcmp(text, "0x1d0f");
}

/* What the libfabric plugin declares, by the name of the machine. */
static int efa_latency(const struct seen *seen)
{
	static const char *const slow = "p3dn.24xlarge";
	static const char *const fast[] = {"p5en", "p6", "p7", "g7e"};
	char name[SEEN_TEXT_BYTES];

	if (!seen_text(seen, name, sizeof(name), "devices/virtual/dmi/id/product_name"))
		return 75;
	if (!strcmp(name, slow))
		return 150;
	for (size_t i = 0; i < sizeof(fast) / sizeof(*fast); i++)
		if (!strncmp(name, fast[i], strlen(fast[i])))
			return 35;
	return 75;
}

static void port_look(const struct seen *seen, const char *device, int port,
	struct nets_seen *nets, struct discover_report *report)
{
	bool efa = is_efa(seen, device);
	char text[SEEN_TEXT_BYTES];
	struct net_seen *net;

	if (!port_is_active(seen, device, port)) {
		report_add(report, "port %d of %s is not active and is left out", port,
			device);
		return;
	}
	net = net_add(nets, device);
	if (!net)
		return;
	net->speed_mbps = port_speed(seen, device, port);
	if (seen_text(seen, text, sizeof(text), "class/infiniband/%s/%s", device,
		    efa ? "node_guid" : "sys_image_guid"))
		net->guid = guid_parse(text);
	net->gdr = gdr_is_there(seen, device);
	net->connections_max = efa ? EFA_CONNECTIONS : IB_CONNECTIONS;
	if (efa) {
		net->latency_us = (float)efa_latency(seen);
		net->port = port;
		if (!seen_busid(seen, net->busid, "class/infiniband/%s/device", device))
			net->busid[0] = '\0';
		report_add(report,
			"EFA devices are listed one by one; where several serve one GPU "
			"the libfabric plugin shows NCCL one device for them together");
	} else {
		ib_busid(seen, net);
		net->port = ib_port(nets, net, port);
	}
	if (!net->gdr)
		report_add(report,
			"%s cannot reach GPU memory: neither nvidia_peermem nor NVIDIA's "
			"open kernel module is loaded",
			device);
}

static void rdma_look(const struct seen *seen, struct seen_names *names,
	struct nets_seen *nets, struct discover_report *report)
{
	const char *wanted = param_text(PARAM_IB_HCA);

	seen_list(seen, "class/infiniband", names);
	for (uint32_t i = 0; i < names->count; i++) {
		const char *device = names->names[i];

		for (int port = 1; port <= PORTS_MAX; port++) {
			char text[SEEN_TEXT_BYTES];

			if (!seen_text(seen, text, sizeof(text),
				    "class/infiniband/%s/ports/%d/state", device, port))
				break;
			if (wanted && !ifname_chosen(wanted, device, port))
				continue;
			port_look(seen, device, port, nets, report);
		}
	}
}

static void name_add(struct seen_names *names, const char *name)
{
	for (uint32_t i = 0; i < names->count; i++)
		if (!strcmp(names->names[i], name))
			return;
	if (names->count < SEEN_NAMES_MAX && strlen(name) < SEEN_TEXT_BYTES)
		snprintf(names->names[names->count++], SEEN_TEXT_BYTES, "%s", name);
}

/* Interfaces that run and have an address, in the kernel's order. */
static void interfaces_here(struct seen_names *names)
{
	struct ifaddrs *list;

	names->count = 0;
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
		if (!at->ifa_addr || !(at->ifa_flags & IFF_RUNNING) ||
			(at->ifa_addr->sa_family != AF_INET &&
				at->ifa_addr->sa_family != AF_INET6))
			continue;
		if (at->ifa_addr->sa_family == AF_INET6 && at->ifa_flags & IFF_LOOPBACK)
			continue;
		name_add(names, at->ifa_name);
	}
	freeifaddrs(list);
}

static void interfaces_look(const struct seen *seen, struct seen_names *names)
{
	uint32_t kept = 0;

	if (seen_is_here(seen)) {
		interfaces_here(names);
		return;
	}
	seen_list(seen, "class/net", names);
	for (uint32_t i = 0; i < names->count; i++) {
		char text[SEEN_TEXT_BYTES];

		if (!seen_text(seen, text, sizeof(text), "class/net/%s/operstate",
			    names->names[i]) ||
			!strcmp(text, "down"))
			continue;
		memmove(names->names[kept++], names->names[i], SEEN_TEXT_BYTES);
	}
	names->count = kept;
}

static void socket_add(const struct seen *seen, const char *name, struct nets_seen *nets)
{
	struct net_seen *net = net_add(nets, name);
	char text[SEEN_TEXT_BYTES];

	if (!net)
		return;
	if (seen_text(seen, text, sizeof(text), "class/net/%s/speed", name))
		net->speed_mbps = strtol(text, NULL, 10);
	if (net->speed_mbps <= 0 || net->speed_mbps > 100000000)
		net->speed_mbps = SPEED_DEFAULT_MBPS;
	net->guid = nets->count - 1;
	net->connections_max = SOCKET_CONNECTIONS;
	if (!seen_busid(seen, net->busid, "class/net/%s/device", name))
		net->busid[0] = '\0';
}

/* NCCL tries these in turn until one chooses something. */
static void sockets_look(
	const struct seen *seen, struct seen_names *names, struct nets_seen *nets)
{
	const char *wanted = param_text(PARAM_SOCKET_IFNAME);
	const char *list = wanted ? wanted : ifname_turn(0);

	interfaces_look(seen, names);
	for (uint32_t turn = 1; list && !nets->count; turn++) {
		for (uint32_t i = 0; i < names->count && nets->count < NETS_SOCKETS_MAX;
			i++)
			if (ifname_chosen(list, names->names[i], 0))
				socket_add(seen, names->names[i], nets);
		list = wanted ? NULL : ifname_turn(turn);
	}
}

void nets_look(
	const struct seen *seen, struct nets_seen *nets, struct discover_report *report)
{
	struct seen_names *names = malloc(sizeof(*names));

	nets->count = 0;
	if (!names) {
		report_add(report, "no memory to list network devices");
		return;
	}
	if (!param_int(PARAM_IB_DISABLE))
		rdma_look(seen, names, nets, report);
	if (!nets->count) {
		sockets_look(seen, names, nets);
		if (nets->count)
			report_add(report, "no RDMA device: the network is sockets");
	}
	if (!nets->count)
		report_add(report, "no network device: other hosts cannot be reached");
	report->net_count = nets->count;
	free(names);
}
