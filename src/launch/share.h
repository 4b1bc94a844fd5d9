/*
 * share.h - bytes from rank 0 to all ranks of a launch, by the way that launch_read()
 * found.
 *
 * All ranks make the same exchanges in the same order, one at a time.
 */
#ifndef LAUNCH_SHARE_H
#define LAUNCH_SHARE_H

#include <stddef.h>

#include "launch/launch.h"

enum { SHARE_BYTES_MAX = 512 };

/* Ask PMIx for what its variables do not say. Nothing for other launchers. */
enum err launch_complete(struct launch *launch);

/* `bytes` of rank 0 to everybody's. All ranks wait for each other, or for rank 0, as long
 * as WEFT_BOOT_TIMEOUT_SEC says. ERR_TIMEOUT says what was looked for. Not for
 * TRAVEL_NONE and TRAVEL_COMM_ID, which need none. */
enum err launch_share(const struct launch *launch, void *bytes, size_t count);

#endif
