/*
 * board.h - the shared memory through which the ranks of one host meet; numbered here
 * as they come on this host.
 *
 * One segment per communicator, a memfd, the same layout whether ranks are threads or
 * processes. A page of its own says what it is (`weft ps` reads it from outside); then
 * each rank has a part that everyone reads:
 *
 *   rank r:  | status | cards x16 | region directory | number of its pair with each |
 *            | eager stage x16 | bulk stage |
 *
 * The status comes first, so that who looks at all ranks needs one page of each.
 *
 * Where a rank moves a call by several threads, each of the others has a layer of its
 * own: all ranks' parts once more, of which the status stays unused.
 *
 * Behind the parts come the boxes, slots and signals of pairs of ranks, as they are first
 * used: see pair.h.
 *
 * A rank writes its own part, with exceptions: who sleeps on a word counts itself
 * among the word's sleepers, who receives says in the sender's box what it took, or
 * that it refuses it and what it had expected, and either end makes their pair.
 *
 * A card is what a rank shows during one collective call; call number s uses card
 * s modulo 16. Its positions are the whole synchronisation of a collective: a word that
 * only grows, (call number << 24) + moves retired. Small payloads ride in the same line
 * and in the two that follow it.
 * Pages are committed on first touch, so memory follows use.
 */
#ifndef LINK_BOARD_H
#define LINK_BOARD_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cores.h"
#include "base/err.h"
#include "link/pulse.h"

enum {
	BOARD_CARDS = 16,
	BOARD_LANES = 2,
	BOARD_INLINE = 160,  /* payload bytes beside the position and in the next lines */
	BOARD_REGIONS = 256, /* regions a rank can show at a time */
	BOARD_CALL_SHIFT = 24,
	BOARD_CPU_WORDS = 16, /* of 64 processors */
	BOARD_RANKS_MAX = 1 << 16,
	BOARD_SENTENCE_BYTES = 384,
	BOARD_NAME_BYTES = 64,
	BOARD_MAIL_BYTES = BOARD_SENTENCE_BYTES
};

/* At the start of the segment. */
struct board_header {
	uint64_t token; /* tells segments apart */
	char magic[8];	/* "weftcom" and the layout's version */
	uint32_t rank_count, created_pid;
	uint32_t signal_count;
	uint32_t job_ranks; /* of the communicator, those on other hosts included */
	uint32_t layer_count;
	uint64_t bytes, created_ns;  /* of the monotonic clock */
	char name[BOARD_NAME_BYTES]; /* what the user called it, or nothing */
	_Atomic uint32_t pair_count; /* numbers of pairs that were taken: see pair.h */
};

/* What a rank is doing, so that others can compare it with what they are doing. */
struct call_sign {
	uint32_t coll, type, op, root;
	uint64_t count;
};

/* References to a rank's buffers; see ref.h. */
struct card_refs {
	uint64_t in, out, scalar;
	uint32_t mode; /* rank 0's: which way it would go where there are two */
};

struct card {
	alignas(128) _Atomic uint64_t position[BOARD_LANES];
	_Atomic uint32_t sleepers; /* who sleeps on a position; waiters write it */
	uint32_t directory;	   /* version of the region directory */
	_Atomic uint64_t sign_hash;
	union {
		unsigned char payload[BOARD_INLINE];
		struct card_refs refs;
	};
	alignas(64) struct call_sign sign; /* read only when the hashes differ */
};
_Static_assert(offsetof(struct card, payload) + BOARD_INLINE == 192,
	"a payload fills its lines and touches no other");

enum rank_state { RANK_ABSENT, RANK_LIVE, RANK_LEFT, RANK_FAILED };

/* Can a rank have the kernel copy from all others? */
enum foreign_answer { FOREIGN_UNKNOWN, FOREIGN_YES, FOREIGN_NO };

