#include "prof/profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/log.h"
#include "base/plugin_file.h"
#include "prof/profiler_speak.h"

enum { DID_BYTES = 96, COMM_NAME_BYTES = 64 };

struct profiler {
	struct plugin_library library; /* stays loaded: its threads may live on */
	const struct profiler_abi *abi;
	void *context;
	atomic_bool has_failed;
	struct speak_comm comm;
	char comm_name[COMM_NAME_BYTES];
};

static const struct plugin_kind profiler_kind = {.file = "profiler",
	.title = "PROFILER",
	.called = "profiler plugin",
	.symbol = "ncclProfiler_v",
	.newest = PROFILER_VERSION_MAX,
	.oldest = PROFILER_VERSION_MIN,
	.param = PARAM_PROFILER_PLUGIN,
	.subsystem = LOG_PROFILE,
	.otherwise = "the job goes on without it"};

/* What plugins want. They keep the address and write to it when they like, also after
 * the communicator that it was given for has gone: so there is one, as in NCCL. */
static int wishes;

/* Kinds that we do not tell of, and that want their parents all the same. */
enum {
	BELOW_WORK = 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7 | 1 << 15,
	COLLS = PROF_COLL | BELOW_WORK,
	PAIRS = PROF_P2P | BELOW_WORK,
	GROUPS = PROF_GROUP | COLLS | PAIRS,
	COLL_APIS = PROF_COLL_API | COLLS,
	P2P_APIS = PROF_P2P_API | PAIRS,
	GROUP_APIS = PROF_GROUP_API | COLL_APIS | P2P_APIS | PROF_KERNEL_LAUNCH | GROUPS
};

static int wished_by(enum prof_kind kind)
{
	switch (kind) {
	case PROF_GROUP:
		return GROUPS;
	case PROF_COLL:
		return COLLS;
	case PROF_P2P:
		return PAIRS;
	case PROF_GROUP_API:
		return GROUP_APIS;
	case PROF_COLL_API:
		return COLL_APIS;
	case PROF_P2P_API:
		return P2P_APIS;
	case PROF_KERNEL_LAUNCH:
		return PROF_KERNEL_LAUNCH;
	}
	return 0;
}

/* Said once; what was started is still stopped. */
static void drop(struct profiler *profiler, const char *function, int result)
{
	char did[DID_BYTES];

	if (atomic_exchange(&profiler->has_failed, true))
		return;
	snprintf(did, sizeof(did), "is not told of anything any more: %s gave: %s",
		function, err_name((enum err)result));
	plugin_file_refuse(&profiler_kind, &profiler->library, did);
}

static bool profiler_begin(struct profiler *profiler)
{
	char did[DID_BYTES];
	int result;

	profiler->abi = profiler->library.symbol;
	if (!profiler_is_whole(profiler->abi)) {
		plugin_file_refuse(
			&profiler_kind, &profiler->library, "lacks a function");
		return false;
	}
	result = profiler_speak_init(profiler->abi, profiler->library.version,
		&profiler->comm, &wishes, &profiler->context);
	if (result) {
		snprintf(did, sizeof(did), "could not start: init gave: %s",
			err_name((enum err)result));
		plugin_file_refuse(&profiler_kind, &profiler->library, did);
		return false;
	}
	log_info(LOG_INIT | LOG_PROFILE, "PROFILER/Plugin: Using %s (v%d)",
		profiler->library.name, profiler->library.version);
	return true;
}

/* What nobody has asked for and is not there is not looked for again: every communicator
 * would search all folders. One thread at a time. */
static bool library_find(struct plugin_library *library)
{
	static bool is_absent;
	bool is_usual = !param_text(PARAM_PROFILER_PLUGIN);

	if (is_usual && is_absent)
		return false;
	if (plugin_file_find(&profiler_kind, library))
		return true;
	is_absent |= is_usual;
	return false;
}

struct profiler *profiler_open(const struct profiler_args *args)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* one at a time */
	struct profiler *profiler = calloc(1, sizeof(*profiler));
	bool is_open;

	if (!profiler) {
		log_warn("no memory for a profiler plugin; the job goes on without it");
		return NULL;
	}
	snprintf(profiler->comm_name, sizeof(profiler->comm_name), "%s", args->name);
	profiler->comm = (struct speak_comm){
		.name = args->name[0] ? profiler->comm_name : NULL,
		.id = args->comm,
		.host_count = args->host_count,
		.rank_count = args->rank_count,
		.rank = args->rank};
	pthread_mutex_lock(&lock);
	is_open = library_find(&profiler->library) && profiler_begin(profiler);
	pthread_mutex_unlock(&lock);
	if (is_open)
		return profiler;
	plugin_file_unload(&profiler->library);
	free(profiler);
	return NULL;
}

void profiler_close(struct profiler *profiler)
{
	int result;

	if (!profiler)
		return;
	result = profiler->abi->finalize(profiler->context);
	if (result)
		log_warn("the profiler plugin %s (v%d) could not end: %s",
			profiler->library.name, profiler->library.version,
			err_name((enum err)result));
	free(profiler);
}

void *profiler_start(struct profiler *profiler, const struct prof_event *event)
{
	struct profiler_descr descr;
	void *handle = NULL;
	int result;

	if (!(__atomic_load_n(&wishes, __ATOMIC_RELAXED) & wished_by(event->kind)) ||
		!profiler_speak_has(profiler->library.version, event->kind) ||
		atomic_load_explicit(&profiler->has_failed, memory_order_relaxed))
		return NULL;
	profiler_speak_descr(profiler->library.version, &profiler->comm, event, &descr);
	result = profiler->abi->start(profiler->context, &handle, &descr);
	if (!result)
		return handle;
	drop(profiler, "startEvent", result);
	return NULL;
}

void profiler_state(struct profiler *profiler, void *event, enum prof_state state)
{
	int result = event ? profiler->abi->state(event, (int)state, NULL) : 0;

	if (result)
		drop(profiler, "recordEventState", result);
}

void profiler_stop(struct profiler *profiler, void *event)
{
	int result = event ? profiler->abi->stop(event) : 0;

	if (result)
		drop(profiler, "stopEvent", result);
}

int profiler_version(const struct profiler *profiler)
{
	return profiler->library.version;
}
