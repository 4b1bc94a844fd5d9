#include "base/env_plugin.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/plugin_file.h"
#include "base/plugin_log.h"

enum { VALUE_BYTES_MAX = 64 << 10, DID_BYTES = 96 };

/* What a plugin exports. Results are ncclResult_t. */
struct env_abi {
	const char *name;
	union {
		int (*v1)(
			uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
		int (*v2)(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
			plugin_log *log);
	} init;
	int (*finalize)(void);
	const char *(*get)(const char *name);
};

static const struct plugin_kind env_kind = {.file = "env",
	.title = "ENV",
	.called = "environment plugin",
	.symbol = "ncclEnvPlugin_v",
	.newest = 2,
	.oldest = 1,
	.param = PARAM_ENV_PLUGIN,
	.subsystem = LOG_ENV,
	.otherwise = "the environment itself is asked",
	.is_quiet = true}; /* also processes ask that have nothing to log */

static pthread_once_t once = PTHREAD_ONCE_INIT;
/* A value is the plugin's until it is asked for the same one again: one at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct env_abi *abi; /* guarded by lock; NULL: there is none */
static struct plugin_library library;
/* A plugin may call the library, which asks for parameters: these it must not get from
 * the plugin. */
static _Thread_local bool is_inside;

static int env_init(const struct env_abi *fresh)
{
	if (library.version == 1)
		return fresh->init.v1(
			ENV_PLUGIN_MAJOR, ENV_PLUGIN_MINOR, ENV_PLUGIN_PATCH, "");
	return fresh->init.v2(
		ENV_PLUGIN_MAJOR, ENV_PLUGIN_MINOR, ENV_PLUGIN_PATCH, "", plugin_says);
}

static void env_end(void)
{
	pthread_mutex_lock(&lock);
	if (abi && abi->finalize)
		abi->finalize();
	abi = NULL;
	pthread_mutex_unlock(&lock);
}

static void env_load(void)
{
	const struct env_abi *fresh;
	char did[DID_BYTES];
	int result;

	if (!plugin_file_find(&env_kind, &library))
		return;
	fresh = library.symbol;
	if (!fresh->init.v1 || !fresh->get) {
		plugin_file_refuse(&env_kind, &library, "lacks a function");
		plugin_file_unload(&library);
		return;
	}
	result = env_init(fresh);
	if (result) {
		snprintf(did, sizeof(did), "could not start: init gave: %s",
			err_name((enum err)result));
		plugin_file_refuse(&env_kind, &library, did);
		plugin_file_unload(&library);
		return;
	}
	abi = fresh;
	/* behind the plugin's own, so before them */
	atexit(env_end);
	log_info(LOG_INIT | LOG_ENV, "ENV/Plugin: Using %s (v%d)", library.name,
		library.version);
}

bool env_plugin_ask(const char *name, char **text)
{
	const char *value;
	bool is_there;

	*text = NULL;
	if (is_inside)
		return false;
	is_inside = true;
	pthread_once(&once, env_load);
	pthread_mutex_lock(&lock);
	is_there = abi != NULL;
	value = is_there ? abi->get(name) : NULL;
	if (value)
		*text = strndup(value, VALUE_BYTES_MAX);
	pthread_mutex_unlock(&lock);
	is_inside = false;
	return is_there;
}
