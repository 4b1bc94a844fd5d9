/*
 * state.h - what a root is made of: its meeting (root.c) and its life among the roots of
 * this process (roots.c).
 */
#ifndef BOOT_STATE_H
#define BOOT_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "boot/guest.h"
#include "boot/root.h"
#include "boot/stall.h"

/* With no rank at all we wait this long: ids are often made well before they are used. */
#define ROOT_IDLE_NS (3600 * CLOCK_SEC)

/* At the address itself, and where other hosts come to. */
enum { DOOR_HERE, DOOR_AWAY, DOORS };

struct root {
	struct root *next;   /* in `roots` */
	pthread_t thread;    /* joined by whoever takes it off the list */
	pid_t process;	     /* a forked child must not join it */
	atomic_bool is_done; /* pairs with roots_reap() */
	/* owned; readable means stop, or look at `refusal`; guarded by the list's lock
	 * when it is written or closed; -1 once the thread has ended */
	int wake_fd;
	/* A rank of this process cannot come and cannot say so by a socket; guarded by
	 * the list's lock. */
	struct refusal refusal;
	bool is_ending; /* guarded by the list's lock */

	/* The rest belongs to the thread. */
	struct root_args args;
	int doors[DOORS]; /* owned: they listen; -1 once closed, or not there */
	uint64_t accept_ns, end_ns;
	struct guest *guests; /* owned */
	uint32_t guest_count, stranger_count;
	int epoll_fd;	   /* owned: the wake, the doors and the guests */
	bool is_knockable; /* the doors are looked at */
	uint32_t rank_count, record_bytes, first_rank; /* what the first arrival said */
	uint32_t arrived, told, expected;
	uint32_t lost_rank;	/* it went without a word, and that is the last word .. */
	bool has_lost;		/* .. if one did */
	uint32_t round;		/* verdicts given; 0: ranks are still coming */
	unsigned char *came;	/* owned; per rank: here, or has said in this round */
	unsigned char *records; /* owned; in rank order */
	/* Records of later rounds; owned. Two take turns: while one round's are sent,
	 * those of the next may come. */
	struct gather {
		unsigned char *records;
		size_t room;
	} gathers[2];
	uint32_t
		gather_bytes; /* a record of this round, as the first rank to say it .. */
	uint32_t gather_rank; /* .. this one, has it */
	bool is_gathering;    /* the two are set */
	bool is_decided;      /* `news` is the last word */
	bool is_last_round;   /* of a porch: its ranks want no more */
	struct stall stall;
	uint64_t starved_ns; /* since when no descriptor is left for who knocks; 0 */
	int spare_fd;	     /* owned: given up to tell so; -1 */
	uint32_t complaints; /* lines about strangers without the key */
	struct guest_news news;
	char sentence[WIRE_SENTENCE_MAX];
};

/* The thread: until the meeting is over. */
void *root_run(void *root);

/* Nobody can come any more. */
void root_doors_close(struct root *root);

/* The thread's last act: what it held is given back now, and not when it is joined. */
void root_end(struct root *root);

/* What ranks of this process have said. False: the thread is to stop. */
bool root_refusal_take(struct root *root, struct refusal *refusal);

#endif
