/*
 * doing.h - what a blocked rank waits for, shown to the others, and what follows of it.
 *
 * A rank that has waited for a millisecond or so writes down on the board in what call it
 * is blocked and by whom (struct doing). From these notes each rank finds out that it
 * waits in a circle, as when one calls a collective and the other receives; a warning
 * says who is missing after some seconds; and `weft ps` shows them from outside. Ranks on
 * other hosts are told after 30 ms and one for each rank, and have the note in their
 * shadow of this rank.
 */
#ifndef EXEC_HOST_DOING_H
#define EXEC_HOST_DOING_H

#include "exec/host/engine.h"
#include "link/peer.h"

/* Write down what this rank waits for, and since when. The same again costs nothing. */
void doing_tell(struct host_engine *engine, const struct doing *doing);

/* Tell it to the ranks on other hosts as well, when it has lasted and they do not know.
 */
void doing_tell_far(struct host_engine *engine, const struct doing *doing);

/* It goes on. */
void doing_end(struct host_engine *engine);

/* What a rank of another host has told becomes its note here; is it one at all? */
void doing_write(struct doing *note, const struct doing *doing);
bool doing_is_sound(const struct peers *peers, const struct doing *doing);

/* A whole copy of a rank's note; false when there is none, or it changes right now. */
bool doing_read(const struct peers *peers, uint32_t rank, struct doing *doing);

/* Is what the note says `rank` waits for still missing? A note is not taken back at once.
 */
bool doing_holds(const struct peers *peers, uint32_t rank, const struct doing *doing);

/* ERR_USAGE, with a sentence that names the calls, when this rank, which waits in `mine`
 * and has told it, waits in a circle that cannot end. Circles of collectives alone are
 * none: those are compared by their sign. */
enum err doing_circle_check(struct host_engine *engine, const struct doing *mine);

/* Whom all wait for in the end: the rank `doing` waits for, or whom that one waits for.
 */
uint32_t doing_cause(const struct peers *peers, const struct doing *doing);

/* Warn once about the wait that `doing` describes: who is missing, in which call, since
 * when, and what it did last. */
void doing_warn(const struct host_engine *engine, const struct doing *doing);

/* " by the network plugin NAME" where one carries such messages to the rank that is
 * waited for, else "". */
enum { DOING_WAY_BYTES = 96 };
void doing_way(const struct host_engine *engine, const struct doing *doing,
	char text[DOING_WAY_BYTES]);

/* "all_reduce of 4 float32, sum (call 17)", "receive of 8 bytes from rank 2". */
enum { DOING_TEXT_BYTES = 128 };
void doing_print(const struct doing *doing, char text[DOING_TEXT_BYTES]);

/* The call a rank was last seen in: its number, 0 for none, and its sign. */
uint64_t doing_last(const struct peers *peers, uint32_t rank, struct call_sign *sign);

/* "stopped", "in the kernel (D)", "ended", .. or "" when it runs or sleeps as usual. */
const char *doing_process(uint32_t pid);

#endif
