/*
 * plugin_start.h - start a network plugin for a communicator, and not wait for ever: for
 * the plugin*.c files alone.
 */
#ifndef NET_PLUGIN_START_H
#define NET_PLUGIN_START_H

#include "net/plugin_speak.h"

/* NULL, with a warning, when it does not start, has no device or does not come back
 * within WEFT_PLUGIN_SEC. One thread at a time. */
struct net_plugin *net_plugin_start(
	struct plugin_file *file, const struct net_plugin_args *args);

/* What is wrong with a device as it describes it; NULL: nothing. */
const char *plugin_device_judge(const struct plugin_device *device);

#endif
