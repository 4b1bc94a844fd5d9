#include "train/layout.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const shards[SHARDS] = {
	"ddp", "zero1", "zero2", "zero3", "fsdp-keep", "hsdp"};
static const char *const recomputes[RECOMPUTES] = {"none", "selective", "full", "ops"};
static const char *const precisions[PRECISIONS] = {"bf16", "fp8", "mxfp8", "nvfp4"};
static const char *const gradients[GRADS] = {"fp32", "half", "both"};

struct word {
	const char *word;
	int value;
};

/* Other spellings, those of the published tables among them. */
static const struct word shard_words[] = {
	{"none", SHARD_NONE},
	{"zero-0", SHARD_NONE},
	{"zero0", SHARD_NONE},
	{"zero-1", SHARD_OPTIMIZER},
	{"dist-opt", SHARD_OPTIMIZER},
	{"ddp+dist-opt", SHARD_OPTIMIZER},
	{"", SHARD_OPTIMIZER},
	{"zero-2", SHARD_GRADIENTS},
	{"fsdp(zero-2-like)", SHARD_GRADIENTS},
	{"zero-3", SHARD_ALL},
	{"zero-3+offload(opt,param)", SHARD_ALL},
	{"fsdp", SHARD_ALL},
	{"fsdp2", SHARD_ALL},
	{"megatron-fsdp", SHARD_ALL},
	{"fsdp-full_shard", SHARD_ALL},
	{"fsdp-shard_grad_op", SHARD_KEEP},
	{"fsdp-hybrid_shard", SHARD_HYBRID},
};
static const struct word recompute_words[] = {
	{"", RECOMPUTE_NONE},
	{"recipe", RECOMPUTE_NONE},
	{"selective+sp", RECOMPUTE_SELECTIVE},
	{"selective-op", RECOMPUTE_OPS},
	{"selective-layer", RECOMPUTE_SELECTIVE},
};
static const struct word precision_words[] = {
	{"fp16", PRECISION_BF16},
	{"float8", PRECISION_FP8},
	{"float8-tensorwise", PRECISION_FP8},
	{"float8-rowwise", PRECISION_MXFP8},
	{"float8+asynctp", PRECISION_FP8},
	{"fp8-cs", PRECISION_FP8},
	{"fp8-cs (fp8-mx)", PRECISION_FP8},
	{"fp8-mx", PRECISION_MXFP8},
	{"fp4", PRECISION_FP4},
	{"fp8/nvfp4 (see config)", PRECISION_FP4},
};

static int word_find(const char *name, const char *const *names, int count,
	const struct word *words, size_t word_count)
{
	for (int i = 0; i < count; i++)
		if (!strcasecmp(name, names[i]))
			return i;
	for (size_t i = 0; i < word_count; i++)
		if (!strcasecmp(name, words[i].word))
			return words[i].value;
	return -1;
}

bool layout_is_same(const struct train_layout *a, const struct train_layout *b)
{
	return a->gpus == b->gpus && a->tp == b->tp && a->cp == b->cp && a->dp == b->dp &&
	       a->pp == b->pp && a->ep == b->ep && a->etp == b->etp && a->vp == b->vp &&
	       a->micro == b->micro && a->batch == b->batch &&
	       a->sequence == b->sequence && a->shard_size == b->shard_size &&
	       a->shard == b->shard && a->recompute == b->recompute &&
	       a->precision == b->precision && a->grads == b->grads &&
	       a->is_pure_half == b->is_pure_half && a->offload == b->offload &&
	       a->is_sequence_parallel == b->is_sequence_parallel &&
	       a->no_overlap == b->no_overlap && a->is_zero_bubble == b->is_zero_bubble &&
	       a->flash == b->flash && a->kernel == b->kernel;
}

const char *shard_name(enum train_shard shard)
{
	return shards[shard];
}

const char *recompute_name(enum train_recompute recompute)
{
	return recomputes[recompute];
}

const char *precision_name(enum train_precision precision)
{
	return precisions[precision];
}

const char *grads_name(enum train_grads grads)
{
	return gradients[grads];
}

bool grads_find(const char *name, enum train_grads *grads)
{
	int found = word_find(name, gradients, GRADS, NULL, 0);

	if (found >= 0)
		*grads = (enum train_grads)found;
	return found >= 0;
}

bool shard_find(const char *name, enum train_shard *shard)
{
	int found = word_find(name, shards, SHARDS, shard_words,
		sizeof(shard_words) / sizeof(shard_words[0]));

	if (found >= 0)
		*shard = (enum train_shard)found;
	return found >= 0;
}

