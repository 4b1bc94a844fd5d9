/* What makes a framework use a layout: the options of Megatron-LM, DeepSpeed and
 * torchtitan, ready to paste, and a line for what a framework cannot be told. */
#include <math.h>

#include "weft/plan.h"

static void note(const char *text)
{
	printf("  # %s\n", text);
}

/* Layers of each piece of the model, in its order, where they are not alike. */
static void megatron_pieces(const struct train_model *m, const struct train_layout *l)
{
	uint32_t pieces = l->pp * l->vp;

	printf(" \\\n  --pipeline-model-parallel-layout \"E");
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t layers = m->layers / pieces + (i < m->layers % pieces);

		if (layers)
			printf("t*%u", layers);
		printf("%s", i + 1 < pieces ? "|" : "L\"");
	}
}

static void megatron_pipeline(const struct train_model *m, const struct train_layout *l)
{
	uint32_t pieces = l->pp * l->vp;
	bool is_padded = m->layers % pieces && (m->layers + 2) % pieces == 0;

	if (l->pp == 1)
		return;
	if (m->layers % pieces && !is_padded) {
		megatron_pieces(m, l);
		return;
	}
	if (is_padded)
		printf(" \\\n  --account-for-embedding-in-pipeline-split "
		       "--account-for-loss-in-pipeline-split");
	if (l->vp > 1)
		printf(" \\\n  --num-virtual-stages-per-pipeline-rank %u", l->vp);
}

static void megatron_shards(const struct train_layout *l)
{
	bool is_hidden = !(l->no_overlap & EXPOSE_DP);

	if (l->shard == SHARD_GRADIENTS || l->shard >= SHARD_ALL)
		printf(" \\\n  --use-megatron-fsdp --data-parallel-sharding-strategy %s "
		       "\\\n  --ckpt-format fsdp_dtensor --init-model-with-meta-device "
		       "--no-gradient-accumulation-fusion",
			l->shard == SHARD_GRADIENTS ? "optim_grads"
						    : "optim_grads_params");
	if (l->shard == SHARD_HYBRID)
		printf(" \\\n  --num-distributed-optimizer-instances %u "
		       "--outer-dp-sharding-strategy no_shard",
			l->dp * l->cp / layout_shard_size(l));
	if (l->shard != SHARD_NONE)
		printf(" \\\n  --use-distributed-optimizer");
	if (is_hidden)
		printf("%s --overlap-grad-reduce",
			l->shard == SHARD_NONE ? " \\\n " : "");
	if (is_hidden && l->shard != SHARD_NONE)
		printf(" --overlap-param-gather");
	if (l->offload & OFFLOAD_OPTIMIZER)
		printf(" \\\n  --optimizer-cpu-offload --use-precision-aware-optimizer");
}

static void megatron_notes(const struct plan_run *run)
{
	const enum train_axis *axes = run->args->order.axes;
	const struct train_layout *l = &run->layout;
	bool is_known = axes[0] == AXIS_TP && axes[1] == AXIS_CP && axes[2] == AXIS_EP;

	if (!is_known)
		note("it numbers ranks tp-cp-ep-dp-pp or tp-cp-ep-pp-dp only");
	if (l->shard == SHARD_KEEP)
		note("it gathers parameters again for the backward pass");
	if (l->offload & OFFLOAD_PARAMS)
		note("it keeps parameters on the GPU");
	if (l->is_zero_bubble)
		note("it has no zero-bubble schedule");
}

static void megatron_print(const struct plan_run *run)
{
	static const char *const eight[PRECISIONS] = {"", " --fp8-format hybrid",
		" --fp8-format e4m3 --fp8-recipe mxfp8",
		" --fp4-format e2m1 --fp4-recipe nvfp4"};
	const struct train_layout *l = &run->layout;

	printf("\nMegatron-LM:\n  --tensor-model-parallel-size %u "
	       "--pipeline-model-parallel-size %u --context-parallel-size %u \\\n"
	       "  --micro-batch-size %u --global-batch-size %u --seq-length %u",
		l->tp, l->pp, l->cp, l->micro, l->batch, l->sequence);
	if (l->tp > 1 && l->is_sequence_parallel)
		printf(" --sequence-parallel");
	megatron_pipeline(&run->model, l);
	if (l->ep > 1 || (run->model.experts && layout_expert_tp(l) != l->tp))
		printf(" \\\n  --expert-model-parallel-size %u "
		       "--expert-tensor-parallel-size %u",
			l->ep, layout_expert_tp(l));
	if (run->args->order.axes[AXES - 1] == AXIS_DP && l->pp > 1)
		printf(" \\\n  --use-tp-pp-dp-mapping");
	megatron_shards(l);
	if (l->recompute == RECOMPUTE_FULL)
		printf(" \\\n  --recompute-granularity full --recompute-method uniform "
		       "--recompute-num-layers 1");
	if (l->recompute == RECOMPUTE_SELECTIVE)
		printf(" \\\n  --recompute-granularity selective");
	if (!l->flash)
		printf(" \\\n  --attention-backend unfused");
	if (l->grads == GRADS_HALF)
		printf(" \\\n  --grad-reduce-in-bf16");
	printf(" \\\n  --bf16%s\n", eight[l->precision]);
	megatron_notes(run);
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
	       "   \"zero_optimization\": {\"stage\": %d, \"overlap_comm\": %s",
		l->batch, l->micro, stages[l->shard],
		l->no_overlap & EXPOSE_DP ? "false" : "true");
	if (l->shard == SHARD_HYBRID)
		printf(", \"zero_hpz_partition_size\": %u", layout_shard_size(l));
	if (l->shard == SHARD_KEEP)
		printf(",\n   \"stage3_max_live_parameters\": 1e12, "
		       "\"stage3_max_reuse_distance\": 1e12");
	if (l->offload & (OFFLOAD_OPTIMIZER | OFFLOAD_GRADIENTS))
		printf(",\n   \"offload_optimizer\": {\"device\": \"cpu\", "
		       "\"pin_memory\": true}");
	if (l->offload & OFFLOAD_PARAMS)
		printf(",\n   \"offload_param\": {\"device\": \"cpu\", \"pin_memory\": "
		       "true}");
	printf("}}\n");
	if (l->shard == SHARD_HYBRID)
		note("gradients and optimizer are sharded over all GPUs, parameters over "
		     "the node");
	if (l->recompute == RECOMPUTE_FULL)
		note("recomputation is asked of the model: "
		     "gradient_checkpointing_enable()");
	if (l->ep > 1)
		note("experts are cut in the model: MoE(.., ep_size)");
	if (l->precision != PRECISION_BF16)
		note("8 and 4 bits are asked of the model: Transformer Engine's layers");
}

