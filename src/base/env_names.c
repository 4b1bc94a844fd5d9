#include "base/env_names.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/edits.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/param.h"

enum { NEAR_EDITS = 3, SLIP_EDITS = 2, SHORT_NAME = 5 };

/* clang-format off */
/* NCCL_..: what NCCL, its tools, torch and vendors' plugins read beside our own table */
static const char *const of_nccl[] = {
	"ALLOC_P2P_NET_LL_BUFFERS", "ASYNC_ERROR_HANDLING", "BLOCKING_WAIT",
	"BUFFSIZE", "CGA_CLUSTER_SIZE", "CHECKS_DISABLE", "CHECK_MODE",
	"CHECK_POINTERS", "CHUNKSIZE", "CHUNK_SIZE", "COLLNET_ENABLE",
	"COLLNET_NODE_THRESHOLD", "COMM_BLOCKING", "COMM_ID",
	"COMM_SHRINK_SHARE_RESOURCES", "COMM_SPLIT_SHARE_RESOURCES",
	"CONNECT_ROUND_MAX_PEERS", "CREATE_THREAD_CONTEXT", "CTA_POLICY", "CUDA_PATH",
	"CUMEM_ENABLE", "CUMEM_HOST_ENABLE", "DESYNC_DEBUG", "DIR", "DMABUF_ENABLE",
	"DUMP_COMMS", "DUMP_SIGNAL", "ENABLE_TIMING", "ENABLE_VERSION_CHECK",
	"ENV_PLUGIN", "FASTRAK_CTRL_DEV", "FASTRAK_ENABLE_CONTROL_CHANNEL",
	"FASTRAK_ENABLE_HOTPATH_LOGGING", "FASTRAK_IFNAME",
	"FASTRAK_LLCM_DEVICE_DIRECTORY", "FASTRAK_NUM_FLOWS",
	"FASTRAK_PLUGIN_ACCEPT_TIMEOUT_MS", "FASTRAK_USE_LLCM", "FASTRAK_USE_SNAP",
	"GDRCOPY_ENABLE", "GDRCOPY_FIFO_ENABLE", "GDRCOPY_FLUSH_ENABLE",
	"GDRCOPY_SYNC_ENABLE", "GDR_FLUSH_DISABLE", "GIN_ENABLE", "GIN_PLUGIN",
	"GIN_TYPE", "GPUDIRECTTCPX_CTRL_DEV", "GPUDIRECTTCPX_FORCE_ACK",
	"GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS", "GPUDIRECTTCPX_RX_BINDINGS",
	"GPUDIRECTTCPX_SOCKET_IFNAME", "GPUDIRECTTCPX_TX_BINDINGS",
	"GPUDIRECTTCPX_UNIX_CLIENT_PREFIX", "GRAPH_DUMP_FILE_RANK",
	"GRAPH_HELPER_DISABLE", "GRAPH_MIXING_SUPPORT", "GRAPH_REGISTER",
	"GRAPH_STREAM_ORDERING", "HOME", "HOSTID", "IBEXT_DISABLE",
	"IB_ADAPTIVE_ROUTING", "IB_ADDR_FAMILY", "IB_ADDR_RANGE", "IB_AR_THRESHOLD",
	"IB_ASYNC_EVENTS", "IB_DATA_DIRECT", "IB_DISABLE", "IB_ECE_ENABLE",
	"IB_FIFO_TC", "IB_GID_INDEX", "IB_HCA", "IB_IS_GLOBAL", "IB_MERGE_VFS",
	"IB_MQP_RETRY_ALL", "IB_MQP_RETRY_CNT", "IB_MQP_RETRY_SLEEP_MSEC", "IB_OOO_RQ",
	"IB_PCI_RELAXED_ORDERING", "IB_PKEY", "IB_PREPOST_RECEIVE_WORK_REQUESTS",
	"IB_QPS_PER_CONNECTION", "IB_RECEIVER_SIDE_MATCHING_SCHEME",
	"IB_RESILIENCY_PORT_FAILOVER", "IB_RESILIENCY_PORT_RECOVERY", "IB_RETRY_CNT",
	"IB_RETURN_ASYNC_EVENTS", "IB_ROCE_VERSION_NUM", "IB_SL",
	"IB_SPLIT_DATA_ON_QPS", "IB_SUBNET_AWARE_ROUTING", "IB_TC", "IB_TIMEOUT",
	"IB_USE_INLINE", "IB_WARN_RAIL_LOCAL", "IGNORE_CPU_AFFINITY", "INCLUDE_DIR",
	"INSPECTOR_DUMP_DIR", "INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS",
	"INSPECTOR_ENABLE", "IPC_USE_ABSTRACT_SOCKET", "L1_SHARED_MEMORY_CARVEOUT",
	"LAUNCH_MODE", "LAUNCH_ORDER_IMPLICIT", "LAUNCH_RACE_FATAL",
	"LEGACY_CUDA_REGISTER", "LIB", "LIB_DIR", "LL128_BUFFSIZE", "LL_BUFFSIZE",
	"MEM_SYNC_DOMAIN", "MNNVL_CLIQUE_ID", "MNNVL_CROSS_CLIQUE",
	"MNNVL_SCATTER_NETS_ENABLE", "MNNVL_UUID", "MULTI_RANK_GPU_ENABLE", "NET",
	"NET_FORCE_FLUSH", "NET_FORCE_MERGE", "NET_MERGE_POLICY",
	"NET_OPTIONAL_RECV_COMPLETION", "NET_PLUGIN", "NET_PLUGIN_REF_COUNT",
	"NET_SHARED_BUFFERS", "NET_SHARED_COMMS", "NO_CACHE", "NSOCKS_PERTHREAD",
	"NVB_PRECONNECT", "NVLSTREE_ENABLE", "NVLS_TREE_ENABLE",
	"NVLS_TREE_MAX_CHUNKSIZE", "NVTX_DISABLE", "OOB_NET_ENABLE", "OOB_NET_IFNAME",
	"P2P_DIRECT_DISABLE", "P2P_LL_THRESHOLD", "P2P_NET_CHUNKSIZE",
	"P2P_NVL_CHUNKSIZE", "P2P_PCI_CHUNKSIZE", "P2P_SCHEDULE_GROUP_SIZE",
	"P2P_USE_CUDA_MEMCPY", "PARAM_DUMP_ALL", "PLUGIN_P2P", "PROFILER_PLUGIN",
	"PROFILE_DUMP_FILE", "PROFILE_EVENT_MASK", "PROGRESS_APPENDOP_FREQ",
	"PROXY_APPEND_BATCH_SIZE", "PROXY_CPUSET", "PROXY_DUMP_SIGNAL", "RAS_ADDR",
	"RAS_ENABLE", "RAS_TIMEOUT_FACTOR", "REPORT_CONNECT_PROGRESS", "RMA_DISABLE",
	"RMA_PLUGIN", "ROOT", "ROOT_DIR", "RUNTIME_CONNECT", "SET_CPU_STACK_SIZE",
	"SET_STACK_SIZE", "SET_THREAD_NAME", "SHARP_DISABLE",
	"SHARP_GROUP_SIZE_THRESH", "SHIMNET_GUEST_CONFIG_CHECKER_CONFIG_FILE",
	"SHM_LOCALITY", "SHM_MEMCPY_MODE", "SHM_USE_CUDA_MEMCPY", "SHRINK_SHARE",
	"SINGLE_PROC_MEM_REG_ENABLE", "SOCKET_FAMILY", "SOCKET_IFNAME",
	"SOCKET_INLINE", "SOCKET_MAGIC", "SOCKET_MIN_TASKSIZE", "SOCKET_NTHREADS",
	"SOCKET_POLL_TIMEOUT_MSEC", "SOCKET_RCVBUF", "SOCKET_RETRY_CNT",
	"SOCKET_RETRY_SLEEP_MSEC", "SOCKET_SNDBUF", "STACK_SIZE", "SYM_CE_THRESHOLD",
	"SYM_CTAS", "SYM_GIN_KERNELS_ENABLE", "SYM_KERNEL", "SYM_REGISTER_INTERNAL",
	"TESTS_ALLTOALLV_SPREAD", "TESTS_COLUMNS", "TESTS_DEVICE", "TESTS_MIN_BW",
	"TESTS_SPLIT", "TESTS_SPLIT_MASK", "TESTS_VERSION", "TIMEOUT_MS",
	"TOPO_DUMP_FILE", "TOPO_DUMP_FILE_RANK", "TOPO_FILE", "TRACE",
	"TUNER_CONFIG_PATH", "TUNER_PLUGIN", "UID_STAGGER_RATE",
	"UID_STAGGER_THRESHOLD", "UNPACK_BYTES", "UNPACK_TILE", "VERSION",
	"WARN_ENABLE_DEBUG_INFO", "WIN_ENABLE", "WIN_STRIDE", "WORK_ARGS_BYTES",
	"WORK_FIFO_BYTES",
};

