/*
 * haul.h - collectives between hosts that kernels run, and whose messages a host thread
 * carries.
 *
 * Every rank launches a kernel for its own part of a staged schedule (lists/steps.h), on
 * its own stream. Slots and positions are in pinned host memory: of the ranks of a host
 * all have mapped all, of a rank on another host each has a copy for what it receives,
 * and whoever runs calls on host memory moves what is to be moved in between
 * (exec/host/carry.h). Sums happen on the GPU, no copies go to and fro, and a tile is on
 * the network while the next one is computed.
 *
 * Where a network plugin takes GPU memory, and no ranks share a host, the slots are in
 * the GPU's memory instead; positions stay where the host sees them.
 *
 * All memory and kernels are there when ranks have met: the driver may wait for kernels
 * that run before it gives more, and those may wait for a rank that would ask it. In the
 * context that was current when it was opened, all of it but cuda_haul_stop().
 */
#ifndef EXEC_CUDA_HAUL_H
#define EXEC_CUDA_HAUL_H

#include "exec/cuda/berth.h"
#include "exec/cuda/engine.h"
#include "exec/host/carry.h"

struct cuda_haul;

/* May kernels of all ranks wait on their GPUs? The same answer on all ranks. */
bool cuda_haul_may(const struct cuda_hello *const *hellos, uint32_t rank_count);

struct haul_args {
	uint32_t rank, rank_count;
	const uint16_t *hosts;			/* borrowed: which one each rank is on */
	const struct cuda_hello *const *hellos; /* borrowed for the call */
	struct berth_owner owner; /* is told of memory that messages leave from */
};

/* What ranks of a host must know of each other. */
struct haul_offer {
	uint32_t pid, fd;
	uint32_t works; /* 0: it has nothing to offer, and nobody hauls */
};

enum err cuda_haul_open(
	const struct haul_args *args, struct haul_offer *offer, struct cuda_haul **haul);
/* Where every rank is on a host of its own: slots in the GPU's memory, from which a
 * network plugin sends and to which it receives. All ranks have them, or leave them. */
enum err cuda_haul_slots(struct cuda_haul *haul, void **slots, size_t *bytes);
void cuda_haul_leave_slots(struct cuda_haul *haul);
/* The others', of all ranks. `gpu` is of the slots, borrowed until it is closed. */
enum err cuda_haul_meet(struct cuda_haul *haul, const struct haul_offer *offers,
	const struct net_gpu *gpu);

/* It is used: the owner is told of the memory that messages leave from and come to, which
 * stays until it is closed. */
void cuda_haul_tell(const struct cuda_haul *haul);

struct haul_call {
	cu_stream stream;
	bool is_capturing;
	struct plan_key key;
	enum redop op;
	union kernel_scalar scalar; /* of REDOP_PREMUL */
	const void *scalar_at;	    /* .. or where it will be then; NULL: not so */
	const void *in;		    /* what kernels reach */
	void *out;
	struct device_plan plan; /* of one planner's that all its calls are of */
};

/* Is there room for such a call? All ranks find the same. */
enum err cuda_haul_fits(struct cuda_haul *haul, const struct plan_key *key,
	const struct device_plan *plan, bool *fits);

/* All that a call that fits needs, so that nothing can go wrong but the launch; and how
 * it is to be carried. */
enum err cuda_haul_prepare(
	struct cuda_haul *haul, const struct haul_call *call, struct host_carry *carry);

/* In the stream's order, and after the calls before. */
enum err cuda_haul_launch(struct cuda_haul *haul, const struct haul_call *call);

/* Kernels that wait for others end, and those to come; for good. Any thread. */
void cuda_haul_stop(struct cuda_haul *haul);

/* Nothing is carried any more. What a kernel may still use is never given back; graphs
 * are over when `is_settled`. NULL is fine. */
void cuda_haul_close(struct cuda_haul *haul, bool is_settled);

#endif
