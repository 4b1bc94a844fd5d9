/*
 * plugin_speak.h - one way to speak to a network plugin, whatever its version: for the
 * plugin*.c files alone.
 *
 * Nothing here logs or judges: results are the plugin's own, 0 for success.
 */
#ifndef NET_PLUGIN_SPEAK_H
#define NET_PLUGIN_SPEAK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "net/plugin.h"
#include "net/plugin_abi.h"

/* A shared object that was loaded. There is one for each file, and it stays. */
struct plugin_file {
	const struct plugin_abi *abi; /* in the library */
	int version;
	char name[PLUGIN_NAME_BYTES]; /* as the plugin calls itself */
	char asked[PLUGIN_ASKED_BYTES];
	bool is_started; /* of versions that start once in a process */
	int start_result;
	_Atomic(const char *) doing; /* the function that is called to start it */
	bool is_stuck;		     /* .. and has not returned */
	/* Its numbers of the devices that are used; owned for ever, NULL: all as they
	 * come. Set when it starts first (plugin_virtual.h). */
	int *devices;
	int device_count;
};

/* A plugin as one communicator has it. */
struct net_plugin {
	const struct plugin_file *file; /* borrowed: it is never unloaded */
	void *context;			/* the plugin's, from version 11 on */
	struct plugin_device device;	/* the one that this rank uses */
	int device_index, device_count;
	struct plugin_kept *kept; /* owned (plugin_kept.h) */
};

/* Does it have all functions that we call? */
bool speak_is_whole(const struct plugin_file *file);

int speak_init(struct net_plugin *plugin, uint64_t comm);
int speak_end(struct net_plugin *plugin);
int speak_device(
	const struct net_plugin *plugin, int index, struct plugin_device *device);
/* What a device says of itself, as one-sided plugins say it, too. */
void speak_device_keep(
	const struct plugin_props_v12 *props, struct plugin_device *device);
/* Its number of the device that is our index-th. */
int speak_number(const struct net_plugin *plugin, int index);
/* One device of several, from version 9 on. */
int speak_join(const struct net_plugin *plugin, const int *parts, int count, int *device);
int speak_listen(const struct net_plugin *plugin, void *handle, void **listener);
int speak_connect(const struct net_plugin *plugin, void *handle, void **sender);
int speak_accept(const struct net_plugin *plugin, void *listener, void **receiver);

/* Memory to tell a connection of. `bytes` is no more than the device's
 * message_bytes_max. */
struct speak_memory {
	void *data;
	size_t bytes;
	const struct net_gpu *gpu; /* whose it is; NULL: the host's */
};
int speak_reg(const struct net_plugin *plugin, void *comm,
	const struct speak_memory *memory, void **known);

/* A message and the connection it goes by. */
struct speak_message {
	void *comm;
	void *data;
	size_t bytes;
	void *known; /* of `data` */
	void *told;  /* whose event it is, from version 10 on; NULL: nobody's */
};
int speak_send(const struct net_plugin *plugin, const struct speak_message *message,
	void **request);
int speak_recv(const struct net_plugin *plugin, const struct speak_message *message,
	void **request);
/* Does it take a GPU's memory as a dma-buf? */
bool speak_has_dmabuf(const struct net_plugin *plugin);
/* Has what is received into this GPU's memory to be flushed? */
bool speak_must_flush(const struct net_plugin *plugin, const struct net_gpu *gpu);
/* What was received into a GPU's memory is seen by it once this is done; no request: it
 * is. */
int speak_flush(const struct net_plugin *plugin, const struct speak_message *message,
	void **request);

#endif
