/* weft plan --search: the fastest layouts, why each loses to the first, what a slower
 * network would change, and the options that make a framework use it; --gpus A..B: the
 * best of each size. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "train/search.h"
#include "weft/command.h"
#include "weft/plan.h"

static void base_layout(const struct plan_run *run, struct train_layout *base)
{
	*base = run->layout;
	if (!base->batch)
		base->batch = base->gpus;
}

static enum err search(struct plan_run *run, struct search_result *found)
{
	struct train_layout base;
	struct train_job job = {
		&run->model, &base, &run->args->order, &run->net, run->gpu, &run->host};
	struct calib_who who = {run->args->stack, run->gpu, run->layout.precision,
		run->model.experts > 0};

	base_layout(run, &base);
	calib_ask(&run->calib, &who, &run->answer);
	return layouts_search(&job, &run->answer, found);
}

/* One hit answered whole, into the run. */
static enum err hit_answer(struct plan_run *run, const struct search_hit *hit)
{
	run->layout = hit->layout;
	return plan_run_answer(run);
}

/* What it spends most more of than the first. */
static void loses_print(const struct train_step *first, const struct train_step *s)
{
	int worst = 0;

	for (int i = 1; i < STEP_PARTS; i++)
		if (s->seen[i] - first->seen[i] > s->seen[worst] - first->seen[worst])
			worst = i;
	printf("%+.3g s %s", s->seen[worst] - first->seen[worst],
		step_part_name((enum step_part)worst));
}

static enum err hits_print(struct plan_run *run, const struct search_result *found)
{
	struct train_step first = {0};
	enum err e = OK;

	printf("     step s   MFU %%   GB  layout\n");
	for (uint32_t i = 0; !e && i < found->hit_count; i++) {
		char text[LAYOUT_TEXT_BYTES];

		e = hit_answer(run, &found->hits[i]);
		if (e)
			break;
		layout_text(&run->layout, text);
		printf("%2u %9.4g  %6.1f %5.1f  %s", i + 1, run->step.seconds,
			100 * run->step.mfu, run->memory.total / 1e9, text);
		if (i == 0)
			first = run->step;
		else {
			printf(": ");
			loses_print(&first, &run->step);
		}
		putchar('\n');
	}
	return e;
}

/* The winner and the best of a cluster whose network is half as fast. */
static enum err sensitivity_print(struct plan_run *run, const struct search_hit *best)
{
	struct search_result found;
	double before = best->seconds;
	enum err e;

	if (run->net.site.nodes < 2)
		return OK;
	run->net.scale = .5;
	run->net.curve_count = 0;
	e = hit_answer(run, best);
	if (!e) {
		double after = run->step.seconds;

		e = search(run, &found);
		if (!e) {
			char text[LAYOUT_TEXT_BYTES];

			layout_text(&found.hits[0].layout, text);
			printf("\nwith half the network: %.4g s (%+.1f %%); the best "
			       "then: "
			       "%.4g s, %s\n",
				after, 100 * (after / before - 1), found.hits[0].seconds,
				text);
		}
	}
	run->net.scale = 1;
	run->net.curve_count = 0;
	return e;
}

