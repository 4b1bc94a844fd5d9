#include "weft/k8s/env_names.h"

#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "base/param.h"
#include "weft/graph_env.h"

enum { NEAR_MAX = 3, NAME_BYTES = 96 };

/* After OFI_NCCL_; aws-ofi-nccl's, old ones too. */
static const char plugin[] =
	" USE_IPV6_TCP EXCLUDE_TCP_IF GDR_FLUSH_DISABLE NIC_DUP_CONNS CUDA_FLUSH_ENABLE "
	"MR_KEY_SIZE MR_CACHE_DISABLE CQ_READ_COUNT CQ_SIZE GIN_CQ_PROCESS_MAX_ITER "
	"PROTOCOL "
	"DISABLE_NATIVE_RDMA_CHECK DISABLE_GDR_REQUIRED_CHECK DISABLE_DMABUF "
	"MIN_STRIPE_SIZE "
	"SCHED_MAX_SMALL_RR_SIZE RDMA_MIN_POSTED_EAGER_BUFFERS "
	"RDMA_MAX_POSTED_EAGER_BUFFERS "
	"RDMA_MIN_POSTED_CONTROL_BUFFERS RDMA_MAX_POSTED_CONTROL_BUFFERS "
	"RDMA_MIN_POSTED_BOUNCE_BUFFERS RDMA_MAX_POSTED_BOUNCE_BUFFERS RR_CTRL_MSG "
	"NET_LATENCY "
	"EAGER_MAX_SIZE ERRORCHECK_MUTEX ENDPOINT_PER_COMM ABORT_ON_ERROR TUNER_TYPE "
	"TUNER_NUM_CHANNELS TUNER_NET_LATENCY TUNER_NET_COMP_OVERHEAD USE_LOW_LATENCY_TC "
	"FORCE_NUM_RAILS EARLY_COMPLETION DISABLE_CLOSE_MESSAGE "
	"SKIP_NICS_WITHOUT_ACCEL_AT_SAME_PCI_LEVEL CM_NUM_RX_BUFFERS PROGRESS_MODEL "
	"PLATFORM "
	"NVTX_TRACE_DIMENSION GDAKI_EFA_HW_COUNTER FORCE_PRODUCT_NAME "
	"TOPO_FILE_WRITE_ENABLE "
	"TOPO_FILE_TEMPLATE ROUND_ROBIN_THRESHOLD RDMA_RMA_BUFFERS TUNER_FORCE ";

/* After NCCL_: what graph_env.c need not know, and what frameworks and other plugins read
 * under this prefix. */
static const char more[] =
	" PARAM_DUMP_ALL NO_CACHE LAUNCH_RACE_FATAL ASYNC_ERROR_HANDLING BLOCKING_WAIT "
	"DESYNC_DEBUG ENABLE_TIMING IB_USE_INLINE IB_WARN_RAIL_LOCAL "
	"IB_SUBNET_AWARE_ROUTING "
	"PROXY_APPEND_BATCH_SIZE PROXY_DUMP_SIGNAL PROGRESS_APPENDOP_FREQ SET_STACK_SIZE "
	"STACK_SIZE CREATE_THREAD_CONTEXT L1_SHARED_MEMORY_CARVEOUT CHUNK_SIZE CHUNKSIZE "
	"NVLSTREE_ENABLE TUNER_CONFIG_PATH TRACE VERSION ROOT HOME LIB DIR INCLUDE_DIR "
	"LIB_DIR PROFILE_EVENT_MASK IB_ASYNC_EVENTS P2P_SCHEDULE_GROUP_SIZE DUMP_SIGNAL "
	"NVLS_TREE_MAX_CHUNKSIZE MEM_SYNC_DOMAIN IPC_USE_ABSTRACT_SOCKET UNPACK_TILE ";

/* Beginnings, after NCCL_ too. */
static const char *const families[] = {"TESTS_", "SYM_", "GIN_", "RMA_", "RAS_",
	"FASTRAK_", "GPUDIRECTTCPX_", "SHIMNET_", "INSPECTOR_", "PROFILER_", "IBEXT_",
	"UCX_", "OFI_", "SHARP_", "GDRCOPY_", "MLX5_", "EP_", "CE_"};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static bool lists(const char *names, const char *name)
{
	char padded[NAME_BYTES];

	snprintf(padded, sizeof(padded), " %s ", name);
	return strstr(names, padded) != NULL;
}

bool env_names_is_ours(const char *name)
{
	return begins(name, "NCCL_") || begins(name, "OFI_NCCL_") ||
	       begins(name, "FI_") || begins(name, "WEFT_");
}

static bool nccl_known(const char *name)
{
	enum graph_env_why why = graph_env_why(name, true);

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (begins(name + strlen("NCCL_"), families[i]))
			return true;
	return (why != GRAPH_ENV_UNKNOWN && why != GRAPH_ENV_GONE) ||
	       lists(more, name + strlen("NCCL_"));
}

bool env_names_known(const char *name)
{
	enum param id;

	if (begins(name, "OFI_NCCL_"))
		return lists(plugin, name + strlen("OFI_NCCL_"));
	if (begins(name, "NCCL_"))
		return param_find(name, &id) || nccl_known(name);
	return !begins(name, "WEFT_") || param_find(name, &id);
}

/* The best so far. */
struct guess {
	const char *name;
	uint32_t least;
	char *near;
	size_t bytes;
};

static void consider(struct guess *guess, const char *other)
{
	uint32_t far = edits_between(other, guess->name);

	if (far >= guess->least)
		return;
	guess->least = far;
	snprintf(guess->near, guess->bytes, "%s", other);
}

static void consider_list(struct guess *guess, const char *prefix, const char *names)
{
	for (names += strspn(names, " "); *names; names += strspn(names, " ")) {
		size_t length = strcspn(names, " ");
		char full[NAME_BYTES];

		snprintf(full, sizeof(full), "%s%.*s", prefix, (int)length, names);
		names += length;
		consider(guess, full);
	}
}

bool env_names_near(const char *name, char *near, size_t bytes)
{
	struct guess guess = {name, NEAR_MAX, near, bytes};

	for (int i = 0; i < PARAM_COUNT; i++)
		consider(&guess, param_info((enum param)i)->name);
	for (const char *list = graph_env_names(NULL); list; list = graph_env_names(list))
		consider_list(&guess, "NCCL_", list);
	consider_list(&guess, "OFI_NCCL_", plugin);
	return guess.least < NEAR_MAX;
}
