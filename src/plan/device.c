#include "plan/device.h"

#include <stdlib.h>

enum { CACHE_CHOICES = 64 /* direct mapped */ };

struct kept_choice {
	struct device_ask ask; /* key.coll is COLL_COUNT where empty */
	struct device_plan plan;
};

/* One lowered schedule. */
struct kept_ranks {
	struct device_program program;
	struct kept_ranks *next;
};

struct device_plans {
	struct kept_choice choices[CACHE_CHOICES];
	struct kept_ranks *programs; /* owned; the newest first */
};

static void ranks_free(struct kept_ranks *kept, uint32_t rank_count)
{
	for (uint32_t r = 0; kept->program.ranks && r < rank_count; r++)
		program_destroy(kept->program.ranks[r]);
	free(kept->program.ranks);
	free(kept);
}

void device_plans_free(struct device_plans *plans)
{
	if (!plans)
		return;
	while (plans->programs) {
		struct kept_ranks *kept = plans->programs;

		plans->programs = kept->next;
		ranks_free(kept, kept->program.ranks[0]->rank_count);
	}
	free(plans);
}

static enum err plans_make(struct device_plans **plans)
{
	struct device_plans *made = calloc(1, sizeof(*made));

	if (!made)
		return err_set(ERR_SYSTEM, "no memory for plans");
	for (uint32_t i = 0; i < CACHE_CHOICES; i++)
		made->choices[i].ask.key.coll = COLL_COUNT;
	*plans = made;
	return OK;
}

/* A schedule that knows hosts, lowered as if all ranks shared memory: every message is
 * staged, and those between hosts are carried from one copy of the slot to the other. */
static enum err hosts_lower(const struct lower_args *args,
	const struct sched_hosts *hosts, struct program **programs)
{
	struct sched *scheds = calloc(args->rank_count, sizeof(*scheds));
	uint32_t written = 0;
	enum err e = scheds ? OK
			    : err_set(ERR_SYSTEM, "no memory for schedules of %u ranks",
				      args->rank_count);

	for (; written < args->rank_count && !e; written += !e)
		e = catalog_write_hosts(
			args->kind, hosts, written, args->root, &scheds[written]);
	if (!e)
		e = program_lower_all(scheds, args, programs);
	while (written)
		sched_fini(&scheds[--written]);
	free(scheds);
	return e;
}

static enum err ranks_lower(const struct lower_args *args,
	const struct sched_hosts *hosts, struct kept_ranks **kept)
{
	struct kept_ranks *made = calloc(1, sizeof(*made));
	enum err e;

	if (made) {
		made->program = (struct device_program){.kind = args->kind,
			.root = args->root,
			.depth = args->depth,
			.mode = args->mode};
		made->program.ranks = calloc(
			args->rank_count, sizeof(*made->program.ranks));
	}
	if (!made || !made->program.ranks) {
		free(made);
		return err_set(ERR_SYSTEM, "no memory for programs of %u ranks",
			args->rank_count);
	}
	e = hosts && args->kind->drivers != DRIVERS_NONE
		    ? hosts_lower(args, hosts, made->program.ranks)
		    : program_lower_all(NULL, args, made->program.ranks);
	if (e) {
		free(made->program.ranks);
		free(made);
		return e;
	}
	*kept = made;
	return OK;
}

static enum err ranks_get(struct device_plans *plans, const struct lower_args *args,
	const struct sched_hosts *hosts, const struct device_program **program)
{
	struct kept_ranks *kept;
	enum err e;

	for (kept = plans->programs; kept; kept = kept->next)
		if (kept->program.kind == args->kind &&
			kept->program.root == args->root &&
			kept->program.mode == args->mode &&
			kept->program.depth == args->depth) {
			*program = &kept->program;
			return OK;
		}
	e = ranks_lower(args, hosts, &kept);
	if (e)
		return e;
	kept->program.number = plans->programs ? plans->programs->program.number + 1 : 0;
	kept->next = plans->programs;
	plans->programs = kept;
	*program = &kept->program;
	return OK;
}

static enum err choice_make(struct device_plans *plans, const struct device_job *job,
	const struct device_ask *ask, struct device_plan *plan)
{
	const struct plan_key *key = &ask->key;
	const struct plan_room *room = job->room;
	const struct device_question question = {.limits = room->limits,
		.call = {.coll = key->coll,
			.type = key->type,
			.rank_count = room->rank_count,
			.bytes = key->count * dtype_size(key->type)},
		.has_slots = ask->has_slots,
		.is_apart = ask->is_apart,
		.hosts = ask->is_hauled ? job->hosts : NULL,
		.schedule = key->schedule,
		.protos = ask->protos};
	struct device_choice choice;
	enum err e = device_choose(&question, &choice);
	const struct lower_args args = {.kind = choice.kind,
		.rank_count = room->rank_count,
		.root = coll_has_root(key->coll) ? key->root : 0,
		.mode = choice.is_staged ? MODE_STAGED : MODE_DIRECT,
		.depth = choice.depth};

	*plan = (struct device_plan){
		.is_staged = choice.is_staged, .proto = choice.proto};
	return e ? e : ranks_get(plans, &args, question.hosts, &plan->program);
}

static bool is_same(const struct device_ask *a, const struct device_ask *b)
{
	return plan_key_equal(&a->key, &b->key) && a->protos == b->protos &&
	       a->has_slots == b->has_slots && a->is_apart == b->is_apart &&
	       a->is_hauled == b->is_hauled;
}

enum err device_plans_get(struct device_plans **plans, const struct device_job *job,
	const struct device_ask *ask, struct device_plan *plan)
{
	struct kept_choice *slot;
	enum err e = *plans ? OK : plans_make(plans);

	if (e)
		return e;
	slot = &(*plans)->choices[plan_key_hash(&ask->key) % CACHE_CHOICES];
	if (!is_same(&slot->ask, ask)) {
		struct kept_choice made = {.ask = *ask};

		e = choice_make(*plans, job, ask, &made.plan);
		if (e)
			return e;
		*slot = made;
	}
	*plan = slot->plan;
	return OK;
}
