/*
 * comm.c - the life of a communicator: made, used, finished, aborted.
 *
 * How ranks meet is in meet.c; children (split, shrink, grow) are in child.c, work in
 * submit.c, memory in memory.c.
 */
#include "comm/comm.h"
#include "comm/call_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/comm_log.h"
#include "comm/gpu.h"
#include "comm/hosts.h"
#include "comm/inside.h"
#include "comm/meet.h"
#include "comm/relay.h"
#include "comm/rma.h"
#include "comm/state.h"
#include "comm/touch.h"
#include "comm/wiring.h"
#include "link/wires.h"
#include "net/psk.h"
#include "tune/limits.h"

enum { ABORT_SLEEP_US = 200, GRAVES = 16 };

void comm_config_default(struct comm_config *config)
{
	*config = (struct comm_config){.blocking = true,
		.cga_cluster_size = 4,
		.min_ctas = 1,
		.max_ctas = 64,
		.traffic_class = -1,
		.rma_contexts = 1,
		.rma_signals = 1};
}

enum err comm_set_key(const char *text)
{
	return psk_set(text);
}

enum err comm_id_create(struct boot_id *id)
{
	return boot_id_create(id);
}

void comm_id_drop(const struct boot_id *id)
{
	boot_id_drop(id);
}

enum err comm_alloc(const struct comm_config *config, struct comm **comm)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(ERR_SYSTEM, "no memory for a communicator");
	c->config = *config;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->turns.idle, NULL);
	*comm = c;
	return OK;
}

/* NCCL's lines carry the CUDA device. A rank on host memory is a device of its own, whose
 * number is its rank (host_ranks.h). */
static int log_device(uint32_t rank)
{
	return gpu_context() ? cuda_device() : (int)rank;
}

void comm_speak(const struct comm *comm)
{
	log_set_device(comm->log_device);
}

void comm_speak_as(uint32_t rank)
{
	log_set_device(log_device(rank));
}

enum err comm_init(struct comm *comm, const struct comm_init_args *args)
{
	struct init_times times = {.start = clock_ns()};
	enum err e;

	atomic_fetch_add(&comm->turns.inside, 1);
	comm->rank = args->rank;
	comm->rank_count = args->rank_count;
	comm->gpu.device = gpu_context() ? cuda_device() : args->device;
	comm->log_device = log_device(args->rank);
	comm_speak(comm);
	comm->memory.zero_copy = param_int(PARAM_ZERO_COPY) != 0;
	comm->id_hash = boot_id_hash(&args->ids[0]);
	comm_log_init(comm, args, false);
	e = comm_meet(comm, args, &times);
	/* some may be through already and begin to use it */
	if (e && comm->health)
		health_tell(comm->health, e, comm->rank, err_last());
	if (!e)
		e = rma_meet_early(comm);
	if (!e) {
		comm->profile = profile_open(comm);
		comm_log_done(comm, args, &times);
		atomic_store(&comm->life.ready, true);
	}
	atomic_fetch_sub(&comm->turns.inside, 1);
	return e;
}

void comm_refuse(const struct comm_init_args *args, enum err code)
{
	const struct boot_args boot = {.ids = args->ids,
		.id_count = args->id_count,
		.rank = args->rank,
		.rank_count = args->rank_count,
		.failed = code};

	boot_refuse(&boot);
}

void comm_refuse_child(struct comm *parent, enum err code)
{
	comm_trouble(parent, code, parent->rank);
}

enum err comm_suspend(struct comm *comm)
{
	if (atomic_exchange(&comm->life.suspended, true))
		return err_set(ERR_USAGE, "the communicator is suspended already");
	relay_drain(comm);
	comm_drain(comm);
	return OK;
}

enum err comm_resume(struct comm *comm)
{
	if (!atomic_exchange(&comm->life.suspended, false))
		return err_set(ERR_USAGE, "the communicator is not suspended");
	return OK;
}

/* ---- asking ---- */

bool comm_is_suspended(const struct comm *comm)
{
	return atomic_load_explicit(&comm->life.suspended, memory_order_relaxed);
}

uint64_t comm_gpu_bytes(const struct comm *comm)
{
	return comm->gpu.engine ? cuda_engine_held(comm->gpu.engine) : 0;
}

