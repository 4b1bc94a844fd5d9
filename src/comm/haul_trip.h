/*
 * haul_trip.h - collectives between hosts that kernels run (exec/cuda/haul.h): whether a
 * communicator has them, which calls go so, and what their streams do.
 *
 * All ranks choose alike, by what they all know of the call: never by the memory that one
 * rank brings. What kernels do not reach goes through a berth.
 */
#ifndef COMM_HAUL_TRIP_H
#define COMM_HAUL_TRIP_H

#include "comm/trip.h"
#include "exec/cuda/haul.h"

/* A communicator's. */
struct hauling {
	struct cuda_haul *haul; /* owned; NULL: kernels run none */
	size_t least;		/* bytes of a call that goes so */
	bool is_straight; /* slots are in GPU memory, which the network plugin takes */
};

/* While a communicator connects, on all its ranks, which have met on host memory; in the
 * context of its berths. What a rank cannot do (NULL twice) none does; the log says which
 * way it is. */
enum err hauling_meet(struct comm *comm, const struct cuda_hello *const *hellos,
	struct hauling *hauling, struct straight *straight);

/* Does this call go so (trip->is_hauled)? Those that do have their plan then. */
enum err haul_trip_choose(
	struct trip *trip, const struct hauling *hauling, struct planner **planner);

/* As trip_measure(), for such a call; then what kernels do not reach has a place. */
enum err haul_trip_measure(struct trip *trip);

/* It has its berth, if it needs one: say how it is to be carried. */
enum err haul_trip_plan(struct trip *trip, const struct hauling *hauling);

/* Before anything of its group waits: what is brought to its berth. Then, in the order of
 * calls, its kernel; and when all kernels of the group have been launched, the way back:
 * a copy to memory that is not pinned waits for its kernel. */
enum err haul_trip_begin(struct trip *trip);
enum err haul_trip_run(struct trip *trip, const struct hauling *hauling);
enum err haul_trip_end(struct trip *trip);

#endif
