/*
 * groups.h - which ranks work together, numbered as Megatron numbers them.
 *
 * An order such as "tp-cp-ep-dp-pp" names the axes, the fastest first. There are two
 * numberings: of the dense part, where ep is 1, and of the experts, where cp is 1 and dp
 * is what is left. A group holds some axes free and the others fixed.
 */
#ifndef TRAIN_GROUPS_H
#define TRAIN_GROUPS_H

#include "train/layout.h"

enum train_axis { AXIS_TP, AXIS_CP, AXIS_EP, AXIS_DP, AXIS_PP, AXES };

struct train_order {
	enum train_axis axes[AXES];
};

enum train_group {
	GROUP_TP,
	GROUP_CP,
	GROUP_DP,
	GROUP_DP_CP, /* that reduces gradients */
	GROUP_PP,
	GROUP_MODEL, /* tp and pp */
	GROUP_TP_CP,
	GROUP_TP_DP_CP,	 /* that agrees on scales of 8 bits */
	GROUP_EMBEDDING, /* the first and the last of a pipeline */
	GROUP_EP,
	GROUP_TP_EP,
	GROUP_EXPERT_DP,
	GROUPS
};

const char *group_name(enum train_group group);
bool group_is_expert(enum train_group group);

/* "tp-cp-ep-dp-pp"; ERR_USAGE unless every axis is there once. */
enum err order_parse(const char *text, struct train_order *order);

struct train_grid {
	uint32_t size[AXES], stride[AXES];
};

/* The numbering of the dense part or of the experts. ERR_USAGE where the two would not
 * have the same pipelines or, with pp not last, not the same dp, as Megatron refuses it.
 */
enum err grid_make(const struct train_layout *layout, const struct train_order *order,
	bool is_expert, struct train_grid *grid);

/* Without a sentence. */
bool grid_is_allowed(const struct train_layout *layout, const struct train_order *order);

struct train_group_shape {
	uint32_t size, count; /* ranks of a group; groups */
	uint32_t per_node;    /* ranks of one group on one node, the most */
	uint32_t nodes;	      /* that a group reaches, the most */
};

/* The ranks of group `index`, ascending; `ranks` has room for the group's size. */
uint32_t group_ranks(const struct train_grid *grid, enum train_group group,
	uint32_t index, uint32_t *ranks);

void group_shape(const struct train_grid *grid, enum train_group group,
	uint32_t gpus_per_node, struct train_group_shape *shape);

/* The first group in parts of `inner` neighbours: one part, and the group of the first
 * of each part. */
void group_split(const struct train_grid *grid, enum train_group group, uint32_t inner,
	uint32_t gpus_per_node, struct train_group_shape parts[2]);

#endif
