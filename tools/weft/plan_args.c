#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "weft/option.h"
#include "weft/plan.h"

enum flag {
	FLAG_ON = OPTION_LONG,
	FLAG_NODES,
	FLAG_GPUS,
	FLAG_GPUS_PER_NODE,
	FLAG_PODS,
	FLAG_POD_NICS,
	FLAG_NET,
	FLAG_GPU,
	FLAG_STACK,
	FLAG_TP,
	FLAG_PP,
	FLAG_CP,
	FLAG_EP,
	FLAG_ETP,
	FLAG_DP,
	FLAG_VP,
	FLAG_MICRO,
	FLAG_BATCH,
	FLAG_SEQUENCE,
	FLAG_SHARD,
	FLAG_SHARD_SIZE,
	FLAG_RECOMPUTE,
	FLAG_PRECISION,
	FLAG_OFFLOAD,
	FLAG_GRADS,
	FLAG_PURE,
	FLAG_NO_OVERLAP,
	FLAG_ZERO_BUBBLE,
	FLAG_NO_SP,
	FLAG_NO_FLASH,
	FLAG_THREADS,
	FLAG_LAYERS,
	FLAG_HIDDEN,
	FLAG_FFN,
	FLAG_HEADS,
	FLAG_KV_HEADS,
	FLAG_VOCAB,
	FLAG_EXPERTS,
	FLAG_TOP_K,
	FLAG_EXPERT_FFN,
	FLAG_GATED,
	FLAG_ORDER,
	FLAG_GROUPS,
	FLAG_SEARCH,
	FLAG_BUDGET,
	FLAG_TOKENS,
	FLAG_CHECKPOINT,
	FLAG_RESTART,
	FLAG_MODELS,
	FLAG_VS,
	FLAG_ROWS,
	FLAG_REFIT,
	FLAG_JSON,
	FLAG_SVG,
	FLAG_CASES,
	FLAG_ACCURACY,
	FLAG_CALIBRATE
};

static const struct option options[] = {
	{"on", required_argument, 0, FLAG_ON},
	{"nodes", required_argument, 0, FLAG_NODES},
	{"gpus", required_argument, 0, FLAG_GPUS},
	{"gpus-per-node", required_argument, 0, FLAG_GPUS_PER_NODE},
	{"pods", required_argument, 0, FLAG_PODS},
	{"efa-per-pod", required_argument, 0, FLAG_POD_NICS},
	{"net", required_argument, 0, FLAG_NET},
	{"gpu", required_argument, 0, FLAG_GPU},
	{"stack", required_argument, 0, FLAG_STACK},
	{"tp", required_argument, 0, FLAG_TP},
	{"pp", required_argument, 0, FLAG_PP},
	{"cp", required_argument, 0, FLAG_CP},
	{"ep", required_argument, 0, FLAG_EP},
	{"etp", required_argument, 0, FLAG_ETP},
	{"dp", required_argument, 0, FLAG_DP},
	{"vp", required_argument, 0, FLAG_VP},
	{"mbs", required_argument, 0, FLAG_MICRO},
	{"gbs", required_argument, 0, FLAG_BATCH},
	{"seq", required_argument, 0, FLAG_SEQUENCE},
	{"shard", required_argument, 0, FLAG_SHARD},
	{"shard-size", required_argument, 0, FLAG_SHARD_SIZE},
	{"recompute", required_argument, 0, FLAG_RECOMPUTE},
	{"precision", required_argument, 0, FLAG_PRECISION},
	{"offload", required_argument, 0, FLAG_OFFLOAD},
	{"grads", required_argument, 0, FLAG_GRADS},
	{"pure-bf16", no_argument, 0, FLAG_PURE},
	{"no-overlap", optional_argument, 0, FLAG_NO_OVERLAP},
	{"zero-bubble", no_argument, 0, FLAG_ZERO_BUBBLE},
	{"no-sequence-parallel", no_argument, 0, FLAG_NO_SP},
	{"no-flash", no_argument, 0, FLAG_NO_FLASH},
	{"omp-threads", required_argument, 0, FLAG_THREADS},
	{"layers", required_argument, 0, FLAG_LAYERS},
	{"hidden", required_argument, 0, FLAG_HIDDEN},
	{"ffn", required_argument, 0, FLAG_FFN},
	{"heads", required_argument, 0, FLAG_HEADS},
	{"kv-heads", required_argument, 0, FLAG_KV_HEADS},
	{"vocab", required_argument, 0, FLAG_VOCAB},
	{"experts", required_argument, 0, FLAG_EXPERTS},
	{"top-k", required_argument, 0, FLAG_TOP_K},
	{"expert-ffn", required_argument, 0, FLAG_EXPERT_FFN},
	{"gated", no_argument, 0, FLAG_GATED},
	{"order", required_argument, 0, FLAG_ORDER},
	{"groups", no_argument, 0, FLAG_GROUPS},
	{"search", no_argument, 0, FLAG_SEARCH},
	{"budget", required_argument, 0, FLAG_BUDGET},
	{"train-tokens", required_argument, 0, FLAG_TOKENS},
	{"checkpoint", required_argument, 0, FLAG_CHECKPOINT},
	{"restart", required_argument, 0, FLAG_RESTART},
	{"models", no_argument, 0, FLAG_MODELS},
	{"rows", no_argument, 0, FLAG_ROWS},
	{"refit", no_argument, 0, FLAG_REFIT},
	{"vs", required_argument, 0, FLAG_VS},
	{"json", no_argument, 0, FLAG_JSON},
	{"svg", required_argument, 0, FLAG_SVG},
	{"cases", required_argument, 0, FLAG_CASES},
	{"accuracy", required_argument, 0, FLAG_ACCURACY},
	{"calibrate", required_argument, 0, FLAG_CALIBRATE},
	{0, 0, 0, 0},
};

