/*
 * derive.c - communicators made from others: split, shrink, grow.
 */
#include <stdlib.h>
#include <string.h>

#include "api/check.h"
#include "api/config.h"
#include "api/group.h"
#include "base/environment.h"

/* A job with a child, ready to be filled in; NULL after noting the failure. */
static struct job *child_job(enum job_kind kind, struct comm *parent,
	const ncclConfig_t *user, ncclComm_t *out, enum err *error)
{
	struct comm_config config;
	struct job *job = NULL;
	enum err e = config_read(user, parent ? comm_config(parent) : NULL, &config);

	environment_keep();
	if (!e) {
		job = job_create(kind, parent);
		e = job ? job_add_child(job, &config, out) : ERR_SYSTEM;
	}
	if (e && job)
		job_cancel(job);
	if (e == ERR_SYSTEM && parent) /* the others are waiting for this rank */
		comm_refuse_child(parent, e);
	*error = group_note(e);
	return e ? NULL : job;
}

ncclResult_t pncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct job *job;
	enum err e = check_ready(comm_of(comm), "CommSplit");

	if (!e)
		e = check_not_finalized(comm_of(comm), "CommSplit");
	if (!e)
		e = check_pointer(newcomm, "CommSplit", "newcomm");
	if (!e && color < 0 && color != NCCL_SPLIT_NOCOLOR)
		e = err_set(ERR_ARGUMENT,
			"CommSplit: color is %d and should be at least 0, or "
			"NCCL_SPLIT_NOCOLOR",
			color);
	if (e)
		return result_of(group_note(e));
	job = child_job(JOB_SPLIT, comm_of(comm), config, newcomm, &e);
	if (!job)
		return result_of(e);
	/* It will not become anything; who polls, polls the parent. */
	if (color == NCCL_SPLIT_NOCOLOR)
		*newcomm = NULL;
	job->args.color = color;
	job->args.key = key;
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommSplit);

static int compare_ints(const void *left, const void *right)
{
	int a = *(const int *)left, b = *(const int *)right;

	return (a > b) - (a < b);
}

/* A sorted copy of the caller's list in *sorted, owned by the caller. */
static enum err check_exclude(struct comm *comm, const int *list, int count, int **sorted)
{
	int rank = (int)comm_rank(comm), rank_count = (int)comm_rank_count(comm), i;
	int *copy;

	if (!list || count < 1 || count >= rank_count)
		return err_set(ERR_ARGUMENT,
			"CommShrink: %d ranks to exclude at %p; should be 1..%d of them",
			count, (const void *)list, rank_count - 1);
	copy = malloc((size_t)count * sizeof(*copy));
	if (!copy)
		return err_set(ERR_SYSTEM, "no memory for %d ranks", count);
	memcpy(copy, list, (size_t)count * sizeof(*copy));
	qsort(copy, (size_t)count, sizeof(*copy), compare_ints);
	for (i = 0; i < count; i++)
		if (copy[i] < 0 || copy[i] >= rank_count || copy[i] == rank ||
			(i && copy[i] == copy[i - 1]))
			break;
	if (i == count) {
		*sorted = copy;
		return OK;
	}
	i = copy[i];
	free(copy);
	if (i == rank)
		return err_set(ERR_ARGUMENT,
			"CommShrink: rank %d is excluded and should not call", i);
	if (i >= 0 && i < rank_count)
		return err_set(ERR_ARGUMENT, "CommShrink: rank %d is excluded twice", i);
	return err_set(ERR_ARGUMENT,
		"CommShrink: invalid rank %d (should be in the 0..%d range)", i,
		rank_count - 1);
}

/* With the abort flag a communicator that failed or is stuck may be shrunk: that is what
 * it is for. */
static enum err check_shrink(struct comm *comm, const ncclComm_t *out, int flags)
{
	enum err e;

	if (flags & NCCL_SHRINK_ABORT)
		e = check_handle(comm, "CommShrink");
	else
		e = check_ready(comm, "CommShrink");
	if (!e)
		e = check_not_finalized(comm, "CommShrink");
	if (!e)
		e = check_pointer(out, "CommShrink", "newcomm");
	if (!e && (flags & ~NCCL_SHRINK_ABORT))
		e = err_set(
			ERR_ARGUMENT, "CommShrink: invalid flags %#x", (unsigned)flags);
	return e;
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
	struct comm *parent = comm_of(comm);
	struct job *job;
	int *exclude = NULL;
	enum err e = check_shrink(parent, newcomm, shrinkFlags);

	if (!e)
		e = check_exclude(parent, excludeRanksList, excludeRanksCount, &exclude);
	if (e)
		return result_of(group_note(e));
	job = child_job(JOB_SHRINK, parent, config, newcomm, &e);
	if (!job) {
		free(exclude);
		return result_of(e);
	}
	job->args.exclude = exclude;
	job->args.exclude_count = (uint32_t)excludeRanksCount;
	job->args.abort = shrinkFlags & NCCL_SHRINK_ABORT;
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommShrink);

ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId)
{
	struct boot_id id;
	enum err e = check_comm(comm_of(comm), "CommGetUniqueId");

	if (!e)
		e = check_pointer(uniqueId, "CommGetUniqueId", "uniqueId");
	if (!e)
		e = comm_get_unique_id(comm_of(comm), &id);
	if (!e)
		memcpy(uniqueId, &id, sizeof(*uniqueId));
	return result_of(e);
}
WEAK_TWIN(ncclCommGetUniqueId);

static enum err check_grow_old(struct comm *comm, int rank_count, int rank)
{
	enum err e = check_comm(comm, "CommGrow");

	if (e)
		return e;
	if (rank != -1)
		return err_set(ERR_ARGUMENT,
			"CommGrow: a rank that is in already keeps its rank and passes "
			"-1, not %d",
			rank);
	if (rank_count <= (int)comm_rank_count(comm))
		return err_set(ERR_ARGUMENT,
			"CommGrow: nRanks is %d and there are %u already", rank_count,
			comm_rank_count(comm));
	return OK;
}

static enum err check_grow_new(int rank_count, const ncclUniqueId *id, int rank)
{
	enum err e = check_pointer(id, "CommGrow", "uniqueId of a new rank");

	if (!e && (rank < 1 || rank >= rank_count))
		e = err_set(ERR_ARGUMENT,
			"CommGrow: invalid rank requested : %d/%d (new ranks come after "
			"the old)",
			rank, rank_count);
	return e;
}

ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config)
{
	struct comm *parent = comm_of(comm);
	struct job *job;
	enum err e = parent ? check_grow_old(parent, nRanks, rank)
			    : check_grow_new(nRanks, uniqueId, rank);

	if (!e)
		e = check_pointer(newcomm, "CommGrow", "newcomm");
	if (e)
		return result_of(group_note(e));
	job = child_job(JOB_GROW, parent, config, newcomm, &e);
	if (!job)
		return result_of(e);
	job->args.init.rank_count = (uint32_t)nRanks;
	job->args.rank = rank;
	if (uniqueId)
		e = job_add_ids(job, uniqueId, 1);
	if (e) {
		job_cancel(job);
		return result_of(group_note(e));
	}
	return result_of(group_job(job));
}
WEAK_TWIN(ncclCommGrow);
