/*
 * report.h - what the doctor says: for people, and for programs.
 */
#ifndef TOOLS_WEFT_DOCTOR_REPORT_H
#define TOOLS_WEFT_DOCTOR_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "weft/doctor/diagnose.h"

/* The head of one of several jobs. */
void report_job(
	FILE *file, const struct log_facts *facts, uint32_t number, uint32_t count);

/* What the logs show of the job, in a few lines. */
void report_facts(FILE *file, const struct log_facts *facts);

/* The findings; `facts` NULL: they are of this host, not of a log. */
void report_findings(
	FILE *file, const struct log_facts *facts, const struct diagnosis *diagnosis);

/* Both as JSON; NULL: no memory. */
json_t *report_facts_json(const struct log_facts *facts);
json_t *report_findings_json(
	const struct log_facts *facts, const struct diagnosis *diagnosis);

#endif
