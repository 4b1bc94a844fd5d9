#include "base/param.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/env_plugin.h"
#include "base/environment.h"
#include "base/log.h"

enum {
	FILE_LINE_BYTES = 4096,
	FILE_WORD_MAX = 1023,
	FILE_BYTES_MAX = 1 << 20,
	PATH_BYTES = 1024
};

/* clang-format off */
static const struct param_info table[PARAM_COUNT] = {
	[PARAM_DEBUG] = {"NCCL_DEBUG", PARAM_TEXT, .meaning =
		"what to log: VERSION, WARN, ATTN, INFO or TRACE, each with those before it"},
	[PARAM_DEBUG_LEVELS] = {"NCCL_DEBUG_LEVELS", PARAM_TEXT, .meaning =
		"comma list of single levels to log besides: VERSION, WARN, ATTN, INFO, ABORT, TRACE, ALL"},
	[PARAM_DEBUG_SUBSYS] = {"NCCL_DEBUG_SUBSYS", PARAM_TEXT,
		.text_fallback = "INIT,BOOTSTRAP,ENV", .meaning =
		"comma list of what INFO shows, e.g. INIT,COLL or ALL; ^ in front: all but these"},
	[PARAM_DEBUG_FILE] = {"NCCL_DEBUG_FILE", PARAM_TEXT, .meaning =
		"file for the log instead of stdout; %h is the host, %p the process"},
	[PARAM_DEBUG_TIMESTAMP_FORMAT] = {"NCCL_DEBUG_TIMESTAMP_FORMAT", PARAM_TEXT,
		.text_fallback = "[%F %T] ", .meaning =
		"strftime format before a line; %1f to %9f are fractions of a second, _ a space"},
	[PARAM_DEBUG_TIMESTAMP_LEVELS] = {"NCCL_DEBUG_TIMESTAMP_LEVELS", PARAM_TEXT,
		.text_fallback = "WARN,ATTN", .meaning =
		"comma list of levels that carry a timestamp, or ALL; ^ in front: all but these"},
	[PARAM_CONF_FILE] = {"NCCL_CONF_FILE", PARAM_TEXT, .meaning =
		"file of NAME=VALUE lines, at most 1 MiB, read instead of ~/.nccl.conf"},
	[PARAM_ENV_PLUGIN] = {"NCCL_ENV_PLUGIN", PARAM_TEXT, .meaning =
		"file, or X for libnccl-env-X.so, of a plugin that is asked instead of the environment; none"},
	[PARAM_COMM_ID] = {"NCCL_COMM_ID", PARAM_TEXT, .meaning =
		"address:port at which rank 0 gathers the ranks; whoever knows it can join "
		"unless WEFT_SECRET is set"},
	[PARAM_HOSTID] = {"NCCL_HOSTID", PARAM_TEXT, .meaning =
		"text that tells this host from others, instead of its name and boot id"},
	[PARAM_COMM_BLOCKING] = {"NCCL_COMM_BLOCKING", PARAM_INT, INT_MIN, 0, 1, .meaning =
		"0 or 1 overrides the blocking field of every communicator's config"},
	[PARAM_RMA_EAGER_INIT] = {"NCCL_RMA_EAGER_INIT", PARAM_INT, INT_MIN, 0, 1, .meaning =
		"0 or 1 overrides the rmaEagerInit field of every communicator's config"},
	[PARAM_REPORT_VERSION] = {"WEFT_REPORT_VERSION", PARAM_INT, 0, 0, 99999, .meaning =
		"what ncclGetVersion says instead of NCCL_VERSION_CODE, e.g. 22809; 0 that"},
	[PARAM_ALGO] = {"NCCL_ALGO", PARAM_TEXT, .meaning =
		"algorithms to use, [function:][^]a,b;function:..; host memory has Ring, Tree, PAT"},
	[PARAM_CHECK_POINTERS] = {"NCCL_CHECK_POINTERS", PARAM_INT, 0, 0, 1, .meaning =
		"1: check every buffer pointer of every call"},
	[PARAM_SHM_DISABLE] = {"NCCL_SHM_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: graphs assume that GPUs of a host do not share host memory"},
	[PARAM_ZERO_COPY] = {"WEFT_ZERO_COPY", PARAM_INT, 1, 0, 1, .meaning =
		"1: read peers' buffers in place where they can be reached"},
	[PARAM_CMA] = {"WEFT_CMA", PARAM_INT, -2, -2, 1, .meaning =
		"0: no cross-memory attach between processes; else for large calls where allowed"},
	[PARAM_BOOT_TIMEOUT] = {"WEFT_BOOT_TIMEOUT_SEC", PARAM_INT, 120, 0, 1000000, .meaning =
		"seconds that ranks wait for each other at the start; 0: for ever"},
	[PARAM_TIMEOUT] = {"WEFT_TIMEOUT_SEC", PARAM_INT, 0, 0, 1000000, .meaning =
		"seconds without progress after which a call fails; 0: no limit"},
	[PARAM_STALL] = {"WEFT_STALL_SEC", PARAM_INT, 5, 0, 1000000, .meaning =
		"seconds without progress after which a warning says who is missing; 0: never"},
	[PARAM_SPIN] = {"WEFT_SPIN", PARAM_INT, -1, -1, INT_MAX, .meaning =
		"turns a waiting rank spins before it yields its core; -1 automatic"},
	[PARAM_SCHEDULE] = {"WEFT_SCHEDULE", PARAM_TEXT, .meaning =
		"name of the schedule to use instead of the tuner's choice"},
	[PARAM_SQUAD] = {"WEFT_CALL_THREADS", PARAM_INT, 0, 0, 8, .meaning =
		"threads of a rank that move a large call between hosts, the caller's included; the "
		"least of all ranks counts; 0: by the cores there are"},
	[PARAM_SHARE_BYTES] = {"WEFT_CALL_SHARE", PARAM_INT, 0, 0, 1 << 30, .meaning =
		"such a thread takes at least so many bytes of each chunk or message; the most of all ranks counts; "
		"0: automatic"},
	[PARAM_TILE] = {"WEFT_TILE", PARAM_INT, 0, 0, 1 << 30, .meaning =
		"bytes per tile; 0 automatic"},
	[PARAM_EAGER_BYTES] = {"WEFT_EAGER_BYTES", PARAM_INT, -1, -1, 1 << 20, NULL,
		"largest message (bytes) sent without waiting for the receivers to arrive; "
		"-1 chooses by collective and ranks", false},
	[PARAM_NET_LATENCY] = {"WEFT_NET_LATENCY_US", PARAM_INT, 5, 0, 1000000, .meaning =
		"microseconds that a small message takes to another host; schedules are chosen by it"},
	[PARAM_NET_MB_PER_SEC] = {"WEFT_NET_MB_PER_SEC", PARAM_INT, 4000, 1, 1000000, .meaning =
		"megabytes a second between two hosts, one way; schedules are chosen by it"},
	[PARAM_GPU_PART] = {"WEFT_GPU_PART", PARAM_INT, 0, 0, 1 << 30, .meaning =
		"bytes of each chunk that are copied at a time between device and host memory in a call "
		"between hosts; 0 automatic"},
	[PARAM_GPU_HAUL] = {"WEFT_GPU_HAUL", PARAM_INT, -1, -1, INT64_MAX, .meaning =
		"collectives between hosts whose larger buffer has so many bytes are run by kernels of all "
		"ranks, whose messages a thread carries; the most that a rank asks for counts; 0 none; "
		"-1 automatic"},
	[PARAM_ISA] = {"WEFT_ISA", PARAM_TEXT, .meaning =
		"highest vector unit to use: base, avx2, avx512 or neon"},
	[PARAM_SECRET] = {"WEFT_SECRET", PARAM_TEXT, .is_private = true, .meaning =
		"key that all ranks share, mixed into an id made from NCCL_COMM_ID; keeps others out"},
	[PARAM_P2P_DISABLE] = {"NCCL_P2P_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: no direct access between GPUs"},
	[PARAM_P2P_LEVEL] = {"NCCL_P2P_LEVEL", PARAM_TEXT, .meaning =
		"how far GPUs may be for direct access: LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS, or 0-5"},
	[PARAM_P2P_READ] = {"NCCL_P2P_READ_ENABLE", PARAM_INT, -2, -2, 1, .meaning =
		"1: the receiver pulls, 0: the sender pushes; -2: pull between Ampere GPUs"},
	[PARAM_IGNORE_DISABLED_P2P] = {"NCCL_IGNORE_DISABLED_P2P", PARAM_INT, 0, 0, 2, .meaning =
		"2: do not ask NVML whether GPUs may access each other"},
	[PARAM_NVB_DISABLE] = {"NCCL_NVB_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: no NVLink path through another GPU"},
	[PARAM_NET_GDR_LEVEL] = {"NCCL_NET_GDR_LEVEL", PARAM_TEXT, .meaning =
		"how far a NIC may be from a GPU for GPUDirect RDMA, as NCCL_P2P_LEVEL"},
	[PARAM_NET_GDR_READ] = {"NCCL_NET_GDR_READ", PARAM_INT, -2, -2, 1, .meaning =
		"1: send by GPUDirect RDMA too, 0: only receive; -2: as the GPU is"},
	[PARAM_NET_GDR_C2C] = {"NCCL_NET_GDR_C2C", PARAM_INT, 1, 0, 1, .meaning =
		"1: GPUDirect RDMA over C2C to a NIC of the CPU"},
	[PARAM_GDR_FLUSH_DISABLE] = {"NCCL_GDR_FLUSH_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: what a network plugin received into GPU memory is not flushed"},
	[PARAM_NET_DISABLE_INTRA] = {"NCCL_NET_DISABLE_INTRA", PARAM_INT, 0, 0, 1, .meaning =
		"1: never use NICs between GPUs of one host"},
	[PARAM_PXN_DISABLE] = {"NCCL_PXN_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: no way to a NIC through another GPU"},
	[PARAM_PXN_C2C] = {"NCCL_PXN_C2C", PARAM_INT, 1, 0, 1, .meaning =
		"1: the relaying GPU may reach its NIC over C2C"},
	[PARAM_P2P_PXN_LEVEL] = {"NCCL_P2P_PXN_LEVEL", PARAM_INT, 2, 0, 2, .meaning =
		"relay send and receive: 0 never, 1 where needed, 2 always"},
	[PARAM_CROSS_NIC] = {"NCCL_CROSS_NIC", PARAM_INT, 2, 0, 2, .meaning =
		"may a ring enter by one NIC and leave by another: 0 no, 1 yes, 2 in pairs"},
	[PARAM_NETDEVS_POLICY] = {"NCCL_NETDEVS_POLICY", PARAM_TEXT, .meaning =
		"NICs per GPU: AUTO, ALL or MAX:N"},
	[PARAM_IB_MERGE_NICS] = {"NCCL_IB_MERGE_NICS", PARAM_INT, 1, 0, 1, .meaning =
		"1: the ports of one NIC are one device"},
	[PARAM_NET_MERGE_LEVEL] = {"NCCL_NET_MERGE_LEVEL", PARAM_TEXT, .meaning =
		"LOC: join no NICs; PORT and above: join the ports of one NIC"},
	[PARAM_PROTO] = {"NCCL_PROTO", PARAM_TEXT, .meaning =
		"protocols the model may choose, as NCCL_ALGO: LL, LL128, Simple; host memory has none"},
	[PARAM_NTHREADS] = {"NCCL_NTHREADS", PARAM_INT, -2, -2, INT_MAX, .meaning =
		"GPU threads per channel, Simple and LL: 64 to 512 in steps of 32; -2 automatic"},
	[PARAM_LL128_NTHREADS] = {"NCCL_LL128_NTHREADS", PARAM_INT, -2, -2, INT_MAX,
		.meaning =
		"GPU threads per channel, LL128: 160 to 640 in steps of 32; -2 automatic"},
	[PARAM_THREAD_THRESHOLDS] = {"NCCL_THREAD_THRESHOLDS", PARAM_TEXT, .meaning =
		"least bytes per thread, six numbers: Tree LL, LL128, Simple, then Ring"},
	[PARAM_NET_OVERHEAD] = {"NCCL_NET_OVERHEAD", PARAM_INT, -2, -2, 1000000000, .meaning =
		"nanoseconds that the model adds for posting to the network; -2 by processor"},
	[PARAM_NVLS_ENABLE] = {"NCCL_NVLS_ENABLE", PARAM_INT, 2, 0, 2, .meaning =
		"NVLink SHARP: 0 never, 1 and 2 where the machine has it"},
	[PARAM_PAT_ENABLE] = {"NCCL_PAT_ENABLE", PARAM_INT, 2, 0, 2, .meaning =
		"PAT algorithm: 0 never, 1 always, 2 with one rank per node"},
	[PARAM_COLLNET_ENABLE] = {"NCCL_COLLNET_ENABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: let a network that reduces do so, where its plugin can"},
	[PARAM_COLLNET_NODE_THRESHOLD] = {"NCCL_COLLNET_NODE_THRESHOLD", PARAM_INT, 2, 0,
		INT_MAX, .meaning = "least nodes for NCCL_COLLNET_ENABLE to have an effect"},
	[PARAM_LL128_C2C] = {"NCCL_LL128_C2C", PARAM_INT, 1, 0, 1, .meaning =
		"0: no LL128 to a NIC that is reached through another GPU or C2C"},
	[PARAM_MIN_CTAS] = {"NCCL_MIN_CTAS", PARAM_INT, INT_MIN, 1, 64, .meaning =
		"least channels of a graph; beats the minCTAs of a config"},
	[PARAM_MAX_CTAS] = {"NCCL_MAX_CTAS", PARAM_INT, INT_MIN, 1, 64, .meaning =
		"most channels of a graph; beats the maxCTAs of a config"},
	[PARAM_MIN_NCHANNELS] = {"NCCL_MIN_NCHANNELS", PARAM_INT, INT_MIN, 0, INT_MAX, .meaning =
		"as NCCL_MIN_CTAS, but not for NVLS; the stricter of both counts"},
	[PARAM_MAX_NCHANNELS] = {"NCCL_MAX_NCHANNELS", PARAM_INT, INT_MIN, 1, INT_MAX, .meaning =
		"as NCCL_MAX_CTAS, but not for NVLS; the stricter of both counts"},
	[PARAM_MIN_NRINGS] = {"NCCL_MIN_NRINGS", PARAM_INT, INT_MIN, 0, INT_MAX, .meaning =
		"old name of NCCL_MIN_NCHANNELS, which goes before it"},
	[PARAM_MAX_NRINGS] = {"NCCL_MAX_NRINGS", PARAM_INT, INT_MIN, 1, INT_MAX, .meaning =
		"old name of NCCL_MAX_NCHANNELS, which goes before it"},
	[PARAM_MIN_P2P_NCHANNELS] = {"NCCL_MIN_P2P_NCHANNELS", PARAM_INT, 1, 1, 64, .meaning =
		"least channels of sends and receives, rounded up to a power of two"},
	[PARAM_MAX_P2P_NCHANNELS] = {"NCCL_MAX_P2P_NCHANNELS", PARAM_INT, 64, 1, 64, .meaning =
		"most channels of sends and receives, rounded up to a power of two"},
	[PARAM_NCHANNELS_PER_NET_PEER] = {"NCCL_NCHANNELS_PER_NET_PEER", PARAM_INT, INT_MIN, 1, 64, .meaning =
		"channels of a send to another node; unset: as its NICs are"},
	[PARAM_P2P_PER_CHANNEL_NET_BW] = {"NCCL_P2P_PER_CHANNEL_NET_BW", PARAM_INT, 14, 1, INT_MAX, .meaning =
		"GB/s that a channel of a send to another node carries in the model"},
	[PARAM_P2P_MAX_PEERS] = {"NCCL_P2P_MAX_PEERS", PARAM_INT, INT_MIN, 1, INT_MAX, .meaning =
		"peers a rank sends to at once, for the channels of each; unset: all ranks"},
	[PARAM_NVLS_NCHANNELS] = {"NCCL_NVLS_NCHANNELS", PARAM_INT, INT_MIN, 1, 64, .meaning =
		"channels of NVLink SHARP; unset: by GPU and number of nodes"},
	[PARAM_NVLS_CHUNKSIZE] = {"NCCL_NVLS_CHUNKSIZE", PARAM_INT, INT_MIN, 1, INT_MAX, .meaning =
		"bytes of an NVLS chunk; unset: 131072, or as measured on Blackwell"},
	[PARAM_NVLSTREE_MAX_CHUNKSIZE] = {"NCCL_NVLSTREE_MAX_CHUNKSIZE", PARAM_INT, -2, 1, INT_MAX, .meaning =
		"most bytes of an NVLSTree chunk; -2 by number of nodes"},
	[PARAM_MNNVL_ENABLE] = {"NCCL_MNNVL_ENABLE", PARAM_INT, 2, 0, 2, .meaning =
		"0: no NVLink between hosts, whatever the machines have"},
	[PARAM_TUNER_PLUGIN] = {"NCCL_TUNER_PLUGIN", PARAM_TEXT, .meaning =
		"tuner plugin: a file, SUFFIX for libnccl-tuner-SUFFIX.so, or none; it may force what NCCL_ALGO can"},
	[PARAM_NET] = {"NCCL_NET", PARAM_TEXT, .meaning =
		"network between hosts by name, in any case: Socket, or what a plugin calls itself; "
		"one that is not there is an error"},
	[PARAM_NET_PLUGIN] = {"NCCL_NET_PLUGIN", PARAM_TEXT, .meaning =
		"comma list of network plugins: files, SUFFIX for libnccl-net-SUFFIX.so, or none; "
		"the first that works is used; unset: libnccl-net.so if there is one"},
	[PARAM_RMA_PLUGIN] = {"NCCL_RMA_PLUGIN", PARAM_TEXT, .meaning =
		"comma list of one-sided plugins: files, SUFFIX for libnccl-rma-SUFFIX.so, or none; unset: "
		"libnccl-rma.so if there is one; then the network plugin's own file is looked at"},
	[PARAM_RMA_DISABLE] = {"NCCL_RMA_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: no one-sided plugin is used, so that puts between hosts go by the control channel"},
	[PARAM_LOCAL_REGISTER] = {"NCCL_LOCAL_REGISTER", PARAM_INT, 1, 0, 1, .meaning =
		"1: a network plugin is told once of memory of ncclCommRegister and of windows, 0: for every message"},
	[PARAM_PROFILER_PLUGIN] = {"NCCL_PROFILER_PLUGIN", PARAM_TEXT, .meaning =
		"file, or X for libnccl-profiler-X.so, of a profiler plugin; none: no plugin"},
	[PARAM_PLUGIN_SEC] = {"WEFT_PLUGIN_SEC", PARAM_INT, 60, 0, 1000000, .meaning =
		"a network, one-sided or profiler plugin that has not started after so long is left alone; 0: wait for ever"},
	[PARAM_TOPO_FILE] = {"NCCL_TOPO_FILE", PARAM_TEXT, .meaning =
		"topology file that describes this machine; detection adds what it leaves out"},
	[PARAM_TOPO_DUMP_FILE] = {"NCCL_TOPO_DUMP_FILE", PARAM_TEXT, .meaning =
		"file for the topology once it is known; a communicator's has its ranks as devices"},
	[PARAM_SOCKET_IFNAME] = {"NCCL_SOCKET_IFNAME", PARAM_TEXT, .meaning =
		"comma list of interface name beginnings; ^ in front: all but these; =: whole names; "
		"several that are named carry each message together, and loopback counts only alone"},
	[PARAM_SOCKET_FAMILY] = {"NCCL_SOCKET_FAMILY", PARAM_TEXT, .meaning =
		"AF_INET or AF_INET6: use only addresses of this kind"},
	[PARAM_OOB_NET_IFNAME] = {"NCCL_OOB_NET_IFNAME", PARAM_TEXT, .meaning =
		"interfaces over which ranks meet and keep in touch, where not NCCL_SOCKET_IFNAME's; "
		"the same kind of list"},
	[PARAM_SOCKET_NTHREADS] = {"NCCL_SOCKET_NTHREADS", PARAM_INT, 0, 0, 16, .meaning =
		"times NCCL_NSOCKS_PERTHREAD: sockets of each connection with a rank of another host; see "
		"WEFT_SOCKET_HELPERS for their threads"},
	[PARAM_SOCKET_HELPERS] = {"WEFT_SOCKET_HELPERS", PARAM_INT, 0, 0, 1, .meaning =
		"1: NCCL_SOCKET_NTHREADS threads of each connection move its sockets; 0: the thread that "
		"makes the call does, which measures faster"},
	[PARAM_NSOCKS_PERTHREAD] = {"NCCL_NSOCKS_PERTHREAD", PARAM_INT, 1, 1, 64, .meaning =
		"sockets of a connection for each of NCCL_SOCKET_NTHREADS, or of the connection where that is "
		"0; messages are striped over all, at most 64"},
	[PARAM_CHECKSUM] = {"WEFT_CHECKSUM", PARAM_INT, 0, 0, 1, .meaning =
		"1: what ranks of several hosts send each other has checksums; the same on all ranks"},
	[PARAM_PORT_RANGE] = {"WEFT_PORT_RANGE", PARAM_TEXT, .meaning =
		"first-last: listen only on these TCP ports, for a firewall; unset: any that is free"},
	[PARAM_LISTEN_ANY] = {"WEFT_LISTEN_ANY", PARAM_INT, 0, 0, 1, .meaning =
		"1: listen on all addresses of the host, not only on the one that others are told"},
	[PARAM_SILENCE] = {"WEFT_SILENCE_SEC", PARAM_INT, 5, 0, 1000000, .meaning =
		"a rank of another host of which nothing is heard for so long is lost; 0: never"},
	[PARAM_PORCH_RANKS] = {"WEFT_PORCH_RANKS", PARAM_INT, 64, 0, 1000000, .meaning =
		"from so many ranks on, one process of each host meets the others for all of it"},
	[PARAM_IB_HCA] = {"NCCL_IB_HCA", PARAM_TEXT, .meaning =
		"comma list of RDMA devices, each with :port if wanted; ^ and = as for interfaces"},
	[PARAM_IB_DISABLE] = {"NCCL_IB_DISABLE", PARAM_INT, 0, 0, 1, .meaning =
		"1: pass over RDMA devices"},
	[PARAM_NVML_LIBRARY] = {"WEFT_NVML_LIBRARY", PARAM_TEXT, .meaning =
		"file to load instead of libnvidia-ml.so.1; a test describes GPUs with it"},
	[PARAM_MPS_PIPE_DIRECTORY] = {"CUDA_MPS_PIPE_DIRECTORY", PARAM_TEXT,
		.text_fallback = "/tmp/nvidia-mps", .meaning =
		"folder of NVIDIA's MPS daemon; CUDA reads it, we look whether a daemon is there"},
	[PARAM_CUDA_CONNECTIONS] = {"CUDA_DEVICE_MAX_CONNECTIONS", PARAM_INT, 8, 1, 32, .meaning =
		"channels CUDA has to a GPU; it reads this itself, we look whether a graph's ranks fit"},
	[PARAM_GRAPH_FILE] = {"NCCL_GRAPH_FILE", PARAM_TEXT, .meaning =
		"file of graphs to use instead of searching; one that does not fit is an error"},
	[PARAM_GRAPH_DUMP_FILE] = {"NCCL_GRAPH_DUMP_FILE", PARAM_TEXT, .meaning =
		"file that rank 0 writes a communicator's graphs to"},
	[PARAM_LAUNCHER] = {"WEFT_LAUNCHER", PARAM_TEXT, .meaning =
		"whose variables say which rank this is: torchrun, openmpi, pmi, pmix, slurm, "
		"weft, pet, env, kubernetes, or none; unset: the innermost that is there"},
	[PARAM_LAUNCH_RANK] = {"WEFT_RANK", PARAM_TEXT, .meaning =
		"this process's rank, from 0; weft run sets it"},
	[PARAM_LAUNCH_RANKS] = {"WEFT_RANKS", PARAM_TEXT, .meaning =
		"how many ranks there are; weft run sets it"},
	[PARAM_LAUNCH_LOCAL_RANK] = {"WEFT_LOCAL_RANK", PARAM_TEXT, .meaning =
		"this process's rank among those of its host; weft run sets it"},
	[PARAM_LAUNCH_LOCAL_RANKS] = {"WEFT_LOCAL_RANKS", PARAM_TEXT, .meaning =
		"how many ranks this host has; weft run sets it"},
	[PARAM_ID_FILE] = {"WEFT_ID_FILE", PARAM_TEXT, .meaning =
		"file, seen by all ranks, by which rank 0 tells the others where to meet"},
	[PARAM_MASTER] = {"WEFT_MASTER", PARAM_TEXT, .meaning =
		"host, or host:port, at which rank 0 tells the others where to meet"},
	[PARAM_PMIX_LIBRARY] = {"WEFT_PMIX_LIBRARY", PARAM_TEXT, .meaning =
		"file to load instead of libpmix.so.2"},
};
/* clang-format on */

