/*
 * moves_abi.h - what the kernels are given: lowered moves and the buffers of all ranks.
 *
 * Read by C and by CUDA C. The moves are those of sched/lower.h in direct mode, without
 * their waits: everything a move reads is there when the ranks have met, which is what
 * moves_flatten() makes sure of.
 */
#ifndef EXEC_CUDA_MOVES_ABI_H
#define EXEC_CUDA_MOVES_ABI_H

#include <stdint.h>

enum { MOVES_RANKS_MAX = 64, MOVES_BLOCKS_MAX = 1024, MOVES_THREADS = 512 };

/* The first `count` chunks of a space of a rank, from `chunk` on. */
struct dev_place {
	uint16_t rank;
	uint8_t space; /* enum place_space: IN or OUT */
	uint8_t unused;
	uint32_t chunk;
};

/* Fold the inputs from the left into every output; `op` are the instruction's bits. */
struct dev_move {
	uint32_t input_first, output_first; /* into the places */
	uint16_t input_count, output_count;
	uint16_t count; /* chunks */
	uint16_t op;
};

/* The moves of all ranks: rank r does moves [first[r], first[r + 1]). Followed by the
 * moves and the places, at the offsets given. */
struct dev_moves {
	uint32_t rank_count, move_count, place_count;
	uint32_t moves_at, places_at; /* bytes from the beginning */
	uint32_t first[MOVES_RANKS_MAX + 1];
};

/* One rank's part of a call, in device memory: where its buffers are in the address space
 * of whoever launches. Written by stream memory operations or by the rank's own kernel.
 */
struct dev_mail {
	uint64_t in, out;
	uint64_t scalar; /* of a pre-multiplied sum, in the element type */
	uint64_t sign;	 /* ranks that call the same have the same */
	uint32_t ready;	 /* number of the call these belong to */
	uint32_t done;	 /* number of the last call that is complete */
	uint32_t unused[6];
};

/* The same as far as a launch carries it in its arguments. */
struct dev_post {
	uint64_t in, out, scalar;
};

/* Types and operators as in base/dtype.h. */
struct moves_args {
	const struct dev_moves *moves; /* device memory */
	struct dev_mail *mail;	       /* device memory: one per rank */
	uint32_t *flags;	       /* device memory, resident ranks only: see below */
	const uint32_t *abort;	       /* host memory the device reads: not 0: stop */
	uint32_t *trouble;    /* host memory: set to 1 + the rank whose sign differs */
	uint64_t chunk_bytes; /* distance between chunks of IN and OUT */
	uint64_t total_bytes; /* of the whole vector: chunks beyond it are short or empty
			       */
	/* of the longest IN and OUT any rank has; no move goes beyond, which is what
	 * makes chunks at the end of a vector short or empty */
	uint64_t in_bytes, out_bytes;
	uint32_t call;		   /* its number, from 1, wraps */
	uint32_t rank, rank_count; /* rank: of a resident launch */
	uint32_t divisor;	   /* POST divides integers by it; 0: it does nothing */
	uint32_t is_scaled;	   /* IN is multiplied by its rank's scalar when read */
	uint32_t is_resident;	/* each rank launches its own; else one launch does all */
	uint32_t is_one_device; /* resident: all ranks are on one device, which is quicker
				 */
	uint32_t is_posted; /* fused: `posts` stand for the mail, nothing is compared */
	uint32_t unused;
	struct dev_mail own; /* of a resident launch: what `rank` puts into its mail */
	struct dev_post posts[MOVES_RANKS_MAX];
};

/*
 * Fused: gridDim.y is the rank count, block (x, y) works on rank y's moves.
 * Resident: gridDim.y is 1 and the moves are those of `rank`; ranks whose signs agree
 * have equal grids. Ranks meet in flags[((phase * MOVES_BLOCKS_MAX) + b) *
 * MOVES_RANKS_MAX + rank], each set to `call`. Before the moves (phase 0) all blocks wait
 * for block 0 of every rank, which posts the rank's mail: a rank whose block 0 runs has
 * its buffers ready. After the moves (phase 1) block b waits for block b of every rank.
 * When signs differ only block 0 does, since the others have perhaps no partner.
 */

#endif