static void megatron_print(const struct train_layout *l)
{
	static const char *const eight[PRECISIONS] = {"", " --fp8-format hybrid",
		" --fp8-format e4m3 --fp8-recipe mxfp8", " --fp4-format e2m1"};

	printf("\nMegatron-LM:\n  --tensor-model-parallel-size %u "
	       "--pipeline-model-parallel-size %u --context-parallel-size %u \\\n"
	       "  --micro-batch-size %u --global-batch-size %u --seq-length %u",
		l->tp, l->pp, l->cp, l->micro, l->batch, l->sequence);
	if (l->tp > 1 && l->is_sequence_parallel)
		printf(" --sequence-parallel");
	if (l->vp > 1)
		printf(" \\\n  --num-virtual-stages-per-pipeline-rank %u", l->vp);
	if (l->ep > 1)
		printf(" \\\n  --expert-model-parallel-size %u "
		       "--expert-tensor-parallel-size %u",
			l->ep, layout_expert_tp(l));
	if (l->shard == SHARD_OPTIMIZER || l->shard == SHARD_GRADIENTS)
		printf(" \\\n  --use-distributed-optimizer --overlap-grad-reduce "
		       "--overlap-param-gather");
	if (l->shard >= SHARD_ALL)
		printf(" \\\n  --use-megatron-fsdp --data-parallel-sharding-strategy "
		       "optim_grads_params");
	if (l->recompute == RECOMPUTE_FULL)
		printf(" \\\n  --recompute-granularity full --recompute-method uniform "
		       "--recompute-num-layers 1");
	if (l->recompute == RECOMPUTE_SELECTIVE)
		printf(" \\\n  --recompute-granularity selective");
	printf(" \\\n  --bf16%s\n", eight[l->precision]);
}

static void deepspeed_print(const struct train_layout *l)
{
	static const int stages[SHARDS] = {0, 1, 2, 3, 3, 3};

	if (l->tp > 1 || l->cp > 1 || l->pp > 1) {
		printf("\nDeepSpeed: alone it has no tensor or context parallelism; use "
		       "it "
		       "below Megatron-DeepSpeed with \"stage\": %d\n",
			l->pp > 1 && stages[l->shard] > 1 ? 1 : stages[l->shard]);
		return;
	}
	printf("\nDeepSpeed:\n  {\"train_batch_size\": %u, "
	       "\"train_micro_batch_size_per_gpu\": %u, \"bf16\": {\"enabled\": true},\n"
	       "   \"zero_optimization\": {\"stage\": %d, \"overlap_comm\": true%s}}\n",
		l->batch, l->micro, stages[l->shard],
		l->shard == SHARD_HYBRID ? ", \"zero_hpz_partition_size\": 8" : "");
}

static void torchtitan_print(const struct train_layout *l, uint32_t layers)
{
	bool is_sharded = l->shard != SHARD_NONE;
	uint32_t inner = l->shard == SHARD_HYBRID ? l->shard_size : l->dp;
	/* A pipeline is given the micro-batches of a step as one local batch. */
	uint32_t local = l->pp > 1 ? l->batch / l->dp : l->micro;

	printf("\ntorchtitan:\n  [training]\n  local_batch_size = %u\n"
	       "  global_batch_size = %u\n  seq_len = %u\n  [parallelism]\n"
	       "  tensor_parallel_degree = %u\n  pipeline_parallel_degree = %u\n"
	       "  context_parallel_degree = %u\n  data_parallel_shard_degree = %u\n"
	       "  data_parallel_replicate_degree = %u\n",
		local, l->batch, l->sequence, l->tp, l->pp, l->cp, is_sharded ? inner : 1,
		is_sharded ? l->dp / inner : l->dp);
	if (l->pp > 1)
		printf("  pipeline_parallel_schedule = \"%s1F1B\"\n"
		       "  pipeline_parallel_microbatch_size = %u\n",
			l->vp > 1 ? "Interleaved" : "", l->micro);
	if (l->vp > 1)
		printf("  pipeline_parallel_layers_per_stage = %u\n",
			layers / (l->pp * l->vp));
	if (l->ep > 1)
		printf("  expert_parallel_degree = %u\n", l->ep);
	if (l->shard == SHARD_KEEP)
		printf("  fsdp_reshard_after_forward = \"never\"\n");
	printf("  [activation_checkpoint]\n  mode = \"%s\"\n",
		l->recompute == RECOMPUTE_OPS ? "selective"
					      : recompute_name(l->recompute));
}

