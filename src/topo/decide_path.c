/*
 * decide_path.c - which pairs talk directly: P2P between GPUs, GDR between GPU and NIC.
 */
#include "topo/decide_path.h"

static enum path_type p2p_level(const struct topo *topo, const char **rule)
{
	const struct topo_cpu *cpu = topo->counts[TOPO_CPU]
					     ? &topo->nodes[TOPO_CPU][0]->cpu
					     : NULL;

	if (topo->rules.p2p_level != RULES_AUTO) {
		*rule = "NCCL_P2P_LEVEL or NCCL_P2P_DISABLE is set";
		return (enum path_type)topo->rules.p2p_level;
	}
	if (cpu && cpu->arch == CPU_ARCH_X86 && cpu->vendor == CPU_AMD &&
		topo->counts[TOPO_DEV] <= 2) {
		*rule = "an AMD host with at most two GPUs allows P2P everywhere";
		return PATH_SYS;
	}
	*rule = "P2P is used up to PXB: not through a host bridge";
	return PATH_PXB;
}

/* The GPU in the middle of an NVB path: its index, -1 when there is none. */
static int middle_of(const struct topo *topo, const struct topo_path *path)
{
	const struct topo_node *dev;

	if (path->type != PATH_NVB || path->hop_count < 3)
		return -1;
	dev = path->hops[1]->to;
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		if (topo_gpu_at(topo, i)->id == dev->id)
			return (int)i;
	return -1;
}

/* NVML knows only the GPUs of its own host. */
static bool is_here(const struct topo *topo, const struct topo_node *gpu)
{
	return (int)topo_system(gpu->id) == topo->system;
}

void topo_p2p_raw(
	const struct topo *topo, uint32_t a, uint32_t b, struct topo_p2p *verdict)
{
	const struct topo_node *from = topo_gpu_at(topo, a), *to = topo_gpu_at(topo, b);
	const struct topo_path *path = topo_path(from, TOPO_GPU, b);

	*verdict = (struct topo_p2p){.type = path->type, .middle = middle_of(topo, path)};
	verdict->level = p2p_level(topo, &verdict->rule);
	verdict->ok = path->type <= verdict->level;
	if (verdict->ok && a != b && is_here(topo, from) && is_here(topo, to) &&
		!topo->rules.nvml_p2p_ok && topo->rules.ignore_disabled_p2p != 2) {
		verdict->ok = false;
		verdict->is_fault = verdict->type <= PATH_NVB &&
				    !topo->rules.ignore_disabled_p2p;
		verdict->rule = "NVML says that P2P is not supported between them";
	}
	if (path->type == PATH_NVL && from->gpu.sm == to->gpu.sm && from->gpu.sm == 80)
		verdict->read = true;
	if (topo->rules.p2p_read != RULES_AUTO)
		verdict->read = topo->rules.p2p_read != 0;
}

static float net_bandwidth(const struct topo *topo, const struct topo_node *gpu)
{
	float best = 0;

	for (uint32_t n = 0; n < topo->counts[TOPO_NET]; n++) {
		const struct topo_path *path = topo_path(gpu, TOPO_NET, n);

		if (path->type <= PATH_PXB && path->bw > best)
			best = path->bw;
	}
	return best;
}

bool topo_net_is_faster(const struct topo *topo, uint32_t a, uint32_t b)
{
	const struct topo_node *from = topo_gpu_at(topo, a), *to = topo_gpu_at(topo, b);
	float bw = topo_path(from, TOPO_GPU, b)->bw;

	return !topo->rules.net_disable_intra && net_bandwidth(topo, from) > bw &&
	       net_bandwidth(topo, to) > bw;
}

void topo_p2p(const struct topo *topo, uint32_t a, uint32_t b, struct topo_p2p *verdict)
{
	topo_p2p_raw(topo, a, b, verdict);
	if (verdict->ok && verdict->middle < 0 && topo_net_is_faster(topo, a, b)) {
		verdict->ok = false;
		verdict->rule = "the NICs of both are faster than the way between them";
	}
}

bool topo_p2p_connects(const struct topo *topo, uint32_t a, uint32_t b)
{
	struct topo_p2p verdict;

	topo_p2p(topo, a, b, &verdict);
	return verdict.ok;
}

bool topo_shm_connects(const struct topo *topo, uint32_t a, uint32_t b)
{
	const struct topo_node *from = topo_gpu_at(topo, a), *to = topo_gpu_at(topo, b);

	return !topo->rules.shm_disable && topo_system(from->id) == topo_system(to->id) &&
	       !topo_net_is_faster(topo, a, b);
}

/* The first GPU on the way: it relays. */
static int relay_of(const struct topo *topo, uint32_t gpu, uint32_t net)
{
	const struct topo_path *path = topo_path(topo_gpu_at(topo, gpu), TOPO_NET, net);

	if (path->type == PATH_PXN)
		for (uint32_t i = 0; i < path->hop_count; i++)
			if (path->hops[i]->to->kind == TOPO_GPU)
				return (int)path->hops[i]->to->index;
	return (int)gpu;
}

