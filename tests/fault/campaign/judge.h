/*
 * judge.h - what may come of a job, and what did.
 */
#ifndef CAMPAIGN_JUDGE_H
#define CAMPAIGN_JUDGE_H

#include "page.h"
#include "run.h"

/* Fill in the verdict and the figures. */
void judge(const struct job *job, const struct page *page, const struct run_end *end,
	struct run_result *result);

/* One line: the job, who returned what and when, the verdict. */
void judge_print(
	const struct job *job, const struct page *page, struct run_result *result);

#endif
