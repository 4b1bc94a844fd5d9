/*
 * param.h - every environment variable the library reads, in one table.
 *
 * The table (param.c) gives name, default, range and meaning; `weft params` prints it and
 * nothing else in the tree calls getenv(). Precedence is NCCL's: environment, then the
 * file of NCCL_CONF_FILE or ~/.nccl.conf, then /etc/nccl.conf. A file holds NAME=VALUE
 * lines; a line with # in column 0 is a comment. Unlike NCCL we do not export a file's
 * values into the environment: that is not safe while other threads run. An environment
 * plugin (env_plugin.h) takes the place of all three.
 */
#ifndef BASE_PARAM_H
#define BASE_PARAM_H

#include <stdbool.h>
#include <stdint.h>

enum param {
	PARAM_DEBUG,		      /* NCCL_DEBUG */
	PARAM_DEBUG_LEVELS,	      /* NCCL_DEBUG_LEVELS */
	PARAM_DEBUG_SUBSYS,	      /* NCCL_DEBUG_SUBSYS */
	PARAM_DEBUG_FILE,	      /* NCCL_DEBUG_FILE */
	PARAM_DEBUG_TIMESTAMP_FORMAT, /* NCCL_DEBUG_TIMESTAMP_FORMAT */
	PARAM_DEBUG_TIMESTAMP_LEVELS, /* NCCL_DEBUG_TIMESTAMP_LEVELS */
	PARAM_CONF_FILE,	      /* NCCL_CONF_FILE */
	PARAM_ENV_PLUGIN,	      /* NCCL_ENV_PLUGIN */
	PARAM_COMM_ID,		      /* NCCL_COMM_ID */
	PARAM_HOSTID,		      /* NCCL_HOSTID */
	PARAM_COMM_BLOCKING,	      /* NCCL_COMM_BLOCKING */
	PARAM_RMA_EAGER_INIT,	      /* NCCL_RMA_EAGER_INIT */
	PARAM_REPORT_VERSION,	      /* WEFT_REPORT_VERSION: 0 = the header's */
	PARAM_ALGO,		      /* NCCL_ALGO */
	PARAM_CHECK_POINTERS,	      /* NCCL_CHECK_POINTERS */
	PARAM_SHM_DISABLE,	      /* NCCL_SHM_DISABLE */
	PARAM_ZERO_COPY,	      /* WEFT_ZERO_COPY: 1 read peers' buffers in place */
	PARAM_CMA,	    /* WEFT_CMA: -2 auto, 0 never, 1 always cross-memory attach */
	PARAM_BOOT_TIMEOUT, /* WEFT_BOOT_TIMEOUT_SEC: 0 = none */
	PARAM_TIMEOUT,	    /* WEFT_TIMEOUT_SEC: 0 = none, per collective */
	PARAM_STALL,	    /* WEFT_STALL_SEC: 0 = no warning */
	PARAM_SPIN,	    /* WEFT_SPIN: turns before a waiting rank yields; -1 auto */
	PARAM_SCHEDULE,	    /* WEFT_SCHEDULE: force a schedule by name */
	PARAM_SQUAD,	    /* WEFT_CALL_THREADS */
	PARAM_SHARE_BYTES,  /* WEFT_CALL_SHARE */
	PARAM_TILE,	    /* WEFT_TILE: bytes per tile; 0 auto */
	PARAM_EAGER_BYTES,  /* WEFT_EAGER_BYTES: -1 auto */
	PARAM_NET_LATENCY,  /* WEFT_NET_LATENCY_US: of a message between hosts */
	PARAM_NET_MB_PER_SEC, /* WEFT_NET_MB_PER_SEC: between two hosts, one way */
	PARAM_GPU_PART,	      /* WEFT_GPU_PART: bytes copied at a time; 0 auto */
	PARAM_GPU_HAUL,	      /* WEFT_GPU_HAUL: least bytes that kernels run; 0 none;
				 -1 auto */
	PARAM_ISA,	      /* WEFT_ISA: highest vector unit to use */
	PARAM_SECRET,	      /* WEFT_SECRET: shared key for ids made from NCCL_COMM_ID */
	PARAM_P2P_DISABLE,    /* NCCL_P2P_DISABLE */
	PARAM_P2P_LEVEL,      /* NCCL_P2P_LEVEL */
	PARAM_P2P_READ,	      /* NCCL_P2P_READ_ENABLE */
	PARAM_IGNORE_DISABLED_P2P,    /* NCCL_IGNORE_DISABLED_P2P */
	PARAM_NVB_DISABLE,	      /* NCCL_NVB_DISABLE */
	PARAM_NET_GDR_LEVEL,	      /* NCCL_NET_GDR_LEVEL */
	PARAM_NET_GDR_READ,	      /* NCCL_NET_GDR_READ */
	PARAM_NET_GDR_C2C,	      /* NCCL_NET_GDR_C2C */
	PARAM_GDR_FLUSH_DISABLE,      /* NCCL_GDR_FLUSH_DISABLE */
	PARAM_NET_DISABLE_INTRA,      /* NCCL_NET_DISABLE_INTRA */
	PARAM_PXN_DISABLE,	      /* NCCL_PXN_DISABLE */
	PARAM_PXN_C2C,		      /* NCCL_PXN_C2C */
	PARAM_P2P_PXN_LEVEL,	      /* NCCL_P2P_PXN_LEVEL */
	PARAM_CROSS_NIC,	      /* NCCL_CROSS_NIC */
	PARAM_NETDEVS_POLICY,	      /* NCCL_NETDEVS_POLICY */
	PARAM_IB_MERGE_NICS,	      /* NCCL_IB_MERGE_NICS */
	PARAM_NET_MERGE_LEVEL,	      /* NCCL_NET_MERGE_LEVEL */
	PARAM_PROTO,		      /* NCCL_PROTO */
	PARAM_NTHREADS,		      /* NCCL_NTHREADS */
	PARAM_LL128_NTHREADS,	      /* NCCL_LL128_NTHREADS */
	PARAM_THREAD_THRESHOLDS,      /* NCCL_THREAD_THRESHOLDS */
	PARAM_NET_OVERHEAD,	      /* NCCL_NET_OVERHEAD */
	PARAM_NVLS_ENABLE,	      /* NCCL_NVLS_ENABLE */
	PARAM_PAT_ENABLE,	      /* NCCL_PAT_ENABLE */
	PARAM_COLLNET_ENABLE,	      /* NCCL_COLLNET_ENABLE */
	PARAM_COLLNET_NODE_THRESHOLD, /* NCCL_COLLNET_NODE_THRESHOLD */
	PARAM_LL128_C2C,	      /* NCCL_LL128_C2C */
	PARAM_MIN_CTAS,		      /* NCCL_MIN_CTAS */
	PARAM_MAX_CTAS,		      /* NCCL_MAX_CTAS */
	PARAM_MIN_NCHANNELS,	      /* NCCL_MIN_NCHANNELS */
	PARAM_MAX_NCHANNELS,	      /* NCCL_MAX_NCHANNELS */
	PARAM_MIN_NRINGS,	      /* NCCL_MIN_NRINGS */
	PARAM_MAX_NRINGS,	      /* NCCL_MAX_NRINGS */
	PARAM_MIN_P2P_NCHANNELS,      /* NCCL_MIN_P2P_NCHANNELS */
	PARAM_MAX_P2P_NCHANNELS,      /* NCCL_MAX_P2P_NCHANNELS */
	PARAM_NCHANNELS_PER_NET_PEER, /* NCCL_NCHANNELS_PER_NET_PEER */
	PARAM_P2P_PER_CHANNEL_NET_BW, /* NCCL_P2P_PER_CHANNEL_NET_BW */
	PARAM_P2P_MAX_PEERS,	      /* NCCL_P2P_MAX_PEERS */
	PARAM_NVLS_NCHANNELS,	      /* NCCL_NVLS_NCHANNELS */
	PARAM_NVLS_CHUNKSIZE,	      /* NCCL_NVLS_CHUNKSIZE */
	PARAM_NVLSTREE_MAX_CHUNKSIZE, /* NCCL_NVLSTREE_MAX_CHUNKSIZE */
	PARAM_MNNVL_ENABLE,	      /* NCCL_MNNVL_ENABLE */
	PARAM_TUNER_PLUGIN,	      /* NCCL_TUNER_PLUGIN */
	PARAM_NET,		      /* NCCL_NET */
	PARAM_NET_PLUGIN,	      /* NCCL_NET_PLUGIN */
	PARAM_RMA_PLUGIN,	      /* NCCL_RMA_PLUGIN */
	PARAM_RMA_DISABLE,	      /* NCCL_RMA_DISABLE */
	PARAM_LOCAL_REGISTER,	      /* NCCL_LOCAL_REGISTER */
	PARAM_PROFILER_PLUGIN,	      /* NCCL_PROFILER_PLUGIN */
	PARAM_PLUGIN_SEC,	      /* WEFT_PLUGIN_SEC */
	PARAM_TOPO_FILE,	      /* NCCL_TOPO_FILE */
	PARAM_TOPO_DUMP_FILE,	      /* NCCL_TOPO_DUMP_FILE */
	PARAM_SOCKET_IFNAME,	      /* NCCL_SOCKET_IFNAME */
	PARAM_SOCKET_FAMILY,	      /* NCCL_SOCKET_FAMILY */
	PARAM_OOB_NET_IFNAME,	      /* NCCL_OOB_NET_IFNAME */
	PARAM_SOCKET_NTHREADS,	      /* NCCL_SOCKET_NTHREADS */
	PARAM_SOCKET_HELPERS,	      /* WEFT_SOCKET_HELPERS */
	PARAM_NSOCKS_PERTHREAD,	      /* NCCL_NSOCKS_PERTHREAD */
	PARAM_CHECKSUM,		      /* WEFT_CHECKSUM */
	PARAM_PORT_RANGE,	      /* WEFT_PORT_RANGE */
	PARAM_LISTEN_ANY,	      /* WEFT_LISTEN_ANY */
	PARAM_SILENCE,		      /* WEFT_SILENCE_SEC */
	PARAM_PORCH_RANKS,	      /* WEFT_PORCH_RANKS */
	PARAM_IB_HCA,		      /* NCCL_IB_HCA */
	PARAM_IB_DISABLE,	      /* NCCL_IB_DISABLE */
	PARAM_NVML_LIBRARY,	      /* WEFT_NVML_LIBRARY */
	PARAM_MPS_PIPE_DIRECTORY,     /* CUDA_MPS_PIPE_DIRECTORY */
	PARAM_CUDA_CONNECTIONS,	      /* CUDA_DEVICE_MAX_CONNECTIONS */
	PARAM_GRAPH_FILE,	      /* NCCL_GRAPH_FILE */
	PARAM_GRAPH_DUMP_FILE,	      /* NCCL_GRAPH_DUMP_FILE */
	PARAM_LAUNCHER,		      /* WEFT_LAUNCHER */
	PARAM_LAUNCH_RANK,	      /* WEFT_RANK */
	PARAM_LAUNCH_RANKS,	      /* WEFT_RANKS */
	PARAM_LAUNCH_LOCAL_RANK,      /* WEFT_LOCAL_RANK */
	PARAM_LAUNCH_LOCAL_RANKS,     /* WEFT_LOCAL_RANKS */
	PARAM_ID_FILE,		      /* WEFT_ID_FILE */
	PARAM_MASTER,		      /* WEFT_MASTER */
	PARAM_PMIX_LIBRARY,	      /* WEFT_PMIX_LIBRARY */
	PARAM_COUNT
};

