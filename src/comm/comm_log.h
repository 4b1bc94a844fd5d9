/*
 * comm_log.h - what the log says of a communicator, in NCCL's words and order; for the
 * files of this room only. docs/log.md shows it.
 */
#ifndef COMM_COMM_LOG_H
#define COMM_COMM_LOG_H

#include "comm/state.h"
#include "plan/device.h"

/* What making a communicator took, by NCCL's names; ns. */
struct init_times {
	uint64_t start; /* when it began */
	uint64_t alloc, bootstrap, topo, graphs, connections;
};

/* "ncclCommInitRank comm .. - Init START", and later "- Init COMPLETE". */
void comm_log_init(
	const struct comm *comm, const struct comm_init_args *args, bool is_complete);

/* All ranks are on one host: there is no network. */
void comm_log_near(void);

/* The summary line and, where they are known, rings, trees, thresholds and channels. */
void comm_log_wiring(const struct comm *comm);

/* "Init timings - ..", then by what way each ring goes. */
void comm_log_done(const struct comm *comm, const struct comm_init_args *args,
	const struct init_times *times);

/* "comm .. - Destroy START" and later COMPLETE; or Finalize, Abort, Revoke. The comm is
 * only named: it may be gone. */
struct comm_name {
	const void *comm;
	uint32_t rank, rank_count;
	int device;
	uint64_t id;
};
void comm_log_start(const struct comm_name *name, const char *what);
void comm_log_end(const struct comm_name *name, const char *what);

/* Under TUNING, when that is on: the schedule the host engine will run for this call.
 * Fails where planning the call fails, and with its sentence. */
enum err comm_log_choice(const struct comm *comm, const struct plan_key *key);

/* The same of a call on device memory, whose plan is made. */
void comm_log_device(const struct comm *comm, const struct plan_key *key,
	const struct device_plan *plan);

#endif
