/*
 * share.h - which NICs each pod of a machine is given.
 *
 * A pod sees only the devices it was given. They are dealt as a scheduler that knows the
 * machine deals them: to every pod as many, the nearest first, and one that is nobody's
 * before one that is somebody's already.
 */
#ifndef TOPO_SHARE_H
#define TOPO_SHARE_H

#include "topo/xml.h"

struct share_args {
	const struct xml_node *tree;
	const int *devs; /* of the GPUs: the first pod's, the second's, .. */
	uint32_t pods, gpus_per_pod;
	uint32_t nets_per_pod; /* 0: an equal share, one at least */
};

struct share {
	uint32_t net_count; /* of the machine */
	uint32_t per_pod;
	uint32_t most_pods; /* that one NIC was given to */
	uint16_t *nets; /* owned; per_pod of each pod: place among <net>s of the tree */
};

/* ERR_USAGE when a pod is to have more NICs than the machine has. */
enum err share_nets(const struct share_args *args, struct share *share);
void share_free(struct share *share);

#endif
