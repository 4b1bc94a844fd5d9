#include "train/work.h"

#include <math.h>
#include <string.h>

#include "train/memory.h"

enum { WORD = 2 };

/* Of a PCI link, that copies of single parameters get; with the rate of a thread (below)
 * it is set by two measured steps of ZeRO-3 with offload on a p4d. */
static const double COPY_SHARE = .38;

struct cut {
	const struct train_model *m;
	const struct train_layout *l;
	struct train_net *net;
	struct train_grid dense, expert;
	double tokens; /* of a micro-batch on one GPU */
};

static void gemm_add(struct train_work *w, double m, double n, double k, double count)
{
	w->gemms[w->gemm_count++] = (struct work_gemm){m, n, k, count};
}

static void gemms_make(const struct cut *cut, struct train_work *w)
{
	const struct train_model *m = cut->m;
	double t = cut->l->tp, h = m->hidden, a = m->heads, d = m->head_dim;
	double tokens = cut->tokens, kv = fmax(m->kv_heads, t);
	double in = m->is_gated ? 2 : 1;

	if (m->kv_rank) {
		double key = (double)m->nope_dim + m->rope_dim;

		/* Queries by way of a rank of their own, or straight. */
		gemm_add(w, tokens, m->q_rank + m->kv_rank + (double)m->rope_dim, h, 1);
		gemm_add(w, tokens, a * key / t, m->q_rank ? m->q_rank : h, 1);
		gemm_add(w, tokens, a * ((double)m->nope_dim + m->value_dim) / t,
			m->kv_rank, 1);
		gemm_add(w, tokens, h, a * m->value_dim / t, 1);
	} else {
		gemm_add(w, tokens, (a + 2 * kv) * d / t, h, 1);
		gemm_add(w, tokens, h, a * d / t, 1);
	}
	w->feed_first = w->gemm_count;
	if (m->ffn) {
		gemm_add(w, tokens, in * m->ffn / t, h, 1);
		gemm_add(w, tokens, h, m->ffn / t, 1);
	}
	if (m->experts) {
		double local = (double)m->experts / cut->l->ep;
		double e = layout_expert_tp(cut->l),
		       rows = tokens * e / t * m->top_k / local;

		w->moe_gemms[0] = (struct work_gemm){
			rows, in * m->expert_ffn / e, h, local};
		w->moe_gemms[1] = (struct work_gemm){rows, h, m->expert_ffn / e, local};
		w->moe_count = 2;
		if (m->shared_ffn) {
			double shared = m->shared_ffn / t;

			w->moe_gemms[w->moe_count++] = (struct work_gemm){
				tokens, in * shared, h, 1};
			w->moe_gemms[w->moe_count++] = (struct work_gemm){
				tokens, h, shared, 1};
		}
		w->moe_share = (double)model_moe_layers(m) / m->layers;
	}
	w->head = (struct work_gemm){tokens, m->vocab / t, h, 1};
}

/* Of published figures the sizes are guesses: scale the products to the work. */
static void figures_apply(const struct train_model *m, struct train_work *w)
{
	double sum = 0, scale;

	if (!m->is_figures)
		return;
	for (uint32_t i = 0; i < w->gemm_count; i++)
		sum += w->gemms[i].n * w->gemms[i].k *
		       (i < w->feed_first ? 1 : 1 - w->moe_share);
	for (int i = 0; w->moe_count && i < 2; i++)
		sum += w->moe_gemms[i].n * w->moe_gemms[i].k * m->top_k * w->moe_share;
	scale = (m->figure_active - (double)m->vocab * m->hidden) / (sum * m->layers);
	for (uint32_t i = 0; i < w->gemm_count; i++)
		w->gemms[i].count *= scale;
	for (uint32_t i = 0; i < w->moe_count; i++)
		w->moe_gemms[i].count *= scale;
}

static void memory_traffic(const struct cut *cut, struct train_work *w)
{
	const struct train_model *m = cut->m;
	const struct train_layout *l = cut->l;
	double t = l->tp, sp = l->is_sequence_parallel ? t : 1, h = m->hidden;
	double width = (double)m->heads * m->head_dim, tokens = cut->tokens;
	double ffn = m->experts ? (double)m->top_k * m->expert_ffn : m->ffn;

	w->attention_flops = tokens * model_attention_flops(m, l->sequence) / t;
	w->attention_share = gpu_attention_share(w->gpu, l->flash, l->kernel);
	if (!l->flash) {
		w->attention_flops *= 2;
		w->score_bytes = tokens * m->heads / t * l->sequence * WORD;
	}
	w->is_aligned = m->head_dim % 8 == 0;
	w->point_bytes = WORD * tokens *
			 (10 * h / sp + 6 * width / t + (m->is_gated ? 5 : 4) * ffn / t);
	w->moe_bytes = m->experts ? WORD * tokens / sp * m->top_k * h * 6 : 0;
	w->head_bytes = tokens * m->vocab / t * 12;
	w->embed_bytes = WORD * tokens * h * 4;
}