static const struct option_set set = {"plan", ":", options};

void plan_args_usage(FILE *file)
{
	fputs("usage: weft plan MODEL --on MACHINE --nodes N [LAYOUT]\n"
	      "       weft plan MODEL --on MACHINE --nodes N --search\n"
	      "       weft plan --cases FILE.csv\n\n"
	      "How long a training step takes, where the time goes, what memory it "
	      "needs,\n"
	      "and which layout is best. MODEL is a name such as llama3-8b, a "
	      "config.json,\n"
	      "or 'custom' with sizes; --models lists the names. weft topo --list names "
	      "the\n"
	      "machines. Without a layout it is the fastest that fits.\n\n"
	      "  --nodes N, --gpus N   so many machines, or GPUs; --gpus 8..1024 for "
	      "each\n"
	      "                        power of two, to see where it stops to pay\n"
	      "  --gpus-per-node G, --pods PxG, --efa-per-pod N   as weft sim\n"
	      "  --net CLASS           what carries messages between nodes: ib, efa, "
	      "roce, tcp, ena\n"
	      "  --gpu NAME            another GPU in the machine, such as H200\n"
	      "  --stack NAME          the software: llm-foundry, megatron-bridge, nemo, "
	      "..\n"
	      "  --tp --pp --cp --ep --etp --dp --vp N   degrees; dp is what is left\n"
	      "  --mbs N --gbs N --seq N   micro-batch, batch and sequence\n"
	      "  --shard NAME          ddp, zero1, zero2, zero3, fsdp-keep, hsdp\n"
	      "  --recompute NAME      none, selective, full, ops\n"
	      "  --precision NAME      bf16, fp8, mxfp8, nvfp4\n"
	      "  --offload LIST        of params,grads,optimizer, to the host\n"
	      "  --grads NAME          what gradients are summed in: fp32, half, or "
	      "both\n"
	      "                        where bf16 ones are kept beside the sums\n"
	      "  --pure-bf16           parameters, gradients and optimizer all in 16 "
	      "bits\n"
	      "  --omp-threads N       of a process; 1 with several in a pod, as "
	      "torchrun\n"
	      "  --no-overlap[=LIST]   nothing is hidden, or nothing of tp,cp,ep,pp,dp\n"
	      "  --zero-bubble --no-sequence-parallel --no-flash\n"
	      "  --layers --hidden --ffn --heads --kv-heads --vocab --experts --top-k\n"
	      "  --expert-ffn N, --gated   sizes, instead of the model's\n"
	      "  --groups              every group of ranks and how it is joined\n"
	      "  --order tp-cp-ep-dp-pp   how ranks are numbered, the fastest first\n"
	      "  --search              all layouts that fit, the best ten, options for "
	      "it\n"
	      "  --train-tokens N      of the whole training: days and GPU-hours\n"
	      "  --budget HOURS        GPU-hours that there are for it\n"
	      "  --checkpoint S, --restart S   seconds, for the share lost to failures\n"
	      "  --vs 'NAME=VALUE ..'  beside it the same with these options\n"
	      "  --json, --svg FILE    as data; the step as a picture\n"
	      "  --cases FILE.csv      a table of questions, answered row by row\n"
	      "  --accuracy FILE       predictions against published steps; --rows each "
	      "of\n"
	      "                        them, --refit with a table fitted anew\n"
	      "  --calibrate FILE      the calibration that published steps give\n\n"
	      "example: weft plan llama3-70b --on dgx-h100 --nodes 8 --tp 8 --gbs 128\n"
	      "example: weft plan llama3-8b --on p4d.24xlarge --gpus-per-node 4 --shard "
	      "zero3 \\\n"
	      "           --offload params,optimizer --mbs 4 --gbs 64 --seq 1024 "
	      "--vs pods=4x1\n",
		file);
}

