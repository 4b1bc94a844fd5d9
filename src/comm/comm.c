/*
 * comm.c - the life of a communicator: made, used, finished, aborted.
 *
 * Children (split, shrink, grow) are in child.c, work in submit.c, memory in memory.c.
 */
#include "comm/comm.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "base/param.h"
#include "comm/comm_log.h"
#include "comm/gpu.h"
#include "comm/state.h"
#include "comm/wiring.h"
#include "exec/host/peers.h"
#include "link/foreign.h"
#include "tune/limits.h"

/* What each rank tells the others when they meet. */
struct peer_record {
	uint32_t version, pid;
	uint64_t host_hash;
	struct board_address board; /* rank 0's is the one that counts */
	char host[64];
	struct cuda_hello gpu;
};

enum { RECORD_VERSION = 1, ATTACH_SLEEP_US = 50, ABORT_SLEEP_US = 200 };

void comm_config_default(struct comm_config *config)
{
	*config = (struct comm_config){.blocking = true,
		.cga_cluster_size = 4,
		.min_ctas = 1,
		.max_ctas = 64,
		.traffic_class = -1};
}

enum err comm_alloc(const struct comm_config *config, struct comm **comm)
{
	struct comm *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(ERR_SYSTEM, "no memory for a communicator");
	c->config = *config;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->idle, NULL);
	*comm = c;
	return OK;
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

/* The host's name and boot: two containers of one machine differ only in the name. A
 * system without the file is known by its name alone; one that only cannot open it now
 * must not pass for another host. */
static enum err host_identity(char *host, size_t room, uint64_t *identity)
{
	const char *forced = param_text(PARAM_HOSTID);
	char boot[64] = "", text[256];
	FILE *file;

	if (gethostname(host, room))
		snprintf(host, room, "unknown");
	host[room - 1] = 0;
	if (forced) {
		*identity = hash_text(forced);
		return OK;
	}
	file = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (!file && errno != ENOENT && errno != EACCES)
		return err_set(ERR_SYSTEM, "cannot tell which host this is: %m");
	if (file) {
		if (!fgets(boot, sizeof(boot), file))
			boot[0] = 0;
		fclose(file);
	}
	snprintf(text, sizeof(text), "%s%s", host, boot);
	*identity = hash_text(text);
	return OK;
}

static enum err records_check(
	const struct peer_record *records, uint32_t rank_count, uint32_t rank)
{
	for (uint32_t i = 0; i < rank_count; i++) {
		if (records[i].version != RECORD_VERSION)
			return err_set(ERR_USAGE,
				"rank %u runs another version of the library", i);
		if (records[i].host_hash != records[rank].host_hash)
			return err_set(ERR_USAGE,
				"rank %u is on host %.63s and rank %u on host %.63s: "
				"this version "
				"connects the ranks of one host",
				i, records[i].host, rank, records[rank].host);
	}
	return OK;
}

/* Wait until the word at this offset of everyone's status is not zero. */
static enum err wait_everyone(struct comm *comm, size_t offset)
{
	int64_t limit_s = param_int(PARAM_BOOT_TIMEOUT);
	uint64_t start = clock_ns();

	for (uint32_t i = 0; i < comm->rank_count; i++) {
		char *status = (char *)board_status(comm->board, i);
		_Atomic uint32_t *word = (_Atomic uint32_t *)(void *)(status + offset);

		for (uint32_t turn = 0; !atomic_load(word); turn++) {
			if (atomic_load(&comm->abort))
				return err_set(
					ERR_REMOTE, "the communicator was aborted");
			if (limit_s > 0 &&
				clock_ns() - start > (uint64_t)limit_s * 1000000000u)
				return err_set(ERR_TIMEOUT,
					"rank %u did not connect within %ld s", i,
					(long)limit_s);
			if (turn > 100)
				usleep(ATTACH_SLEEP_US);
			else
				cpu_relax();
		}
	}
	return OK;
}

/* Can every rank have the kernel copy from every other's process? All get the same
 * answer, which decides how memory that cannot be mapped travels. */
static enum err foreign_agree(struct comm *comm, bool *works)
{
	struct rank_status *mine = board_status(comm->board, comm->rank);
	enum err e;

