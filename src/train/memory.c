#include "train/memory.h"

#include <math.h>

enum { WORD = 2, MASTER = 4, ADAM = 8 };

static const double grad_bytes[GRADS] = {
	[GRADS_FP32] = 4, [GRADS_HALF] = 2, [GRADS_BOTH] = 2 + 4};

/* Layers with experts are the last of the model: every stage has about its share. */
static double moe_share(const struct train_model *m)
{
	return m->layers ? (double)model_moe_layers(m) / m->layers : 0;
}

double memory_stage_dense(
	const struct train_model *m, const struct train_layout *l, uint32_t stage)
{
	double layers = layout_stage_layers(m, l, stage), moe = moe_share(m);
	double layer = model_attention_params(m) + (1 - moe) * model_dense_params(m) +
		       moe * model_shared_params(m);
	double whole = model_norm_params(m) + moe * model_router_params(m);
	double sum = layers * (layer / l->tp + whole);

	if (stage == 0)
		sum += model_embedding_params(m) / l->tp;
	if (stage == l->pp - 1)
		sum += (m->is_tied && l->pp > 1 ? (double)m->vocab * m->hidden
						: model_head_params(m)) /
		       l->tp;
	if (m->is_figures)
		sum *= m->figure_active / fmax(model_params_active(m), 1);
	return sum;
}

double memory_stage_experts(
	const struct train_model *m, const struct train_layout *l, uint32_t stage)
{
	double layers = layout_stage_layers(m, l, stage) * moe_share(m);

	if (!m->experts)
		return 0;
	if (m->is_figures)
		return (m->figure_params - m->figure_active) / l->pp / l->ep;
	return layers * m->experts / l->ep / layout_expert_tp(l) * model_expert_params(m);
}

/* Of a token: the layer's input, what attention gives, and half of the products'
 * results, in 16 bits. */
static double ops_kept(
	const struct train_model *m, const struct train_layout *l, double ffn)
{
	double width = (double)m->heads * m->head_dim, h = m->hidden;
	double kv = 2.0 * m->kv_heads * m->head_dim;
	double cut = width + kv + (m->is_gated ? 2 : 1) * ffn;
	double whole = (h + 2 * h / 2) / (l->is_sequence_parallel ? l->tp : 1);

	return WORD * (whole + (width + cut / 2) / l->tp);
}

/* Attention weights that are written out, of one layer and micro-batch. */
static double scores_of(const struct train_model *m, const struct train_layout *l)
{
	double tokens = (double)l->micro * l->sequence / l->cp;

	return l->flash ? 0 : tokens * 5.0 * m->heads * l->sequence / l->tp;
}

double memory_layer_activations(const struct train_model *m, const struct train_layout *l)
{
	double tokens = (double)l->micro * l->sequence / l->cp, h = m->hidden;
	double t = l->tp, sp = l->is_sequence_parallel ? t : 1;
	double kv = (double)m->kv_heads / m->heads,
	       width = (double)m->heads * m->head_dim;
	double moe = moe_share(m), sent = m->latent ? m->latent : h;
	double ffn = moe * ((double)m->top_k * m->expert_ffn + m->shared_ffn) +
		     (1 - moe) * m->ffn;
	double norms, attention, feed, scores;

	if (l->recompute == RECOMPUTE_FULL)
		return WORD * tokens * h / sp;
	if (l->recompute == RECOMPUTE_OPS)
		return tokens * ops_kept(m, l, ffn);
	norms = ((m->is_gated ? 6 : 8) * h + moe * (2 * h + 4.0 * m->top_k * sent)) / sp;
	attention = (4 + 4 * kv) * width / t;
	if (m->kv_rank)
		attention = (10.0 * m->nope_dim * m->heads + 4.0 * m->kv_rank) / t;
	feed = (m->is_gated ? 6 : 4) * ffn / t;
	scores = l->recompute == RECOMPUTE_NONE ? scores_of(m, l) : 0;
	/* Products in 8 bits keep their inputs so. */
	if (l->precision != PRECISION_BF16)
		feed -= (2 * h + width + ffn) / t;
	return tokens * (norms + attention + feed + 2 * h / sp) + scores;
}

static double in_flight(const struct train_layout *l, uint32_t stage)
{
	double m = layout_micro_count(l), p = l->pp, v = l->vp;

	if (l->vp > 1)
		return fmin(m, p * (1 + (p - 1) / (p * v)));
	return fmin(m, p - stage);
}

/* Bytes of parameters, gradients and optimizer of `count` parameters that `ranks`
 * data-parallel ranks have alike. */
