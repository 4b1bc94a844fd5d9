/* What the environment and files around a job say that is not good for it. */
#include <stdio.h>
#include <string.h>

#include "weft/doctor/diagnose.h"
#include "weft/doctor/env_rules.h"

static void add_topology(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	const struct evidence *unreadable = &facts->signs[FIND_TOPO_FILE_UNREADABLE];
	const struct evidence *virtual = &facts->signs[FIND_TOPO_VIRTUAL];
	const struct fact_env *file = NULL;
	struct finding *finding;

	for (uint32_t i = 0; i < facts->env_count; i++)
		if (!strcmp(facts->envs[i].name, "NCCL_TOPO_FILE"))
			file = &facts->envs[i];
	if (file && !file->value[0]) {
		finding = diagnosis_add(diagnosis, FIND_TOPO_FILE_EMPTY, &file->seen);
		if (facts_has_several_nodes(facts))
			finding->severity = SEVERITY_PERFORMANCE;
	}
	if (unreadable->count && (!file || file->value[0])) {
		diagnosis_add(diagnosis, FIND_TOPO_FILE_UNREADABLE, unreadable);
		/* the file of NVIDIA's daemon is looked for everywhere */
		if (strstr(unreadable->text, "/var/run/nvidia-topologyd"))
			diagnosis->count--;
	}
	if (virtual->count)
		diagnosis_add(diagnosis, FIND_TOPO_VIRTUAL, virtual);
}

/* One finding for all variables of a verdict. */
static void append(struct finding *finding, const struct fact_env *env, const char *why)
{
	size_t used = strlen(finding->detail);

	if (used + 40 < sizeof(finding->detail))
		snprintf(finding->detail + used, sizeof(finding->detail) - used,
			"%s%s=%s (%s)", used ? "; " : "", env->name, env->value, why);
}

/* The plugin says so, or its spelling of the value does where the log begins later. */
static const struct evidence *proto_forced(const struct log_facts *facts)
{
	if (facts->signs[FIND_PROTO_SIMPLE].count)
		return &facts->signs[FIND_PROTO_SIMPLE];
	for (uint32_t i = 0; i < facts->env_count && facts->platforms.count; i++)
		if (!strcmp(facts->envs[i].name, "NCCL_PROTO") &&
			!strcmp(facts->envs[i].value, "simple"))
			return &facts->envs[i].seen;
	return NULL;
}

static void add_variables(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const enum finding_id ids[] = {[ENV_UNKNOWN] = FIND_ENV_UNKNOWN,
		[ENV_EMPTY] = FIND_ENV_EMPTY,
		[ENV_OVERRIDES] = FIND_ENV_AUDIT};
	struct env_context context = {.has_ofi = facts->plugins.count > 0 ||
						 facts->providers.count > 0 ||
						 facts->found_nics > 0,
		.is_forced_simple = proto_forced(facts) != NULL};

	for (uint32_t i = 0; i < facts->env_count; i++) {
		const struct fact_env *env = &facts->envs[i];
		char why[FACTS_TEXT_BYTES];
		enum env_verdict verdict = env_judge(
			&context, env->name, env->value, why, sizeof(why));
		struct finding *finding;

		if (verdict == ENV_FINE ||
			(verdict == ENV_EMPTY && !strcmp(env->name, "NCCL_TOPO_FILE")))
			continue;
		finding = diagnosis_find(diagnosis, ids[verdict]);
		if (!finding)
			finding = diagnosis_add(diagnosis, ids[verdict], &env->seen);
		append(finding, env, why);
	}
}

/* Of these all ranks need the same. */
static void add_differences(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	static const char *const same[] = {"ALGO", "PROTO", "BUFFSIZE", "NET", "NTHREADS",
		"MIN_NCHANNELS", "MAX_NCHANNELS", "P2P_NET_CHUNKSIZE", "CROSS_NIC"};

	for (uint32_t i = 0; i < facts->env_count; i++)
		for (size_t k = 0; k < sizeof(same) / sizeof(same[0]); k++) {
			const struct fact_env *env = &facts->envs[i];
			struct finding *finding;

			if (!env->differs || strncmp(env->name, "NCCL_", 5) != 0 ||
				strcmp(env->name + 5, same[k]) != 0)
				continue;
			finding = diagnosis_add(diagnosis, FIND_ENV_DIFFERS, &env->seen);
			snprintf(finding->detail, sizeof(finding->detail),
				"%s is %s for one rank and %s for another.", env->name,
				env->value, env->other);
			return;
		}
}

void diagnose_settings(const struct log_facts *facts, struct diagnosis *diagnosis)
{
	add_topology(facts, diagnosis);
	if (proto_forced(facts))
		diagnosis_add(diagnosis, FIND_PROTO_SIMPLE, proto_forced(facts));
	add_variables(facts, diagnosis);
	add_differences(facts, diagnosis);
}
