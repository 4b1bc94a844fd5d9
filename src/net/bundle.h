/*
 * bundle.h - a connection of several cables, or of one whose messages are guarded: for
 * the socket*.c and bundle*.c files alone.
 *
 * Messages are cut into blocks, each with a head that says where it belongs. Any cable
 * takes the next block when there is room in it, so a fast one carries more than a slow
 * one. On the way back come notes: how many blocks have come by each cable.
 *
 *      sender                                         receiver
 *        | block of message 7 -------- cable 0 -------> |  straight into its place
 *        | block of message 7 -------- cable 1 -------> |
 *        | <---------- note 12, 11 --- cable 1 -------- |  so many by each
 *
 * With several cables the memory of a message is the network's until a note says that all
 * of it has come. So when a cable is lost, nothing that was in it is: the two ends agree
 * how many of its blocks have come, and the others go again by the cables that are left.
 * Who notices first closes it and tells the other end by one that is left. Notes go by
 * two interfaces where there are two, so that one of them arrives.
 */
#ifndef NET_BUNDLE_H
#define NET_BUNDLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "net/socket.h"

enum {
	BLOCK_LEAST = 32 << 10, /* a message is not cut smaller than that */
	BLOCK_MOST = 256 << 10,
	BLOCK_SEALED = 128 << 10, /* .. which is also how exactly a wrong one is placed */
	WINDOW = 64,		  /* blocks of a cable that no note has counted yet */
	NOTE_EVERY = 8,		  /* .. so many blocks at the latest */
	OUTS_MAX = 8,
	MUTE_LOOK_MS = 100,
	STALL_MS = 100,
	AWAIT_MS = 1000 /* for another cable when all that came are lost */
};

enum block_kind {
	BLOCK_DATA = 1,
	BLOCK_LOST, /* the cable `offset` is lost: say how many of its blocks came */
	BLOCK_NOTE  /* how many came by each cable */
};

/* In a note: nothing more comes by that cable. */
#define NOTE_IS_LAST ((uint64_t)1 << 63)

/* A part of a message. */
struct block {
	uint64_t message, offset;
	uint32_t bytes;
};

/* A message that was asked for. */
struct parcel {
	char *data;
	size_t bytes;
	uint64_t moved;	  /* cut into blocks; of a receiver: come */
	uint32_t pending; /* of a sender: blocks that may still be read again */
	uint32_t step;	  /* bytes of a block; 0: none has been cut */
	bool is_whole;	  /* all of it is cut, or has come */
};

/* A block that is being written. */
struct out {
	struct block_head head;
	const char *data;
};

/* A cable and what is on its way in it. */
struct fibre {
	struct cable cable;
	bool is_settled; /* it was lost, and both ends know how far it came */
	bool is_busy;	 /* a thread reads or writes without holding the lock */
	/* being written at once: all are short but the last */
	struct out outs[OUTS_MAX];
	uint32_t out_count;
	size_t out_bytes, out_done; /* of all of them */
	char *sealed;		    /* owned: their bytes where they are sealed */
	uint64_t note[NET_CABLES_MAX];
	uint64_t lost_due; /* a bit for each cable whose loss is to be told */
	bool note_due;
	/* sent, and counted by no note: struct block; a sender's */
	struct ring flight;
	uint64_t noted;
	/* being read */
	bool has_in;
	struct block_head in;
	size_t in_done;
	char *in_to;
	char *in_store; /* owned: where it is not read straight to its place */
	uint64_t came;	/* blocks */
};

/* A block that came before it was asked for. */
struct early {
	struct block_head head;
	char *data; /* owned */
};

/* A thread that moves some of the cables. */
struct helper {
	struct net_end *end; /* borrowed */
	uint32_t index;
	pthread_t thread;
	int wake_fd; /* owned */
	bool is_asleep, is_called;
};

/* Which cables to look at: every `step`-th, from `first` on. */
struct portion {
	uint32_t first, step;
};

/* Threads that move it beside its caller. */
struct bundle_help {
	struct helper *threads; /* owned */
	uint32_t count;
	bool is_there; /* set before they are */
	bool is_closing;
	_Atomic uint64_t shown; /* end->done, for who does not hold the lock */
	uint64_t tested_ns;	/* the caller's: it held the lock last */
};

