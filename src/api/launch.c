/*
 * launch.c - weft.h's communicator of all ranks that a launcher started.
 */
#include <pthread.h>
#include <string.h>

#include "api/check.h"
#include "base/log.h"
#include "launch/launch.h"
#include "launch/share.h"

/* The launcher knows the process, not its threads: one exchange at a time. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Variables are read once: what the program makes of its environment later is its own
 * affair. */
static struct launch known;
static bool is_known;

static enum err launch_get(struct launch *launch)
{
	enum err e = OK;

	if (!is_known) {
		e = launch_read(&launch_env_process, &known);
		if (!e)
			e = launch_complete(&known);
		is_known = !e;
		if (!e)
			log_info(LOG_INIT, "launch: rank %d of %d, by %s", known.rank,
				known.rank_count, launch_name(known.kind));
	}
	if (!e)
		*launch = known;
	return e;
}

ncclResult_t weftGetLaunch(weftLaunch_t *launch)
{
	enum err e = check_pointer(launch, "weftGetLaunch", "launch");
	struct launch found;

	if (e)
		return result_of(e);
	pthread_mutex_lock(&turn);
	e = launch_get(&found);
	pthread_mutex_unlock(&turn);
	if (!e)
		*launch = (weftLaunch_t){.rank = found.rank,
			.nRanks = found.rank_count,
			.localRank = found.local_rank,
			.nLocalRanks = found.local_count,
			.launcher = launch_name(found.kind)};
	return result_of(e);
}

static bool is_zero(const struct boot_id *id)
{
	static const struct boot_id zero;

	return !memcmp(id, &zero, sizeof(zero));
}

/* Rank 0's id for all. When it could not make one, it sends zeros, so that the others do
 * not wait for nothing. */
static enum err id_share(const struct launch *launch, struct boot_id *id)
{
	enum err made = OK, e;

	memset(id, 0, sizeof(*id));
	if (!launch->rank)
		made = comm_id_create(id);
	e = launch_share(launch, id, sizeof(*id));
	if (made || e) {
		if (!launch->rank && !made)
			comm_id_drop(id);
		return made ? made : e;
	}
	if (is_zero(id))
		return err_set(ERR_REMOTE,
			"rank 0 could not make an id for the ranks to meet: it says why");
	return OK;
}

static enum err id_get(const struct launch *launch, struct boot_id *id)
{
	if (launch->travel == TRAVEL_NONE || launch->travel == TRAVEL_COMM_ID)
		return comm_id_create(id);
	return id_share(launch, id);
}

static enum err id_from_env(struct launch *launch, ncclUniqueId *id)
{
	struct boot_id made;
	enum err e;

	pthread_mutex_lock(&turn);
	e = launch_get(launch);
	if (!e)
		e = id_get(launch, &made);
	pthread_mutex_unlock(&turn);
	if (!e)
		memcpy(id, &made, sizeof(*id));
	return e;
}

ncclResult_t weftGetUniqueIdFromEnv(ncclUniqueId *uniqueId)
{
	enum err e = check_pointer(uniqueId, "weftGetUniqueIdFromEnv", "uniqueId");
	struct launch launch;

	return result_of(e ? e : id_from_env(&launch, uniqueId));
}

ncclResult_t weftInitFromEnv(ncclComm_t *comm)
{
	enum err e = check_pointer(comm, "weftInitFromEnv", "comm");
	struct launch launch;
	ncclUniqueId id;

	if (!e)
		e = id_from_env(&launch, &id);
	return e ? result_of(e)
		 : pncclCommInitRank(comm, launch.rank_count, id, launch.rank);
}
