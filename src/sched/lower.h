/*
 * lower.h - from what every rank's schedule says to what one rank does.
 *
 * Sends and receives of a schedule match statically, first to first. Lowering matches
 * them and writes, for one rank, a list of moves: wait for these positions of these
 * ranks, fold these places into those places, then publish my own position. Each lane
 * of each rank has one position that only grows; it stands for every FIFO tail and head
 * at once, so a message to fifteen peers is announced by one store.
 *
 * How a message travels is settled here:
 *   lent    the receiver reads the sender's IN or OUT in place
 *   landed  the sender writes the receiver's destination in place
 *   staged  through a slot in the sender's stage, `depth` slots per connection
 *   sent    over the network, where the two are on different hosts
 * MODE_STAGED stages everything (this is the FIFO of the schedule's definition);
 * MODE_DIRECT lends and lands whatever it can and stages the rest; MODE_PULL lends and
 * never lands, so that nobody writes into another's memory. All that is for the ranks of
 * one host. Between hosts every message is sent, in every mode, so each host may choose
 * its mode for itself: what a move is called and how many there are is the same in all.
 *
 * A sent message leaves from where its value stands in the sender's own memory, or, where
 * it stands nowhere, from a slot of the sender's stage that the move folds it into. It
 * may be read there until a WAIT_SENT has seen it leave. The messages of one rank to
 * another on one lane arrive in order, each at the move that takes it. They bring no
 * positions and need no acknowledgement.
 *
 * The checker (check.h) proves the lowered moves of all ranks, and the host and the
 * simulation engine run exactly those.
 */
#ifndef SCHED_LOWER_H
#define SCHED_LOWER_H

#include "sched/catalog.h"

enum lower_mode { MODE_STAGED, MODE_DIRECT, MODE_PULL, LOWER_MODES };

/* "staged", "direct", "pull". */
const char *lower_mode_name(enum lower_mode mode);

/* Where a tile lives. A STAGE place names a connection group and a message on it. An
 * INBOX place is what has just come from `rank` of another host over `lane`; INBOX_IN is
 * the same where that rank's IN was sent as it is, so that reading it applies the
 * pre-operator, with that rank's number. */
enum place_space {
	PLACE_IN,
	PLACE_OUT,
	PLACE_TMP,
	PLACE_STAGE,
	PLACE_INBOX,
	PLACE_INBOX_IN
};

struct place {
	uint16_t rank;	 /* whose it is; of an INBOX place: the sender */
	uint8_t space;	 /* enum place_space */
	uint8_t lane;	 /* of a STAGE or INBOX place: the sender's lane */
	uint16_t chunk;	 /* first chunk; of a STAGE place: message index in the tile; of
			    an INBOX place: as sent.chunk */
	uint16_t group;	 /* of a STAGE place: group index at the sender */
	uint16_t period; /* of a STAGE place: messages per tile in that group */
	uint16_t slot; /* of a STAGE place: first slot of the group in the sender's stage
			*/
};

/* Wait until `lane` of `rank` has retired `position` moves of tile (tile - back).
 *
 * WAIT_DATA for a rank of another host: until the message that move `position` - 1 of it
 * sent has come. These waits stand behind all others of a move but WAIT_SENT, so what the
 * move writes is free when such a message is taken, unless a WAIT_SENT behind says
 * otherwise: then it may go to the inbox only, until that is over, too.
 *
 * WAIT_SENT: until what this rank's own `lane` sent to `rank` in its first `position`
 * moves of tile (tile - back), and in all tiles before, has left its memory. */
enum wait_kind { WAIT_DATA, WAIT_ACK, WAIT_LOCAL, WAIT_SENT };

struct wait {
	uint16_t rank;
	uint8_t lane;
	uint8_t kind; /* enum wait_kind; only the simulation tells data from
			 acknowledgement */
	uint32_t position;
	uint32_t back;
};

