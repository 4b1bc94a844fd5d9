/*
 * remote.h - what of a call goes to, and comes from, ranks on other hosts.
 *
 * Only messages travel, in the order of the schedule. The first that a rank sends to
 * another in a call is preceded by what the call is, so that both notice when they are
 * not in the same one. A receive is asked for when the lane has come to the move that
 * takes it; what is plainly copied goes straight to its destination, the rest to an
 * inbox. A message that cannot leave at once is written on at every step of the call.
 */
#ifndef EXEC_HOST_REMOTE_H
#define EXEC_HOST_REMOTE_H

#include "exec/host/state.h"
#include "link/wires.h"

struct host_remote;

/* The wires are borrowed, and the teller, who may be NULL. */
enum err host_remote_create(struct wires *wires, uint32_t rank_count,
	const struct host_teller *teller, struct host_remote **remote);

/* The name under which a plugin tells of what an end is asked for next; NULL: none. */
void remote_tell(const struct host_remote *remote, struct net_end *end, void *told);
void host_remote_destroy(struct host_remote *remote); /* NULL is fine */

struct wires *remote_wires(const struct host_remote *remote);

/* The messages of a move whose outputs are written. A failure is the call's. */
void remote_send(
	struct host_call *call, const struct move *move, uint32_t lane, uint32_t tile);

/* The connection of a lane to a rank, and from one, in a call whose messages are carried
 * (carry.h): what the call is goes before, or has come. ERR_AGAIN: not yet. */
enum err remote_open_out(
	struct host_call *call, uint32_t rank, uint32_t lane, struct net_end **end);
enum err remote_open_in(
	struct host_call *call, uint32_t rank, uint32_t lane, struct net_end **end);
/* What is kept for those, owned here: NULL at first. */
struct carrier **remote_carrier(struct host_remote *remote);
/* .. by which a message has come. */
void remote_note_come(struct host_remote *remote, uint32_t rank, uint32_t lane);

/* Has the message come that the present move of the lane waits for? */
bool remote_has_come(struct host_call *call, const struct wait *wait, uint32_t tile);

/* Has what a WAIT_SENT is for left this rank's memory? */
bool remote_has_left(struct host_call *call, const struct wait *wait, uint32_t tile);

/* Is there something that has not left for that rank yet? */
bool remote_owes(const struct host_remote *remote, uint32_t rank);

/* May a rank that has left still be waited for, in what it sent before or is to take? Not
 * for ever: a network can lose the end of a connection. */
bool remote_is_patient(const struct host_engine *engine, uint32_t rank);

/* .. and has it a connection with us for a lane, or WIRE_P2P? What it sent before it left
 * comes by that, and it says when nothing does. */
bool remote_is_heard(const struct host_engine *engine, uint32_t rank, uint32_t purpose);

/* Where the message that has just come lies. */
char *remote_inbox(const struct host_engine *engine, const struct place *place);

/* Write on what has not left yet; true when all has. */
bool remote_flush(struct host_call *call);

/* The call is blocked by a rank of another host: sleep until there is news of it. */
void remote_sleep(struct host_call *call, uint32_t timeout_us);

#endif
