#include "net/plugin_start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/errand.h"
#include "base/log.h"
#include "base/param.h"
#include "net/plugin_kept.h"
#include "net/plugin_virtual.h"

enum { DEVICES_MAX = 1024, MESSAGE_BYTES_MIN = 1024 };

/* What the thread does that starts a plugin; if that does not return, the plugin is not
 * asked again. */
struct start {
	struct plugin_file *file;
	struct net_plugin_args args;
	struct net_plugin *plugin;
	int result;
};

/* Versions before 11 start once in a process. */
static int plugin_init(struct start *start)
{
	struct plugin_file *file = start->file;

	if (file->version >= 11)
		return speak_init(start->plugin, start->args.comm);
	if (!file->is_started)
		file->start_result = speak_init(start->plugin, 0);
	file->is_started = true;
	return file->start_result;
}

static int device_take(struct start *start)
{
	struct net_plugin *plugin = start->plugin;
	int count = 0, result;

	start->file->doing = "devices";
	result = start->file->abi->devices(&count);
	if (result || count <= 0 || count > DEVICES_MAX)
		return result;
	start->file->doing = "makeVDevice";
	count = plugin_ports_join(start->file, plugin, count);
	start->file->doing = "getProperties";
	plugin->device_index = (int)(start->args.local % (uint32_t)count);
	result = speak_device(plugin, plugin->device_index, &plugin->device);
	if (!result)
		plugin->device_count = count;
	return result;
}

static void start_run(void *argument)
{
	struct start *start = argument;

	start->file->doing = "init";
	start->result = plugin_init(start);
	if (!start->result)
		start->result = device_take(start);
}

static void start_discard(void *argument)
{
	struct start *start = argument;

	if (start && start->plugin)
		plugin_kept_free(start->plugin->kept);
	if (start)
		free(start->plugin);
	free(start);
}

static struct start *start_make(
	struct plugin_file *file, const struct net_plugin_args *args)
{
	struct start *start = calloc(1, sizeof(*start));

	if (start)
		start->plugin = calloc(1, sizeof(*start->plugin));
	if (start && start->plugin)
		start->plugin->kept = plugin_kept_make();
	if (!start || !start->plugin || !start->plugin->kept) {
		start_discard(start);
		return NULL;
	}
	start->plugin->file = start->file = file;
	start->args = *args;
	start->args.network = NULL; /* the caller's to keep */
	return start;
}

const char *plugin_device_judge(const struct plugin_device *device)
{
	if (!(device->memory & PLUGIN_HOST))
		return "its device takes no host memory";
	if (device->message_bytes_max < MESSAGE_BYTES_MIN)
		return "its device takes no message of 1024 bytes";
	return NULL;
}

/* What is wrong with what it has said; NULL: nothing. */
static const char *plugin_judge(const struct start *start)
{
	const struct net_plugin *plugin = start->plugin;

	if (start->result)
		return err_name((enum err)start->result);
	if (!plugin->device_count)
		return "it has no device";
	return plugin_device_judge(&plugin->device);
}

static struct net_plugin *start_end(struct start *start)
{
	const struct plugin_file *file = start->file;
	struct net_plugin *plugin = start->plugin;
	const char *why = plugin_judge(start);

	if (why) {
		log_warn("the network plugin %s (v%d) is not used: %s gave: %s",
			file->name, file->version, start->file->doing, why);
		if (!start->result)
			speak_end(plugin);
		plugin_kept_free(plugin->kept);
		free(plugin);
		plugin = NULL;
	} else {
		log_info(LOG_INIT | LOG_NET, "Initialized NET plugin %s", file->name);
	}
	free(start);
	return plugin;
}

struct net_plugin *net_plugin_start(
	struct plugin_file *file, const struct net_plugin_args *args)
{
	int64_t limit_s = param_int(PARAM_PLUGIN_SEC);
	struct start *start = file->is_stuck ? NULL : start_make(file, args);
	struct errand errand = {"weft-plugin", start_run, start_discard, start};
	int rc;

	if (file->is_stuck)
		return NULL;
	rc = start ? errand_run(&errand, limit_s) : ENOMEM;
	if (!rc)
		return start_end(start);
	if (rc != ETIMEDOUT) {
		log_warn("the network plugin %s is not used: %s", file->name,
			strerror(rc));
		start_discard(start);
		return NULL;
	}
	file->is_stuck = true;
	log_warn("the network plugin %s (v%d) is not used: %s has not returned for "
		 "%lld s (WEFT_PLUGIN_SEC)",
		file->name, file->version, file->doing, (long long)limit_s);
	return NULL;
}
