/*
 * work.h - what one step asks of a GPU: products by their shapes, bytes that pass through
 * memory, time on the wires, bytes to and from the host. Nothing here is calibrated but
 * the wires, and those by `weft sim`.
 */
#ifndef TRAIN_WORK_H
#define TRAIN_WORK_H

#include "train/gpu.h"
#include "train/groups.h"
#include "train/net.h"

enum { WORK_GEMMS = 6 };

/* m x k by k x n, `count` times. */
struct work_gemm {
	double m, n, k, count;
};

/* The host of a job: what its processes share. */
struct train_host {
	double dram_gbps;	/* of the whole machine */
	double thread_gbps;	/* that one thread moves */
	double uplink_gbps;	/* of a PCI switch towards memory */
	uint32_t uplink_gpus;	/* GPUs of the job behind one */
	uint32_t cores;		/* of the machine */
	uint32_t threads;	/* of a process; 0: by the launcher's rule */
	uint32_t processes;	/* of the job on this machine */
	uint32_t pod_processes; /* in one pod */
	bool is_guessed;	/* nobody has described this machine's */
};

struct train_work {
	const struct train_gpu *gpu;
	enum train_precision precision;
	enum train_shard shard;
	enum train_recompute recompute;
	bool is_adapter, flash, is_aligned, is_zero_bubble;
	uint32_t no_overlap;
	/* Forward, of one layer and micro-batch. */
	struct work_gemm gemms[WORK_GEMMS]; /* of attention and dense feed-forward */
	struct work_gemm moe_gemms[4]; /* instead of the feed-forward; shared ones last */
	uint32_t gemm_count, moe_count,
		feed_first; /* products from here on are feed-forward */
	double moe_share;   /* of the layers */
	double attention_flops, score_bytes, point_bytes, moe_bytes;
	double attention_share;	   /* of the 16-bit peak, before calibration */
	bool is_ep_far;		   /* experts are reached over the network */
	double tp_s, ep_s, cp_s;   /* on the wires, forward */
	double gather_s, reduce_s; /* of one layer's shards, where all is sharded */
	struct work_gemm head;
	double head_bytes, embed_bytes;
	/* Of the step. */
	double micro_count, stages, chunks;
	double layers, layers_max;	 /* of all; of the fullest stage */
	double hop_s;			 /* one activation to the next stage */
	double dp_reduce_s, dp_gather_s; /* once a step .. */
	double reduces;			 /* .. or gradients after each micro-batch */
	double optimizer_bytes;
	double nodes;
	/* Host: bytes of one GPU, of a micro-batch each way and of the step in memory. */
	double host_in, host_out, host_update;
	double host_in_rate, host_update_rate; /* bytes a second */
	bool is_fed;			       /* shards come from the host */
	double flops_model;		       /* of the step, of one GPU */
	double tokens;			       /* of the step, of all */
};

/* One question; all borrowed. */
struct train_job {
	const struct train_model *model;
	const struct train_layout *layout;
	const struct train_order *order;
	struct train_net *net;
	const struct train_gpu *gpu;
	const struct train_host *host;
};

enum err work_make(const struct train_job *job, struct train_work *work);

/* What is known of the host of a machine; guesses are those of a two-socket server. */
void host_find(const char *machine, const struct train_gpu *gpu, struct train_host *host);

#endif