/* OFI_NCCL_..: aws-ofi-nccl */
static const char *const of_ofi[] = {
	"ABORT_ON_ERROR", "CM_NUM_RX_BUFFERS", "CQ_READ_COUNT", "CQ_SIZE",
	"CUDA_FLUSH_ENABLE", "DISABLE_CLOSE_MESSAGE", "DISABLE_DMABUF",
	"DISABLE_GDR_REQUIRED_CHECK", "DISABLE_NATIVE_RDMA_CHECK", "EAGER_MAX_SIZE",
	"EARLY_COMPLETION", "ENDPOINT_PER_COMM", "ERRORCHECK_MUTEX", "EXCLUDE_TCP_IF",
	"FORCE_NUM_RAILS", "FORCE_PRODUCT_NAME", "GDAKI_EFA_HW_COUNTER",
	"GDR_FLUSH_DISABLE", "GIN_CQ_PROCESS_MAX_ITER", "MIN_STRIPE_SIZE",
	"MR_CACHE_DISABLE", "MR_KEY_SIZE", "NET_LATENCY", "NIC_DUP_CONNS",
	"NVTX_TRACE_DIMENSION", "PLATFORM", "PROGRESS_MODEL", "PROTOCOL",
	"RDMA_MAX_POSTED_CONTROL_BUFFERS", "RDMA_MAX_POSTED_EAGER_BUFFERS",
	"RDMA_MIN_POSTED_CONTROL_BUFFERS", "RDMA_MIN_POSTED_EAGER_BUFFERS",
	"RDMA_RMA_BUFFERS", "ROUND_ROBIN_THRESHOLD", "RR_CTRL_MSG",
	"SCHED_MAX_SMALL_RR_SIZE", "SKIP_NICS_WITHOUT_ACCEL_AT_SAME_PCI_LEVEL",
	"TOPO_FILE_TEMPLATE", "TOPO_FILE_WRITE_ENABLE", "TUNER_FORCE",
	"TUNER_NET_COMP_OVERHEAD", "TUNER_NET_LATENCY", "TUNER_NUM_CHANNELS",
	"TUNER_TYPE", "USE_IPV6_TCP", "USE_LOW_LATENCY_TC",
};

