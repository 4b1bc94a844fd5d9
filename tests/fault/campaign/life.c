#include "life.h"

#include <unistd.h>

#include "interpose.h"
#include "strike.h"

enum { ID_POLL_US = 50, AGAIN_CALLS = 3, RESUME_LIMIT_US = 8000000 };

struct life {
	const struct job *job;
	struct page *page;
	struct seat *seat;
	int rank;
	bool is_victim;
	bool is_claimed;  /* the buffers are ours alone, and full of a pattern */
	bool has_resumed; /* we have waited for the resumed rank */
	struct data data;
	struct group world, child; /* all ranks; those of the split or shrink */
	struct strike strike;
};

static void begin(struct life *life, enum step step)
{
	outcome_begin(life->seat, step);
	interpose_inside(life->rank == life->job->victim);
}

static ncclResult_t end(
	struct life *life, enum step step, ncclResult_t code, ncclComm_t comm)
{
	interpose_inside(false);
	outcome_end(life->seat, step, code, comm);
	return code;
}

static void group_add(struct group *group, int member, int rank)
{
	if (member == rank)
		group->me = group->count;
	group->members[group->count++] = member;
}

/* ---- meeting ---- */

/* The coordinator says so when the process that should make it has gone. */
static bool id_wait(struct life *life)
{
	struct page *page = life->page;
	ncclResult_t got;

	if (life->rank == 0) {
		begin(life, STEP_ID);
		got = end(life, STEP_ID, ncclGetUniqueId(&page->id), NULL);
		atomic_store(&page->id_state, got ? 2 : 1);
	}
	while (!atomic_load(&page->id_state))
		usleep(ID_POLL_US);
	return atomic_load(&page->id_state) == 1;
}

static bool meet(struct life *life)
{
	const struct job *job = life->job;
	ncclComm_t comm = NULL;
	ncclResult_t got;

	/* failing calls begin with the id; without an id there is nothing to see */
	if (fault_fails_calls(job->fault))
		strike_at(&life->strike, AT_INIT, 0, NULL);
	if (!id_wait(life))
		return false;
	if (!fault_fails_calls(job->fault))
		strike_at(&life->strike, AT_INIT, 0, NULL);
	begin(life, STEP_INIT);
	got = ncclCommInitRank(&comm, job->rank_count, life->page->id, life->rank);
	if (end(life, STEP_INIT, got, NULL))
		return false;
	life->world.comm = comm;
	for (int i = 0; i < job->rank_count; i++)
		group_add(&life->world, i, life->rank);
	return true;
}

/* ---- calls ---- */

static ncclResult_t call_once(struct life *life, const struct group *group, int call,
	enum step step, bool *is_gone)
{
	const char *wrong;
	ncclResult_t got;

	data_fill(&life->data, group, call);
	begin(life, step);
	*is_gone = !strike_enter(&life->strike);
	if (*is_gone)
		return end(life, step, ncclSuccess, NULL);
	got = data_call(&life->data, group, call);
	*is_gone = !strike_leave(&life->strike);
	end(life, step, got, *is_gone ? NULL : group->comm);
	wrong = got ? NULL : data_check(&life->data, group, call);
	if (wrong)
		seat_bad(life->seat, "%s in call %d", wrong, call);
	if (!got)
		atomic_fetch_add(&life->seat->call, 1);
	return got;
}

static bool are_apart(const struct job *job, int rank, int other)
{
	return job->host_of[job->process_of[rank]] !=
	       job->host_of[job->process_of[other]];
}

/* Is the victim in it? The network's faults are only between its host and others. */
static bool has_victim(const struct job *job, const struct group *group)
{
	for (int i = 0; i < group->count; i++) {
		int rank = group->members[i];

		if (!job_is_victim(job, rank))
			continue;
		if (!fault_is_network(job->fault))
			return true;
		for (int j = 0; j < group->count; j++)
			if (are_apart(job, rank, group->members[j]))
				return true;
	}
	return false;
}

/* Ranks that are struck together, as those of a stopped process, miss nobody when they go
 * on; nor does one by itself. */
