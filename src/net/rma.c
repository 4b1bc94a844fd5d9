#include "net/rma.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/errand.h"
#include "base/log.h"
#include "base/param.h"
#include "base/plugin_file.h"
#include "net/plugin_start.h"
#include "net/rma_speak.h"

enum { FILES_MAX = 16, DEVICES_MAX = 1024 };

static const struct plugin_kind rma_kind = {.file = "rma",
	.title = "RMA",
	.called = "one-sided plugin",
	.symbol = "ncclRmaPlugin_v",
	.older = "ncclGinPlugin_v13",
	.newest = RMA_VERSION_MAX,
	.oldest = RMA_VERSION_MIN,
	.param = PARAM_RMA_PLUGIN,
	.subsystem = LOG_NET,
	.otherwise = "it is not used",
	.is_quiet = true};

/* Every file that was asked for in this process, whether it is a plugin or not. */
struct rma_slot {
	char asked[PLUGIN_ASKED_BYTES];
	bool is_network; /* asked for as a network plugin */
	bool is_plugin;
	struct rma_file file;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below, and starts */
static struct rma_slot *slots[FILES_MAX];		 /* owned for ever */
static uint32_t slot_count;

struct net_rma {
	struct rma_file *file; /* borrowed: it is never unloaded */
	/* the plugin's: as init, listen, connect and createContext gave them */
	void *plugin, *listener, *group, *context;
	bool is_asked;		       /* for itself */
	bool has_started, has_refused; /* memory */
	struct plugin_device device;   /* the one that this rank uses */
	int device_index;
	unsigned char *handles; /* owned: a plugin may keep what it was given */
	void **handle_list;	/* owned: the same, one by one */
	uint32_t rank_count, rank;
	atomic_bool is_stuck;
	_Atomic(const char *) doing; /* the function that a task calls */
	/* what moves data now, for who waits for it; see net_rma_calling() */
	_Atomic(const char *) calling;
	_Atomic uint64_t since_ns;
};

/* ---- files ---- */

static bool rma_file_keep(
	const char *asked, struct plugin_library *library, struct rma_file *file)
{
	rma_speak_at(file, library->symbol, library->version);
	snprintf(file->name, sizeof(file->name), "%.63s",
		file->head->name ? library->name : asked);
	if (!rma_speak_is_whole(file)) {
		plugin_file_refuse(&rma_kind, library, "lacks a function");
		plugin_file_unload(library);
		return false;
	}
	log_info(LOG_INIT | LOG_NET, "RMA/Plugin: Loaded rma plugin %s (v%d)", file->name,
		file->version);
	log_info(LOG_INIT | LOG_NET, "RMA/Plugin: Successfully loaded external plugin %s",
		asked);
	return true;
}

static bool rma_file_load(const char *asked, bool is_network, struct rma_file *file)
{
	struct plugin_library library;
	bool is_found = is_network ? plugin_file_peek(
					     &rma_kind, &net_plugin_kind, asked, &library)
				   : plugin_file_load(&rma_kind, asked, &library);

	return is_found && rma_file_keep(asked, &library, file);
}

/* NULL when it is no plugin, or one too many; a file is tried once in a process. With the
 * lock. */
static struct rma_file *rma_file_get(const char *asked, bool is_network)
{
	struct rma_slot *slot;

