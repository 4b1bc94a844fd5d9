/* weft plan --json. */
#include <jansson.h>
#include <math.h>

#include "train/goodput.h"
#include "weft/json_print.h"
#include "weft/plan.h"

static void integer_add(json_t *to, const char *name, uint32_t value)
{
	json_object_set_new(to, name, json_integer(value));
}

/* What of a list of words has its bit set. */
static json_t *bits_json(uint32_t bits, const char *const *words)
{
	json_t *all = json_array();

	for (int i = 0; words[i]; i++)
		if (bits & 1u << i)
			json_array_append_new(all, json_string(words[i]));
	return all;
}

static json_t *kinds_json(const struct train_layout *l)
{
	static const char *const offload[] = {"optimizer", "grads", "params", NULL};
	static const char *const exposed[] = {"tp", "cp", "ep", "pp", "dp", NULL};

	return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:b, s:b, s:b}", "shard",
		shard_name(l->shard), "recompute", recompute_name(l->recompute),
		"precision", precision_name(l->precision), "grads", grads_name(l->grads),
		"offload", bits_json(l->offload, offload), "noOverlap",
		bits_json(l->no_overlap, exposed), "sequenceParallel",
		(int)l->is_sequence_parallel, "zeroBubble", (int)l->is_zero_bubble,
		"flash", (int)l->flash, "pureBf16", (int)l->is_pure_half);
}

json_t *plan_layout_json(const struct train_layout *l)
{
	json_t *all = json_object();

	integer_add(all, "gpus", l->gpus);
	integer_add(all, "tp", l->tp);
	integer_add(all, "pp", l->pp);
	integer_add(all, "cp", l->cp);
	integer_add(all, "dp", l->dp);
	integer_add(all, "ep", l->ep);
	integer_add(all, "etp", layout_expert_tp(l));
	integer_add(all, "vp", l->vp);
	integer_add(all, "microBatch", l->micro);
	integer_add(all, "microBatches", layout_micro_count(l));
	integer_add(all, "batch", l->batch);
	integer_add(all, "sequence", l->sequence);
	if (l->shard == SHARD_HYBRID)
		integer_add(all, "shardSize", layout_shard_size(l));
	json_object_update_new(all, kinds_json(l));
	return all;
}

static json_t *memory_json(const struct plan_run *run)
{
	const struct train_memory *m = &run->memory;

	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:i}",
		"params", m->params / 1e9, "grads", m->grads / 1e9, "optimizer",
		m->optimizer / 1e9, "activations", m->activations / 1e9, "logits",
		m->logits / 1e9, "gathered", m->gathered / 1e9, "software",
		m->other / 1e9, "total", m->total / 1e9, "host", m->host / 1e9, "has",
		run->gpu->memory_gb, "fits", (int)(m->total <= run->gpu->memory_gb * 1e9),
		"stage", (int)m->stage);
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

static json_t *goodput_json(const struct plan_run *run)
{
	const struct plan_args *args = run->args;
	struct train_goodput g;
	struct plan_bill bill;
	json_t *all;

	goodput_make(run->layout.gpus, args->checkpoint_s, args->restart_s, &g);
	all = json_pack("{s:f, s:f, s:f}", "share", g.share, "stopEveryS", g.mtbf_s,
		"checkpointEveryS", g.interval_s);
	if (args->train_tokens <= 0 || g.share <= 0)
		return all;
	plan_bill_make(run, &bill);
	json_object_set_new(all, "days", json_real(bill.days));
	json_object_set_new(all, "gpuHours", json_real(bill.hours));
	if (args->budget > 0)
		json_object_set_new(all, "overBudget", json_boolean(bill.is_over));
	return all;
}

static json_t *guesses_json(const struct plan_run *run)
{
	char texts[GUESSES_MAX][GUESS_BYTES];
	uint32_t n = plan_guesses(run, texts);
	json_t *all = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(all, json_string(texts[i]));
	return all;
}

/* The model and where it runs. */
static json_t *question_json(const struct plan_run *run)
{
	json_t *all = json_pack("{s:s, s:I, s:I, s:f, s:s, s:s, s:i, s:i, s:o}", "model",
		run->model.name, "params", (json_int_t)model_params(&run->model),
		"paramsActive", (json_int_t)model_params_active(&run->model),
		"flopsPerToken", model_flops(&run->model, run->layout.sequence),
		"machine", run->net.site.machine, "gpu", run->gpu->name, "nodes",
		(int)run->net.site.nodes, "gpusPerNode", (int)run->net.site.gpus,
		"layout", plan_layout_json(&run->layout));

	if (run->fitting) /* nobody said a layout: the fastest of so many */
		json_object_set_new(
			all, "fastestOf", json_integer((json_int_t)run->fitting));
	return all;
}

json_t *plan_json_make(const struct plan_run *run)
{
	const struct train_step *s = &run->step;
	double spread = exp(run->answer.spread);
	json_t *all = question_json(run);

	json_object_update_new(all,
		json_pack("{s:f, s:f, s:f, s:f, s:f, s:s, s:s, s:o, s:o, s:o, s:o}",
			"stepS", s->seconds, "lowS", s->seconds / spread, "highS",
			s->seconds * spread, "tokensPerS", s->tokens_per_s, "mfu", s->mfu,
			"bound", step_part_name(s->bound), "change", plan_advice(run),
			"parts", parts_json(s), "memoryGB", memory_json(run), "goodput",
			goodput_json(run), "guessed", guesses_json(run)));
	return all;
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