static const struct train_grid *grid_of(const struct cut *cut, enum train_group group)
{
	return group_is_expert(group) ? &cut->expert : &cut->dense;
}

static enum err shape_time(const struct cut *cut, const struct train_group_shape *shape,
	int coll, double bytes, double *seconds)
{
	const struct net_group wires = {
		.per_node = (shape->size + shape->nodes - 1) / shape->nodes,
		.nodes = shape->nodes};
	const struct net_curve *curve;
	enum err e = net_curve_get(cut->net, coll, &wires, &curve);

	*seconds = e ? 0 : net_curve_time(curve, bytes);
	return e;
}

static enum err group_time(const struct cut *cut, enum train_group group, int coll,
	double bytes, double *seconds)
{
	struct train_group_shape shape;

	group_shape(grid_of(cut, group), group, cut->net->site.gpus, &shape);
	return shape_time(cut, &shape, coll, bytes, seconds);
}

/* Copies of a token that go to experts: one for each, and over the network one for each
 * node that has any of them, which passes it on. */
static double copies_of(const struct train_model *m, double nodes)
{
	return nodes > 0 ? nodes * (1 - pow(1 - 1 / nodes, m->top_k)) : m->top_k;
}

static enum err layer_wires(const struct cut *cut, struct train_work *w)
{
	const struct train_model *m = cut->m;
	const struct train_layout *l = cut->l;
	double state = WORD * cut->tokens * m->hidden, one = 0;
	double blocks = m->is_parallel ? 1 : 2; /* that tensor parallelism sends around */
	enum err e = OK;

	if (l->tp > 1 && l->is_sequence_parallel) {
		double gather, reduce = 0;

		e = group_time(cut, GROUP_TP, COLL_ALL_GATHER, state, &gather);
		if (!e)
			e = group_time(
				cut, GROUP_TP, COLL_REDUCE_SCATTER, state, &reduce);
		w->tp_s = blocks * (gather + reduce);
	} else if (l->tp > 1) {
		e = group_time(cut, GROUP_TP, COLL_ALL_REDUCE, state, &one);
		w->tp_s = blocks * one;
	}
	if (!e && l->cp > 1) {
		double kv = 2.0 * WORD * cut->tokens * m->kv_heads * m->head_dim /
			    fmin(l->tp, m->kv_heads);

		e = group_time(cut, GROUP_CP, COLL_ALL_GATHER, kv * l->cp, &one);
		w->cp_s = one;
	}
	if (!e && l->ep > 1) {
		uint32_t reach = cut->net->domain > 1 ? cut->net->domain : 1;
		struct train_group_shape shape;

		group_shape(&cut->expert, GROUP_EP, cut->net->site.gpus, &shape);
		w->is_ep_far = shape.nodes > reach;
		e = group_time(cut, GROUP_EP, COLL_ALL_TO_ALL,
			WORD * cut->tokens / (l->is_sequence_parallel ? l->tp : 1) *
				(m->latent ? m->latent : m->hidden) *
				copies_of(m, w->is_ep_far ? shape.nodes : 0),
			&one);
		w->ep_s = 2 * one;
	}
	return e;
}

/* One message between neighbouring stages. */
static enum err hop(const struct cut *cut, struct train_work *w)
{
	const struct train_layout *l = cut->l;
	double bytes = WORD * cut->tokens * cut->m->hidden / l->tp;
	uint32_t stride = cut->dense.stride[AXIS_PP], node = cut->net->site.gpus;
	uint32_t reach = node * (cut->net->domain > 1 ? cut->net->domain : 1);
	bool is_inside = (uint64_t)stride * l->pp <= node;
	struct net_group pair = {.per_node = is_inside ? 2 : 1,
		.nodes = is_inside ? 1 : 2,
		.is_far = (uint64_t)stride * l->pp > reach};
	const struct net_curve *curve;
	enum err e;