/* A text of the environment or of a file; kept for ever because callers hold pointers. */
struct text {
	struct text *older;
	char bytes[];
};

/* A line of a configuration file. */
struct line {
	struct line *next;
	const char *value; /* inside `bytes`, after the name's end */
	char bytes[];
};

/* A cached value. Whoever sees `is_read` (acquire) sees the rest, which param_read()
 * wrote before its release. */
struct slot {
	atomic_bool is_read;
	_Atomic int64_t number;
	_Atomic(const char *) text;
	_Atomic int origin;
	struct text *texts; /* newest first */
	const char *found; /* of them: what was read last; NULL: nothing. With the lock */
};

static struct slot slots[PARAM_COUNT];

/* Guards all writing of slots, and `lines`. Never held while we log: the logger reads
 * parameters. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct line *lines; /* of the files, the strongest first */
static bool files_done;
static char files_why[PATH_BYTES + 64]; /* "" or what is to be said of them */

/* The logger's own variables, and those read before it can be asked, are read in silence:
 * a line about them would need them. */
static bool is_quiet(enum param id)
{
	return id <= PARAM_ENV_PLUGIN || table[id].is_private;
}

const struct param_info *param_info(enum param id)
{
	assert(id < PARAM_COUNT);
	return &table[id];
}

