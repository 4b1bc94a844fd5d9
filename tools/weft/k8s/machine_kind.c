/* Instance types as Kubernetes offers them: GPUs, and the most EFA devices. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/edits.h"
#include "weft/k8s/work.h"

/* Sizes without EFA are not in the list of AWS's device plugin. */
static const struct machine_kind known[] = {
	{"p3.2xlarge", 1, 0},
	{"p3.8xlarge", 4, 0},
	{"p3.16xlarge", 8, 0},
	{"p3dn.24xlarge", 8, 1},
	{"p4d.24xlarge", 8, 4},
	{"p4de.24xlarge", 8, 4},
	{"p5.4xlarge", 1, 1},
	{"p5.48xlarge", 8, 32},
	{"p5e.48xlarge", 8, 32},
	{"p5en.48xlarge", 8, 16},
	{"p6-b200.48xlarge", 8, 8},
	{"p6-b300.48xlarge", 8, 16},
	{"p6e-gb200.36xlarge", 4, 4},
	{"g4dn.xlarge", 1, 0},
	{"g4dn.2xlarge", 1, 0},
	{"g4dn.4xlarge", 1, 0},
	{"g4dn.8xlarge", 1, 1},
	{"g4dn.12xlarge", 4, 1},
	{"g4dn.16xlarge", 1, 1},
	{"g4dn.metal", 8, 1},
	{"g5.xlarge", 1, 0},
	{"g5.2xlarge", 1, 0},
	{"g5.4xlarge", 1, 0},
	{"g5.8xlarge", 1, 1},
	{"g5.12xlarge", 4, 1},
	{"g5.16xlarge", 1, 1},
	{"g5.24xlarge", 4, 1},
	{"g5.48xlarge", 8, 1},
	{"g6.xlarge", 1, 0},
	{"g6.2xlarge", 1, 0},
	{"g6.4xlarge", 1, 0},
	{"g6.8xlarge", 1, 1},
	{"g6.12xlarge", 4, 1},
	{"g6.16xlarge", 1, 1},
	{"g6.24xlarge", 4, 1},
	{"g6.48xlarge", 8, 1},
	{"gr6.4xlarge", 1, 0},
	{"gr6.8xlarge", 1, 1},
	{"g6e.xlarge", 1, 0},
	{"g6e.2xlarge", 1, 0},
	{"g6e.4xlarge", 1, 0},
	{"g6e.8xlarge", 1, 1},
	{"g6e.12xlarge", 4, 1},
	{"g6e.16xlarge", 1, 1},
	{"g6e.24xlarge", 4, 2},
	{"g6e.48xlarge", 8, 4},
	{"g7e.2xlarge", 1, 0},
	{"g7e.4xlarge", 1, 0},
	{"g7e.8xlarge", 1, -1},
	{"g7e.12xlarge", 2, -1},
	{"g7e.24xlarge", 4, -1},
	{"g7e.48xlarge", 8, -1},
};

enum { KNOWN = sizeof(known) / sizeof(known[0]), OTHERS_MAX = 256 };

const struct machine_kind *machine_kind_find(const char *name)
{
	static struct machine_kind others[OTHERS_MAX];
	const struct instance_info *info;
	uint32_t count, i;

	for (int k = 0; k < KNOWN; k++)
		if (!strcasecmp(known[k].name, name))
			return &known[k];
	/* A machine of weft topo --list that no cloud rents: its NICs are not EFA. */
	info = instance_find(name);
	if (!info)
		return NULL;
	i = (uint32_t)(info - instance_list(&count)) % OTHERS_MAX;
	others[i] = (struct machine_kind){info->name, (int)info->gpu_count, 0};
	return &others[i];
}

const char *machine_kind_near(const char *name)
{
	size_t family = strcspn(name, ".");
	const char *best = NULL;
	uint32_t least = 4;

	for (int i = 0; i < KNOWN; i++) {
		uint32_t far = edits_between(name, known[i].name);

		/* The family is what people mean; the size is what they get wrong. */
		if (strncmp(name, known[i].name, family + 1) != 0)
			far += 2;
		if (far >= least)
			continue;
		least = far;
		best = known[i].name;
	}
	return best;
}

bool machine_kind_is_aws(const char *name)
{
	const char *dot = strchr(name, '.');
	bool is_family = (name[0] == 'p' || name[0] == 'g') &&
			 (isdigit((unsigned char)name[1]) || !strncmp(name, "gr", 2));

	return dot && is_family && (strstr(dot, "xlarge") || strstr(dot, "metal"));
}
