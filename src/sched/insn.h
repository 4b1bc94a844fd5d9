/*
 * insn.h - the schedule instruction: the only one there is.
 *
 *   value = fold(ACC?, SRC?, RECV?..) -> DST?, SEND?..
 *
 * Operands are folded from the left in exactly that order (the received values in
 * connection order), so every engine rounds alike. ACC reads the destination first.
 * Reading space IN applies the pre-operator (scaling); POST applies the final operator.
 *
 * An instruction is repeated `reps` times: repetition i touches chunks (x + i * stride)
 * modulo the chunk count of the space and connections rx/tx + i * conn_step. With
 * FAN_IN (FAN_OUT) there is one repetition and `reps` is the number of connections
 * folded (sent to) at once, from rx (tx) upwards; there `stride` is the number of
 * received values folded before SRC, so a rank can stand in its own place among others.
 */
#ifndef SCHED_INSN_H
#define SCHED_INSN_H

#include <stdint.h>

enum insn_op {
	IN_SRC = 1,
	IN_RECV = 2,
	IN_ACC = 4,
	OUT_DST = 8,
	OUT_SEND = 16,
	OP_POST = 32,
	FAN_IN = 64,
	FAN_OUT = 128
};

enum space { SPACE_IN, SPACE_OUT, SPACE_TMP, SPACE_COUNT };

/* `spaces` packs source, destination, and a hint: the sender moves the bytes (PUSH), to
 * the receiver's destination or to a slot, and is not read from. */
enum { SPACES_PUSH = 0x80 };

enum { WAIT_NONE = 0xff };

struct insn {
	uint8_t op;
	uint8_t spaces;	   /* source | destination << 2 | SPACES_PUSH */
	uint8_t rx, tx;	   /* first connection used, indexes into the lane's peer lists */
	uint16_t src, dst; /* first chunk read, first chunk written */
	uint16_t count;	   /* contiguous chunks per repetition */
	uint16_t reps;
	int8_t stride;
	int8_t conn_step;
	uint8_t wait_lane; /* WAIT_NONE, or wait until that lane of this rank has retired
			      .. */
	uint8_t wait_pc;   /* .. this many instructions in this tile */
};
_Static_assert(sizeof(struct insn) == 16, "an instruction stays one 128-bit load");

static inline uint8_t insn_spaces(enum space src, enum space dst)
{
	return (uint8_t)(src | dst << 2);
}

static inline enum space insn_src_space(const struct insn *insn)
{
	return (enum space)(insn->spaces & 3);
}

static inline enum space insn_dst_space(const struct insn *insn)
{
	return (enum space)(insn->spaces >> 2 & 3);
}

/* Received values a fan folds before SRC: the stride of a fan, taken as unsigned. */
static inline uint32_t insn_own(const struct insn *insn)
{
	return insn->op & FAN_IN ? (uint8_t)insn->stride : 0;
}

/* Repetitions that retire one after the other: 1 for a fan. */
static inline uint32_t insn_turns(const struct insn *insn)
{
	return insn->op & (FAN_IN | FAN_OUT) ? 1 : insn->reps;
}

#endif
