#include "exec/host/peers.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A dying process loses its memory a little before its end shows. */
enum { DEATH_MS = 100, SETTLE_US = 1000, LEAVE_TURN_US = 200, LEAVE_TURNS = 5000 };

enum err peers_watch(uint32_t pid, int *watch)
{
	*watch = WATCH_NONE;
	if (pid == (uint32_t)getpid())
		return OK;
	*watch = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*watch < 0 && errno == ESRCH)
		*watch = WATCH_DEAD;
	else if (*watch < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return err_set(ERR_SYSTEM, "cannot watch process %u: %m", pid);
	return OK;
}

bool host_peer_is_dead(const struct host_engine *engine, uint32_t rank)
{
	struct pollfd watch = {.fd = engine->pidfds[rank], .events = POLLIN};

	return watch.fd == WATCH_DEAD || (watch.fd >= 0 && poll(&watch, 1, 0) == 1);
}

static enum err peer_dead(struct host_engine *engine, uint32_t rank)
{
	engine->culprit = rank;
	return err_set(ERR_REMOTE, "rank %u (process %u) died", rank,
		board_status(engine->board, rank)->pid);
}

static enum err peer_gone(struct host_engine *engine, uint32_t rank, uint32_t state)
{
	struct rank_status *status = board_status(engine->board, rank);
	uint32_t culprit = atomic_load(&status->culprit);
	enum err code = (enum err)atomic_load(&status->code);

	engine->culprit = rank;
	if (state == RANK_LEFT)
		return err_set(ERR_REMOTE,
			"rank %u destroyed its communicator before this call was "
			"complete",
			rank);
	if (code == ERR_USAGE)
		return err_set(ERR_USAGE,
			"rank %u stopped: its call and another rank's do not match",
			rank);
	if (culprit < engine->rank_count && culprit != rank) {
		engine->culprit = culprit;
		return err_set(ERR_REMOTE, "rank %u failed; rank %u saw it first",
			culprit, rank);
	}
	if (code != ERR_REMOTE)
		return err_set(ERR_REMOTE, "rank %u failed: %s", rank, err_name(code));
	return err_set(ERR_REMOTE, "rank %u aborted its communicator", rank);
}

enum err host_failed_check(struct host_engine *engine)
{
	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (rank != engine->rank &&
			atomic_load(&board_status(engine->board, rank)->state) ==
				RANK_FAILED)
			return peer_gone(engine, rank, RANK_FAILED);
	return OK;
}

/* Deaths first: they are the cause of whatever the others report. Who left or failed
 * before its process ended is not dead but gone. */
enum err host_peers_check(struct host_engine *engine,
	bool (*needed)(const void *what, uint32_t rank), const void *what)
{
	for (uint32_t rank = 0; rank < engine->rank_count; rank++)
		if (rank != engine->rank &&
			atomic_load(&board_status(engine->board, rank)->state) ==
				RANK_LIVE &&
			host_peer_is_dead(engine, rank) && needed(what, rank))
			return peer_dead(engine, rank);
	for (uint32_t rank = 0; rank < engine->rank_count; rank++) {
		uint32_t state = atomic_load(&board_status(engine->board, rank)->state);

		if (rank != engine->rank &&
			(state == RANK_FAILED || state == RANK_LEFT) &&
			needed(what, rank))
			return peer_gone(engine, rank, state);
	}
	return OK;
}

static bool always_needed(const void *what, uint32_t rank)
{
	(void)what;
	(void)rank;
	return true;
}

void host_touch(const struct host_engine *engine, bool touching)
{
	atomic_store_explicit(&board_status(engine->board, engine->rank)->touching,
		touching, memory_order_release);
}

/*
 * A peer raises its flag and then looks whether we have failed; we have failed and then
 * look at its flag. Neither uses a barrier, which every call would pay for; instead we
 * let a time pass in which any store of theirs has long been seen.
 */
void host_peers_leave(const struct host_engine *engine)
{
	usleep(SETTLE_US);
	for (uint32_t rank = 0; rank < engine->rank_count; rank++) {
		struct rank_status *status = board_status(engine->board, rank);

		for (int turn = 0; turn < LEAVE_TURNS && rank != engine->rank &&
				   atomic_load(&status->touching) &&
				   !host_peer_is_dead(engine, rank);
			turn++)
			usleep(LEAVE_TURN_US);
	}
}

enum err host_blame(struct host_engine *engine, enum err code)
{
	enum err gone = OK;

	for (int i = 0; i < DEATH_MS && !gone; i++) {
		gone = host_peers_check(engine, always_needed, NULL);
		if (!gone)
			usleep(1000);
	}
	return gone ? gone : code;
}

enum err host_follow(struct host_engine *engine, uint32_t rank, uint64_t ref,
	uint32_t directory, void **pointer)
{
	enum err e = ref_follow(engine->refs, rank, ref, directory, pointer);

	return e ? host_blame(engine, e) : OK;
}