/* FI_EFA_..: libfabric's provider */
static const char *const of_efa[] = {
	"CQ_SIZE", "ENABLE_SHM_TRANSFER", "FORK_SAFE", "HOMOGENEOUS_PEERS", "IFACE",
	"INTERNAL_RX_REFILL_THRESHOLD", "INTER_MAX_MEDIUM_MESSAGE_SIZE",
	"INTER_MIN_READ_MESSAGE_SIZE", "INTER_MIN_READ_WRITE_SIZE", "MR_CACHE_ENABLE",
	"RECVWIN_SIZE", "RNR_RETRY", "RUNT_SIZE", "RX_SIZE", "SET_CUDA_SYNC_MEMOPS",
	"TX_MIN_CREDITS", "TX_SIZE", "USE_HUGE_PAGE", "USE_UNSOLICITED_WRITE_RECV",
	"USE_ZCPY_RX",
};

/* FI_..: libfabric itself. Its providers have many more, so what is not here is foreign. */
static const char *const of_fabric[] = {
	"FORK_UNSAFE", "HMEM", "HMEM_CUDA_ENABLE_XFER", "HMEM_CUDA_USE_DMABUF",
	"HMEM_CUDA_USE_GDRCOPY", "HMEM_DISABLE_P2P", "LOG_LEVEL", "LOG_PROV",
	"LOG_SUBSYS", "MR_CACHE_MAX_COUNT", "MR_CACHE_MAX_SIZE", "MR_CACHE_MONITOR",
	"PROVIDER", "PROVIDER_PATH", "UNIVERSE_SIZE",
};

