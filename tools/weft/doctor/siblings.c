#include "weft/doctor/siblings.h"

#include <stdio.h>
#include <string.h>

void siblings_add(struct siblings *siblings, const struct host_facts *facts)
{
	struct sibling *made = &siblings->all[siblings->count];

	if (siblings->count == SIBLINGS_MAX)
		return;
	memcpy(made->name, facts->name, sizeof(made->name));
	memcpy(made->boot_id, facts->boot_id, sizeof(made->boot_id));
	memcpy(made->driver, facts->driver, sizeof(made->driver));
	made->gpu_files = facts->gpu_files;
	siblings->count++;
}

/* One boot is one machine, and NCCL goes by the host's name as well: names that differ
 * make it two. */
static bool is_split(const struct sibling *a, const struct sibling *b)
{
	return a->boot_id[0] && !strcmp(a->boot_id, b->boot_id) &&
	       strcmp(a->name, b->name) != 0;
}

static void add_split(const struct siblings *siblings, struct diagnosis *diagnosis)
{
	uint32_t pods = 0, other = 0;
	const struct sibling *first = NULL;
	struct finding *finding;

	for (uint32_t i = 0; i < siblings->count && !first; i++)
		for (uint32_t k = i + 1; k < siblings->count && !first; k++)
			if (is_split(&siblings->all[i], &siblings->all[k])) {
				first = &siblings->all[i];
				other = k;
			}
	if (!first)
		return;
	for (uint32_t i = 0; i < siblings->count; i++)
		pods += !strcmp(siblings->all[i].boot_id, first->boot_id);
	finding = diagnosis_add(diagnosis, FIND_PODS_SPLIT_NODE, NULL);
	snprintf(finding->detail, sizeof(finding->detail),
		"%.60s and %.60s have one boot id: %u of these are on one machine, and "
		"NCCL takes each for a host.",
		first->name, siblings->all[other].name, pods);
}

/* Two machines of one name are one host for what goes by names. */
static void add_doubles(const struct siblings *siblings, struct diagnosis *diagnosis)
{
	for (uint32_t i = 0; i < siblings->count; i++)
		for (uint32_t k = i + 1; k < siblings->count; k++) {
			const struct sibling *a = &siblings->all[i];
			const struct sibling *b = &siblings->all[k];
			struct finding *finding;

			if (!a->name[0] || strcmp(a->name, b->name) != 0 ||
				!a->boot_id[0] || !b->boot_id[0] ||
				!strcmp(a->boot_id, b->boot_id))
				continue;
			finding = diagnosis_add(diagnosis, FIND_SAME_NAME, NULL);
			snprintf(finding->detail, sizeof(finding->detail),
				"Two machines are called %.100s.", a->name);
			return;
		}
}

static void add_drivers(const struct siblings *siblings, struct diagnosis *diagnosis)
{
	const struct sibling *first = &siblings->all[0];

	for (uint32_t i = 1; i < siblings->count; i++) {
		const struct sibling *other = &siblings->all[i];
		struct finding *finding;

		if (!first->driver[0] || !other->driver[0] ||
			!strcmp(first->driver, other->driver))
			continue;
		finding = diagnosis_add(diagnosis, FIND_DRIVERS_DIFFER, NULL);
		snprintf(finding->detail, sizeof(finding->detail),
			"%.60s has %.60s, %.60s has %.60s.", first->name, first->driver,
			other->name, other->driver);
		return;
	}
}

void siblings_diagnose(const struct siblings *siblings, struct diagnosis *diagnosis)
{
	memset(diagnosis, 0, sizeof(*diagnosis));
	add_split(siblings, diagnosis);
	add_doubles(siblings, diagnosis);
	add_drivers(siblings, diagnosis);
	diagnosis_sort(diagnosis);
}