	*works = param_int(PARAM_CMA) != 0;
	for (uint32_t i = 0; i < comm->rank_count && *works; i++) {
		struct rank_status *status = board_status(comm->board, i);

		*works = status->pid == mine->pid ||
			 foreign_works(status->pid, (void *)(uintptr_t)status->probe,
				 comm->board->token);
	}
	atomic_store(&mine->foreign, *works ? FOREIGN_YES : FOREIGN_NO);
	e = wait_everyone(comm, offsetof(struct rank_status, foreign));
	for (uint32_t i = 0; i < comm->rank_count && !e; i++)
		*works = *works && atomic_load(&board_status(comm->board, i)->foreign) ==
					   FOREIGN_YES;
	return e;
}

/* Graphs, where somebody looks at them, and what the user says on the choice of
 * schedules. */
static enum err comm_wire(struct comm *comm, struct init_times *times)
{
	const struct wiring_args args = {.board = comm->board,
		.rank = comm->rank,
		.min_ctas = (uint32_t)comm->config.min_ctas,
		.max_ctas = (uint32_t)comm->config.max_ctas};
	uint64_t start = clock_ns();
	enum err e = limits_read(&comm->limits);

	if (!e && wiring_is_wanted())
		e = wiring_get(&args, &comm->wiring);
	if (e)
		return e;
	if (comm->wiring && comm->limits)
		limits_plug(comm->limits, wiring_cluster(comm->wiring), comm->id_hash);
	times->graphs = clock_ns() - start;
	if (comm->wiring)
		times->topo = wiring_topo_ns(comm->wiring);
	if (times->topo > times->graphs)
		times->topo = times->graphs;
	times->graphs -= times->topo;
	comm_log_wiring(comm);
	return OK;
}

/* Others may be waiting for what this rank will never do. */
static void attach_failed(struct comm *comm, enum err code)
{
	struct rank_status *status = board_status(comm->board, comm->rank);

	atomic_store(&status->culprit, comm->rank);
	atomic_store(&status->code, (uint32_t)code);
	atomic_store(&status->state, RANK_FAILED);
}

static enum err comm_attach(
	struct comm *comm, const struct peer_record *records, struct init_times *times)
{
	struct host_engine_args args = {.rank = comm->rank, .abort = &comm->abort};
	struct rank_status *status;
	uint64_t start = clock_ns();
	enum err e = OK;

	if (!comm->board)
		e = board_attach(&records[0].board, comm->rank_count, &comm->board);
	if (e)
		return e;
	comm->probe = comm->board->token;
	status = board_status(comm->board, comm->rank);
	status->pid = (uint32_t)getpid();
	status->probe = (uint64_t)(uintptr_t)&comm->probe;
	sched_getaffinity(0, sizeof(status->cpus), (cpu_set_t *)status->cpus);
	atomic_store(&status->state, RANK_LIVE);
	/* rank 0 keeps the segment's descriptor open for the others, so nobody may go on,
	 * and perhaps leave, before all have mapped it */
	e = wait_everyone(comm, offsetof(struct rank_status, state));
	if (!e)
		e = foreign_agree(comm, &args.foreign);
	times->connections = clock_ns() - start;
	if (!e)
		e = comm_wire(comm, times);
	start = clock_ns();
	args.board = comm->board;
	args.zero_copy = comm->zero_copy;
	args.limits = comm->limits;
	if (!e)
		e = host_engine_create(&args, &comm->engine);
	times->connections += clock_ns() - start;
	if (e)
		attach_failed(comm, e);
	return e;
}

static enum err comm_meet_gpu(struct comm *comm, const struct peer_record *records)
{
	const struct cuda_hello **hellos = calloc(comm->rank_count, sizeof(*hellos));
	enum err e;

	if (!hellos)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	for (uint32_t i = 0; i < comm->rank_count; i++)
		hellos[i] = &records[i].gpu;
	e = gpu_connect(comm, hellos);
	free(hellos);
	return e;
}

