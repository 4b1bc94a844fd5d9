#include "comm/meet.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/param.h"
#include "comm/comm_log.h"
#include "comm/gpu.h"
#include "comm/hosts.h"
#include "comm/near_nets.h"
#include "comm/relay.h"
#include "comm/rma.h"
#include "comm/state.h"
#include "comm/touch.h"
#include "comm/wiring.h"
#include "link/foreign.h"
#include "tune/limits.h"

/* What must be the same everywhere, because ranks decide by it what to do. */
static const enum param settings[] = {PARAM_TILE, PARAM_SCHEDULE, PARAM_EAGER_BYTES,
	PARAM_ALGO, PARAM_PROTO, PARAM_TUNER_PLUGIN, PARAM_NET_LATENCY,
	PARAM_NET_MB_PER_SEC, PARAM_CHECKSUM};
enum { CAUSE_MS = 30, ROOT_NAME_BYTES = 48 };
enum { SETTINGS = sizeof(settings) / sizeof(settings[0]), SETTING_TEXT = 20 };

/* A setting as others see it: enough to compare all of it and to name most. */
struct setting {
	uint32_t hash;
	char text[SETTING_TEXT]; /* its beginning; empty: not set */
};

/* What must be the same in every rank's configuration. */
enum { WISH_CONTEXTS, WISH_SIGNALS, WISH_CFT, WISHES };
static const char *const wish_names[WISHES] = {"numRmaCtx", "numRmaSig", "hostCftMode"};

/* What each rank tells the others when they meet. */
struct peer_record {
	uint32_t version, pid;
	uint64_t host_hash;
	struct board_address board; /* rank 0's is the one that counts */
	char host[64];
	struct setting settings[SETTINGS];
	int32_t wishes[WISHES];
	struct cuda_hello gpu;
};

_Static_assert(sizeof(struct peer_record) <= BOOT_RECORD_MAX, "it fits");

enum { RECORD_VERSION = 6 };

static void settings_read(struct setting *mine)
{
	for (uint32_t i = 0; i < SETTINGS; i++) {
		char number[SETTING_TEXT];
		const char *text = number;

		if (param_info(settings[i])->kind == PARAM_TEXT)
			text = param_text(settings[i]) ? param_text(settings[i]) : "";
		else
			snprintf(number, sizeof(number), "%ld",
				(long)param_int(settings[i]));
		mine[i].hash = (uint32_t)hash_add_text(HASH_START, text);
		snprintf(mine[i].text, sizeof(mine[i].text), "%s", text);
	}
}

/* What others see of both may be alike: then the difference is further behind. */
static enum err setting_differs(
	const struct peer_record *records, uint32_t i, uint32_t rank, uint32_t j)
{
	const char *name = param_info(settings[j])->name;
	const char *theirs = records[i].settings[j].text;
	const char *mine = records[rank].settings[j].text;

	if (!strncmp(theirs, mine, SETTING_TEXT))
		return err_set(ERR_USAGE,
			"%s begins with '%.19s' on ranks %u and %u and goes on "
			"differently: it must be the same on all ranks",
			name, mine, i, rank);
	return err_set(ERR_USAGE,
		"%s is '%.19s' on rank %u and '%.19s' on rank %u: it must be the same on "
		"all ranks",
		name, theirs, i, mine, rank);
}

static enum err settings_check(
	const struct peer_record *records, uint32_t rank_count, uint32_t rank)
{
	const struct setting *mine = records[rank].settings;

	for (uint32_t i = 0; i < rank_count; i++)
		for (uint32_t j = 0; j < SETTINGS; j++)
			if (records[i].settings[j].hash != mine[j].hash)
				return setting_differs(records, i, rank, j);
	return OK;
}

static void wishes_read(const struct comm_config *config, int32_t *mine)
{
	mine[WISH_CONTEXTS] = config->rma_contexts;
	mine[WISH_SIGNALS] = config->rma_signals;
	mine[WISH_CFT] = config->host_cft_mode;
}

static enum err wishes_check(
	const struct peer_record *records, uint32_t rank_count, uint32_t rank)
{
	for (uint32_t i = 0; i < rank_count; i++)
		for (uint32_t j = 0; j < WISHES; j++)
			if (records[i].wishes[j] != records[rank].wishes[j])
				return err_set(ERR_USAGE,
					"config %s is %d on rank %u and %d on rank %u: "
					"it "
					"must be the same on all ranks",
					wish_names[j], records[i].wishes[j], i,
					records[rank].wishes[j], rank);
	return OK;
}