bool param_find(const char *name, enum param *id)
{
	for (int i = 0; i < PARAM_COUNT; i++) {
		if (strcmp(table[i].name, name))
			continue;
		*id = (enum param)i;
		return true;
	}
	return false;
}

/* Add one line of a file behind those there are; malformed lines are passed over. */
static struct line **line_add(struct line **tail, char *text)
{
	size_t name_bytes, bytes;
	struct line *line;

	text[strcspn(text, "\r\n")] = '\0';
	name_bytes = strcspn(text, "=");
	bytes = strlen(text);
	if (text[0] == '#' || !name_bytes || !text[name_bytes] ||
		name_bytes > FILE_WORD_MAX || bytes - name_bytes - 1 > FILE_WORD_MAX)
		return tail;
	line = malloc(sizeof(*line) + bytes + 1);
	if (!line)
		return tail;
	memcpy(line->bytes, text, bytes + 1);
	line->bytes[name_bytes] = '\0';
	line->value = line->bytes + name_bytes + 1;
	line->next = NULL;
	*tail = line;
	return &line->next;
}

/* Say, once the lock is free, why a file is passed over. */
static void file_pass_over(const char *path, const char *why)
{
	snprintf(files_why, sizeof(files_why), "%.*s is not read: %s", PATH_BYTES - 1,
		path, why);
}

