/*
 * decide.c - fuse, build, find paths, trim, search, join; each distinct group of GPUs
 * once. Read fuse.h, topo.h, graph.h and cluster.h for the steps.
 *
 * Words: a host runs one or more pods; a part is one pod; a group is what is fused, one
 * part or, where NVLink spans hosts, all parts of several hosts; a kind is what equal
 * groups have in common. A group falls into several domains where the network is the
 * better way between its GPUs.
 */
#include "graph/decide.h"

#include <stdlib.h>
#include <string.h>

#include "topo/fuse.h"
#include "topo/share.h"

enum { RANKS_MAX = 1 << 20 };

struct machine {
	const struct xml_node *tree; /* borrowed; equal machines have the same */
	int devs[TOPO_GPUS_MAX];     /* of those that take part */
	uint32_t dev_count;
	struct share share; /* of its pods; owned unless it is a copy */
	bool is_copy;	    /* of an equal one before it */
};

struct part {
	uint32_t machine, pod;
};

struct kind {
	struct part *parts; /* owned */
	uint32_t part_count, rank_count;
	uint32_t first_domain, domain_count;
};

struct deciding {
	const struct decide_args *args;
	struct decision *decision;
	struct machine *machines; /* owned */
	uint32_t pods, pod_gpus;  /* pod_gpus 0: all of the host */
	int rank_count;
	struct kind *kinds; /* owned */
	uint32_t kind_count;
	struct cluster_node *nodes; /* owned */
	uint32_t node_count, node_room;
};

static enum err no_memory(void)
{
	return err_set(ERR_SYSTEM, "no memory for the topology; use fewer hosts");
}

/* Room for one more; doubles. Returns the array, moved perhaps, or NULL. */
static void *grown(void *array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : 16;
	void *moved;

	if (count < *room)
		return array;
	moved = realloc(array, more * size);
	if (moved)
		*room = more;
	return moved;
}

static enum err share_machine(const struct deciding *deciding, struct machine *machine)
{
	struct share_args args = {.tree = machine->tree,
		.devs = machine->devs,
		.pods = deciding->pods,
		.gpus_per_pod = deciding->pod_gpus,
		.nets_per_pod = deciding->args->nets_per_pod};

	return share_nets(&args, &machine->share);
}

static enum err read_machine(struct deciding *deciding, uint32_t m)
{
	const struct decide_args *args = deciding->args;
	struct machine *machine = &deciding->machines[m];
	uint32_t wanted = deciding->pods * deciding->pod_gpus, first = 0;

	while (first < m && !xml_equal(args->machines[first], args->machines[m]))
		first++;
	if (first < m) {
		*machine = deciding->machines[first];
		machine->is_copy = true;
		return OK;
	}
	machine->tree = args->machines[m];
	machine->dev_count = fuse_devs(machine->tree, machine->devs, TOPO_GPUS_MAX);
	if (!machine->dev_count)
		return err_set(
			ERR_USAGE, "machine %u has no GPU; add one to its file", m);
	if (machine->dev_count > TOPO_GPUS_MAX)
		return err_set(
			ERR_USAGE, "machine %u has more than %d GPUs", m, TOPO_GPUS_MAX);
	if (wanted > machine->dev_count)
		return err_set(ERR_USAGE,
			"%u pods of %u GPUs do not fit machine %u, which has %u; "
			"ask for fewer",
			deciding->pods, deciding->pod_gpus, m, machine->dev_count);
	if (wanted)
		machine->dev_count = wanted;
	return wanted ? share_machine(deciding, machine) : OK;
}

static enum err read_machines(struct deciding *deciding)
{
	const struct decide_args *args = deciding->args;
	size_t ranks = 0;

