#include "net/plugin_speak.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/param.h"

enum {
	/* of versions that do not say, and of those that would take more at once */
	MESSAGE_BYTES_MAX = 1 << 30,
	TAG = 0 /* tags tell receives of one group apart; ours are alone */
};

bool speak_is_whole(const struct plugin_file *file)
{
	const struct plugin_abi *abi = file->abi;

	return abi->init.v6 && abi->devices && abi->properties && abi->listen.v6 &&
	       abi->connect.v6 && abi->accept.v6 && abi->reg.v6 && abi->dereg &&
	       abi->isend.v6 && abi->irecv.v6 && abi->test && abi->close_send &&
	       abi->close_recv && abi->close_listen;
}

static _Atomic(plugin_event *) heard_by;

void net_plugins_tell(plugin_event *event)
{
	atomic_store(&heard_by, event);
}

/* Plugins keep its address, and may have started before anybody listens. */
static int event_tell(void **event, int kind, void *parent, int64_t plugin, void *details)
{
	plugin_event *tell = atomic_load(&heard_by);

	return tell ? tell(event, kind, parent, plugin, details) : 0;
}

int speak_init(struct net_plugin *plugin, uint64_t comm)
{
	const struct plugin_abi *abi = plugin->file->abi;
	struct plugin_wish wish = {.traffic_class = PLUGIN_TRAFFIC_ANY};

	if (plugin->file->version >= 11)
		return abi->init.v11(
			&plugin->context, comm, &wish, plugin_says, event_tell);
	if (plugin->file->version == 10)
		return abi->init.v10(plugin_says, event_tell);
	return abi->init.v6(plugin_says);
}

int speak_end(struct net_plugin *plugin)
{
	const struct plugin_abi *abi = plugin->file->abi;

	if (plugin->file->version < 11 || !abi->finalize)
		return 0;
	return abi->finalize(plugin->context);
}

static void text_keep(char *to, size_t room, const char *text)
{
	snprintf(to, room, "%s", text ? text : "");
}

static void device_keep_v6(
	const struct plugin_props_v6 *props, struct plugin_device *device)
{
	text_keep(device->name, sizeof(device->name), props->who.name);
	text_keep(device->pci_path, sizeof(device->pci_path), props->who.pci_path);
	device->guid = props->who.guid;
	device->memory = props->memory;
	device->speed_mbps = props->link.speed_mbps;
	device->port = props->link.port;
	device->latency_us = props->link.latency_us;
	device->comms_max = props->link.comms_max;
	device->recvs_max = props->link.recvs_max;
}

static void device_keep_v8(
	const struct plugin_props_v8 *props, struct plugin_device *device)
{
	const struct plugin_props_v6 old = {
		.who = props->who, .memory = props->memory, .link = props->link};

	device_keep_v6(&old, device);
	device->is_reg_global = props->is_reg_global;
}

/* 9 to 11 and 12 differ in how many parts there may be, and in what follows them. */
static void device_keep_v12(
	const struct plugin_props_v12 *props, struct plugin_device *device)
{
	const struct plugin_props_v8 old = {.who = props->who,
		.memory = props->memory,
		.is_reg_global = props->is_reg_global,
		.link = props->link};

	device_keep_v8(&old, device);
	device->must_flush = props->must_flush;
	device->part_count = props->part_count;
	device->message_bytes_max = props->message_bytes_max;
	device->rail = props->rail;
	device->plane = props->plane;
}

static void device_keep_v11(
	const struct plugin_props_v11 *props, struct plugin_device *device)
{
	struct plugin_props_v12 more = {.rail = -1, .plane = -1};

	memcpy(&more, props, offsetof(struct plugin_props_v11, part_count));
	more.part_count = props->part_count;
	more.message_bytes_max = props->message_bytes_max;
	device_keep_v12(&more, device);
}

static void device_bound(struct plugin_device *device)
{
	if (!device->message_bytes_max || device->message_bytes_max > MESSAGE_BYTES_MAX)
		device->message_bytes_max = MESSAGE_BYTES_MAX;
}

void speak_device_keep(const struct plugin_props_v12 *props, struct plugin_device *device)
{
	device_keep_v12(props, device);
	device_bound(device);
}

int speak_number(const struct net_plugin *plugin, int index)
{
	const struct plugin_file *file = plugin->file;

	if (!file->devices)
		return index;
	return index < file->device_count ? file->devices[index] : -1;
}

/* Versions before 12 have room for fewer parts, and nothing behind them. */
int speak_join(const struct net_plugin *plugin, const int *parts, int count, int *device)
{
	struct {
		int count, parts[PLUGIN_PARTS_MAX];
	} joined = {.count = count};

	memcpy(joined.parts, parts, (size_t)count * sizeof(*parts));
	return plugin->file->abi->make_virtual(device, &joined);
}