static bool real(double *value, const char *flag)
{
	char *end;
	double number = strtod(optarg, &end);

	if (end == optarg || *end || !(number >= 0 && number <= 1e18))
		return option_wrong(&set, flag, "give a number from 0");
	*value = number;
	return true;
}

enum { GPUS_MAX = 10000000 };

/* Digits alone, from 1 to GPUS_MAX, up to `stop`; NULL for anything else. */
static const char *digits(const char *text, char stop, uint32_t *value)
{
	uint32_t number = 0;

	for (; *text >= '0' && *text <= '9'; text++) {
		number = number * 10 + (uint32_t)(*text - '0');
		if (number > GPUS_MAX)
			return NULL;
	}
	*value = number;
	return number && *text == stop ? text : NULL;
}

/* "64", "8..1024" */
static bool gpus(struct plan_args *args)
{
	const char *dots;

	args->gpus_last = 0;
	if (!strstr(optarg, ".."))
		return option_count(&set, "--gpus", GPUS_MAX, &args->gpus_first);
	dots = digits(optarg, '.', &args->gpus_first);
	if (dots && dots[1] == '.' && digits(dots + 2, 0, &args->gpus_last) &&
		args->gpus_last >= args->gpus_first)
		return true;
	return option_wrong(&set, "--gpus",
		"a range is two numbers from 1, the smaller first, as 8..1024");
}

struct word_bit {
	const char *word;
	uint32_t bit;
};

/* Bits of the words of a list, those of `words` up to one without a name. */
static bool words_bits(const char *list, const struct word_bit *words, uint32_t *bits)
{
	char text[64], *save = NULL;

	*bits = 0;
	if (strlen(list) >= sizeof(text))
		return false;
	memcpy(text, list, strlen(list) + 1);
	for (char *word = strtok_r(text, ",", &save); word;
		word = strtok_r(NULL, ",", &save)) {
		int i = 0;

		while (words[i].word && strcmp(word, words[i].word) != 0)
			i++;
		if (!words[i].word)
			return false;
		*bits |= words[i].bit;
	}
	return true;
}

static bool offload(struct plan_args *args)
{
	static const struct word_bit words[] = {{"params", OFFLOAD_PARAMS},
		{"grads", OFFLOAD_GRADIENTS}, {"optimizer", OFFLOAD_OPTIMIZER},
		{"none", 0}, {NULL, 0}};

	return words_bits(optarg, words, &args->layout.offload) ||
	       option_wrong(
		       &set, "--offload", "there are params, grads, optimizer and none");
}

static bool no_overlap(struct plan_args *args)
{
	static const struct word_bit words[] = {{"tp", EXPOSE_TP}, {"cp", EXPOSE_CP},
		{"ep", EXPOSE_EP}, {"pp", EXPOSE_PP}, {"dp", EXPOSE_DP}, {NULL, 0}};

	args->layout.no_overlap = EXPOSE_ALL;
	return !optarg || words_bits(optarg, words, &args->layout.no_overlap) ||
	       option_wrong(
		       &set, "--no-overlap", "there are tp, cp, ep, pp and dp, or none");
}