/* Before Ampere a GPU that has to share its PCI link reads badly. */
static bool has_nvlink_or_is_alone(const struct topo *topo, uint32_t gpu)
{
	if (topo->counts[TOPO_GPU] == 1)
		return true;
	for (uint32_t i = 0; i < topo->counts[TOPO_GPU]; i++)
		if (i != gpu &&
			topo_path(topo_gpu_at(topo, gpu), TOPO_GPU, i)->type == PATH_NVL)
			return true;
	return false;
}

static bool read_is_refused(
	const struct topo *topo, uint32_t gpu, struct topo_gdr *verdict)
{
	int read = topo->rules.gdr_read;

	if (read == 0) {
		verdict->rule = "NCCL_NET_GDR_READ is 0";
		return true;
	}
	if (read < 0 && topo_gpu_at(topo, gpu)->gpu.sm < 80 &&
		!has_nvlink_or_is_alone(topo, gpu)) {
		verdict->rule = "a GPU before Ampere without NVLink does not send by GDR";
		return true;
	}
	return false;
}

static void gdr_decide(const struct topo *topo, uint32_t gpu, uint32_t net, bool is_send,
	struct topo_gdr *verdict)
{
	const struct topo_node *near = topo_gpu_at(topo, gpu);
	int relay = relay_of(topo, gpu, net), cpu;
	const struct topo_path *path = topo_path(
		topo_gpu_at(topo, (uint32_t)relay), TOPO_NET, net);

	*verdict = (struct topo_gdr){.mode = GDR_OFF,
		.distance = path->type,
		.relay = topo_gpu_at(topo, (uint32_t)relay)->gpu.rank};
	verdict->level = topo->rules.gdr_level != RULES_AUTO
				 ? (enum path_type)topo->rules.gdr_level
			 : topo->rules.gdr_c2c ? PATH_P2C
					       : PATH_PXB;
	if (!topo->nodes[TOPO_NET][net]->net.gdr) {
		verdict->rule = "the NIC or its driver does not do GPUDirect RDMA";
		return;
	}
	if (!near->gpu.gdr) {
		verdict->rule = "the GPU does not do GPUDirect RDMA";
		return;
	}
	if (is_send && read_is_refused(topo, gpu, verdict))
		return;
	verdict->is_measured = true;
	if (verdict->distance > verdict->level) {
		verdict->rule = "they are further apart than NCCL_NET_GDR_LEVEL allows";
		return;
	}
	cpu = topo_near_cpu(topo, (uint32_t)relay);
	verdict->rule = "NIC and GPU can, and they are near enough";
	verdict->mode = GDR_ON;
	if (cpu >= 0 && verdict->distance != PATH_P2C &&
		topo_path(topo_gpu_at(topo, (uint32_t)relay), TOPO_CPU, (uint32_t)cpu)
				->type == PATH_C2C)
		verdict->mode = GDR_PCI;
}

void topo_gdr(const struct topo *topo, int rank, uint64_t net_id, bool is_send,
	struct topo_gdr *verdict)
{
	int gpu = topo_gpu_of_rank(topo, rank), net = topo_net_of_id(topo, net_id);

	if (gpu < 0 || net < 0) {
		*verdict = (struct topo_gdr){.mode = GDR_OFF,
			.distance = PATH_DIS,
			.relay = rank,
			.rule = "one of them is not part of this domain"};
		return;
	}
	gdr_decide(topo, (uint32_t)gpu, (uint32_t)net, is_send, verdict);
}

bool topo_gdr_needs_flush(const struct topo *topo, int rank, uint64_t net_id)
{
	int gpu = topo_gpu_of_rank(topo, rank), net = topo_net_of_id(topo, net_id), cpu;

	if (gpu < 0 || net < 0)
		return true;
	if (topo_gpu_at(topo, (uint32_t)gpu)->gpu.sm < 90)
		return true;
	cpu = topo_near_cpu(topo, (uint32_t)gpu);
	/* Data come by PCI and flags by C2C: they may overtake each other. */
	return cpu >= 0 &&
	       topo_path(topo_gpu_at(topo, (uint32_t)gpu), TOPO_CPU, (uint32_t)cpu)
			       ->type == PATH_C2C &&
	       topo_path(topo_gpu_at(topo, (uint32_t)gpu), TOPO_NET, (uint32_t)net)
			       ->type <= PATH_PXB;
}

int topo_proxy_rank(const struct topo *topo, int rank, uint64_t net_id)
{
	int gpu = topo_gpu_of_rank(topo, rank), net = topo_net_of_id(topo, net_id);

	if (gpu < 0 || net < 0)
		return rank;
	return topo_gpu_at(topo, (uint32_t)relay_of(topo, (uint32_t)gpu, (uint32_t)net))
		->gpu.rank;
}
