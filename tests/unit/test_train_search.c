/* The search finds what trying every layout finds. */
#include "train/search.h"

#include <math.h>

#include "test.h"

struct bench {
	struct train_model model;
	struct train_net net;
	struct train_host host;
	struct train_order order;
	struct train_layout base;
	struct calib_answer answer;
	struct train_job job;
	const struct train_gpu *gpu;
};

static void bench_make(struct bench *b, const char *model, uint32_t nodes, uint32_t batch)
{
	static struct train_calib calib;
	struct calib_who who = {"", NULL, PRECISION_BF16, false};

	EQ(model_find(model, &b->model), OK);
	EQ(net_make(&b->net, "dgx-h100", nodes, 8), OK);
	EQ(gpu_of_machine("dgx-h100", &b->gpu), OK);
	host_find("dgx-h100", b->gpu, &b->host);
	EQ(order_parse("tp-cp-ep-dp-pp", &b->order), OK);
	layout_default(nodes * 8, &b->base);
	b->base.batch = batch;
	b->base.shard_size = 8;
	who.gpu = b->gpu;
	who.is_moe = b->model.experts > 0;
	calib_load(&calib);
	calib_ask(&calib, &who, &b->answer);
	b->job = (struct train_job){
		&b->model, &b->base, &b->order, &b->net, b->gpu, &b->host};
}

struct best {
	double seconds;
	uint64_t tried, fitting;
};

static void one_try(struct bench *b, const struct train_layout *l, struct best *best)
{
	struct train_job job = b->job;
	struct train_memory memory;
	struct train_work work;
	double seconds;

	if (layout_check(&b->model, l))
		return;
	best->tried++;
	memory_make(&b->model, l, &b->answer.habit, &memory);
	if (memory.total > b->gpu->memory_gb * 1e9)
		return;
	best->fitting++;
	job.layout = l;
	EQ(work_make(&job, &work), OK);
	seconds = step_seconds(&work, &b->answer.params);
	if (seconds < best->seconds)
		best->seconds = seconds;
}

/* What the space leaves out on purpose: degrees that are no powers of two, stages that do
 * not divide when interleaved, sharding over one rank, hybrid beside other cuts. */
static bool is_outside(const struct bench *b, const struct train_layout *l)
{
	uint32_t pieces = l->pp * l->vp, ranks = l->dp * l->cp;

	if (l->vp > 1 &&
		(l->pp == 1 || pieces > b->model.layers ||
			(b->model.layers % pieces && (b->model.layers + 2) % pieces)))
		return true;
	if (ranks == 1)
		return l->shard != SHARD_NONE;
	return l->shard == SHARD_HYBRID &&
	       (b->net.site.nodes == 1 || l->tp > 1 || l->pp > 1 || l->cp > 1);
}

static void inner(struct bench *b, struct train_layout *l, struct best *best)
{
	for (l->vp = 1; l->vp <= 16; l->vp++)
		for (l->micro = 1; l->micro <= 16; l->micro *= 2)
			for (int shard = 0; shard < SHARDS; shard++)
				for (int r = 0; r <= RECOMPUTE_FULL; r++) {
					l->shard = (enum train_shard)shard;
					l->recompute = (enum train_recompute)r;
					if (!is_outside(b, l))
						one_try(b, l, best);
				}
}

static struct best brute(struct bench *b)
{
	struct best best = {.seconds = INFINITY};
	struct train_layout l = b->base;

	l.etp = b->model.experts ? 1 : 0;
	for (l.tp = 1; l.tp <= l.gpus; l.tp *= 2)
		for (l.cp = 1; l.cp <= l.gpus; l.cp *= 2)
			for (l.pp = 1; l.pp <= b->model.layers; l.pp++)
				for (l.ep = 1; l.ep <= l.gpus; l.ep *= 2) {
					l.dp = l.gpus / l.tp / l.cp / l.pp;
					if (l.dp)
						inner(b, &l, &best);
				}
	return best;
}

