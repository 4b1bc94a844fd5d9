/*
 * aside.h - words of the device written past streams that are stuck.
 *
 * The streams of a context share its channels, and one that waits keeps back all others
 * on its channel, whatever their priority: when all channels wait, nothing that is
 * enqueued in the context can end the wait. A context of its own has channels of its own.
 * It takes a tenth of a second to make, so this is for the end only; and it reaches what
 * this process has allocated, not what it has mapped of others (docs/design/04).
 */
#ifndef EXEC_CUDA_ASIDE_H
#define EXEC_CUDA_ASIDE_H

#include <stdint.h>

#include "base/err.h"
#include "exec/cuda/driver.h"

/* Do these writes on the current context's device, from a context that is made for it and
 * gone afterwards. Waits until they are done, or are not after a while. */
enum err aside_write(
	const struct cuda_driver *driver, struct cu_memop *ops, uint32_t count);

#endif
