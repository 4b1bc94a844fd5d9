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

static bool truth(const struct config *c, const char *name, bool otherwise)
{
	const json_t *value = json_object_get(c->root, name);

	return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

static const char *type_of(const struct config *c)
{
	const char *type = json_string_value(json_object_get(c->root, "model_type"));

	return type ? type : "";
}

static void family(struct config *c, struct train_model *m)
{
	const char *type = type_of(c);
	bool is_gpt = !strcmp(type, "gpt2"), is_bloom = !strcmp(type, "bloom");
	bool is_mpt = !strcmp(type, "mpt"); /* norms without a bias */

	m->is_gated = !is_gpt && !is_bloom && !is_mpt && strcmp(type, "nemotron") != 0;
	m->is_layer_norm = is_gpt || is_bloom || !strcmp(type, "nemotron");
	m->has_bias = is_gpt || is_bloom;
	m->has_embed_norm = is_bloom;
	m->has_qkv_bias = !strncmp(type, "qwen2", 5) || truth(c, "attention_bias", false);
	m->has_qk_norm = !strncmp(type, "qwen3", 5);
	m->is_tied = truth(c, "tie_word_embeddings", is_gpt || is_bloom || is_mpt);
	if (is_gpt)
		m->positions = number(
			c, (const char *const[4]){"n_positions", "n_ctx", NULL}, 1024);
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
	m->dense_layers = number(
		c, (const char *const[4]){"first_k_dense_replace", NULL}, 0);
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
	m->has_router_bias = !strcmp(type_of(c), "deepseek_v3");
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

static void sizes(struct config *c, struct train_model *m)
{
	m->layers = needed(c, (const char *const[4]){"num_hidden_layers", "n_layer",
				      "n_layers", "num_layers"});
	m->hidden = needed(
		c, (const char *const[4]){"hidden_size", "n_embd", "d_model", NULL});
	m->heads = needed(c,
		(const char *const[4]){"num_attention_heads", "n_head", "n_heads", NULL});
	m->vocab = needed(c, (const char *const[4]){"vocab_size", NULL});
	if (c->e || !m->heads)
		return;
	m->ffn = number(c,
		(const char *const[4]){"intermediate_size", "n_inner", "ffn_dim", NULL},
		m->hidden <= 1u << 24 ? 4 * m->hidden : 0);
	if (!m->ffn && m->hidden <= 1u << 24)
		m->ffn = 4 * m->hidden;
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
