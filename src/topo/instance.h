/*
 * instance.h - machines that people rent or buy, by name: p5.48xlarge, dgx-h100.
 *
 * Each gives the tree NCCL would see there. Every row says where it comes from and what
 * in it is inferred, so that nobody takes a guess for a measurement. Machines of a cloud
 * are rows of a table (instance_table.c), others files in data/machines.
 */
#ifndef TOPO_INSTANCE_H
#define TOPO_INSTANCE_H

#include <stdint.h>

#include "base/err.h"
#include "topo/xml.h"

enum { INSTANCE_SUMMARY_BYTES = 120, INSTANCE_TEXT_BYTES = 400 };

struct instance_info {
	const char *name;
	char summary[INSTANCE_SUMMARY_BYTES]; /* one line */
	char source[INSTANCE_TEXT_BYTES];     /* what it rests on */
	char inferred[INSTANCE_TEXT_BYTES];   /* what nobody has checked */
	uint32_t gpu_count, net_count;
};

/* All of them, in the order tools print. Lives as long as the process. */
const struct instance_info *instance_list(uint32_t *count);

/* One by name, in any case of letters; NULL when there is none. */
const struct instance_info *instance_find(const char *name);

/* Its topology; the tree is the caller's. ERR_ARGUMENT for a name that is not there. */
enum err instance_tree(const char *name, struct xml_node **tree);

#endif
