/* Sizes come from the config.json that each publisher gives with the weights; GPT's from
 * the papers of Megatron-LM and GPT-3. */
#include "train/model.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/edits.h"

/* Rotary positions, RMS norms, gated feed-forward. */
#define LLAMA .is_gated = true
/* Learned positions, norms and matrices with biases, tied head. */
#define GPT .is_layer_norm = true, .has_bias = true, .is_tied = true

static const struct train_model models[] = {
	{"gpt2-xl", 48, 1600, 6400, 25, 25, 64, 50257, 1024, GPT},
	{"gpt3-5b", 24, 4096, 16384, 32, 32, 128, 51200, 2048, GPT},
	{"gpt3-20b", 44, 6144, 24576, 48, 48, 128, 51200, 2048, GPT},
	{"gpt3-175b", 96, 12288, 49152, 96, 96, 128, 51200, 2048, GPT},
	{"gpt-22b", 48, 6144, 24576, 64, 64, 96, 51200, 2048, GPT},
	{"mt-nlg-530b", 105, 20480, 81920, 128, 128, 160, 51200, 2048, GPT},
	{"gpt-1t", 128, 25600, 102400, 160, 160, 160, 51200, 2048, GPT},
	{"nemotron-8b", 32, 4096, 16384, 32, 32, 128, 256000, .is_layer_norm = true},
	{"nemotron-22b", 40, 6144, 24576, 48, 48, 128, 256000, .is_layer_norm = true},
	{"nemotron4-340b", 96, 18432, 73728, 96, 8, 192, 256000, .is_layer_norm = true},
	{"llama2-7b", 32, 4096, 11008, 32, 32, 128, 32000, LLAMA},
	{"llama2-13b", 40, 5120, 13824, 40, 40, 128, 32000, LLAMA},
	{"llama2-34b", 48, 8192, 22016, 64, 8, 128, 32000, LLAMA},
	{"llama2-70b", 80, 8192, 28672, 64, 8, 128, 32000, LLAMA},
	{"llama3-8b", 32, 4096, 14336, 32, 8, 128, 128256, LLAMA},
	{"llama3-70b", 80, 8192, 28672, 64, 8, 128, 128256, LLAMA},
	{"llama3.1-405b", 126, 16384, 53248, 128, 8, 128, 128256, LLAMA},
	{"mistral-7b", 32, 4096, 14336, 32, 8, 128, 32000, LLAMA},
	{"mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, LLAMA, .experts = 8,
		.top_k = 2, .expert_ffn = 14336},
	{"mixtral-8x22b", 56, 6144, 16384, 48, 8, 128, 32768, LLAMA, .experts = 8,
		.top_k = 2, .expert_ffn = 16384},
	{"qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, LLAMA, .has_qkv_bias = true},
	{"qwen2.5-72b", 80, 8192, 29568, 64, 8, 128, 152064, LLAMA, .has_qkv_bias = true},
	{"qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936, LLAMA, .has_qk_norm = true},
	{"qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, LLAMA, .has_qk_norm = true,
		.experts = 128, .top_k = 8, .expert_ffn = 768},
	{"qwen3-235b-a22b", 94, 4096, 12288, 64, 4, 128, 151936, LLAMA,
		.has_qk_norm = true, .experts = 128, .top_k = 8, .expert_ffn = 1536},
	{"deepseek-v3", 61, 7168, 18432, 128, 128, 128, 129280, LLAMA, .experts = 256,
		.top_k = 8, .expert_ffn = 2048, .shared_ffn = 2048, .dense_layers = 3,
		.has_router_bias = true, .q_rank = 1536, .kv_rank = 512, .nope_dim = 128,
		.rope_dim = 64, .value_dim = 128},
	{"kimi-k2", 61, 7168, 18432, 64, 64, 128, 163840, LLAMA, .experts = 384,
		.top_k = 8, .expert_ffn = 2048, .shared_ffn = 2048, .dense_layers = 1,
		.has_router_bias = true, .q_rank = 1536, .kv_rank = 512, .nope_dim = 128,
		.rope_dim = 64, .value_dim = 128},
	{"gpt-oss-120b", 36, 2880, 2880, 64, 8, 64, 201088, LLAMA, .has_bias = true,
		.has_sinks = true, .experts = 128, .top_k = 4, .expert_ffn = 2880,
		.has_router_bias = true, .has_expert_bias = true, .window = 128,
		.window_every = 2},
	{"grok1-314b", 64, 6144, 32768, 48, 8, 128, 131072, LLAMA, .is_tied = true,
		.experts = 8, .top_k = 2, .expert_ffn = 32768},
	{"mpt-7b", 32, 4096, 16384, 32, 32, 128, 50432, .is_tied = true},
	{"mpt-30b", 48, 7168, 28672, 64, 64, 112, 50432, .is_tied = true},
	{"bloom-176b", 70, 14336, 57344, 112, 112, 128, 250880, .is_layer_norm = true,
		.has_bias = true, .is_tied = true, .has_embed_norm = true},
	/* Sizes are guesses in the proportions of their kin: the figures decide. */
	{"nemotron-3-nano", 52, 2688, 1856, 32, 2, 128, 131072, .experts = 128,
		.top_k = 6, .expert_ffn = 1856, .dense_layers = 29, .attention_layers = 6,
		.is_figures = true, .figure_params = 31.6e9, .figure_active = 3.5e9},
	{"nemotron-3-5-lightning", 52, 2688, 1856, 32, 2, 128, 131072, .experts = 128,
		.top_k = 6, .expert_ffn = 1856, .dense_layers = 29, .attention_layers = 6,
		.is_figures = true, .figure_params = 30e9, .figure_active = 3.5e9},
	{"nemotron-3-super", 88, 4096, 2688, 32, 2, 128, 131072, .experts = 512,
		.top_k = 22, .expert_ffn = 2688, .dense_layers = 48, .latent = 1024,
		.attention_layers = 8, .is_figures = true, .figure_params = 120e9,
		.figure_active = 12.7e9},
	{"nemotron-3-ultra", 108, 8192, 5120, 64, 8, 128, 131072, .experts = 512,
		.top_k = 22, .expert_ffn = 5120, .dense_layers = 60, .latent = 2048,
		.attention_layers = 12, .is_figures = true, .figure_params = 550e9,
		.figure_active = 55e9},
	{"deepseek-v4-flash", 43, 4096, 12288, 64, 1, 128, 129280, LLAMA, .experts = 256,
		.top_k = 6, .expert_ffn = 2048, .is_figures = true,
		.figure_params = 284e9, .figure_active = 13e9},
};
enum { MODELS = sizeof(models) / sizeof(models[0]) };

/* Names that people write for the same. */
static const struct {
	const char *alias, *name;
} aliases[] = {
	{"llama3-405b", "llama3.1-405b"},
	{"llama3.1-8b", "llama3-8b"},
	{"llama3.1-70b", "llama3-70b"},
	{"llama3arch-7b", "llama3-8b"},
	{"nemotron-340b", "nemotron4-340b"},
	{"bloom", "bloom-176b"},
	{"gpt3", "gpt3-175b"},
	{"mixtral", "mixtral-8x7b"},
	{"grok1", "grok1-314b"},
};

const char *model_name(uint32_t index)
{
	return index < MODELS ? models[index].name : NULL;
}

static const char *gap_skip(const char *name)
{
	return name + strspn(name, "-_. ");
}

/* Llama-3-8B, llama3_8b and llama3-8b are one model. */
static bool same_name(const char *a, const char *b)
{
	for (;; a++, b++) {
		a = gap_skip(a);
		b = gap_skip(b);
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
	}
}

static const struct train_model *lookup(const char *name)
{
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (same_name(name, aliases[i].alias))
			name = aliases[i].name;
	for (uint32_t i = 0; i < MODELS; i++)
		if (same_name(name, models[i].name))
			return &models[i];
	return NULL;
}

static const char *nearest(const char *name)
{
	const char *best = models[0].name;

	for (uint32_t i = 1; i < MODELS; i++)
		if (edits_between(name, models[i].name) < edits_between(name, best))
			best = models[i].name;
	return best;
}

static bool cut_suffix(char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);

	if (length <= end || strcasecmp(name + length - end, suffix) != 0)
		return false;
	name[length - end] = 0;
	return true;
}

/* "llama3-70b-lora" is the model with adapters, "-sft" the model itself; on a hub it
   stands behind its owner, and what it was tuned for behind it. Returns where the name
   begins. */
static const char *cut_about(char *name, bool *is_adapter)
{
	static const char *const tuned[] = {"-sft", "-instruct", "-chat", "-base", "-hf"};
	const char *owned = strrchr(name, '/');

	*is_adapter = cut_suffix(name, "-lora");
	for (size_t i = 0; i < sizeof(tuned) / sizeof(tuned[0]); i++)
		cut_suffix(name, tuned[i]);
	owned = owned ? owned + 1 : name;
	return strncasecmp(owned, "meta-", 5) ? owned : owned + 5;
}

enum err model_find(const char *name, struct train_model *model)
{
	const struct train_model *found;
	char whole[MODEL_NAME_BYTES];
	const char *base;
	bool is_adapter;

	if (strlen(name) >= sizeof(whole))
		return err_set(ERR_USAGE, "a model's name has fewer than %d letters",
			MODEL_NAME_BYTES);
	memcpy(whole, name, strlen(name) + 1);
	base = cut_about(whole, &is_adapter);
	found = lookup(base);
	if (!found)
		return err_set(ERR_USAGE,
			"model '%s' is not known; did you mean %s? A config.json or "
			"--layers, --hidden, --heads, --ffn and --vocab describe any "
			"other",
			name, nearest(base));
	*model = *found;
	model->is_adapter = is_adapter;
	memcpy(model->name, name, strlen(name) + 1);
	return OK;
}

/* Sizes of experts and of latent attention, which most models have none of. */
static bool is_sane_inside(const struct train_model *m)
{
	uint32_t most = 1 << 16;

	if (m->experts > most || m->shared_ffn > 1 << 26 || m->positions > 1 << 28)
		return false;
	if (!m->kv_rank)
		return true;
	return m->kv_rank <= most && m->q_rank <= most && m->nope_dim <= most &&
	       m->rope_dim <= most && m->nope_dim + m->rope_dim >= 1 &&
	       m->value_dim >= 1 && m->value_dim <= most;
}

static bool is_sane(const struct train_model *m)
{
	return m->layers >= 1 && m->layers <= 100000 && m->hidden >= 1 &&
	       m->hidden <= 1 << 24 && m->heads >= 1 && m->heads <= 1 << 16 &&
	       m->vocab >= 1 && m->vocab <= 1 << 28 && m->ffn <= 1 << 26 &&
	       m->expert_ffn <= 1 << 26 && m->head_dim >= 1 && m->head_dim <= 1 << 16;
}

enum err model_check(const struct train_model *m)
{
	if (!m->layers || !m->hidden || !m->heads || !m->vocab)
		return err_set(ERR_USAGE,
			"a model needs layers, a hidden size, heads and a vocabulary; %s "
			"has %u, %u, %u and %u",
			m->name, m->layers, m->hidden, m->heads, m->vocab);
	if (!is_sane_inside(m))
		return err_set(ERR_USAGE,
			"the sizes inside %s are beyond reason: %u experts, shared ones "
			"of %u, positions %u, latent attention of ranks %u and %u with "
			"heads of %u, %u and %u; correct the one that is wrong",
			m->name, m->experts, m->shared_ffn, m->positions, m->kv_rank,
			m->q_rank, m->nope_dim, m->rope_dim, m->value_dim);
	if (!is_sane(m))
		return err_set(ERR_USAGE,
			"the sizes of %s are beyond reason: %u layers of %u, %u heads of "
			"%u, feed-forward %u, vocabulary %u; correct the one that is "
			"wrong",
			m->name, m->layers, m->hidden, m->heads, m->head_dim, m->ffn,
			m->vocab);
	if (!m->ffn && !m->experts)
		return err_set(ERR_USAGE,
			"%s has no feed-forward size; give --ffn or "
			"intermediate_size",
			m->name);
	if (!m->kv_heads || m->heads % m->kv_heads)
		return err_set(ERR_USAGE,
			"%u heads of %s do not share %u key-value heads", m->heads,
			m->name, m->kv_heads);
	if (m->experts && (!m->top_k || m->top_k > m->experts || !m->expert_ffn))
		return err_set(ERR_USAGE,
			"%s has %u experts of %u: a token cannot go to %u of them",
			m->name, m->experts, m->expert_ffn, m->top_k);
	if (m->experts && m->dense_layers >= m->layers)
		return err_set(ERR_USAGE,
			"%s has %u experts, and none of its %u layers has them: %u are "
			"said to be dense",
			m->name, m->experts, m->layers, m->dense_layers);
	return OK;
}

double model_attention_params(const struct train_model *m)
{
	double h = m->hidden, a = m->heads, d = m->head_dim, g = m->kv_heads;
	double weights;

	if (m->kv_rank) {
		double key = (double)m->nope_dim + m->rope_dim, q = m->q_rank;
		double down = q > 0 ? h * q + q + q * a * key : h * a * key;

		return down + h * (m->kv_rank + (double)m->rope_dim) + m->kv_rank +
		       m->kv_rank * a * ((double)m->nope_dim + m->value_dim) +
		       a * m->value_dim * h;
	}
	weights = 2 * h * a * d + 2 * h * g * d;
	if (m->has_bias || m->has_qkv_bias)
		weights += a * d + 2 * g * d;
	if (m->has_bias || m->has_out_bias)
		weights += h;
	if (m->has_qk_norm)
		weights += 2 * d;
	return weights + (m->has_sinks ? a : 0);
}

static double feed_forward(const struct train_model *m, double ffn, bool has_bias)
{
	double h = m->hidden, in = m->is_gated ? 2 : 1;

	return (in + 1) * h * ffn + (has_bias ? in * ffn + h : 0);
}

double model_dense_params(const struct train_model *m)
{
	return feed_forward(m, m->ffn, m->has_bias && !m->experts);
}

double model_router_params(const struct train_model *m)
{
	return m->experts * ((double)m->hidden + (m->has_router_bias ? 1 : 0)) +
	       (m->has_shared_gate ? m->hidden : 0);
}

double model_expert_params(const struct train_model *m)
{
	return feed_forward(m, m->expert_ffn, m->has_expert_bias);
}

double model_shared_params(const struct train_model *m)
{
	return m->shared_ffn ? feed_forward(m, m->shared_ffn, false) : 0;
}

static double norm_params(const struct train_model *m)
{
	return m->hidden * (m->is_layer_norm ? 2.0 : 1.0);
}

double model_norm_params(const struct train_model *m)
{
	return (m->norms ? m->norms : 2) * norm_params(m);
}

double model_embedding_params(const struct train_model *m)
{
	double norm = m->has_embed_norm ? 2.0 * m->hidden : 0;

	return ((double)m->vocab + m->positions) * m->hidden + norm;
}

double model_head_params(const struct train_model *m)
{
	return m->is_tied ? 0 : (double)m->vocab * m->hidden;
}

uint32_t model_moe_layers(const struct train_model *m)
{
	if (!m->experts)
		return 0;
	return m->layers > m->dense_layers ? m->layers - m->dense_layers : 0;
}

static double counted(const struct train_model *m, double experts)
{
	double moe = model_moe_layers(m), dense = m->layers - moe;
	double layer = model_attention_params(m) + model_norm_params(m);

	return m->layers * layer + dense * model_dense_params(m) +
	       moe * (model_router_params(m) + experts * model_expert_params(m) +
			     model_shared_params(m)) +
	       model_embedding_params(m) + model_head_params(m) + norm_params(m);
}

double model_params(const struct train_model *m)
{
	return m->is_figures ? m->figure_params : counted(m, m->experts);
}

double model_params_active(const struct train_model *m)
{
	return m->is_figures ? m->figure_active : counted(m, m->top_k);
}

/* A layer with a window looks back over it, the others over half of the sequence. */
double model_attention_flops(const struct train_model *m, double sequence)
{
	double width = (double)m->heads * m->head_dim, seen = sequence / 2;

	if (m->kv_rank)
		width = m->heads * ((double)m->nope_dim + m->rope_dim + m->value_dim) / 2;
	if (m->window && m->window_every) {
		double share = 1.0 / m->window_every;
		double near = fmin(m->window, sequence / 2);

		seen = (1 - share) * seen + share * near;
	}
	if (m->attention_layers)
		seen *= (double)m->attention_layers / m->layers;
	return 4 * width * seen;
}

double model_flops(const struct train_model *m, double sequence)
{
	double h = m->hidden, in = m->is_gated ? 3 : 2;
	double moe = model_moe_layers(m), dense = m->layers - moe;
	double a = m->heads, d = m->head_dim, g = m->kv_heads, attention;
	double per_pass, passes = m->is_adapter ? 2 : 3;

	if (m->is_figures)
		return passes * (2 * m->figure_active +
					model_attention_flops(m, sequence) * m->layers);
	attention = 2 * h * a * d + 2 * h * g * d;
	if (m->kv_rank)
		attention = model_attention_params(m) - m->q_rank - m->kv_rank;
	per_pass = 2 * (m->layers * attention + dense * in * h * m->ffn +
			       moe * (in * h *
						     ((double)m->top_k * m->expert_ffn +
							     m->shared_ffn) +
					     h * m->experts) +
			       (double)m->vocab * h);
	return passes * (per_pass + m->layers * model_attention_flops(m, sequence));
}
