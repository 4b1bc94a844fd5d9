#include "train/step.h"

#include <math.h>

static const char *const names[STEP_PARTS] = {"matrix products", "attention",
	"memory-bound operations", "tensor parallel", "context parallel",
	"expert parallel", "between stages", "pipeline bubble", "data parallel",
	"host offload: copies", "host offload: optimizer", "optimizer",
	"launches and waits"};

const char *step_part_name(enum step_part part)
{
	return names[part];
}

static double gemm_time(const struct train_work *w, const struct work_gemm *g,
	enum train_precision precision, double half, double share)
{
	double peak = w->gpu->tflops[precision] * w->gpu->ceiling[precision];
	double side = half * sqrt(peak / 271);

	return 2 * g->m * g->n * g->k * g->count /
	       (peak * 1e12 * share * gpu_shape_share(g->m, g->n, g->k, side));
}

void step_layer_make(const struct train_work *w, const struct train_params *p,
	struct step_layer *layer)
{
	const double *v = p->value;
	double feed = 0, experts = 0, hbm = w->gpu->hbm_gbps * 1e9;
	double peak = w->gpu->tflops[PRECISION_BF16] * 1e12;

	*layer = (struct step_layer){.launch = v[PARAM_LAUNCH] * 1e-6};
	for (uint32_t i = 0; i < w->gemm_count; i++) {
		double time = gemm_time(
			w, &w->gemms[i], w->precision, v[PARAM_HALF], v[PARAM_SHARE]);

		if (i < w->feed_first)
			layer->gemm += time;
		else
			feed += time;
	}
	for (uint32_t i = 0; w->moe_share > 0 && i < w->moe_count; i++)
		experts += gemm_time(w, &w->moe_gemms[i], w->precision, v[PARAM_HALF],
			v[PARAM_SHARE] * v[PARAM_MOE]);
	layer->gemm += (1 - w->moe_share) * feed + w->moe_share * experts;
	layer->attention = w->attention_flops /
				   (peak * w->attention_share * v[PARAM_ATTENTION]) *
				   (w->is_aligned || w->flash ? 1 : v[PARAM_UNALIGNED]) +
			   w->score_bytes * v[PARAM_SCORE] / hbm;
	layer->point = (w->point_bytes * v[PARAM_POINT] + w->moe_share * w->moe_bytes) /
		       hbm;
	layer->tp = w->tp_s;
	layer->cp = w->cp_s;
	layer->ep = w->ep_s * w->moe_share;
}

/* What is seen of x seconds beside w of work: never so little that both together take
 * less than x. */
static double seen(double x, double w, double hide)
{
	if (x <= 0)
		return 0;
	return hide > 0 ? fmax(x * x / (x + hide * w), x - w) : x;
}

/* A part of one micro-batch on the fullest stage, forward and backward. */
static void part_add(struct train_step *s, enum step_part part, double total, double seen)
{
	s->total[part] += total;
	s->seen[part] += seen;
}

struct passes {
	double gemm, attention, point, wires; /* of forward, that a step is */
};

static struct passes passes_of(const struct train_work *w)
{
	struct passes passes = {3, 3.5, 2.7, 2};

	if (!w->flash)
		passes.attention = 3;
	if (w->is_adapter)
		passes.gemm = 2;
	if (w->recompute == RECOMPUTE_FULL) {
		passes.gemm++;
		passes.attention++;
		passes.point++;
		passes.wires++;
	} else if (w->recompute == RECOMPUTE_SELECTIVE) {
		passes.attention++;
	} else if (w->recompute == RECOMPUTE_OPS) {
		passes.gemm += .5;
		passes.point++;
	}
	return passes;
}

static double sum(const double part[STEP_PARTS])
{
	double all = 0;

	for (int i = 0; i < STEP_PARTS; i++)
		all += part[i];
	return all;
}

/* Sending of which a share is seen, or all of it where it is not to overlap. A share
 * above 1 is sending that takes so much longer. */
static void sending_add(const struct train_work *w, struct train_step *s,
	enum step_part part, double seconds, double share)
{
	static const uint32_t bits[STEP_PARTS] = {[PART_TP] = EXPOSE_TP,
		[PART_CP] = EXPOSE_CP,
		[PART_EP] = EXPOSE_EP,
		[PART_PP] = EXPOSE_PP};
	double total = seconds * fmax(1, share);

	part_add(s, part, total, w->no_overlap & bits[part] ? total : seconds * share);
}

