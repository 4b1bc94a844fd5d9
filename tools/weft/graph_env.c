#include "weft/graph_env.h"

#include <stdlib.h>
#include <string.h>

#include "base/param.h"

extern char **environ;

enum { PREFIX_BYTES = 5, LINE_BYTES = 1024 };

/* What decides paths, graphs, channels or choices, or steers the tool's own log. */
static const enum param counting[] = {PARAM_DEBUG, PARAM_DEBUG_SUBSYS, PARAM_DEBUG_FILE,
	PARAM_DEBUG_TIMESTAMP_FORMAT, PARAM_DEBUG_TIMESTAMP_LEVELS, PARAM_CONF_FILE,
	PARAM_ENV_PLUGIN, PARAM_ALGO, PARAM_PROTO, PARAM_SHM_DISABLE, PARAM_P2P_DISABLE,
	PARAM_P2P_LEVEL, PARAM_P2P_READ, PARAM_IGNORE_DISABLED_P2P, PARAM_NVB_DISABLE,
	PARAM_NET_GDR_LEVEL, PARAM_NET_GDR_READ, PARAM_NET_GDR_C2C,
	PARAM_NET_DISABLE_INTRA, PARAM_PXN_DISABLE, PARAM_PXN_C2C, PARAM_P2P_PXN_LEVEL,
	PARAM_CROSS_NIC, PARAM_NETDEVS_POLICY, PARAM_IB_MERGE_NICS, PARAM_NET_MERGE_LEVEL,
	PARAM_NTHREADS, PARAM_LL128_NTHREADS, PARAM_THREAD_THRESHOLDS, PARAM_NET_OVERHEAD,
	PARAM_NVLS_ENABLE, PARAM_PAT_ENABLE, PARAM_COLLNET_NODE_THRESHOLD,
	PARAM_LL128_C2C, PARAM_MIN_CTAS, PARAM_MAX_CTAS, PARAM_MIN_NCHANNELS,
	PARAM_MAX_NCHANNELS, PARAM_MIN_NRINGS, PARAM_MAX_NRINGS, PARAM_MIN_P2P_NCHANNELS,
	PARAM_MAX_P2P_NCHANNELS, PARAM_NCHANNELS_PER_NET_PEER,
	PARAM_P2P_PER_CHANNEL_NET_BW, PARAM_P2P_MAX_PEERS, PARAM_NVLS_NCHANNELS,
	PARAM_NVLS_CHUNKSIZE, PARAM_NVLSTREE_MAX_CHUNKSIZE, PARAM_MNNVL_ENABLE,
	PARAM_GRAPH_FILE, PARAM_GRAPH_DUMP_FILE};

/* Names after "NCCL_", with a space around each. */
static const struct {
	enum graph_env_why why;
	const char *names;
} others[] = {
	{GRAPH_ENV_RUNNING,
		" WARN_ENABLE_DEBUG_INFO SET_THREAD_NAME SOCKET_FAMILY SOCKET_NTHREADS "
		"NSOCKS_PERTHREAD SOCKET_INLINE SOCKET_MIN_TASKSIZE SOCKET_RCVBUF "
		"SOCKET_SNDBUF SOCKET_RETRY_CNT SOCKET_RETRY_SLEEP_MSEC "
		"SOCKET_POLL_TIMEOUT_MSEC SOCKET_MAGIC COMM_ID OOB_NET_ENABLE "
		"OOB_NET_IFNAME UID_STAGGER_THRESHOLD UID_STAGGER_RATE HOSTID "
		"IB_GID_INDEX IB_ADDR_FAMILY IB_ADDR_RANGE IB_ROCE_VERSION_NUM "
		"IB_TIMEOUT "
		"IB_RETRY_CNT IB_SL IB_TC IB_FIFO_TC IB_PKEY IB_QPS_PER_CONNECTION "
		"IB_SPLIT_DATA_ON_QPS IB_AR_THRESHOLD IB_ADAPTIVE_ROUTING IB_ECE_ENABLE "
		"IB_PCI_RELAXED_ORDERING IB_DATA_DIRECT IB_RETURN_ASYNC_EVENTS "
		"IB_RESILIENCY_PORT_FAILOVER IB_RESILIENCY_PORT_RECOVERY "
		"P2P_DIRECT_DISABLE P2P_USE_CUDA_MEMCPY NVB_PRECONNECT SHM_LOCALITY "
		"CUMEM_ENABLE CUMEM_HOST_ENABLE GDR_FLUSH_DISABLE NET_FORCE_FLUSH "
		"DMABUF_ENABLE GDRCOPY_ENABLE NET_SHARED_BUFFERS NET_SHARED_COMMS "
		"BUFFSIZE LL_BUFFSIZE LL128_BUFFSIZE P2P_NET_CHUNKSIZE P2P_PCI_CHUNKSIZE "
		"P2P_NVL_CHUNKSIZE P2P_LL_THRESHOLD ALLOC_P2P_NET_LL_BUFFERS "
		"CGA_CLUSTER_SIZE TOPO_DUMP_FILE TOPO_DUMP_FILE_RANK "
		"GRAPH_DUMP_FILE_RANK IGNORE_CPU_AFFINITY PROXY_CPUSET RUNTIME_CONNECT "
		"COMM_BLOCKING COMM_SPLIT_SHARE_RESOURCES COMM_SHRINK_SHARE_RESOURCES "
		"GRAPH_REGISTER LOCAL_REGISTER LEGACY_CUDA_REGISTER WIN_ENABLE "
		"SINGLE_PROC_MEM_REG_ENABLE GRAPH_MIXING_SUPPORT GRAPH_STREAM_ORDERING "
		"LAUNCH_ORDER_IMPLICIT LAUNCH_RACE_FATAL LAUNCH_MODE "
		"CHECK_MODE CHECK_POINTERS RAS_ENABLE RAS_ADDR "
		"RAS_TIMEOUT_FACTOR IPC_USE_ABSTRACT_SOCKET GIN_ENABLE GIN_TYPE "
		"SYM_CE_THRESHOLD SYM_KERNEL WIN_STRIDE RMA_DISABLE "
		"REPORT_CONNECT_PROGRESS CONNECT_ROUND_MAX_PEERS WORK_FIFO_BYTES "
		"WORK_ARGS_BYTES "},
	{GRAPH_ENV_PLUGIN, " TUNER_PLUGIN PROFILER_PLUGIN GIN_PLUGIN RMA_PLUGIN "},
	{GRAPH_ENV_MODEL,
		" NET_FORCE_MERGE NET_MERGE_POLICY CTA_POLICY MULTI_RANK_GPU_ENABLE "},
	{GRAPH_ENV_COLLNET, " COLLNET_ENABLE "},
	{GRAPH_ENV_MNNVL, " MNNVL_UUID MNNVL_CLIQUE_ID MNNVL_CROSS_CLIQUE "},
	{GRAPH_ENV_SEEN, " SOCKET_IFNAME IB_HCA IB_DISABLE TOPO_FILE NET NET_PLUGIN "},
	{GRAPH_ENV_GONE,
		" P2P_DIRECT_READ P2P_DIRECT_WRITE IB_CUDA_SUPPORT IB_GDR_LEVEL "
		"SINGLE_RING_THRESHOLD LL_THRESHOLD TREE_THRESHOLD SHM_USE_CUDA_MEMCPY "
		"SHM_MEMCPY_MODE CHECKS_DISABLE "},
};

