/*
 * session.h - one communicator's part of the control channel in this process: who is
 * where, the strands to other processes, and the bulletins that go over them.
 *
 * Bulletins are kept in one log. Every strand has a cursor into it and carries what
 * concerns its other end, so a slow strand holds up no other, and one that broke and was
 * made again begins with what the other end may have missed: a bulletin is kept until the
 * other end of each of these strands has said that it took it, for what is written to a
 * socket may still be lost with it. Numbers sort out what came twice or too early.
 * Everything here is done under the hub's lock.
 */
#ifndef BOOT_SESSION_H
#define BOOT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/bulletins.h"
#include "boot/control.h"
#include "boot/cutoff.h"
#include "boot/strand.h"

/* Something that a rank's functions are to be called with. */
struct delivery {
	struct delivery *next;
	bool is_loss;
	uint32_t rank, kind; /* who says it or is lost */
	uint32_t size;
	unsigned char bytes[]; /* a loss: the reason, as text */
};

enum { CONTROL_DEAF_BYTES = 32 };

/* A rank's part. */
struct control {
	struct control *next; /* in the session */
	struct session *session;
	uint32_t rank;
	void *arg;
	void (*on_message)(
		void *arg, uint32_t from, uint32_t kind, const void *bytes, size_t size);
	void (*on_lost)(void *arg, uint32_t rank, const char *why);
	uint64_t flooded;	/* bulletins to all so far */
	uint64_t *direct_sent;	/* owned; per rank */
	uint64_t *direct_heard; /* owned; per rank */
	struct delivery *first, **last;
	/* owned, for the first message that there is no memory for: who sent it is lost
	 */
	struct delivery *deaf;
	bool is_called; /* one of its functions runs now */
	bool is_closed; /* .. and has closed it */
};

enum station_state { NODE_THERE, NODE_LEFT, NODE_ABSENT, NODE_DEAD };

enum { STATION_WHY_BYTES = 96 };

/* A process. */
struct station {
	struct addr addr;
	uint64_t host;
	uint32_t first_rank;
	enum station_state state;
	bool is_wanted;	  /* we are to have a strand to it, and make it */
	bool is_edge;	  /* .. for what concerns all */
	bool is_first;	  /* .. from the beginning */
	bool was_open;	  /* we had one */
	bool is_expected; /* it is to call us; when it does not come, we call it */
	int trouble;	  /* errno of the last try; 0: it took the call and hung up */
	uint64_t trouble_ns, retry_ns;
	uint32_t tries;
	uint64_t lost_ns;	     /* NODE_DEAD: since when .. */
	char why[STATION_WHY_BYTES]; /* .. and what was said of it */
};

/* Its last rank has left: how long its strands stay. */
struct session_end {
	bool is_closing;
	bool is_hurried;    /* when it closes, it does so soon */
	uint64_t since_ns;  /* it is closing */
	uint64_t recall_ns; /* until then somebody who missed our last words may call */
};

struct session {
	struct session *next;
	unsigned char id[STRAND_SESSION_BYTES], key[AUTH_KEY_BYTES];
	uint32_t rank_count, node_count, self;
	uint32_t *node_of;	/* owned; per rank */
	struct station *nodes;	/* owned */
	uint64_t *hosts;	/* owned; per node, for edges.h */
	uint64_t *heard;	/* owned; per rank: its last bulletin to all */
	struct strand *strands; /* owned */
	struct control *controls;
	struct bulletins log;  /* what goes over the strands, or has gone lately */
	uint64_t hurried;      /* bulletins of the log before this one do not wait */
	struct bulletins held; /* for a rank that is not here yet, or too early */
	uint64_t since_ns;     /* when it was made */
	uint64_t mend_ns; /* when to see who is next to us after some have left; 0: not */
	struct cutoff cutoff;
	struct session_end end;
};

void control_free(struct control *control);

/* The session of this key in this process, made if need be. */
enum err session_get(const struct control_args *args, struct session **session);

/* A rank takes part: it gets what has come before it. */
void session_attach(struct session *session, struct control *control);
void session_replay(struct session *session, struct control *control);

/* A rank leaves; after the last one all strands are closed by and by. */
void session_detach(struct session *session, struct control *control, uint64_t now_ns);

/* Of this name and not closing; NULL: none. */
struct session *session_find(const unsigned char id[STRAND_SESSION_BYTES]);

/* .. or closing: who calls it is told that we leave. */
struct session *session_find_any(const unsigned char id[STRAND_SESSION_BYTES]);

/* There was one of this name, and it has closed. */
bool session_was_there(const unsigned char id[STRAND_SESSION_BYTES]);

/* A stranger has proved that it knows the key. False: it is none of us. */
bool session_adopt(struct session *session, struct strand *strand, uint64_t now_ns);

/* Something can be read or written on one of its strands. */
void session_serve(struct strand *strand, uint64_t now_ns);

/* What the clock asks for; returns when it wants to be asked again. */
uint64_t session_tick(struct session *session, uint64_t now_ns);

/* This process was held up for so long, until now: nobody is to be blamed for it. */
void session_forgive(struct session *session, uint64_t late_ns, uint64_t now_ns);

/* A bulletin for all (BULLETIN_FLOOD, BULLETIN_LOST) or for one rank, which may be of
 * this process.
 */
enum err session_say(struct control *from, const struct strand_head *head,
	const void *bytes, uint64_t now_ns);

/* A process is lost: its ranks are, and everybody is told. */
void session_lose(
	struct session *session, uint32_t node, const char *why, uint64_t now_ns);

/* .. the same for the ranks of this process alone. */
void session_lose_here(struct session *session, uint32_t node, const char *why);

/* The others have given this process up: no use in calling them. */
bool session_is_given_up(const struct session *session);

/* The process that was lost first, as far as is known here; NULL: none. */
const struct station *session_lost_first(const struct session *session);

bool session_is_remote(const struct session *session, uint32_t node);

/* Whom we still have no strand to, of those we are to call at first; node_count: nobody.
 */
uint32_t session_unsettled(const struct session *session);

/* The same of those that are to call us. */
uint32_t session_awaited(const struct session *session);

/* We have a strand to this process, or are about to. */
bool session_has_strand(const struct session *session, uint32_t node);

/* .. and one over which goes what concerns all. One that was made for a message to one
 * rank is none. */
bool session_has_edge(const struct session *session, uint32_t node);

/* We have the strand to it that we are to have. */
bool session_is_joined(const struct session *session, uint32_t node);

/* Nothing of it is left to be done. */
bool session_is_over(const struct session *session, uint64_t now_ns);
void session_destroy(struct session *session);

/* For how long a process of another host may be silent; UINT64_MAX: for ever. */
uint64_t session_silence_ns(void);

/* .. and before it is accused: a beat may have been due when it fell silent, and the
 * clock is looked at now and then, so this is what is left of the time the user gives. */
uint64_t session_limit_ns(void);

/* This is a forked child: close its copies of all strands and know of no session. */
void session_forget(void);

/* The sessions of this process, by their `next`. */
struct session *session_list(void);

#endif