	for (uint32_t i = 0; i < slot_count; i++)
		if (slots[i]->is_network == is_network && !strcmp(slots[i]->asked, asked))
			return slots[i]->is_plugin ? &slots[i]->file : NULL;
	slot = slot_count < FILES_MAX ? calloc(1, sizeof(*slot)) : NULL;
	if (!slot) {
		log_warn("no room for the one-sided plugin %s: a process has %d at most",
			asked, FILES_MAX);
		return NULL;
	}
	snprintf(slot->asked, sizeof(slot->asked), "%s", asked);
	slot->is_network = is_network;
	slot->is_plugin = rma_file_load(asked, is_network, &slot->file);
	slots[slot_count++] = slot;
	return slot->is_plugin ? &slot->file : NULL;
}

/* ---- functions that may not return ---- */

/* One call, or several that follow each other, in a thread of their own. Copied there. */
struct rma_task {
	struct net_rma *rma;
	int (*run)(struct rma_task *task);
	unsigned char handle[RMA_HANDLE_BYTES];
	struct rma_memory memory;
	void *known;
	int result;	 /* of the last function that was called, rma->doing */
	bool is_known;	 /* that it fails: it was said before */
	const char *why; /* what is wrong though it succeeded; NULL: nothing */
};

static void task_main(void *argument)
{
	struct rma_task *task = argument;

	task->result = task->run(task);
}

static void task_discard(void *argument)
{
	free(argument);
}

/* One that is there because the network plugin is has nobody to be warned. */
static enum err task_failed(const struct rma_task *task)
{
	const struct rma_file *file = task->rma->file;
	const char *why = task->result ? err_name((enum err)task->result) : task->why;

	if (task->is_known)
		return ERR_SYSTEM;
	if (task->rma->is_asked)
		return err_set(ERR_SYSTEM,
			"the one-sided plugin %s (v%d) failed: %s gave %s", file->name,
			file->version, task->rma->doing, why);
	log_info(LOG_INIT | LOG_NET,
		"RMA/Plugin: %s (v%d), of the network plugin's file, failed: %s gave %s",
		file->name, file->version, task->rma->doing, why);
	return ERR_SYSTEM;
}

/* It may return at any moment, so nothing of the task is looked at. */
static enum err task_stuck(struct net_rma *rma)
{
	const char *doing = rma->doing;

	net_rma_abandon(rma);
	return err_set(ERR_SYSTEM,
		"the one-sided plugin %s (v%d) is stuck: %s has not returned for %lld s "
		"(WEFT_PLUGIN_SEC)",
		rma->file->name, rma->file->version, doing,
		(long long)param_int(PARAM_PLUGIN_SEC));
}

/* What is stuck is the thread's, and so is what it was called with. */
static enum err task_do(struct rma_task *asked)
{
	struct rma_task *task = malloc(sizeof(*task));
	struct errand errand = {"weft-rma", task_main, task_discard, task};
	enum err e = OK;
	int rc;

	if (!task)
		return err_set(ERR_SYSTEM, "no memory to call a one-sided plugin");
	*task = *asked;
	rc = errand_run(&errand, param_int(PARAM_PLUGIN_SEC));
	if (rc == ETIMEDOUT)
		return task_stuck(asked->rma);
	if (rc)
		e = err_set(ERR_SYSTEM, "no thread to call the one-sided plugin %s: %s",
			asked->rma->file->name, strerror(rc));
	else if (task->result || task->why)
		e = task_failed(task);
	*asked = *task;
	free(task);
	return e;
}

/* ---- which ---- */

static int start_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;
	int count = 0, type = 0, result;

	rma->doing = "init";
	result = rma->file->head->init(&rma->plugin, task->memory.bytes, plugin_says);
	if (result)
		return result;
	rma->has_started = true;
	rma->doing = "devices";
	result = rma->file->head->devices(&count);
	if (result)
		return result;
	if (count <= 0 || count > DEVICES_MAX) {
		task->why = "no device";
		return 0;
	}
	rma->doing = "getProperties";
	rma->device_index %= count;
	result = rma_speak_device(rma->file, rma->device_index, &rma->device, &type);
	if (!result)
		task->why = plugin_device_judge(&rma->device);
	if (!result && !task->why && rma->file->version == RMA_GIN_VERSION &&
		type != RMA_HOST_DRIVEN)
		task->why = "a device that no host drives";
	return result;
}

static void rma_free(struct net_rma *rma)
{
	free(rma->handles);
	free(rma->handle_list);
	free(rma);
}

