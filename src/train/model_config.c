/* A Hugging Face config.json: the names that its families have for the same sizes. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/model.h"

enum { CONFIG_BYTES_MAX = 1 << 20 };

struct config {
	const json_t *root;
	const char *name;
	enum err e;
};

/* The first of up to four names that is there. */
static uint32_t number(struct config *c, const char *const *names, uint32_t otherwise)
{
	for (int i = 0; i < 4 && names[i]; i++) {
		const json_t *value = json_object_get(c->root, names[i]);
		double real;

		if (!value || json_is_null(value))
			continue;
		real = json_number_value(value);
		if (json_is_number(value) && real >= 0 && real <= 4e9 &&
			real == (double)(uint32_t)real)
			return (uint32_t)real;
		if (!c->e)
			c->e = err_set(ERR_USAGE,
				"%s: '%s' has to be a whole number within reason",
				c->name, names[i]);
		return otherwise;
	}
	return otherwise;
}

static uint32_t needed(struct config *c, const char *const *names)
{
	uint32_t value = number(c, names, 0);

	if (!value && !c->e)
		c->e = err_set(ERR_USAGE,
			"%s has no '%s', or it is 0; without it the model has no size",
			c->name, names[0]);
	return value;
}

static bool truth(struct config *c, const char *name, bool otherwise)
{
	const json_t *value = json_object_get(c->root, name);

	if (value && !json_is_boolean(value) && !json_is_null(value) && !c->e)
		c->e = err_set(
			ERR_USAGE, "%s: '%s' has to be true or false", c->name, name);
	return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

/* What is there has to be of that type. */
static const json_t *inner(struct config *c, const char *name, json_type type)
{
	const json_t *value = json_object_get(c->root, name);

	if (!value || json_is_null(value) || json_typeof(value) == type)
		return value;
	if (!c->e)
		c->e = err_set(ERR_USAGE, "%s: '%s' has to be %s", c->name, name,
			type == JSON_ARRAY    ? "a list"
			: type == JSON_OBJECT ? "an object"
					      : "a word");
	return NULL;
}

static const char *type_of(const struct config *c)
{
	const char *type = json_string_value(json_object_get(c->root, "model_type"));

	return type ? type : "";
}

/* What a family has beside its sizes; a config.json says only what is not usual in it. */
static const struct kind {
	const char *type;
	bool is_gated, is_layer_norm, has_bias, is_tied;
} kinds[] = {
	{"phi3", true, false, false, false},
	{"gemma", true, false, false, true},
	{"gemma2", true, false, false, true},
	{"gemma3_text", true, false, false, true},
	{"falcon", false, true, false, true},
	{"llama", true, false, false, false},
	{"mistral", true, false, false, false},
	{"mixtral", true, false, false, false},
	{"qwen2", true, false, false, false},
	{"qwen2_moe", true, false, false, false},
	{"qwen3", true, false, false, false},
	{"qwen3_moe", true, false, false, false},
	{"deepseek", true, false, false, false},
	{"deepseek_v2", true, false, false, false},
	{"deepseek_v3", true, false, false, false},
	{"kimi_k2", true, false, false, false},
	{"gpt_oss", true, false, true, false},
	{"gpt2", false, true, true, true},
	{"gpt_bigcode", false, true, true, true},
	{"gpt_neox", false, true, true, false},
	{"opt", false, true, true, true},
	{"bloom", false, true, true, true},
	{"mpt", false, false, false, true}, /* norms without a bias */
	{"nemotron", false, true, false, false},
};

/* The last counts for those that are not there. */
static const struct kind *kind_of(const struct config *c, bool *is_known)
{
	static const struct kind other = {"", true, false, false, false};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(type_of(c), kinds[i].type)) {
			*is_known = true;
			return &kinds[i];
		}
	*is_known = false;
	return &other;
}

static bool is_type(const struct config *c, const char *type)
{
	return !strcmp(type_of(c), type);
}

