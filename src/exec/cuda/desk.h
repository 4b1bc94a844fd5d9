/*
 * desk.h - how rank 0's process comes to see the device memory of the other processes.
 *
 * The desk is a shared segment with one slot per rank. A rank that wants to use memory
 * which rank 0 has not mapped puts its handle on the desk; a thread of rank 0's process
 * maps it and answers with the address there. That takes as long as the driver needs and
 * waits for no call of rank 0's.
 */
#ifndef EXEC_CUDA_DESK_H
#define EXEC_CUDA_DESK_H

#include "exec/cuda/driver.h"

struct desk;

/* Rank 0: the segment, its descriptor for the others, and the thread. */
enum err desk_open(const struct cuda_driver *driver, uint32_t rank_count,
	struct desk **desk, int *fd);

/* The others: map what process `pid` opened. */
enum err desk_join(const struct cuda_driver *driver, int pid, int fd, uint32_t rank,
	struct desk **desk);

/* The address in rank 0's process of `ptr`, which is memory of this process's device.
 * Known memory is found at once. ERR_ARGUMENT when it cannot be shared. */
enum err desk_address(struct desk *desk, const void *ptr, uint64_t *address);

/* Ends the thread, unmaps. NULL is fine. */
void desk_close(struct desk *desk);

#endif
