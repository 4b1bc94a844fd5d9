/*
 * aside.h - words of the device written past streams that are stuck.
 *
 * The streams of a context share its channels, and one that waits keeps back all others
 * on its channel, whatever their priority: when all channels wait, nothing that is
 * enqueued in the context can end the wait. A second context has channels of its own. It
 * takes a tenth of a second to make, so this is for the end only; and it reaches what
 * this process has allocated, not what it has mapped of others (docs/design/04).
 *
 * A process has one for each device, as long as somebody needs it: to make one or to end
 * one while work of the other is stuck may wait for that.
 */
#ifndef EXEC_CUDA_DRIVER_ASIDE_H
#define EXEC_CUDA_DRIVER_ASIDE_H

#include <stdint.h>

#include "base/err.h"
#include "exec/cuda/driver/driver.h"

struct aside;

/* For the current context's device. */
enum err aside_open(const struct cuda_driver *driver, struct aside **aside);

/* Do these writes now. Waits until they are done, or are not after a while. */
enum err aside_write(struct aside *aside, struct cu_memop *ops, uint32_t count);

/* When nothing is stuck any more. NULL is fine. */
void aside_close(struct aside *aside);

#endif
