#include "weft/graph_job.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/param.h"

enum { SM_MULTICAST = 90 };

void graph_job_init(struct graph_job *job)
{
	*job = (struct graph_job){0};
	topo_rules_default(&job->args.rules);
	model_rules_default(&job->rules);
	job->args.host_count = 1;
}

enum err graph_job_environment(struct graph_job *job)
{
	enum err e = topo_rules_read(&job->args.rules);

	channel_rules_read(&job->args.channels);
	job->args.graph_file = param_text(PARAM_GRAPH_FILE);
	return e ? e : model_rules_read(&job->rules);
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

/* A rank whose GPU does multicast looks for an NVLS graph. One GPU is enough for that;
 * where another of its node does not, the search ends without channels. */
static bool has_multicast(struct xml_node *tree)
{
	for (struct xml_node *gpu = xml_find(tree, "gpu", NULL); gpu;
		gpu = xml_find(tree, "gpu", gpu))
		if (xml_int(gpu, "sm", 0) >= SM_MULTICAST && is_on_switch(gpu))
			return true;
	return false;
}

/* Only machines whose GPUs are on switches can share their NVLinks. */
static enum err check_machine(const struct graph_job *job, uint32_t i)
{
	struct xml_node *gpu = xml_find(job->machines.trees[i], "gpu", NULL);

	if (!gpu)
		return err_set(ERR_USAGE,
			"machine '%s' has no GPU that can be seen; name a topology file "
			"or an instance type such as dgx-h100",
			job->machines.names[i]);
	if (job->args.mnnvl_hosts > 1 && !is_on_switch(gpu))
		return err_set(ERR_USAGE,
			"machine '%s' has no NVSwitch, so its NVLinks reach no other "
			"machine; leave out --mnnvl",
			job->machines.names[i]);
	return OK;
}

enum err graph_job_load(struct graph_job *job, int count, char **names)
{
	enum err e = machines_load(count, names, &job->machines);

	if (e)
		return e;
	job->xml = count ? join_names(count, names) : strdup("this");
	if (!job->xml)
		return err_set(ERR_SYSTEM, "no memory for the names of the machines");
	for (uint32_t i = 0; !e && i < job->machines.count; i++)
		e = check_machine(job, i);
	if (e)
		return e;
	if (job->machines.is_p2p_refused)
		job->args.rules.nvml_p2p_ok = false;
	for (uint32_t i = 0; i < job->machines.count; i++)
		if (job->rules.nvls_enable == 1 ||
			(job->rules.nvls_enable && has_multicast(job->machines.trees[i])))
			job->args.has_multicast = true;
	return OK;
}

enum err graph_job_run(struct graph_job *job)
{
	enum err e;

	decision_free(job->decision);
	job->decision = NULL;
	job->args.machines = (const struct xml_node *const *)job->machines.trees;
	job->args.machine_count = job->machines.count;
	e = decide(&job->args, &job->decision);
	if (e)
		return e;
	assert(job->decision);
	return model_make(job->decision->cluster, &job->rules, &job->model);
}

enum err graph_job_dump(const struct graph_job *job, const char *path)
{
	const struct domain *home = graph_job_home(job);
	const char *file = path ? path : param_text(PARAM_GRAPH_DUMP_FILE);

	return file ? graph_file_write(file, home->topo, &home->set) : OK;
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
