/*
 * live.h - what is wrong with a host for jobs of several GPUs or hosts.
 */
#ifndef TOOLS_WEFT_DOCTOR_LIVE_H
#define TOOLS_WEFT_DOCTOR_LIVE_H

#include <jansson.h>
#include <stdio.h>

#include "weft/doctor/diagnose.h"
#include "weft/doctor/host_facts.h"

void live_diagnose(const struct host_facts *facts, struct diagnosis *diagnosis);

/* What was seen, and what could not be. */
void live_print(FILE *file, const struct host_facts *facts);
/* "0 1 3" of a bit for each node. */
void live_nodes(char *text, size_t room, uint64_t nodes);
json_t *live_json(const struct host_facts *facts);

#endif
