/*
 * init.c - making communicators from nothing; derive.c makes them from others.
 */
#include <stdio.h>
#include <string.h>

#include "api/check.h"
#include "api/config.h"
#include "api/group.h"
#include "base/env_names.h"
#include "base/environment.h"
#include "base/log.h"
#include "comm/gpu.h"

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId)
{
	struct boot_id id;
	enum err e = check_pointer(uniqueId, "GetUniqueId", "uniqueId");

	environment_keep();
	if (!e)
		e = comm_id_create(&id);
	if (!e)
		memcpy(uniqueId, &id, sizeof(*uniqueId));
	return result_of(e);
}
WEAK_TWIN(ncclGetUniqueId);

/* As much of it as the caller has; the rest is as after the initializer. */
static enum err encryption_read(
	const ncclEncryptionConfig_t *user, ncclEncryptionConfig_t *config)
{
	const ncclEncryptionConfig_t fresh = NCCL_ENCRYPTION_CONFIG_INITIALIZER;

	*config = fresh;
	if (!user)
		return OK;
	if (user->magic != fresh.magic)
		return err_set(ERR_ARGUMENT,
			"SetEncryption: config was not initialized with "
			"NCCL_ENCRYPTION_CONFIG_INITIALIZER (magic %#x)",
			user->magic);
	memcpy(config, user, user->size < sizeof(fresh) ? user->size : sizeof(fresh));
	if (config->mode != NCCL_ENCRYPTION_MODE_NONE &&
		config->mode != NCCL_ENCRYPTION_MODE_PSK)
		return err_set(ERR_ARGUMENT,
			"SetEncryption: mode is %d and should be "
			"NCCL_ENCRYPTION_MODE_NONE "
			"or _PSK",
			config->mode);
	if (config->mode == NCCL_ENCRYPTION_MODE_PSK && !config->psk)
		return err_set(ERR_ARGUMENT,
			"SetEncryption: NCCL_ENCRYPTION_MODE_PSK needs a psk");
	return OK;
}

ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *user)
{
	ncclEncryptionConfig_t config;
	enum err e = encryption_read(user, &config);
	bool has_key = !e && config.mode == NCCL_ENCRYPTION_MODE_PSK;

	return result_of(e ? e : comm_set_key(has_key ? config.psk : NULL));
}
WEAK_TWIN(ncclSetEncryption);

struct init_request {
	const char *function; /* full name, for the log */
	ncclComm_t *out;
	int rank_count, rank;
	const ncclUniqueId *ids;
	int id_count;
	const ncclConfig_t *config;
	int device;
	void *gpu_context; /* NULL: the caller's */
};

static enum err check_request(const struct init_request *request)
{
	const char *function = request->function;
	enum err e = check_pointer(request->out, function, "comm");

	if (!e)
		e = check_pointer(request->ids, function, "commIds");
	if (e)
		return e;
	if (request->rank_count < 1)
		return err_set(ERR_ARGUMENT, "%s: nranks is %d and should be at least 1",
			function, request->rank_count);
	if (request->rank < 0 || request->rank >= request->rank_count)
		return err_set(ERR_ARGUMENT, "%s: invalid rank requested : %d/%d",
			function, request->rank, request->rank_count);
	if (request->id_count < 1 || request->id_count > request->rank_count)
		return err_set(ERR_ARGUMENT,
			"%s: nId is %d and should be in the 1..%d range, one id per rank "
			"at most",
			function, request->id_count, request->rank_count);
	return OK;
}

/* The version we stand in for, and our own where NCCL names CUDA's. */
static void version_log(void)
{
	char version[64];

	snprintf(version, sizeof(version), "%d.%d.%d+weft%s", NCCL_MAJOR, NCCL_MINOR,
		NCCL_PATCH, WEFT_VERSION);
	log_banner(version);
	env_names_warn();
}

/* A rank that has no memory to begin does not leave the others waiting. */
static enum err refuse(const struct init_request *request, enum err code)
{
	const struct comm_init_args args = {.ids = (const struct boot_id *)request->ids,
		.id_count = (uint32_t)request->id_count,
		.rank_count = (uint32_t)request->rank_count,
		.rank = (uint32_t)request->rank};

	comm_refuse(&args, code);
	return group_note(code);
}