enum doing_kind {
	DOING_NOTHING,
	DOING_COLL,
	DOING_SEND,
	DOING_RECV,
	DOING_SIGNAL,
	DOING_PUT, /* to a rank of another host, which takes it without a call of its own
		    */
	DOING_KINDS
};

/* What a rank is blocked in. Written when it has waited for a while, never before; its
 * serial is odd while it is being written and changes with every new wait. */
struct doing {
	alignas(64) _Atomic uint32_t serial;
	uint32_t kind;	   /* enum doing_kind */
	uint32_t rank;	   /* whom it waits for */
	uint32_t jobs;	   /* calls that run side by side in its group */
	uint32_t colls;	   /* .. of them collectives */
	uint64_t number;   /* of the collective, letters or signals exchanged before it */
	uint64_t want;	   /* the position it waits for, of a collective */
	uint32_t lane;	   /* .. of that rank's lane; of a signal: which */
	uint64_t since_ns; /* of the monotonic clock */
	struct call_sign sign; /* of a send, receive or signal: count is bytes */
	/* for ranks of other hosts, who cannot see the rest of the board: */
	uint64_t sign_hash;  /* of a collective: as on the card */
	uint64_t moves_want; /* .. what it waits for, as moves of that rank's lane */
	uint64_t moves_done[BOARD_LANES]; /* .. and how far its own lanes are */
	uint32_t is_leaving;		  /* it waits for its own message to leave */
	uint32_t wait_id; /* counts this rank's waits; never 0 in a note */
	/* what that rank waits for in its wait of that number, this one has not done: see
	 * doing.h; 0: nothing is said of anybody */
	uint32_t vouched_rank, vouched_wait;
};

/* Reading or writing buffers shown for a call; writing a peer's window. */
enum touch_kind { TOUCH_NONE, TOUCH_CALL, TOUCH_WINDOW };

struct rank_status {
	alignas(64) _Atomic uint32_t state; /* enum rank_state */
	uint32_t pid;
	uint32_t rank;			/* in the communicator */
	uint64_t cpus[BOARD_CPU_WORDS]; /* it may run on, */
	struct cores_quota quota;	/* .. and for how much time */
	uint64_t probe; /* address in its process that holds the board's token */
	_Atomic uint32_t foreign; /* enum foreign_answer */
	_Atomic uint32_t cpu;	  /* where it last waited, plus one; a hint */
	/* RANK_FAILED: the code, the rank it blames (itself when it aborted), the first
	 * call that fails with it, and why, written before the state */
	_Atomic uint32_t code, culprit;
	_Atomic uint64_t gone_ns; /* when it freed the communicator; 0: it has not */
	_Atomic uint64_t failed_at;
	char sentence[BOARD_SENTENCE_BYTES];
	struct pulse pulse; /* stops with its process, see pulse.h */
	/* It is about to use, or uses, buffers of others: see host_peers_leave(). A line
	 * of its own, because it is written at every call and the rest hardly ever. */
	alignas(64) _Atomic uint32_t touching; /* enum touch_kind */
	struct doing doing;
	/* A letter to the ranks that make a child communicator with this one: an id, or
	 * why there is none. */
	alignas(64) _Atomic uint64_t mail_number;
	uint32_t mail_code; /* enum err */
	unsigned char mail[BOARD_MAIL_BYTES];
	/* What it wants of a split; two, because a rank can be one split ahead. */
	struct vote {
		_Atomic uint64_t number;
		int32_t color, key;
	} votes[2];
};

/* Where the cards are in a rank's part. */
enum {
	BOARD_CARDS_AT = (sizeof(struct rank_status) + alignof(struct card) - 1) /
			 alignof(struct card) * alignof(struct card)
};

struct region_entry {
	_Atomic uint64_t id; /* 0: free */
	uint64_t bytes;
	int32_t fd;
};

/* One direction between two ranks, for sends and receives: two letters in flight. See
 * pair.h for where it is. */
enum { BOX_LETTERS = 2 };