	if (l->pp < 2)
		return OK;
	e = net_curve_get(cut->net, SIM_SENDRECV, &pair, &curve);
	if (!e)
		w->hop_s = net_curve_time(curve, bytes);
	return e;
}

/* Parameters of the first stage that one group of data-parallel ranks shares. */
struct shared {
	enum train_group group;
	double count, grad; /* bytes of a gradient on the wires */
};

/* Once a step: gradients together, and parameters back where the optimizer is cut. */
static enum err step_wires(
	const struct cut *cut, const struct shared *shared, struct train_work *w)
{
	bool is_whole = cut->l->shard == SHARD_NONE;
	int coll = is_whole ? COLL_ALL_REDUCE : COLL_REDUCE_SCATTER;
	double reduce, gather = 0;
	enum err e = group_time(
		cut, shared->group, coll, shared->grad * shared->count, &reduce);

	if (!e && !is_whole)
		e = group_time(cut, shared->group, COLL_ALL_GATHER, WORD * shared->count,
			&gather);
	if (e)
		return e;
	w->dp_reduce_s += reduce;
	w->dp_gather_s += gather;
	return OK;
}

/* Shards inside parts of the group, layer by layer, and each shard's gradients reduced
 * over the parts once a step. */
static enum err hybrid_wires(
	const struct cut *cut, const struct shared *shared, struct train_work *w)
{
	const struct train_grid *grid = grid_of(cut, shared->group);
	struct train_group_shape whole, parts[2];
	double bytes = WORD * shared->count / fmax(w->layers_max, 1);
	double gather, reduce, all;
	uint32_t inner = layout_shard_size(cut->l);
	enum err e;

	group_shape(grid, shared->group, cut->net->site.gpus, &whole);
	while (whole.size % inner)
		inner--;
	group_split(grid, shared->group, inner, cut->net->site.gpus, parts);
	e = shape_time(cut, &parts[0], COLL_ALL_GATHER, bytes, &gather);
	if (!e)
		e = shape_time(cut, &parts[0], COLL_REDUCE_SCATTER, bytes, &reduce);
	if (!e)
		e = shape_time(cut, &parts[1], COLL_ALL_REDUCE,
			bytes * w->layers_max / inner, &all);
	if (e)
		return e;
	w->gather_s += gather;
	w->reduce_s += reduce;
	w->dp_reduce_s += all;
	return OK;
}

/* Where everything is sharded: layer by layer. */
static enum err layer_shards(
	const struct cut *cut, const struct shared *shared, struct train_work *w)
{
	double count = shared->count / fmax(w->layers_max, 1), gather, reduce;
	enum err e = group_time(
		cut, shared->group, COLL_ALL_GATHER, WORD * count, &gather);

	if (!e)
		e = group_time(cut, shared->group, COLL_REDUCE_SCATTER,
			shared->grad * count, &reduce);
	if (e)
		return e;
	w->gather_s += gather;
	w->reduce_s += reduce;
	return OK;
}

/* Gradients and parameters over the data-parallel ranks, those of experts over theirs. */
static enum err data_wires(const struct cut *cut, struct train_work *w)
{
	const struct train_layout *l = cut->l;
	bool is_half = l->shard >= SHARD_ALL || l->grads == GRADS_HALF;
	const struct shared all[2] = {
		{GROUP_DP_CP, memory_stage_dense(cut->m, l, 0), is_half ? WORD : 4},
		{GROUP_EXPERT_DP, memory_stage_experts(cut->m, l, 0),
			is_half ? WORD : 4}};
	enum err e = OK;

	w->reduces = l->shard == SHARD_GRADIENTS ? w->micro_count : 1;
	if (cut->m->is_adapter)
		return OK;
	for (int i = 0; !e && i < 2; i++) {
		if (all[i].count <= 0)
			continue;
		if (l->shard == SHARD_HYBRID)
			e = hybrid_wires(cut, &all[i], w);
		else if (l->shard >= SHARD_ALL)
			e = layer_shards(cut, &all[i], w);
		else
			e = step_wires(cut, &all[i], w);
	}
	return e;
}

static void optimizer(const struct cut *cut, struct train_work *w)
{
	const struct train_layout *l = cut->l;
	double dense = memory_stage_dense(cut->m, l, 0);
	double experts = memory_stage_experts(cut->m, l, 0);

	if (l->shard == SHARD_HYBRID) {
		dense /= layout_shard_size(l);
		experts /= fmin(layout_shard_size(l), cut->expert.size[AXIS_DP]);
	} else if (l->shard != SHARD_NONE) {
		dense /= (double)l->dp * l->cp;
		experts /= cut->expert.size[AXIS_DP];
	}
	if (!cut->m->is_adapter)
		w->optimizer_bytes = (dense + experts) * 30;
}

