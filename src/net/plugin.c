#include "net/plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/log.h"
#include "base/param.h"
#include "base/plugin_log.h"
#include "net/plugin_speak.h"
#include "net/plugin_start.h"

enum {
	FILES_MAX = 16,
	ASKED_BYTES = 512, /* of one name in the list */
	PATH_BYTES = ASKED_BYTES + 32
};

static const char usual[] = "libnccl-net.so";

/* Every file that was asked for in this process, whether it is a plugin or not. */
struct slot {
	char asked[ASKED_BYTES];
	bool is_plugin;
	struct plugin_file file;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static struct slot *slots[FILES_MAX];			 /* owned for ever */
static uint32_t slot_count;

/* ---- files ---- */

/* The file of that name, or the one called after it. */
static void *library_open(const char *asked)
{
	char file[PATH_BYTES];
	void *library;

	if (strchr(asked, '/') && file_is_special(asked)) {
		log_warn("no network plugin: NCCL_NET_PLUGIN has %s, which is no regular "
			 "file",
			asked);
		return NULL;
	}
	library = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
	if (!library && !file_is_library(asked)) {
		snprintf(file, sizeof(file), "libnccl-net-%s.so", asked);
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	}
	if (library)
		return library;
	log_info(LOG_INIT | LOG_NET, "NET/Plugin: Could not find: %s. %s", asked,
		dlerror());
	if (param_text(PARAM_NET_PLUGIN))
		log_warn(
			"no network plugin %s: %s cannot be loaded; LD_LIBRARY_PATH must "
			"have its folder",
			asked, file_is_library(asked) ? asked : file);
	return NULL;
}

/* The newest version that the library speaks; false when it speaks none. */
static bool symbol_find(void *library, struct plugin_file *file)
{
	char symbol[32];

	for (int v = PLUGIN_VERSION_MAX; v >= PLUGIN_VERSION_MIN; v--) {
		snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", v);
		file->abi = dlsym(library, symbol);
		file->version = v;
		if (file->abi)
			return true;
		log_info(LOG_INIT | LOG_NET, "NET/Plugin: Failed to find %s symbol.",
			symbol);
	}
	return false;
}

static bool file_load(const char *asked, struct plugin_file *file)
{
	void *library = library_open(asked);
	const char *name;

	if (!library)
		return false;
	if (!symbol_find(library, file)) {
		log_warn("the network plugin %s exports no ncclNetPlugin_v%d to _v%d and "
			 "is not used",
			asked, PLUGIN_VERSION_MIN, PLUGIN_VERSION_MAX);
		dlclose(library);
		return false;
	}
	name = file->abi->name;
	snprintf(file->name, sizeof(file->name), "%.63s", name ? name : asked);
	if (!speak_is_whole(file)) {
		log_warn("the network plugin %s (v%d) lacks a function and is not used",
			file->name, file->version);
		dlclose(library);
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
		if (!strcmp(slots[i]->asked, asked))
			return slots[i]->is_plugin ? &slots[i]->file : NULL;
	slot = slot_count < FILES_MAX ? calloc(1, sizeof(*slot)) : NULL;
	if (!slot) {
		log_warn("no room for the network plugin %s: a process has %d at most",
			asked, FILES_MAX);
		return NULL;
	}
	snprintf(slot->asked, sizeof(slot->asked), "%s", asked);
	slot->is_plugin = file_load(asked, &slot->file);
	slots[slot_count++] = slot;
	return slot->is_plugin ? &slot->file : NULL;
}

/* ---- which ---- */

/* The next name of the list; false at its end. */
static bool list_next(const char **list, char name[ASKED_BYTES])
{
	size_t bytes;

	*list += strspn(*list, ", ");
	bytes = strcspn(*list, ", ");
	if (!bytes)
		return false;
	snprintf(name, ASKED_BYTES, "%.*s", (int)bytes, *list);
	*list += bytes;
	return true;
}

static struct net_plugin *file_try(const char *asked, const struct net_plugin_args *args)
{
	struct plugin_file *file = file_get(asked);

	if (!file || (args->network && strcasecmp(args->network, file->name)))
		return NULL;
	return net_plugin_start(file, args);
}

/* Plugins set variables for the library when they start, as NCCL_TOPO_FILE. */
static void environment_changed(void)
{
	param_forget(PARAM_TOPO_FILE);
	param_forget(PARAM_TUNER_PLUGIN);
	param_forget(PARAM_PROTO);
}

enum err net_plugin_open(const struct net_plugin_args *args, struct net_plugin **plugin)
{
	const char *list = param_text(PARAM_NET_PLUGIN);
	bool is_socket = args->network && !strcasecmp(args->network, net_socket.name);
	struct net_plugin *found = NULL;
	char name[ASKED_BYTES];

	if (list)
		log_info(LOG_ENV | LOG_NET, "NET/Plugin: Plugin name set by env to %s",
			list);
	else
		list = usual;
	pthread_mutex_lock(&lock);
	while (!found && !is_socket && list_next(&list, name) && strcasecmp(name, "none"))
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
	free(plugin);
}

const char *net_plugin_name(const struct net_plugin *plugin)
{
	return plugin->file->name;
}

int net_plugin_version(const struct net_plugin *plugin)
{
	return plugin->file->version;
}

const struct plugin_device *net_plugin_device(const struct net_plugin *plugin)
{
	return &plugin->device;
}

int net_plugin_device_count(const struct net_plugin *plugin)
{
	return plugin->device_count;
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