/* Tokens on their way to experts and back. Interleaved pipelines send those of one
 * micro-batch over the network while another is computed. */
static void experts_add(const struct train_work *w, const struct train_params *p,
	double total, struct train_step *s)
{
	double share = p->value[w->is_ep_far ? PARAM_EP_FAR : PARAM_EP];
	double hide = p->value[PARAM_HIDE];

	if (w->is_ep_far && w->stages > 1 && w->chunks > 1 &&
		!(w->no_overlap & EXPOSE_EP))
		part_add(s, PART_EP, total * fmax(1, share),
			seen(total * share, sum(s->seen), hide));
	else
		sending_add(w, s, PART_EP, total, share);
}

static void layers_add(const struct train_work *w, const struct train_params *p,
	const struct step_layer *layer, double layers, struct train_step *s)
{
	const double *v = p->value;
	struct passes n = passes_of(w);
	double host;

	part_add(s, PART_GEMM, layers * n.gemm * layer->gemm,
		layers * n.gemm * layer->gemm);
	part_add(s, PART_ATTENTION, layers * n.attention * layer->attention,
		layers * n.attention * layer->attention);
	part_add(s, PART_POINT, layers * n.point * layer->point,
		layers * n.point * layer->point);
	part_add(s, PART_OTHER, layers * n.wires * layer->launch,
		layers * n.wires * layer->launch);
	sending_add(w, s, PART_TP, layers * n.wires * layer->tp, v[PARAM_TP]);
	sending_add(w, s, PART_CP, layers * (n.wires + 1) * layer->cp, v[PARAM_CP]);
	experts_add(w, p, layers * n.wires * layer->ep, s);
	/* A layer with experts is many small kernels: it takes as long as the host needs
	 * to start them. */
	host = layers * n.wires * w->moe_share * v[PARAM_ROUTE] * 1e-6;
	if (host > sum(s->seen))
		part_add(s, PART_OTHER, host - sum(s->seen), host - sum(s->seen));
}

/* Embedding and head, beside the layers of their stages. */
static double ends_time(const struct train_work *w, const struct train_params *p)
{
	double hbm = w->gpu->hbm_gbps * 1e9;

	return 3 * gemm_time(w, &w->head, PRECISION_BF16, p->value[PARAM_HALF],
			   p->value[PARAM_SHARE]) +
	       w->head_bytes / hbm;
}

/* Shards that come together layer by layer, each micro-batch again. */
static void sharded_add(const struct train_work *w, const struct train_params *p,
	double work, struct train_step *s)
{
	double gathers = w->shard == SHARD_KEEP ? 1 : 2, layers = w->layers_max;
	double forward = work / layers / 3, backward = 2 * forward;
	double hide = w->no_overlap & EXPOSE_DP ? 0 : p->value[PARAM_HIDE];
	double slow = p->value[PARAM_DP];
	double gather = slow * w->gather_s, reduce = slow * w->reduce_s;
	double copies = w->host_in_rate > 0 ? w->host_in / w->host_in_rate / layers : 0;
	double once = seen(gather, forward, hide) +
		      seen((gathers - 1) * gather + reduce, backward, hide);

	/* Shards from the host are gathered as they arrive, beside nothing; gradients
	 * have a stream of their own. */
	if (w->is_fed)
		once = gathers * gather + seen(reduce, backward + copies, hide);
	part_add(s, PART_DP, layers * (gathers * gather + reduce), layers * once);
}

/* All micro-batches through all stages: the fullest stage is the beat, the others are
 * filled and drained once. */
static void pipeline(const struct train_work *w, const struct train_params *p,
	const struct step_layer *layer, struct train_step *s)
{
	double ends = ends_time(w, p), beat, all, hop, fill;
	double embed = 3 * w->embed_bytes / (w->gpu->hbm_gbps * 1e9);
	double average = w->layers / w->stages, last;

	layers_add(w, p, layer, w->layers_max, s);
	beat = sum(s->seen);
	/* The head makes the last stage the fullest unless it has a layer less. */
	last = beat * fmax(average - 1, 0) / w->layers_max + ends;
	if (w->stages == 1 || w->layers_max * w->stages == w->layers)
		last = beat + ends;
	part_add(s, PART_GEMM, fmax(0, last - beat), fmax(0, last - beat));
	if (w->stages == 1)
		part_add(s, PART_POINT, embed, embed);
	beat = sum(s->seen);
	if (w->shard >= SHARD_ALL)
		sharded_add(w, p, beat, s);
	beat = sum(s->seen);
	s->forward_s = beat / 3;
	s->backward_s = 2 * beat / 3;
	for (int i = 0; i < STEP_PARTS; i++) {
		s->seen[i] *= w->micro_count;
		s->total[i] *= w->micro_count;
	}
	if (w->stages == 1)
		return;
	all = beat * w->layers / w->layers_max / w->stages;
	part_add(s, PART_BUBBLE, 0,
		(w->stages - 1) * all / w->chunks / (w->is_zero_bubble ? 3 : 1));
	hop = 2 * w->hop_s * w->chunks;
	fill = (w->stages - 1) / w->chunks;
	sending_add(w, s, PART_PP, hop * w->micro_count, p->value[PARAM_HOP]);
	part_add(s, PART_PP, hop * fill, hop * fill);
}

