#include "net/plugin_start.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "base/thread.h"

enum { DEVICES_MAX = 1024, MESSAGE_BYTES_MIN = 1024 };

/* What the thread does that starts a plugin. A function that does not return cannot be
 * ended, so then the thread keeps this and the plugin is not asked again. */
struct start {
	pthread_mutex_t lock;
	pthread_cond_t is_over;
	bool has_ended, is_abandoned; /* guarded by lock */
	struct plugin_file *file;
	struct net_plugin_args args;
	struct net_plugin *plugin;
	_Atomic(const char *) doing; /* the function it is in */
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

	start->doing = "devices";
	result = start->file->abi->devices(&count);
	if (result || count <= 0 || count > DEVICES_MAX)
		return result;
	start->doing = "getProperties";
	plugin->device_index = (int)(start->args.local % (uint32_t)count);
	result = speak_device(plugin, plugin->device_index, &plugin->device);
	if (!result)
		plugin->device_count = count;
	return result;
}

static void start_free(struct start *start)
{
	pthread_cond_destroy(&start->is_over);
	pthread_mutex_destroy(&start->lock);
	free(start);
}

static void *start_main(void *argument)
{
	struct start *start = argument;
	bool is_abandoned;

	start->doing = "init";
	start->result = plugin_init(start);
	if (!start->result)
		start->result = device_take(start);
	pthread_mutex_lock(&start->lock);
	start->has_ended = true;
	is_abandoned = start->is_abandoned;
	pthread_cond_signal(&start->is_over);
	pthread_mutex_unlock(&start->lock);
	if (is_abandoned) {
		free(start->plugin);
		start_free(start);
	}
	return NULL;
}

static struct start *start_make(
	struct plugin_file *file, const struct net_plugin_args *args)
{
	struct start *start = calloc(1, sizeof(*start));
	pthread_condattr_t attr;

	if (start)
		start->plugin = calloc(1, sizeof(*start->plugin));
	if (!start || !start->plugin) {
		free(start);
		return NULL;
	}
	start->plugin->file = start->file = file;
	start->args = *args;
	start->args.network = NULL; /* the caller's to keep */
	pthread_mutex_init(&start->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&start->is_over, &attr);
	pthread_condattr_destroy(&attr);
	return start;
}

/* Has it come back in time? If not, `start` is the thread's from now on, and `doing` says
 * where that is. */
static bool start_wait(struct start *start, int64_t limit_s, const char **doing)
{
	uint64_t end_ns = clock_ns() + (uint64_t)limit_s * CLOCK_SEC;
	struct timespec end = {.tv_sec = (time_t)(end_ns / CLOCK_SEC),
		.tv_nsec = (long)(end_ns % CLOCK_SEC)};
	bool has_ended;
	int rc = 0;

	pthread_mutex_lock(&start->lock);
	while (!start->has_ended && rc != ETIMEDOUT)
		rc = limit_s ? pthread_cond_timedwait(&start->is_over, &start->lock, &end)
			     : pthread_cond_wait(&start->is_over, &start->lock);
	has_ended = start->has_ended;
	start->is_abandoned = !has_ended;
	*doing = start->doing;
	pthread_mutex_unlock(&start->lock);
	return has_ended;
}

/* What is wrong with what it has said; NULL: nothing. */
static const char *plugin_judge(const struct start *start)
{
	const struct net_plugin *plugin = start->plugin;

	if (start->result)
		return err_name((enum err)start->result);
	if (!plugin->device_count)
		return "it has no device";
	if (!(plugin->device.memory & PLUGIN_HOST))
		return "its device takes no host memory";
	if (plugin->device.message_bytes_max < MESSAGE_BYTES_MIN)
		return "its device takes no message of 1024 bytes";
	return NULL;
}

static struct net_plugin *start_end(struct start *start)
{
	const struct plugin_file *file = start->file;
	struct net_plugin *plugin = start->plugin;
	const char *why = plugin_judge(start);

	if (why) {
		log_warn("the network plugin %s (v%d) is not used: %s gave: %s",
			file->name, file->version, start->doing, why);
		if (!start->result)
			speak_end(plugin);
		free(plugin);
		plugin = NULL;
	} else {
		log_info(LOG_INIT | LOG_NET, "Initialized NET plugin %s", file->name);
	}
	start_free(start);
	return plugin;
}

struct net_plugin *net_plugin_start(
	struct plugin_file *file, const struct net_plugin_args *args)
{
	int64_t limit_s = param_int(PARAM_PLUGIN_SEC);
	struct start *start;
	const char *doing;
	pthread_t thread;
	int rc;

	if (file->is_stuck)
		return NULL;
	start = start_make(file, args);
	rc = start ? thread_start(&thread, "weft-plugin", start_main, start) : ENOMEM;
	if (rc) {
		log_warn("the network plugin %s is not used: %s", file->name,
			strerror(rc));
		if (start)
			free(start->plugin);
		if (start)
			start_free(start);
		return NULL;
	}
	if (start_wait(start, limit_s, &doing)) {
		pthread_join(thread, NULL);
		return start_end(start);
	}
	pthread_detach(thread);
	file->is_stuck = true;
	log_warn("the network plugin %s (v%d) is not used: %s has not returned for "
		 "%lld s (WEFT_PLUGIN_SEC)",
		file->name, file->version, doing, (long long)limit_s);
	return NULL;
}