bool recompute_find(const char *name, enum train_recompute *recompute)
{
	int found = word_find(name, recomputes, RECOMPUTES, recompute_words,
		sizeof(recompute_words) / sizeof(recompute_words[0]));

	if (found >= 0)
		*recompute = (enum train_recompute)found;
	return found >= 0;
}

bool precision_find(const char *name, enum train_precision *precision)
{
	int found = word_find(name, precisions, PRECISIONS, precision_words,
		sizeof(precision_words) / sizeof(precision_words[0]));

	if (found >= 0)
		*precision = (enum train_precision)found;
	return found >= 0;
}

void layout_default(uint32_t gpus, struct train_layout *layout)
{
	*layout = (struct train_layout){.gpus = gpus,
		.tp = 1,
		.cp = 1,
		.pp = 1,
		.ep = 1,
		.vp = 1,
		.micro = 1,
		.sequence = 4096,
		.shard = SHARD_OPTIMIZER,
		.is_sequence_parallel = true,
		.flash = true};
}

enum err layout_complete(struct train_layout *layout)
{
	uint64_t model = (uint64_t)layout->tp * layout->cp * layout->pp;

	if (!model)
		return err_set(ERR_USAGE, "a degree of 0 leaves no GPU");
	if (!layout->dp) {
		if (model > layout->gpus || layout->gpus % model)
			return err_set(ERR_USAGE,
				"tp %u x cp %u x pp %u = %llu does not divide %u GPUs",
				layout->tp, layout->cp, layout->pp,
				(unsigned long long)model, layout->gpus);
		layout->dp = (uint32_t)(layout->gpus / model);
	}
	if (!layout->batch) {
		uint64_t batch = (uint64_t)layout->dp * layout->micro *
				 (layout->pp > 1 ? 4 * layout->pp : 1);

		if (batch > UINT32_MAX)
			return err_set(ERR_USAGE,
				"micro-batches of %u on dp %u make a step of %llu "
				"sequences; give a smaller --mbs or --gbs",
				layout->micro, layout->dp, (unsigned long long)batch);
		layout->batch = (uint32_t)batch;
	}
	return OK;
}

static enum err model_fits(const struct train_model *m, const struct train_layout *l)
{
	if (m->heads % l->tp || (m->kv_heads % l->tp && l->tp % m->kv_heads))
		return err_set(ERR_USAGE,
			"%u heads with %u key-value heads do not divide over tp %u",
			m->heads, m->kv_heads, l->tp);
	if (l->pp * l->vp > m->layers + 2)
		return err_set(ERR_USAGE,
			"%u layers are too few for pp %u with %u chunks a stage; lower "
			"--pp or --vp",
			m->layers, l->pp, l->vp);
	if (l->ep > 1 && !m->experts)
		return err_set(ERR_USAGE, "%s has no experts, so ep is 1, not %u",
			m->name, l->ep);
	if (l->etp > 1 && !m->experts)
		return err_set(ERR_USAGE, "%s has no experts, so etp is 1, not %u",
			m->name, l->etp);
	if (m->experts && m->experts % l->ep)
		return err_set(ERR_USAGE, "%u experts do not divide over ep %u",
			m->experts, l->ep);
	if (l->sequence % (l->cp > 1 ? 2 * l->cp : 1))
		return err_set(ERR_USAGE,
			"a sequence of %u does not cut into two pieces for each of cp %u",
			l->sequence, l->cp);
	return OK;
}

enum err layout_check(const struct train_model *m, const struct train_layout *l)
{
	uint64_t all = (uint64_t)l->tp * l->cp * l->dp * l->pp;

