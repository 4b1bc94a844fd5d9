/*
 * job.h - one run of the campaign, derived from its seed and from nothing else.
 *
 * A job is a communicator of some ranks, spread over processes as threads, that makes
 * calls until its one fault strikes one rank (or the process of that rank) at one moment.
 * Processes may be on several hosts, as far as the library can tell, and their
 * connections go through a relay, which is what some faults strike.
 */
#ifndef CAMPAIGN_JOB_H
#define CAMPAIGN_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "colls.h"
#include "relay.h"

enum { JOB_RANKS = 16 };

enum fault {
	FAULT_KILL,
	FAULT_SEGFAULT,
	FAULT_EXIT,
	FAULT_STOP,	  /* for good */
	FAULT_RESUME,	  /* stopped; goes on once the others have given up on it */
	FAULT_SLOW,	  /* late or stopped for a moment: nobody may fail */
	FAULT_ABORT,	  /* aborts its communicator from another thread */
	FAULT_REVOKE,	  /* revokes it from another thread */
	FAULT_REFUSED,	  /* a system call that never works */
	FAULT_ALLOCATION, /* allocation number i fails */
	FAULT_SYSCALL,	  /* system call number i fails */
	FAULT_DESCRIPTORS,
	FAULT_MEMORY,
	/* of the network, between the victim's host and others */
	FAULT_RESET,  /* connections for data end; at init, for meeting */
	FAULT_UNPLUG, /* the victim's host hears nothing more and is not heard */
	FAULT_HALF,   /* .. is not heard */
	FAULT_REJOIN, /* connections for control end: nobody may fail */
	FAULT_GARBLE, /* bits of data change: the data may be wrong */
	FAULT_NOISE,  /* bits on connections for control change: nobody may fail */
	FAULT_LAZY,   /* everything is late: nobody may fail */
	FAULT_COUNT
};

enum moment { AT_INIT, AT_SPLIT, AT_SHRINK, AT_CALLS, AT_DESTROY, MOMENT_COUNT };

/* Beside the collectives: round the ranks. */
enum { SEND_RECV = COLLECTIVES, KIND_COUNT };

/* What those who got an error do then. */
enum after {
	AFTER_ABORT,
	AFTER_DESTROY,
	AFTER_SHRINK,
	AFTER_SHRINK_ABORT,
	AFTER_REVOKE_SHRINK,
	AFTER_REVOKE_SPLIT,
	AFTER_COUNT
};

struct job {
	uint64_t seed;
	enum fault fault;
	enum moment moment;
	int collective; /* enum collective, or SEND_RECV */
	enum after after;
	int rank_count, process_count;
	int process_of[JOB_RANKS];
	int victim;
	int call, call_count; /* where it strikes; how many there are when nobody fails */
	unsigned delay_us;    /* after the moment; 0: in the calling thread itself */
	int percent;  /* stops in calls: of the time of the call before, instead */
	size_t bytes; /* of each of a rank's two buffers */
	bool nccl_memory, in_place;
	int timeout_s, boot_timeout_s;
	int number;		   /* of the failing call, or descriptors or MiB left */
	int refused;		   /* row of refused_calls */
	bool refused_by_all;	   /* in every process, not only in the victim's */
	bool kills;		   /* refused: and the victim is killed as well */
	bool never_comes;	   /* init: the victim does not even connect */
	bool aborts_aside;	   /* stop: the others abort from another thread */
	bool resumes_early;	   /* resume: before the others end their communicators */
	bool stops;		   /* slow: by a signal, and not asleep */
	bool exits_by_handler;	   /* exit: exit() and not _exit() */
	int color_count, excluded; /* of the split and the shrink that are the moment */
	int host_count;		   /* 0: one, and no word of it */
	int host_of[JOB_RANKS];	   /* by process */
	int silence_s;		   /* 0: as the library has it */
	bool by_relay;		   /* connections go through it */
	bool meets_by_tcp, has_porch;
	enum relay_trouble trouble; /* of the network */
	unsigned trouble_kinds;
	uint32_t trouble_times;
};

/* What may be asked of job_derive(); the rest is the seed's. */
struct job_wish {
	int fault;	/* -1: any */
	int rank_count; /* 0: any */
	bool lean;	/* only what works beside a sanitizer */
	bool hosts;	/* several, and what can befall those */
};

struct refused_call {
	const char *name;
	long number;
	int error;
	bool stops_memory; /* ncclMemAlloc() cannot do without */
};
extern const struct refused_call refused_calls[];
extern const int refused_call_count;

extern const char *const fault_names[FAULT_COUNT];
extern const char *const moment_names[MOMENT_COUNT];

struct job job_derive(uint64_t seed, const struct job_wish *wish);

/* Does the fault take the victim's whole process? */
bool fault_takes_process(enum fault fault);

/* Does a call of the victim fail? Does the fault strike the network? */
bool fault_fails_calls(enum fault fault);
bool fault_is_network(enum fault fault);

/* Is this rank the victim, or does it share its fate? */
bool job_is_victim(const struct job *job, int rank);

/* Do ranks call until they fail, because sooner or later they must? */
bool job_is_lethal(const struct job *job);

/* One line, without the seed. */
void job_print(const struct job *job, char *text, size_t room);

#endif