/* What the other end is to be told of. */
struct bundle_notes {
	bool has_changed;  /* a message has come whole since notes were sent */
	uint32_t unnoted;  /* blocks that have come since */
	uint32_t last;	   /* cable that brought one */
	uint64_t arrivals; /* blocks, by all cables */
};

/* When it was last so. */
struct bundle_times {
	uint64_t looked_ns; /* at whether cables are mute */
	uint64_t served_ns; /* .. at the door */
	uint64_t moved_ns;  /* something has come */
	uint64_t lost_ns;   /* a cable was lost */
};

struct bundle {
	/* Held by whoever looks at any of this, where there are helpers; released while
	 * a cable is read or written, whose fibre is its helper's alone then. */
	pthread_mutex_t lock;
	pthread_cond_t news; /* messages were done, or all is lost */
	struct bundle_help help;
	struct cable_place place;
	struct net_manner manner;
	struct fibre *fibres; /* owned */
	uint32_t count;
	bool is_mendable; /* there are several */
	bool is_broken;	  /* what came was not what was sent; `why` has more */
	struct bundle_notes notes;
	char why[WHY_BYTES], where[ADDR_TEXT_BYTES]; /* of the last that was lost */
	struct ring parcels; /* of struct parcel; the first is number end->done */
	uint32_t cut;	     /* so many of them are whole */
	struct ring again;   /* of struct block: were lost with a cable */
	struct ring early;   /* of struct early */
	struct bundle_times times;
	/* of a receiver that awaits more cables */
	struct door *door; /* borrowed; NULL: none is to come */
	struct net_end *next_expectant;
};

/* ---- bundle.c ---- */

struct bundle *bundle_make(
	const struct cable_place *place, const struct net_manner *manner);
void bundle_close(struct net_end *end);
enum err bundle_connect(const struct net_connect_args *args, struct net_end *end);

bool bundle_is_at(const struct bundle *bundle, const struct cable_place *place);
struct cable *bundle_cable(struct bundle *bundle, uint32_t index);

/* That cable is open now. */
void bundle_came(struct net_end *end, uint32_t index);

enum err bundle_ask(
	struct net_end *end, char *data, size_t bytes, struct net_request *request);

static inline bool fibre_is_open(const struct fibre *fibre)
{
	return fibre->cable.phase == CABLE_OPEN;
}

static inline struct parcel *parcel_at(const struct bundle *bundle, uint32_t i)
{
	return ring_at(&bundle->parcels, sizeof(struct parcel), i);
}

/* The first cable after that one that is open, from the front again after the last;
 * `count` where none is. */
uint32_t bundle_next(const struct bundle *bundle, uint32_t index);

/* That cable is of no use any more; cable.why says why. */
void bundle_drop(struct net_end *end, uint32_t index);

/* What came was not what was sent: nothing of this connection is believed any more. */
enum err bundle_broken(struct bundle *bundle, const struct cable *cable);

/* The first messages are done, if they are. */
void bundle_retire(struct net_end *end);

/* ---- bundle_move.c ---- */

enum err bundle_test(const struct net_request *request, uint32_t wait_us);

/* Read and write what can be, by those cables. */
void bundle_move(struct net_end *end, struct portion portion);
bool bundle_is_lost(const struct bundle *bundle);

/* What to poll() the cable for; 0: nothing that would be news. */
short fibre_events(const struct fibre *fibre);

/* ---- bundle_help.c ---- */

/* As many as the manner says, if they are not there yet. */
enum err helpers_start(struct net_end *end);
void helpers_stop(struct bundle *bundle);

/* There is something to do for those who sleep. */
void helpers_wake(struct bundle *bundle);

/* NULL is fine for both; nothing happens where there are no helpers. */
void bundle_lock(struct bundle *bundle);
void bundle_unlock(struct bundle *bundle);

/* ---- bundle_out.c ---- */

/* Write a block, with short ones before it, or what is left of them. ERR_AGAIN: there is
 * none, or no room. */
enum err fibre_write(struct net_end *end, uint32_t index);

/* A note says that so many blocks have come by that cable. */
enum err flight_count(struct net_end *end, uint32_t index, uint64_t note);

/* ---- bundle_in.c ---- */

/* Read what has come. ERR_AGAIN: no more is there now. */
enum err fibre_read(struct net_end *end, uint32_t index);

/* What came before it was asked for, and has been by now. */
void early_take(struct net_end *end);

#endif
