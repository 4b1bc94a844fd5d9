/*
 * run.h - one run of a *_perf program: what its files share.
 *
 * process.c starts the rank processes and watches over them, where no launcher has
 * (job.h); worker.c is a thread with its ranks, buffers and communicators; measure.c
 * times, and point.c knows a line's calls and values; report.c and json.c print.
 */
#ifndef TOOLS_PERF_RUN_H
#define TOOLS_PERF_RUN_H

#include <stdatomic.h>

#include "common/machine.h"
#include "perf/coll.h"
#include "perf/device.h"
#include "perf/gpu_data.h"
#include "perf/meet.h"
#include "perf/options.h"

/* Exit status, nccl-tests' numbers. */
enum test_result {
	TEST_OK = 0,
	TEST_INTERNAL = 1,
	TEST_NCCL = 3,
	TEST_TIMEOUT = 4,
	TEST_NOT_IMPLEMENTED = 5,
	TEST_USAGE = 6,
	TEST_FAILED = 7, /* wrong data, or slower than NCCL_TESTS_MIN_BW */
	TEST_BAD_OPTION = 255
};

/* Where a process of a launcher is. */
struct place {
	int pid;
	uint32_t local_rank;
	char host[64];
};

/* Read-only once the workers run. */
struct run {
	const char *program; /* "all_reduce_perf" */
	const struct coll_kind *kind;
	struct options options;
	struct machine machine;
	struct meet *meet;
	uint32_t worker_count, rank_count; /* of all processes */
	const char *launcher;		   /* who started the processes; NULL: we do */
	uint32_t process, process_count;   /* of a launcher's; else 0 of 1 */
	uint32_t local_rank, local_count;  /* of those on this host */
	struct place *places;		   /* owned; by process */
	struct device_facts devices;	   /* where the buffers are a GPU's */
	uint64_t max_bytes; /* options.max_bytes, or what the memory allows */
	int argc;
	char **argv;
};

struct rank {
	uint32_t rank;
	ncclComm_t comm;
	char *send, *recv; /* owned; `unalign` elements are skipped in use */
	/* where they are filled and looked at: these, or owned on the host where the two
	 * above are a GPU's without kernels for that */
	char *send_seen, *recv_seen;
	void *stream; /* owned: a GPU's; NULL: none, or the NULL stream */
	void *send_handle, *recv_handle;
	ncclWindow_t send_window, recv_window;
	uint64_t scalar; /* mulsum's factor; lives while its operator does */
	ncclRedOp_t op;
};

struct worker {
	const struct run *run;
	uint32_t index; /* of all processes' workers */
	uint32_t local; /* of this process */
	uint32_t rank_count;
	struct rank *ranks;
	bool is_seen_on_device;	     /* buffers are filled and looked at on the GPU */
	struct gpu_data data;	     /* then: with these kernels */
	const char *unseen_why;	     /* why not, on a GPU; NULL: they are */
	atomic_ullong busy_since_ns; /* 0: not in the library; read by the watchdog */
	atomic_bool done;
	int status;
	int verdict; /* what a run without failures still exits with; worker 0 knows */
	uint64_t memory_start, memory_init, memory_buffers; /* resident bytes by then */
};

/* Mark the time in the library, for the watchdog. */
void worker_busy(struct worker *worker, bool on);

/* Print a library failure in one sentence, tell all workers, return TEST_NCCL. */
int run_nccl_failed(const struct worker *worker, ncclResult_t result, const char *call);

/* Where a rank runs, for the list of ranks. */
struct place run_place(const struct run *run, uint32_t rank);

/* Start the processes and their workers, run to the end; the exit status. */
int run_processes(struct run *run);

/* One process: its workers, and the watchdog over them. */
int run_workers(struct run *run, uint32_t process);

/* A worker's life, from the communicators to the last line. */
int worker_run(struct worker *worker);

/* The sweep over types, operators, roots and sizes. */
int measure_all(struct worker *worker);

#endif