/* Learned positions: OPT has two more than it says, MPT none where it has others. */
static void positions(struct config *c, struct train_model *m)
{
	const json_t *attention = inner(c, "attn_config", JSON_OBJECT);
	bool is_learned = !json_is_true(json_object_get(attention, "alibi")) &&
			  !json_is_true(json_object_get(attention, "rope"));

	if (is_type(c, "gpt2") || is_type(c, "gpt_bigcode"))
		m->positions = number(
			c, (const char *const[4]){"n_positions", "n_ctx", NULL}, 1024);
	if (is_type(c, "opt"))
		m->positions =
			2 +
			number(c, (const char *const[4]){"max_position_embeddings", NULL},
				2048);
	if (is_type(c, "mpt") && is_learned && truth(c, "learned_pos_emb", true))
		m->positions = number(
			c, (const char *const[4]){"max_seq_len", NULL}, 2048);
}

/* MPT's attention has an object of its own. */
static void mpt(struct config *c, struct train_model *m)
{
	const json_t *attention = inner(c, "attn_config", JSON_OBJECT);
	const char *type = json_string_value(json_object_get(attention, "attn_type"));
	struct config in = {attention, c->name, c->e};

	if (!truth(c, "no_bias", true))
		m->has_bias = m->is_layer_norm = true;
	if (type && !strcmp(type, "multiquery_attention"))
		m->kv_heads = 1;
	else if (attention)
		m->kv_heads = number(
			&in, (const char *const[4]){"kv_n_heads", NULL}, m->kv_heads);
	c->e = in.e;
}

/* Attention and feed-forward are beside each other; of the first ones behind one norm. */
static void falcon(struct config *c, struct train_model *m)
{
	bool is_new = truth(c, "new_decoder_architecture", false);

	m->has_bias = truth(c, "bias", false);
	m->is_parallel = truth(c, "parallel_attn", true);
	m->norms = m->is_parallel && !is_new ? 1 : 2;
	if (is_new)
		m->norms = number(
			c, (const char *const[4]){"num_ln_in_parallel_attn", NULL}, 2);
	if (!is_new && truth(c, "multi_query", true))
		m->kv_heads = 1;
	if (is_new)
		m->kv_heads = number(c,
			(const char *const[4]){"num_kv_heads", "n_head_kv", NULL},
			m->heads);
}

/* Norms before and behind each half of a layer. */
static void gemma(struct config *c, struct train_model *m)
{
	if (!is_type(c, "gemma"))
		m->norms = 4;
	if (is_type(c, "gemma2"))
		m->window_every = 2;
	if (is_type(c, "gemma3_text"))
		m->has_qk_norm = true;
}

static void family(struct config *c, struct train_model *m)
{
	bool is_known, has_bias;
	const struct kind *kind = kind_of(c, &is_known);

	m->is_guessed = !is_known;
	m->is_gated = kind->is_gated;
	m->is_layer_norm = kind->is_layer_norm;
	has_bias = truth(c, "attention_bias", false);
	m->has_bias = kind->has_bias || (has_bias && truth(c, "mlp_bias", false));
	m->has_embed_norm = is_type(c, "bloom");
	m->has_qkv_bias = !strncmp(type_of(c), "qwen2", 5) || has_bias;
	m->has_out_bias = has_bias;
	m->has_qk_norm = !strncmp(type_of(c), "qwen3", 5);
	m->is_tied = truth(c, "tie_word_embeddings", kind->is_tied);
	if (is_type(c, "mpt"))
		mpt(c, m);
	if (is_type(c, "falcon"))
		falcon(c, m);
	if (!strncmp(type_of(c), "gemma", 5))
		gemma(c, m);
	if (is_type(c, "gpt_bigcode") && truth(c, "multi_query", true))
		m->kv_heads = 1;
	if (is_type(c, "gpt_oss")) {
		m->has_sinks = m->has_router_bias = m->has_expert_bias = true;
		m->window_every = 2;
	}
	if (is_type(c, "mistral"))
		m->window_every = 1;
	if (m->window_every)
		m->window = number(c, (const char *const[4]){"sliding_window", NULL}, 0);
	positions(c, m);
}

