#include "boot/stall.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "boot/absent.h"
#include "boot/state.h"

static void stall_tell(const struct root *root, long waited_s)
{
	char list[WIRE_SENTENCE_MAX - 128];
	uint32_t missing = absent_print(root->came, root->rank_count, list, sizeof(list));

	log_warn("%s %s of %u %s not %s for a new communicator: the others have waited "
		 "%ld s",
		missing == 1 ? "rank" : "ranks", list, root->rank_count,
		missing == 1 ? "has" : "have", root->round ? "connected" : "come",
		waited_s);
}

/* A porch does not know who is missing of other hosts: the root of all does. While all
 * are at work between two rounds nobody waits. */
uint64_t stall_look(struct stall *stall, const struct root *root)
{
	int64_t warn_s = param_int(PARAM_STALL);
	uint64_t now = clock_ns(), warn_ns;

	if (!warn_s || stall->is_told || root->is_decided || root->args.up ||
		!root->arrived)
		return UINT64_MAX;
	if (!stall->since_ns || stall->arrived != root->arrived ||
		stall->round != root->round)
		*stall = (struct stall){root->arrived, root->round, now, false};
	warn_ns = stall->since_ns + (uint64_t)warn_s * CLOCK_SEC;
	if (now < warn_ns)
		return warn_ns;
	stall->is_told = true;
	stall_tell(root, (long)warn_s);
	return UINT64_MAX;
}