static const struct name_family {
	const char *prefix;
	const char *const *names;
	int count;
} families[] = {
	{"OFI_NCCL_", of_ofi, sizeof(of_ofi) / sizeof(of_ofi[0])},
	{"FI_EFA_", of_efa, sizeof(of_efa) / sizeof(of_efa[0])},
	{"NCCL_", of_nccl, sizeof(of_nccl) / sizeof(of_nccl[0])},
	{"WEFT_", NULL, 0},
	/* the last: only near names of it are judged */
	{"FI_", of_fabric, sizeof(of_fabric) / sizeof(of_fabric[0])},
};

/* After NCCL_: what vendors' plugins and tests have for themselves, and name as they like */
static const char *const of_others[] = {"EP_", "FASTRAK_", "GPUDIRECTTCPX_", "IBEXT_",
	"INSPECTOR_", "MLX5_", "OFI_", "SHARP_", "SHIMNET_", "TESTS_", "UCX_"};

/* Names after their prefix. */
static const struct {
	const char *prefix, *name, *why;
} obsolete[] = {
	{"NCCL_", "IB_CUDA_SUPPORT", "was replaced by NCCL_NET_GDR_LEVEL in NCCL 2.4"},
	{"NCCL_", "IB_GDR_LEVEL", "was replaced by NCCL_NET_GDR_LEVEL in NCCL 2.4"},
	{"NCCL_", "SINGLE_RING_THRESHOLD", "was removed in NCCL 2.3"},
	{"NCCL_", "LL_THRESHOLD", "was removed in NCCL 2.5; NCCL_PROTO chooses protocols"},
	{"NCCL_", "TREE_THRESHOLD", "was removed in NCCL 2.5; NCCL_ALGO chooses algorithms"},
	{"NCCL_", "P2P_DIRECT_READ", "never was a variable of NCCL; NCCL_P2P_READ_ENABLE is"},
	{"NCCL_", "P2P_DIRECT_WRITE", "never was a variable of NCCL"},
	{"NCCL_", "NETWORK_TIMEOUT", "never was a variable of NCCL; frameworks set timeouts"},
	{"NCCL_", "TIMEOUT", "never was a variable of NCCL; frameworks set timeouts"},
	{"NCCL_", "LAUNCH_TIMEOUT", "never was a variable of NCCL"},
	{"NCCL_", "RINGS", "was removed; NCCL_GRAPH_FILE describes rings"},
	{"FI_EFA_", "USE_DEVICE_RDMA", "does nothing since libfabric 1.18: it is on where it can be"},
	{"OFI_NCCL_", "RDMA_MIN_POSTED_BOUNCE_BUFFERS", "was removed; aws-ofi-nccl refuses to start with it"},
	{"OFI_NCCL_", "RDMA_MAX_POSTED_BOUNCE_BUFFERS", "was removed; aws-ofi-nccl refuses to start with it"},
};
/* clang-format on */

