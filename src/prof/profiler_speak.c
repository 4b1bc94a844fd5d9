#include "prof/profiler_speak.h"

#include <limits.h>
#include <string.h>

enum {
	NUMBER_UNKNOWN = 255,
	CHANNELS = 1,
	VERSION_NET = 2,
	VERSION_NAMELESS = 4,
	VERSION_API = 5
};

static const char unknown[] = "Unknown";

static const char *const funcs[PROF_FUNC_COUNT] = {[PROF_BROADCAST] = "Broadcast",
	[PROF_REDUCE] = "Reduce",
	[PROF_ALL_GATHER] = "AllGather",
	[PROF_REDUCE_SCATTER] = "ReduceScatter",
	[PROF_ALL_REDUCE] = "AllReduce",
	[PROF_SEND] = "Send",
	[PROF_RECV] = "Recv",
	[PROF_ALL_TO_ALL] = "AlltoAll",
	[PROF_SCATTER] = "Scatter",
	[PROF_GATHER] = "Gather"};

static const char *const types[DTYPE_COUNT] = {[DTYPE_INT8] = "ncclInt8",
	[DTYPE_UINT8] = "ncclUint8",
	[DTYPE_INT32] = "ncclInt32",
	[DTYPE_UINT32] = "ncclUint32",
	[DTYPE_INT64] = "ncclInt64",
	[DTYPE_UINT64] = "ncclUint64",
	[DTYPE_FLOAT16] = "ncclFloat16",
	[DTYPE_FLOAT32] = "ncclFloat32",
	[DTYPE_FLOAT64] = "ncclFloat64",
	[DTYPE_BFLOAT16] = "ncclBfloat16",
	[DTYPE_FLOAT8E4M3] = "ncclFloat8e4m3",
	[DTYPE_FLOAT8E5M2] = "ncclFloat8e5m2"};

