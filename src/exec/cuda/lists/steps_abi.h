/*
 * steps_abi.h - what the staged kernels are given: the steps of every rank, and where
 * stages, positions and buffers are.
 *
 * Read by C and by CUDA C. The steps are the moves of sched/lower.h in staged mode, cut
 * into single chunks, for all ranks and lanes; steps.h says who makes and passes what.
 *
 * A page holds what a block can have in shared memory at once. The steps of lane l of
 * rank r are pages (r * lane_count + l) * page_count and the next page_count - 1, run in
 * order in every tile; a step without `op` ends a page. All pages are equally long, so a
 * block finds its own without looking anything up.
 */
#ifndef EXEC_CUDA_LISTS_STEPS_ABI_H
#define EXEC_CUDA_LISTS_STEPS_ABI_H

#include "exec/cuda/lists/moves_abi.h"
#include "sched/insn.h"

enum {
	STEPS_RANKS_MAX = MOVES_RANKS_MAX,
	STEPS_LANES = 2,
	STEPS_THREADS = 512, /* of a block, at most */
	STEPS_THREADS_MIN = 64,
	STEPS_LINE = 128, /* what tiles, slots and stages are multiples of */
	/* of a page, at most */
	STEPS_PAGE = 128,
	STEPS_PAGE_PLACES = 256,
	STEPS_PAGE_WAITS = 256
};

/* How a slot is laid out and how its arrival is known.
 *
 *   SIMPLE  the bytes; the sender's position says that they are there
 *   LL      16 bytes for 8: d0 flag d1 flag, 4 bytes each; each half arrives whole
 *   LL128   128 bytes for 120: fifteen words of 8 bytes and a flag, stored by 8 threads
 *           of a warp at once, which arrive together within a GPU and over NVLink
 *
 * A flag is the position that the sender has when the message is sent, so no message ever
 * has the flag of another: 8 bytes of it in LL128; in LL the lower 4, and before they can
 * come round again the sender overwrites all flags of its stage (steps.cuh).
 */
enum steps_codec { STEPS_SIMPLE, STEPS_LL, STEPS_LL128, STEPS_CODECS };

/* A place's space is one of enum space, or this: enum place_space of sched/lower.h. */
enum { STEPS_SPACE_STAGE = SPACE_COUNT };

/* The kind of a wait for a slot that has been read: one of enum wait_kind there. */
enum { STEPS_WAIT_ACK = 1 };

/* A chunk of a buffer of this rank, or of a slot in some rank's stage. */
struct dev_step_place {
	uint16_t rank;
	uint8_t space;
	uint8_t part;	   /* of a slot: which of its chunks */
	uint16_t chunk;	   /* of a slot: number of the message in its tile */
	uint16_t period;   /* of a slot: messages per tile */
	uint16_t slot;	   /* of a slot: the first of its group */
	uint16_t length;   /* of a slot: moves per tile of the sender's lane */
	uint32_t position; /* of a slot: moves of this tile the sender has then retired */
};

/* As struct wait of sched/lower.h, with the moves per tile of the lane waited for. */
struct dev_step_wait {
	uint16_t rank;
	uint8_t lane;
	uint8_t kind; /* enum wait_kind */
	uint32_t position;
	uint16_t back;
	uint16_t length;
};

/* Who waits for the position after a step: messages sent with it; slots freed by it, in
 * the same tile or only in later ones; the other lane of this rank. */
enum steps_tell { TELL_DATA = 1, TELL_ACK = 2, TELL_ACK_LATER = 4, TELL_LOCAL = 8 };

/* Fold the inputs from the left into every output: one chunk. Places and waits are
 * counted from the beginning of the page. Waits for the other lane come first, then those
 * for free slots (which all look `back` tiles back), then those for data. */
struct dev_step {
	uint16_t place_first, wait_first;
	uint8_t op;   /* the instruction's bits */
	uint8_t tell; /* enum steps_tell */
	uint8_t input_count, output_count;
	uint8_t local_count, ack_count, data_count; /* waits */
	uint8_t unused;
	uint16_t back;
	uint16_t bound; /* it is as long as this chunk of the vector */
	uint16_t unused2;
	uint16_t length;   /* moves per tile of this lane */
	uint32_t position; /* moves of this tile retired after it */
};

/* The block of memory begins with this. */
struct dev_steps {
	uint32_t rank_count, lane_count, page_count;
	uint32_t depth;	      /* slots of a group, a power of 2 */
	uint32_t slot_count;  /* of the neediest rank's stage */
	uint32_t slot_chunks; /* chunks of the largest message */
	uint32_t chunk_count, tmp_count;
	uint32_t is_vector;  /* chunks are parts of one vector, else blocks */
	uint32_t length_max; /* moves per tile of the longest lane of any rank */
	uint32_t step_stride, place_stride, wait_stride; /* of a page */
	uint32_t steps_at, places_at, waits_at;		 /* bytes from the beginning */
};

/* One lane's position: all moves it has retired since the words were cleared, of calls
 * that are over the longest lane's moves, so that all ranks count alike. */
struct dev_word {
	uint64_t position;
	/* of lane 0: one more than where it was when the flags were overwritten, or,
	 * where a host follows the launch, when it began */
	uint64_t cleaned;
	uint64_t unused[14];
};

/* What a rank lends to the others, as the launcher sees it; in device memory, one per
 * rank. Words are [channel * STEPS_LANES + lane]. */
struct dev_end {
	uint64_t stage, words;
	/* words that say which slots it has read: the same as `words`, but for a rank on
	 * another host, whose messages are carried (haul.h) */
	uint64_t acks;
	uint64_t scratch; /* only of ranks of the launch, and only where there is TMP */
};

/* Sizes are those of steps_shape(). `ends` are by rank; `ranks`, `posts` and `mail` are
 * by number in this launch. */
struct steps_args {
	struct dev_steps head;
	const char *steps;	    /* device memory: the whole block */
	const struct dev_end *ends; /* device memory */
	struct dev_mail *mail; /* device memory: where buffers are, unless is_posted */
	const uint32_t *abort; /* host memory the device reads: not 0: stop */
	uint32_t *trouble;     /* as in moves_args */
	uint64_t chunk_bytes, total_bytes; /* total: so large for blocks that none is cut
					    */
	uint64_t part_bytes;		   /* of each chunk, for one channel */
	uint64_t tile_bytes, slot_bytes;
	uint64_t stride_bytes;	/* between chunks of a slot */
	uint64_t stage_bytes;	/* of one channel's slots, the same in every call */
	uint64_t scratch_bytes; /* of one channel */
	uint64_t span;		/* what the call adds to every position */
	uint32_t tile_count;
	uint32_t rank_count;	/* of this launch: gridDim.y */
	uint32_t call;		/* its number, where there is mail */
	uint32_t divisor;	/* POST divides integers by it; 0: it does nothing */
	uint32_t is_scaled;	/* IN is multiplied by its rank's scalar when read */
	uint32_t is_one_device; /* all ranks, stages and words are on one device */
	uint32_t is_posted;	/* `posts` stand for the mail */
	uint32_t is_followed;	/* a host wants to know when it begins */
	uint32_t scalar_bytes;	/* of an element */
	uint64_t scalars_at;	/* as in moves_args */
	uint8_t ranks[STEPS_RANKS_MAX];
	struct dev_post posts[STEPS_RANKS_MAX];
};
_Static_assert(sizeof(struct steps_args) <= 4096, "it is passed as kernel parameters");

#endif