static void torchtitan_pipeline(const struct train_model *m, const struct train_layout *l)
{
	uint32_t pieces = l->pp * l->vp;
	bool is_padded = m->layers % pieces && (m->layers + 2) % pieces == 0;
	const char *schedule = l->vp > 1 ? "Interleaved1F1B" : "1F1B";

	if (l->pp == 1)
		return;
	if (l->is_zero_bubble)
		schedule = l->vp > 1 ? "InterleavedZeroBubble" : "ZBVZeroBubble";
	printf("  pipeline_parallel_schedule = \"%s\"\n"
	       "  pipeline_parallel_microbatch_size = %u\n"
	       "  pipeline_parallel_first_stage_less_layers = %d\n"
	       "  pipeline_parallel_last_stage_less_layers = %d\n",
		schedule, l->micro, is_padded, is_padded);
	if (l->vp > 1)
		printf("  pipeline_parallel_layers_per_stage = %u\n",
			(m->layers + (is_padded ? 2 : 0) + pieces - 1) / pieces);
}

static void torchtitan_ends(const struct train_layout *l)
{
	static const char *const modes[RECOMPUTES] = {
		"none", "none", "full", "selective"};
	static const char *const converters[PRECISIONS] = {
		NULL, "quantize.linear.float8", "quantize.linear.mx", NULL};

	printf("  [activation_checkpoint]\n  mode = \"%s\"\n", modes[l->recompute]);
	if (l->recompute == RECOMPUTE_OPS)
		printf("  selective_ac_option = \"op\"\n");
	if (converters[l->precision])
		printf("  [model]\n  converters = [\"%s\"]\n", converters[l->precision]);
	if (l->shard == SHARD_OPTIMIZER || l->shard == SHARD_GRADIENTS)
		note("it shards all or nothing: parameters kept from forward to backward "
		     "are the nearest");
	if (l->recompute == RECOMPUTE_SELECTIVE)
		note("it cannot recompute the core of attention alone");
	if (l->precision == PRECISION_FP4)
		note("it has no 4 bits");
	if (l->offload & OFFLOAD_OPTIMIZER && !(l->offload & OFFLOAD_PARAMS))
		note("it keeps parameters on the host, too, or nothing");
}

/* Versions after 0.2 are configured in Python, in the same words but for these. */
static void torchtitan_later(const struct train_layout *l)
{
	printf("  # later versions are configured in Python by the same words, but count "
	       "tokens:\n"
	       "  # num_tokens_per_microbatch_per_dp_rank = %llu, "
	       "num_tokens_per_train_step = %llu,\n"
	       "  # max_context_length = %u",
		(unsigned long long)l->micro * l->sequence,
		(unsigned long long)l->batch * l->sequence, l->sequence);
	if (l->pp > 1)
		printf(", num_pp_microbatches = %u", layout_micro_count(l));
	printf("%s\n", l->ep > 1 ? "; experts have no tensor degree of their own" : "");
}

static void torchtitan_print(const struct train_model *m, const struct train_layout *l)
{
	static const char *const reshard[SHARDS] = {
		NULL, "never", "never", "always", "never", "always"};
	uint32_t inner = l->shard == SHARD_HYBRID ? layout_shard_size(l) / l->cp : l->dp;
	/* A pipeline is given the micro-batches of a step as one local batch. */
	uint32_t local = l->pp > 1 ? l->batch / l->dp : l->micro;

	if (l->shard == SHARD_NONE || !inner)
		inner = 1;
	printf("\ntorchtitan (a job file of 0.2):\n  [training]\n  local_batch_size = "
	       "%u\n"
	       "  global_batch_size = %u\n  seq_len = %u\n",
		local, l->batch, l->sequence);
	if (l->offload)
		printf("  enable_cpu_offload = true\n");
	printf("  [parallelism]\n"
	       "  tensor_parallel_degree = %u\n  pipeline_parallel_degree = %u\n"
	       "  context_parallel_degree = %u\n  data_parallel_shard_degree = %u\n"
	       "  data_parallel_replicate_degree = %u\n",
		l->tp, l->pp, l->cp, inner, l->dp / inner);
	torchtitan_pipeline(m, l);
	if (l->ep > 1)
		printf("  expert_parallel_degree = %u\n"
		       "  expert_tensor_parallel_degree = %u\n",
			l->ep, layout_expert_tp(l));
	if (reshard[l->shard])
		printf("  fsdp_reshard_after_forward = \"%s\"\n", reshard[l->shard]);
	torchtitan_ends(l);
	torchtitan_later(l);
}

void plan_options_print(const struct plan_run *run)
{
	megatron_print(run);
	deepspeed_print(&run->layout);
	torchtitan_print(&run->model, &run->layout);
}
