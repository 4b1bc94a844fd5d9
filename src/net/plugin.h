/*
 * plugin.h - NCCL's network plugins: shared objects that carry bytes between hosts.
 *
 * NCCL_NET_PLUGIN has a list of them, each a file or the suffix of libnccl-net-SUFFIX.so;
 * unset it is libnccl-net.so, if there is one. Of each the newest version that it speaks
 * is used, 12 down to 6. A plugin that fails to start is warned of and left alone.
 *
 * A plugin knows nothing of our keys. So the first message on each of its connections is
 * the claim, with a tag under the key and over the nonce of the listener that it is made
 * for; who sends another first message is not let in. That the other end is who it should
 * be follows from the handle, which came through the meeting. The messages themselves
 * have no tags: who wants that uses encryption, which sockets alone have.
 */
#ifndef NET_PLUGIN_H
#define NET_PLUGIN_H

#include "base/plugin_file.h"
#include "net/net.h"
#include "net/plugin_abi.h"

struct net_plugin;

/* What a plugin says of a device. */
struct plugin_device {
	char name[64];
	char pci_path[256]; /* in sysfs; "" where it does not say */
	uint64_t guid;
	int memory; /* enum plugin_memory, or-ed */
	bool is_reg_global, must_flush;
	int speed_mbps, port;
	float latency_us;
	int comms_max, recvs_max;
	int part_count;	 /* real devices that it consists of */
	int rail, plane; /* -1: not said */
	size_t message_bytes_max;
};

struct net_plugin_args {
	uint64_t comm;	/* the same for all its ranks, and for no other */
	uint32_t local; /* of the ranks of this host: which device it takes at first */
	const char *network; /* what the user calls it, in any case; NULL: any */
};

/* The first of the plugins that works. OK and NULL: there is none, or sockets are wanted.
 * ERR_USAGE when the user names a network that is not there. */
enum err net_plugin_open(const struct net_plugin_args *args, struct net_plugin **plugin);
void net_plugin_close(struct net_plugin *plugin); /* NULL is fine */

const char *net_plugin_name(const struct net_plugin *plugin);
/* What it was asked for by, in NCCL_NET_PLUGIN or without. */
const char *net_plugin_asked(const struct net_plugin *plugin);
/* Of files that network plugins are looked for in. */
extern const struct plugin_kind net_plugin_kind;
int net_plugin_version(const struct net_plugin *plugin);

/* What there is to know of a GPU for messages that lie in its memory. */
struct net_gpu {
	/* A descriptor of the memory as a dma-buf, the caller's to close, and where in it
	 * `data` is. False: there is none. */
	bool (*dmabuf)(const void *data, size_t bytes, int *fd, uint64_t *offset);
	/* Plugins may ask the driver of memory that they are told of: whoever calls them
	 * works in the GPU's context from now on. Cheap when it does. NULL: no need. */
	void (*enter)(void *context);
	void *context;
	bool needs_flush; /* it may read old bytes after a card has told of new ones */
};

/* Why messages cannot lie there, in words; NULL: they can. */
const char *net_plugin_gpu_refusal(
	const struct net_plugin *plugin, const struct net_gpu *gpu);

/* What is sent or received next by this end lies in a GPU's memory, which only the plugin
 * touches. `gpu` is borrowed until that is over. */
void net_plugin_in_gpu(struct net_end *end, const struct net_gpu *gpu);

/* Would the plugin be given this memory? Where it refuses, the log has a sentence. By an
 * end that has carried a message. */
bool net_plugin_try_gpu(
	struct net_end *end, const struct net_gpu *gpu, void *data, size_t bytes);

/* A call has failed for good: if this end has messages under way, it is closed and can do
 * nothing any more, so that the plugin writes no more where they lie. NULL is fine. */
void net_plugin_rest(struct net_end *end);

/* Memory that is not given back before it is forgotten is made known to the plugin once
 * for each connection, instead of for each message. Kept twice it is forgotten twice. */
enum err net_plugin_keep(struct net_plugin *plugin, void *data, size_t bytes);
void net_plugin_forget(struct net_plugin *plugin, void *data, size_t bytes);

/* Other pages are under these addresses, or none: what plugins know of them is void. For
 * all plugins of the process. */
void net_plugins_pages_replaced(const void *data, size_t bytes);

/* Have this called by plugins that tell what they do with a message (version 10 and
 * later); its parent is what net_ops.tell() has named that message by. For all plugins of
 * the process; NULL: nobody listens. */
void net_plugins_tell(plugin_event *event);

/* Another device than the one it was opened with, before it listens or connects. That one
 * stays, with a sentence, where the other cannot be used. */
enum err net_plugin_use(struct net_plugin *plugin, int index);

/* The device it is used by, and any of those there are (from 0). */
const struct plugin_device *net_plugin_device(const struct net_plugin *plugin);
int net_plugin_device_count(const struct net_plugin *plugin);
enum err net_plugin_look(
	const struct net_plugin *plugin, int index, struct plugin_device *device);

/* The network of a plugin that listen's and connect's args name. */
extern const struct net_ops net_by_plugin;

#endif