bool comm_is_revoked(const struct comm *comm)
{
	return atomic_load(&comm->life.revoked);
}

bool comm_is_finalized(const struct comm *comm)
{
	return atomic_load_explicit(&comm->life.finalized, memory_order_acquire);
}

bool comm_is_blocking(const struct comm *comm)
{
	return comm->config.blocking;
}

uint32_t comm_rank(const struct comm *comm)
{
	return comm->rank;
}

uint32_t comm_rank_count(const struct comm *comm)
{
	return comm->rank_count;
}

int comm_device(const struct comm *comm)
{
	return comm->gpu.device;
}

uint64_t comm_hash(const struct comm *comm)
{
	return comm->id_hash;
}

bool comm_can_put(const struct comm *comm)
{
	return comm->gpu.engine ? !comm->gpu.is_apart : comm->memory.zero_copy;
}

bool comm_can_signal(const struct comm *comm)
{
	return comm->config.rma_eager || atomic_load(&comm->memory.had_window);
}

const struct comm_config *comm_config(const struct comm *comm)
{
	return &comm->config;
}

enum err comm_async_get(struct comm *comm)
{
	if (atomic_load(&comm->life.at_peace))
		return OK;
	/* Before it is ready another thread may be making it; what a revocation made fail
	 * is forgotten. */
	if (atomic_load(&comm->life.ready) && !atomic_load(&comm->life.revoked)) {
		enum err e = gpu_check(comm);

		if (e)
			comm_async_set(comm, e);
	}
	return (enum err)atomic_load(&comm->life.async);
}

/* Why this thread's call failed. One that an abort took out of the middle of something
 * may have no words for it. */
static const char *reason_here(const struct comm *comm)
{
	const char *last = err_last();

	return last[0] || !atomic_load(&comm->life.abort)
		       ? last
		       : "the communicator was aborted";
}

/* The first failure's sentence stays with it. */
void comm_async_set(struct comm *comm, enum err code)
{
	bool is_failure = code != OK && code != ERR_PROGRESS;
	int now;

	if (is_failure)
		pthread_mutex_lock(&comm->lock);
	now = atomic_load(&comm->life.async);
	if (is_failure && (now == OK || now == ERR_PROGRESS))
		snprintf(comm->life.reason, sizeof(comm->life.reason), "%s",
			reason_here(comm));
	while ((now == OK || now == ERR_PROGRESS) &&
		!atomic_compare_exchange_weak(&comm->life.async, &now, (int)code))
		;
	if (is_failure)
		pthread_mutex_unlock(&comm->lock);
}

bool comm_reason(struct comm *comm, char *text, size_t room)
{
	enum err now = comm_async_get(comm);

	if (now == OK || now == ERR_PROGRESS)
		return false;
	pthread_mutex_lock(&comm->lock);
	snprintf(text, room, "%s", comm->life.reason);
	pthread_mutex_unlock(&comm->lock);
	return true;
}

/* ---- trouble and end ---- */

/* Tell the peers, and wake our own thread. Before the comm is ready nobody can be
 * waiting.
 */
static void tell_peers(
	struct comm *comm, enum err code, uint32_t culprit, const char *sentence)
{
	if (!atomic_load(&comm->life.ready))
		return;
	health_tell(comm->health, code, culprit, sentence);
	touch_state(comm);
	host_engine_wake(comm->engine);
}

/* After a failure was shown: the buffers of the call are the user's again. */
static void comm_take_back(struct comm *comm)
{
	if (!atomic_load(&comm->life.ready) ||
		atomic_exchange(&comm->life.has_taken_back, true))
		return;
	if (host_peers_leave(comm->engine))
		comm_windows_withdraw(comm);
	rma_withdraw(comm);
}

void comm_trouble(struct comm *comm, enum err code, uint32_t culprit)
{
	comm_async_set(comm, code);
	tell_peers(comm, code, culprit, err_last());
}

enum err comm_peers_get(struct comm *comm)
{
	enum err e = comm_async_get(comm);
	uint32_t culprit;

