#include "weft/graph_job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SM_MULTICAST = 90 };

void graph_job_init(struct graph_job *job)
{
	*job = (struct graph_job){0};
	topo_rules_default(&job->args.rules);
	job->args.host_count = 1;
}

static char *join_names(int count, char **names)
{
	size_t bytes = 1, used = 0;
	char *text;

	for (int i = 0; i < count; i++)
		bytes += strlen(names[i]) + 1;
	text = calloc(1, bytes);
	for (int i = 0; text && i < count; i++)
		used += (size_t)snprintf(
			text + used, bytes - used, "%s%s", i ? "," : "", names[i]);
	return text;
}

/* An NVLink whose other end is a bridge is one to an NVSwitch. */
static bool is_on_switch(struct xml_node *gpu)
{
	for (struct xml_node *link = xml_find(gpu, "nvlink", NULL); link;
		link = xml_find(gpu, "nvlink", link)) {
		const char *class = xml_attr(link, "tclass");

		if (class && !strcmp(class, "0x068000"))
			return true;
	}
	return false;
}

static bool has_multicast(struct xml_node *tree)
{
	struct xml_node *gpu = xml_find(tree, "gpu", NULL);

	for (struct xml_node *at = gpu; at; at = xml_find(tree, "gpu", at))
		if (xml_int(at, "sm", 0) < SM_MULTICAST || !is_on_switch(at))
			return false;
	return gpu != NULL;
}

enum err graph_job_load(struct graph_job *job, int count, char **names)
{
	enum err e = machines_load(count, names, &job->machines);

	if (e)
		return e;
	job->xml = count ? join_names(count, names) : strdup("this");
	if (!job->xml)
		return err_set(ERR_SYSTEM, "no memory for the names of the machines");
	if (job->machines.is_p2p_refused)
		job->args.rules.nvml_p2p_ok = false;
	job->args.has_multicast = true;
	for (uint32_t i = 0; i < job->machines.count; i++)
		if (!has_multicast(job->machines.trees[i]))
			job->args.has_multicast = false;
	return OK;
}

enum err graph_job_run(struct graph_job *job)
{
	struct model_rules rules;
	enum err e;

	decision_free(job->decision);
	job->decision = NULL;
	job->args.machines = (const struct xml_node *const *)job->machines.trees;
	job->args.machine_count = job->machines.count;
	e = decide(&job->args, &job->decision);
	if (e)
		return e;
	assert(job->decision);
	model_rules_default(&rules);
	return model_make(job->decision->cluster, &rules, &job->model);
}

void graph_job_fini(struct graph_job *job)
{
	decision_free(job->decision);
	machines_free(&job->machines);
	free(job->xml);
	*job = (struct graph_job){0};
}

const struct domain *graph_job_home(const struct graph_job *job)
{
	const struct cluster *cluster = job->decision->cluster;

	return cluster->nodes[cluster->rank_node[0]].domain;
}
