/*
 * buffers.h - what a rank shows of its buffers in a call, and finds of the others'.
 *
 * A call that is not eager begins with all ranks writing references to their buffers on
 * their cards. What they show together decides the way through the call.
 */
#ifndef EXEC_HOST_BUFFERS_H
#define EXEC_HOST_BUFFERS_H

#include "exec/host/state.h"

/* Write this rank's buffers on its card. True when others can reach all of them. */
bool buffers_show(struct host_call *call, struct card *card);

/* What all cards together allow. Where only the kernel can reach a buffer, everybody
 * fetches and nobody delivers: a copy into another's memory could come when its owner has
 * it back, and nothing could stop it. There are two ways then, and which is faster
 * depends on the machine: rank 0 tries both and says. All ranks read the same cards, so
 * all decide alike. */
enum lower_mode buffers_mode(struct host_call *call);

/* Map what the program touches, and only that: a peer that nobody waits for may have
 * finished this call and freed its buffers. What was shown the last time, too, is not
 * looked for again. */
enum err buffers_find(struct host_call *call, const struct program *program);

#endif