static void compare(const char *model, uint32_t nodes, uint32_t batch)
{
	static struct bench b;
	struct search_result found;
	struct best best;

	bench_make(&b, model, nodes, batch);
	EQ(layouts_search(&b.job, &b.answer, 0, &found), OK);
	best = brute(&b);
	EQ(found.tried, best.tried);
	EQ(found.fitting, best.fitting);
	TRUE(found.hit_count > 0);
	if (fabs(found.hits[0].seconds / best.seconds - 1) > 1e-9) {
		fprintf(stderr, "%s: %.9g is not %.9g\n", model, found.hits[0].seconds,
			best.seconds);
		exit(1);
	}
	best.seconds = INFINITY; /* the map has the best, too, and nothing faster */
	for (uint32_t i = 0; i < found.cell_count; i++)
		if (found.cells[i].seconds > 0)
			best.seconds = fmin(best.seconds, found.cells[i].seconds);
	TRUE(best.seconds == found.hits[0].seconds);
	for (uint32_t i = 1; i < found.hit_count; i++)
		TRUE(found.hits[i - 1].seconds <= found.hits[i].seconds);
	for (uint32_t i = 0; i < found.hit_count; i++)
		EQ(layout_check(&b.model, &found.hits[i].layout), OK);
	net_free(&b.net);
}

/* Parameters on the host ask for shards of everything, and degrees that were said stay.
 */
static void conditions(void)
{
	static struct bench b;
	struct search_result found;
	uint64_t all;

	bench_make(&b, "llama2-7b", 2, 64);
	EQ(layouts_search(&b.job, &b.answer, 0, &found), OK);
	all = found.tried;
	b.base.offload = OFFLOAD_PARAMS;
	EQ(layouts_search(&b.job, &b.answer, 0, &found), OK);
	TRUE(found.hit_count > 0);
	for (uint32_t i = 0; i < found.hit_count; i++)
		EQ(layout_check(&b.model, &found.hits[i].layout), OK);
	b.base.offload = 0;
	b.base.tp = 4;
	b.base.pp = 2;
	b.base.micro = 2;
	EQ(layouts_search(&b.job, &b.answer, SAID_TP | SAID_PP | SAID_MICRO, &found), OK);
	TRUE(found.tried > 0 && found.tried < all);
	for (uint32_t i = 0; i < found.hit_count; i++) {
		EQ(found.hits[i].layout.tp, 4);
		EQ(found.hits[i].layout.pp, 2);
		EQ(found.hits[i].layout.micro, 2);
	}
	net_free(&b.net);
}

/* What was said is kept, a degree of 1 and what a search would not try too. */
static void said(void)
{
	static struct bench b;
	struct search_result found;

	bench_make(&b, "mixtral-8x7b", 3, 72);
	b.base.tp = b.base.cp = b.base.vp = 1;
	b.base.dp = 24;
	b.base.micro = b.base.pp = 1;
	b.base.ep = 4;
	b.base.etp = 2;
	b.base.shard = SHARD_ALL;
	b.base.recompute = RECOMPUTE_OPS;
	EQ(layouts_search(&b.job, &b.answer,
		   SAID_SHARD | SAID_RECOMPUTE | SAID_CP | SAID_VP | SAID_DP, &found),
		OK);
	TRUE(found.fitting > 0);
	for (uint32_t i = 0; i < found.hit_count; i++) {
		const struct train_layout *l = &found.hits[i].layout;

		TRUE(l->tp == 1 && l->cp == 1 && l->vp == 1 && l->dp == 24);
		TRUE(l->shard == SHARD_ALL && l->recompute == RECOMPUTE_OPS);
	}
	b.base.pp = 3;
	b.base.micro = 3;
	EQ(layouts_search(
		   &b.job, &b.answer, SAID_PP | SAID_MICRO | SAID_ETP | SAID_EP, &found),
		OK);
	for (uint32_t i = 0; i < found.hit_count; i++) {
		const struct train_layout *l = &found.hits[i].layout;

		TRUE(l->pp == 3 && l->micro == 3 && l->ep == 4 && l->etp == 2);
		EQ(layout_check(&b.model, l), OK);
	}
	b.base.tp = 3; /* no power of two, and 32 heads do not divide */
	EQ(layouts_search(&b.job, &b.answer, SAID_TP, &found), ERR_USAGE);
	TRUE(strstr(err_last(), "what was said") != NULL);
	net_free(&b.net);
}

int main(void)
{
	static struct bench b;
	struct search_result found;

	compare("llama2-7b", 1, 32);
	compare("llama3-70b", 4, 64);
	compare("mixtral-8x7b", 2, 64);
	conditions();
	said();
	bench_make(&b, "llama2-7b", 1, 32);
	b.model.layers = 1;
	b.base.gpus = 7;
	b.base.batch = 3;
	EQ(layouts_search(&b.job, &b.answer, 0, &found), ERR_USAGE);
	net_free(&b.net);
	return 0;
}
