/* Parameters are those that the publishers count, to the last; FLOPs are the formula of
 * Megatron's papers; a config.json says the same as the built-in model. */
#include "train/model.h"

#include <math.h>

#include "test.h"

static void counts(void)
{
	static const struct {
		const char *name;
		double params;
	} known[] = {
		{"gpt2-xl", 1557611200},
		{"llama2-7b", 6738415616},
		{"Llama3-8B", 8030261248}, /* as its trainer prints it */
		{"llama3_70b", 70553706496},
		{"llama3-405b", 405853388800},
		{"mistral-7b", 7241732096},
		{"mixtral-8x7b", 46702792704},
		{"qwen2.5-7b", 7615616512},
		{"qwen3-30b-a3b", 30532122624},
		{"qwen3-235b-a22b", 235093634560},
		{"deepseek-v3", 671026419200},
		{"mpt-7b", 6649286656},
		{"bloom-176b", 176247271424},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct train_model m;

		EQ(model_find(known[i].name, &m), OK);
		EQ(model_check(&m), OK);
		EQ(model_params(&m), known[i].params);
	}
}

static void flops(void)
{
	struct train_model m;
	double adapter;

	/* 6 (L (2 h h (1 + g/a) + 3 h f) + V h) + 6 L h s */
	EQ(model_find("llama3-8b", &m), OK);
	EQ(model_flops(&m, 8192),
		6.0 * (32 * (2.0 * 4096 * 4096 * 1.25 + 3.0 * 4096 * 14336) +
			      128256.0 * 4096) +
			6.0 * 32 * 4096 * 8192);
	/* 72 L h h (1 + s/12h + V/12Lh), the s term at half for causal attention */
	EQ(model_find("gpt3-175b", &m), OK);
	EQ(model_flops(&m, 2048), 72.0 * 96 * 12288 * 12288 + 6.0 * 96 * 12288 * 2048 +
					  6.0 * 51200 * 12288);
	/* Adapters: no gradients of the matrices. */
	EQ(model_find("llama3-70b-lora", &m), OK);
	TRUE(m.is_adapter);
	adapter = model_flops(&m, 4096);
	EQ(model_find("llama3-70b", &m), OK);
	EQ(3 * adapter, 2 * model_flops(&m, 4096));
	EQ(model_find("mixtral-8x7b", &m), OK);
	EQ(model_params_active(&m), 46702792704 - 6.0 * 32 * model_expert_params(&m));
}

static void config(void)
{
	static const char text[] =
		"{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
		"\"num_attention_heads\":32,\"num_key_value_heads\":8,"
		"\"intermediate_size\":14336,\"vocab_size\":128256,"
		"\"tie_word_embeddings\":false}";
	static const char mixtral[] =
		"{\"model_type\":\"mixtral\",\"hidden_size\":4096,"
		"\"num_hidden_layers\":32,\"num_attention_heads\":32,"
		"\"num_key_value_heads\":8,\"intermediate_size\":14336,"
		"\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2}";
	struct train_model m;

	EQ(model_config_parse(text, strlen(text), "config.json", &m), OK);
	EQ(model_params(&m), 8030261248);
	EQ(model_config_parse(mixtral, strlen(mixtral), "config.json", &m), OK);
	EQ(model_params(&m), 46702792704);
}

