/*
 * peers.h - what an engine asks of the other ranks' health (health.h), and who touches
 * whose memory.
 *
 * Asked while a call is blocked or goes wrong; and by every call that uses others'
 * buffers in place, before it touches them and, but for a put, once more after it has. A
 * failure found here is the engine's: it remembers whom to blame.
 */
#ifndef EXEC_HOST_PEERS_H
#define EXEC_HOST_PEERS_H

#include "exec/host/engine.h"
#include "link/peer.h"

/* health_failed() and health_check(). */
enum err host_failed_check(struct host_engine *engine, uint64_t number);
enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what);

/* A rank may die or give up when it has done its part for us, and we wait for another,
 * who may be away for long. Is it no use to wait on? *since_ns, 0 when a wait begins, is
 * when we first knew of it. */
enum err host_bereaved_check(
	struct host_engine *engine, const struct doing *doing, uint64_t *since_ns);

/* While a rank touches, others do not take back the buffers they have shown it. Of its
 * threads the first says so, for all. */
void host_touch(const struct host_engine *engine, enum touch_kind kind);

/* Touching a peer's memory failed with `code`: is that because it died? */
enum err host_blame(struct host_engine *engine, enum err code);

/* A connection with that rank was lost, and the last sentence says how: did somebody die,
 * fail or leave? Else both ends are named. */
enum err host_blame_wire(struct host_engine *engine, uint32_t rank, enum err code);

/* ref_follow() that knows a dead owner when it sees one: ERR_REMOTE, not ERR_SYSTEM. */
enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer);

#endif
