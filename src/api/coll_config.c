/*
 * As ncclConfig_t this sits in the caller's binary: `size` says how much of it there is.
 * Its version is not looked at, because members were only ever added at the end.
 */
#include "api/coll_config.h"

#include <string.h>

#include "base/log.h"

enum { CTAS_MAX = 64, CGA_MAX = 8, SIZE_HEAD = 16 };

static enum err copy(
	const ncclCollConfig_t *user, const char *function, ncclCollConfig_t *config)
{
	const ncclCollConfig_t fresh = NCCL_COLLCONFIG_INITIALIZER;

	*config = fresh;
	config->magic = 0; /* unless the caller's says otherwise */
	memcpy(config, user, user->size < sizeof(fresh) ? user->size : sizeof(fresh));
	if (user->size < SIZE_HEAD || config->magic != fresh.magic)
		return err_set(ERR_ARGUMENT,
			"%s: ncclCollConfig_t magic mismatch (got 0x%x, expected 0x%x): "
			"start "
			"from NCCL_COLLCONFIG_INITIALIZER",
			function, config->magic, fresh.magic);
	if (config->forceAlgSelection != 0 && config->forceAlgSelection != 1)
		return err_set(ERR_ARGUMENT,
			"%s: forceAlgSelection is %d and should be 0 or 1", function,
			config->forceAlgSelection);
	if (config->CTAPolicy != NCCL_CONFIG_UNDEF_INT &&
		(config->CTAPolicy < 0 || config->CTAPolicy > 3))
		return err_set(ERR_ARGUMENT,
			"%s: CTAPolicy is %d and should be in the 0..3 range", function,
			config->CTAPolicy);
	return OK;
}

/* Numbers that describe how a kernel spreads over a GPU: NCCL passes over those that are
 * out of range, and ours are what the engine says. */
static void number_look(
	const char *function, const char *name, int value, int lowest, int highest)
{
	if (value == NCCL_CONFIG_UNDEF_INT)
		return;
	if (value < lowest || value > highest)
		log_info(LOG_TUNING,
			"%s: %s %d is not in the %d..%d range and is ignored", function,
			name, value, lowest, highest);
	else
		log_info(LOG_TUNING, "%s: %s %d is accepted and changes nothing here",
			function, name, value);
}

static void policy_look(const char *function, int policy)
{
	const int both = NCCL_CTA_POLICY_EFFICIENCY | NCCL_CTA_POLICY_ZERO;

	if (policy == both)
		log_attn("%s: CTAPolicy asks for ZERO and EFFICIENCY: ZERO is taken",
			function);
	else
		number_look(function, "CTAPolicy", policy, 0, both);
}

enum err coll_config_read(
	const ncclCollConfig_t *user, const char *function, struct coll_wishes *wishes)
{
	ncclCollConfig_t config;
	enum err e;

	*wishes = (struct coll_wishes){.is_forced = true};
	if (!user)
		return OK;
	e = copy(user, function, &config);
	if (e)
		return e;
	number_look(function, "minCTAs", config.minCTAs, 1, CTAS_MAX);
	number_look(function, "maxCTAs", config.maxCTAs, 1, CTAS_MAX);
	number_look(function, "nvlsCTAs", config.nvlsCTAs, 1, CTAS_MAX);
	number_look(function, "cgaClusterSize", config.cgaClusterSize, 0, CGA_MAX);
	policy_look(function, config.CTAPolicy);
	wishes->names = config.algSelection;
	wishes->is_forced = config.forceAlgSelection;
	wishes->launched = config.launchCompletionEvent;
	wishes->tag = config.userProfilerTag;
	return OK;
}

enum err coll_config_apply(
	const struct coll_wishes *wishes, const char *function, struct comm_call *call)
{
	if (wishes->launched && !call->on_gpu)
		return err_set(ERR_USAGE,
			"%s: launchCompletionEvent is set, and nothing is launched for a "
			"communicator on host memory: leave it NULL",
			function);
	call->launched = (void *)wishes->launched;
	call->tag = wishes->tag;
	if (!wishes->names || !call->count)
		return OK;
	return comm_select(call, wishes->names, wishes->is_forced);
}