/* NULL when there is none, or it is not what a file of settings is: whatever a variable
 * names must neither be waited for nor be without an end. */
static FILE *file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	const char *why = NULL;
	struct stat info;
	char byte;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &info))
		why = "it cannot be examined";
	else if (S_ISREG(info.st_mode) && info.st_size <= FILE_BYTES_MAX)
		return fdopen(fd, "r");
	else if (S_ISREG(info.st_mode))
		why = "it has more than 1 MiB";
	else if (!S_ISCHR(info.st_mode) || read(fd, &byte, 1))
		why = "it is no regular file"; /* /dev/null, which is empty, means none */
	if (why)
		file_pass_over(path, why);
	close(fd);
	return NULL;
}

static struct line **file_read(struct line **tail, const char *path)
{
	char text[FILE_LINE_BYTES];
	FILE *file = file_open(path);
	size_t bytes = 0;

	if (!file)
		return tail;
	while (bytes <= FILE_BYTES_MAX && fgets(text, sizeof(text), file)) {
		bytes += strlen(text) + 1; /* a line of zero bytes counts too */
		tail = line_add(tail, text);
	}
	if (bytes > FILE_BYTES_MAX)
		file_pass_over(path, "it goes on after 1 MiB");
	fclose(file);
	return tail;
}