/* Other families as their publishers write them; parameters as they count them. */
static const struct {
	const char *text;
	double params;
} published[] = {
	{"{\"model_type\":\"bloom\",\"n_embed\":4096,\"n_layer\":30,"
	 "\"num_attention_heads\":32,\"n_inner\":null,\"vocab_size\":250880}",
		7069016064},
	{"{\"model_type\":\"mpt\",\"d_model\":4096,\"n_heads\":32,"
	 "\"n_layers\":32,\"expansion_ratio\":4,\"no_bias\":true,"
	 "\"learned_pos_emb\":true,\"max_seq_len\":2048,"
	 "\"attn_config\":{\"alibi\":true},\"vocab_size\":50432}",
		6649286656},
	{"{\"model_type\":\"gpt_oss\",\"num_hidden_layers\":36,"
	 "\"hidden_size\":2880,\"intermediate_size\":2880,"
	 "\"num_attention_heads\":64,\"num_key_value_heads\":8,"
	 "\"head_dim\":64,\"num_local_experts\":128,"
	 "\"num_experts_per_tok\":4,\"attention_bias\":true,"
	 "\"sliding_window\":128,\"vocab_size\":201088,"
	 "\"tie_word_embeddings\":false}",
		116829156672},
	{"{\"model_type\":\"opt\",\"num_hidden_layers\":32,"
	 "\"hidden_size\":4096,\"ffn_dim\":16384,"
	 "\"num_attention_heads\":32,\"vocab_size\":50272,"
	 "\"max_position_embeddings\":2048}",
		6658473984},
	{"{\"model_type\":\"gpt_neox\",\"num_hidden_layers\":44,"
	 "\"hidden_size\":6144,\"intermediate_size\":24576,"
	 "\"num_attention_heads\":64,\"vocab_size\":50432,"
	 "\"tie_word_embeddings\":false}",
		20554567680},
	{"{\"model_type\":\"qwen2_moe\",\"num_hidden_layers\":24,"
	 "\"hidden_size\":2048,\"intermediate_size\":5632,"
	 "\"moe_intermediate_size\":1408,"
	 "\"shared_expert_intermediate_size\":5632,\"num_experts\":60,"
	 "\"num_experts_per_tok\":4,\"num_attention_heads\":16,"
	 "\"num_key_value_heads\":16,\"vocab_size\":151936,"
	 "\"decoder_sparse_step\":1}",
		14315784192},
	{"{\"model_type\":\"deepseek_v2\",\"num_hidden_layers\":27,"
	 "\"hidden_size\":2048,\"intermediate_size\":10944,"
	 "\"moe_intermediate_size\":1408,\"n_routed_experts\":64,"
	 "\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
	 "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,"
	 "\"num_attention_heads\":16,\"num_key_value_heads\":16,"
	 "\"q_lora_rank\":null,\"kv_lora_rank\":512,"
	 "\"qk_nope_head_dim\":128,\"qk_rope_head_dim\":64,"
	 "\"v_head_dim\":128,\"vocab_size\":102400}",
		15706484224},
	{"{\"model_type\":\"kimi_k2\",\"num_hidden_layers\":61,"
	 "\"hidden_size\":7168,\"intermediate_size\":18432,"
	 "\"moe_intermediate_size\":2048,\"n_routed_experts\":384,"
	 "\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
	 "\"first_k_dense_replace\":1,\"num_attention_heads\":64,"
	 "\"num_key_value_heads\":64,\"q_lora_rank\":1536,"
	 "\"kv_lora_rank\":512,\"topk_method\":\"noaux_tc\","
	 "\"vocab_size\":163840}",
		1026408232448},
	{"{\"model_type\":\"qwen3\",\"num_hidden_layers\":28,"
	 "\"hidden_size\":1024,\"intermediate_size\":3072,"
	 "\"num_attention_heads\":16,\"num_key_value_heads\":8,"
	 "\"head_dim\":128,\"vocab_size\":151936,"
	 "\"tie_word_embeddings\":true}",
		596049920},
	{"{\"model_type\":\"gemma\",\"hidden_size\":2048,"
	 "\"intermediate_size\":16384,\"num_hidden_layers\":18,"
	 "\"num_attention_heads\":8,\"num_key_value_heads\":1,"
	 "\"head_dim\":256,\"vocab_size\":256000}",
		2506172416},
	{"{\"model_type\":\"gemma2\",\"hidden_size\":3584,"
	 "\"intermediate_size\":14336,\"num_hidden_layers\":42,"
	 "\"num_attention_heads\":16,\"num_key_value_heads\":8,"
	 "\"head_dim\":256,\"sliding_window\":4096,\"vocab_size\":256000}",
		9241705984},
	{"{\"model_type\":\"falcon\",\"hidden_size\":4544,"
	 "\"num_hidden_layers\":32,\"num_attention_heads\":71,"
	 "\"multi_query\":true,\"new_decoder_architecture\":false,"
	 "\"parallel_attn\":true,\"bias\":false,\"vocab_size\":65024}",
		6921720704},
	{"{\"model_type\":\"phi3\",\"hidden_size\":3072,"
	 "\"intermediate_size\":8192,\"num_hidden_layers\":32,"
	 "\"num_attention_heads\":32,\"num_key_value_heads\":32,"
	 "\"tie_word_embeddings\":false,\"vocab_size\":32064}",
		3821079552},
	{"{\"model_type\":\"deepseek\",\"num_hidden_layers\":28,"
	 "\"hidden_size\":2048,\"intermediate_size\":10944,"
	 "\"moe_intermediate_size\":1408,\"n_routed_experts\":64,"
	 "\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
	 "\"first_k_dense_replace\":1,\"moe_layer_freq\":1,"
	 "\"num_attention_heads\":16,\"num_key_value_heads\":16,"
	 "\"vocab_size\":102400}",
		16375728128},
};