static enum err comm_meet(
	struct comm *comm, const struct comm_init_args *args, struct init_times *times)
{
	struct peer_record mine = {.version = RECORD_VERSION, .pid = (uint32_t)getpid()};
	struct peer_record *records = calloc(args->rank_count, sizeof(*records));
	struct boot_args boot = {.ids = args->ids,
		.id_count = args->id_count,
		.rank = args->rank,
		.rank_count = args->rank_count,
		.record = &mine,
		.record_bytes = sizeof(mine),
		.abort = &comm->abort};
	uint64_t start = clock_ns();
	enum err e;

	if (!records)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", args->rank_count);
	e = host_identity(mine.host, sizeof(mine.host), &mine.host_hash);
	if (!e && args->rank == 0)
		e = board_create(args->rank_count, &comm->board);
	if (!e && args->rank == 0)
		mine.board = board_address(comm->board);
	if (!e)
		gpu_prepare(comm, &mine.gpu);
	times->alloc = clock_ns() - start;
	start += times->alloc;
	/* The others must not wait for a rank that will not come. */
	if (e)
		boot_id_drop(&args->ids[0]);
	else
		e = boot_meet(&boot, records);
	times->bootstrap = clock_ns() - start;
	if (!e)
		e = records_check(records, args->rank_count, args->rank);
	if (!e)
		e = comm_attach(comm, records, times);
	if (!e)
		e = comm_meet_gpu(comm, records);
	free(records);
	return e;
}

enum err comm_init(struct comm *comm, const struct comm_init_args *args)
{
	struct init_times times = {.start = clock_ns()};
	enum err e;

	log_set_device(args->device);
	atomic_fetch_add(&comm->inside, 1);
	comm->rank = args->rank;
	comm->rank_count = args->rank_count;
	comm->device = args->device;
	comm->zero_copy = param_int(PARAM_ZERO_COPY) != 0;
	comm->id_hash = boot_id_hash(&args->ids[0]);
	comm_log_init(comm, args, false);
	e = comm_meet(comm, args, &times);
	if (!e) {
		comm_log_done(comm, args, &times);
		atomic_store(&comm->ready, true);
	}
	atomic_fetch_sub(&comm->inside, 1);
	return e;
}

/* ---- asking ---- */

bool comm_is_revoked(const struct comm *comm)
{
	return atomic_load(&comm->revoked);
}

bool comm_is_finalized(const struct comm *comm)
{
	return atomic_load_explicit(&comm->finalized, memory_order_acquire);
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
	return comm->device;
}

const struct comm_config *comm_config(const struct comm *comm)
{
	return &comm->config;
}

enum err comm_async_get(struct comm *comm)
{
	/* Before it is ready another thread may be making it. */
	enum err e = atomic_load(&comm->ready) ? gpu_check(comm) : OK;

	if (e)
		comm_trouble(comm, e);
	return (enum err)atomic_load(&comm->async);
}

void comm_async_set(struct comm *comm, enum err code)
{
	int now = atomic_load(&comm->async);

	while (now == OK || now == ERR_PROGRESS)
		if (atomic_compare_exchange_weak(&comm->async, &now, (int)code))
			return;
}

/* ---- trouble and end ---- */

/* Show the failure on the board and wake everyone who may be asleep waiting for us. It is
 * our own doing, or that of the rank the engine blames. Before the comm is ready nobody
 * can be waiting. */
static void tell_peers(struct comm *comm, enum err code, bool own)
{
	struct rank_status *status;

	if (!atomic_load(&comm->ready))
		return;
	status = board_status(comm->board, comm->rank);
	/* the first failure is the cause of the others */
	if (atomic_load(&status->state) != RANK_FAILED) {
		atomic_store(&status->culprit, own ? comm->rank : comm->engine->culprit);
		atomic_store(&status->code, (uint32_t)code);
		atomic_store(&status->state, RANK_FAILED);
	}
	for (uint32_t i = 0; i < BOARD_CARDS; i++) {
		struct card *card = board_card(comm->board, comm->rank, i);

		for (uint32_t lane = 0; lane < BOARD_LANES; lane++)
			futex_wake(&card->position[lane]);
	}
	for (uint32_t i = 0; i < comm->rank_count; i++) {
		futex_wake(&board_box(comm->board, comm->rank, i)->posted);
		futex_wake(&board_box(comm->board, i, comm->rank)->taken);
	}
}