/* ~/.nccl.conf; false when there is no home. */
static bool home_path(char *path, size_t room)
{
	const char *home = environment_find("HOME");
	struct passwd entry, *found = NULL;
	char buffer[2048];

	if (!home || !*home) {
		if (getpwuid_r(getuid(), &entry, buffer, sizeof(buffer), &found) ||
			!found)
			return false;
		home = entry.pw_dir;
	}
	return snprintf(path, room, "%s/.nccl.conf", home) < (int)room;
}

/* Once per process, before the first value is taken. The first line of a name wins, so
 * the user's file is read before the machine's. */
static void files_read(void)
{
	const char *named = environment_find(table[PARAM_CONF_FILE].name);
	struct line **tail = &lines;
	char path[PATH_BYTES];

	if (files_done)
		return;
	files_done = true;
	if (named && *named)
		tail = file_read(tail, named);
	else if (home_path(path, sizeof(path)))
		tail = file_read(tail, path);
	file_read(tail, "/etc/nccl.conf");
}

/* An empty text counts only where emptiness means something. */
static bool is_empty_kept(enum param id)
{
	return id == PARAM_DEBUG_TIMESTAMP_FORMAT;
}

/* The raw text in force, or NULL. */
static const char *text_find(enum param id, enum param_origin *origin)
{
	const char *text = environment_find(table[id].name);

	*origin = PARAM_FROM_ENVIRONMENT;
	if (text)
		return *text || is_empty_kept(id) ? text : NULL;
	files_read();
	*origin = PARAM_FROM_FILE;
	for (const struct line *line = lines; line; line = line->next)
		if (!strcmp(line->bytes, table[id].name))
			return *line->value || is_empty_kept(id) ? line->value : NULL;
	return NULL;
}

