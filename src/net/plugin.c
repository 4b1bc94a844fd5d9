#include "net/plugin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/param.h"
#include "base/plugin_file.h"
#include "net/plugin_kept.h"
#include "net/plugin_start.h"

enum { FILES_MAX = 16 };

const struct plugin_kind net_plugin_kind = {.file = "net",
	.title = "NET",
	.called = "network plugin",
	.symbol = "ncclNetPlugin_v",
	.newest = PLUGIN_VERSION_MAX,
	.oldest = PLUGIN_VERSION_MIN,
	.param = PARAM_NET_PLUGIN,
	.subsystem = LOG_NET,
	.otherwise = "it is not used"};

/* Every file that was asked for in this process, whether it is a plugin or not. */
struct slot {
	bool is_plugin;
	struct plugin_file file;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct slot *slots[FILES_MAX];			 /* owned for ever */
static uint32_t slot_count;

/* ---- files ---- */

static bool file_load(const char *asked, struct plugin_file *file)
{
	struct plugin_library library;

	if (!plugin_file_load(&net_plugin_kind, asked, &library))
		return false;
	file->abi = library.symbol;
	file->version = library.version;
	snprintf(file->name, sizeof(file->name), "%.63s",
		file->abi->name ? library.name : asked);
	if (!speak_is_whole(file)) {
		plugin_file_refuse(&net_plugin_kind, &library, "lacks a function");
		plugin_file_unload(&library);
		return false;
	}
	log_info(LOG_INIT | LOG_NET, "NET/Plugin: Loaded net plugin %s (v%d)", file->name,
		file->version);
	log_info(LOG_INIT | LOG_NET, "Successfully loaded external network plugin %s",
		asked);
	return true;
}

/* NULL when it is no plugin, or one too many; a file is tried once in a process. With the
 * lock. */
static struct plugin_file *file_get(const char *asked)
{
	struct slot *slot;

	for (uint32_t i = 0; i < slot_count; i++)
		if (!strcmp(slots[i]->file.asked, asked))
			return slots[i]->is_plugin ? &slots[i]->file : NULL;
	slot = slot_count < FILES_MAX ? calloc(1, sizeof(*slot)) : NULL;
	if (!slot) {
		log_warn("no room for the network plugin %s: a process has %d at most",
			asked, FILES_MAX);
		return NULL;
	}
	snprintf(slot->file.asked, sizeof(slot->file.asked), "%s", asked);
	slot->is_plugin = file_load(asked, &slot->file);
	slots[slot_count++] = slot;
	return slot->is_plugin ? &slot->file : NULL;
}

/* ---- which ---- */

static struct net_plugin *file_try(const char *asked, const struct net_plugin_args *args)
{
	struct plugin_file *file = file_get(asked);

	if (!file || (args->network && strcasecmp(args->network, file->name)))
		return NULL;
	return net_plugin_start(file, args);
}

/* Plugins set variables for the library when they start, as NCCL_TOPO_FILE. Not the
 * tuner: ranks compare it when they meet, and not all have started a plugin by then. */
static void environment_changed(void)
{
	param_forget(PARAM_TOPO_FILE);
	param_forget(PARAM_PROTO);
}

enum err net_plugin_open(const struct net_plugin_args *args, struct net_plugin **plugin)
{
	struct plugin_names names = plugin_names(&net_plugin_kind);
	bool is_socket = args->network && !strcasecmp(args->network, net_socket.name);
	struct net_plugin *found = NULL;
	char name[PLUGIN_ASKED_BYTES];

	pthread_mutex_lock(&lock);
	while (!found && !is_socket && plugin_names_next(&net_plugin_kind, &names, name))
		found = file_try(name, args);
	if (found)
		environment_changed();
	pthread_mutex_unlock(&lock);
	if (!found && args->network && !is_socket)
		return err_set(ERR_USAGE,
			"there is no network %s: NCCL_NET or netName asks for it, and no "
			"plugin of NCCL_NET_PLUGIN that works is called so; %s is always "
			"there",
			args->network, net_socket.name);
	*plugin = found;
	return OK;
}

/* ---- one that is open ---- */

void net_plugin_close(struct net_plugin *plugin)
{
	int result;

	if (!plugin)
		return;
	result = speak_end(plugin);
	if (result)
		log_warn("the network plugin %s (v%d) could not end: %s",
			plugin->file->name, plugin->file->version,
			err_name((enum err)result));
	plugin_kept_free(plugin->kept);
	free(plugin);
}

const char *net_plugin_name(const struct net_plugin *plugin)
{
	return plugin->file->name;
}

const char *net_plugin_asked(const struct net_plugin *plugin)
{
	return plugin->file->asked;
}

int net_plugin_version(const struct net_plugin *plugin)
{
	return plugin->file->version;
}

const struct plugin_device *net_plugin_device(const struct net_plugin *plugin)
{
	return &plugin->device;
}

const char *net_plugin_gpu_refusal(
	const struct net_plugin *plugin, const struct net_gpu *gpu)
{
	if (!(plugin->device.memory & PLUGIN_CUDA) && !speak_has_dmabuf(plugin))
		return "the network plugin takes host memory only";
	/* nobody could say when a received message is there */
	if (speak_must_flush(plugin, gpu) && !plugin->file->abi->iflush)
		return "the network plugin has no flush, which this GPU needs";
	return NULL;
}

int net_plugin_device_count(const struct net_plugin *plugin)
{
	return plugin->device_count;
}

enum err net_plugin_use(struct net_plugin *plugin, int index)
{
	struct plugin_device device;
	enum err e = net_plugin_look(plugin, index, &device);
	const char *why = e ? NULL : plugin_device_judge(&device);

	if (why)
		e = err_set(ERR_SYSTEM,
			"device %d of the network plugin %s (v%d) is not used: %s", index,
			plugin->file->name, plugin->file->version, why);
	if (e)
		return e;
	plugin->device_index = index;
	plugin->device = device;
	return OK;
}

enum err net_plugin_look(
	const struct net_plugin *plugin, int index, struct plugin_device *device)
{
	int result = speak_device(plugin, index, device);

	return result ? err_set(ERR_SYSTEM,
				"the network plugin %s (v%d) does not describe its "
				"device "
				"%d: %s",
				plugin->file->name, plugin->file->version, index,
				err_name((enum err)result))
		      : OK;
}

enum err net_plugin_keep(struct net_plugin *plugin, void *data, size_t bytes)
{
	return plugin_kept_add(plugin->kept, data, bytes);
}

void net_plugin_forget(struct net_plugin *plugin, void *data, size_t bytes)
{
	plugin_kept_remove(plugin->kept, data, bytes);
}
