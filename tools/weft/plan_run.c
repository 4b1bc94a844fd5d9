/* One question: the model, the machines with their pods, the layout, and the answer. */
#include <string.h>

#include "sim/resolve.h"
#include "topo/instance.h"
#include "weft/plan.h"

static void size_take(uint32_t *to, uint32_t said)
{
	if (said)
		*to = said;
}

/* Sizes that were said go before those of the model. */
static void flags_apply(const struct train_model *flags, struct train_model *m)
{
	bool is_plain = m->kv_heads == m->heads; /* no grouped keys */

	size_take(&m->layers, flags->layers);
	size_take(&m->hidden, flags->hidden);
	size_take(&m->ffn, flags->ffn);
	size_take(&m->heads, flags->heads);
	size_take(&m->kv_heads, flags->kv_heads);
	size_take(&m->vocab, flags->vocab);
	size_take(&m->experts, flags->experts);
	size_take(&m->top_k, flags->top_k);
	size_take(&m->expert_ffn, flags->expert_ffn);
	if (flags->is_gated)
		m->is_gated = true;
	if (!m->kv_heads || (is_plain && !flags->kv_heads))
		m->kv_heads = m->heads;
	if ((flags->hidden || flags->heads) && m->heads && !m->kv_rank)
		m->head_dim = m->hidden / m->heads;
	if (flags->experts && !m->expert_ffn)
		m->expert_ffn = m->ffn;
}

static enum err model_of(const struct plan_args *args, struct train_model *model)
{
	size_t length = strlen(args->model);
	enum err e = OK;

	*model = (struct train_model){.name = "custom"};
	if (length > 5 && !strcmp(args->model + length - 5, ".json"))
		e = model_config_read(args->model, model);
	else if (strcmp(args->model, "custom") != 0)
		e = model_find(args->model, model);
	if (e)
		return e;
	flags_apply(&args->flags, model);
	if ((args->flags.hidden || args->flags.heads) && model->heads &&
		!model->kv_rank && model->hidden % model->heads)
		return err_set(ERR_USAGE,
			"a hidden size of %u does not divide by %u heads", model->hidden,
			model->heads);
	return model_check(model);
}

/* Nodes by --nodes, or as many as --gpus fill. */
static enum err nodes_of(const struct plan_args *args, uint32_t *nodes, uint32_t *each)
{
	struct sim_site site = {.nodes = 1};
	enum err e = sim_site_named(&site, args->machine);
	uint32_t own = e ? 0 : instance_find(site.machine)->gpu_count;

	*nodes = args->nodes;
	*each = args->gpus_per_node;
	if (e || !args->gpus_first)
		return e;
	if (*each)
		own = *each;
	if (args->gpus_first < own) {
		*nodes = 1;
		*each = args->gpus_first;
		return OK;
	}
	*nodes = args->gpus_first / own;
	if (args->gpus_first % own)
		return err_set(ERR_USAGE,
			"%u GPUs do not fill machines of %u; give --gpus-per-node",
			args->gpus_first, own);
	return OK;
}

static enum err machine_make(const struct plan_args *args, struct plan_run *run)
{
	uint32_t nodes, each, processes;
	enum err e = nodes_of(args, &nodes, &each);

	if (!e)
		e = net_make(&run->net, args->machine, nodes, each);
	if (e)
		return e;
	processes = run->net.site.gpus;
	if (args->pods) {
		e = sim_site_pods(
			&run->net.site, args->pods, args->pod_gpus, args->pod_nics);
		processes = args->pods * args->pod_gpus;
	}
	if (!e && args->net) {
		run->net.site.outer = sim_wire_find(args->net);
		if (run->net.site.outer == SIM_WIRES)
			e = err_set(ERR_USAGE,
				"no class of network is called '%s'; there are ib, roce, "
				"efa, "
				"tcp, ena and others of weft sim",
				args->net);
	}
	if (!e && args->gpu) {
		run->gpu = gpu_named(args->gpu);
		if (!run->gpu)
			e = err_set(ERR_USAGE,
				"no figures for a GPU '%s'; there are A100-80GB, H100, "
				"H200, B200, GB200 and others",
				args->gpu);
	} else if (!e) {
		e = gpu_of_machine(run->net.site.machine, &run->gpu);
	}
	if (e)
		return e;
	host_find(run->net.site.machine, run->gpu, &run->host);
	run->host.processes = processes;
	run->host.pod_processes = run->net.site.gpus;
	run->host.threads = args->threads;
	return OK;
}

static enum err precision_check(const struct plan_run *run)
{
	if (run->gpu->tflops[run->layout.precision] > 0)
		return OK;
	return err_set(ERR_USAGE, "%s cannot compute in %s", run->gpu->name,
		precision_name(run->layout.precision));
}

enum err plan_run_answer(struct plan_run *run)
{
	struct calib_who who = {run->args->stack, run->gpu, run->layout.precision,
		run->model.experts > 0};
	struct train_job job = {&run->model, &run->layout, &run->args->order, &run->net,
		run->gpu, &run->host};
	enum err e = layout_complete(&run->layout);

	if (!e)
		e = layout_check(&run->model, &run->layout);
	if (!e)
		e = work_make(&job, &run->work);
	if (e)
		return e;
	calib_ask(&run->calib, &who, &run->answer);
	step_make(&run->work, &run->answer.params, &run->step);
	memory_make(&run->model, &run->layout, &run->answer.habit, &run->memory);
	memory_settle(&run->memory, run->gpu->memory_gb * 1e9);
	return OK;
}

/* Unless it is said, hybrid shards are those of the data-parallel ranks of one node. */
static uint32_t node_shard(const struct plan_run *run)
{
	uint32_t tp = run->layout.tp ? run->layout.tp : 1;

	return run->net.site.gpus > tp ? run->net.site.gpus / tp : 1;
}

/* The layout that was said, or where nothing was the fastest that fits. */
static enum err layout_answer(struct plan_run *run)
{
	static struct search_result found;
	enum err e = OK;

	if (!run->args->said) {
		e = plan_layouts_search(run, &found);
		if (e)
			return e;
		run->layout = found.hits[0].layout;
		run->fitting = found.fitting;
	}
	return plan_run_answer(run);
}

enum err plan_run_make(const struct plan_args *args, bool is_whole, struct plan_run *run)
{
	enum err e;

	memset(run, 0, sizeof(*run));
	run->args = args;
	e = model_of(args, &run->model);
	if (!e)
		e = machine_make(args, run);
	if (!e) {
		run->layout = args->layout;
		run->layout.kernel = stack_kernel(args->stack);
		run->layout.gpus = run->net.site.nodes * run->net.site.gpus;
		if (!run->layout.shard_size)
			run->layout.shard_size = node_shard(run);
		calib_load(&run->calib);
		e = precision_check(run);
		if (!e && is_whole)
			e = layout_answer(run);
	}
	if (e)
		plan_run_free(run);
	return e;
}

void plan_run_free(struct plan_run *run)
{
	net_free(&run->net);
}
