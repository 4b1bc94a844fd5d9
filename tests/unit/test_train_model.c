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

static void refused(const char *text, const char *word)
{
	struct train_model m;

	EQ(model_config_parse(text, strlen(text), "c.json", &m), ERR_USAGE);
	if (!strstr(err_last(), word)) {
		fprintf(stderr, "'%s' does not name '%s'\n", err_last(), word);
		exit(1);
	}
}

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
	bad_input();
	return 0;
}
