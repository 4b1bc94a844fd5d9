/*
 * device.h - how a collective on device memory is run.
 *
 * On one host directly, unless the user wants an algorithm or a protocol, or the GPUs
 * cannot reach each other's memory: then a schedule goes through slots, in one of NCCL's
 * protocols. Between hosts through host memory, part by part, or by kernels of all ranks,
 * whose messages somebody carries.
 */
#ifndef TUNE_DEVICE_H
#define TUNE_DEVICE_H

#include "sched/catalog.h"
#include "tune/limits.h"

struct device_question {
	struct limits *limits; /* NULL: none */
	struct limits_call call;
	bool has_slots; /* there are slots */
	bool is_apart;	/* memory is out of reach, and slots are in host memory */
	/* ranks are on these, and what goes between them is carried from slot to slot;
	 * NULL: one host, or it is not */
	const struct sched_hosts *hosts;
	const char *schedule; /* the caller names one; NULL: none */
	unsigned protos;      /* .. and these protocols, a bit each; 0: any */
};

struct device_choice {
	const struct sched_kind *kind;
	bool is_staged;	  /* through slots; else directly */
	enum proto proto; /* .. laid out so */
	uint32_t depth;	  /* of a connection */
};

/* ERR_USAGE when the limits leave no schedule. */
enum err device_choose(
	const struct device_question *question, struct device_choice *choice);

/* From how many bytes on, in the larger buffer of the rank that has most, a collective
 * between hosts is for kernels to run; 0: none. */
size_t device_haul_least(void);

/* A call between hosts that is copied to host memory and back: `bytes` of its larger
 * buffer, which lies there in so many chunks, all of them cut alike, at multiples of a
 * tile. */
struct device_copy {
	size_t bytes, chunk_bytes, tile_bytes;
	uint32_t chunks;
};

/* Bytes of a chunk that are copied at a time, while what came before travels; all of a
 * chunk where that is not worth it. */
size_t device_part(const struct device_copy *copy);

#endif
