/*
 * relay.h - a proxy between the processes of a test's job, which does to their TCP
 * connections what bad networks do.
 *
 * It is a process of its own, so that a rank which is killed or stopped does not take it
 * along. In the ranks' processes connect() and listen() come by detour.h; what they
 * connect to, they connect to through here. What happens follows from the plan and its
 * seed, but for the time.
 */
#ifndef RELAY_RELAY_H
#define RELAY_RELAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	RELAY_PROCESSES = 32,
	RELAY_PORTS = 65536,
	RELAY_TAPES = 64,
	TAPE_BYTES = 512,
	RELAY_LISTENS = 16
};

enum relay_trouble {
	RELAY_NONE,
	RELAY_DELAY,   /* pieces wait, for some time in sum: nothing is lost */
	RELAY_TRICKLE, /* the same, and they are small */
	RELAY_RESET,   /* a connection ends with a reset, in the middle of anything */
	RELAY_CUT,     /* .. or as if both ends had closed it */
	RELAY_HOLE,    /* nothing passes any more, and nobody is told */
	RELAY_HALF,    /* .. but for what comes to the victim */
	RELAY_CORRUPT  /* bits change */
};

/* What a connection is for: read from its first bytes. */
enum relay_kind { RELAY_MEETING = 1, RELAY_CONTROL = 2, RELAY_DATA = 4, RELAY_ALL = 7 };

/* Connections between hosts suffer, if one end is the victim's. A delay is from the
 * beginning; everything else after relay_strike(). */
struct relay_plan {
	uint64_t seed;
	enum relay_trouble trouble;
	unsigned kinds;	    /* enum relay_kind, a mask */
	int victim;	    /* a process */
	bool is_whole_host; /* and all others of its host */
	uint32_t times;	    /* so many troubles; 0: no end of them */
	int host_of[RELAY_PROCESSES];
};

/* How somebody began to talk to whom, for who wants to say it again. The other end has
 * answered it by then. */
struct relay_tape {
	uint16_t port; /* of the listener, in network order */
	uint32_t bytes;
	char said[TAPE_BYTES];
};

/* Shared by all processes of the job. */
struct relay_page {
	atomic_bool is_struck;
	_Atomic uint32_t troubles;			/* done so far */
	_Atomic uint32_t connections;			/* through here so far */
	_Atomic unsigned char listener_of[RELAY_PORTS]; /* process + 1; 0: nobody */
	_Atomic uint32_t listen_count; /* ever; the ports of the last ones are kept */
	_Atomic uint16_t listens[RELAY_LISTENS];
	_Atomic uint32_t tape_count; /* ever made; the last ones are kept */
	struct relay_tape tapes[RELAY_TAPES];
};

struct relay {
	struct relay_plan plan;
	struct relay_page *page; /* owned, shared */
	int intro[2];		 /* owned: a rank's process to the relay */
	int listen_fd;		 /* owned */
	uint16_t port;		 /* in network order */
	pid_t pid;
};

/* Start it; ends the test where that cannot be. Fork the ranks after it. */
void relay_start(struct relay *relay, const struct relay_plan *plan);

/* From now on. Any process may say it. */
void relay_strike(const struct relay *relay);

/* End it, and what still goes through it. */
void relay_stop(struct relay *relay);

#endif
