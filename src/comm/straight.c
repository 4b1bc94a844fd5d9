#include "comm/straight.h"

#include "base/log.h"
#include "comm/near_nets.h"
#include "comm/state.h"
#include "exec/cuda/engine.h"
#include "topo/topo.h"

/* Older GPUs read badly for a card (topo_gdr()), or see late what it wrote
 * (topo_gdr_needs_flush()). */
enum { AMPERE = 8, HOPPER = 9 };

/* The machine is not looked at where any distance will do. */
static const char *refusal(const struct comm *comm, const struct straight *straight,
	const struct topo_rules *rules)
{
	struct gpu_place place;
	const char *of_wires = comm->hosts.wires ? wires_gpu_refusal(comm->hosts.wires,
							   &straight->gpu)
						 : "there are no connections";

	if (of_wires)
		return of_wires;
	if (rules->gdr_level >= PATH_SYS)
		return NULL;
	cuda_device_busid(place.busid);
	return near_nets_refusal(wires_plugin(comm->hosts.wires), &place);
}

/* Why sends do not; NULL: they do. */
static const char *send_refusal(const struct topo_rules *rules)
{
	if (!rules->gdr_read)
		return "NCCL_NET_GDR_READ is 0";
	if (rules->gdr_read < 0 && cuda_device_major() < AMPERE)
		return "the GPU is older than Ampere and NCCL_NET_GDR_READ is not set";
	return NULL;
}

void straight_decide(const struct comm *comm, struct straight *straight)
{
	struct topo_rules rules;
	const char *why, *why_send;

	if (straight->is_decided || !comm->hosts.numbers)
		return;
	straight->is_decided = true;
	straight->gpu = (struct net_gpu){.dmabuf = cuda_memory_dmabuf,
		.enter = cuda_context_enter,
		.context = cuda_context_now(),
		.needs_flush = cuda_device_major() < HOPPER};
	why = topo_rules_read(&rules) ? err_last() : refusal(comm, straight, &rules);
	if (why) {
		log_info(LOG_INIT | LOG_NET,
			"device memory between hosts: through pinned host memory: %s",
			why);
		return;
	}
	why_send = send_refusal(&rules);
	straight->can_receive = true;
	straight->can_send = !why_send;
	log_info(LOG_INIT | LOG_NET,
		"device memory between hosts: %s straight by NET/%s, all else through "
		"pinned host memory%s%s",
		why_send ? "receives" : "sends and receives",
		wires_name(comm->hosts.wires), why_send ? ": " : "",
		why_send ? why_send : "");
}

static bool is_known(const struct straight *straight, uint64_t buffer_id)
{
	for (int i = 0; i < STRAIGHT_KNOWN_MAX; i++)
		if (atomic_load(&straight->known[i]) == buffer_id)
			return true;
	return false;
}

bool straight_takes(const struct straight *straight, const struct comm_call *call,
	struct p2p_trial *trial)
{
	bool is_send = call->kind == CALL_SEND;
	void *data = is_send ? (void *)(uintptr_t)call->in : call->out;
	uint64_t buffer_id = 0;

	if (is_send ? !straight->can_send
		    : call->kind != CALL_RECV || !straight->can_receive)
		return false;
	if (!call->count || peer_is_local(call->comm->peers, call->root) ||
		!cuda_memory_is_direct(data, &buffer_id) || !buffer_id ||
		atomic_load(&straight->is_refused))
		return false;
	if (is_known(straight, buffer_id))
		return true;
	*trial = (struct p2p_trial){.data = data, .buffer_id = buffer_id};
	return false;
}

void straight_learn(struct straight *straight, const struct p2p_trial *trial)
{
	if (!trial->is_taken)
		atomic_store(&straight->is_refused, true);
	else if (!is_known(straight, trial->buffer_id))
		atomic_store(
			&straight->known[straight->known_count++ % STRAIGHT_KNOWN_MAX],
			trial->buffer_id);
}
