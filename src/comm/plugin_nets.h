/*
 * plugin_nets.h - the devices of a network plugin, as the topology has network devices.
 *
 * Where a plugin is named (NCCL_NET_PLUGIN), NCCL asks it which devices there are, and
 * not the machine; so do the wiring of a communicator and `weft topo`.
 */
#ifndef COMM_PLUGIN_NETS_H
#define COMM_PLUGIN_NETS_H

struct nets_seen;

struct net_plugin;

/* For struct discover_args. NULL when no plugin is named or none works, which the log
 * says; free() it. */
struct nets_seen *plugin_nets_look(void);

/* The same of a plugin that is open. */
struct nets_seen *plugin_nets_of(const struct net_plugin *plugin);

#endif