struct letter {
	uint64_t total; /* bytes of the whole message */
	uint64_t bytes; /* of this piece */
	uint64_t ref;	/* the sender's buffer, or REF_NONE: this pair's slot */
	uint32_t directory;
};

struct box {
	alignas(64) _Atomic uint64_t posted; /* letters ever posted: the sender's */
	_Atomic uint32_t posted_sleepers;
	struct letter letters[BOX_LETTERS];
	alignas(64) _Atomic uint64_t taken; /* letters ever taken: the receiver's */
	_Atomic uint32_t taken_sleepers;
	_Atomic uint32_t refused; /* the receiver expected another size */
	uint64_t expected;	  /* .. this one */
};

/* One direction between two ranks, for what is one-sided; a pair has several of these. */
struct signal {
	alignas(64) _Atomic uint64_t given; /* ever, by the sender: see onesided.h */
	_Atomic uint32_t sleepers;
};

struct board {
	char *base;
	size_t bytes;
	uint32_t rank_count, signal_count, layer_count;
	/* layout, all derived from these; `bytes` are without the pairs */
	size_t rank_bytes, eager_offset, bulk_offset;
	size_t eager_bytes;	       /* of one card */
	size_t bulk_bytes, pair_bytes; /* pair_bytes: of one slot, BOX_LETTERS of them */
	size_t pair_stride, chunk_bytes;
	uint32_t chunk_shift, chunk_count; /* pairs in a chunk: two to this power */
	uint64_t token;			   /* tells segments apart */
	int fd;				   /* this process's own; -1: a view */
	size_t view_bytes;		   /* of a view: the whole file, pairs and all */
	/* of pairs, where they are mapped here; owned, NULL in a view */
	_Atomic(char *) *chunks;
};

/* How another rank finds the segment: travels in the boot record. */
struct board_address {
	uint64_t token, bytes;
	int32_t pid, fd;
};

/* Between how many ranks of this host, how many signals each has to each other, how many
 * ranks there are on all hosts, and how many layers of parts; 0: one. */
struct board_size {
	uint32_t rank_count, signal_count, job_ranks, layers;
};

/* Make the segment (one rank does) or find it (the others; ranks of one process share
 * one mapping). */
enum err board_create(
	const struct board_size *size, const char *name, struct board **board);
enum err board_attach(const struct board_address *address, const struct board_size *size,
	struct board **board);
struct board_address board_address(const struct board *board);
/* Let go; the memory goes with the last rank. */
void board_release(struct board *board);

/* Where so many ranks share a board: bytes of the two stages. */
void board_room(uint32_t rank_count, size_t *eager_bytes, size_t *bulk_bytes);

/* A board for looking at a segment of `bytes` at `base` from outside: ERR_ARGUMENT when
 * it is none. Nothing is owned. */
enum err board_view(void *base, size_t bytes, struct board *view);

/* Here and below a rank of layer `i` counts as rank + i * rank_count. */
char *board_part(const struct board *board, uint32_t rank);
struct card *board_card(const struct board *board, uint32_t rank, uint64_t call);
struct rank_status *board_status(const struct board *board, uint32_t rank);
struct region_entry *board_region(
	const struct board *board, uint32_t rank, uint32_t slot);
char *board_eager(const struct board *board, uint32_t rank, uint64_t call);
char *board_bulk(const struct board *board, uint32_t rank);

/* Positions wrap like serial numbers. */
static inline bool position_reached(uint64_t have, uint64_t want)
{
	return (int64_t)(have - want) >= 0;
}

/* Publish a growing word and wake whoever sleeps on it. Pairs with word_sleep(). */
void word_publish(_Atomic uint64_t *word, _Atomic uint32_t *sleepers, uint64_t value);

/* Sleep until *word is no longer `seen`, at most `timeout_us`. */
void word_sleep(_Atomic uint64_t *word, _Atomic uint32_t *sleepers, uint64_t seen,
	uint32_t timeout_us);

#endif
