/*
 * peers.h - the health of the other ranks: who died, left, failed or aborted.
 *
 * Asked only when something takes long or goes wrong; a call that runs well never comes
 * here. Each answer is one sentence that names the rank to blame.
 */
#ifndef EXEC_HOST_PEERS_H
#define EXEC_HOST_PEERS_H

#include "exec/host/engine.h"

/* A descriptor that becomes readable when the process ends; WATCH_NONE for this process
 * and on systems that have no such thing, WATCH_DEAD when it has ended already. */
enum { WATCH_NONE = -1, WATCH_DEAD = -2 };

enum err peers_watch(uint32_t pid, int *watch);

/* Has the rank's process ended? */
bool host_peer_is_dead(const struct host_engine *engine, uint32_t rank);

/* Has any rank failed or aborted? Its buffers are its own again, whatever it announced
 * before. */
enum err host_failed_check(struct host_engine *engine);

/* The rank that died, left or failed and so cannot do what we need, as a sentence and
 * ERR_REMOTE; OK when all are well. `needed(rank)` is true for ranks we still need. */
enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what);

/* While `touching`, others do not free the buffers they have shown us. */
void host_touch(const struct host_engine *engine, bool touching);

/* This rank has failed and said so: wait until nobody is in the middle of reading or
 * writing its buffers, so that its user may free them. Not for ever: a second. */
void host_peers_leave(const struct host_engine *engine);

/* Touching a peer's memory failed with `code`: is that because it died? */
enum err host_blame(struct host_engine *engine, enum err code);

/* ref_follow() that knows a dead owner when it sees one: ERR_REMOTE, not ERR_SYSTEM. */
enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer);

#endif
