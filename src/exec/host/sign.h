/*
 * sign.h - do all ranks make the same calls?
 *
 * A call's sign is a hash of what it is and of every call before it, so one look at a
 * rank's sign compares the whole history. It lies in the same line as the position, which
 * is looked at anyway: comparing costs nothing that can be measured.
 */
#ifndef EXEC_HOST_SIGN_H
#define EXEC_HOST_SIGN_H

#include "exec/host/state.h"

/* The sign of a call that begins, chained to those before. */
void sign_begin(struct host_call *call);

/* A call of nothing, which has no card: the next one shows that it was made. */
void sign_skip(struct host_engine *engine, enum coll coll);

/* Show it on this rank's card. */
void sign_show(const struct host_call *call, struct card *card);

/* Our sign is not that of `rank`, which is in this call: sets call->error. */
void sign_differs(struct host_call *call, uint32_t rank);

/* Compare with a rank that is in this call and shows this card. */
static inline void sign_check(
	struct host_call *call, uint32_t rank, const struct card *card)
{
	if (atomic_load_explicit(&card->sign_hash, memory_order_relaxed) != call->sign)
		sign_differs(call, rank);
}

/* The same for an earlier call, `number`, whose card is still there: a rank that waits
 * for nobody, as a root does, sees only here that it was alone in it. */
void sign_check_old(struct host_call *call, uint32_t rank, uint64_t number);

/* The same with what a rank of another host says of a call, which may be one of those
 * that we have made lately. */
void sign_check_past(
	struct host_call *call, uint32_t rank, const struct past_sign *theirs);

/* The call before this one in a word, for ranks of other hosts; 0: there was none, or it
 * does not fit. */
uint64_t sign_before(const struct host_call *call);

/* A rank of another host is in call `number`, and its call before that was this: ours,
 * when it is one further, and else the one before ours. A rank that waits for nobody has
 * gone on, and its new call is not what is wrong. */
void sign_check_before(
	struct host_call *call, uint32_t rank, uint64_t number, uint64_t before);

/* The same by what a rank of another host has told that it waits in (doing.h): two may
 * wait for each other in different calls, and neither has sent anything. */
void sign_check_note(struct host_call *call, uint32_t rank);

/* "AllReduce of 4 float32, sum", for people; root where there is one. */
enum { SIGN_TEXT_BYTES = 96 };
void sign_print(const struct call_sign *sign, char text[SIGN_TEXT_BYTES]);

#endif
