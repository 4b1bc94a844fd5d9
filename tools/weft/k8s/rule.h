/*
 * rule.h - the rules' side of a check: what they look at, and the files they stand in.
 */
#ifndef TOOLS_WEFT_K8S_RULE_H
#define TOOLS_WEFT_K8S_RULE_H

#include "weft/k8s/edit.h"
#include "weft/k8s/finding.h"
#include "weft/k8s/words.h"
#include "weft/k8s/work.h"

struct check_options {
	const char *machine; /* --machine; NULL */
	int trainer_version; /* 201 for v2.1; what a TrainJob may have */
	bool has_graph;	     /* tell what NCCL will see */
};

enum { TRAINER_NEWEST = 202 };

/* One document under one set of options. */
struct rule_view {
	const struct check_options *options;
	const struct work *work;
	struct findings *findings; /* where what is found goes */
};

/* Each looks at a whole job. */
void rules_stranger(const struct rule_view *view);    /* strangers.c */
void rules_form(const struct rule_view *view);	      /* rules_form.c */
void rules_kinds(const struct rule_view *view);	      /* rules_kinds.c */
void rules_ranks(const struct rule_view *view);	      /* rules_ranks.c */
void rules_resources(const struct rule_view *view);   /* rules_resources.c */
void rules_pods(const struct rule_view *view);	      /* rules_pods.c */
void rules_environment(const struct rule_view *view); /* rules_env.c */

/* Variables that an override of a TrainJob's pods sets. */
void rules_override_environment(const struct rule_view *view, const struct node *list);

/* Is it about ranks that talk to each other? Then there are GPUs, or what starts ranks.
 */
bool rules_is_distributed(const struct work *work);

#endif
