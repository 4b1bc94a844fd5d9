/*
 * check_mail.h - the network the checker runs programs on, where they are for several
 * hosts.
 *
 * The worst network there is: a message stays in its sender's memory, and may be read
 * there, until its receiver takes it, which it does when it comes to that wait and not
 * before. Then it is written to the receiver's inbox. That it has left is known to the
 * sender only by a WAIT_SENT, and to others by what the sender does after that.
 */
#ifndef SCHED_CHECK_MAIL_H
#define SCHED_CHECK_MAIL_H

#include "sched/check_mem.h"

/* One message; positions count over all tiles. */
struct posting {
	uint32_t position, tile;
	uint32_t number;	   /* in mem.letters */
	uint16_t chunk;		   /* of the vector, which says how long it is */
	const struct move *move;   /* borrowed: that sent it */
	const struct place *place; /* borrowed: where it stands */
};

/* What one rank sends to another of another host over one lane, in order. */
struct flow {
	struct posting *letters; /* owned */
	uint32_t count, room;
	uint32_t taken; /* by the receiver */
	/* so many does each lane of the sender know to have left */
	uint32_t covered[SCHED_LANES_MAX];
};

struct mail {
	struct program *const *programs; /* borrowed */
	const uint16_t *hosts;		 /* borrowed; NULL: one host */
	struct mem *mem;		 /* borrowed */
	uint32_t rank_count;
	uint32_t *first;    /* owned: of a rank's flows, in the order of its net_tx */
	struct flow *flows; /* owned */
};

enum err mail_init(struct mail *mail, struct program *const *programs,
	const struct check_args *args, struct mem *mem);
void mail_fini(struct mail *mail);

/* What is wrong with a move before it is made: it reaches into another host, or sends
 * within its own. */
const char *mail_judge(
	const struct mail *mail, const struct program *program, const struct move *move);

/* Is this a wait for a message of another host? */
bool mail_is_data(
	const struct mail *mail, const struct program *program, const struct wait *wait);

/* The move sends its messages. */
const char *mail_send(struct mail *mail, const struct program *program,
	const struct move *move, const struct access *access);

/* Has the message that `wait` is for been sent? `position` counts over all tiles. */
bool mail_has(const struct mail *mail, const struct program *program,
	const struct wait *wait, uint32_t position);

/* Take it, for `move`. */
const char *mail_take(struct mail *mail, const struct program *program,
	const struct wait *wait, const struct posting *like, const struct access *access);

/* Has everything left that a WAIT_SENT is for? */
bool mail_has_left(const struct mail *mail, const struct program *program,
	const struct wait *wait, uint32_t position);

/* The rank learns it. */
void mail_cover(struct mail *mail, const struct program *program, const struct wait *wait,
	uint32_t position, const struct access *access);

/* The call returns. */
const char *mail_leave(const struct mail *mail, const struct program *program);

#endif
