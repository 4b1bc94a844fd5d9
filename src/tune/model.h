/*
 * model.h - NCCL's latency-bandwidth model, and what it chooses.
 *
 * For every collective, algorithm and protocol the model has a latency and an algorithm
 * bandwidth; a call takes the pair with the least time. It is NCCL's model, number
 * for number, so that what it says of a machine is what NCCL would do there.
 */
#ifndef TUNE_MODEL_H
#define TUNE_MODEL_H

#include "graph/cluster.h"

/* The five collectives the model knows; the numbers are NCCL's function ids. */
enum model_func {
	MODEL_BROADCAST,
	MODEL_REDUCE,
	MODEL_ALL_GATHER,
	MODEL_REDUCE_SCATTER,
	MODEL_ALL_REDUCE,
	MODEL_FUNCS
};

enum proto { PROTO_LL, PROTO_LL128, PROTO_SIMPLE, PROTO_COUNT };

/* What a message goes over, and generations of GPU: rows of the constants. */
enum model_wire { WIRE_NVLINK, WIRE_PCI, WIRE_NET, WIRE_COUNT };
enum model_gpu { GPU_VOLTA, GPU_AMPERE, GPU_HOPPER, GPU_BLACKWELL, GPU_COUNT };
enum { MODEL_SCALES = 3 }; /* one node, two, more */

/* The measured numbers: latencies in us, bandwidths in GB/s. Tuner plugins of version 5
 * and later are shown this very memory and may write to it, so the order and the type of
 * the members are an ABI. */
struct model_constants {
	double base_latency[ALGO_COUNT][PROTO_COUNT];
	double wire_latency[WIRE_COUNT][ALGO_COUNT][PROTO_COUNT];
	double ll_max[GPU_COUNT][MODEL_SCALES];		/* of all channels together */
	double ring_ll128_max[GPU_COUNT][MODEL_SCALES]; /* per channel, as the rest */
	double tree_ll128_max[GPU_COUNT][MODEL_SCALES];
	double tree_max[GPU_COUNT][MODEL_SCALES];
	double nvls_tree_max[GPU_COUNT][MODEL_SCALES];
};

/* NCCL_ALGO and NCCL_PROTO, parsed: is this function allowed this algorithm, protocol?
 * LL128 may be 2: only where the model thinks it safe. */
struct model_rules {
	bool algo[MODEL_FUNCS][ALGO_COUNT];
	int proto[MODEL_FUNCS][PROTO_COUNT];
	bool algo_set, proto_set; /* by the user */
	/* its algorithms were named, not excluded: nothing beside them is meant */
	bool algo_listed[MODEL_FUNCS];
	int nvls_enable, pat_enable; /* 0, 1, 2 auto */
	bool ll128_c2c;		     /* LL128 beyond PXB where the GPUs can */
	int threads, ll128_threads;  /* NCCL_NTHREADS, NCCL_LL128_NTHREADS; -2 auto */
	int net_overhead_ns;	     /* -2 auto */
	long thresholds[6];	     /* NCCL_THREAD_THRESHOLDS; -2 unset */
	struct model_constants constants;
};
/* From the environment / as if nothing were set. */
enum err model_rules_read(struct model_rules *rules);
void model_rules_default(struct model_rules *rules);
/* One list: `[func:][^]a,b;func2:...` into rules; ERR_USAGE names the unknown word. */
enum err model_algo_parse(const char *text, struct model_rules *rules);
enum err model_proto_parse(const char *text, struct model_rules *rules);

struct model {
	const struct cluster *cluster; /* borrowed */
	struct model_rules rules;
	float latency[MODEL_FUNCS][ALGO_COUNT][PROTO_COUNT];   /* us */
	float bandwidth[MODEL_FUNCS][ALGO_COUNT][PROTO_COUNT]; /* GB/s; 0 disabled */
	int max_threads[ALGO_COUNT][PROTO_COUNT];
	int64_t thresholds[ALGO_COUNT][PROTO_COUNT];
};

enum err model_make(const struct cluster *cluster, const struct model_rules *rules,
	struct model *model);

/* Elements and operator matter only where NVLS, PAT or fp8 have limits. */
struct model_call {
	enum model_func func;
	uint64_t
		bytes; /* larger of send and receive buffer, all ranks' blocks included */
	int pipe_ops;  /* collectives of the group; 1 alone */
	int type, op;  /* ncclDataType_t, ncclRedOp_t */
	bool registered; /* both buffers are; only tuner plugins ask */
};

struct model_choice {
	enum algo algo;
	enum proto proto;
	int channels;	   /* at most */
	int channels_used; /* by a lone call */
	int threads;
	float time_us;
};

/* The largest call of `bytes` or less in whole elements for every rank; 0 when there is
 * none, or only one rank: then nothing is sent at all. */
uint64_t model_round(const struct model *model, const struct model_call *call);

/* The fastest; ERR_USAGE when the user's lists leave nothing. */
enum err model_choose(const struct model *model, const struct model_call *call,
	struct model_choice *choice);

/* The two halves of model_choose(), for a tuner plugin to come between. */
typedef float model_costs[ALGO_COUNT][PROTO_COUNT]; /* us; negative: not usable */
#define MODEL_IGNORE (-1.0f)
void model_costs_fill(
	const struct model *model, const struct model_call *call, model_costs costs);
/* `channels` overrides when it is not 0. */
enum err model_costs_pick(const struct model *model, const struct model_call *call,
	model_costs costs, int channels, struct model_choice *choice);

/* The cost of one pair; negative when it cannot be used. */
float model_time(const struct model *model, const struct model_call *call, enum algo algo,
	enum proto proto);

/* "Tree", "LL128", "AllReduce": NCCL's spelling in NCCL_ALGO and in its tables. */
const char *algo_name(enum algo algo);
const char *proto_name(enum proto proto);
const char *model_func_name(enum model_func func);

#endif
