/*
 * p2p.h - one send or one receive.
 *
 * The k-th letter a rank posts to a peer is the k-th that peer takes. A message whose
 * buffer the receiver can reach is one letter that says where it is, and the send is
 * complete when the letter has been taken. Any other message goes piece by piece through
 * the pair's slots, and the send is complete when the last piece has been posted. To a
 * rank of another host it is one message of the network or several, after one that says
 * how long it is (p2p_far.h); the send is complete when it has left this rank's memory.
 * A large one goes as several such messages, by several threads: cut.h.
 */
#ifndef EXEC_HOST_P2P_H
#define EXEC_HOST_P2P_H

#include "exec/host/engine.h"
#include "link/peer.h"
#include "link/wires.h"

/* A message that went through host memory, and would the network take the GPU's memory it
 * came from or went to? */
struct p2p_trial {
	void *data;	    /* the GPU's */
	uint64_t buffer_id; /* the caller's */
	bool is_over, is_taken;
};

/* Goes before a message to another host. */
struct p2p_head {
	uint64_t bytes;
	uint64_t piece_bytes; /* of each message of the network but the last; 0: of one */
};

struct p2p_cut;

/* Of a message that is cut (cut.h): piece `number` and every so many-th after it. */
struct p2p_share {
	uint32_t number;
	bool is_over;
	uint32_t seen;	     /* of number 0: how far the others have been */
	struct p2p_cut *cut; /* borrowed; NULL: it is not cut */
	struct wires *wires; /* borrowed; NULL: the engine's */
};

/* What the network is asked for, in order: the head, then the message, piece by piece. */
enum { P2P_UNDER_WAY = 8 };
struct p2p_far {
	struct p2p_head head;
	struct net_request
		requests[P2P_UNDER_WAY]; /* the last of those that were asked */
	uint64_t asked, over;
	void *message; /* what a host_teller calls it */
};

struct p2p {
	struct host_engine *engine;
	bool is_send;
	uint32_t peer;
	uint32_t shares; /* with a rank of another host: both cut it in so many; 0: one */
	struct p2p_share share;
	struct pair_room *pair; /* with a rank of this host, from the first step on */
	char *data;
	/* with a rank of another host whose wires take a GPU's memory: whose this is, or
	 * what is tried when the message is over; NULL: neither */
	const struct net_gpu *gpu;
	struct p2p_trial *trial;
	/* with a rank of another host: how the buffer comes or goes, NULL: it is there;
	 * and a send's pieces, 0: it travels whole */
	const struct host_tide *tide; /* borrowed */
	size_t piece_bytes;
	size_t bytes, done;
	bool started; /* a first letter was posted or taken */
	bool lent;    /* send: waiting for the letter to be taken */
	struct p2p_far far;
	void *told; /* for a host_teller, as host_spec has it; NULL: nobody listens */
};

void p2p_init(struct p2p *p2p, struct host_engine *engine, bool is_send, uint32_t peer);

/* Go on: OK when complete, ERR_AGAIN when blocked, else the failure. */
enum err p2p_step(struct p2p *p2p);

/* Slow checks while blocked, as host_call_check(). */
enum err p2p_check(struct p2p *p2p);

/* What it waits for, as a note on the board (doing.h). */
struct doing p2p_doing(const struct p2p *p2p);

/* Does it wait for this rank's own buffer? */
bool p2p_awaits_tide(const struct p2p *p2p);

/* A number that changes whenever it makes progress. */
uint64_t p2p_stamp(const struct p2p *p2p);

/* With a rank of another host: sleep until there is news. */
void p2p_sleep(const struct p2p *p2p, uint32_t timeout_us);

/* With one of this host: the word it is blocked on, to sleep on. */
_Atomic uint64_t *p2p_word(const struct p2p *p2p, _Atomic uint32_t **sleepers);

#endif
