/*
 * gpu_slots.h - slots in device memory, for calls that run a schedule through some.
 *
 * Made when the ranks connect, if anybody then wants or needs them, else at the first
 * call that names an algorithm.
 */
#ifndef COMM_GPU_SLOTS_H
#define COMM_GPU_SLOTS_H

#include "comm/comm.h"

struct cuda_engine;

/* While a communicator connects: made when any rank wants some, or reaches others'
 * memory in no other way. `gpu` is the engine that is being made. */
enum err gpu_slots_connect(struct comm *comm, struct cuda_engine *gpu);

/* For those communicators of a group that have a call which needs slots, and have none:
 * meets the other ranks, which make the same calls. */
enum err gpu_slots_provide(const struct comm_call *calls, uint32_t count);

#endif