enum param_kind { PARAM_INT, PARAM_TEXT };

struct param_info {
	const char *name;
	enum param_kind kind;
	int64_t fallback; /* of a PARAM_INT */
	int64_t lowest, highest;
	const char *text_fallback; /* of a PARAM_TEXT; NULL is "unset" */
	const char *meaning;
	bool is_private; /* the value is never logged, and tools should not print it */
};

enum param_origin { PARAM_FROM_DEFAULT, PARAM_FROM_ENVIRONMENT, PARAM_FROM_FILE };

/* The table row; never NULL for a valid id. */
const struct param_info *param_info(enum param id);

/* The id of a full name such as "NCCL_DEBUG"; false when the table has none. Every id
 * from 0 to PARAM_COUNT - 1 is valid, so a plain loop lists them all. */
bool param_find(const char *name, enum param *id);

/* Would this text be taken for the parameter? A text always is; nothing is read. */
bool param_takes(enum param id, const char *text);

/* The value now in force. Read once and cached; out of range or unparsable gives the
 * default and one log line. An empty value is an unset one. */
int64_t param_int(enum param id);

/* As above for text; NULL when unset and there is no default. The text lives as long as
 * the process. */
const char *param_text(enum param id);

/* Where the value in force came from. */
enum param_origin param_origin(enum param id);

/* Drop the cached value: the next read looks at the environment again. Texts handed out
 * before stay valid. The files are not read again. */
void param_forget(enum param id);

#endif
