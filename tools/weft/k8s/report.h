/*
 * report.h - findings for people, for programs, and for the pages of a code host.
 */
#ifndef TOOLS_WEFT_K8S_REPORT_H
#define TOOLS_WEFT_K8S_REPORT_H

#include <jansson.h>

#include "weft/k8s/check.h"

/* A finding with place, why, what to do, and the lines it changes. */
void report_text(const struct check_result *result, bool is_quiet);

/* "2 files: 1 fatal, 3 performance, 0 notes" */
void report_total(const struct check_result *results, uint32_t count);

/* The caller's; NULL without memory. */
json_t *report_json(const struct check_result *results, uint32_t count);
json_t *report_sarif(const struct check_result *results, uint32_t count);

/* The table of rules. */
void report_rules(void);
json_t *report_rules_json(void);

#endif
