/*
 * device.h - plans of collectives on device memory.
 *
 * How a call is run is tune's choice (tune/device.h). What is kept is the planner's: the
 * choice, found again by what was asked, and the programs of all ranks, since one launch
 * may work for all of them; these are shared by all sizes. The CUDA engine makes what it
 * gives to the device of these programs, and of nothing else.
 */
#ifndef PLAN_DEVICE_H
#define PLAN_DEVICE_H

#include "plan/plan.h"
#include "tune/device.h"

struct device_ask {
	struct plan_key key;
	unsigned protos; /* that the caller allows, a bit each; 0: it does not say */
	bool has_slots;	 /* there is memory for messages to go through */
	bool is_apart;	 /* .. and they must: buffers are out of reach */
	bool is_hauled;	 /* .. and between hosts somebody carries what lies there */
};

/* A schedule lowered for all ranks. */
struct device_program {
	uint32_t number; /* of this planner's, from 0: by it what was made of it is found
			  */
	const struct sched_kind *kind;
	uint32_t root, depth;
	enum lower_mode mode;
	struct program **ranks; /* owned by the planner, and by rank */
};

/* Small enough to be copied: a group's plans are made before the first is run. */
struct device_plan {
	const struct device_program *program; /* borrowed for the planner's life */
	bool is_staged;			      /* through slots; else directly */
	enum proto proto;		      /* .. laid out so */
};

/* One thread at a time asks for these; another may use plan_get() meanwhile. ERR_USAGE
 * when the limits leave no schedule. */
enum err plan_get_device(
	struct planner *planner, const struct device_ask *ask, struct device_plan *plan);

/* ---- for plan.c ---- */

/* What a planner keeps of it; NULL: it was never asked. */
struct device_plans;

/* Whose plans they are. */
struct device_job {
	const struct plan_room *room;
	const struct sched_hosts *hosts; /* NULL: one */
};
enum err device_plans_get(struct device_plans **plans, const struct device_job *job,
	const struct device_ask *ask, struct device_plan *plan);
void device_plans_free(struct device_plans *plans); /* NULL is fine */

#endif
