#include "comm/comm_log.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "comm/host_ranks.h"
#include "comm/wiring.h"
#include "graph/print.h"
#include "tune/limits.h"
#include "tune/model_log.h"

enum { TEXT_BYTES = 160, SCHEDULE_BYTES = 32 };

void comm_log_init(
	const struct comm *comm, const struct comm_init_args *args, bool is_complete)
{
	char born[TEXT_BYTES] = "";

	if (!log_is_on(LOG_INFO, LOG_INIT))
		return;
	if (args->parent)
		snprintf(born, sizeof(born), "parent %p childCount %u color %d key %d ",
			(const void *)args->parent, args->split_count, args->color,
			args->key);
	log_info(LOG_INIT,
		"%s comm %p rank %u nranks %u cudaDev %d nvmlDev %u busId %" PRIx64
		" commId 0x%" PRIx64 " %s- Init %s",
		args->caller, (const void *)comm, comm->rank, comm->rank_count,
		comm->gpu.device, comm->rank, host_rank_busid(comm->rank), comm->id_hash,
		born, is_complete ? "COMPLETE" : "START");
}

void comm_log_near(void)
{
	log_info(LOG_INIT | LOG_NET, "Using network SHM");
}

static void init_line(void *context, const char *line)
{
	(void)context;
	log_info(LOG_INIT, "%s", line);
}

static void graph_line(void *context, const char *line)
{
	(void)context;
	log_info(LOG_GRAPH, "%s", line);
}

/* Which node a rank is on: a host, or on one host what NCCL would make of it. */
static int node_of(const struct comm *comm, const struct cluster *cluster, uint32_t rank)
{
	if (comm->hosts.numbers)
		return comm->hosts.numbers[rank];
	return cluster ? cluster->rank_node[rank] : 0;
}

static void summary_log(const struct comm *comm, const struct cluster *cluster)
{
	int mine = node_of(comm, cluster, comm->rank), last = 0;
	int locals = 0, local_rank = 0;

	for (uint32_t r = 0; r < comm->rank_count; r++) {
		int node = node_of(comm, cluster, r);

		last = node > last ? node : last;
		locals += node == mine;
		local_rank += node == mine && r < comm->rank;
	}
	log_info(LOG_INIT,
		"comm %p rank %u nRanks %u nNodes %d localRanks %d localRank %d MNNVL 0",
		(const void *)comm, comm->rank, comm->rank_count, last + 1, locals,
		local_rank);
}

/* The model is of GPUs: its table is worth showing where a plugin works on it. */
static void model_log(const struct comm *comm, const struct cluster *cluster)
{
	const struct model *plugged = limits_model(comm->limits);
	struct model_rules rules;
	struct model model;

	if (plugged && !comm->rank)
		model_log_table(plugged);
	if (plugged)
		model_log_thresholds(plugged);
	else if (!model_rules_read(&rules) && !model_make(cluster, &rules, &model))
		model_log_thresholds(&model);
}

void comm_log_wiring(const struct comm *comm)
{
	const struct cluster *cluster = comm->wiring ? wiring_cluster(comm->wiring)
						     : NULL;
	const struct print_sink init = {.line = init_line}, graph = {.line = graph_line};
	int rank = (int)comm->rank;

	if (!log_is_on(LOG_INFO, LOG_INIT | LOG_GRAPH | LOG_TUNING | LOG_ENV))
		return;
	summary_log(comm, cluster);
	if (cluster && !rank)
		print_rings(cluster, &init);
	if (cluster) {
		print_trees(cluster, rank, &init);
		print_links(cluster, rank, &graph);
	}
	if (comm->limits && !rank)
		model_log_matrix(limits_rules(comm->limits));
	if (cluster) {
		model_log(comm, cluster);
		print_counts(cluster, &init);
	}
}

/* Ranks of one process hand each other pointers; others share the board's memory. */
static void ring_links_log(const struct comm *comm, const struct cluster *cluster)
{
	const struct rank_status *mine = peer_status(comm->peers, comm->rank);

	for (int c = 0; c < cluster->coll_channels; c++) {
		uint32_t next = (uint32_t)cluster->channels[c].ring_next[comm->rank];
		const struct rank_status *peer = peer_status(comm->peers, next);
		bool is_near = comm->memory.zero_copy && peer->pid == mine->pid;

		log_info(LOG_INIT | (is_near ? LOG_P2P : LOG_SHM),
			"Channel %02d/0 : %u[%u] -> %u[%u] via %s", c, comm->rank,
			comm->rank, next, next,
			is_near ? "P2P/direct pointer" : "SHM/direct");
	}
}

