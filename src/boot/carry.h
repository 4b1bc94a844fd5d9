/*
 * carry.h - how the bulletins of a session's log go over its strands, and how long they
 * are kept. A part of session.h, with the hub's lock held.
 *
 * When a thousand ranks leave, each tells all. Were every word sent on by itself, each
 * process would write it to its twenty strands: twenty million frames. So in a large
 * session a strand that has just carried something waits a little, and what has come
 * together by then goes as one frame. What is alone goes at once, and so does what
 * cannot wait: that somebody is lost, what is for one rank, the last words of who leaves.
 */
#ifndef BOOT_CARRY_H
#define BOOT_CARRY_H

#include <stdint.h>

struct session;
struct strand;

/* Carry on with the log. */
void carry_on(struct strand *strand, uint64_t now_ns);

/* On all strands, and forget what need not be kept. */
void carry_all(struct session *session, uint64_t now_ns);

/* All that is in the log now is to go without waiting for more. */
void carry_hurry(struct session *session);

/* When what waits for this strand is to go; UINT64_MAX: nothing waits, or for room. */
uint64_t carry_due_ns(const struct strand *strand);

/* We are here, and have taken so much. */
void carry_beat(struct strand *strand, uint64_t now_ns);

/* The other end has taken `count` bulletins of this strand. */
void carry_receipt(struct strand *strand, uint64_t count);

#endif