/* Layers without experts: the first, all but every so-manyth, and those that are named;
 * or a list says of each whether it has them. */
static void dense_layers(struct config *c, struct train_model *m)
{
	const json_t *named = inner(c, "mlp_only_layers", JSON_ARRAY);
	const json_t *each = json_object_get(c->root, "moe_layer_freq");
	bool is_list = json_is_array(each);
	uint32_t every = number(c,
		(const char *const[4]){
			"decoder_sparse_step", is_list ? NULL : "moe_layer_freq", NULL},
		1);
	uint32_t first = number(
		c, (const char *const[4]){"first_k_dense_replace", NULL}, 0);
	uint32_t rest = m->layers > first ? m->layers - first : 0;

	m->dense_layers = first + (uint32_t)json_array_size(named);
	if (every > 1)
		m->dense_layers += rest - rest / every;
	if (!is_list)
		return;
	m->dense_layers = 0;
	for (size_t i = 0; i < json_array_size(each) && i < m->layers; i++)
		m->dense_layers += json_integer_value(json_array_get(each, i)) == 0;
}

/* A number for each expert that keeps the load even: DeepSeek-V3 and its kin. */
static bool balances_by_bias(const struct config *c)
{
	const char *method = json_string_value(json_object_get(c->root, "topk_method"));

	return is_type(c, "deepseek_v3") || (method && !strcmp(method, "noaux_tc"));
}

static void experts(struct config *c, struct train_model *m)
{
	uint32_t shared = number(c, (const char *const[4]){"n_shared_experts", NULL}, 0);
	uint64_t all;

	m->experts = number(c,
		(const char *const[4]){
			"num_local_experts", "n_routed_experts", "num_experts", NULL},
		0);
	if (!m->experts)
		return;
	m->top_k = number(c,
		(const char *const[4]){"num_experts_per_tok", "experts_per_token", NULL},
		2);
	m->expert_ffn = number(
		c, (const char *const[4]){"moe_intermediate_size", NULL}, m->ffn);
	dense_layers(c, m);
	all = (uint64_t)shared * m->expert_ffn; /* model_check() says if it is too much */
	if (shared > 1024 && !c->e)
		c->e = err_set(ERR_USAGE,
			"%s: %u shared experts are beyond reason; correct "
			"'n_shared_experts'",
			c->name, shared);
	else
		m->shared_ffn = number(c,
			(const char *const[4]){"shared_expert_intermediate_size", NULL},
			all < UINT32_MAX ? (uint32_t)all : UINT32_MAX);
	m->has_shared_gate = is_type(c, "qwen2_moe") && m->shared_ffn;
	m->has_router_bias |= balances_by_bias(c);
}

static void latent(struct config *c, struct train_model *m)
{
	m->kv_rank = number(c, (const char *const[4]){"kv_lora_rank", NULL}, 0);
	if (!m->kv_rank)
		return;
	m->q_rank = number(c, (const char *const[4]){"q_lora_rank", NULL}, 0);
	m->nope_dim = number(c, (const char *const[4]){"qk_nope_head_dim", NULL}, 128);
	m->rope_dim = number(c, (const char *const[4]){"qk_rope_head_dim", NULL}, 64);
	m->value_dim = number(c, (const char *const[4]){"v_head_dim", NULL}, 128);
}

/* Four times the hidden size is not what gated families have. */
static void gated_needs(struct config *c)
{
	bool is_known;

	if (kind_of(c, &is_known)->is_gated && is_known)
		needed(c, (const char *const[4]){"intermediate_size", NULL});
}