/* A copy that outlives the environment's: setenv() may free what it gave. */
static const char *text_keep(struct slot *slot, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct text *fresh;

	if (slot->texts && !strcmp(slot->texts->bytes, text))
		return slot->texts->bytes;
	fresh = malloc(sizeof(*fresh) + bytes);
	if (!fresh)
		return NULL;
	memcpy(fresh->bytes, text, bytes);
	fresh->older = slot->texts;
	slot->texts = fresh;
	return fresh->bytes;
}

/* The whole text is a number in range: 10, 0x10 and 010 are read as C does. */
static bool number_parse(const struct param_info *info, const char *text, int64_t *number)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text)
		return false;
	while (isspace((unsigned char)*end))
		end++;
	if (*end || value < info->lowest || value > info->highest)
		return false;
	*number = value;
	return true;
}

bool param_takes(enum param id, const char *text)
{
	int64_t number;

	return !*text || table[id].kind == PARAM_TEXT ||
	       number_parse(&table[id], text, &number);
}

/* One line per variable and process, after the value is cached and the lock is free. */
static void slot_log(enum param id, const char *text, bool is_good)
{
	const struct param_info *info = &table[id];

	if (!text || is_quiet(id))
		return;
	if (info->kind == PARAM_TEXT)
		log_info(LOG_ENV, "%s set by environment to %s", info->name, text);
	else if (is_good)
		log_info(LOG_ENV, "%s set by environment to %lld.", info->name,
			(long long)atomic_load(&slots[id].number));
	else
		log_info(LOG_ENV, "Invalid value %s for %s, using default %lld.", text,
			info->name, (long long)info->fallback);
}