	deciding->pods = args->pods ? args->pods : 1;
	deciding->pod_gpus = args->pods ? args->gpus_per_pod : 0;
	if (!args->machine_count || !args->host_count)
		return err_set(
			ERR_ARGUMENT, "nothing to decide on: no machine or no host");
	if (deciding->pods > TOPO_GPUS_MAX || deciding->pod_gpus > TOPO_GPUS_MAX ||
		(args->pods && !args->gpus_per_pod))
		return err_set(ERR_USAGE,
			"%u pods of %u GPUs are none; use 1 to %d of each", args->pods,
			args->gpus_per_pod, TOPO_GPUS_MAX);
	deciding->machines = calloc(args->machine_count, sizeof(*deciding->machines));
	if (!deciding->machines)
		return no_memory();
	for (uint32_t m = 0; m < args->machine_count; m++) {
		enum err e = read_machine(deciding, m);
		if (e)
			return e;
	}
	for (uint32_t h = 0; h < args->host_count && ranks <= RANKS_MAX; h++)
		ranks += deciding->machines[h % args->machine_count].dev_count;
	if (ranks > RANKS_MAX)
		return err_set(ERR_USAGE, "%u hosts have more than %d GPUs; use fewer",
			args->host_count, RANKS_MAX);
	deciding->rank_count = (int)ranks;
	deciding->decision->gpus_per_machine = deciding->machines[0].dev_count;
	deciding->decision->net_count = deciding->machines[0].share.net_count;
	deciding->decision->nets_per_pod = deciding->machines[0].share.per_pod;
	deciding->decision->pods_per_net = deciding->machines[0].share.most_pods;
	return OK;
}

static void fill_host(
	const struct deciding *deciding, const struct part *part, struct fuse_host *host)
{
	const struct machine *machine = &deciding->machines[part->machine];

	host->tree = machine->tree;
	host->devs = machine->devs + part->pod * deciding->pod_gpus;
	host->dev_count = deciding->pod_gpus ? deciding->pod_gpus : machine->dev_count;
	if (!machine->share.nets)
		return;
	host->net_count = machine->share.per_pod;
	host->nets = machine->share.nets + part->pod * host->net_count;
}

/* Lay the trees of a kind's parts over each other. `hashes` tells, by rank of the group,
 * which host it is on. */
static enum err fuse_kind(const struct deciding *deciding, struct kind *kind,
	uint64_t hashes[TOPO_GPUS_MAX], struct xml_node **tree)
{
	const struct decide_args *args = deciding->args;
	struct fuse_host *hosts = calloc(kind->part_count, sizeof(*hosts));
	struct fuse_args fuse = {.hosts = hosts,
		.host_count = kind->part_count,
		.collnet = args->collnet,
		.merge_nics = args->rules.merge_nics,
		.merge_level = args->rules.merge_level};
	enum err e = OK;

	if (!hosts)
		return no_memory();
	kind->rank_count = 0;
	for (uint32_t p = 0; p < kind->part_count && !e; p++) {
		fill_host(deciding, &kind->parts[p], &hosts[p]);
		hosts[p].host_hash = p + 1;
		if (hosts[p].dev_count > TOPO_GPUS_MAX - kind->rank_count) {
			e = err_set(ERR_USAGE,
				"an NVLink domain of %u hosts has more than %d GPUs; use "
				"fewer hosts per domain",
				args->mnnvl_hosts, TOPO_GPUS_MAX);
			break;
		}
		for (uint32_t g = 0; g < hosts[p].dev_count; g++)
			hashes[kind->rank_count++] = hosts[p].host_hash;
	}
	if (!e)
		e = fuse_domain(&fuse, tree);
	free(hosts);
	return e;
}

/* A tree or chain that the file leaves out still has as many channels as its ring. */
static enum err follow_ring(struct topo *topo, const struct search_options *options,
	struct graph_set *set, enum graph_id id)
{
	int channels = set->graphs[GRAPH_RING].channel_count;
	struct graph *graph = &set->graphs[id];

	if (graph->min_channels == channels || !graph->channel_count)
		return OK;
	*graph = (struct graph){.id = id,
		.pattern = id == GRAPH_TREE ? PATTERN_BALANCED_TREE : PATTERN_TREE,
		.collnet = id == GRAPH_COLLNET_CHAIN,
		.cross_nic = topo->rules.cross_nic,
		.min_channels = channels,
		.max_channels = channels,
		.gpu_count = (int)topo->counts[TOPO_GPU]};
	return graph_search(topo, options, graph);
}

static enum err search_with_file(const char *path, const struct search_options *options,
	struct topo *topo, struct graph_set *set)
{
	struct graph_set *file = calloc(1, sizeof(*file));
	bool has[GRAPH_COUNT] = {false};
	enum err e;

	if (!file)
		return no_memory();
	e = graph_file_read(path, topo, file, has);
	if (!e)
		e = graph_set_search(topo, options, set);
	for (int id = 0; id < GRAPH_COUNT && !e; id++)
		if (has[id])
			set->graphs[id] = file->graphs[id];
	if (!e && has[GRAPH_RING] && !has[GRAPH_TREE])
		e = follow_ring(topo, options, set, GRAPH_TREE);
	if (!e && has[GRAPH_RING] && !has[GRAPH_COLLNET_CHAIN])
		e = follow_ring(topo, options, set, GRAPH_COLLNET_CHAIN);
	free(file);
	return e;
}