	if (all != l->gpus)
		return err_set(ERR_USAGE,
			"tp %u x cp %u x dp %u x pp %u = %llu, and there are %u GPUs",
			l->tp, l->cp, l->dp, l->pp, (unsigned long long)all, l->gpus);
	if (!l->micro || !l->batch || !l->sequence || !l->vp || !l->ep)
		return err_set(ERR_USAGE, "a batch, a micro-batch, a sequence, ep and vp "
					  "are at least 1");
	if (l->batch % ((uint64_t)l->dp * l->micro))
		return err_set(ERR_USAGE,
			"a batch of %u does not divide over dp %u x micro-batches of %u",
			l->batch, l->dp, l->micro);
	if ((uint64_t)l->tp * l->cp * l->dp % ((uint64_t)l->ep * layout_expert_tp(l)))
		return err_set(ERR_USAGE,
			"ep %u x experts' tp %u does not divide tp %u x cp %u x dp %u",
			l->ep, layout_expert_tp(l), l->tp, l->cp, l->dp);
	if (l->vp > 1 && l->pp == 1)
		return err_set(ERR_USAGE,
			"%u chunks a stage interleave a pipeline, and pp is 1; give --pp "
			"or no --vp",
			l->vp);
	if (l->vp > 1 && layout_micro_count(l) % l->pp)
		return err_set(ERR_USAGE,
			"interleaved stages need micro-batches that divide by pp %u; "
			"there are %u",
			l->pp, layout_micro_count(l));
	if (l->offload && l->shard != SHARD_ALL && l->offload & OFFLOAD_PARAMS)
		return err_set(ERR_USAGE,
			"parameters are kept on the host with zero3 only; this is %s",
			shard_name(l->shard));
	if (l->shard == SHARD_HYBRID && (uint64_t)l->dp * l->cp % layout_shard_size(l))
		return err_set(ERR_USAGE,
			"hsdp over %u GPUs does not divide dp %u x cp %u; give another "
			"--shard-size",
			layout_shard_size(l), l->dp, l->cp);
	return model_fits(m, l);
}

uint32_t layout_shard_size(const struct train_layout *layout)
{
	uint64_t ranks = (uint64_t)layout->dp * layout->cp;
	uint32_t size = layout->shard_size ? layout->shard_size : 8;

	return size < ranks ? size : (uint32_t)ranks;
}

uint32_t layout_expert_tp(const struct train_layout *layout)
{
	return layout->etp ? layout->etp : layout->tp;
}

uint32_t layout_micro_count(const struct train_layout *layout)
{
	uint64_t each = (uint64_t)layout->dp * layout->micro;
	uint64_t count = each ? layout->batch / each : 0;

	return count ? (uint32_t)count : 1;
}

uint32_t layout_stage_layers(const struct train_model *model,
	const struct train_layout *layout, uint32_t stage)
{
	uint32_t pieces = layout->pp * layout->vp, own = 0;
	bool is_padded = model->layers % pieces && (model->layers + 2) % pieces == 0;
	uint32_t slots = is_padded ? model->layers + 2 : model->layers;

	for (uint32_t chunk = 0; chunk < layout->vp; chunk++) {
		uint32_t piece = chunk * layout->pp + stage;

		own += slots / pieces + (piece < slots % pieces);
	}
	if (is_padded && stage == 0)
		own--;
	if (is_padded && stage == layout->pp - 1)
		own--;
	return own;
}

uint32_t layout_fullest(
	const struct train_model *model, const struct train_layout *layout)
{
	uint32_t pieces = layout->pp * layout->vp, more = model->layers % pieces;

	if (more && (model->layers + 2) % pieces == 0)
		return (model->layers + 2) / layout->pp -
		       (layout->pp == 1 ? 2 : layout->pp == 2);
	return model->layers / pieces * layout->vp + (more + layout->pp - 1) / layout->pp;
}

/* A word and a number where the number says something. */
static int degree_text(char *text, int at, const char *word, uint32_t degree)
{
	return at +
	       snprintf(text + at, LAYOUT_TEXT_BYTES - (size_t)at, " %s%u", word, degree);
}

static int kept_text(const struct train_layout *l, char *text, int at)
{
	static const char *const words[] = {"optimizer", "grads", "params"};
	const char *before = ", offload ";

	for (int i = 2; i >= 0; i--)
		if (l->offload & 1u << i) {
			at += snprintf(text + at, LAYOUT_TEXT_BYTES - (size_t)at, "%s%s",
				before, words[i]);
			before = "+";
		}
	return at;
}

void layout_text(const struct train_layout *l, char text[LAYOUT_TEXT_BYTES])
{
	int at = snprintf(text, LAYOUT_TEXT_BYTES, "tp%u pp%u", l->tp, l->pp);

	if (l->cp > 1)
		at = degree_text(text, at, "cp", l->cp);
	if (l->ep > 1)
		at = degree_text(text, at, "ep", l->ep);
	if (l->etp && l->etp != l->tp)
		at = degree_text(text, at, "etp", l->etp);
	at = degree_text(text, at, "dp", l->dp);
	if (l->vp > 1)
		at = degree_text(text, at, "vp", l->vp);
	at += snprintf(text + at, LAYOUT_TEXT_BYTES - (size_t)at,
		" mbs%u %s, recompute %s", l->micro, shard_name(l->shard),
		recompute_name(l->recompute));
	at = kept_text(l, text, at);
	if (l->is_zero_bubble && l->pp > 1)
		snprintf(text + at, LAYOUT_TEXT_BYTES - (size_t)at, ", zero bubble");
}
