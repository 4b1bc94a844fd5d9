/*
 * strangers.h - documents that no rule looks at: kinds without pods, such as a Service,
 * and kinds that are not known here. They are named, so that silence is not taken for
 * praise.
 */
#ifndef TOOLS_WEFT_K8S_STRANGERS_H
#define TOOLS_WEFT_K8S_STRANGERS_H

#include <jansson.h>

#include "weft/k8s/check.h"

/* A line that names the documents of a file without pods; nothing where there are none.
 */
void strangers_text(const struct check_result *result);

/* The same for programs, into a list. */
void strangers_json(const struct check_result *result, json_t *list);

/* Say on standard error why nothing was checked; true when that is a failure: there are
 * no objects of Kubernetes in these files, or their pods are not known here. */
bool strangers_alone(const struct check_result *results, uint32_t count);

#endif