static bool has_other(const struct job *job, const struct group *group)
{
	for (int i = 0; i < group->count; i++)
		if (!job_is_victim(job, group->members[i]))
			return true;
	return false;
}

/* Until it fails where it must, else a fixed number. False: it failed, or the
 * communicator is gone. */
static bool calls(struct life *life, struct group *group)
{
	const struct job *job = life->job;
	bool must_fail = job_is_lethal(job) && job->moment != AT_DESTROY &&
			 has_victim(job, group) && has_other(job, group);
	bool is_gone = false;
	ncclResult_t got = ncclSuccess;

	if (job->aborts_aside && !life->is_victim)
		strike_abort_aside(&life->strike, group);
	for (int i = 0; (must_fail || i < job->call_count) && !got && !is_gone; i++) {
		strike_at(&life->strike, AT_CALLS, i, group);
		got = call_once(life, group, i, STEP_CALL, &is_gone);
	}
	if (!strike_close(&life->strike))
		is_gone = true;
	if (is_gone)
		group->comm = NULL;
	return !got && !is_gone;
}

/* ---- split and shrink as the moment ---- */

static ncclResult_t divide(struct life *life)
{
	const struct job *job = life->job;
	int color = life->rank % job->color_count, excluded = job->excluded;
	struct group *child = &life->child;
	ncclComm_t comm = NULL;
	ncclResult_t got;

	strike_at(&life->strike, job->moment, 0, NULL);
	begin(life, STEP_DIVIDE);
	if (job->moment == AT_SPLIT)
		got = ncclCommSplit(life->world.comm, color, -life->rank, &comm, NULL);
	else
		got = ncclCommShrink(
			life->world.comm, &excluded, 1, &comm, NULL, NCCL_SHRINK_DEFAULT);
	if (end(life, STEP_DIVIDE, got, life->world.comm))
		return got;
	child->comm = comm;
	if (job->moment == AT_SPLIT)
		for (int i = job->rank_count - 1; i >= 0; i--)
			if (i % job->color_count == color)
				group_add(child, i, life->rank);
	if (job->moment == AT_SHRINK)
		for (int i = 0; i < job->rank_count; i++)
			if (i != excluded)
				group_add(child, i, life->rank);
	return ncclSuccess;
}

/* ---- after a failure ---- */

static void claim_check(struct life *life)
{
	const char *wrong = life->is_claimed ? data_check_claim(&life->data) : NULL;

	if (wrong)
		seat_bad(life->seat, "%s", wrong);
}

/* The stopped rank goes on when everybody else has come here; what it does then must
 * not show in our buffers. */
static void resumed_wait(struct life *life)
{
	struct page *page = life->page;
	int victims = 0;

	if (life->job->fault != FAULT_RESUME || life->is_victim || life->has_resumed)
		return;
	for (int i = 0; i < life->job->rank_count; i++)
		victims += job_is_victim(life->job, i);
	atomic_store(&life->seat->step, STEP_RESUME);
	atomic_fetch_add(&page->given_back, 1);
	if (!word_wait(&page->victims_done, victims, RESUME_LIMIT_US))
		seat_bad(life->seat, "the resumed rank did not come back");
	life->has_resumed = true;
	claim_check(life);
}

static void group_end(struct life *life, struct group *group, bool by_abort)
{
	enum step step = by_abort ? STEP_ABORT : STEP_DESTROY;
	ncclResult_t got;

	if (!group->comm)
		return;
	begin(life, step);
	got = by_abort ? ncclCommAbort(group->comm) : ncclCommDestroy(group->comm);
	end(life, step, got, NULL);
	group->comm = NULL;
}

static ncclResult_t shrink(struct life *life, int flags, struct group *renewed)
{
	const struct job *job = life->job;
	int out[JOB_RANKS], out_count = 0;

	for (int i = 0; i < job->rank_count; i++)
		if (job_is_victim(job, i) ||
			(job->moment == AT_SHRINK && i == job->excluded))
			out[out_count++] = i;
		else
			group_add(renewed, i, life->rank);
	return ncclCommShrink(
		life->world.comm, out, out_count, &renewed->comm, NULL, flags);
}