enum {
	FABRIC = sizeof(families) / sizeof(families[0]) - 1,
	FAMILY_COUNT = FABRIC, /* those that know all names of theirs */
	OBSOLETE_COUNT = sizeof(obsolete) / sizeof(obsolete[0])
};

static bool begins(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static const struct name_family *name_family_of(const char *name)
{
	for (int i = 0; i < FAMILY_COUNT; i++)
		if (begins(name, families[i].prefix))
			return &families[i];
	return NULL;
}

/* Paths that builds are told, and that any program may have under a like name. */
static bool is_of_builds(const char *rest)
{
	static const char *const names[] = {"CUDA_PATH", "DIR", "HOME", "INCLUDE_DIR",
		"LIB", "LIB_DIR", "ROOT", "ROOT_DIR", "VERSION"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], rest))
			return true;
	return false;
}

/* Does a name begin as one of the family, but for a letter or the case? The first letter
 * counts: RCCL_, HCCL_ and their like are other libraries. */
static bool begins_almost(const char *name, const char *prefix)
{
	char head[ENV_NAME_BYTES];
	size_t bytes = 0;

	for (const char *at = prefix; *at; at++)
		if (*at == '_') {
			bytes += strcspn(name + bytes, "_");
			bytes += name[bytes] == '_';
		}
	if (bytes >= sizeof(head) ||
		tolower((unsigned char)*name) != tolower((unsigned char)*prefix))
		return false;
	memcpy(head, name, bytes);
	head[bytes] = 0;
	return edits_between(head, prefix) <= 1 ||
	       !strncasecmp(name, prefix, strlen(prefix) - 1);
}

/* The best of two: `other` when it is near enough, and nearer than `nearest`. */
static void take_slip(const char *name, const char *prefix, const char *rest,
	uint32_t *best, char nearest[ENV_NAME_BYTES])
{
	char other[ENV_NAME_BYTES];
	uint32_t edits;

	if (is_of_builds(rest))
		return;
	snprintf(other, sizeof(other), "%s%s", prefix, rest);
	edits = edits_between(name, other);
	if (edits >= *best || (strlen(rest) < SHORT_NAME && edits > 1))
		return;
	*best = edits;
	memcpy(nearest, other, sizeof(other));
}

/* A name that nobody reads because its beginning is misspelt: NCLL_DEBUG, nccl_debug,
 * FI_PROVDER. Only what is all but a known name counts, as most variables are others'. */
static bool is_slip(const char *name, char nearest[ENV_NAME_BYTES])
{
	uint32_t best = SLIP_EDITS + 1;

	for (int i = 0; i <= FABRIC; i++) {
		const struct name_family *family = &families[i];

		if (i == FABRIC ? strncasecmp(name, family->prefix, 3) != 0
				: !begins_almost(name, family->prefix))
			continue;
		for (int k = 0; k < family->count; k++)
			take_slip(name, family->prefix, family->names[k], &best, nearest);
		for (int k = 0; k < PARAM_COUNT; k++) {
			const char *own = param_info((enum param)k)->name;

			if (begins(own, family->prefix))
				take_slip(name, "", own, &best, nearest);
		}
	}
	/* 0 edits: the same in another case; or it is a name of libfabric's */
	return best <= SLIP_EDITS && strcmp(name, nearest) != 0;
}

enum env_name_kind env_name_kind(const char *name, const char **why)
{
	const struct name_family *family = name_family_of(name);
	char nearest[ENV_NAME_BYTES];
	const char *rest;
	enum param id;