/* NULL, with a warning, when it does not start. With the lock. */
static struct net_rma *rma_start(
	struct rma_file *file, const struct net_rma_args *args, bool is_asked)
{
	struct net_rma *rma = file->is_stuck ? NULL : calloc(1, sizeof(*rma));
	struct rma_task task = {.rma = rma, .run = start_task};

	if (!rma)
		return NULL;
	rma->file = file;
	rma->is_asked = is_asked;
	rma->device_index = (int)args->local;
	task.memory.bytes = args->comm;
	if (!task_do(&task))
		return rma;
	(void)net_rma_close(rma);
	return NULL;
}

struct net_rma *net_rma_open(const struct net_rma_args *args)
{
	struct plugin_names names;
	struct net_rma *found = NULL;
	struct rma_file *file;
	char name[PLUGIN_ASKED_BYTES];

	if (param_int(PARAM_RMA_DISABLE))
		return NULL;
	pthread_mutex_lock(&lock);
	names = plugin_names(&rma_kind);
	while (!found && plugin_names_next(&rma_kind, &names, name)) {
		file = rma_file_get(name, false);
		found = file ? rma_start(file, args, true) : NULL;
	}
	if (!found && args->network_file) {
		file = rma_file_get(args->network_file, true);
		found = file ? rma_start(file, args, false) : NULL;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- one that is open ---- */

/* In the order that they were made, backwards; the first failure is told. */
static int close_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;
	const struct rma_abi_tail *abi = rma->file->tail;
	int result = 0;

	if (rma->context) {
		rma->doing = "destroyContext";
		result = abi->destroy_context(rma->context);
	}
	if (!result && rma->group) {
		rma->doing = "closeColl";
		result = abi->close_group(rma->group);
	}
	if (!result && rma->listener) {
		rma->doing = "closeListen";
		result = abi->close_listen(rma->listener);
	}
	if (!result && rma->has_started) {
		rma->doing = "finalize";
		result = abi->finalize(rma->plugin);
	}
	return result;
}

bool net_rma_close(struct net_rma *rma)
{
	struct rma_task task = {.rma = rma, .run = close_task};

	if (atomic_load(&rma->is_stuck))
		return false;
	(void)task_do(&task);
	if (atomic_load(&rma->is_stuck))
		return false;
	rma_free(rma);
	return true;
}

void net_rma_abandon(struct net_rma *rma)
{
	atomic_store(&rma->is_stuck, true);
	rma->file->is_stuck = true;
}

const char *net_rma_name(const struct net_rma *rma)
{
	return rma->file->name;
}

int net_rma_version(const struct net_rma *rma)
{
	return rma->file->version;
}

size_t net_rma_put_max(const struct net_rma *rma)
{
	return rma->device.message_bytes_max;
}

static int listen_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;
	int result;

	rma->doing = "listen";
	result = rma->file->tail->listen(
		rma->plugin, rma->device_index, task->handle, &rma->listener);
	if (!result && !rma->listener)
		task->why = "nothing";
	return result;
}

enum err net_rma_listen(struct net_rma *rma, unsigned char handle[RMA_HANDLE_BYTES])
{
	struct rma_task task = {.rma = rma, .run = listen_task};
	enum err e = task_do(&task);

	memcpy(handle, task.handle, RMA_HANDLE_BYTES);
	return e;
}

static int connect_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;
	int result;

	rma->doing = "connect";
	result = rma->file->tail->connect(rma->plugin, rma->handle_list,
		(int)rma->rank_count, (int)rma->rank, rma->listener, &rma->group);
	if (result || !rma->group) {
		task->why = "nothing";
		return result;
	}
	rma->doing = "createContext";
	result = rma_speak_context(rma->file, rma->group, &rma->context);
	if (!result && !rma->context)
		task->why = "nothing";
	return result;
}

