/*
 * straight.h - messages that go between GPU memory and a network plugin without host
 * memory in between.
 *
 * Each way of a communicator is decided when its first call comes; then each message by
 * itself: it is a send or a receive, its peer is on another host, its memory is such that
 * a card can be given it, and the plugin has taken some of that allocation before. So the
 * first message of an allocation goes through host memory, and the plugin is asked after
 * it: one that refuses costs nothing but a sentence. The other end need not know, since
 * what travels is the same.
 */
#ifndef COMM_STRAIGHT_H
#define COMM_STRAIGHT_H

#include <stdatomic.h>

#include "comm/comm.h"
#include "exec/host/p2p.h"
#include "net/plugin.h"

enum { STRAIGHT_KNOWN_MAX = 64 };

struct straight {
	bool is_decided, can_send, can_receive;
	struct net_gpu gpu;
	/* allocations that the plugin took, the oldest first to go: written by the thread
	 * that runs calls */
	_Atomic uint64_t known[STRAIGHT_KNOWN_MAX];
	uint32_t known_count; /* that thread's; it goes on counting */
	atomic_bool is_refused;
};

/* Nothing when it has been done. In the context that is current; the log says how
 * messages go, and why. */
void straight_decide(const struct comm *comm, struct straight *straight);

/* Does this message go so? If not, `trial` says what to try after it, if anything. */
bool straight_takes(const struct straight *straight, const struct comm_call *call,
	struct p2p_trial *trial);

/* What a trial has shown, by the thread that ran it. */
void straight_learn(struct straight *straight, const struct p2p_trial *trial);

#endif
