/*
 * haul.h - what of a staged launch goes to ranks on other hosts, and comes from them.
 *
 * A launch knows no hosts: every message lies in a slot of its sender's stage, and
 * positions say when it is there and when it has been read (steps.h). Of a rank on
 * another host there are copies here, of its stage and of its words, and somebody who
 * carries: a message of ours goes out when our own position says that it is there, and
 * one of theirs comes into the copy of its slot when our position says that what was
 * there before has been read. This is the list of these messages for one rank, made of
 * the programs that the steps are made of.
 */
#ifndef EXEC_CUDA_LISTS_HAUL_H
#define EXEC_CUDA_LISTS_HAUL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "exec/cuda/lists/steps_abi.h"
#include "sched/lower.h"

/* One message of a tile. Positions are counted in moves of a tile. */
struct haul_message {
	uint32_t sent;	/* of the sender's lane, when it is in its slot */
	uint32_t taken; /* of the receiver's, when it has been read there */
	/* .. when what was in the slot before has been: so many tiles back */
	uint32_t free, back;
	uint16_t slot, period, chunk; /* as in struct dev_step_place */
	uint16_t bound; /* its first chunk is as long as this of the vector */
	uint16_t count; /* chunks */
};

/* Messages from a lane of one rank to another rank, in order. */
struct haul_line {
	uint16_t rank; /* the one on the other host */
	uint8_t lane;  /* the sender's, which is the receiver's, too */
	bool is_out;
	uint32_t first, count; /* into the list's messages */
	uint32_t near_length,
		far_length; /* moves of a tile of that lane, here and there */
};

struct haul_list {
	uint32_t line_count, message_count;
	struct haul_line *lines;       /* owned */
	struct haul_message *messages; /* owned */
};

/* The messages that `rank` exchanges with ranks whose host has another number. The list
 * is the caller's; ERR_INTERNAL for programs that do not fit together. */
enum err haul_list_make(struct program *const *programs, uint32_t rank,
	const uint16_t *hosts, struct haul_list **list);
void haul_list_free(struct haul_list *list); /* NULL is fine */

/* The sizes of a call: as in struct steps_args. */
struct haul_shape {
	uint64_t chunk_bytes, total_bytes, part_bytes, tile_bytes;
	uint64_t slot_bytes, stride_bytes, stage_bytes, span;
	uint32_t tile_count, channels, depth;
	bool is_vector;
};

void haul_shape(
	const struct steps_args *args, uint32_t channels, struct haul_shape *shape);

/* Where part `part` of a message is in its sender's stage, and its bytes; 0: none. */
size_t haul_at(const struct haul_shape *shape, const struct haul_message *message,
	uint32_t channel, uint32_t tile, uint32_t part);
size_t haul_bytes(const struct haul_shape *shape, const struct haul_message *message,
	uint32_t channel, uint32_t tile, uint32_t part);

#endif
