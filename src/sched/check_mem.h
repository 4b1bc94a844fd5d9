/*
 * check_mem.h - the memory the checker runs programs on: symbols instead of bytes.
 *
 * A cell is one tile of one chunk: of IN or OUT (one cell per tile), of TMP or a stage
 * slot (the same cell in every tile). It holds a value and remembers who wrote it and
 * who has read it since, which is all that is needed to see a race. In place, a chunk of
 * IN and one of OUT are the same cell. An inbox is of its receiver and one sender's lane,
 * and the same cells in every tile, too.
 *
 * A value is a symbol and the set of ranks summed in it. Reducing collectives name chunk
 * c of every rank's vector alike, so that they may be summed; in the others each block
 * has its own symbol and no two can be mixed.
 */
#ifndef SCHED_CHECK_MEM_H
#define SCHED_CHECK_MEM_H

#include "sched/check.h"
#include "sched/check_clock.h"

enum { CHECK_RANKS_MAX = 1024, CHECK_WORDS = CHECK_RANKS_MAX / 64 };

enum cell_flag {
	CELL_FULL = 1,	 /* holds a value */
	CELL_INPUT = 2,	 /* the caller's data, before any operator */
	CELL_POSTED = 4, /* the final operator has been applied */
	CELL_UNREAD = 8	 /* nobody has read what was last written */
};

struct mem_cell {
	uint32_t symbol;
	uint16_t tile;
	uint8_t flags;	    /* enum cell_flag */
	uint8_t space;	    /* enum place_space, for reports */
	uint32_t write_pos; /* 0: never written */
	uint32_t read_pos;  /* 0: not read since */
	uint32_t write_lane, read_lane;
	uint32_t readers; /* further readers, as a list; 0: none */
	uint32_t letters; /* messages sent from here since, as a list; 0: none */
};

struct value {
	uint32_t symbol;
	uint32_t input_count; /* operands folded so far */
	bool posted;
	uint64_t ranks[CHECK_WORDS];
};

struct cell_reader {
	uint32_t lane, pos, next;
};

/* A message to another host: each lane of the sender learns for itself that it has left,
 * at that position of its own; 0: it has not. */
struct mem_letter {
	uint32_t lane; /* the sender's first */
	uint32_t learned[SCHED_LANES_MAX];
};

struct cell_letter {
	uint32_t letter, next;
};

struct rank_cells {
	uint32_t user;		    /* first cell of IN and OUT .. */
	struct sched_layout chunks; /* .. and where they lie in those of a tile */
	uint32_t tmp, stage, inbox;
};

enum { MEM_NOWHERE = 0xffffffff };

struct mem {
	struct program *const *programs; /* borrowed */
	uint32_t rank_count, word_count, tile_count, depth;
	uint32_t lane_max;	  /* lanes are numbered rank * lane_max + lane */
	struct rank_cells *ranks; /* owned */
	struct mem_cell *cells;	  /* owned */
	uint64_t *sets;		  /* owned: [cell * word_count] */
	uint32_t cell_count;
	struct cell_reader *readers; /* owned; number 0 is not used */
	uint32_t reader_count, reader_room;
	struct mem_letter *letters; /* owned */
	uint32_t letter_count, letter_room;
	struct cell_letter *listed; /* owned; number 0 is not used */
	uint32_t listed_count, listed_room;
	bool out_of_memory;
};

/* Lay out the memory of all ranks and fill IN. The caller has set programs, tile_count
 * and lane_max. */
enum err mem_init(
	struct mem *mem, const struct sched *scheds, const struct check_args *args);
void mem_fini(struct mem *mem);

/* The cell of chunk `chunk` of a place, as rank `rank` sees it in a tile; MEM_NOWHERE for
 * an inbox that rank does not have. */
uint32_t mem_cell(const struct mem *mem, const struct place *place, uint32_t rank,
	uint32_t tile, uint32_t chunk);

/* One access, by lane `lane` at its position `pos`, in tile `tile`. */
struct access {
	const struct clocks *clocks;
	uint32_t lane, pos, tile;
};

/* Fold a cell into `value`; NULL or what is wrong. `space` is what it is read as. */
const char *mem_read(struct mem *mem, uint32_t cell, uint32_t space,
	const struct access *access, struct value *value);

/* Apply the final operator. */
const char *mem_post(struct value *value);

const char *mem_write(struct mem *mem, uint32_t cell, const struct access *access,
	const struct value *value);

/* A new message of the rank whose lane `lane` is; its number. */
uint32_t mem_letter(struct mem *mem, uint32_t lane);

/* The message begins to leave a cell; it is carried to another, the receiver's. */
const char *mem_send(
	struct mem *mem, uint32_t cell, uint32_t letter, const struct access *access);
const char *mem_carry(
	struct mem *mem, uint32_t from, uint32_t to, const struct access *access);

/* The call returns on `rank`, whose lane `lane` knows all its lanes do: its buffers must
 * be nobody else's any more and OUT must hold the result. */
const char *mem_leave(struct mem *mem, const struct sched *sched,
	const struct clocks *clocks, uint32_t lane);

#endif
