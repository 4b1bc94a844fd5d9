/* The page of `weft plan`, and two of them side by side. */
#include <math.h>
#include <string.h>

#include "train/goodput.h"
#include "weft/command.h"
#include "weft/plan.h"

static double share(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

void plan_cluster_text(const struct plan_run *run, char text[CLUSTER_BYTES])
{
	const struct sim_site *site = &run->net.site;
	const char *each = site->gpus == 1 ? "GPU" : "GPUs";

	if (run->args->pods)
		snprintf(text, CLUSTER_BYTES, "%u pods of %u %s on a %s", site->nodes,
			site->gpus, each, site->machine);
	else
		snprintf(text, CLUSTER_BYTES, "%u x %s, %u %s each", site->nodes,
			site->machine, site->gpus, each);
}

static void head_print(const struct plan_run *run)
{
	const struct train_layout *l = &run->layout;
	char text[LAYOUT_TEXT_BYTES], cluster[CLUSTER_BYTES];

	layout_text(l, text);
	printf("%s: %.2f B parameters", run->model.name, model_params(&run->model) / 1e9);
	if (run->model.experts)
		printf(", %.2f B active", model_params_active(&run->model) / 1e9);
	printf(", %.1f GFLOP a token at %u tokens%s\n",
		model_flops(&run->model, l->sequence) / 1e9, l->sequence,
		run->model.is_figures ? " (published figures; sizes guessed)" : "");
	plan_cluster_text(run, cluster);
	printf("%s (%s): %u GPUs\n", cluster, run->gpu->name, l->gpus);
	printf("%s, %s, batch %u in %u micro-batch%s a pipeline\n", text,
		precision_name(l->precision), l->batch, layout_micro_count(l),
		layout_micro_count(l) == 1 ? "" : "es");
	if (run->fitting)
		printf("no layout was said: this is the fastest of %llu that fit; "
		       "--search shows others, and why they lose\n",
			(unsigned long long)run->fitting);
	putchar('\n');
}

static void sum_print(const struct plan_run *run)
{
	const struct train_step *s = &run->step;
	double spread = run->answer.spread;

	printf("step        %.4g s   (9 of 10: %.4g to %.4g s)\n", s->seconds,
		s->seconds * exp(-spread), s->seconds * exp(spread));
	printf("tokens      %.0f a second, %.0f a GPU\n", s->tokens_per_s,
		s->tokens_per_s / run->layout.gpus);
	printf("MFU         %.1f %% of the 16-bit peak\n", 100 * s->mfu);
	if (run->answer.level < LEVEL_STACK)
		printf("            %s\n",
			*run->args->stack
				? "nobody measured this stack: the figures are those of "
				  "all"
				: "of all software measured; --stack names one");
}

static void table_print(const struct plan_run *run)
{
	const struct train_step *s = &run->step;

	printf("\nwhere the time goes       in all s   seen s      %%\n");
	for (int i = 0; i < STEP_PARTS; i++)
		if (s->seen[i] > 1e-9 || s->total[i] > 1e-9)
			printf("  %-24s %8.3f %8.3f  %5.1f\n",
				step_part_name((enum step_part)i), s->total[i],
				s->seen[i], share(s->seen[i], s->seconds));
}

const char *plan_advice(const struct plan_run *run)
{
	switch (run->step.bound) {
	case PART_HOST_COPY:
		return "PCI between GPUs and host: keep parameters on the GPU, or use "
		       "GPUs behind different switches";
	case PART_HOST_UPDATE:
		return run->host.pod_processes > 1 && !run->host.threads
			       ? "the optimizer runs on one core a process, as torchrun "
				 "sets OMP_NUM_THREADS=1: raise it, or keep the "
				 "optimizer on "
				 "the GPU"
			       : "the optimizer moves through host memory: more "
				 "machines, "
				 "or keep it on the GPU";
	case PART_TP:
		return "tensor-parallel sending: a lower tp, or keep it inside a node";
	case PART_DP:
		return run->layout.shard >= SHARD_ALL
			       ? "shards are gathered for each micro-batch: larger "
				 "micro-batches, hsdp or zero1 where it fits, or a "
				 "faster "
				 "network"
			       : "gradients on the network: more micro-batches a step, "
				 "overlap, or a faster network";
	case PART_EP:
		return "tokens on their way to experts: keep ep inside the NVLink domain";
	case PART_BUBBLE:
		return "the pipeline's bubble: more micro-batches, a higher --vp, or a "
		       "lower --pp";
	case PART_PP:
		return "messages between stages: a lower --pp or --vp, or stages on one "
		       "node";
	case PART_CP:
		return "context-parallel sending: a lower cp, or keep it inside a node";
	case PART_OPTIMIZER:
		return "the optimizer passes over its states: shard them over more "
		       "ranks, or a larger batch";
	case PART_POINT:
		return run->layout.recompute
			       ? "memory bandwidth: fused kernels, or less recomputation"
			       : "memory bandwidth: fused kernels";
	case PART_OTHER:
		return "launches and waiting: larger micro-batches";
	case PART_ATTENTION:
		return "attention: a better kernel, context parallelism, shorter "
		       "sequences";
	default:
		return run->layout.recompute
			       ? "matrix products: lower precision, larger products, "
				 "less "
				 "recomputation"
			       : "matrix products: lower precision, larger products";
	}
}

static void memory_print(const struct plan_run *run)
{
	const struct train_memory *m = &run->memory;
	double have = run->gpu->memory_gb * 1e9;

	printf("\nmemory of the fullest GPU (stage %u)      GB\n", m->stage);
	printf("  %-32s %8.1f\n", "parameters", m->params / 1e9);
	printf("  %-32s %8.1f\n", "gradients", m->grads / 1e9);
	printf("  %-32s %8.1f\n", "optimizer", m->optimizer / 1e9);
	printf("  %-32s %8.1f   %u micro-batch%s under way\n", "activations",
		m->activations / 1e9, m->alive, m->alive == 1 ? "" : "es");
	printf("  %-32s %8.1f\n", "logits, gathered layers",
		(m->logits + m->gathered) / 1e9);
	printf("  %-32s %8.1f\n", "software", m->other / 1e9);
	printf("  %-32s %8.1f   of %.1f: %s\n", "all", m->total / 1e9, have / 1e9,
		m->total <= have ? "fits" : "DOES NOT FIT");
	if (m->total > have)
		printf("  --search with the same words keeps what they say of the layout "
		       "and finds what fits\n");
	if (m->host > 0)
		printf("  on the host, of each process     %8.1f\n", m->host / 1e9);
}

void plan_bill_make(const struct plan_run *run, struct plan_bill *bill)
{
	const struct plan_args *args = run->args;
	struct train_goodput g;

	goodput_make(run->layout.gpus, args->checkpoint_s, args->restart_s, &g);
	*bill = (struct plan_bill){.share = g.share};
	bill->days = args->train_tokens / run->step.tokens_per_s / g.share / 86400;
	bill->hours = bill->days * 24 * run->layout.gpus;
	bill->is_over = args->budget > 0 && bill->hours > args->budget;
}

void plan_goodput_print(const struct plan_run *run)
{
	const struct plan_args *args = run->args;
	struct train_goodput g;
	struct plan_bill bill;

	goodput_make(run->layout.gpus, args->checkpoint_s, args->restart_s, &g);
	printf("\ngoodput     %.1f %%: a stop every %.1f h, a checkpoint every %.0f "
	       "min\n",
		100 * g.share, g.mtbf_s / 3600, g.interval_s / 60);
	if (args->train_tokens <= 0)
		return;
	plan_bill_make(run, &bill);
	if (g.share <= 0)
		printf("training    never ends: it stops sooner than it gets on; faster "
		       "checkpoints and restarts would help\n");
	else
		printf("training    %.3g tokens: %.1f days, %.0f GPU-hours%s\n",
			args->train_tokens, bill.days, bill.hours,
			args->budget <= 0 ? ""
			: bill.is_over	  ? ", OVER the budget"
					  : ", within the budget");
}

/* Has a step been published that ran on this GPU? */
static bool is_measured(const struct plan_run *run)
{
	const struct calib_who who = {
		"", run->gpu, run->layout.precision, run->model.experts > 0};
	char key[CALIB_KEY_BYTES];

	calib_key(&who, LEVEL_GPU, key);
	return calib_row_find(&run->calib, LEVEL_GPU, key) >= 0;
}

uint32_t plan_guesses(const struct plan_run *run, char texts[GUESSES_MAX][GUESS_BYTES])
{
	uint32_t n = 0;

	if (run->layout.offload && run->host.is_guessed)
		snprintf(texts[n++], GUESS_BYTES,
			"memory, cores and PCI links of the host are those of a common "
			"server, not of a %s",
			run->net.site.machine);
	if (run->model.is_guessed)
		snprintf(texts[n++], GUESS_BYTES,
			"a family that is not known here is counted as Llama, by its "
			"sizes");
	if (run->model.is_figures)
		snprintf(texts[n++], GUESS_BYTES,
			"the sizes of %s; its parameters and its work are its "
			"publisher's",
			run->model.name);
	if (strstr(run->gpu->source, "not measured"))
		snprintf(texts[n++], GUESS_BYTES,
			"the ceiling of %s's products is that of its kin",
			run->gpu->name);
	if (!is_measured(run))
		snprintf(texts[n++], GUESS_BYTES,
			"no step in %s on %s has been published: it is taken to make "
			"of the work what all GPUs do",
			precision_name(run->layout.precision), run->gpu->name);
	return n;
}

void plan_guesses_print(const struct plan_run *run)
{
	char texts[GUESSES_MAX][GUESS_BYTES];
	uint32_t n = plan_guesses(run, texts);

	for (uint32_t i = 0; i < n; i++)
		printf("%sguessed: %s\n", i ? "" : "\n", texts[i]);
}

void plan_page_print(const struct plan_run *run)
{
	head_print(run);
	sum_print(run);
	table_print(run);
	printf("\nbound by %s (%.0f %%)\nwhat would change it: %s\n",
		step_part_name(run->step.bound),
		share(run->step.seen[run->step.bound], run->step.seconds),
		plan_advice(run));
	memory_print(run);
	plan_goodput_print(run);
	plan_guesses_print(run);
}

void plan_versus_print(const struct plan_run *run, const struct plan_run *other)
{
	const struct plan_run *both[2] = {run, other};

	for (int i = 0; i < 2; i++) {
		char text[LAYOUT_TEXT_BYTES], cluster[CLUSTER_BYTES];

		layout_text(&both[i]->layout, text);
		plan_cluster_text(both[i], cluster);
		printf("%c: %s, %s (%s), %s%s\n", 'A' + i, both[i]->model.name, cluster,
			both[i]->gpu->name, text,
			both[i]->fitting ? " (none was said: the fastest)" : "");
	}
	printf("\n%-26s %10s %10s %10s\n", "seconds of the step", "A", "B", "B - A");
	for (int i = 0; i < STEP_PARTS; i++)
		if (run->step.seen[i] > 5e-4 || other->step.seen[i] > 5e-4)
			printf("  %-24s %10.3f %10.3f %+10.3f\n",
				step_part_name((enum step_part)i), run->step.seen[i],
				other->step.seen[i],
				other->step.seen[i] - run->step.seen[i]);
	printf("  %-24s %10.3f %10.3f %+10.3f  (%+.1f %%)\n", "step", run->step.seconds,
		other->step.seconds, other->step.seconds - run->step.seconds,
		100 * (other->step.seconds / run->step.seconds - 1));
	printf("  %-24s %10.3f %10.3f\n", "9 of 10, from",
		run->step.seconds * exp(-run->answer.spread),
		other->step.seconds * exp(-other->answer.spread));
	printf("  %-24s %10.3f %10.3f\n", "to",
		run->step.seconds * exp(run->answer.spread),
		other->step.seconds * exp(other->answer.spread));
	printf("  %-24s %10.1f %10.1f\n", "memory GB", run->memory.total / 1e9,
		other->memory.total / 1e9);
	for (int i = 0; i < 2; i++)
		printf("%c is bound by %s (%.0f %%)\n  what would change it: %s\n",
			'A' + i, step_part_name(both[i]->step.bound),
			share(both[i]->step.seen[both[i]->step.bound],
				both[i]->step.seconds),
			plan_advice(both[i]));
	for (int i = 0; i < 2; i++) {
		char texts[GUESSES_MAX][GUESS_BYTES];
		uint32_t n = plan_guesses(both[i], texts);

		for (uint32_t k = 0; k < n; k++)
			printf("%c, guessed: %s\n", 'A' + i, texts[k]);
	}
}

void plan_models_print(void)
{
	struct train_model m;

	for (uint32_t i = 0; model_name(i); i++) {
		if (model_find(model_name(i), &m))
			continue;
		printf("%-24s %8.2f B parameters", m.name, model_params(&m) / 1e9);
		if (!m.is_figures)
			printf(" (%.0f)", model_params(&m));
		if (m.experts)
			printf(", %.1f B active", model_params_active(&m) / 1e9);
		printf("%s\n", m.is_figures ? " (published figures; sizes guessed)" : "");
	}
}