/* By their numbers in version 1. */
static const char *const algos[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
static const char *const protos[] = {"LL", "LL128", "SIMPLE"};

static uint8_t number_of(const char *const *names, uint32_t count, const char *name)
{
	for (uint32_t i = 0; name && i < count; i++)
		if (!strcmp(names[i], name))
			return (uint8_t)i;
	return NUMBER_UNKNOWN;
}

static const char *text_of(const char *name)
{
	return name ? name : unknown;
}

static void *data_of(const struct prof_call *call)
{
	return call->func == PROF_SEND ? (void *)(uintptr_t)call->in : call->out;
}

bool profiler_is_whole(const struct profiler_abi *abi)
{
	return abi->init.v1 && abi->start && abi->stop && abi->state && abi->finalize;
}

int profiler_speak_init(const struct profiler_abi *abi, int version,
	const struct speak_comm *comm, int *wishes, void **context)
{
	if (version < 4)
		return abi->init.v1(context, wishes);
	if (version == 4)
		return abi->init.v4(context, wishes, comm->name, comm->id,
			comm->host_count, comm->rank_count, comm->rank, plugin_says);
	return abi->init.v5(context, comm->id, wishes, comm->name, comm->host_count,
		comm->rank_count, comm->rank, plugin_says);
}

bool profiler_speak_has(int version, enum prof_kind kind)
{
	enum {
		OLD = PROF_GROUP | PROF_COLL | PROF_P2P | PROF_PROXY_OP | PROF_PROXY_STEP
	};

	return version >= VERSION_API || kind & OLD ||
	       (kind == PROF_NET_PLUGIN && version >= VERSION_NET);
}

bool profiler_speak_tells(int version, enum prof_state state)
{
	if (state == PROF_WAY_SENT || state == PROF_WAY_RECEIVED)
		return version < VERSION_NAMELESS;
	return version >= VERSION_NAMELESS ||
	       (state != PROF_WAY_MOVES && state != PROF_NET_TELLS);
}

void profiler_speak_progress(
	const struct prof_progress *progress, struct profiler_progress *told)
{
	*told = (struct profiler_progress){.steps = progress->steps};
	if (progress->details)
		told->details = progress->details;
	else
		told->bytes = progress->bytes;
}

static void coll_v1_fill(const struct speak_comm *comm, const struct prof_call *call,
	struct descr_coll_v1 *to)
{
	*to = (struct descr_coll_v1){.comm_name = comm->name,
		.comm = comm->id,
		.sequence = call->sequence,
		.func = (uint8_t)call->func,
		.in = call->in,
		.out = call->out,
		.count = call->count,
		.root = call->root,
		.type = (uint8_t)call->type,
		.op = call->op,
		.traffic_bytes = call->traffic_bytes,
		.channels = CHANNELS,
		.algo = number_of(algos, sizeof(algos) / sizeof(algos[0]), call->algo),
		.proto = number_of(
			protos, sizeof(protos) / sizeof(protos[0]), call->proto)};
}

static void coll_v2_fill(const struct speak_comm *comm, const struct prof_call *call,
	struct descr_coll_v2 *to)
{
	*to = (struct descr_coll_v2){.comm_name = comm->name,
		.comm = comm->id,
		.sequence = call->sequence,
		.func = funcs[call->func],
		.in = call->in,
		.out = call->out,
		.count = call->count,
		.root = call->root,
		.type = types[call->type],
		.traffic_bytes = call->traffic_bytes,
		.channels = CHANNELS,
		.algo = text_of(call->algo),
		.proto = text_of(call->proto)};
}

static void coll_v3_fill(const struct speak_comm *comm, const struct prof_call *call,
	struct descr_coll_v3 *to)
{
	*to = (struct descr_coll_v3){.comm_name = comm->name,
		.comm = comm->id,
		.sequence = call->sequence,
		.func = funcs[call->func],
		.in = call->in,
		.out = call->out,
		.count = call->count,
		.root = call->root,
		.type = types[call->type],
		.channels = CHANNELS,
		.algo = text_of(call->algo),
		.proto = text_of(call->proto)};
}

static void coll_v4_fill(const struct prof_event *event, struct descr_coll_v4 *to)
{
	const struct prof_call *call = event->call;

	*to = (struct descr_coll_v4){.sequence = call->sequence,
		.func = funcs[call->func],
		.in = call->in,
		.out = call->out,
		.count = call->count,
		.root = call->root,
		.type = types[call->type],
		.channels = CHANNELS,
		.algo = text_of(call->algo),
		.proto = text_of(call->proto),
		.group = event->group,
		.variant = unknown,
		.tag = call->tag};
}

static void coll_fill(int version, const struct speak_comm *comm,
	const struct prof_event *event, struct profiler_descr *descr)
{
	if (version == 1)
		coll_v1_fill(comm, event->call, &descr->of.coll_v1);
	else if (version == 2)
		coll_v2_fill(comm, event->call, &descr->of.coll_v2);
	else if (version == 3)
		coll_v3_fill(comm, event->call, &descr->of.coll_v3);
	else
		coll_v4_fill(event, &descr->of.coll_v4);
}

static void p2p_fill(int version, const struct speak_comm *comm,
	const struct prof_event *event, struct profiler_descr *descr)
{
	const struct prof_call *call = event->call;

	if (version == 1)
		descr->of.p2p_v1 = (struct descr_p2p_v1){.comm_name = comm->name,
			.comm = comm->id,
			.func = (uint8_t)call->func,
			.data = data_of(call),
			.type = (uint8_t)call->type,
			.count = call->count,
			.peer = call->root};
	else if (version < VERSION_NAMELESS)
		descr->of.p2p_v2 = (struct descr_p2p_v2){.comm_name = comm->name,
			.comm = comm->id,
			.func = funcs[call->func],
			.data = data_of(call),
			.type = types[call->type],
			.count = call->count,
			.peer = call->root};
	else
		descr->of.p2p_v4 = (struct descr_p2p_v4){.func = funcs[call->func],
			.data = data_of(call),
			.type = types[call->type],
			.count = call->count,
			.peer = call->root,
			.channels = CHANNELS,
			.group = event->group,
			.tag = call->tag};
}

/* The largest number there where it is one too many. */
static int number_cut(size_t number)
{
	return number < INT_MAX ? (int)number : INT_MAX;
}

/* What goes to and comes from other hosts. */
static void mail_fill(const struct prof_event *event, struct profiler_descr *descr)
{
	const struct prof_way *way = event->way;

	if (event->kind == PROF_PROXY_OP)
		descr->of.proxy_op = (struct descr_proxy_op){.pid = way->pid,
			.channel = (uint8_t)way->channel,
			.peer = way->peer,
			.steps = way->steps,
			.step_bytes = number_cut(way->step_bytes),
			.is_send = way->is_send};
	else if (event->kind == PROF_PROXY_STEP)
		descr->of.proxy_step.step = event->step;
	else
		descr->of.net = (struct descr_net){event->net_id, event->net_details};
}

/* What only version 5 and later have. */
static void api_fill(const struct prof_event *event, struct profiler_descr *descr)
{
	const struct prof_call *call = event->call;

	if (event->kind == PROF_GROUP_API)
		descr->of.group_api = (struct descr_group_api){
			.is_captured = call && call->is_captured, .depth = event->depth};
	else if (event->kind == PROF_COLL_API)
		descr->of.coll_api = (struct descr_coll_api){.func = funcs[call->func],
			.count = call->count,
			.type = types[call->type],
			.root = call->root,
			.stream = call->stream,
			.is_captured = call->is_captured,
			.tag = call->tag};
	else if (event->kind == PROF_P2P_API)
		descr->of.p2p_api = (struct descr_p2p_api){.func = funcs[call->func],
			.count = call->count,
			.type = types[call->type],
			.stream = call->stream,
			.is_captured = call->is_captured,
			.tag = call->tag};
	else if (event->kind == PROF_KERNEL_LAUNCH)
		descr->of.launch = (struct descr_launch){.stream = call->stream};
}

void profiler_speak_descr(int version, const struct speak_comm *comm,
	const struct prof_event *event, struct profiler_descr *descr)
{
	bool is_work = event->kind == PROF_COLL || event->kind == PROF_P2P;

	memset(descr, 0, sizeof(*descr));
	if (version < VERSION_API)
		descr->kind.v1 = (uint8_t)event->kind;
	else
		descr->kind.v5 = (uint64_t)event->kind;
	descr->parent = is_work && version < VERSION_API ? event->group : event->parent;
	descr->rank = comm->rank;
	if (event->kind == PROF_COLL)
		coll_fill(version, comm, event, descr);
	else if (event->kind == PROF_P2P)
		p2p_fill(version, comm, event, descr);
	else if (event->kind & (PROF_PROXY_OP | PROF_PROXY_STEP | PROF_NET_PLUGIN))
		mail_fill(event, descr);
	else if (version >= VERSION_API)
		api_fill(event, descr);
}