static bool take_degree(struct plan_args *args, int flag)
{
	static const uint32_t said[] = {[FLAG_TP] = SAID_TP,
		[FLAG_PP] = SAID_PP,
		[FLAG_CP] = SAID_CP,
		[FLAG_EP] = SAID_EP,
		[FLAG_ETP] = SAID_ETP,
		[FLAG_DP] = SAID_DP,
		[FLAG_VP] = SAID_VP,
		[FLAG_MICRO] = SAID_MICRO};
	struct train_layout *l = &args->layout;

	if (flag <= FLAG_MICRO)
		args->said |= said[flag];
	switch (flag) {
	case FLAG_TP:
		return option_count(&set, "--tp", 4096, &l->tp);
	case FLAG_PP:
		return option_count(&set, "--pp", 4096, &l->pp);
	case FLAG_CP:
		return option_count(&set, "--cp", 4096, &l->cp);
	case FLAG_EP:
		return option_count(&set, "--ep", 4096, &l->ep);
	case FLAG_ETP:
		return option_count(&set, "--etp", 4096, &l->etp);
	case FLAG_DP:
		return option_count(&set, "--dp", 1000000, &l->dp);
	case FLAG_VP:
		return option_count(&set, "--vp", 4096, &l->vp);
	case FLAG_MICRO:
		return option_count(&set, "--mbs", 65536, &l->micro);
	case FLAG_BATCH:
		return option_count(&set, "--gbs", 100000000, &l->batch);
	case FLAG_SEQUENCE:
		return option_count(&set, "--seq", 100000000, &l->sequence);
	default:
		return option_count(&set, "--shard-size", 65536, &l->shard_size);
	}
}

static bool take_kind(struct plan_args *args, int flag)
{
	struct train_layout *l = &args->layout;

	switch (flag) {
	case FLAG_SHARD:
		args->said |= SAID_SHARD;
		return shard_find(optarg, &l->shard) ||
		       option_wrong(&set, "--shard",
			       "there are ddp, zero1, zero2, zero3, fsdp-keep "
			       "and hsdp");
	case FLAG_RECOMPUTE:
		args->said |= SAID_RECOMPUTE;
		return recompute_find(optarg, &l->recompute) ||
		       option_wrong(&set, "--recompute",
			       "there are none, selective, full and ops");
	case FLAG_PRECISION:
		return precision_find(optarg, &l->precision) ||
		       option_wrong(&set, "--precision",
			       "there are bf16, fp8, mxfp8 and nvfp4");
	case FLAG_OFFLOAD:
		return offload(args);
	case FLAG_GRADS:
		return grads_find(optarg, &l->grads) ||
		       option_wrong(&set, "--grads", "there are fp32, half and both");
	case FLAG_PURE:
		l->is_pure_half = true;
		return true;
	case FLAG_NO_OVERLAP:
		return no_overlap(args);
	case FLAG_ZERO_BUBBLE:
		l->is_zero_bubble = true;
		return true;
	case FLAG_NO_SP:
		l->is_sequence_parallel = false;
		return true;
	default:
		l->flash = false;
		return true;
	}
}

static bool take_size(struct plan_args *args, int flag)
{
	struct train_model *m = &args->flags;

	switch (flag) {
	case FLAG_LAYERS:
		return option_count(&set, "--layers", 100000, &m->layers);
	case FLAG_HIDDEN:
		return option_count(&set, "--hidden", 1 << 24, &m->hidden);
	case FLAG_FFN:
		return option_count(&set, "--ffn", 1 << 26, &m->ffn);
	case FLAG_HEADS:
		return option_count(&set, "--heads", 1 << 16, &m->heads);
	case FLAG_KV_HEADS:
		return option_count(&set, "--kv-heads", 1 << 16, &m->kv_heads);
	case FLAG_VOCAB:
		return option_count(&set, "--vocab", 1 << 28, &m->vocab);
	case FLAG_EXPERTS:
		return option_count(&set, "--experts", 65536, &m->experts);
	case FLAG_TOP_K:
		return option_count(&set, "--top-k", 65536, &m->top_k);
	case FLAG_EXPERT_FFN:
		return option_count(&set, "--expert-ffn", 1 << 26, &m->expert_ffn);
	default:
		m->is_gated = true;
		return true;
	}
}