static void states_add(const struct train_layout *l, double count, double ranks,
	bool is_adapter, struct train_memory *memory)
{
	double all = l->shard == SHARD_ALL || l->shard == SHARD_KEEP ? ranks : 1;
	double grad = l->shard == SHARD_GRADIENTS ? ranks : all, opt = ranks;
	bool is_master = l->shard >= SHARD_ALL && !(l->offload & OFFLOAD_OPTIMIZER);

	if (l->shard == SHARD_HYBRID)
		all = grad = opt = fmin(ranks, layout_shard_size(l));
	if (l->shard == SHARD_NONE)
		opt = 1;
	if (l->is_pure_half) {
		memory->params += count * WORD / (l->shard == SHARD_KEEP ? 1 : all);
		memory->grads += is_adapter ? 0 : count * WORD / grad;
		memory->optimizer += is_adapter ? 0 : count * 2 * WORD / opt;
		return;
	}
	/* Where all is sharded, the master copy is the parameter, unless it is on the
	 * host with the optimizer. */
	if (l->shard >= SHARD_ALL)
		memory->params += count * (is_master ? MASTER : WORD) / all +
				  (l->shard == SHARD_KEEP ? count * WORD : 0);
	else
		memory->params += count * WORD;
	if (is_adapter)
		return;
	memory->grads += count *
			 grad_bytes[l->shard >= SHARD_ALL ? GRADS_FP32 : l->grads] / grad;
	memory->optimizer += count * ((is_master ? 0 : MASTER) + ADAM) / opt;
}

static void offload(const struct train_layout *l, struct train_memory *memory)
{
	if (l->offload & OFFLOAD_OPTIMIZER) {
		memory->host += memory->optimizer;
		memory->optimizer = 0;
	}
	/* An optimizer on the host adds to gradients there. */
	if (l->offload & (OFFLOAD_GRADIENTS | OFFLOAD_OPTIMIZER)) {
		memory->host += memory->grads;
		memory->grads = 0;
	}
	if (l->offload & OFFLOAD_PARAMS) {
		memory->host += memory->params;
		memory->params = 0;
	}
}

/* The embedding where the stage has it, else the first of a layer's feed-forward. */
static double largest_matrix(
	const struct train_model *m, const struct train_layout *l, uint32_t stage)
{
	double feed = (double)m->ffn * m->hidden, words = (double)m->vocab * m->hidden;

	return (stage == 0 || stage == l->pp - 1 ? fmax(words, feed) : feed) / l->tp;
}

static void stage_make(const struct train_model *m, const struct train_layout *l,
	uint32_t stage, struct train_memory *memory)
{
	double dense = memory_stage_dense(m, l, stage);
	double experts = memory_stage_experts(m, l, stage);
	double layers = layout_stage_layers(m, l, stage);
	double data = (double)l->dp * l->cp;
	double tokens = (double)l->micro * l->sequence / l->cp;
	double alive = in_flight(l, stage), layer = memory_layer_activations(m, l);

	*memory = (struct train_memory){.stage = stage, .alive = (uint32_t)ceil(alive)};
	states_add(l, dense, data, m->is_adapter, memory);
	states_add(l, experts, fmax(1, data * l->tp / l->ep / layout_expert_tp(l)),
		m->is_adapter, memory);
	memory->activations = alive * layers * layer;
	if (l->recompute == RECOMPUTE_FULL) {
		struct train_layout one = *l;

		one.recompute = RECOMPUTE_NONE;
		memory->activations += memory_layer_activations(m, &one);
	} else if (l->recompute != RECOMPUTE_NONE) {
		memory->activations += scores_of(m, l);
	}
	if (stage == 0)
		memory->activations += alive * WORD * tokens * m->hidden /
				       (l->is_sequence_parallel ? l->tp : 1);
	if (stage == l->pp - 1)
		memory->logits = tokens * m->vocab / l->tp * (WORD + 4 + 4);
	if (l->shard == SHARD_ALL || l->shard == SHARD_HYBRID)
		memory->gathered = 2 * WORD * (dense + experts) / fmax(layers, 1) +
				   4 * (dense + experts) / fmax(layers, 1);
	if (l->grads == GRADS_BOTH && l->shard < SHARD_ALL && !l->is_pure_half)
		memory->gathered += 4 * largest_matrix(m, l, stage);
	offload(l, memory);
}

/* The second stage, where it has a layer more than the first, may be the fullest. */
static bool is_candidate(
	const struct train_model *m, const struct train_layout *l, uint32_t stage)
{
	if (stage == 0 || stage == l->pp - 1)
		return true;
	return layout_stage_layers(m, l, stage) > layout_stage_layers(m, l, 0);
}

void memory_make(const struct train_model *m, const struct train_layout *l,
	const struct memory_habit *habit, struct train_memory *memory)
{
	uint32_t stages[3] = {0, 1, l->pp - 1};

	*memory = (struct train_memory){0};
	for (int i = 0; i < 3; i++) {
		struct train_memory one;

		if (stages[i] >= l->pp || (i && stages[i] == stages[i - 1]) ||
			!is_candidate(m, l, stages[i]))
			continue;
		stage_make(m, l, stages[i], &one);
		one.slack = fmin(.1, fmax(0, habit->factor - 1)) * one.activations;
		one.activations *= habit->factor;
		one.other = habit->base_bytes;
		one.total = one.params + one.grads + one.optimizer + one.activations +
			    one.logits + one.gathered + one.other;
		if (one.total > memory->total)
			*memory = one;
	}
}

void memory_settle(struct train_memory *memory, double have)
{
	if (memory->total > have && memory->total - memory->slack <= have)
		memory->total = have;
}
