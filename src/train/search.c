#include "train/search.h"

#include <math.h>
#include <string.h>

enum { DEGREE_MAX = 64, MICRO_MAX = 16, CHUNKS_MAX = 16 };

struct hunt {
	const struct train_job *job;
	const struct calib_answer *answer;
	struct search_result *result;
	uint32_t said;
	struct train_layout layout; /* under way */
	struct train_work work;
	struct step_layer layer;
	double memory;		  /* that a GPU has, bytes */
	struct search_cell *cell; /* of the tp and pp under way */
	struct search_cell rest;  /* for those that there is no room for */
};

static void hit_add(struct search_result *r, const struct search_hit *hit)
{
	uint32_t at = r->hit_count;

	if (at == SEARCH_HITS && hit->seconds >= r->hits[at - 1].seconds)
		return;
	if (at < SEARCH_HITS)
		r->hit_count++;
	else
		at--;
	while (at > 0 && r->hits[at - 1].seconds > hit->seconds) {
		r->hits[at] = r->hits[at - 1];
		at--;
	}
	r->hits[at] = *hit;
}

/* The layout is whole: does it fit, and how fast is it? */
static void layout_try(struct hunt *w)
{
	struct search_result *r = w->result;
	struct train_memory memory;
	struct train_step step;

	r->tried++;
	memory_make(w->job->model, &w->layout, &w->answer->habit, &memory);
	if (memory.total < r->least_bytes)
		r->least_bytes = memory.total;
	if (memory.total > w->memory)
		return;
	r->fitting++;
	step_of_layer(&w->work, &w->answer->params, &w->layer, &step);
	if (w->cell->seconds <= 0 || step.seconds < w->cell->seconds)
		w->cell->seconds = step.seconds;
	hit_add(r, &(struct search_hit){w->layout, step.seconds, memory.total});
}

/* Values of a degree: the one that was said, or from 1 to the most that makes sense. */
struct range {
	uint32_t first, last;
};

static struct range range_of(
	const struct hunt *w, uint32_t bit, uint32_t value, uint32_t most)
{
	if (w->said & bit)
		return (struct range){value, value};
	return (struct range){1, most};
}

static void recomputes_walk(struct hunt *w)
{
	enum train_recompute said = w->job->layout->recompute;

	for (int i = RECOMPUTE_NONE; i < RECOMPUTES; i++) {
		if (w->said & SAID_RECOMPUTE ? i != (int)said : i > RECOMPUTE_FULL)
			continue;
		w->layout.recompute = w->work.recompute = (enum train_recompute)i;
		layout_try(w);
	}
	w->layout.recompute = RECOMPUTE_NONE;
}

/* Chunks change nothing of the layers, and nothing of what a stage holds where they
 * divide. */
static enum err chunks_walk(struct hunt *w, const struct train_job *job)
{
	struct train_layout *l = &w->layout;
	const struct train_model *m = job->model;
	struct range r = range_of(w, SAID_VP, w->job->layout->vp, CHUNKS_MAX);
	enum err e = OK;

	if (r.first == 1)
		recomputes_walk(w);
	if (l->pp == 1 || layout_micro_count(l) % l->pp)
		return OK;
	for (l->vp = r.first > 1 ? r.first : 2;
		!e && l->vp <= r.last && l->pp * l->vp <= m->layers; l->vp++) {
		uint32_t pieces = l->pp * l->vp;

		if (m->layers % pieces && (m->layers + 2) % pieces)
			continue;
		if (m->layers % pieces)
			e = work_make(job, &w->work);
		w->work.chunks = l->vp;
		w->work.layers_max = layout_fullest(m, l);
		if (!e)
			recomputes_walk(w);
	}
	l->vp = 1;
	return e;
}

/* Hybrid sharding is the full one where there is one node. */
static bool is_shard_sensible(const struct hunt *w, enum train_shard shard)
{
	uint32_t ranks = w->layout.dp * w->layout.cp;
	bool is_whole = ranks % layout_shard_size(&w->layout) == 0;

	if (w->layout.offload & OFFLOAD_PARAMS && shard != SHARD_ALL)
		return false;
	if (w->said & SAID_SHARD)
		return shard == w->job->layout->shard &&
		       (shard != SHARD_HYBRID || is_whole);
	if (w->layout.offload & OFFLOAD_PARAMS)
		return true;
	if (ranks == 1)
		return shard == SHARD_NONE;
	if (shard == SHARD_HYBRID)
		return w->job->net->site.nodes > 1 && w->layout.tp == 1 &&
		       w->layout.pp == 1 && w->layout.cp == 1 && is_whole;
	return true;
}

static enum err shards_walk(struct hunt *w)
{
	struct train_job job = *w->job;
	struct range r = range_of(w, SAID_MICRO, w->job->layout->micro, MICRO_MAX);
	enum err e = OK;

