/*
 * steps.h - a staged schedule as steps for a kernel, and how much memory they need.
 *
 * The kernels (kernels.h: steps_<codec>_..) run any schedule of the catalog for ranks
 * that cannot reach each other's buffers. Every message goes through a slot in its
 * sender's stage, which all who receive from it can read, and every rank has positions
 * (words) that all others can read. Nothing else is shared.
 *
 * What an engine does
 *
 * Once per communicator and codec, on every rank:
 *   1. Settle what must be equal on all ranks for as long as the communicator lives: the
 *      most channels there are and `stage_bytes`, the bytes of a stage that each has.
 *   2. Allocate a stage of channels * stage_bytes and words of steps_words_bytes(),
 *      aligned to STEPS_LINE: device memory, or host memory that all devices have mapped.
 *      Fill both with zeros, before any rank's first launch can look at them. Codecs have
 *      stages and words of their own; LL128 must not be used where a stage is not reached
 *      within a GPU or over NVLink.
 *   3. Learn where this process sees the stages and words of all ranks, and put that into
 *      device memory, one struct dev_end per rank. Ranks that a launch works for need
 *      scratch as well where steps have TMP: private memory, which codecs may share, at
 *      least channels * args.scratch_bytes.
 * Once per (schedule, collective, root, depth): steps_flatten(), and a copy of the block
 * in device memory. It holds no sizes and no addresses, and is the same on all ranks.
 * For every call:
 *   4. steps_shape() with a number of channels that follows from the call and is the same
 *      on all ranks (steps_channels() proposes one). So are the schedule, depth, codec,
 *      type and count.
 *   5. Fill in what is left of the arguments: steps, abort, ends, ranks, rank_count,
 *      posts (or mail, call, trouble), divisor, is_scaled, is_one_device.
 *   6. Launch steps_<codec>_<type>_<op> with a grid of (channels * lane_count,
 *      rank_count). Blocks have STEPS_THREADS_MIN to STEPS_THREADS threads, a multiple of
 *      32, which need not be as many on all ranks. They wait for each other: those of a
 *      launch, and of other ranks' launches on the same device, must be resident together
 *      (a cooperative launch, or few enough blocks: two of the largest fit on an SM).
 * A rank's calls are ordered: one begins on the device when the one before has ended
 * there. Arguments do not depend on how many calls there were, so that a captured launch
 * can be replayed, in any order that is the same on all ranks.
 *
 * A rank's stage and words may be freed when no other rank's kernel can still read them:
 * when all ranks' last calls are complete. The block of steps and the scratch may be when
 * this rank's are. After an abort the words are of no use, to any rank: begin anew at 2.
 */
#ifndef EXEC_CUDA_LISTS_STEPS_H
#define EXEC_CUDA_LISTS_STEPS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "exec/cuda/lists/steps_abi.h"
#include "sched/lower.h"

/* The steps of all ranks, by their programs in staged mode; slots of a connection are a
 * power of 2, at least 2 for a ring. The block is the caller's, to be freed; it is
 * `bytes` long and ready for the device. ERR_USAGE when there are more ranks than a
 * launch can hold. */
enum err steps_flatten(
	struct program *const *programs, struct dev_steps **steps, size_t *bytes);

/* "simple", "ll", "ll128": as in the names of the kernels. */
const char *steps_codec_name(enum steps_codec codec);

/* Bytes of a stage that one channel needs for tiles of that size. */
size_t steps_stage_bytes(
	const struct dev_steps *steps, enum steps_codec codec, size_t tile_bytes);

/* Bytes of one rank's words. */
size_t steps_words_bytes(uint32_t channels);

/* What a call runs in. */
struct steps_room {
	enum steps_codec codec;
	uint32_t channels;
	size_t stage_bytes; /* of one channel */
	size_t tile_bytes;  /* at most; 0: what the stage allows */
};

/* Set the sizes in `args`, and its head, for a vector of `bytes`, or blocks of as many.
 * False when the stage is too small for a tile, or when there are too many tiles. */
bool steps_fit(const struct dev_steps *steps, const struct steps_room *room, size_t bytes,
	struct steps_args *args);

/* The same, and ERR_USAGE says which of the two it is. */
enum err steps_shape(const struct dev_steps *steps, const struct steps_room *room,
	size_t bytes, struct steps_args *args);

/* What does well on an H200: how many of at most `most` channels a call should use, and
 * how many threads its blocks. Of the first all ranks must make the same use. */
uint32_t steps_channels(const struct dev_steps *steps, enum steps_codec codec,
	size_t bytes, uint32_t most);
uint32_t steps_threads(const struct steps_args *args, enum steps_codec codec);

#endif