/* After a failure was shown: the buffers of the call are the user's again. */
static void comm_take_back(const struct comm *comm)
{
	if (atomic_load(&comm->ready))
		host_peers_leave(comm->engine);
}

void comm_fail(struct comm *comm, enum err code)
{
	comm_async_set(comm, code);
	tell_peers(comm, code, false);
	comm_take_back(comm);
}

void comm_trouble(struct comm *comm, enum err code)
{
	comm_async_set(comm, code);
	tell_peers(comm, code, false);
}

uint64_t comm_busy_add(struct comm *comm)
{
	uint64_t turn;

	pthread_mutex_lock(&comm->lock);
	comm->busy++;
	turn = comm->turn_next++;
	pthread_mutex_unlock(&comm->lock);
	return turn;
}

void comm_turn_wait(struct comm *comm, uint64_t turn)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->turn_now != turn)
		pthread_cond_wait(&comm->idle, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

void comm_busy_sub(struct comm *comm, enum err result)
{
	if (result)
		comm_fail(comm, result);
	pthread_mutex_lock(&comm->lock);
	comm->turn_now++;
	if (--comm->busy == 0) {
		int progress = ERR_PROGRESS;

		atomic_compare_exchange_strong(&comm->async, &progress, OK);
	}
	pthread_cond_broadcast(&comm->idle);
	pthread_mutex_unlock(&comm->lock);
}

void comm_drain(struct comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	while (comm->busy)
		pthread_cond_wait(&comm->idle, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
}

void comm_finish_work(struct comm *comm)
{
	comm_drain(comm);
	while (atomic_load(&comm->inside) || atomic_load(&comm->enqueuing))
		usleep(ABORT_SLEEP_US);
}

enum err comm_finalize(struct comm *comm)
{
	enum err e;

	if (atomic_exchange(&comm->finalized, true))
		return err_set(ERR_ARGUMENT, "the communicator is finalized already");
	comm_finish_work(comm);
	e = comm_async_get(comm);
	return e == ERR_PROGRESS ? OK : e;
}

static void comm_free(struct comm *comm, enum rank_state last)
{
	if (comm->worker)
		stream_destroy(comm->worker);
	if (comm->board && comm->engine) {
		uint32_t live = RANK_LIVE;

		atomic_compare_exchange_strong(
			&board_status(comm->board, comm->rank)->state, &live,
			(uint32_t)last);
	}
	comm_registrations_drop(comm);
	gpu_free(comm);
	host_engine_destroy(comm->engine);
	limits_free(comm->limits);
	wiring_put(comm->wiring);
	board_release(comm->board);
	free(comm->redops);
	free(comm->births);
	pthread_mutex_destroy(&comm->lock);
	pthread_cond_destroy(&comm->idle);
	free(comm);
}

static struct comm_name name_of(const struct comm *comm)
{
	return (struct comm_name){comm, comm->rank, comm->rank_count, comm->device};
}

enum err comm_destroy(struct comm *comm)
{
	struct comm_name name = name_of(comm);
	enum err e = OK;

	if (!comm->finalized)
		e = comm_finalize(comm);
	comm_free(comm, RANK_LEFT);
	comm_log_end(&name, "Destroy");
	return e;
}

enum err comm_abort(struct comm *comm)
{
	struct comm_name name = name_of(comm);

	atomic_store(&comm->abort, 1);
	tell_peers(comm, ERR_REMOTE, true);
	if (atomic_load(&comm->ready))
		gpu_abort(comm);
	comm_finish_work(comm);
	comm_take_back(comm);
	comm_free(comm, RANK_FAILED);
	comm_log_end(&name, "Abort");
	return OK;
}

void comm_interrupt(struct comm *comm)
{
	atomic_store(&comm->abort, 1);
	tell_peers(comm, ERR_REMOTE, true);
}

enum err comm_revoke(struct comm *comm)
{
	atomic_store(&comm->revoked, 1);
	atomic_store(&comm->abort, 1);
	tell_peers(comm, ERR_REMOTE, true);
	if (atomic_load(&comm->ready))
		gpu_abort(comm);
	comm_finish_work(comm);
	comm_take_back(comm);
	atomic_store(&comm->abort, 0);
	return OK;
}