int speak_device(const struct net_plugin *plugin, int index, struct plugin_device *device)
{
	/* a plugin may be built for properties that have grown since */
	union {
		struct plugin_props_v6 v6;
		struct plugin_props_v8 v8;
		struct plugin_props_v11 v11;
		struct plugin_props_v12 v12;
		char spare[1024];
	} props;
	struct plugin_device kept = {.part_count = 1, .rail = -1, .plane = -1};
	int version = plugin->file->version;
	int result;

	memset(&props, 0, sizeof(props));
	result = plugin->file->abi->properties(speak_number(plugin, index), &props);
	if (result)
		return result;
	if (version <= 7)
		device_keep_v6(&props.v6, &kept);
	else if (version == 8)
		device_keep_v8(&props.v8, &kept);
	else if (version <= 11)
		device_keep_v11(&props.v11, &kept);
	else
		device_keep_v12(&props.v12, &kept);
	device_bound(&kept);
	*device = kept;
	return 0;
}

int speak_listen(const struct net_plugin *plugin, void *handle, void **listener)
{
	const struct plugin_abi *abi = plugin->file->abi;

	if (plugin->file->version >= 11)
		return abi->listen.v11(plugin->context,
			speak_number(plugin, plugin->device_index), handle, listener);
	return abi->listen.v6(
		speak_number(plugin, plugin->device_index), handle, listener);
}

int speak_connect(const struct net_plugin *plugin, void *handle, void **sender)
{
	const struct plugin_abi *abi = plugin->file->abi;
	struct plugin_wish wish = {.traffic_class = PLUGIN_TRAFFIC_ANY};
	int device = speak_number(plugin, plugin->device_index),
	    version = plugin->file->version;
	void *in_gpu = NULL;

	if (version >= 11)
		return abi->connect.v11(plugin->context, device, handle, sender, &in_gpu);
	if (version == 10)
		return abi->connect.v10(device, &wish, handle, sender, &in_gpu);
	if (version >= 7)
		return abi->connect.v7(device, handle, sender, &in_gpu);
	return abi->connect.v6(device, handle, sender);
}

int speak_accept(const struct net_plugin *plugin, void *listener, void **receiver)
{
	const struct plugin_abi *abi = plugin->file->abi;
	void *in_gpu = NULL;

	if (plugin->file->version >= 7)
		return abi->accept.v7(listener, receiver, &in_gpu);
	return abi->accept.v6(listener, receiver);
}

static int reg_plainly(const struct net_plugin *plugin, void *comm,
	const struct speak_memory *memory, void **known)
{
	const struct plugin_abi *abi = plugin->file->abi;
	int kind = memory->gpu ? PLUGIN_CUDA : PLUGIN_HOST;

	if (plugin->file->version >= 8)
		return abi->reg.v8(comm, memory->data, memory->bytes, kind, known);
	return abi->reg.v6(comm, memory->data, (int)memory->bytes, kind, known);
}

bool speak_has_dmabuf(const struct net_plugin *plugin)
{
	return plugin->device.memory & PLUGIN_DMABUF && plugin->file->abi->reg_dmabuf;
}

/* A GPU's memory by its dma-buf, where both know of that, else by its address. */
int speak_reg(const struct net_plugin *plugin, void *comm,
	const struct speak_memory *memory, void **known)
{
	int result = ERR_SYSTEM, fd = -1;
	uint64_t offset = 0;

	if (memory->gpu && speak_has_dmabuf(plugin) &&
		memory->gpu->dmabuf(memory->data, memory->bytes, &fd, &offset)) {
		result = plugin->file->abi->reg_dmabuf(comm, memory->data, memory->bytes,
			PLUGIN_CUDA, offset, fd, known);
		close(fd);
	}
	if (!result || (memory->gpu && !(plugin->device.memory & PLUGIN_CUDA)))
		return result;
	return reg_plainly(plugin, comm, memory, known);
}

bool speak_must_flush(const struct net_plugin *plugin, const struct net_gpu *gpu)
{
	return (gpu->needs_flush || plugin->device.must_flush) &&
	       !param_int(PARAM_GDR_FLUSH_DISABLE);
}

int speak_send(const struct net_plugin *plugin, const struct speak_message *message,
	void **request)
{
	const struct plugin_abi *abi = plugin->file->abi;
	int version = plugin->file->version;

	*request = NULL;
	if (version >= 10)
		return abi->isend.v10(message->comm, message->data, message->bytes, TAG,
			message->known, message->told, request);
	if (version == 9)
		return abi->isend.v9(message->comm, message->data, message->bytes, TAG,
			message->known, request);
	return abi->isend.v6(message->comm, message->data, (int)message->bytes, TAG,
		message->known, request);
}

int speak_recv(const struct net_plugin *plugin, const struct speak_message *message,
	void **request)
{
	const struct plugin_abi *abi = plugin->file->abi;
	int version = plugin->file->version, old_bytes = (int)message->bytes, tag = TAG;
	void *data = message->data, *known = message->known, *event = message->told;
	size_t bytes = message->bytes;

	*request = NULL;
	if (version >= 10)
		return abi->irecv.v10(
			message->comm, 1, &data, &bytes, &tag, &known, &event, request);
	if (version == 9)
		return abi->irecv.v9(
			message->comm, 1, &data, &bytes, &tag, &known, request);
	return abi->irecv.v6(message->comm, 1, &data, &old_bytes, &tag, &known, request);
}

int speak_flush(const struct net_plugin *plugin, const struct speak_message *message,
	void **request)
{
	void *data = message->data, *known = message->known;
	int bytes = (int)message->bytes;

	*request = NULL;
	return plugin->file->abi->iflush(
		message->comm, 1, &data, &bytes, &known, request);
}