/* One line per process, when a variable is read that the logger itself does not need. */
static void files_log(enum param id)
{
	char why[sizeof(files_why)];

	if (is_quiet(id))
		return;
	pthread_mutex_lock(&lock);
	memcpy(why, files_why, sizeof(why));
	files_why[0] = '\0';
	pthread_mutex_unlock(&lock);
	if (why[0])
		log_warn("%s", why);
}

/* The text in force, and where it is from; NULL: unset. `plugged` is what a plugin says
 * that is asked in place of the rest. With the lock. */
static const char *text_take(
	enum param id, bool is_plugged, const char *plugged, enum param_origin *origin)
{
	if (!is_plugged)
		return text_find(id, origin);
	*origin = PARAM_FROM_ENVIRONMENT;
	return plugged && (*plugged || is_empty_kept(id)) ? plugged : NULL;
}

/* Fill the slot. False when the text is no number where one is wanted. With the lock. */
static bool slot_set(enum param id, bool is_plugged, const char *plugged)
{
	const struct param_info *info = &table[id];
	struct slot *slot = &slots[id];
	enum param_origin origin;
	int64_t number = info->fallback;
	const char *text = text_take(id, is_plugged, plugged, &origin);
	bool is_good = true;

	if (text)
		text = text_keep(slot, text);
	if (text && info->kind == PARAM_INT)
		is_good = number_parse(info, text, &number);
	slot->found = text;
	if (!text || !is_good)
		origin = PARAM_FROM_DEFAULT;
	atomic_store_explicit(&slot->number, number, memory_order_relaxed);
	atomic_store_explicit(
		&slot->text, text ? text : info->text_fallback, memory_order_relaxed);
	atomic_store_explicit(&slot->origin, (int)origin, memory_order_relaxed);
	atomic_store_explicit(&slot->is_read, true, memory_order_release);
	return is_good;
}