	job.layout = &w->layout;
	if (!grid_is_allowed(&w->layout, job.order))
		return OK;
	for (int i = 0; !e && i < SHARDS; i++) {
		w->layout.shard = (enum train_shard)i;
		if (!is_shard_sensible(w, w->layout.shard))
			continue;
		for (w->layout.micro = r.first; !e && w->layout.micro <= r.last;
			w->layout.micro *= 2) {
			if (w->layout.batch % ((uint64_t)w->layout.dp * w->layout.micro))
				continue;
			e = work_make(&job, &w->work);
			if (e)
				break;
			step_layer_make(&w->work, &w->answer->params, &w->layer);
			e = chunks_walk(w, &job);
		}
	}
	return e;
}

static bool divides(uint64_t whole, uint32_t part)
{
	return part && whole % part == 0;
}

static enum err experts_walk(struct hunt *w)
{
	struct train_layout *l = &w->layout;
	const struct train_model *m = w->job->model;
	uint64_t stage = (uint64_t)l->tp * l->cp * l->dp;
	struct range r = range_of(
		w, SAID_EP, w->job->layout->ep, m->experts ? m->experts : 1);
	enum err e = OK;

	l->etp = m->experts ? 1 : 0;
	if (w->said & SAID_ETP)
		l->etp = w->job->layout->etp;
	if (!m->experts && (r.first > 1 || l->etp > 1))
		return OK;
	for (l->ep = r.first; !e && l->ep <= r.last; l->ep *= 2)
		if (divides(m->experts, l->ep) &&
			divides(stage, l->ep * layout_expert_tp(l)))
			e = shards_walk(w);
	return e;
}

static void cell_take(struct hunt *w)
{
	struct search_result *r = w->result;

	for (uint32_t i = 0; i < r->cell_count; i++)
		if (r->cells[i].tp == w->layout.tp && r->cells[i].pp == w->layout.pp) {
			w->cell = &r->cells[i];
			return;
		}
	w->cell = r->cell_count < SEARCH_CELLS ? &r->cells[r->cell_count++] : &w->rest;
	*w->cell = (struct search_cell){.tp = w->layout.tp, .pp = w->layout.pp};
}

static enum err stages_walk(struct hunt *w)
{
	struct train_layout *l = &w->layout;
	uint32_t left = l->gpus / l->tp / l->cp, layers = w->job->model->layers;
	struct range r = range_of(w, SAID_PP, w->job->layout->pp, layers);
	enum err e = OK;

	for (l->pp = r.first; !e && l->pp <= r.last && l->pp <= left; l->pp++) {
		if (left % l->pp || l->pp > layers)
			continue;
		l->dp = left / l->pp;
		cell_take(w);
		if (w->said & SAID_DP && l->dp != w->job->layout->dp)
			continue;
		if (l->batch % l->dp == 0)
			e = experts_walk(w);
	}
	return e;
}

static bool tp_fits(const struct train_model *m, uint32_t tp)
{
	return m->heads % tp == 0 && (m->kv_heads % tp == 0 || tp % m->kv_heads == 0);
}

static enum err parts_walk(struct hunt *w)
{
	struct train_layout *l = &w->layout;
	struct range r = range_of(w, SAID_CP, w->job->layout->cp, DEGREE_MAX);
	enum err e = OK;

	for (l->cp = r.first; !e && l->cp <= r.last && l->cp * l->tp <= l->gpus;
		l->cp *= 2)
		if (l->gpus % (l->tp * l->cp) == 0 &&
			(l->cp == 1 || l->sequence % (2 * l->cp) == 0))
			e = stages_walk(w);
	return e;
}

/* No layout has numbers that divide. */
static enum err nothing_divides(const struct hunt *w)
{
	if (w->said)
		return err_set(ERR_USAGE,
			"no layout of %u GPUs with a batch of %u has what was said; say "
			"less of the layout, or another --gbs",
			w->layout.gpus, w->layout.batch);
	return err_set(ERR_USAGE,
		"a batch of %u divides over no layout of %u GPUs; give --gbs a multiple "
		"of what is left for dp",
		w->layout.batch, w->layout.gpus);
}

enum err layouts_search(const struct train_job *job, const struct calib_answer *answer,
	uint32_t said, struct search_result *result)
{
	struct hunt w = {.job = job,
		.answer = answer,
		.result = result,
		.said = said,
		.layout = *job->layout,
		.memory = job->gpu->memory_gb * 1e9};
	struct train_layout *l = &w.layout;
	struct range r = range_of(&w, SAID_TP, job->layout->tp, DEGREE_MAX);
	enum err e = OK;

	*result = (struct search_result){.least_bytes = INFINITY};
	l->vp = 1;
	for (l->tp = r.first; !e && l->tp <= r.last && l->tp <= l->gpus; l->tp *= 2)
		if (tp_fits(job->model, l->tp))
			e = parts_walk(&w);
	return e || result->tried ? e : nothing_divides(&w);
}
