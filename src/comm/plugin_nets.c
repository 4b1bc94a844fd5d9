#include "comm/plugin_nets.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"
#include "net/plugin.h"
#include "net/plugin_abi.h"
#include "topo/nets.h"

/* The bus id that a path in sysfs ends in; "" when there is no such device here. */
static void busid_find(const char *pci_path, char busid[SEEN_BUSID_BYTES])
{
	char *real = pci_path[0] ? realpath(pci_path, NULL) : NULL;
	const char *last = real ? strrchr(real, '/') : NULL;
	unsigned domain, bus, device, function;
	char rest;

	busid[0] = '\0';
	if (last && strlen(last + 1) < SEEN_BUSID_BYTES &&
		sscanf(last + 1, "%x:%x:%x.%x%c", &domain, &bus, &device, &function,
			&rest) == 4)
		snprintf(busid, SEEN_BUSID_BYTES, "%s", last + 1);
	free(real);
}

/* What a plugin says is not to be trusted: numbers below zero are none. */
static int64_t positive(int64_t value)
{
	return value > 0 ? value : 0;
}

static void net_take(const struct plugin_device *device, struct net_seen *net)
{
	snprintf(net->name, sizeof(net->name), "%s", device->name);
	busid_find(device->pci_path, net->busid);
	net->port = (int)positive(device->port);
	net->speed_mbps = positive(device->speed_mbps);
	net->guid = device->guid;
	/* also what is no number */
	net->latency_us = device->latency_us > 0 && device->latency_us < 1e6f
				  ? device->latency_us
				  : 0;
	net->connections_max = (int)positive(device->comms_max);
	net->gdr = (device->memory & (PLUGIN_CUDA | PLUGIN_DMABUF)) != 0;
}

static uint32_t nets_take(const struct net_plugin *plugin, struct nets_seen *nets)
{
	int count = net_plugin_device_count(plugin);

	for (int i = 0; i < count && nets->count < NETS_MAX; i++) {
		struct plugin_device device;

		if (net_plugin_look(plugin, i, &device))
			log_info(LOG_NET | LOG_GRAPH, "%s: it is not in the topology",
				err_last());
		else
			net_take(&device, &nets->nets[nets->count++]);
	}
	return nets->count;
}

struct nets_seen *plugin_nets_of(const struct net_plugin *plugin)
{
	struct nets_seen *nets = calloc(1, sizeof(*nets));

	if (nets && !nets_take(plugin, nets)) {
		free(nets);
		nets = NULL;
	}
	if (nets)
		log_info(LOG_NET | LOG_GRAPH,
			"%u devices of the network plugin %s are "
			"in the topology",
			nets->count, net_plugin_name(plugin));
	return nets;
}

struct nets_seen *plugin_nets_look(void)
{
	const struct net_plugin_args args = {.network = param_text(PARAM_NET)};
	struct net_plugin *plugin = NULL;
	struct nets_seen *nets;

	if (!param_text(PARAM_NET_PLUGIN) || net_plugin_open(&args, &plugin) || !plugin)
		return NULL;
	nets = plugin_nets_of(plugin);
	net_plugin_close(plugin);
	return nets;
}
