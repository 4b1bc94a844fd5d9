#include "comm/profile.h"

#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/gpu.h"
#include "comm/profile_mail.h"
#include "comm/state.h"
#include "exec/cuda/driver/driver.h"
#include "net/plugin.h"
#include "prof/profiler.h"

struct profile {
	atomic_uint holders; /* the communicator, and groups that tell of it */
	struct profiler *plugin;
	pthread_mutex_t lock;	   /* of the one below: streams end when they like */
	struct mail_message *lost; /* owned: messages of calls that have failed */
	_Atomic uint64_t sequence[PROF_FUNC_COUNT];
};

/* The calls of one group to one communicator. */
struct group_profile {
	atomic_uint holders;	 /* its calls */
	struct profile *profile; /* held */
	void *api;		 /* the plugin's, as below: GROUP_API */
	void *launch;		 /* KERNEL_LAUNCH */
	pthread_mutex_t lock;	 /* of the two below: streams end when they like */
	uint32_t running;
	void *event; /* GROUP, while something runs */
};

struct call_profile {
	atomic_uint holders; /* the call; the stream that runs it */
	struct group_profile *group;
	struct prof_call call;
	void *api;   /* COLL_API or P2P_API; stopped, but still the parent */
	void *event; /* COLL or P2P */
	struct call_mail mail;
	bool is_running;
};

/* ---- names ---- */

static const enum prof_func funcs[COLL_COUNT] = {[COLL_ALL_REDUCE] = PROF_ALL_REDUCE,
	[COLL_BROADCAST] = PROF_BROADCAST,
	[COLL_REDUCE] = PROF_REDUCE,
	[COLL_ALL_GATHER] = PROF_ALL_GATHER,
	[COLL_REDUCE_SCATTER] = PROF_REDUCE_SCATTER,
	[COLL_ALL_TO_ALL] = PROF_ALL_TO_ALL,
	[COLL_GATHER] = PROF_GATHER,
	[COLL_SCATTER] = PROF_SCATTER};