static double seconds(uint64_t ns)
{
	return (double)ns * 1e-9;
}

static void times_log(const struct comm *comm, const struct comm_init_args *args,
	const struct init_times *times)
{
	uint64_t total = clock_ns() - times->start;
	uint64_t known = times->alloc + times->bootstrap + times->topo + times->graphs +
			 times->connections;

	log_info(LOG_INIT,
		"Init timings - %s: rank %u nranks %u total %.2f (kernels 0.00, alloc "
		"%.2f, "
		"bootstrap %.2f, allgathers 0.00, topo %.2f, graphs %.2f, connections "
		"%.2f, rest %.2f)",
		args->caller, comm->rank, comm->rank_count, seconds(total),
		seconds(times->alloc), seconds(times->bootstrap), seconds(times->topo),
		seconds(times->graphs), seconds(times->connections),
		seconds(total > known ? total - known : 0));
}

void comm_log_done(const struct comm *comm, const struct comm_init_args *args,
	const struct init_times *times)
{
	const unsigned wanted = LOG_INIT | LOG_P2P | LOG_SHM;

	if (!log_is_on(LOG_INFO, wanted))
		return;
	comm_log_init(comm, args, true);
	times_log(comm, args, times);
	if (comm->rank_count < 2 || !comm->wiring)
		return;
	ring_links_log(comm, wiring_cluster(comm->wiring));
	log_info(LOG_INIT, "Connected all rings, use ring PXN 0 GDR 0");
	log_info(LOG_INIT, "Connected all trees");
}

/* NCCL spells the number of ranks one way when it begins and another at the end. */
void comm_log_start(const struct comm_name *name, const char *what)
{
	log_info(LOG_INIT | LOG_DESTROY,
		"comm %p rank %u nRanks %u cudaDev %d busId %" PRIx64 " commId 0x%" PRIx64
		" - %s START",
		name->comm, name->rank, name->rank_count, name->device,
		host_rank_busid(name->rank), name->id, what);
}

void comm_log_end(const struct comm_name *name, const char *what)
{
	log_info(LOG_INIT | LOG_DESTROY,
		"comm %p rank %u nranks %u cudaDev %d busId %" PRIx64 " commId 0x%" PRIx64
		" - %s COMPLETE",
		name->comm, name->rank, name->rank_count, name->device,
		host_rank_busid(name->rank), name->id, what);
}

static bool is_choice_told(const struct comm *comm, const struct plan_key *key)
{
	enum model_func func;

	return log_is_on(LOG_INFO, LOG_TUNING) && comm->rank_count > 1 && key->count &&
	       limits_func(key->coll, &func);
}

static void write_upper(char *to, const char *from)
{
	snprintf(to, SCHEDULE_BYTES, "%s", from);
	for (; *to; to++)
		*to = (char)toupper((unsigned char)*to);
}

static void choice_tell(const struct comm *comm, const struct plan_key *key,
	const char *name, enum proto proto)
{
	char schedule[SCHEDULE_BYTES], how[SCHEDULE_BYTES];
	enum model_func func = 0;

	limits_func(key->coll, &func);
	comm_speak(comm);
	write_upper(schedule, name);
	write_upper(how, proto_name(proto));
	log_info(LOG_TUNING,
		"%s: %zu Bytes -> Algo %s proto %s channel{Lo..Hi}={0..0} "
		"cgaClusterSize 0",
		model_func_name(func), key->count * dtype_size(key->type), schedule, how);
}

enum err comm_log_choice(const struct comm *comm, const struct plan_key *key)
{
	const struct plan *plan;
	enum err e;

	if (!is_choice_told(comm, key))
		return OK;
	e = plan_get(host_engine_planner(comm->engine), key, &plan);
	if (!e)
		choice_tell(comm, key,
			plan->shapes[plan->eager ? MODE_STAGED : MODE_DIRECT].schedule,
			PROTO_SIMPLE);
	return e;
}

void comm_log_device(const struct comm *comm, const struct plan_key *key,
	const struct device_plan *plan)
{
	if (is_choice_told(comm, key))
		choice_tell(comm, key, plan->program->kind->name, plan->proto);
}
