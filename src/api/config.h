/*
 * config.h - a caller's ncclConfig_t, of whatever release, becomes a comm_config.
 */
#ifndef API_CONFIG_H
#define API_CONFIG_H

#include "api/export.h"

/* `user` NULL: take `parent`, or the defaults when that is NULL too. The environment
 * has the last word. */
enum err config_read(const ncclConfig_t *user, const struct comm_config *parent,
	struct comm_config *out);

#endif