static void families(void)
{
	struct train_model m;

	for (size_t i = 0; i < sizeof(published) / sizeof(published[0]); i++) {
		const char *text = published[i].text;

		EQ(model_config_parse(text, strlen(text), "config.json", &m), OK);
		EQ(model_params(&m), published[i].params);
		EQ(m.is_guessed, false);
	}
}

/* One layer in two without experts, an unknown family, and a model of several parts. */
static void odd_configs(void)
{
	static const char every[] =
		"{\"model_type\":\"qwen3_moe\",\"num_hidden_layers\":8,"
		"\"hidden_size\":256,\"intermediate_size\":512,"
		"\"moe_intermediate_size\":128,\"num_experts\":4,"
		"\"num_attention_heads\":4,\"vocab_size\":1000,"
		"\"decoder_sparse_step\":2,\"mlp_only_layers\":[3]}";
	static const char other[] =
		"{\"model_type\":\"none\",\"text_config\":{\"model_type\":\"new\","
		"\"num_hidden_layers\":2,\"hidden_size\":256,"
		"\"num_attention_heads\":4,\"vocab_size\":1000}}";
	static const char listed[] =
		"{\"model_type\":\"deepseek_v3\",\"num_hidden_layers\":5,"
		"\"hidden_size\":256,\"intermediate_size\":512,"
		"\"moe_intermediate_size\":128,\"n_routed_experts\":4,"
		"\"num_attention_heads\":4,\"vocab_size\":1000,"
		"\"moe_layer_freq\":[0,1,1,0,1]}";
	struct train_model m;

	EQ(model_config_parse(every, strlen(every), "config.json", &m), OK);
	EQ(model_moe_layers(&m), 3);
	EQ(model_config_parse(other, strlen(other), "config.json", &m), OK);
	EQ(m.is_guessed, true);
	EQ(m.layers, 2);
	EQ(model_config_parse(listed, strlen(listed), "config.json", &m), OK);
	EQ(model_moe_layers(&m), 3);
}

/* MPT's grouped keys: of 32 heads' width 8 remain, twice a layer; of one query all but
 * one go. Its positions are learned unless attention has others. */