static void domain_free(struct domain *domain)
{
	if (!domain)
		return;
	topo_free(domain->topo);
	free(domain);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The domain that `rank` of the group is in, as seen from its host. */
static enum err make_domain(const struct deciding *deciding, const struct xml_node *tree,
	int rank, uint64_t hash, struct domain *domain)
{
	const struct decide_args *args = deciding->args;
	struct search_options options = {
		.unbounded = args->unbounded, .no_multicast = !args->has_multicast};
	enum err e = topo_build(tree, hash, args->rules.nccl, &domain->topo);

	if (e)
		return e;
	if (topo_gpu_of_rank(domain->topo, rank) < 0)
		return err_set(ERR_USAGE,
			"the GPU of rank %d hangs below a NIC or nowhere; correct the "
			"topology file",
			rank);
	e = topo_paths(domain->topo, &args->rules);
	if (!e)
		e = topo_trim(domain->topo, rank, deciding->rank_count);
	if (e)
		return e;
	if (domain->topo->is_inter && !domain->topo->counts[TOPO_NET])
		return err_set(ERR_USAGE,
			"rank %d has no NIC and the job other nodes; NCCL gives up here "
			"(no local path from gpu to net): add a <net> to the topology "
			"file",
			rank);
	topo_bandwidths(domain->topo);
	domain->rank_count = domain->topo->counts[TOPO_GPU];
	if (domain->rank_count > TOPO_GPUS_MAX)
		return err_set(ERR_USAGE, "a node has more than %d GPUs", TOPO_GPUS_MAX);
	for (uint32_t g = 0; g < domain->rank_count; g++)
		domain->ranks[g] = topo_gpu_at(domain->topo, g)->gpu.rank;
	qsort(domain->ranks, domain->rank_count, sizeof(int), by_value);
	if (args->graph_file)
		return search_with_file(
			args->graph_file, &options, domain->topo, &domain->set);
	return graph_set_search(domain->topo, &options, &domain->set);
}

static enum err add_domain(struct decision *decision, struct domain **domain)
{
	size_t bytes = (decision->domain_count + 1) * sizeof(*decision->domains);
	struct domain **domains = realloc(decision->domains, bytes);

	if (!domains)
		return no_memory();
	decision->domains = domains;
	*domain = calloc(1, sizeof(**domain));
	if (!*domain)
		return no_memory();
	domains[decision->domain_count++] = *domain;
	return OK;
}

static enum err make_domains(struct deciding *deciding, struct kind *kind)
{
	uint64_t hashes[TOPO_GPUS_MAX];
	bool is_placed[TOPO_GPUS_MAX] = {false};
	struct xml_node *tree = NULL;
	enum err e = fuse_kind(deciding, kind, hashes, &tree);

	kind->first_domain = deciding->decision->domain_count;
	for (uint32_t r = 0; r < kind->rank_count && !e; r++) {
		struct domain *domain = NULL;
		if (is_placed[r])
			continue;
		e = add_domain(deciding->decision, &domain);
		if (!e)
			e = make_domain(deciding, tree, (int)r, hashes[r], domain);
		if (e)
			break;
		for (uint32_t i = 0; i < domain->rank_count; i++) {
			int rank = domain->ranks[i];
			if (rank >= 0 && (uint32_t)rank < kind->rank_count)
				is_placed[rank] = true;
		}
		kind->domain_count++;
	}
	xml_free(tree);
	return e;
}

static bool same_parts(const struct deciding *deciding, const struct kind *kind,
	const struct kind *other)
{
	if (kind->part_count != other->part_count)
		return false;
	for (uint32_t p = 0; p < kind->part_count; p++) {
		const struct part *a = &kind->parts[p], *b = &other->parts[p];
		if (a->pod != b->pod || deciding->machines[a->machine].tree !=
						deciding->machines[b->machine].tree)
			return false;
	}
	return true;
}

/* The kind these parts are of: an old one, or `fresh` as a new one. Takes its parts. */
static enum err find_kind(
	struct deciding *deciding, struct kind *fresh, const struct kind **found)
{
	struct kind *kinds;
	enum err e;

	for (uint32_t k = 0; k < deciding->kind_count; k++) {
		if (!same_parts(deciding, &deciding->kinds[k], fresh))
			continue;
		free(fresh->parts);
		*found = &deciding->kinds[k];
		return OK;
	}
	kinds = realloc(
		deciding->kinds, (deciding->kind_count + 1) * sizeof(*deciding->kinds));
	if (!kinds) {
		free(fresh->parts);
		return no_memory();
	}
	deciding->kinds = kinds;
	kinds[deciding->kind_count] = *fresh;
	e = make_domains(deciding, &kinds[deciding->kind_count]);
	*found = &kinds[deciding->kind_count++];
	return e;
}

/* One group: pods from `pods[0]` to before `pods[1]` of hosts likewise. */
static enum err place_group(struct deciding *deciding, const uint32_t hosts[2],
	const uint32_t pods[2], int *base)
{
	uint32_t pod_count = pods[1] - pods[0];
	struct kind fresh = {.part_count = (hosts[1] - hosts[0]) * pod_count};
	const struct kind *kind = NULL;
	enum err e;

	fresh.parts = calloc(fresh.part_count, sizeof(*fresh.parts));
	if (!fresh.parts)
		return no_memory();
	for (uint32_t p = 0; p < fresh.part_count; p++)
		fresh.parts[p] = (struct part){
			.machine = (hosts[0] + p / pod_count) %
				   deciding->args->machine_count,
			.pod = pods[0] + p % pod_count,
		};
	e = find_kind(deciding, &fresh, &kind);
	if (e)
		return e;
	for (uint32_t d = 0; d < kind->domain_count; d++) {
		struct cluster_node *nodes = grown(deciding->nodes, deciding->node_count,
			&deciding->node_room, sizeof(*nodes));
		if (!nodes)
			return no_memory();
		deciding->nodes = nodes;
		nodes[deciding->node_count++] = (struct cluster_node){
			.domain = deciding->decision->domains[kind->first_domain + d],
			.base = *base,
		};
	}
	*base += (int)kind->rank_count;
	return OK;
}

/* Where NVLink spans hosts their pods meet again; else every pod is on its own. */
static enum err place_groups(struct deciding *deciding)
{
	const struct decide_args *args = deciding->args;
	uint32_t step = args->mnnvl_hosts > 1 ? args->mnnvl_hosts : 1;
	uint32_t pods = step > 1 ? deciding->pods : 1;
	int base = 0;

	for (uint32_t h = 0; h < args->host_count; h += step) {
		uint32_t left = args->host_count - h;
		const uint32_t hosts[2] = {h, h + (left < step ? left : step)};
		for (uint32_t p = 0; p < deciding->pods; p += pods) {
			const uint32_t range[2] = {p, p + pods};
			enum err e = place_group(deciding, hosts, range, &base);
			if (e)
				return e;
		}
		if (left <= step)
			break;
	}
	return OK;
}

static enum err join_nodes(struct deciding *deciding)
{
	const struct decide_args *args = deciding->args;
	struct cluster_args cluster = {.nodes = deciding->nodes,
		.node_count = deciding->node_count,
		.collnet = args->collnet,
		.has_multicast = args->has_multicast,
		.channels = args->channels};

	return cluster_join(&cluster, &deciding->decision->cluster);
}

static void machines_free(struct deciding *deciding)
{
	uint32_t count = deciding->machines ? deciding->args->machine_count : 0;

	for (uint32_t m = 0; m < count; m++)
		if (!deciding->machines[m].is_copy)
			share_free(&deciding->machines[m].share);
	free(deciding->machines);
}

enum err decide(const struct decide_args *args, struct decision **decision)
{
	struct deciding deciding = {.args = args};
	enum err e;

	deciding.decision = calloc(1, sizeof(*deciding.decision));
	if (!deciding.decision)
		return no_memory();
	e = read_machines(&deciding);
	if (!e)
		e = place_groups(&deciding);
	if (!e)
		e = join_nodes(&deciding);
	for (uint32_t k = 0; k < deciding.kind_count; k++)
		free(deciding.kinds[k].parts);
	free(deciding.kinds);
	machines_free(&deciding);
	free(deciding.nodes);
	if (e)
		decision_free(deciding.decision);
	else
		*decision = deciding.decision;
	return e;
}

void decision_free(struct decision *decision)
{
	if (!decision)
		return;
	cluster_free(decision->cluster);
	for (uint32_t d = 0; d < decision->domain_count; d++)
		domain_free(decision->domains[d]);
	free(decision->domains);
	free(decision);
}
