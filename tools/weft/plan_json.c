/* weft plan --json. */
#include <jansson.h>
#include <math.h>

#include "weft/json_print.h"
#include "weft/plan.h"

json_t *plan_layout_json(const struct train_layout *l)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, "
			 "s:s}",
		"gpus", (int)l->gpus, "tp", (int)l->tp, "pp", (int)l->pp, "cp",
		(int)l->cp, "dp", (int)l->dp, "ep", (int)l->ep, "vp", (int)l->vp,
		"microBatch", (int)l->micro, "batch", (int)l->batch, "sequence",
		(int)l->sequence, "shard", shard_name(l->shard), "recompute",
		recompute_name(l->recompute), "precision", precision_name(l->precision));
}

static json_t *memory_json(const struct plan_run *run)
{
	const struct train_memory *m = &run->memory;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b}",
		"params", m->params / 1e9, "grads", m->grads / 1e9, "optimizer",
		m->optimizer / 1e9, "activations", m->activations / 1e9, "logits",
		m->logits / 1e9, "gathered", m->gathered / 1e9, "software",
		m->other / 1e9, "total", m->total / 1e9, "host", m->host / 1e9, "has",
		run->gpu->memory_gb, "fits",
		(int)(m->total <= run->gpu->memory_gb * 1e9));
}

static json_t *parts_json(const struct train_step *s)
{
	json_t *parts = json_array();

	for (int i = 0; i < STEP_PARTS; i++)
		if (s->total[i] > 0 || s->seen[i] > 0)
			json_array_append_new(parts,
				json_pack("{s:s, s:f, s:f}", "part",
					step_part_name((enum step_part)i), "totalS",
					s->total[i], "seenS", s->seen[i]));
	return parts;
}

json_t *plan_json_make(const struct plan_run *run)
{
	const struct train_step *s = &run->step;
	double spread = exp(run->answer.spread);

	return json_pack("{s:s, s:f, s:f, s:s, s:s, s:i, s:o, s:f, s:f, s:f, s:f, s:f, "
			 "s:s, s:o, s:o}",
		"model", run->model.name, "params", model_params(&run->model),
		"flopsPerToken", model_flops(&run->model, run->layout.sequence),
		"machine", run->net.site.machine, "gpu", run->gpu->name, "nodes",
		(int)run->net.site.nodes, "layout", plan_layout_json(&run->layout),
		"stepS", s->seconds, "lowS", s->seconds / spread, "highS",
		s->seconds * spread, "tokensPerS", s->tokens_per_s, "mfu", s->mfu,
		"bound", step_part_name(s->bound), "parts", parts_json(s), "memoryGB",
		memory_json(run));
}

int plan_json(const struct plan_run *run)
{
	return json_print("plan", plan_json_make(run));
}

int plan_versus_json(const struct plan_run *run, const struct plan_run *other)
{
	return json_print("plan", json_pack("{s:o, s:o}", "a", plan_json_make(run), "b",
					  plan_json_make(other)));
}
