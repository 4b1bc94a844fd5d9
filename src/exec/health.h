/*
 * health.h - who of the ranks died, failed or left; and this rank's own failure, told.
 *
 * All of it is read from the peers' and written to this rank's status, so that whoever
 * runs calls, on host memory or on GPUs, asks and tells here and needs nobody above. Any
 * thread may, at any time; each answer that is no OK has one sentence and names the rank
 * to blame, which is the asker's own to remember.
 */
#ifndef EXEC_HEALTH_H
#define EXEC_HEALTH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct peers;
struct health;

/* Of the rank whose peers these are; borrowed. */
enum err health_create(const struct peers *peers, struct health **health);
void health_destroy(struct health *health); /* NULL is fine */

/* Collectives on host memory are counted here (borrowed; NULL: none any more): those that
 * were complete before this rank failed are not touched by that. */
void health_count(struct health *health, const _Atomic uint64_t *completed);

/* Has the rank's process ended? Two witnesses: its pulse on the board and, where the
 * system gives one, a descriptor of the process. The second one knows that no thread of
 * it runs any more. */
bool health_is_dead(const struct health *health, uint32_t rank);
bool health_has_ended(const struct health *health, uint32_t rank);

/* Was a rank found dead by the last health_check() of this rank, or has one failed in
 * call `number` or before? *lost is written with true only; health_lost() is the
 * sentence, and whom to blame. */
bool health_any_lost(const struct health *health, uint64_t number, uint32_t *lost);
enum err health_lost(const struct health *health, uint32_t lost, uint32_t *culprit);

/* Its process, for people. */
uint32_t health_process(const struct health *health, uint32_t rank);

/* Which one, and how, as far as we know: the sentence. */
enum err health_dead(const struct health *health, uint32_t rank);

/* Other hosts take a rank of this one for lost, which may only be stopped: nothing can be
 * done with it any more, and it counts as dead. */
void health_give_up(struct health *health, uint32_t rank, const char *why);

/* Has it destroyed its communicator, in peace? */
bool health_has_left(const struct health *health, uint32_t rank);

/* .. too early: the sentence of that. */
enum err health_left(uint32_t rank);

/* Has any rank failed or aborted in call `number` or before? Its buffers are its own
 * again, whatever it announced before. UINT64_MAX asks for any failure at all. *culprit
 * is written with a failure only, here and below. */
enum err health_failed(const struct health *health, uint64_t number, uint32_t *culprit);

/* .. and has this one? */
enum err health_missed(
	const struct health *health, uint32_t rank, uint64_t number, uint32_t *culprit);

/* How many calls this rank has completed. */
uint64_t health_completed(const struct health *health);

/* The rank that died, left or failed and so cannot do what we need, as a sentence and
 * ERR_REMOTE; OK when all are well. `needed(what, rank)` is true for ranks we still need.
 */
enum err health_check(const struct health *health,
	bool (*needed)(const void *what, uint32_t rank), const void *what,
	uint32_t *culprit);

/* Is anybody dead, or has failed? For whoever does not know yet whom it needs. */
enum err health_look(const struct health *health, uint32_t *culprit);

/* This rank has failed, and blames `culprit` for it: everybody can read why, and who
 * sleeps waiting for this rank looks up. Only the first failure is shown; it is the cause
 * of the others. */
void health_tell(
	struct health *health, enum err code, uint32_t culprit, const char *sentence);

/* Whom this rank's failure was blamed on; the rank itself when it has not failed. */
uint32_t health_blamed(const struct health *health);

#endif
