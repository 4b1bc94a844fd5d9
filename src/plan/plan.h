/*
 * plan.h - one call becomes one plan: schedule, mode, chunk and tile sizes.
 *
 * A plan depends on what is called and how much of it, not on pointers, so a repeated
 * call finds it by its key and starts at once. Programs are shared by all sizes.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "base/dtype.h"
#include "sched/lower.h"

struct limits;

struct plan_key {
	enum coll coll;
	enum dtype type;
	uint32_t root;
	size_t count; /* elements, as in nccl.h */
	/* the schedule the caller names, a text that is never freed; NULL: the best */
	const char *schedule;
};

bool plan_key_equal(const struct plan_key *a, const struct plan_key *b);
uint32_t plan_key_hash(const struct plan_key *key);

/* A program and the sizes it runs with. */
struct shape {
	const struct program *program; /* borrowed from the planner */
	const char *schedule;	       /* its name */
	size_t chunk_bytes;	       /* distance between chunks */
	size_t total_bytes; /* of the vector; chunks beyond it are short or empty */
	bool uneven;	    /* .. and there are such chunks */
	bool is_whole;	    /* there are none, and a chunk is one tile */
	size_t tile_bytes;
	size_t slot_bytes;   /* distance between slots of the stage */
	size_t staged_bytes; /* distance between the chunks in a slot */
	size_t inbox_bytes; /* of each inbox, its chunks as far apart; 0: there is none */
	bool is_inline;	    /* all slots of any rank fit beside its position */
	uint32_t tile_count;
	/* Bytes from a chunk's beginning to the first of the tiles that are counted, and
	 * from one to the next; all: 0 and tile_bytes. See shape_share(). */
	size_t tile_offset, tile_stride;
};

/* Times of one plan run both ways, where both are possible. */
struct trial {
	uint32_t count[LOWER_MODES];
	uint64_t best_ns[LOWER_MODES];
};

struct plan {
	struct plan_key key;
	bool eager;
	bool terse; /* so small that telling others costs more than they gain by knowing
		       early: positions are announced when there is something to wait for
		     */
	size_t in_bytes, out_bytes; /* of this rank's buffers; 0: it has none */
	uint32_t squad; /* so many threads of the rank run it, each a share of its tiles
			 */
	uint64_t sign;	/* ranks with the same sign run the same programs */
	struct trial trial;
	/* moves of the first lane that are lent at once, whichever way leads through the
	 * buffers; announced with the arrival */
	uint32_t lead;
	struct shape shapes[LOWER_MODES]; /* an eager plan has only the staged one */
};

/* Threads of each rank that may move a large call between hosts, and the least bytes of a
 * chunk that one is to take; 0: one thread, and as tune has it. */
struct squad_room {
	uint32_t threads, share_bytes;
};

/* What the planner must know of the board it plans for. */
struct plan_room {
	uint32_t rank_count, rank;
	size_t inline_bytes, eager_bytes, bulk_bytes;
	size_t tile_bytes; /* of a tile between hosts; 0: tune's */
	struct squad_room squad;
	size_t inbox_bytes;    /* of one inbox: of a rank of another host, and a lane */
	struct limits *limits; /* borrowed: see tune/limits.h; NULL none */
	/* borrowed for the planner's life: which host each rank is on; NULL: all are on
	 * one. With it, a plan has the same schedule and tiles in all modes, so that each
	 * host may choose its own. */
	const uint16_t *hosts;
};

/* What tiles are cut to: `tile` as it is asked for, 0 for one tile, and what a stage and
 * an inbox have room for. */
struct shape_room {
	size_t tile, stage, inbox;
};

/* Settle chunk and tile sizes for a program. Tiles are of whole cache lines. */
enum err shape_make(const struct program *program, const struct plan_key *key,
	const struct shape_room *room, struct shape *shape);

/* How the host stages a large call where nothing else is asked for. */
size_t plan_stage_tile(void);
uint32_t plan_stage_depth(void);

struct planner;

enum err planner_create(const struct plan_room *room, struct planner **planner);
void planner_destroy(struct planner *planner);

/* Another that plans alike, for a thread that may not use this one now; the two share
 * nothing but what the room borrows. Not where a tuner plugin is asked. */
enum err planner_twin(const struct planner *planner, struct planner **twin);

/* The plan for a key. Borrowed; valid until the next plan_get() on this planner. */
enum err plan_get(
	struct planner *planner, const struct plan_key *key, const struct plan **plan);

/* Where buffers are fetched by the kernel: that and the stage are each tried a few times,
 * then the faster is taken. */
enum lower_mode plan_next_mode(const struct plan *plan);
void plan_note(struct planner *planner, const struct plan *plan, enum lower_mode mode,
	uint64_t ns);

/* Where a tile begins in its chunk. */
static inline size_t shape_tile_offset(const struct shape *shape, uint32_t tile)
{
	return shape->tile_offset + tile * shape->tile_stride;
}

/* Bytes of tile `tile` of `chunk`; 0 when the chunk ends before it. */
size_t shape_piece(const struct shape *shape, uint32_t chunk, uint32_t tile);

/* Of a shape's first `tiles` tiles, those that thread `index` of `count` runs. */
uint32_t share_tiles(uint32_t tiles, uint32_t index, uint32_t count);

/* The shape as thread `index` of `count` runs it. */
struct shape shape_share(const struct shape *shape, uint32_t index, uint32_t count);

#endif
