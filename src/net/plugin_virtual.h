/*
 * plugin_virtual.h - ports of one card as one device, where a network plugin can join
 * them.
 */
#ifndef NET_PLUGIN_VIRTUAL_H
#define NET_PLUGIN_VIRTUAL_H

#include "net/plugin_speak.h"

/* Have a plugin of version 9 or later join those of its `count` devices that are ports of
 * one card, as NCCL does, unless NCCL_NET_MERGE_LEVEL is LOC; how many devices there are
 * to choose from afterwards. Once for each file: joined devices are the process's. */
int plugin_ports_join(
	struct plugin_file *file, const struct net_plugin *plugin, int count);

#endif