static const char *const reasons[GRAPH_ENV_REASONS] = {
	[GRAPH_ENV_RUNNING] = "no path, graph, channel or choice depends on it",
	[GRAPH_ENV_PLUGIN] = "no plugin is loaded",
	[GRAPH_ENV_MODEL] = "what it does is not modelled",
	[GRAPH_ENV_COLLNET] = "no plugin is loaded; --collnet supposes one",
	[GRAPH_ENV_MNNVL] = "--mnnvl says which machines share NVLinks",
	[GRAPH_ENV_SEEN] = "it is about the machine one runs on, and others are named",
	[GRAPH_ENV_GONE] = "NCCL has no such variable, or has it no more",
	[GRAPH_ENV_UNKNOWN] = "it is not known here",
};

static bool counts(const char *name)
{
	enum param id;

	if (!param_find(name, &id))
		return false;
	for (size_t i = 0; i < sizeof(counting) / sizeof(counting[0]); i++)
		if (counting[i] == id)
			return true;
	return false;
}

static bool lists(const char *names, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = strstr(names, name); at; at = strstr(at + 1, name))
		if (at[-1] == ' ' && at[length] == ' ')
			return true;
	return false;
}

enum graph_env_why graph_env_why(const char *name, bool is_this_machine)
{
	if (counts(name))
		return GRAPH_ENV_COUNTS;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!lists(others[i].names, name + PREFIX_BYTES))
			continue;
		return others[i].why == GRAPH_ENV_SEEN && is_this_machine
			       ? GRAPH_ENV_COUNTS
			       : others[i].why;
	}
	return GRAPH_ENV_UNKNOWN;
}

/* nccl-tests' own are not NCCL's; unset and empty are the same. */
static bool name_of(const char *entry, char name[LINE_BYTES])
{
	size_t length = strcspn(entry, "=");

	if (strncmp(entry, "NCCL_", PREFIX_BYTES) ||
		!strncmp(entry + PREFIX_BYTES, "TESTS_", strlen("TESTS_")) ||
		length <= PREFIX_BYTES || length >= LINE_BYTES || !entry[length] ||
		!entry[length + 1])
		return false;
	memcpy(name, entry, length);
	name[length] = 0;
	return true;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_this(const struct machine_args *args)
{
	for (int i = 0; i < args->name_count; i++)
		if (!strcmp(args->names[i], "this"))
			return true;
	return !args->name_count;
}

static void tell(const char *command, bool here, const char *also)
{
	size_t count = 0;
	char **sorted;

	while (environ && environ[count])
		count++;
	sorted = calloc(count + 1, sizeof(*sorted));
	if (!sorted)
		return;
	if (count)
		memcpy(sorted, environ, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), by_text);
	for (int why = GRAPH_ENV_RUNNING; why < GRAPH_ENV_REASONS; why++) {
		char name[LINE_BYTES];
		int told = 0;

		for (size_t i = 0; i < count; i++) {
			if (!name_of(sorted[i], name) ||
				(int)graph_env_why(name, here) != why ||
				lists(also, name + PREFIX_BYTES))
				continue;
			if (!told++)
				fprintf(stderr, "weft %s: without effect here:", command);
			fprintf(stderr, "%s %s", told > 1 ? "," : "", name);
		}
		if (told)
			fprintf(stderr, " (%s)\n", reasons[why]);
	}
	free(sorted);
}

void graph_env_tell(const struct machine_args *args)
{
	tell(args->command, is_this(args), " ");
}

void graph_env_tell_but(const char *command, const char *also)
{
	tell(command, false, also);
}