static void mpt(void)
{
	static const struct {
		const char *attention;
		double params;
	} rows[] = {
		{"{\"alibi\":true}", 6649286656},
		{"{\"alibi\":true,\"attn_type\":\"grouped_query_attention\","
		 "\"kv_n_heads\":8}",
			6649286656 - 32 * 2 * 24 * 128.0 * 4096},
		{"{\"alibi\":true,\"attn_type\":\"multiquery_attention\"}",
			6649286656 - 32 * 2 * 31 * 128.0 * 4096},
		{"{\"alibi\":false,\"rope\":true}", 6649286656},
		{"{\"alibi\":false}", 6649286656 + 2048 * 4096},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct train_model m;
		char text[512];

		snprintf(text, sizeof(text),
			"{\"model_type\":\"mpt\",\"d_model\":4096,\"n_heads\":32,"
			"\"n_layers\":32,\"expansion_ratio\":4,\"no_bias\":true,"
			"\"max_seq_len\":2048,\"vocab_size\":50432,\"attn_config\":%s}",
			rows[i].attention);
		EQ(model_config_parse(text, strlen(text), "config.json", &m), OK);
		EQ(model_params(&m), rows[i].params);
	}
}

static void refused(const char *text, const char *word)
{
	struct train_model m;

	EQ(model_config_parse(text, strlen(text), "c.json", &m), ERR_USAGE);
	if (!strstr(err_last(), word)) {
		fprintf(stderr, "'%s' does not name '%s'\n", err_last(), word);
		exit(1);
	}
}

#define PLAIN                                                                            \
	"{\"num_hidden_layers\":2,\"hidden_size\":128,\"num_attention_heads\":4,"        \
	"\"vocab_size\":9,"

static void bad_input(void)
{
	struct train_model m;

	refused("{", "no JSON");
	refused("[1]", "no object");
	refused("{\"hidden_size\":4096}", "num_hidden_layers");
	refused("{\"num_hidden_layers\":-3}", "num_hidden_layers");
	refused("{\"num_hidden_layers\":1e99}", "num_hidden_layers");
	refused("{\"num_hidden_layers\":2,\"hidden_size\":100,"
		"\"num_attention_heads\":3,\"vocab_size\":9}",
		"does not divide");
	refused("{\"num_hidden_layers\":2,\"hidden_size\":128,"
		"\"num_attention_heads\":4,\"num_key_value_heads\":3,\"vocab_size\":9}",
		"key-value");
	refused("{\"num_hidden_layers\":4000000,\"hidden_size\":128,"
		"\"num_attention_heads\":4,\"vocab_size\":9}",
		"beyond reason");
	refused("{\"model_type\":\"llama\",\"num_hidden_layers\":2,\"hidden_size\":128,"
		"\"num_attention_heads\":4,\"vocab_size\":9}",
		"no 'intermediate_size'");
	refused(PLAIN "\"model_type\":7}", "'model_type' has to be a word");
	refused(PLAIN "\"tie_word_embeddings\":\"no\"}", "has to be true or false");
	refused(PLAIN "\"num_experts\":4,\"mlp_only_layers\":3}", "has to be a list");
	refused(PLAIN "\"model_type\":\"mpt\",\"attn_config\":\"flash\"}",
		"has to be an object");
	refused(PLAIN "\"model_type\":\"mpt\",\"attn_config\":{\"kv_n_heads\":-8}}",
		"'kv_n_heads' has to be");
	EQ(model_find("llama3-9b", &m), ERR_USAGE);
	TRUE(strstr(err_last(), "llama3-8b") != NULL);
}

/* As people and hubs write them. */
static void test_spellings(void)
{
	static const char *const names[][2] = {
		{"Llama-3-8B", "llama3-8b"},
		{"meta-llama/Meta-Llama-3-8B-Instruct", "llama3-8b"},
		{"meta-llama/Llama-3.1-405B", "llama3.1-405b"},
		{"Qwen/Qwen2.5-72B-Instruct", "qwen2.5-72b"},
		{"mistralai/Mixtral_8x7B", "mixtral-8x7b"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct train_model spelt, known;

		EQ(model_find(names[i][0], &spelt), OK);
		EQ(model_find(names[i][1], &known), OK);
		TRUE(model_params(&spelt) == model_params(&known));
	}
}

int main(void)
{
	test_spellings();
	counts();
	flops();
	config();
	families();
	odd_configs();
	mpt();
	bad_input();
	return 0;
}