static enum err records_check(
	const struct peer_record *records, uint32_t rank_count, uint32_t rank)
{
	enum err e;

	for (uint32_t i = 0; i < rank_count; i++)
		if (records[i].version != RECORD_VERSION)
			return err_set(ERR_USAGE,
				"rank %u runs another version of the library", i);
	e = settings_check(records, rank_count, rank);
	return e ? e : wishes_check(records, rank_count, rank);
}

/* Can this rank have the kernel copy from every other's process? */
static bool foreign_try(const struct comm *comm)
{
	bool works = param_int(PARAM_CMA) != 0;

	for (uint32_t i = 0; i < comm->hosts.board->rank_count && works; i++) {
		const struct rank_status *status = board_status(comm->hosts.board, i);

		works = status->pid == (uint32_t)getpid() ||
			foreign_works(status->pid, (void *)(uintptr_t)status->probe,
				comm->hosts.board->token);
	}
	return works;
}

/* All read the same answers, which decides how memory that cannot be mapped travels. */
static bool foreign_works_for_all(const struct comm *comm)
{
	for (uint32_t i = 0; i < comm->hosts.board->rank_count; i++)
		if (atomic_load(&board_status(comm->hosts.board, i)->foreign) !=
			FOREIGN_YES)
			return false;
	return true;
}

/* Graphs, where somebody looks at them, and what the user says on the choice of
 * schedules. */
static enum err comm_wire(struct comm *comm, struct init_times *times)
{
	const struct wiring_args args = {.board = comm->hosts.board,
		.rank = comm->rank,
		.min_ctas = (uint32_t)comm->config.min_ctas,
		.max_ctas = (uint32_t)comm->config.max_ctas};
	uint64_t start = clock_ns();
	enum err e = limits_read(&comm->limits);

	if (!e && wiring_is_wanted() && !comm->hosts.numbers)
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

/* On its host: nobody else sees its pulse. */
static bool is_alone(const struct comm *comm, const struct peer_record *records)
{
	for (uint32_t i = 0; i < comm->rank_count; i++)
		if (comm_is_near(comm, i) && records[i].pid != (uint32_t)getpid())
			return false;
	return true;
}

/* Who is where, when all are fit to be together. */
static enum err hosts_find(struct comm *comm, const struct peer_record *records)
{
	uint64_t *identities = malloc(comm->rank_count * sizeof(*identities));
	enum err e = records_check(records, comm->rank_count, comm->rank);

	if (!identities)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	for (uint32_t i = 0; i < comm->rank_count; i++)
		identities[i] = records[i].host_hash;
	if (!e)
		e = comm_hosts_number(comm, identities);
	free(identities);
	return e;
}

/* The board, and on it what the others need to know of this rank. Ranks of one process
 * need no pulse: they end together. */
static enum err comm_attach(struct comm *comm, const struct peer_record *records)
{
	struct rank_status *status;
	enum err e = OK;

	if (!comm->hosts.board)
		e = comm_board_attach(comm, &records[0].board, 0);
	if (e)
		return e;
	comm->hosts.probe = comm->hosts.board->token;
	if (!comm->hosts.numbers)
		comm->hosts.local = comm->rank;
	status = board_status(comm->hosts.board, comm->hosts.local);
	status->pid = (uint32_t)getpid();
	status->rank = comm->rank;
	status->probe = (uint64_t)(uintptr_t)&comm->hosts.probe;
	sched_getaffinity(0, sizeof(status->cpus), (cpu_set_t *)status->cpus);
	cores_quota_read("", &status->quota);
	if (!is_alone(comm, records)) {
		e = pulse_hold(&status->pulse);
		comm->hosts.has_pulse = !e;
	}
	atomic_store(&status->state, RANK_LIVE);
	return e;
}

static void far_note(void *comm)
{
	touch_note(comm);
}

static enum err far_put(void *comm, uint32_t to, const struct far_put *put,
	const void *data, size_t bytes)
{
	return touch_put(comm, to, put, data, bytes);
}

/* This rank is on the board and looks at the others. Between hosts not all of them need
 * be on it yet, but where they are is known, and who falls silent from here on is, too.
 */
static enum err comm_see(struct comm *comm, const struct meeting *meeting)
{
	uint32_t *pids = comm->hosts.numbers ? comm_hosts_pids(comm) : NULL;
	const struct peers_args peers = {.board = comm->hosts.board,
		.rank = comm->rank,
		.rank_count = comm->rank_count,
		.hosts = comm->hosts.numbers,
		.pids = pids};
	enum err e = comm->hosts.numbers && !pids ? ERR_SYSTEM
						  : peers_create(&peers, &comm->peers);

