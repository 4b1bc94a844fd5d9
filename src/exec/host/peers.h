/*
 * peers.h - the health of the other ranks: who died, left, failed, or holds our memory.
 *
 * Asked while a call is blocked or goes wrong, and once at the beginning and the end of a
 * call that uses others' buffers. Each answer is one sentence that names the rank to
 * blame.
 */
#ifndef EXEC_HOST_PEERS_H
#define EXEC_HOST_PEERS_H

#include "exec/host/engine.h"

/* Has the rank's process ended? Two witnesses: its pulse on the board and, where the
 * system gives one, a descriptor of the process. */
bool host_peer_is_dead(const struct host_engine *engine, uint32_t rank);

/* Has any rank failed or aborted in call `number` or before? Its buffers are its own
 * again, whatever it announced before. UINT64_MAX asks for any failure at all. */
enum err host_failed_check(struct host_engine *engine, uint64_t number);

/* The rank that died, left or failed and so cannot do what we need, as a sentence and
 * ERR_REMOTE; OK when all are well. `needed(rank)` is true for ranks we still need. */
enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what);

/* While a rank touches, others do not take back the buffers they have shown it. */
void host_touch(const struct host_engine *engine, enum touch_kind kind);

/* This rank has failed and said so: wait until nobody is in the middle of reading or
 * writing its buffers, so that its user may use or free them; for some milliseconds. Who
 * is stopped, or stuck, is not waited for any longer: what the call had shown to others
 * to write is withdrawn (region.h), so that a late store lands in pages that nobody
 * reads. The answer says whether a stuck rank may also be writing a window. */
bool host_peers_leave(struct host_engine *engine);

/* Touching a peer's memory failed with `code`: is that because it died? */
enum err host_blame(struct host_engine *engine, enum err code);

/* ref_follow() that knows a dead owner when it sees one: ERR_REMOTE, not ERR_SYSTEM. */
enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer);

#endif
