#include "prof/profiler.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/plugin_file.h"
#include "prof/profiler_speak.h"

enum { DID_BYTES = 96, COMM_NAME_BYTES = 64 };

struct profiler {
	struct plugin_library library; /* stays loaded: its threads may live on */
	const struct profiler_abi *abi;
	void *context;
	int result; /* of init */
	atomic_bool has_failed;
	struct speak_comm comm;
	void (*enter)(void *where);
	void *where;
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

/* Each with what it is the parent of; also of kinds that we do not tell of. */
enum {
	KERNELS = 1 << 6 | 1 << 15,
	STEPS = PROF_PROXY_STEP | PROF_NET_PLUGIN,
	WAYS = PROF_PROXY_OP | STEPS,
	BELOW_WORK = WAYS | KERNELS,
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
	case PROF_PROXY_OP:
		return WAYS;
	case PROF_PROXY_STEP:
		return STEPS;
	case PROF_NET_PLUGIN:
	case PROF_KERNEL_LAUNCH:
		return (int)kind;
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

static void init_run(void *argument)
{
	struct profiler *profiler = argument;

	if (profiler->enter)
		profiler->enter(profiler->where);
	profiler->result = profiler_speak_init(profiler->abi, profiler->library.version,
		&profiler->comm, &wishes, &profiler->context);
}

/* It has come back when nobody waits any more. The library stays. */
static void init_discard(void *argument)
{
	struct profiler *profiler = argument;

	if (!profiler->result)
		profiler->abi->finalize(profiler->context);
	free(profiler);
}

/* A profiler that is not used: why, in one sentence. */
static void refuse(const struct plugin_library *library, int rc, int result)
{
	char did[DID_BYTES];

	if (rc == ETIMEDOUT)
		snprintf(did, sizeof(did),
			"could not start: init has not returned for %lld s "
			"(WEFT_PLUGIN_SEC)",
			(long long)param_int(PARAM_PLUGIN_SEC));
	else
		snprintf(did, sizeof(did), "could not start: init gave: %s",
			rc ? strerror(rc) : err_name((enum err)result));
	plugin_file_refuse(&profiler_kind, library, did);
}

static void profiler_free(struct profiler *profiler)
{
	plugin_file_unload(&profiler->library);
	free(profiler);
}

/* NULL when it does not start. One thread at a time. */
static struct profiler *profiler_begin(struct profiler *profiler)
{
	static const void *stuck; /* a plugin that did not return is not asked again */
	const struct plugin_library library = profiler->library;
	const struct errand errand = {"weft-profiler", init_run, init_discard, profiler};
	int rc;

	profiler->abi = library.symbol;
	if (!profiler_is_whole(profiler->abi)) {
		plugin_file_refuse(&profiler_kind, &library, "lacks a function");
		profiler_free(profiler);
		return NULL;
	}
	rc = stuck == library.symbol ? EBUSY
				     : errand_run(&errand, param_int(PARAM_PLUGIN_SEC));
	if (rc == ETIMEDOUT)
		stuck = library.symbol;
	if (rc != EBUSY && (rc || profiler->result)) /* that was said once */
		refuse(&library, rc, rc ? 0 : profiler->result);
	if (rc == ETIMEDOUT)
		return NULL;
	if (rc || profiler->result) {
		profiler_free(profiler);
		return NULL;
	}
	log_info(LOG_INIT | LOG_PROFILE, "PROFILER/Plugin: Using %s (v%d)", library.name,
		library.version);
	return profiler;
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
	struct profiler *begun = NULL;
	bool is_found;

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
	profiler->enter = args->enter;
	profiler->where = args->where;
	pthread_mutex_lock(&lock);
	is_found = library_find(&profiler->library);
	if (is_found)
		begun = profiler_begin(profiler);
	pthread_mutex_unlock(&lock);
	if (!is_found)
		free(profiler);
	return begun;
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

bool profiler_wants(const struct profiler *profiler, enum prof_kind kind)
{
	return __atomic_load_n(&wishes, __ATOMIC_RELAXED) & wished_by(kind) &&
	       profiler_speak_has(profiler->library.version, kind) &&
	       !atomic_load_explicit(&profiler->has_failed, memory_order_relaxed);
}

void *profiler_start(struct profiler *profiler, const struct prof_event *event)
{
	struct profiler_descr descr;
	void *handle = NULL;
	int result;

	if (!profiler_wants(profiler, event->kind))
		return NULL;
	profiler_speak_descr(profiler->library.version, &profiler->comm, event, &descr);
	result = profiler->abi->start(profiler->context, &handle, &descr);
	if (!result)
		return handle;
	drop(profiler, "startEvent", result);
	return NULL;
}

void profiler_state(struct profiler *profiler, void *event, enum prof_state state,
	const struct prof_progress *progress)
{
	struct profiler_progress told;
	int result = 0;

	if (!event || !profiler_speak_tells(profiler->library.version, state))
		return;
	if (progress)
		profiler_speak_progress(progress, &told);
	result = profiler->abi->state(event, (int)state, progress ? &told : NULL);
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