	free(pids);
	return e ? e : comm_hosts_touch(comm, meeting);
}

/* Everyone is on the board: the engine, and what it is told by topology and user. */
static enum err comm_equip(struct comm *comm, struct init_times *times)
{
	struct host_engine_args args = {.wires = comm->hosts.wires,
		.abort = &comm->life.abort,
		.teller = &profile_teller,
		.zero_copy = comm->memory.zero_copy};
	uint64_t start = clock_ns();
	enum err e;

	atomic_store(&board_status(comm->hosts.board, comm->hosts.local)->foreign,
		foreign_try(comm) ? FOREIGN_YES : FOREIGN_NO);
	times->connections += clock_ns() - start;
	e = comm->hosts.numbers ? touch_settle(comm) : comm_see(comm, NULL);
	if (!e)
		e = comm_wire(comm, times);
	start = clock_ns();
	args.limits = comm->limits;
	args.tile_bytes = comm_hosts_tile(comm);
	args.squad = comm->hosts.squad;
	if (comm->hosts.numbers)
		args.far = (struct host_far){
			far_note, far_put, comm, comm->hosts.rma ? &rma_port : NULL};
	if (!e)
		e = health_create(comm->peers, &comm->health);
	args.peers = comm->peers;
	args.health = comm->health;
	if (!e)
		e = host_engine_create(&args, &comm->engine);
	times->connections += clock_ns() - start;
	return e;
}

static bool is_on_gpu(const struct peer_record *records, uint32_t rank_count)
{
	for (uint32_t i = 0; i < rank_count; i++)
		if (records[i].gpu.has_gpu || records[i].gpu.has_failed)
			return true;
	return false;
}

/* What every rank has said of its GPU. */
static enum err hellos_list(const struct comm *comm, const struct peer_record *records,
	const struct cuda_hello ***hellos)
{
	*hellos = calloc(comm->rank_count, sizeof(**hellos));
	if (!*hellos)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	for (uint32_t i = 0; i < comm->rank_count; i++)
		(*hellos)[i] = &records[i].gpu;
	return OK;
}

static enum err comm_relay_gpu(struct comm *comm, const struct peer_record *records)
{
	const struct cuda_hello **hellos;
	enum err e = hellos_list(comm, records, &hellos);

	if (!e)
		gpu_relay(comm, hellos);
	free(hellos);
	return e;
}

/* On one host they reach each other's memory; between hosts kernels may run calls. */
static enum err comm_meet_gpu(struct comm *comm, const struct peer_record *records)
{
	const struct cuda_hello **hellos;
	enum err e = hellos_list(comm, records, &hellos);

	if (!e)
		e = comm->hosts.numbers ? relay_haul(comm, hellos)
					: gpu_connect(comm, hellos);
	free(hellos);
	/* others may be in one of its votes */
	if (e)
		health_tell(comm->health, e, comm->rank, err_last());
	return e;
}

/* Ranks that wait for the process in which they meet can say whose it is, once they know
 * each other. The ranks of a child know it from the first. */
static void root_name(const struct comm *comm, const struct peer_record *records,
	struct meeting *meeting, char name[ROOT_NAME_BYTES])
{
	uint32_t pid = boot_root_pid(meeting), rank = 0;

	while (rank < comm->rank_count &&
		(records[rank].pid != pid ||
			records[rank].host_hash != records[comm->rank].host_hash))
		rank++;
	if (!pid || rank == comm->rank_count)
		return;
	snprintf(name, ROOT_NAME_BYTES, "rank %u (process %u)", rank, pid);
	boot_root_name(meeting, name);
}

static enum err comm_far_connect(
	struct comm *comm, const struct peer_record *records, struct meeting *meeting)
{
	struct gpu_place *places = calloc(comm->rank_count, sizeof(*places));
	enum err e;

	if (!places)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	for (uint32_t rank = 0; rank < comm->rank_count; rank++)
		if (records[rank].gpu.has_gpu)
			memcpy(places[rank].busid, records[rank].gpu.busid,
				sizeof(places[rank].busid) - 1);
	e = comm_hosts_connect(comm, meeting, places);
	free(places);
	return e;
}

/* Step by step, and after each all hear how it went with everybody. Rank 0 keeps the
 * segment's descriptor open for the others, so nobody goes on, and perhaps leaves, before
 * all have mapped it. */
static enum err comm_join(struct comm *comm, const struct peer_record *records,
	struct meeting *meeting, struct init_times *times)
{
	bool on_gpu = is_on_gpu(records, comm->rank_count);
	uint64_t start = clock_ns();
	enum err e = hosts_find(comm, records);

