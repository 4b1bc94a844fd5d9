/*
 * select.c - the algorithms a program names for one call, on this communicator.
 */
#include <stdio.h>

#include "base/log.h"
#include "base/param.h"
#include "comm/comm.h"
#include "comm/state.h"
#include "tune/select.h"

enum { WHY_BYTES = 160 };

/* The user at the terminal comes before the program. */
static const char *overriding(const struct comm *comm)
{
	if (param_text(PARAM_SCHEDULE))
		return "WEFT_SCHEDULE";
	return comm->limits && limits_rules(comm->limits)->algo_set ? "NCCL_ALGO" : NULL;
}

static enum err select_for(const struct comm_call *call, const char *names,
	struct select_choice *choice, char *why)
{
	const struct comm *comm = call->comm;
	const struct limits_call limited = {.coll = call->coll,
		.type = call->type,
		.rank_count = comm->rank_count,
		.bytes = call->count * dtype_size(call->type)};
	bool can_reach = !call->on_gpu || !comm->gpu.is_apart;
	select_set set;
	enum err e = select_parse(names, call->coll, &set, why, WHY_BYTES);

	if (e || select_choose(set, &limited, can_reach, choice))
		return e;
	snprintf(why, WHY_BYTES,
		"there is nothing like it for %u ranks on %s (docs/selection.md has what "
		"there is)",
		comm->rank_count, call->on_gpu ? "these GPUs" : "host memory");
	return ERR_ARGUMENT;
}

enum err comm_select(struct comm_call *call, const char *names, bool is_forced)
{
	const char *stronger = overriding(call->comm);
	struct select_choice choice = {0};
	char why[WHY_BYTES];
	enum err e = select_for(call, names, &choice, why);

	if (e && is_forced)
		return err_set(e, "%s: algSelection '%.200s' cannot be met: %s",
			coll_name(call->coll), names, why);
	if (e) {
		log_info(LOG_TUNING,
			"%s: algSelection '%.200s' is passed over and the choice is "
			"automatic: %s",
			coll_name(call->coll), names, why);
		return OK;
	}
	if (stronger) {
		log_info(LOG_TUNING, "%s: algSelection '%.200s' gives way to %s",
			coll_name(call->coll), names, stronger);
		return OK;
	}
	call->schedule = choice.schedule;
	call->protos = choice.protos;
	return OK;
}
