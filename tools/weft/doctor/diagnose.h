/*
 * diagnose.h - from what logs say to what is wrong, root causes first.
 */
#ifndef TOOLS_WEFT_DOCTOR_DIAGNOSE_H
#define TOOLS_WEFT_DOCTOR_DIAGNOSE_H

#include "weft/doctor/log_facts.h"

enum { FINDINGS_MAX = 96, FINDING_TEXT_BYTES = 512 };

struct finding {
	enum finding_id id;
	enum severity severity;
	enum finding_id cause;	  /* another finding it follows from; FIND_COUNT none */
	struct evidence evidence; /* line 0: not of a log */
	char detail[FINDING_TEXT_BYTES]; /* what was seen here, a sentence or none */
	char remedy[FINDING_TEXT_BYTES]; /* instead of the catalogue's, or empty */
	char gain[FINDING_TEXT_BYTES];	 /* likewise of its cost */
};

struct diagnosis {
	struct finding findings[FINDINGS_MAX];
	uint32_t count;
};

/* Everything that the facts of a log show, in the order to read it in. */
void diagnose(const struct log_facts *facts, struct diagnosis *diagnosis);

/* Put a finding on the list with the catalogue's severity; never NULL: the last place is
 * taken again when all are. `evidence` may be NULL. */
struct finding *diagnosis_add(
	struct diagnosis *diagnosis, enum finding_id id, const struct evidence *evidence);

/* It, or NULL. */
struct finding *diagnosis_find(struct diagnosis *diagnosis, enum finding_id id);

/* Was one said before the other (negative)? By the clock where both have one, else by
 * place. */
int evidence_order(const struct evidence *a, const struct evidence *b);

/* Into the order in which they are told: severity, then causes before symptoms, then
 * time, then cost. */
void diagnosis_sort(struct diagnosis *diagnosis);

/* The worst; NOTE when there is none. */
enum severity diagnosis_severity(const struct diagnosis *diagnosis);

/* Questions that several detectors ask. */
bool facts_has_several_nodes(const struct log_facts *facts);
const char *facts_platform(const struct log_facts *facts); /* "p4d.24xlarge", NULL */

/* The parts of diagnose(), one file each. */
void diagnose_failures(const struct log_facts *facts, struct diagnosis *diagnosis);
void diagnose_network(const struct log_facts *facts, struct diagnosis *diagnosis);
void diagnose_node(const struct log_facts *facts, struct diagnosis *diagnosis);
void diagnose_rest(/* what the others leave unexplained */
	const struct log_facts *facts, struct diagnosis *diagnosis);
void diagnose_settings(const struct log_facts *facts, struct diagnosis *diagnosis);

#endif