	if (!e && comm->hosts.numbers)
		e = comm_relay_gpu(comm, records);
	if (!e && comm->hosts.numbers)
		e = comm_far_connect(comm, records, meeting);
	else if (!e)
		comm_log_near();
	if (!e)
		e = comm_attach(comm, records);
	if (!e && comm->hosts.numbers)
		e = comm_see(comm, meeting);
	e = boot_agree(meeting, e, false);

	times->connections = clock_ns() - start;
	if (!e)
		e = boot_agree(meeting, comm_equip(comm, times), !on_gpu);
	if (!e)
		host_engine_reach(comm->engine, foreign_works_for_all(comm));
	if (!e && on_gpu)
		e = boot_agree(meeting, comm_meet_gpu(comm, records), true);
	return e;
}

static bool dead_find(const struct comm *comm, uint32_t *rank)
{
	for (*rank = 0; *rank < comm->hosts.board->rank_count; ++*rank)
		if (*rank != comm->hosts.local &&
			pulse_has_stopped(&board_status(comm->hosts.board, *rank)->pulse))
			return true;
	return false;
}

/* The process in which the ranks met has gone: whose was it? The board knows who died, a
 * moment later perhaps. */
static enum err dead_name(const struct comm *comm, enum err e)
{
	bool is_found = false;
	uint32_t rank = 0;

	for (int i = 0; comm->hosts.board && i < CAUSE_MS && !is_found; i++) {
		is_found = dead_find(comm, &rank);
		if (!is_found)
			usleep(1000);
	}
	return is_found ? err_set(ERR_REMOTE,
				  "rank %u (process %u) died while the communicator was "
				  "made",
				  rank, board_status(comm->hosts.board, rank)->pid)
			: e;
}

/* Whom a rank asks that waits for the others in the meeting. */
struct outlook {
	const struct comm *comm;
	const struct comm_init_args *args;
};

/* What the caller knows, and, once ranks of several hosts keep in touch, who is silent:
 * the root would wait for that one. */
static enum err outlook_check(void *arg, bool has_met)
{
	const struct outlook *outlook = arg;
	const struct comm_init_args *args = outlook->args;
	enum err e = args->hope ? args->hope(args->hope_arg, has_met) : OK;

	return e || !has_met ? e : touch_check(outlook->comm);
}

enum err comm_meet(
	struct comm *comm, const struct comm_init_args *args, struct init_times *times)
{
	struct peer_record mine = {.version = RECORD_VERSION, .pid = (uint32_t)getpid()};
	struct outlook outlook = {comm, args};
	bool is_root_lost = false;
	struct peer_record *records = calloc(args->rank_count, sizeof(*records));
	struct boot_args boot = {.ids = args->ids,
		.id_count = args->id_count,
		.rank = args->rank,
		.rank_count = args->rank_count,
		.record = &mine,
		.record_bytes = sizeof(mine),
		.abort = &comm->life.abort,
		.hope = outlook_check,
		.hope_arg = &outlook,
		.root = args->root,
		.is_root_lost = &is_root_lost};
	const struct board_size size = comm_board_size(comm);
	struct meeting *meeting = NULL;
	char root[ROOT_NAME_BYTES];
	uint64_t start = clock_ns();
	enum err e;

	e = records ? host_identity(mine.host, sizeof(mine.host), &mine.host_hash)
		    : err_set(ERR_SYSTEM, "no memory to meet %u ranks", args->rank_count);
	settings_read(mine.settings);
	wishes_read(&comm->config, mine.wishes);
	if (!e && args->rank == 0)
		e = board_create(&size, comm->config.comm_name, &comm->hosts.board);
	if (!e && args->rank == 0)
		mine.board = board_address(comm->hosts.board);
	if (!e)
		gpu_prepare(comm, &mine.gpu);
	times->alloc = clock_ns() - start;
	start += times->alloc;
	/* The others must not wait for a rank that will not come. */
	boot.failed = e;
	e = boot_meet(&boot, records, &meeting);
	times->bootstrap = clock_ns() - start;
	if (!e && records && !args->root)
		root_name(comm, records, meeting, root);
	if (!e && records) /* without them this rank has refused to come */
		e = comm_join(comm, records, meeting, times);
	if (e && is_root_lost)
		e = dead_name(comm, e);
	if (args->is_root_lost)
		*args->is_root_lost = is_root_lost;
	boot_leave(meeting);
	free(records);
	return e;
}
