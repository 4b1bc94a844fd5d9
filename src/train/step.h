/*
 * step.h - work becomes time: a step by its parts, with what bounds it.
 *
 * Eighteen numbers turn amounts into seconds (calib.h says where they come from).
 * Sending hides behind computing as far as there is something to hide behind: of x
 * seconds on the wires beside w of work, x x / (x + hide w) are seen.
 */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "train/work.h"

enum train_param {
	PARAM_SHARE,	 /* of the ceiling, that products get */
	PARAM_HALF,	 /* side of a product that halves it, on an A100 */
	PARAM_ATTENTION, /* times the share that its kernel is known for */
	PARAM_POINT,	 /* times that point-wise bytes pass through memory */
	PARAM_SCORE,	 /* the same of attention weights that are written out */
	PARAM_UNALIGNED, /* how much slower attention is with odd head sizes */
	PARAM_TP,	 /* share of tensor-parallel sending that is seen */
	PARAM_EP,	 /* of experts', inside an NVLink domain */
	PARAM_EP_FAR,	 /* the same over the network */
	PARAM_CP,	 /* of context-parallel */
	PARAM_HOP,	 /* of that between stages */
	PARAM_HIDE,	 /* how much data-parallel sending hides */
	PARAM_LAUNCH,	 /* us a layer, pass and micro-batch */
	PARAM_FIXED,	 /* ms a step */
	PARAM_CROWD,	 /* share that each doubling of the nodes adds, percent */
	PARAM_DP,	 /* times that data-parallel sending takes */
	PARAM_MOE,	 /* share of the ceiling that experts' products get */
	PARAM_ROUTE,	 /* us that the host takes for a layer with experts, each pass */
	TRAIN_PARAMS
};

struct train_params {
	double value[TRAIN_PARAMS];
};

enum step_part {
	PART_GEMM,
	PART_ATTENTION,
	PART_POINT, /* memory-bound operations */
	PART_TP,
	PART_CP,
	PART_EP,
	PART_PP, /* between stages */
	PART_BUBBLE,
	PART_DP,
	PART_HOST_COPY,	  /* parameters and gradients over PCI */
	PART_HOST_UPDATE, /* the optimizer on the host */
	PART_OPTIMIZER,
	PART_OTHER, /* launches, and waiting for the slowest */
	STEP_PARTS
};

const char *step_part_name(enum step_part part);

struct train_step {
	double seconds;
	double seen[STEP_PARTS];      /* of the step; they sum to it */
	double total[STEP_PARTS];     /* hidden time included */
	double forward_s, backward_s; /* of a micro-batch on the fullest stage */
	enum step_part bound;
	double mfu; /* of the 16-bit peak */
	double tokens_per_s;
};

void step_make(const struct train_work *work, const struct train_params *params,
	struct train_step *step);

/* Seconds of one layer and micro-batch, forward. */
struct step_layer {
	double gemm, attention, point, launch;
	double tp, cp, ep;
};

/* The same in two halves, for many layouts that share their layers. */
void step_layer_make(const struct train_work *work, const struct train_params *params,
	struct step_layer *layer);
void step_of_layer(const struct train_work *work, const struct train_params *params,
	const struct step_layer *layer, struct train_step *step);

/* Only the seconds. */
double step_seconds(const struct train_work *work, const struct train_params *params);

#endif