/* Of no chunk in particular: the message is as long as full ones are. */
enum { CHUNK_ANY = 0xffff };

/* A message to a rank of another host, in the move's `count` chunks. */
struct sent {
	uint16_t rank;
	/* the first chunk of the vector it is of, so that both ends know how long it is:
	 * what the sender's instruction says, or else the receiver's, or CHUNK_ANY */
	uint16_t chunk;
	uint32_t place; /* into program.places: where it leaves from, once the move's
			   outputs are written */
};

/* Messages from or to one rank of another host, over one lane. */
struct remote {
	uint16_t rank;
	uint8_t lane;
};

struct move {
	uint8_t op;	/* the instruction's bits, IN_RECV cleared when the data lands by
			   itself */
	bool publish;	/* announce the position after this move */
	uint16_t count; /* chunks */
	uint32_t wait_first, wait_count;   /* into program.waits */
	uint32_t input_first, input_count; /* into program.places, in fold order, ACC and
					      SRC included */
	uint32_t output_first,
		output_count; /* into program.places; empty for a lent send */
	uint32_t send_first,
		send_count; /* into program.sends: who is told of this message */
	uint32_t sent_first, sent_count; /* into program.sents, which all have the same
					    place: the one behind the inputs */
	uint16_t insn, rep;		 /* where it comes from, for reports */
};

struct lane_moves {
	struct move *moves; /* owned */
	uint32_t count;
};

struct family;

struct program {
	enum coll coll;
	enum lower_mode mode;
	uint32_t rank_count, rank, root;
	uint32_t chunk_count, tmp_count;
	uint32_t depth;		 /* slots per connection group */
	uint32_t slot_count;	 /* slots this rank's stage needs in all */
	uint32_t slot_count_max; /* .. and the neediest rank's */
	uint32_t slot_chunks;	 /* chunks the largest staged message of any rank holds */
	uint32_t lane_count;
	struct lane_moves lanes[SCHED_LANES_MAX];
	struct wait *waits;   /* owned */
	struct place *places; /* owned */
	uint16_t *sends;      /* owned: ranks */
	uint32_t wait_count, place_count, send_count;
	/* Between hosts; all empty on one. The lists are by rank, then by lane. */
	struct sent *sents;		/* owned */
	struct remote *net_rx, *net_tx; /* owned: who is received from, and sent to */
	uint32_t sent_count, net_rx_count, net_tx_count;
	uint32_t inbox_chunks; /* chunks the largest sent message of any rank holds */
	/* After the last tile: readers that must be done before the buffers are ours
	 * again, and messages that must have left. */
	uint32_t drain_first, drain_count; /* into waits */
	/* The length of this rank and of all it waits for, so that a position can be
	 * computed: moves per tile, [rank * SCHED_LANES_MAX + lane]. Borrowed from the
	 * family. */
	const uint32_t *lengths;
	uint32_t length_max;   /* of all ranks */
	struct family *family; /* a share of it: see family.h */
};

struct lower_args {
	const struct sched_kind *kind;
	uint32_t rank_count, rank, root;
	enum lower_mode mode;
	uint32_t depth;	       /* >= 1 */
	const uint16_t *hosts; /* borrowed: which host each rank is on; NULL: one */
};

/* Lower one rank's program: in the time and memory of what it exchanges with its peers.
 * The schedules it looks at are written once in a process and shared (family.h). On
 * failure nothing is left to free. */
enum err program_lower(const struct lower_args *args, struct program **program);

/* The programs of all ranks, programs[rank]; args->rank is not looked at. With `scheds`,
 * one per rank and borrowed, these are lowered and not args->kind's. On failure nothing
 * is left to free. */
enum err program_lower_all(const struct sched *scheds, const struct lower_args *args,
	struct program **programs);

/* Moves at the start of a lane that neither wait nor touch memory: they can be announced
 * together with the rank's arrival. */
uint32_t program_lead(const struct program *program, uint32_t lane);

void program_destroy(struct program *program);

#endif
