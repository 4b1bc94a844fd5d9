/*
 * tell.h - messages with ranks on other hosts, told to who listens (struct host_teller).
 */
#ifndef EXEC_HOST_TELL_H
#define EXEC_HOST_TELL_H

#include "exec/host/state.h"

/* One of a collective is about to be asked of the network; its `count` is filled in. What
 * tell_over() takes; NULL when nobody listens. */
void *tell_began(const struct host_call *call, struct host_message *message);

/* It has left, or come; the network's for the end it goes by before that. */
void tell_over(const struct host_teller *teller, void *told); /* NULL is fine */

#endif
