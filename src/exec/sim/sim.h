/*
 * sim.h - runs a collective in virtual time: all ranks in one process, no hardware.
 *
 * It steps the same lanes as the host engine (lane.h), over links that take time:
 *
 *   a move       takes no time; it starts when the last thing it waits for is there
 *   a message    leaves when its move retires and the link is free, occupies the link
 *                for bytes / bandwidth and arrives the latency later
 *   an acknowledgement takes the latency of the link it comes back on, and no room
 *   a local wait is free
 *   between hosts a message has left its sender when the link has carried it, and waits
 *                for its receiver, however many do: no buffer of the network is full
 *
 * There is one link for each ordered pair of ranks; the lanes of a rank share it, first
 * come first served, the lower lane first when both come at once. Behind it a message may
 * have to pass links that pairs share, a NIC or the way to a spine: it enters the next
 * one as soon as it has entered the last and that one is free, and is there when the
 * slowest has carried it. Time is counted in whole picoseconds and nothing travels in
 * less than one, so what happens at one instant cannot depend on the order in which lanes
 * are stepped: the times are a property of the schedule alone.
 */
#ifndef EXEC_SIM_SIM_H
#define EXEC_SIM_SIM_H

#include "exec/host/kernel.h"
#include "plan/plan.h"

struct sim_link {
	double latency_ns;
	double bytes_per_ns; /* that is GB/s; 0: as much as one likes */
};

enum { SIM_HOPS_MAX = 8 };

/* Links that pairs share. */
struct sim_shared {
	const double *bytes_per_ns; /* borrowed: of each; more than 0 */
	uint32_t count;
	/* Those that a message from one rank to another passes, in order: how many, at
	 * most SIM_HOPS_MAX. Asked once per pair in use. */
	uint32_t (*path)(const void *cookie, uint32_t from, uint32_t to,
		uint32_t hops[SIM_HOPS_MAX]);
};

struct sim_args {
	const struct sched_kind *kind;
	uint32_t rank_count;
	struct plan_key key; /* key.coll is kind->coll */
	enum redop op;
	union kernel_scalar scalar; /* of REDOP_PREMUL, the same for all ranks */
	size_t tile_bytes;	 /* 0: as the host stages; beyond the chunk: one tile */
	uint32_t depth;		 /* slots per connection; 0: as the host */
	const uint16_t *hosts;	 /* borrowed: which host each rank is on; NULL: one */
	struct sim_link link;	 /* every link within a host .. */
	struct sim_link network; /* .. and between two, unless .. */
	/* .. this is set: fill `link` for one ordered pair. Asked once per pair in use.
	 */
	void (*link_of)(
		const void *cookie, uint32_t from, uint32_t to, struct sim_link *link);
	struct sim_shared shared; /* none unless `path` is set */
	const void *cookie;
	/* Not 0: lanes that are ready at the same instant are stepped in an order drawn
	 * from this number. For tests: no result may depend on it. */
	uint64_t order_seed;
};

struct sim_report {
	uint64_t time_ps;			       /* when the last rank is done */
	uint64_t *finish_ps;			       /* owned: when each rank is done */
	uint64_t move_count;			       /* moves retired, all ranks */
	uint64_t message_count, message_bytes;	       /* over all links */
	uint64_t network_message_count, network_bytes; /* of these between hosts */
	uint64_t link_message_max, link_byte_max;      /* over the busiest link */
	uint32_t link_count;			       /* links used */
	uint32_t tile_count;
	size_t tile_bytes;
};

/* How long it takes, from sizes alone: no data is touched. ERR_USAGE names the lane that
 * can go no further when the schedule does not run at this depth. On success the caller
 * calls sim_report_fini(). */
enum err sim_time(const struct sim_args *args, struct sim_report *report);

/* The same with bytes: in[rank] and out[rank] as the collective defines them, in place
 * where they are the same memory. NULL where a rank has no such buffer. */
enum err sim_run(const struct sim_args *args, const void *const *in, void *const *out,
	struct sim_report *report);

void sim_report_fini(struct sim_report *report);

#endif
