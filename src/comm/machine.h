/*
 * machine.h - this machine as a topology has it, looked at once in a process.
 */
#ifndef COMM_MACHINE_H
#define COMM_MACHINE_H

struct net_plugin;
struct xml_node;

/* A copy of its tree, the caller's to free; NULL when it is not known, which the log has
 * said. Network devices are those of the first `plugin` that comes; NULL: of the plugin
 * that is named, or else the machine's. */
struct xml_node *machine_copy(const struct net_plugin *plugin);

#endif
