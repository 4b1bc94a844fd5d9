/*
 * finding.h - what is wrong with a manifest: the table of rules, and what they found.
 *
 * A rule has an id, a severity and an explanation; they stand in one table. A finding
 * adds where, what exactly, what to do, and the edits that do it.
 */
#ifndef TOOLS_WEFT_K8S_FINDING_H
#define TOOLS_WEFT_K8S_FINDING_H

#include <stdarg.h>

#include "weft/k8s/doc.h"
#include "weft/severity.h"

enum rule_id {
	/* form */
	RULE_YAML_SYNTAX,
	RULE_DUPLICATE_KEY,
	RULE_WRONG_TYPE,
	RULE_FIELD_UNKNOWN,
	RULE_CRD_VERSION,
	RULE_KIND_UNKNOWN,
	/* kinds */
	RULE_MASTER_REPLICAS,
	RULE_CONTAINER_NAME,
	RULE_OVERRIDE_FIELD,
	RULE_OVERRIDE_ENV,
	RULE_TARGET_JOBS,
	RULE_RUNTIME_NESTING,
	RULE_JOB_INDEXED,
	RULE_JOB_PARALLELISM,
	RULE_STATEFULSET_ORDER,
	RULE_ISTIO,
	/* ranks */
	RULE_SLOTS_GPU,
	RULE_NP_TOTAL,
	RULE_NPROC,
	RULE_NPROC_UNSET,
	RULE_LAUNCHER_GPU,
	RULE_PODS_SPLIT,
	/* resources */
	RULE_RES_NAME,
	RULE_RES_INTEGER,
	RULE_REQUESTS_LIMITS,
	RULE_GPU_TOO_MANY,
	RULE_EFA_TOO_MANY,
	RULE_EFA_MISSING,
	RULE_GPU_EFA_RATIO,
	RULE_RDMA_MISSING,
	RULE_INSTANCE_TYPE,
	RULE_HUGEPAGES_MEMORY,
	/* pods */
	RULE_SHM_MISSING,
	RULE_SHM_SMALL,
	RULE_SHM_MEDIUM,
	RULE_SHM_OVER_MEMORY,
	RULE_MEMLOCK,
	RULE_PRIVILEGED,
	RULE_CAPABILITY,
	RULE_HOST_NETWORK_DNS,
	RULE_HOST_NETWORK_PORTS,
	RULE_ZONE_PIN,
	RULE_TOLERATION,
	RULE_FABRIC_MANAGER,
	/* environment */
	RULE_ENV_UNKNOWN,
	RULE_ENV_EMPTY,
	RULE_ENV_HARMFUL,
	RULE_ENV_OBSOLETE,
	RULE_ENV_NO_EFFECT,
	RULE_ENV_FORCED,
	RULE_COUNT
};

struct rule {
	const char *id;
	enum severity severity;
	const char *title; /* a few words, for lists */
	const char *why;   /* two sentences */
};

extern const struct rule rules[RULE_COUNT];

/* Bytes of the file from `start` to before `end` become `text`. */
struct edit {
	size_t start, end;
	char *text; /* owned */
};

enum { FINDING_EDITS_MAX = 6 };

struct finding {
	enum rule_id rule;
	enum severity severity; /* the rule's, unless the finding knows better */
	uint32_t line, column;
	size_t start, end; /* what is pointed at */
	char *text;	   /* owned; what was found */
	char *todo;	   /* owned; what to do */
	struct edit edits[FINDING_EDITS_MAX];
	uint32_t edit_count;
};

struct findings {
	struct finding *list; /* owned */
	uint32_t count, room;
	bool is_full; /* no memory, or more than anybody reads */
};

/* A new finding at a node, or at the file's beginning where that is NULL. Never NULL:
 * what cannot be kept goes to a place where it is forgotten. */
struct finding *finding_add(struct findings *findings, enum rule_id rule,
	const struct node *node, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

void finding_todo(struct finding *finding, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* It wants no change any more. */
void finding_forget_edits(struct finding *finding);

/* Take out those of rules that are allowed to be broken. */
void findings_drop(struct findings *findings, const bool allowed[RULE_COUNT]);

/* By cost, then by place; the same thing said twice is said once. */
void findings_sort(struct findings *findings);

void findings_free(struct findings *findings);

#endif
