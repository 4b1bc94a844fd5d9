/*
 * memory.h - what the most loaded GPU holds, by part.
 *
 * States by what is sharded; activations of a layer by the sums of Korthikanti et al.,
 * with grouped keys and a gated feed-forward counted; of a pipeline's stage as many
 * micro-batches as are under way there. Gradients by what they are summed in; where bf16
 * is added to fp32, the largest matrix is there once more.
 */
#ifndef TRAIN_MEMORY_H
#define TRAIN_MEMORY_H

#include "train/layout.h"

/* What nvidia-smi and PyTorch call a GB, and the tables with them. */
enum { MEMORY_GIB = 1 << 30 };

struct train_memory {
	double params, grads, optimizer; /* bytes */
	double activations;
	double logits;	 /* of the last stage */
	double gathered; /* layers whose shards are together for a while, matrices cast */
	double other;	 /* what the software takes besides */
	double total;
	double slack;	/* what the allocator keeps of the activations and can give back:
			 * a tenth of them where their factor is so high */
	double host;	/* of one GPU's process, bytes */
	uint32_t stage; /* that is the most loaded */
	uint32_t alive; /* micro-batches it keeps, of one chunk each */
};

/* What a software stack takes beyond the sums; the calibration has it. */
struct memory_habit {
	double factor;	   /* on the activations */
	double base_bytes; /* context, communicators, workspace */
};

void memory_make(const struct train_model *model, const struct train_layout *layout,
	const struct memory_habit *habit, struct train_memory *memory);

/* On a GPU that has so much: slack is given back before memory runs out, so what only
 * slack would bring over the brim fills the GPU and fits. */
void memory_settle(struct train_memory *memory, double have);

/* Parameters that a GPU of `stage` computes with: dense ones and experts. */
double memory_stage_dense(const struct train_model *model,
	const struct train_layout *layout, uint32_t stage);
double memory_stage_experts(const struct train_model *model,
	const struct train_layout *layout, uint32_t stage);

/* Bytes that one layer keeps of one micro-batch for its backward pass. */
double memory_layer_activations(
	const struct train_model *model, const struct train_layout *layout);

#endif
