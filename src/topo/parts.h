/*
 * parts.h - adding, connecting and removing nodes while a topology is being made.
 */
#ifndef TOPO_PARTS_H
#define TOPO_PARTS_H

#include "topo/topo.h"

/* The node with this id, or NULL. */
struct topo_node *topo_find(const struct topo *topo, enum topo_kind kind, uint64_t id);

/* A new last node of a kind; NULL after err_set() when there are too many. */
struct topo_node *topo_add(struct topo *topo, enum topo_kind kind, uint64_t id);

/* A link from `from` to `to`; a second one of the same type adds its bandwidth. Links are
 * kept in descending order of bandwidth. */
enum err topo_connect(
	struct topo_node *from, struct topo_node *to, enum link_type type, float bw);

/* Both ways. */
enum err topo_connect_both(
	struct topo_node *a, struct topo_node *b, enum link_type type, float bw);

/* Take a node out, with all links to it. Paths are void afterwards. */
void topo_remove(struct topo *topo, enum topo_kind kind, uint32_t index);

/* Free all paths. */
void topo_forget_paths(struct topo *topo);

/* The two last stages of topo_build(): switches that are one in truth become one, CPUs of
 * a host are connected, and the way up is made the last link. */
enum err topo_finish_links(struct topo *topo);

#endif