static enum err init(const struct init_request *request)
{
	struct comm_config config;
	struct job *job;
	enum err e = check_request(request);

	if (!e)
		e = config_read(request->config, NULL, &config);
	if (e)
		return group_note(e);
	comm_speak_as((uint32_t)request->rank);
	environment_keep();
	if (!request->rank)
		version_log();
	job = job_create(JOB_INIT, NULL);
	if (!job)
		return refuse(request, ERR_SYSTEM);
	e = job_add_ids(job, request->ids, request->id_count);
	if (!e)
		e = job_add_child(job, &config, request->out);
	if (e) {
		job_cancel(job);
		return refuse(request, e);
	}
	job->args.init.rank_count = (uint32_t)request->rank_count;
	job->args.init.rank = (uint32_t)request->rank;
	job->args.init.device = request->device;
	if (request->gpu_context)
		job->gpu_context = request->gpu_context;
	job->args.init.caller = request->function;
	return group_job(job);
}

ncclResult_t pncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	return result_of(init(&(struct init_request){
		.function = "ncclCommInitRank",
		.out = comm,
		.rank_count = nranks,
		.rank = rank,
		.ids = &commId,
		.id_count = 1,
	}));
}
WEAK_TWIN(ncclCommInitRank);

ncclResult_t pncclCommInitRankConfig(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank, ncclConfig_t *config)
{
	return result_of(init(&(struct init_request){
		.function = "ncclCommInitRankConfig",
		.out = comm,
		.rank_count = nranks,
		.rank = rank,
		.ids = &commId,
		.id_count = 1,
		.config = config,
	}));
}
WEAK_TWIN(ncclCommInitRankConfig);

ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config)
{
	return result_of(init(&(struct init_request){
		.function = "ncclCommInitRankScalable",
		.out = newcomm,
		.rank_count = nranks,
		.rank = myrank,
		.ids = commIds,
		.id_count = nId,
		.config = config,
	}));
}
WEAK_TWIN(ncclCommInitRankScalable);

static enum err check_all(const ncclComm_t *comms, int count, const int *devices)
{
	const char *function = "ncclCommInitAll";
	enum err e = check_pointer(comms, function, "comm");

	if (e)
		return e;
	if (count < 1)
		return err_set(ERR_ARGUMENT, "%s: ndev is %d and should be at least 1",
			function, count);
	for (int i = 0; devices && i < count; i++)
		if (devices[i] < 0)
			return err_set(ERR_ARGUMENT, "%s: devlist[%d] is %d", function, i,
				devices[i]);
	return OK;
}

static enum err init_listed(
	ncclComm_t *comms, const struct gpu_listed *listed, const ncclUniqueId *id)
{
	void *context;
	enum err e = gpu_context_listed(listed, &context);

	if (e)
		return group_note(e);
	return init(&(struct init_request){
		.function = "ncclCommInitAll",
		.out = &comms[listed->at],
		.rank_count = listed->count,
		.rank = listed->at,
		.ids = id,
		.id_count = 1,
		.device = listed->devices ? listed->devices[listed->at] : listed->at,
		.gpu_context = context,
	});
}

/* One rank after the other inside a group: they meet when the group ends. */
static enum err init_all(ncclComm_t *comms, int count, const int *devices)
{
	ncclUniqueId id;
	enum err e = (enum err)pncclGetUniqueId(&id), ended;

	if (e)
		return group_note(e);
	group_start();
	for (int rank = 0; rank < count && !e; rank++)
		e = init_listed(comms, &(struct gpu_listed){devices, count, rank}, &id);
	ended = group_end();
	e = e ? e : ended;
	if (e && e != ERR_PROGRESS)
		comm_id_drop((const struct boot_id *)&id);
	return e;
}

ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist)
{
	enum err e = check_all(comm, ndev, devlist);

	if (e)
		return result_of(group_note(e));
	for (int i = 0; i < ndev; i++)
		comm[i] = NULL;
	e = init_all(comm, ndev, devlist);
	/* Some ranks without the others are of no use to anybody. */
	for (int i = 0; i < ndev && e && e != ERR_PROGRESS; i++) {
		pncclCommAbort(comm[i]);
		comm[i] = NULL;
	}
	return result_of(e);
}
WEAK_TWIN(ncclCommInitAll);