static ncclResult_t split(struct life *life, struct group *renewed)
{
	for (int i = 0; i < life->job->rank_count; i++)
		group_add(renewed, i, life->rank);
	return ncclCommSplit(life->world.comm, 0, life->rank, &renewed->comm, NULL);
}

/* Go on without the victim, and see that it works. */
static void renew(struct life *life)
{
	enum after after = life->job->after;
	int flags = after == AFTER_SHRINK_ABORT ? NCCL_SHRINK_ABORT : NCCL_SHRINK_DEFAULT;
	struct group renewed = {.comm = NULL};
	ncclResult_t got;
	bool is_gone = false;

	if (after >= AFTER_REVOKE_SHRINK &&
		!atomic_load(&life->seat->outcomes[STEP_REVOKE].is_made)) {
		begin(life, STEP_REVOKE);
		got = ncclCommRevoke(life->world.comm, NCCL_REVOKE_DEFAULT);
		end(life, STEP_REVOKE, got, life->world.comm);
	}
	if (life->is_victim && after != AFTER_REVOKE_SPLIT)
		return;
	begin(life, STEP_RENEW);
	got = after == AFTER_REVOKE_SPLIT ? split(life, &renewed)
					  : shrink(life, flags, &renewed);
	if (end(life, STEP_RENEW, got, life->world.comm))
		return;
	claim_check(life);
	life->is_claimed = false;
	atomic_store(&life->strike.gate, 0);
	for (int i = 0; i < AGAIN_CALLS && !got; i++)
		got = call_once(life, &renewed, i, STEP_CALL_AGAIN, &is_gone);
	data_claim(&life->data);
	life->is_claimed = true;
	group_end(life, &renewed, false);
}

static void after_failure(struct life *life)
{
	const struct job *job = life->job;

	data_claim(&life->data);
	life->is_claimed = true;
	if (job->resumes_early)
		resumed_wait(life);
	group_end(life, &life->child, job->after != AFTER_DESTROY);
	if (job->after >= AFTER_SHRINK && life->world.comm &&
		(!life->is_victim || job->fault == FAULT_REVOKE))
		renew(life);
}

static void live(struct life *life)
{
	const struct job *job = life->job;
	struct group *group = &life->world;
	bool is_well = true;

	if (!meet(life)) {
		data_claim(&life->data);
		life->is_claimed = true;
		return;
	}
	if (job->moment == AT_SHRINK && life->rank == job->excluded) {
		group_end(life, &life->world, job->seed & 1);
		return;
	}
	if (job->moment == AT_SPLIT || job->moment == AT_SHRINK) {
		is_well = !divide(life);
		group = &life->child;
	}
	is_well = is_well && calls(life, group);
	if (!is_well)
		after_failure(life);
	strike_at(&life->strike, AT_DESTROY, 0, group);
	group_end(life, &life->child, false);
	group_end(life, &life->world,
		!is_well && (job->after == AFTER_ABORT ||
				    (job->after > AFTER_DESTROY && job->seed & 1)));
}

void life_run(const struct job *job, struct page *page, int rank)
{
	struct life life = {.job = job,
		.page = page,
		.seat = &page->seats[rank],
		.rank = rank,
		.is_victim = job_is_victim(job, rank)};

	life.strike = (struct strike){.job = job,
		.page = page,
		.seat = life.seat,
		.is_first = rank == job->victim};
	(void)ncclGetLastError(NULL); /* thread-local variables, before one may fail */
	if (data_create(&life.data, job)) {
		/* limits are for the library, and not for the buffers of the others */
		atomic_fetch_add(&page->ready, 1);
		word_wait(&page->ready, job->rank_count, RESUME_LIMIT_US);
		live(&life);
		if (life.is_victim)
			atomic_fetch_add(&page->victims_done, 1);
		if (rank == job->victim)
			strike_end(&life.strike);
		resumed_wait(&life);
		claim_check(&life);
	} else {
		seat_bad(life.seat, "no memory for buffers");
	}
	data_destroy(&life.data);
	atomic_store(&life.seat->step, STEP_FINISHED);
}