/* DeepSpeed's host path: shards of parameters come in for both passes, gradients go out
 * and, from the second micro-batch on, come back to be added to; then the update passes
 * over parameters, gradients and both moments in memory: 28 bytes a parameter by Adam,
 * and 18 more for converting, norm, clipping and the way back to 16 bits. */
static void host_path(
	const struct cut *cut, const struct train_host *host, struct train_work *w)
{
	const struct train_layout *l = cut->l;
	double own = model_params(cut->m) / l->tp / l->pp, shards = (double)l->dp * l->cp;
	double threads = host->threads, dram;

	if (!l->offload)
		return;
	if (l->shard != SHARD_NONE)
		own /= shards;
	w->is_fed = l->offload & OFFLOAD_PARAMS;
	if (w->is_fed)
		w->host_in += 2 * WORD * own;
	if (l->offload & (OFFLOAD_GRADIENTS | OFFLOAD_OPTIMIZER)) {
		w->host_out += WORD * own;
		w->host_in += WORD * own * (w->micro_count - 1) / w->micro_count;
	}
	if (l->offload & OFFLOAD_OPTIMIZER)
		w->host_update = own * (28 + 18);
	w->host_in_rate = 1e9 * COPY_SHARE *
			  fmin(cut->net->site.gpus ? w->gpu->pcie_gbps : 1,
				  host->uplink_gbps / host->uplink_gpus);
	dram = host->dram_gbps / host->processes;
	if (!host->threads)
		threads = host->pod_processes > 1 ? 1
						  : (double)host->cores / host->processes;
	w->host_update_rate = 1e9 * fmin(dram, threads * host->thread_gbps);
}

enum err work_make(const struct train_job *job, struct train_work *w)
{
	const struct train_model *m = job->model;
	const struct train_layout *l = job->layout;
	struct cut cut = {.m = m, .l = l, .net = job->net};
	enum err e = grid_make(l, job->order, false, &cut.dense);

	if (!e)
		e = grid_make(l, job->order, true, &cut.expert);
	if (e)
		return e;
	cut.tokens = (double)l->micro * l->sequence / l->cp;
	*w = (struct train_work){.gpu = job->gpu,
		.precision = l->precision,
		.shard = l->shard,
		.recompute = l->recompute,
		.is_adapter = m->is_adapter,
		.flash = l->flash,
		.no_overlap = l->no_overlap,
		.is_zero_bubble = l->is_zero_bubble,
		.micro_count = layout_micro_count(l),
		.stages = l->pp,
		.chunks = l->vp,
		.layers = m->layers,
		.nodes = job->net->site.nodes};
	w->layers_max = layout_fullest(m, l);
	w->tokens = (double)l->batch * l->sequence;
	w->flops_model = w->tokens * model_flops(m, l->sequence) / l->gpus;
	gemms_make(&cut, w);
	figures_apply(m, w);
	memory_traffic(&cut, w);
	optimizer(&cut, w);
	host_path(&cut, job->host, w);
	e = layer_wires(&cut, w);
	if (!e)
		e = hop(&cut, w);
	if (!e)
		e = data_wires(&cut, w);
	return e;
}

void host_find(const char *machine, const struct train_gpu *gpu, struct train_host *host)
{
	/* p4d: two sockets with six channels of DDR4-2933 and PCIe 3; two GPUs and one
	 * EFA behind each of four switches. */
	static const struct {
		const char *prefix;
		struct train_host host;
	} known[] = {
		{"p4d", {160, 7, 12.5, 2, 96, 0, 8, 8, false}},
		{"p5", {350, 8, 50, 1, 192, 0, 8, 8, false}},
		{"p6e", {800, 12, 180, 1, 144, 0, 4, 4, false}},
		{"p6", {400, 8, 50, 1, 192, 0, 8, 8, false}},
		{"dgx-a100", {300, 7, 24, 2, 256, 0, 8, 8, false}},
		{"dgx-h100", {450, 8, 50, 1, 224, 0, 8, 8, false}},
	};

	*host = (struct train_host){300, 7, gpu->pcie_gbps, 2, 96, 0, 8, 8, true};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strncmp(machine, known[i].prefix, strlen(known[i].prefix))) {
			*host = known[i].host;
			return;
		}
}