/* A plugin is asked with the lock free: it may log, or call the library. */
static void param_read(enum param id)
{
	bool is_plugged = false, is_fresh, is_good = true;
	const char *text = NULL;
	char *plugged = NULL;

	if (id > PARAM_ENV_PLUGIN)
		is_plugged = env_plugin_ask(table[id].name, &plugged);
	pthread_mutex_lock(&lock);
	is_fresh = !atomic_load_explicit(&slots[id].is_read, memory_order_relaxed);
	if (is_fresh) {
		is_good = slot_set(id, is_plugged, plugged);
		text = slots[id].found;
	}
	pthread_mutex_unlock(&lock);
	free(plugged);
	if (!is_fresh)
		return;
	files_log(id);
	slot_log(id, text, is_good);
}

/* Out of line, so that asking again stays short. */
static __attribute__((noinline)) void slot_fill(enum param id)
{
	int saved = errno;

	param_read(id);
	errno = saved;
}

/* The slot, filled. The acquire pairs with the release in param_read(). */
static struct slot *slot_get(enum param id)
{
	assert(id < PARAM_COUNT);
	if (!atomic_load_explicit(&slots[id].is_read, memory_order_acquire))
		slot_fill(id);
	return &slots[id];
}

int64_t param_int(enum param id)
{
	assert(table[id].kind == PARAM_INT);
	return atomic_load_explicit(&slot_get(id)->number, memory_order_relaxed);
}

const char *param_text(enum param id)
{
	assert(table[id].kind == PARAM_TEXT);
	return atomic_load_explicit(&slot_get(id)->text, memory_order_relaxed);
}

enum param_origin param_origin(enum param id)
{
	return (enum param_origin)atomic_load_explicit(
		&slot_get(id)->origin, memory_order_relaxed);
}

void param_forget(enum param id)
{
	assert(id < PARAM_COUNT);
	pthread_mutex_lock(&lock);
	atomic_store_explicit(&slots[id].is_read, false, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}
