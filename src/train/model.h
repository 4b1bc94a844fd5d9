/*
 * model.h - what is trained: a transformer by its sizes, its parameters and its work.
 *
 * Counts are exact for the families named in model.c: every matrix, bias and norm.
 * FLOPs are those of the matrix products, causal attention at half: what papers call
 * model FLOPs. Of a model that nobody has published the sizes of, the figures of its
 * publisher stand in: parameters and FLOPs of a token; is_figures says so.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { MODEL_NAME_BYTES = 48 };

struct train_model {
	char name[MODEL_NAME_BYTES];
	uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
	uint32_t positions;	 /* learned ones, 0: rotary, alibi or none */
	bool is_gated;		 /* three matrices of the feed-forward, not two */
	bool is_tied;		 /* the head is the embedding */
	bool is_layer_norm;	 /* with a bias, or RMS without */
	bool has_bias;		 /* all matrices */
	bool has_qkv_bias;	 /* these only */
	bool has_out_bias;	 /* and that behind attention */
	bool has_qk_norm;	 /* one of a head's size for queries, one for keys */
	bool has_embed_norm;	 /* BLOOM */
	uint32_t norms;		 /* of a layer; 0: two */
	bool has_sinks;		 /* a number for each head */
	uint32_t experts, top_k; /* 0: dense */
	uint32_t expert_ffn, shared_ffn;
	uint32_t dense_layers; /* the first so many have no experts */
	uint32_t latent;       /* width that tokens are sent to experts at; 0: hidden */
	uint32_t attention_layers; /* that look at other tokens; 0: all */
	bool has_router_bias;
	bool has_expert_bias;
	bool has_shared_gate; /* how much of the shared expert counts */
	uint32_t q_rank, kv_rank, nope_dim, rope_dim, value_dim; /* latent attention */
	uint32_t window, window_every; /* every so-manyth layer looks back so far only */
	bool is_parallel; /* attention and feed-forward beside each other, not in turn */
	bool is_adapter;  /* LoRA: the matrices are frozen, their gradients not made */
	bool is_guessed;  /* of a family that is not named or known, counted as Llama */
	bool is_figures;  /* parameters and work as published, sizes guessed */
	double figure_params, figure_active;
};

/* By name, in any case and with '-', '_', '.' and ' ' alike; ERR_USAGE with the nearest.
 */
enum err model_find(const char *name, struct train_model *model);

/* The names of all, in order; NULL after the last. */
const char *model_name(uint32_t index);

/* A sentence when sizes are missing, absurd or do not divide. */
enum err model_check(const struct train_model *model);

/* A Hugging Face config.json; ERR_USAGE names the field. */
enum err model_config_read(const char *path, struct train_model *model);
enum err model_config_parse(
	const char *text, size_t bytes, const char *name, struct train_model *model);

double model_attention_params(const struct train_model *model); /* of a layer */
double model_dense_params(const struct train_model *model);	/* its feed-forward */
double model_router_params(const struct train_model *model);
double model_expert_params(const struct train_model *model); /* one expert */
double model_shared_params(const struct train_model *model);
double model_norm_params(const struct train_model *model);
double model_embedding_params(const struct train_model *model); /* without the head */
double model_head_params(const struct train_model *model);	/* 0: tied */
uint32_t model_moe_layers(const struct train_model *model);

double model_params(const struct train_model *model);
double model_params_active(const struct train_model *model); /* of one token */

/* FLOPs of one token of a sequence so long, forward and backward. */
double model_flops(const struct train_model *model, double sequence);

/* Of that the products of queries with keys and of weights with values, one layer,
 * forward only. */
double model_attention_flops(const struct train_model *model, double sequence);

#endif
