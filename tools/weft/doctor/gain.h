/*
 * gain.h - what a cure would bring, by the engine of `weft sim`: the job as the log shows
 * it, and the same without the fault.
 */
#ifndef TOOLS_WEFT_DOCTOR_GAIN_H
#define TOOLS_WEFT_DOCTOR_GAIN_H

#include "sim/predict.h"
#include "weft/doctor/diagnose.h"

/* Put the gain into each finding that has one, where the machine is known: `machine`, or
 * the one that the log names when that is NULL. */
void gain_add(
	const struct log_facts *facts, const char *machine, struct diagnosis *diagnosis);

/* The job on a sound machine of this name. ERR_USAGE: nobody knows it. */
enum err gain_site(const struct log_facts *facts, const char *machine, uint32_t nodes,
	struct sim_site *site);

/* What the log's collective takes there at a size. */
enum err gain_ask(const struct log_facts *facts, const struct sim_site *site,
	uint64_t bytes, struct sim_answer *answer);

#endif