/* A schedule's name as NCCL writes algorithms. Plugins keep the address, so it stays. */
static const char *algo_text(const char *schedule)
{
	enum { NAMES_MAX = 64, NAME_BYTES = 32 };
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static char names[NAMES_MAX][NAME_BYTES];
	char name[NAME_BYTES];
	uint32_t i = 0;

	snprintf(name, sizeof(name), "%s", schedule);
	for (char *c = name; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	pthread_mutex_lock(&lock);
	while (i < NAMES_MAX && names[i][0] && strcmp(names[i], name))
		i++;
	if (i < NAMES_MAX && !names[i][0]) /* who knows one already reads it */
		memcpy(names[i], name, sizeof(name));
	pthread_mutex_unlock(&lock);
	return i < NAMES_MAX ? names[i] : NULL;
}

/* ---- a communicator ---- */

struct profile *profile_open(const struct comm *comm)
{
	struct profiler_args args = {.comm = comm->id_hash,
		.name = comm->config.comm_name,
		.host_count = 1,
		.rank_count = (int)comm->rank_count,
		.rank = (int)comm->rank,
		.enter = gpu_context_use,
		.where = gpu_context()};
	struct profile *profile = calloc(1, sizeof(*profile));

	if (!profile)
		return NULL;
	for (uint32_t r = 0; comm->hosts.numbers && r < comm->rank_count; r++)
		if (comm->hosts.numbers[r] >= args.host_count)
			args.host_count = comm->hosts.numbers[r] + 1;
	profile->plugin = profiler_open(&args);
	if (!profile->plugin) {
		free(profile);
		return NULL;
	}
	net_plugins_tell(mail_net_event);
	atomic_store(&profile->holders, 1);
	pthread_mutex_init(&profile->lock, NULL);
	return profile;
}

void profile_put(struct profile *profile)
{
	if (!profile || atomic_fetch_sub(&profile->holders, 1) > 1)
		return;
	profiler_close(profile->plugin);
	mail_forget(profile->lost);
	pthread_mutex_destroy(&profile->lock);
	free(profile);
}

bool profile_is_on(const struct comm *comm)
{
	return comm->profile != NULL;
}

/* ---- groups and calls ---- */

static struct group_profile *group_make(struct profile *profile)
{
	struct group_profile *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	atomic_fetch_add(&profile->holders, 1);
	group->profile = profile;
	pthread_mutex_init(&group->lock, NULL);
	return group;
}

static void group_put(struct group_profile *group)
{
	if (atomic_fetch_sub(&group->holders, 1) > 1)
		return;
	profile_put(group->profile);
	pthread_mutex_destroy(&group->lock);
	free(group);
}

static void run_stop(struct call_profile *profile);

static void call_put(struct call_profile *profile)
{
	if (atomic_fetch_sub(&profile->holders, 1) > 1)
		return;
	run_stop(profile); /* of a call that was refused after it was told of */
	group_put(profile->group);
	free(profile);
}

/* Is there an event for it? Not for what is one-sided. */
static bool is_told(const struct comm_call *call)
{
	return call->kind == CALL_COLL || call->kind == CALL_SEND ||
	       call->kind == CALL_RECV;
}

static bool is_captured(const struct comm_call *call)
{
	const struct cuda_driver *driver = call->on_gpu ? cuda_driver() : NULL;
	int status = 0;

	return driver &&
	       !driver->stream_is_capturing((cu_stream)call->gpu_stream, &status) &&
	       status;
}

/* Bytes that cross a rank's links, by NCCL's measure. */
static size_t traffic_of(const struct comm_call *call)
{
	size_t bytes = call->count * dtype_size(call->type);

	if (call->kind != CALL_COLL)
		return bytes;
	if (call->coll == COLL_ALL_REDUCE)
		return 2 * bytes;
	if (call->coll == COLL_ALL_GATHER || call->coll == COLL_REDUCE_SCATTER)
		return bytes * call->comm->rank_count;
	return bytes;
}

static struct prof_call call_describe(const struct comm_call *call)
{
	bool is_coll = call->kind == CALL_COLL;

	return (struct prof_call){.func = is_coll		    ? funcs[call->coll]
					  : call->kind == CALL_SEND ? PROF_SEND
								    : PROF_RECV,
		.type = call->type,
		.in = call->in,
		.out = call->out,
		.count = call->count,
		.root = call_has_root(call->kind, call->coll) ? (int)call->root : 0,
		.op = is_coll && coll_reduces(call->coll) ? (uint32_t)call->op.op : 0,
		.tag = call->tag,
		.traffic_bytes = traffic_of(call),
		.stream = call->on_gpu ? call->gpu_stream : (void *)call->stream,
		.is_captured = is_captured(call)};
}

static struct group_profile *group_of(
	const struct comm_call *call, const struct comm_call *earlier, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (earlier[i].profile && earlier[i].comm == call->comm)
			return earlier[i].profile->group;
	return group_make(call->comm->profile);
}

void profile_call(struct comm_call *call, const struct comm_call *earlier,
	uint32_t earlier_count, int depth)
{
	struct call_profile *profile;
	struct group_profile *group;
	struct profiler *plugin;

	call->profile = NULL;
	if (!call->comm->profile || !is_told(call))
		return;
	profile = calloc(1, sizeof(*profile));
	group = profile ? group_of(call, earlier, earlier_count) : NULL;
	if (!group) {
		free(profile);
		return;
	}
	plugin = group->profile->plugin;
	profile->group = group;
	profile->call = call_describe(call);
	atomic_store(&profile->holders, 1);
	if (!atomic_fetch_add(&group->holders, 1)) {
		group->api = profiler_start(
			plugin, &(struct prof_event){.kind = PROF_GROUP_API,
					.depth = depth,
					.call = &profile->call});
		profiler_state(plugin, group->api, PROF_GROUP_STARTED, NULL);
	}
	profile->api = profiler_start(plugin,
		&(struct prof_event){
			.kind = call->kind == CALL_COLL ? PROF_COLL_API : PROF_P2P_API,
			.parent = group->api,
			.call = &profile->call});
	call->profile = profile;
}

void profile_called(const struct comm_call *call)
{
	if (call->profile)
		profiler_stop(call->profile->group->profile->plugin, call->profile->api);
}

/* Is it the first of its communicator's? */
static bool is_first(const struct comm_call *calls, uint32_t at)
{
	const struct group_profile *group = calls[at].profile->group;

	for (uint32_t i = 0; i < at; i++)
		if (calls[i].profile && calls[i].profile->group == group)
			return false;
	return true;
}

void profile_group_ends(const struct comm_call *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (calls[i].profile && is_first(calls, i))
			profiler_state(calls[i].profile->group->profile->plugin,
				calls[i].profile->group->api, PROF_GROUP_ENDS, NULL);
}

void profile_group_ended(struct comm_call *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct group_profile *group = calls[i].profile ? calls[i].profile->group
							       : NULL;

		if (!group)
			continue;
		profiler_stop(group->profile->plugin, group->api);
		group->api = NULL;
	}
	for (uint32_t i = 0; i < count; i++) {
		if (calls[i].profile)
			call_put(calls[i].profile);
		calls[i].profile = NULL;
	}
}

