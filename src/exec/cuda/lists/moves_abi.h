/*
 * moves_abi.h - what the kernels are given: lowered moves and the buffers of all ranks.
 *
 * Read by C and by CUDA C. The moves are those of sched/lower.h in direct mode, without
 * their waits: everything a move reads is there when the ranks have met, which is what
 * moves_flatten() makes sure of.
 */
#ifndef EXEC_CUDA_LISTS_MOVES_ABI_H
#define EXEC_CUDA_LISTS_MOVES_ABI_H

#include <stdint.h>

enum {
	MOVES_RANKS_MAX = 64,
	MOVES_THREADS = 512,	   /* of a block, at most */
	MOVES_THREADS_FEW = 128,   /* .. when there is little to do */
	RESIDENT_BLOCKS_MAX = 256, /* of one rank whose launch waits for others' */
	BOX_SLOTS = 8,		   /* sends to one peer that can be under way */
	PAIRS_MAX = 48,		   /* sends and receives of one launch */
	PAGE_BYTES_MAX = 4096,	   /* of one rank's list of moves */
	PAGE_PLACES_MAX = 256,
	LINE_WORDS = 8
};

/* The first `count` chunks of a space of a rank, from `chunk` on. */
struct dev_place {
	uint16_t rank;
	uint8_t space; /* enum place_space: IN or OUT */
	uint8_t unused;
	uint32_t chunk;
};

/* Fold the inputs from the left into every output. */
struct dev_move {
	uint16_t first; /* into the places: the inputs, then the outputs */
	uint16_t input_count, output_count;
	uint16_t count; /* chunks */
	uint32_t chunk; /* of a vector: the first, which all its places have */
	uint32_t op;	/* OP_POST or 0 */
};

/* What one rank does. Followed by the moves, then by the places in the same order; the
 * pages of all ranks follow one another and are equally long, a multiple of 16 bytes. */
struct dev_page {
	uint32_t move_count, place_count;
	uint32_t unused[2];
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

struct dev_hall;

/* The same as far as a launch carries it in its arguments. */
struct dev_post {
	uint64_t in, out, scalar;
	struct dev_hall *hall; /* resident: the rank's, in our addresses */
};

/* A send from one rank to another: where its bytes are in the receiver's addresses. */
struct dev_slot {
	uint64_t from, bytes;
	uint32_t posted; /* resident: its number; else 1 while it is there */
	uint32_t unused[3];
};

/*
 * What a rank has in device memory for others to write into. Every word has one writer
 * at a time.
 *   leader's way     rank 0's `mail` for calls with numbers, `constant` for calls that a
 *                    graph replays: words are 1 while something is there, 0 else; but
 *                    mail[r].done and constant[r].done are rank r's
 *   resident         lines[r] are what rank r says of its call, as struct dev_mail does:
 *                    in, out, scalar and sign, in halves of 32 bits, each with the
 *                    call's number above it, so that who reads it knows whether it is
 *                    there; gone[b][r] is set to the number
 */
struct dev_hall {
	struct dev_mail mail[MOVES_RANKS_MAX];
	struct dev_mail constant[MOVES_RANKS_MAX];
	uint64_t lines[MOVES_RANKS_MAX][LINE_WORDS];
	uint32_t call; /* resident: calls that are complete; this rank's own */
	uint32_t leaving, unused[30];
	struct dev_slot boxes[MOVES_RANKS_MAX][BOX_SLOTS]; /* from rank r to here */
	uint32_t taken[MOVES_RANKS_MAX][BOX_SLOTS]; /* by rank r, of what we sent */
	uint32_t signals[MOVES_RANKS_MAX]; /* ever given by rank r, see onesided.c */
	/* resident: the numbers of the last send and receive; this rank's own */
	uint32_t sent[MOVES_RANKS_MAX], got[MOVES_RANKS_MAX];
	uint32_t pairs_leaving, unused2[31];
	uint32_t copied[PAIRS_MAX]; /* blocks that have, of a receive */
	uint32_t gone[RESIDENT_BLOCKS_MAX][MOVES_RANKS_MAX];
};

/* Types and operators as in base/dtype.h. */
struct moves_args {
	const char *pages;	     /* device memory: a struct dev_page per rank */
	const struct dev_mail *mail; /* device memory: one per rank */
	const uint32_t *abort;	     /* host memory the device reads: not 0: stop */
	uint32_t *trouble;    /* host memory: set to 1 + the rank whose sign differs */
	uint64_t chunk_bytes; /* distance between chunks of IN and OUT */
	/* of a vector: chunks at its end are short or empty; so large for blocks that
	 * none is cut */
	uint64_t total_bytes;
	uint64_t sign;	       /* resident: of this rank's call */
	const void *scalar_at; /* resident: where this rank's scalar is, or NULL */
	uint32_t scalar_bytes; /* .. and its length */
	uint32_t
		call; /* fused: what `ready` must be; resident: its number, 0: see hall */
	uint32_t rank, rank_count; /* rank: of a resident launch */
	uint32_t divisor;	   /* POST divides integers by it; 0: it does nothing */
	uint32_t is_scaled;	   /* IN is multiplied by its rank's scalar when read */
	uint32_t is_resident;	/* each rank launches its own; else one launch does all */
	uint32_t is_one_device; /* resident: all ranks are on one device, which is quicker
				 */
	uint32_t is_posted;  /* fused: `posts` stand for the mail, nothing is compared */
	uint32_t page_bytes; /* of every page */
	uint64_t scalars_at; /* posted: bit r: posts[r].scalar is where it is */
	/* posted: every rank's; resident: this rank's, in the addresses of rank r. Last,
	 * because a launch for few ranks carries few of them */
	struct dev_post posts[MOVES_RANKS_MAX];
};
_Static_assert(sizeof(struct moves_args) <= 4096, "it is passed as kernel parameters");

/*
 * Fused: gridDim.y is the rank count, block (x, y) works on rank y's moves.
 * Resident: gridDim.y is 1 and the moves are those of `rank`; ranks whose signs agree
 * have equal grids. A rank's launch writes into the others' halls and waits on its own.
 * Before the moves all blocks wait for block 0 of every rank, which writes the rank's
 * lines: a rank whose block 0 runs has its buffers ready. After the moves block b waits
 * for block b of every rank; when signs differ only block 0 does, since the others have
 * perhaps no partner. The number of the call is the hall's own, so that a launch in a
 * graph can be repeated.
 */

/* One send or receive. */
struct dev_pair {
	uint64_t data;	/* ours; of a resident or posted send: in the peer's addresses */
	uint64_t from;	/* of a receive: where its bytes are, 0: the box says */
	uint64_t bytes; /* ours */
	uint16_t peer;
	uint8_t is_send, is_last; /* is_last: of those with this peer and direction */
	uint32_t ordinal : 31;	  /* among those, from 0 */
	uint32_t is_put : 1;	  /* into memory of a rank that is not asked */
};

/*
 * Sends and receives of one rank. The receiver copies. Not resident: there are only
 * receives, whose slots are full (`ordinal` is the slot), and nothing is waited for.
 * Resident: block 0 posts the sends and waits until they are taken; the others receive,
 * one after the other.
 */
struct pairs_args {
	const uint32_t *abort;
	uint32_t *trouble;     /* set to 1 + the peer whose size differs */
	struct dev_hall *hall; /* ours */
	uint32_t rank, count;  /* count: of pairs */
	uint32_t is_resident, is_one_device;
	struct dev_pair pairs[PAIRS_MAX];
	struct dev_hall *peers[PAIRS_MAX]; /* resident: of each pair's peer, here */
};

#endif