enum err net_rma_connect(struct net_rma *rma, const unsigned char *handles,
	uint32_t rank_count, uint32_t rank)
{
	struct rma_task task = {.rma = rma, .run = connect_task};

	rma->handles = malloc((size_t)rank_count * RMA_HANDLE_BYTES);
	rma->handle_list = calloc(rank_count, sizeof(*rma->handle_list));
	if (!rma->handles || !rma->handle_list)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks by a plugin", rank_count);
	memcpy(rma->handles, handles, (size_t)rank_count * RMA_HANDLE_BYTES);
	for (uint32_t i = 0; i < rank_count; i++)
		rma->handle_list[i] = rma->handles + (size_t)i * RMA_HANDLE_BYTES;
	rma->rank_count = rank_count;
	rma->rank = rank;
	return task_do(&task);
}

static int register_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;
	int result;

	rma->doing = "regMrSym";
	result = rma_speak_reg(rma->file, rma->group, &task->memory, &task->known);
	if (!result && !task->known)
		task->why = "nothing";
	return result;
}

enum err net_rma_register(
	struct net_rma *rma, const struct rma_memory *memory, void **known)
{
	struct rma_task task = {.rma = rma,
		.run = register_task,
		.memory = *memory,
		.is_known = rma->has_refused};
	enum err e = task_do(&task);

	rma->has_refused = rma->has_refused || e;
	*known = e ? NULL : task.known;
	return e;
}

static int deregister_task(struct rma_task *task)
{
	struct net_rma *rma = task->rma;

	rma->doing = "deregMrSym";
	return rma->file->tail->dereg(rma->group, task->known);
}

void net_rma_deregister(struct net_rma *rma, void *known)
{
	struct rma_task task = {.rma = rma, .run = deregister_task, .known = known};

	if (!atomic_load(&rma->is_stuck))
		(void)task_do(&task);
}

/* ---- moving data ---- */

static void call_begin(struct net_rma *rma, const char *function)
{
	atomic_store_explicit(&rma->since_ns, clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&rma->calling, function, memory_order_release);
}

static enum err call_end(struct net_rma *rma, const char *function, int result)
{
	atomic_store_explicit(&rma->calling, NULL, memory_order_release);
	return result ? err_set(ERR_SYSTEM,
				"the one-sided plugin %s (v%d) failed: %s gave %s",
				rma->file->name, rma->file->version, function,
				err_name((enum err)result))
		      : OK;
}

enum err net_rma_put(struct net_rma *rma, const struct rma_put *put, void **request)
{
	const char *function = put->signal_known ? "iputSignal" : "iput";

	call_begin(rma, function);
	return call_end(
		rma, function, rma_speak_put(rma->file, rma->context, put, request));
}

enum err net_rma_test(struct net_rma *rma, void *request, bool *done)
{
	int is_done = 0;
	enum err e;

	call_begin(rma, "test");
	e = call_end(rma, "test", rma->file->tail->test(rma->group, request, &is_done));
	*done = is_done;
	return e;
}

enum err net_rma_progress(struct net_rma *rma)
{
	const struct rma_abi_tail *abi = rma->file->tail;
	bool has_failed = false;
	enum err e = OK;

	if (abi->progress) {
		call_begin(rma, "rmaProgress");
		e = call_end(rma, "rmaProgress", abi->progress(rma->context));
	}
	if (!e && abi->query_error) {
		call_begin(rma, "queryLastError");
		e = call_end(rma, "queryLastError",
			abi->query_error(rma->context, &has_failed));
	}
	if (!e && has_failed)
		e = err_set(ERR_SYSTEM,
			"the one-sided plugin %s (v%d) failed: queryLastError says so",
			rma->file->name, rma->file->version);
	return e;
}

const char *net_rma_calling(const struct net_rma *rma, uint64_t *since_ns)
{
	const char *function = atomic_load_explicit(&rma->calling, memory_order_acquire);

	*since_ns = atomic_load_explicit(&rma->since_ns, memory_order_relaxed);
	return function;
}
