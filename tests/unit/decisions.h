/*
 * decisions.h - NCCL's recorded decisions: the files under nccl-decisions, as a topology
 * with graphs, and compared with a cluster.
 */
#ifndef DECISIONS_H
#define DECISIONS_H

#include <jansson.h>
#include <stddef.h>

#include "graph/cluster.h"

/* The corpora: $WEFT_DATA, else what the build was told; "" when not there. */
const char *decisions_folder(void);

/* Call `visit` for every recorded file, in order of names. */
void decisions_each(
	void (*visit)(const char *name, json_t *root, void *context), void *context);

/* The domain of rank 0 as recorded: GPUs, NETs, CPUs, their paths, and the graphs. Exits
 * the test when the file is not as expected. */
struct domain *decisions_domain(json_t *root);
void decisions_domain_free(struct domain *domain);

/* Arrays and numbers equal and different; each difference is printed under `name`. */
struct tally {
	int equal, different;
};
void decisions_compare_comm(const char *name, json_t *root, const struct cluster *cluster,
	struct tally *tally);
void decisions_compare_channels(const char *name, json_t *root,
	const struct cluster *cluster, struct tally *tally);
void decisions_compare_nvls(const char *name, json_t *root, const struct cluster *cluster,
	struct tally *tally);

long decisions_int(json_t *object, const char *key);
double decisions_real(json_t *object, const char *key);

#endif