static void sizes(struct config *c, struct train_model *m)
{
	uint32_t ratio;

	m->layers = needed(c, (const char *const[4]){"num_hidden_layers", "n_layer",
				      "n_layers", "num_layers"});
	m->hidden = needed(
		c, (const char *const[4]){"hidden_size", "n_embd", "n_embed", "d_model"});
	m->heads = needed(c,
		(const char *const[4]){"num_attention_heads", "n_head", "n_heads", NULL});
	m->vocab = needed(c, (const char *const[4]){"vocab_size", NULL});
	if (c->e || !m->heads)
		return;
	m->ffn = number(c,
		(const char *const[4]){
			"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"},
		m->hidden <= 1u << 24 ? 4 * m->hidden : 0);
	gated_needs(c);
	if (!m->ffn && m->hidden <= 1u << 24)
		m->ffn = 4 * m->hidden;
	ratio = number(c, (const char *const[4]){"expansion_ratio", NULL}, 0);
	if (ratio > 64 && !c->e)
		c->e = err_set(ERR_USAGE,
			"%s: an 'expansion_ratio' of %u is beyond reason; correct it",
			c->name, ratio);
	else if (ratio && m->hidden <= 1u << 24)
		m->ffn = ratio * m->hidden;
	m->kv_heads = number(
		c, (const char *const[4]){"num_key_value_heads", NULL}, m->heads);
	m->head_dim = number(
		c, (const char *const[4]){"head_dim", NULL}, m->hidden / m->heads);
	family(c, m);
	experts(c, m);
	latent(c, m);
	if (!json_object_get(c->root, "head_dim") && m->hidden % m->heads &&
		!m->kv_rank && !c->e)
		c->e = err_set(ERR_USAGE,
			"%s: hidden_size %u does not divide by its %u heads, and there "
			"is no head_dim",
			c->name, m->hidden, m->heads);
}

/* A file may be called anything, and JSON and pictures hold text. */
static void name_clean(char *name)
{
	for (; *name; name++)
		if (*name < ' ' || *name > '~')
			*name = '?';
}

enum err model_config_parse(
	const char *text, size_t bytes, const char *name, struct train_model *model)
{
	struct train_model fresh = {0};
	json_error_t error;
	json_t *root = json_loadb(text, bytes, 0, &error);
	struct config c = {.root = root, .name = name};
	const char *base = strrchr(name, '/');

	if (!root)
		return err_set(ERR_USAGE, "%s is no JSON: line %d, %s", name, error.line,
			error.text);
	if (!json_is_object(root))
		c.e = err_set(
			ERR_USAGE, "%s is no config.json: it holds no object", name);
	snprintf(fresh.name, sizeof(fresh.name), "%.*s", MODEL_NAME_BYTES - 1,
		base ? base + 1 : name);
	/* A model of several parts: that of text. */
	if (!json_object_get(root, "num_hidden_layers") &&
		json_is_object(json_object_get(root, "text_config")))
		c.root = json_object_get(root, "text_config");
	name_clean(fresh.name);
	inner(&c, "model_type", JSON_STRING);
	if (!c.e)
		sizes(&c, &fresh);
	json_decref(root);
	if (!c.e)
		c.e = model_check(&fresh);
	if (!c.e)
		*model = fresh;
	return c.e;
}

static enum err config_text(FILE *file, const char *path, struct train_model *model)
{
	char *text = malloc(CONFIG_BYTES_MAX);
	size_t bytes;
	enum err e;

	if (!text)
		return err_set(ERR_SYSTEM, "no memory for %s", path);
	bytes = fread(text, 1, CONFIG_BYTES_MAX, file);
	if (ferror(file))
		e = err_set(ERR_SYSTEM, "%s cannot be read: %m", path);
	else if (bytes == CONFIG_BYTES_MAX)
		e = err_set(
			ERR_USAGE, "%s is no config.json: it has over a megabyte", path);
	else
		e = model_config_parse(text, bytes, path, model);
	free(text);
	return e;
}

enum err model_config_read(const char *path, struct train_model *model)
{
	FILE *file = fopen(path, "re");
	enum err e;

	if (!file)
		return err_set(ERR_SYSTEM, "%s cannot be opened: %m", path);
	e = config_text(file, path, model);
	fclose(file);
	return e;
}
