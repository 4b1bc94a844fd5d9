/*
 * layout.h - how a model is cut over GPUs: degrees, batches, what is sharded, recomputed,
 * overlapped and kept on the host.
 */
#ifndef TRAIN_LAYOUT_H
#define TRAIN_LAYOUT_H

#include "train/model.h"

/* What the data-parallel ranks share between them. */
enum train_shard {
	SHARD_NONE,	 /* DDP: everything on each */
	SHARD_OPTIMIZER, /* ZeRO-1, Megatron's distributed optimizer */
	SHARD_GRADIENTS, /* ZeRO-2 */
	SHARD_ALL,	 /* ZeRO-3, FSDP's full shard */
	SHARD_KEEP,	 /* the same, parameters kept from forward to backward */
	SHARD_HYBRID,	 /* FSDP inside a node, DDP between nodes */
	SHARDS
};

enum train_recompute {
	RECOMPUTE_NONE,
	RECOMPUTE_SELECTIVE, /* the core of attention */
	RECOMPUTE_FULL,	     /* each layer from its input */
	RECOMPUTE_OPS,	     /* every other product: PyTorch's selective checkpoint of
				operations */
	RECOMPUTES
};

enum train_precision {
	PRECISION_BF16, /* fp16 is the same to us */
	PRECISION_FP8,
	PRECISION_MXFP8, /* a scale for each 32 elements */
	PRECISION_FP4,
	PRECISIONS
};

/* What a GPU keeps of a parameter's gradient while micro-batches are summed. */
enum train_grads {
	GRADS_FP32, /* Megatron's main gradients */
	GRADS_HALF, /* fp16 or bf16, summed as they are: DeepSpeed's fp16 optimizer */
	GRADS_BOTH, /* bf16 beside their sums in fp32: DeepSpeed's bf16 optimizer */
	GRADS
};

/* Which attention runs where it is one kernel; they differ by what they make of a GPU. */
enum train_kernel {
	KERNEL_VENDOR, /* cuDNN's, or the third FlashAttention */
	KERNEL_FLASH2,
	KERNEL_FLASH1, /* the first, or Triton's */
	KERNELS
};

/* Bits of `no_overlap`: whose sending is all seen, instead of hidden behind work. */
enum {
	EXPOSE_TP = 1,
	EXPOSE_CP = 2,
	EXPOSE_EP = 4,
	EXPOSE_PP = 8,
	EXPOSE_DP = 16,
	EXPOSE_ALL = 31
};

/* Bits of `offload`. */
enum { OFFLOAD_OPTIMIZER = 1, OFFLOAD_GRADIENTS = 2, OFFLOAD_PARAMS = 4 };

struct train_layout {
	uint32_t gpus; /* of all nodes; tp * cp * dp * pp */
	uint32_t tp, cp, dp, pp, ep;
	uint32_t etp;	     /* tensor parallelism of the experts; 0: tp */
	uint32_t vp;	     /* chunks of a stage; 1: not interleaved */
	uint32_t micro;	     /* sequences of a micro-batch */
	uint32_t batch;	     /* sequences of a step, of all GPUs */
	uint32_t sequence;   /* tokens */
	uint32_t shard_size; /* of SHARD_HYBRID: GPUs that share; 0: eight */
	enum train_shard shard;
	enum train_recompute recompute;
	enum train_precision precision;
	enum train_grads grads; /* of what is not sharded whole */
	bool is_pure_half;	/* no copy of anything in fp32 */
	uint32_t offload;
	uint32_t no_overlap;
	bool is_sequence_parallel; /* norms and dropouts cut over tp as well */
	bool is_zero_bubble;
	bool flash; /* attention in one kernel */
	enum train_kernel kernel;
};

bool layout_is_same(const struct train_layout *a, const struct train_layout *b);

const char *shard_name(enum train_shard shard);
const char *recompute_name(enum train_recompute recompute);
const char *precision_name(enum train_precision precision);
const char *grads_name(enum train_grads grads);
bool grads_find(const char *name, enum train_grads *grads);
bool shard_find(const char *name, enum train_shard *shard);
bool recompute_find(const char *name, enum train_recompute *recompute);
bool precision_find(const char *name, enum train_precision *precision);

/* One of each, micro-batches of one, a batch of `gpus`. */
void layout_default(uint32_t gpus, struct train_layout *layout);

/* Fill dp from the others and the batch from it, where they are 0. */
enum err layout_complete(struct train_layout *layout);

/* A sentence for the first thing that does not fit: degrees that do not multiply to the
 * GPUs, heads, layers, experts or batches that do not divide. */
enum err layout_check(const struct train_model *model, const struct train_layout *layout);

/* What shard_size comes to: at most the data-parallel ranks. */
uint32_t layout_shard_size(const struct train_layout *layout);

/* What etp comes to. */
uint32_t layout_expert_tp(const struct train_layout *layout);

/* Micro-batches of a step on each pipeline. */
uint32_t layout_micro_count(const struct train_layout *layout);

/* Layers of stage `stage`, with embedding and head counted as layers where that divides
 * and the layers alone do not; chunks of vp are summed. */
uint32_t layout_stage_layers(const struct train_model *model,
	const struct train_layout *layout, uint32_t stage);

/* Layers of the fullest stage. */
uint32_t layout_fullest(
	const struct train_model *model, const struct train_layout *layout);

/* "tp4 pp8 cp2 dp16 vp8 mbs1" */
enum { LAYOUT_TEXT_BYTES = 256 };
void layout_text(const struct train_layout *layout, char text[LAYOUT_TEXT_BYTES]);

#endif