static bool take_machine(struct plan_args *args, int flag)
{
	switch (flag) {
	case FLAG_ON:
		args->machine = optarg;
		return true;
	case FLAG_NODES:
		return option_count(&set, "--nodes", 65536, &args->nodes);
	case FLAG_GPUS:
		return gpus(args);
	case FLAG_GPUS_PER_NODE:
		return option_count(&set, "--gpus-per-node", 1024, &args->gpus_per_node);
	case FLAG_PODS:
		return option_pods(&set, &args->pods, &args->pod_gpus);
	case FLAG_POD_NICS:
		return option_count(&set, "--efa-per-pod", 64, &args->pod_nics);
	case FLAG_NET:
		args->net = optarg;
		return true;
	case FLAG_GPU:
		args->gpu = optarg;
		return true;
	default:
		args->stack = optarg;
		return true;
	}
}

static bool take_output(struct plan_args *args, int flag)
{
	switch (flag) {
	case FLAG_VS:
		args->vs = optarg;
		return true;
	case FLAG_ROWS:
		args->rows = true;
		return true;
	case FLAG_REFIT:
		args->refit = true;
		return true;
	case FLAG_JSON:
		args->json = true;
		return true;
	case FLAG_SVG:
		args->svg = optarg;
		return true;
	case FLAG_CASES:
		args->cases = optarg;
		return true;
	case FLAG_ACCURACY:
		args->accuracy = optarg;
		return true;
	default:
		args->calibrate = optarg;
		return true;
	}
}

static bool take_question(struct plan_args *args, int flag)
{
	switch (flag) {
	case FLAG_THREADS:
		return option_count(&set, "--omp-threads", 4096, &args->threads);
	case FLAG_ORDER:
		if (!order_parse(optarg, &args->order))
			return true;
		plan_failed(ERR_USAGE);
		return false;
	case FLAG_MODELS:
		args->models = true;
		return true;
	case FLAG_GROUPS:
		args->groups = true;
		return true;
	case FLAG_SEARCH:
		args->search = true;
		return true;
	case FLAG_BUDGET:
		return real(&args->budget, "--budget");
	case FLAG_TOKENS:
		return real(&args->train_tokens, "--train-tokens");
	case FLAG_CHECKPOINT:
		return real(&args->checkpoint_s, "--checkpoint");
	default:
		return real(&args->restart_s, "--restart");
	}
}

static bool take(struct plan_args *args, int flag)
{
	if (flag <= FLAG_STACK)
		return take_machine(args, flag);
	if (flag <= FLAG_SEQUENCE || flag == FLAG_SHARD_SIZE)
		return take_degree(args, flag);
	if (flag <= FLAG_NO_FLASH)
		return take_kind(args, flag);
	if (flag >= FLAG_LAYERS && flag <= FLAG_GATED)
		return take_size(args, flag);
	return flag >= FLAG_VS ? take_output(args, flag) : take_question(args, flag);
}

bool plan_args_parse(struct plan_args *args, int argc, char **argv)
{
	int flag;

	*args = (struct plan_args){
		.nodes = 1, .stack = "", .checkpoint_s = 60, .restart_s = 600};
	layout_default(0, &args->layout);
	order_parse("tp-cp-ep-dp-pp", &args->order);
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!take(args, flag))
			return false;
	}
	args->words = argv + optind;
	args->word_count = argc - optind;
	if (args->cases || args->accuracy || args->calibrate || args->models)
		return true;
	args->model = args->word_count == 1 ? args->words[0] : NULL;
	if (args->model && args->machine)
		return true;
	fprintf(stderr,
		!args->model ? "weft plan: name one model, such as llama3-8b, a "
			       "config.json, or custom with --layers and the like\n"
			     : "weft plan: name the machine, such as --on dgx-h100; weft "
			       "topo --list names all\n");
	return false;
}