/* Micro-batches that sending once a step can hide behind. A chunk's gradients are whole
 * when its last micro-batch is through, while those of the other chunks are still to
 * come: with interleaving that is a round of micro-batches, without it the last one. */
static double window_of(const struct train_work *w)
{
	double round = fmin(w->micro_count, w->stages);

	return w->chunks > 1 ? 1 + (round - 1) * (w->chunks - 1) / w->chunks : 1;
}

static void data_parallel(
	const struct train_work *w, const struct train_params *p, struct train_step *s)
{
	double hide = w->no_overlap & EXPOSE_DP ? 0 : p->value[PARAM_HIDE];
	double gather = p->value[PARAM_DP] * w->dp_gather_s;
	double reduce = p->value[PARAM_DP] * w->dp_reduce_s;
	double window = window_of(w);

	/* After each micro-batch each has its own to hide behind. */
	if (w->reduces > 1)
		window = 1;
	part_add(s, PART_DP, gather + w->reduces * reduce,
		seen(gather, window * s->forward_s, hide) +
			w->reduces * seen(reduce, window * s->backward_s, hide));
}

static void host(const struct train_work *w, struct train_step *s)
{
	double copies = 0;

	if (w->host_in_rate > 0)
		copies = w->micro_count * fmax(w->host_in, w->host_out) / w->host_in_rate;
	part_add(s, PART_HOST_COPY, copies, copies);
	if (w->host_update_rate > 0) {
		double update = w->host_update / w->host_update_rate;

		part_add(s, PART_HOST_UPDATE, update, update);
	}
}

static void tail(
	const struct train_work *w, const struct train_params *p, struct train_step *s)
{
	double hbm = w->gpu->hbm_gbps * 1e9, wait;

	if (w->host_update <= 0)
		part_add(s, PART_OPTIMIZER, w->optimizer_bytes / hbm,
			w->optimizer_bytes / hbm);
	part_add(s, PART_OTHER, p->value[PARAM_FIXED] * 1e-3,
		p->value[PARAM_FIXED] * 1e-3);
	wait = sum(s->seen) * p->value[PARAM_CROWD] / 100 * log2(fmax(1, w->nodes));
	part_add(s, PART_OTHER, wait, wait);
}

/* The host's two parts are one bound. */
static enum step_part bound_of(const struct train_step *s)
{
	double host = s->seen[PART_HOST_COPY] + s->seen[PART_HOST_UPDATE];
	enum step_part best = PART_GEMM;

	for (int i = 0; i < STEP_PARTS; i++)
		if (s->seen[i] > s->seen[best])
			best = (enum step_part)i;
	if (host > s->seen[best])
		return s->seen[PART_HOST_COPY] > s->seen[PART_HOST_UPDATE]
			       ? PART_HOST_COPY
			       : PART_HOST_UPDATE;
	return best;
}

void step_of_layer(const struct train_work *w, const struct train_params *p,
	const struct step_layer *layer, struct train_step *s)
{
	*s = (struct train_step){0};
	pipeline(w, p, layer, s);
	data_parallel(w, p, s);
	host(w, s);
	tail(w, p, s);
	s->seconds = sum(s->seen);
	s->bound = bound_of(s);
	s->mfu = w->flops_model / s->seconds / (w->gpu->tflops[PRECISION_BF16] * 1e12);
	s->tokens_per_s = w->tokens / s->seconds;
}

void step_make(
	const struct train_work *w, const struct train_params *p, struct train_step *s)
{
	struct step_layer layer;

	step_layer_make(w, p, &layer);
	step_of_layer(w, p, &layer, s);
}

double step_seconds(const struct train_work *w, const struct train_params *p)
{
	struct train_step step;

	step_make(w, p, &step);
	return step.seconds;
}
