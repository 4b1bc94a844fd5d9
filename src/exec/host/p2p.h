/*
 * p2p.h - one send or one receive.
 *
 * The k-th letter a rank posts to a peer is the k-th that peer takes. A message whose
 * buffer the receiver can reach is one letter that says where it is, and the send is
 * complete when the letter has been taken. Any other message goes piece by piece through
 * the pair's slots, and the send is complete when the last piece has been posted. To a
 * rank of another host it is one message of the network, after one that says how long it
 * is; the send is complete when it has left this rank's memory.
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

struct p2p {
	struct host_engine *engine;
	bool is_send;
	uint32_t peer;
	struct pair_room *pair; /* with a rank of this host, from the first step on */
	char *data;
	/* with a rank of another host whose wires take a GPU's memory: whose this is, or
	 * what is tried when the message is over; NULL: neither */
	const struct net_gpu *gpu;
	struct p2p_trial *trial;
	size_t bytes, done;
	bool started; /* a first letter was posted or taken */
	bool lent;    /* send: waiting for the letter to be taken */
	/* with a rank of another host: how long it is goes first */
	uint64_t length;
	bool has_length, is_asked;
	struct net_request request;
	void *told;    /* for a host_teller, as host_spec has it; NULL: nobody listens */
	void *message; /* .. and what it calls the message */
};

void p2p_init(struct p2p *p2p, struct host_engine *engine, bool is_send, uint32_t peer);

/* Go on: OK when complete, ERR_AGAIN when blocked, else the failure. */
enum err p2p_step(struct p2p *p2p);

/* Slow checks while blocked, as host_call_check(). */
enum err p2p_check(struct p2p *p2p);

/* What it waits for, as a note on the board (doing.h). */
struct doing p2p_doing(const struct p2p *p2p);

/* A number that changes whenever it makes progress. */
uint64_t p2p_stamp(const struct p2p *p2p);

/* With a rank of another host: sleep until there is news. */
void p2p_sleep(const struct p2p *p2p, uint32_t timeout_us);

/* With one of this host: the word it is blocked on, to sleep on. */
_Atomic uint64_t *p2p_word(const struct p2p *p2p, _Atomic uint32_t **sleepers);

#endif