	*why = NULL;
	if (!family)
		return is_slip(name, nearest) ? ENV_NAME_UNKNOWN : ENV_NAME_FOREIGN;
	rest = name + strlen(family->prefix);
	for (int i = 0; i < OBSOLETE_COUNT; i++)
		if (!strcmp(obsolete[i].prefix, family->prefix) &&
			!strcmp(obsolete[i].name, rest)) {
			*why = obsolete[i].why;
			return ENV_NAME_OBSOLETE;
		}
	if (param_find(name, &id))
		return ENV_NAME_KNOWN;
	for (int i = 0; i < family->count; i++)
		if (!strcmp(family->names[i], rest))
			return ENV_NAME_KNOWN;
	for (size_t i = 0; i < sizeof(of_others) / sizeof(of_others[0]); i++)
		if (!strcmp(family->prefix, "NCCL_") && begins(rest, of_others[i]))
			return ENV_NAME_KNOWN;
	return ENV_NAME_UNKNOWN;
}

bool env_name_is_ours(const char *name)
{
	return name_family_of(name) || begins(name, "FI_");
}

bool env_name_nearest(const char *name, char nearest[ENV_NAME_BYTES])
{
	const struct name_family *family = name_family_of(name);
	uint32_t best = NEAR_EDITS + 1;

	if (!family)
		return is_slip(name, nearest);
	for (int i = 0; i < PARAM_COUNT + family->count; i++) {
		const struct param_info *own = i < PARAM_COUNT ? param_info((enum param)i)
							       : NULL;
		char other[ENV_NAME_BYTES];
		uint32_t distance;

		snprintf(other, sizeof(other), "%s%s", own ? "" : family->prefix,
			own ? own->name : family->names[i - PARAM_COUNT]);
		distance = edits_between(name, other);
		if (distance < best) {
			best = distance;
			memcpy(nearest, other, sizeof(other));
		}
	}
	return best <= NEAR_EDITS;
}

static void warn(const char *name, enum env_name_kind kind, const char *why)
{
	char near[ENV_NAME_BYTES];

	if (kind == ENV_NAME_OBSOLETE)
		log_warn("%s is set and has no effect: it %s; unset it", name, why);
	else if (env_name_nearest(name, near))
		log_warn("%s is set and nobody knows it: is %s meant? unset it if not",
			name, near);
	else
		log_warn("%s is set and nobody knows it; unset it or correct its name",
			name);
}

static void warn_topology(void)
{
	const char *file = environment_find(param_info(PARAM_TOPO_FILE)->name);

	if (!file)
		return;
	if (!file[0])
		log_warn("NCCL_TOPO_FILE is set to nothing, which NCCL takes for a file "
			 "without a name; unset it");
	else if (access(file, R_OK))
		log_warn("NCCL_TOPO_FILE=%s cannot be read (%m), so the machine is only "
			 "looked at; correct the path or unset it",
			file);
}

/* It may be read on another host only, or much later. */
static void warn_value(const char *name, const char *value)
{
	const struct param_info *info;
	enum param id;

	if (!param_find(name, &id) || param_takes(id, value))
		return;
	info = param_info(id);
	log_warn("%s=%.40s does not count: it takes whole numbers from %lld to %lld, "
		 "and is %lld now; correct or unset it",
		name, value, (long long)info->lowest, (long long)info->highest,
		(long long)info->fallback);
}

void env_names_warn(void)
{
	static atomic_bool done;
	const char *text, *why;

	if (atomic_exchange(&done, true))
		return;
	warn_topology();
	for (uint32_t i = 0; (text = environment_at(i)); i++) {
		const char *equals = strchr(text, '=');
		size_t bytes = equals ? (size_t)(equals - text) : 0;
		char name[ENV_NAME_BYTES];
		enum env_name_kind kind;

		if (!bytes || bytes >= sizeof(name) || !name_family_of(text))
			continue;
		memcpy(name, text, bytes);
		name[bytes] = 0;
		warn_value(name, equals + 1);
		if (!begins(name, "NCCL_"))
			continue;
		kind = env_name_kind(name, &why);
		if (kind == ENV_NAME_UNKNOWN || kind == ENV_NAME_OBSOLETE)
			warn(name, kind, why);
	}
}