static int nothing_fits(const struct plan_run *run, const struct search_result *found)
{
	fprintf(stderr,
		"weft plan: none of %llu layouts fits: the least needs %.1f GB of a GPU, "
		"and %s has %.1f; take more GPUs, or --offload\n",
		(unsigned long long)found->tried, found->least_bytes / 1e9,
		run->gpu->name, run->gpu->memory_gb);
	return EXIT_WRONG;
}

/* As data or as a picture: the layout that won. */
static int winner_show(struct plan_run *run, const struct search_hit *best)
{
	enum err e = hit_answer(run, best);

	if (e)
		return plan_failed(e);
	return run->args->svg ? plan_svg(run, run->args->svg) : plan_json(run);
}

int plan_search(struct plan_run *run)
{
	struct search_result found;
	uint64_t start = clock_ns();
	double took, asked;
	enum err e = search(run, &found);

	asked = 1e-9 * (double)run->net.asked_ns;
	took = 1e-9 * (double)(clock_ns() - start) - asked;
	if (e)
		return plan_failed(e);
	if (!found.hit_count)
		return nothing_fits(run, &found);
	if (run->args->json || run->args->svg)
		return winner_show(run, &found.hits[0]);
	printf("%s on %u x %s (%u x %s), batch %u of %u tokens, %s\n", run->model.name,
		run->net.site.nodes, run->net.site.machine, run->layout.gpus,
		run->gpu->name, found.hits[0].layout.batch, run->layout.sequence,
		precision_name(run->layout.precision));
	printf("%llu layouts in %.3f s (%.1f million a second), after %.2f s for the "
	       "times "
	       "of %u collectives; %llu fit\n\n",
		(unsigned long long)found.tried, took, (double)found.tried / took / 1e6,
		asked, run->net.curve_count, (unsigned long long)found.fitting);
	e = hits_print(run, &found);
	if (!e)
		e = sensitivity_print(run, &found.hits[0]);
	if (!e) {
		megatron_print(&found.hits[0].layout);
		deepspeed_print(&found.hits[0].layout);
		torchtitan_print(&found.hits[0].layout, run->model.layers);
	}
	return e ? plan_failed(e) : EXIT_GOOD;
}

/* One size of the cluster; 0 seconds where nothing fits. */
static enum err size_try(
	const struct plan_args *args, uint32_t gpus, struct search_hit *best, double *mfu)
{
	static struct plan_run run;
	struct plan_args one = *args;
	struct search_result found;
	enum err e;

	one.gpus_first = gpus;
	one.gpus_last = 0;
	*best = (struct search_hit){0};
	e = plan_run_make(&one, false, &run);
	if (e)
		return e;
	e = search(&run, &found);
	if (!e && found.hit_count) {
		*best = found.hits[0];
		e = hit_answer(&run, best);
		*mfu = run.step.mfu;
	}
	plan_run_free(&run);
	return e;
}

int plan_scaling(const struct plan_args *args)
{
	double last = 0;
	enum err e = OK;

	printf("   GPUs     step s  tokens/s a GPU  MFU %%  gain  layout\n");
	for (uint32_t gpus = args->gpus_first; !e && gpus <= args->gpus_last; gpus *= 2) {
		char text[LAYOUT_TEXT_BYTES];
		struct search_hit best;
		double mfu = 0, rate;

		e = size_try(args, gpus, &best, &mfu);
		if (e)
			break;
		if (best.seconds <= 0) {
			printf("%7u  nothing fits\n", gpus);
			continue;
		}
		layout_text(&best.layout, text);
		rate = (double)best.layout.batch * best.layout.sequence / best.seconds;
		printf("%7u %10.4g %15.0f %6.1f  ", gpus, best.seconds, rate / gpus,
			100 * mfu);
		if (last > 0)
			printf("%4.2f", rate / last);
		else
			printf("%4s", "");
		printf("  %s%s\n", text,
			last > 0 && rate < 1.5 * last ? "   <- past the knee" : "");
		last = rate;
	}
	return e ? plan_failed(e) : EXIT_GOOD;
}
