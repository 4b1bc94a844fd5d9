/*
 * vnic.h - NIC fusion: what NCCL's InfiniBand transport makes of a NIC with several
 * ports.
 */
#ifndef TOPO_VNIC_H
#define TOPO_VNIC_H

#include "topo/xml.h"

/* Join NETs that are at most `level` (enum path_type) apart into one device each: names
 * joined by "+", speeds added, numbered after the last physical one. Only devices whose
 * name starts with mlx5 are joined. What was joined is taken out. */
enum err vnic_merge(struct xml_node *tree, int level);

#endif