	if (e || !atomic_load(&comm->life.ready) || atomic_load(&comm->life.revoked) ||
		atomic_load(&comm->life.at_peace))
		return e;
	e = health_failed(comm->health, UINT64_MAX, &culprit);
	/* Who knows of it makes no call any more. On this host everybody waits for the
	 * one that failed; a rank of another one may wait for us. */
	if (e && comm->hosts.control)
		comm_trouble(comm, e, culprit);
	else if (e)
		comm_async_set(comm, e);
	return e;
}

void comm_fail(struct comm *comm, enum err code, uint32_t culprit)
{
	atomic_store(&comm->life.is_told, true);
	comm_trouble(comm, code, culprit);
	comm_take_back(comm);
}

bool comm_has_failed(const struct comm *comm)
{
	return atomic_load(&comm->life.has_taken_back) || atomic_load(&comm->life.abort);
}

uint64_t comm_busy_add(struct comm *comm)
{
	uint64_t turn;

	pthread_mutex_lock(&comm->lock);
	comm->turns.busy++;
	turn = comm->turns.next++;
	pthread_mutex_unlock(&comm->lock);
	return turn;
}

void comm_turn_wait(struct comm *comm, uint64_t turn)
{
	pthread_mutex_lock(&comm->lock);
	/* another thread's turns may lie between those of a batch */
	while (comm->turns.now < turn)
		pthread_cond_wait(&comm->turns.idle, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

void comm_busy_sub(struct comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	comm->turns.now++;
	if (--comm->turns.busy == 0) {
		int progress = ERR_PROGRESS;

		atomic_compare_exchange_strong(&comm->life.async, &progress, OK);
	}
	pthread_cond_broadcast(&comm->turns.idle);
	pthread_mutex_unlock(&comm->lock);
}

void comm_drain(struct comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->turns.busy)
		pthread_cond_wait(&comm->turns.idle, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

void comm_finish_work(struct comm *comm)
{
	relay_settle(comm);
	comm_drain(comm);
	while (atomic_load(&comm->turns.inside) || atomic_load(&comm->turns.enqueuing))
		usleep(ABORT_SLEEP_US);
}

bool comm_is_unharmed(struct comm *comm)
{
	return comm_async_get(comm) == ERR_REMOTE && !atomic_load(&comm->life.is_told) &&
	       atomic_load(&comm->life.ready) && comm->gpu.engine &&
	       !cuda_engine_is_cut(comm->gpu.engine);
}

/* The first failure, and why, to the thread that asks: another may have seen it. */
static enum err failure_get(struct comm *comm)
{
	enum err e = comm_async_get(comm);
	char reason[ERR_TEXT_BYTES];

	if (comm_reason(comm, reason, sizeof(reason)))
		err_adopt(reason);
	return e;
}

static enum err finalize(struct comm *comm)
{
	enum err e;

	if (atomic_exchange(&comm->life.finalized, true))
		return err_set(ERR_ARGUMENT, "the communicator is finalized already");
	comm_finish_work(comm);
	if (comm_is_unharmed(comm)) {
		atomic_store(&comm->life.at_peace, true);
		return OK;
	}
	e = failure_get(comm);
	/* a rank that never waited for the others has not looked at their calls yet */
	if (!e && atomic_load(&comm->life.ready) && !atomic_load(&comm->life.revoked))
		e = host_signs_check(comm->engine);
	if (!e && atomic_load(&comm->life.ready) && !atomic_load(&comm->life.revoked))
		onesided_flush(comm->engine);
	return e == ERR_PROGRESS ? OK : e;
}

static struct comm_name name_of(const struct comm *comm)
{
	return (struct comm_name){
		comm, comm->rank, comm->rank_count, comm->gpu.device, comm->id_hash};
}

enum err comm_finalize(struct comm *comm)
{
	struct comm_name name = name_of(comm);
	enum err e;

	comm_log_start(&name, "Finalize");
	e = finalize(comm);
	if (!e)
		comm_log_end(&name, "Finalize");
	return e;
}

/* A thread that was about to make a call when another aborted still looks at the
 * communicator, to be told. So the last few stay. */
static void comm_bury(struct comm *comm)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct comm *graves[GRAVES];
	static uint32_t next;
	struct comm *oldest;

	pthread_mutex_lock(&lock);
	oldest = graves[next];
	graves[next] = comm;
	next = (next + 1) % GRAVES;
	pthread_mutex_unlock(&lock);
	free(oldest);
}

static void comm_free(struct comm *comm, enum rank_state last)
{
	relay_end(comm); /* a stream may still come to a call of one that has failed */
	comm_drain(comm);
	if (comm->turns.worker)
		stream_destroy(comm->turns.worker);
	if (comm->engine) {
		struct rank_status *status = peer_status(comm->peers, comm->rank);
		uint32_t live = RANK_LIVE;

		/* others may still wait for the child that was not made: they read why */
		if (last == RANK_LEFT && atomic_load(&status->state) == RANK_LIVE)
			snprintf(status->sentence, sizeof(status->sentence), "%.*s",
				BOARD_SENTENCE_BYTES - 1, comm->children.reason);
		atomic_compare_exchange_strong(&status->state, &live, (uint32_t)last);
		atomic_store(&status->gone_ns, clock_ns());
		touch_state(comm);
	}
	comm_registrations_drop(comm);
	rma_end(comm); /* its thread tells of failures by the control channel */
	touch_close(comm);
	gpu_free(comm);
	host_engine_rest(comm->engine);
	wires_destroy(comm->hosts.wires); /* a plugin may write to memory until then */
	host_engine_destroy(comm->engine);
	relay_close(comm);
	health_destroy(comm->health);
	limits_free(comm->limits);
	wiring_put(comm->wiring);
	call_files_give(comm->hosts.call_files);
	profile_put(comm->profile); /* a network plugin tells of events until its end */
	comm->profile = NULL;
	free(comm->hosts.records);
	peers_destroy(comm->peers);
	free(comm->hosts.numbers);
	if (comm->hosts.has_pulse)
		pulse_drop(&board_status(comm->hosts.board, comm->hosts.local)->pulse);
	board_release(comm->hosts.board);
	free(comm->redops.entries);
	boot_tidy();
	pthread_mutex_destroy(&comm->lock);
	pthread_cond_destroy(&comm->turns.idle);
	comm_bury(comm);
}

enum err comm_destroy(struct comm *comm)
{
	struct comm_name name = name_of(comm);
	enum err e = OK;

	comm_speak(comm);
	comm_log_start(&name, "Destroy");
	if (!comm->life.finalized)
		e = finalize(comm);
	comm_free(comm, RANK_LEFT);
	comm_log_end(&name, "Destroy");
	return e;
}

/* What is in flight ends, here and on the other ranks, which read this sentence. As long
 * as the comm is being made, by another thread perhaps, its rank is that thread's. */
static void comm_stop(struct comm *comm, const char *verb)
{
	char sentence[ERR_TEXT_BYTES];

	atomic_store(&comm->life.abort, 1);
	if (!atomic_load(&comm->life.ready))
		return;
	pthread_mutex_lock(&comm->lock);
	snprintf(sentence, sizeof(sentence), "rank %u %s its communicator%s%.*s",
		comm->rank, verb, comm->children.reason[0] ? ": " : "",
		BOARD_SENTENCE_BYTES, comm->children.reason);
	pthread_mutex_unlock(&comm->lock);
	tell_peers(comm, ERR_REMOTE, comm->rank, sentence);
}

enum err comm_abort(struct comm *comm)
{
	struct comm_name name = name_of(comm);

	comm_log_start(&name, "Abort");
	comm_stop(comm, "aborted");
	if (atomic_load(&comm->life.ready))
		gpu_abort(comm);
	comm_finish_work(comm);
	inside_close(comm);
	comm_take_back(comm);
	comm_free(comm, RANK_FAILED);
	comm_log_end(&name, "Abort");
	return OK;
}

void comm_interrupt(struct comm *comm)
{
	comm_stop(comm, "aborted");
}

/* What the revocation itself made fail is forgotten: the ranks go on with a child. */
enum err comm_revoke(struct comm *comm)
{
	struct comm_name name = name_of(comm);

	comm_log_start(&name, "Revoke");
	atomic_store(&comm->life.revoked, 1);
	comm_stop(comm, "revoked");
	if (atomic_load(&comm->life.ready))
		gpu_abort(comm);
	comm_finish_work(comm);
	comm_take_back(comm);
	atomic_store(&comm->life.abort, 0);
	atomic_store(&comm->life.async, OK);
	return OK;
}
