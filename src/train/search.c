#include "train/search.h"

#include <math.h>
#include <string.h>

enum { DEGREE_MAX = 64, MICRO_MAX = 16, CHUNKS_MAX = 16 };

struct hunt {
	const struct train_job *job;
	const struct calib_answer *answer;
	struct search_result *result;
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

static void recomputes_walk(struct hunt *w)
{
	for (int i = RECOMPUTE_NONE; i <= RECOMPUTE_FULL; i++) {
		w->layout.recompute = w->work.recompute = (enum train_recompute)i;
		layout_try(w);
	}
	w->layout.recompute = RECOMPUTE_NONE;
}

/* A degree that was said is kept. */
static bool is_wanted(uint32_t degree, uint32_t said)
{
	return said <= 1 || degree == said;
}

/* Chunks change nothing of the layers, and nothing of what a stage holds where they
 * divide. */
static enum err chunks_walk(struct hunt *w, const struct train_job *job)
{
	struct train_layout *l = &w->layout;
	const struct train_model *m = job->model;
	enum err e = OK;

	if (is_wanted(1, w->job->layout->vp))
		recomputes_walk(w);
	if (l->pp == 1 || layout_micro_count(l) % l->pp)
		return OK;
	for (l->vp = 2; !e && l->vp <= CHUNKS_MAX && l->pp * l->vp <= m->layers;
		l->vp++) {
		uint32_t pieces = l->pp * l->vp;

		if (!is_wanted(l->vp, w->job->layout->vp))
			continue;

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

	if (w->layout.offload & OFFLOAD_PARAMS)
		return shard == SHARD_ALL;
	if (ranks == 1)
		return shard == SHARD_NONE;
	if (shard == SHARD_HYBRID)
		return w->job->net->site.nodes > 1 && w->layout.tp == 1 &&
		       w->layout.pp == 1 && w->layout.cp == 1 &&
		       ranks % layout_shard_size(&w->layout) == 0;
	return true;
}

static enum err shards_walk(struct hunt *w)
{
	struct train_job job = *w->job;
	enum err e = OK;

	job.layout = &w->layout;
	if (!grid_is_allowed(&w->layout, job.order))
		return OK;
	for (int i = 0; !e && i < SHARDS; i++) {
		w->layout.shard = (enum train_shard)i;
		if (!is_shard_sensible(w, w->layout.shard))
			continue;
		for (w->layout.micro = 1; !e && w->layout.micro <= MICRO_MAX;
			w->layout.micro *= 2) {
			if (!is_wanted(w->layout.micro, w->job->layout->micro) ||
				w->layout.batch %
					((uint64_t)w->layout.dp * w->layout.micro))
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
	enum err e = OK;

	l->etp = m->experts ? 1 : 0;
	for (l->ep = 1; !e && l->ep <= (m->experts ? m->experts : 1); l->ep *= 2)
		if (is_wanted(l->ep, w->job->layout->ep) && divides(m->experts, l->ep) &&
			divides(stage, l->ep))
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
	uint32_t left = l->gpus / l->tp / l->cp;
	enum err e = OK;

	for (l->pp = 1; !e && l->pp <= w->job->model->layers && l->pp <= left; l->pp++) {
		if (left % l->pp || !is_wanted(l->pp, w->job->layout->pp))
			continue;
		l->dp = left / l->pp;
		cell_take(w);
		if (is_wanted(l->dp, w->job->layout->dp) && l->batch % l->dp == 0)
			e = experts_walk(w);
	}
	return e;
}

static bool tp_fits(const struct train_model *m, uint32_t tp)
{
	return m->heads % tp == 0 && (m->kv_heads % tp == 0 || tp % m->kv_heads == 0);
}

enum err layouts_search(const struct train_job *job, const struct calib_answer *answer,
	struct search_result *result)
{
	struct hunt w = {.job = job,
		.answer = answer,
		.result = result,
		.layout = *job->layout,
		.memory = job->gpu->memory_gb * 1e9};
	struct train_layout *l = &w.layout;
	enum err e = OK;

	*result = (struct search_result){.least_bytes = INFINITY};
	l->vp = 1;
	for (l->tp = 1; !e && l->tp <= DEGREE_MAX && l->tp <= l->gpus; l->tp *= 2)
		for (l->cp = 1; !e && l->cp <= DEGREE_MAX && l->cp * l->tp <= l->gpus;
			l->cp *= 2)
			if (is_wanted(l->tp, job->layout->tp) &&
				is_wanted(l->cp, job->layout->cp) &&
				l->gpus % (l->tp * l->cp) == 0 &&
				tp_fits(job->model, l->tp) &&
				(l->cp == 1 || l->sequence % (2 * l->cp) == 0))
				e = stages_walk(&w);
	if (!e && !result->tried)
		e = err_set(ERR_USAGE,
			"a batch of %u divides over no layout of %u GPUs; give --gbs a "
			"multiple of what is left for dp",
			l->batch, l->gpus);
	return e;
}
