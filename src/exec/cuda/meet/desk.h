/*
 * desk.h - how a rank's process comes to see the device memory of the other processes.
 *
 * Every rank has a desk: a shared segment with one slot per rank, and a thread. A rank
 * that wants another to use memory which that one's process has not mapped puts its
 * handle on the other's desk; the thread there maps it and answers with the address.
 * That takes as long as the driver needs and waits for no call of the other's.
 *
 * The same thread looks after the other ranks now and then, because it has nothing else
 * to do and is there whatever the user's threads are doing.
 */
#ifndef EXEC_CUDA_MEET_DESK_H
#define EXEC_CUDA_MEET_DESK_H

#include <stdbool.h>

#include "exec/cuda/driver/driver.h"
#include "exec/cuda/driver/where.h"

struct desk;

struct desk_args {
	const struct cuda_driver *driver; /* borrowed; the context is current */
	uint32_t rank, rank_count;
	void (*look)(void *arg); /* called every 30 ms or so by the desk's thread */
	void *arg;
	const uint32_t *abort; /* not 0: do not wait for anybody */
};

/* Where another rank's desk is. */
struct desk_address {
	uint32_t pid, fd;
};

/* Make this rank's desk: nobody is served, nothing is looked at, until desk_start(). */
enum err desk_open(
	const struct desk_args *args, struct desk **desk, struct desk_address *address);
/* The others' desks; `addresses` is copied. */
enum err desk_start(struct desk *desk, const struct desk_address *addresses);

/* The address in rank `peer`'s process of `ptr`, which is memory of this process's
 * device, as `where` says. Known memory is found at once. ERR_ARGUMENT when it cannot be
 * shared.
 */
enum err desk_show(struct desk *desk, uint32_t peer, const struct cuda_where *where,
	const void *ptr, uint64_t *address);

/* Its address is kept by others for good: it stays mapped until its block is freed. */
void desk_pin(struct desk *desk, const struct cuda_where *where);

/* Ends the thread, unmaps. NULL is fine. */
void desk_close(struct desk *desk);

#endif
