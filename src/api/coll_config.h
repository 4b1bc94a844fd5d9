/*
 * coll_config.h - a caller's ncclCollConfig_t, of whatever release, as wishes for a call.
 */
#ifndef API_COLL_CONFIG_H
#define API_COLL_CONFIG_H

#include "api/export.h"

/* Checked, but for the names, which mean something only with a collective. */
struct coll_wishes {
	const char *names; /* borrowed; NULL: any algorithm */
	bool is_forced;
	cudaEvent_t launched;
	uint64_t tag; /* for a profiler */
};

/* `user` NULL: no wishes. What has no effect here is said in the log. */
enum err coll_config_read(
	const ncclCollConfig_t *user, const char *function, struct coll_wishes *wishes);

/* Make them the call's, which is checked already. */
enum err coll_config_apply(
	const struct coll_wishes *wishes, const char *function, struct comm_call *call);

#endif
