/*
 * touch.h - the ranks of a communicator on several hosts keep in touch: what a rank shows
 * on its own host's board is told to the others, and what they tell is written where a
 * rank of this host would have shown it.
 *
 * All of this is for hosts' sake: on one host each function does nothing.
 */
#ifndef COMM_TOUCH_H
#define COMM_TOUCH_H

#include "boot/boot.h"
#include "boot/control.h"
#include "comm/comm.h"
#include "exec/host/engine.h"

/* Where this process is reached; in touch_open() everybody's, in rank order. What joins
 * the ranks comes about by and by; touch_settle() waits for it. */
enum err touch_listen(struct comm *comm, struct control_peer *mine);
enum err touch_open(struct comm *comm, const struct meeting *meeting,
	const struct control_peer *peers);
enum err touch_settle(struct comm *comm);
void touch_close(struct comm *comm);

/* While it is made: OK, or a sentence on who is lost. */
enum err touch_check(const struct comm *comm);

/* What the channel brings, for a struct comm that has peers: see control.h. */
void touch_heard(
	void *comm, uint32_t from, uint32_t kind, const void *bytes, size_t size);
void touch_lost(void *comm, uint32_t rank, const char *why);

/* This rank's state, and why; its letter; its vote; its note of what it waits for (for
 * the thread that runs calls): tell the others. */
void touch_state(struct comm *comm);
void touch_mail(struct comm *comm);
void touch_vote(struct comm *comm, uint64_t number);
void touch_note(struct comm *comm);

/* A piece of a put, to a rank on another host. */
enum err touch_put(struct comm *comm, uint32_t to, const struct far_put *put,
	const void *data, size_t bytes);

#endif