/* ---- while they run ---- */

/* The algorithm, of a call on host memory. */
static void choice_ask(const struct comm_call *call, struct prof_call *told)
{
	const struct host_spec spec = call_spec(call);
	const struct plan *plan;

	if (call->comm->rank_count == 1 || !call->count ||
		plan_get(host_engine_planner(call->comm->engine), &spec.key, &plan))
		return;
	told->algo = algo_text(
		plan->shapes[plan->eager ? MODE_STAGED : MODE_DIRECT].schedule);
	told->proto = "SIMPLE";
}

static void run_start(struct call_profile *profile)
{
	struct group_profile *group = profile->group;
	struct profiler *plugin = group->profile->plugin;
	bool is_pair = profile->call.func == PROF_SEND || profile->call.func == PROF_RECV;

	if (!is_pair)
		profile->call.sequence = atomic_fetch_add(
			&group->profile->sequence[profile->call.func], 1);
	pthread_mutex_lock(&group->lock);
	if (!group->running++)
		group->event = profiler_start(
			plugin, &(struct prof_event){.kind = PROF_GROUP});
	profile->event = profiler_start(
		plugin, &(struct prof_event){.kind = is_pair ? PROF_P2P : PROF_COLL,
				.parent = profile->api,
				.group = group->event,
				.call = &profile->call});
	pthread_mutex_unlock(&group->lock);
	profile->mail = (struct call_mail){.plugin = plugin, .parent = profile->event};
	profile->is_running = true;
}

static void run_stop(struct call_profile *profile)
{
	struct group_profile *group = profile->group;
	struct profiler *plugin = group->profile->plugin;

	if (!profile->is_running)
		return;
	profile->is_running = false;
	pthread_mutex_lock(&group->profile->lock);
	group->profile->lost = mail_end(&profile->mail, group->profile->lost);
	pthread_mutex_unlock(&group->profile->lock);
	profiler_stop(plugin, profile->event);
	pthread_mutex_lock(&group->lock);
	if (!--group->running) {
		profiler_stop(plugin, group->event);
		group->event = NULL;
	}
	pthread_mutex_unlock(&group->lock);
}

void profile_run(const struct comm_call *calls, uint32_t count, bool is_planned)
{
	for (uint32_t i = 0; i < count; i++) {
		struct call_profile *profile = calls[i].profile;

		if (!profile)
			continue;
		if (is_planned && calls[i].kind == CALL_COLL)
			choice_ask(&calls[i], &profile->call);
		run_start(profile);
	}
}

void profile_ran(const struct comm_call *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (calls[i].profile)
			run_stop(calls[i].profile);
}

struct call_profile *profile_keep(const struct comm_call *call)
{
	if (call->profile)
		atomic_fetch_add(&call->profile->holders, 1);
	return call->profile;
}

void profile_over(struct call_profile *profile)
{
	if (!profile)
		return;
	run_stop(profile);
	call_put(profile);
}

/* ---- messages with other hosts ---- */

static void *message_began(void *call, const struct host_message *message)
{
	struct call_profile *profile = call;

	return profile->is_running ? mail_began(&profile->mail, message) : NULL;
}

const struct host_teller profile_teller = {.began = message_began, .over = mail_over};

/* ---- on a GPU ---- */

void profile_launch(const struct comm_call *calls, uint32_t count)
{
	profile_run(calls, count, false);
	for (uint32_t i = 0; i < count; i++) {
		struct call_profile *profile = calls[i].profile;
		struct group_profile *group = profile ? profile->group : NULL;

		if (group && is_first(calls, i))
			group->launch = profiler_start(group->profile->plugin,
				&(struct prof_event){.kind = PROF_KERNEL_LAUNCH,
					.parent = group->api,
					.call = &profile->call});
	}
}

void profile_launched(const struct comm_call *calls, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (calls[i].profile && is_first(calls, i))
			profiler_stop(calls[i].profile->group->profile->plugin,
				calls[i].profile->group->launch);
	profile_ran(calls, count);
}
