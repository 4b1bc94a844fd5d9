/*
 * siblings.h - hosts or pods of one job beside each other: who shares a machine?
 */
#ifndef TOOLS_WEFT_DOCTOR_SIBLINGS_H
#define TOOLS_WEFT_DOCTOR_SIBLINGS_H

#include "weft/doctor/diagnose.h"
#include "weft/doctor/host_facts.h"

enum { SIBLINGS_MAX = 256 };

struct sibling {
	char name[HOST_TEXT], boot_id[HOST_TEXT], driver[HOST_TEXT];
	int gpu_files;
};

struct siblings {
	struct sibling all[SIBLINGS_MAX];
	uint32_t count;
};

/* Those beyond SIBLINGS_MAX are left out. */
void siblings_add(struct siblings *siblings, const struct host_facts *facts);

void siblings_diagnose(const struct siblings *siblings, struct diagnosis *diagnosis);

#endif
