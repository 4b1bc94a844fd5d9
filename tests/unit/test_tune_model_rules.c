/* NCCL_ALGO and NCCL_PROTO: the whole grammar, and what it says of words nobody knows. */
#include "base/err.h"
#include "base/param.h"
#include "test.h"
#include "tune/model.h"

static struct model_rules rules;

static const char *algos(enum model_func func)
{
	static char text[ALGO_COUNT + 1];

	for (int a = 0; a < ALGO_COUNT; a++)
		text[a] = rules.algo[func][a] ? '1' : '0';
	return text;
}

static const char *protos(enum model_func func)
{
	static char text[PROTO_COUNT + 1];

	for (int p = 0; p < PROTO_COUNT; p++)
		text[p] = (char)('0' + rules.proto[func][p]);
	return text;
}

static void algo(const char *text)
{
	model_rules_default(&rules);
	EQ(model_algo_parse(text, &rules), OK);
	TRUE(rules.algo_set);
}

static void proto(const char *text)
{
	model_rules_default(&rules);
	EQ(model_proto_parse(text, &rules), OK);
	TRUE(rules.proto_set);
}

static void refused(enum err (*parse)(const char *, struct model_rules *),
	const char *text, const char *word)
{
	struct model_rules before;

	model_rules_default(&rules);
	before = rules;
	EQ(parse(text, &rules), ERR_USAGE);
	if (!strstr(err_last(), word)) {
		fprintf(stderr, "\"%s\" does not name %s\n", err_last(), word);
		exit(1);
	}
	EQ(memcmp(&before, &rules, sizeof(rules)), 0);
}

static void lists(void)
{
	algo("ring");
	EQ_STR(algos(MODEL_ALL_REDUCE), "0100000");
	EQ_STR(algos(MODEL_BROADCAST), "0100000");
	algo("^Tree,NVLS");
	EQ_STR(algos(MODEL_REDUCE), "0111011");
	algo("Ring,CollNetDirect;AllReduce:tree,collnetdirect;broadcast:RING");
	EQ_STR(algos(MODEL_ALL_GATHER), "0110000");
	EQ_STR(algos(MODEL_ALL_REDUCE), "1010000");
	EQ_STR(algos(MODEL_BROADCAST), "0100000");
	algo("AllReduce:NVLSTree;;ReduceScatter:^PAT");
	EQ_STR(algos(MODEL_ALL_REDUCE), "0000010");
	EQ_STR(algos(MODEL_REDUCE_SCATTER), "1111110");
	EQ_STR(algos(MODEL_REDUCE), "1111111");
	algo("^");
	EQ_STR(algos(MODEL_REDUCE), "1111111");
	algo("");
	EQ_STR(algos(MODEL_REDUCE), "1111111");
	algo("CollNetChain,,Ring,");
	EQ_STR(algos(MODEL_REDUCE), "0101000");
	model_rules_default(&rules);
	EQ_STR(protos(MODEL_ALL_REDUCE), "121");
	proto("LL,Simple;AllReduce:^LL");
	EQ_STR(protos(MODEL_REDUCE), "101");
	EQ_STR(protos(MODEL_ALL_REDUCE), "011"); /* LL128 whether safe or not */
	proto("^LL128;AllReduce:ll128");
	EQ_STR(protos(MODEL_REDUCE), "101");
	EQ_STR(protos(MODEL_ALL_REDUCE), "010");
}

static void errors(void)
{
	char long_text[5000];

	refused(model_algo_parse, "Ring,Hypercube", "Hypercube");
	refused(model_algo_parse, "Ring Tree", "Ring Tree");
	refused(model_algo_parse, "AllToAll:Ring", "AllToAll");
	refused(model_algo_parse, "Ring;Tree", "must name its function");
	refused(model_algo_parse, "AllReduce:", "AllReduce");
	refused(model_algo_parse, "AllReduce:Ring:Tree", "Ring:Tree");
	refused(model_algo_parse, ":Ring", "function ''");
	refused(model_algo_parse, "Rin", "Rin");
	refused(model_algo_parse, "Rings", "Rings");
	refused(model_algo_parse, "Ring^", "Ring^");
	refused(model_proto_parse, "LL,Tree", "Tree");
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	refused(model_algo_parse, long_text, "xxxx");
}

static void set(const char *name, enum param id, const char *value)
{
	setenv(name, value, 1);
	param_forget(id);
}

static void environment(void)
{
	EQ(model_rules_read(&rules), OK);
	EQ(rules.pat_enable, 2);
	EQ(rules.threads, -2);
	TRUE(!rules.algo_set && !rules.proto_set);
	set("NCCL_ALGO", PARAM_ALGO, "AllReduce:tree");
	set("NCCL_PROTO", PARAM_PROTO, "^LL");
	set("NCCL_NTHREADS", PARAM_NTHREADS, "256");
	set("NCCL_LL128_NTHREADS", PARAM_LL128_NTHREADS, "320");
	set("NCCL_THREAD_THRESHOLDS", PARAM_THREAD_THRESHOLDS, "1 2 3 4");
	set("NCCL_NET_OVERHEAD", PARAM_NET_OVERHEAD, "1500");
	set("NCCL_NVLS_ENABLE", PARAM_NVLS_ENABLE, "0");
	set("NCCL_PAT_ENABLE", PARAM_PAT_ENABLE, "1");
	set("NCCL_LL128_C2C", PARAM_LL128_C2C, "0");
	EQ(model_rules_read(&rules), OK);
	EQ_STR(algos(MODEL_ALL_REDUCE), "1000000");
	EQ_STR(protos(MODEL_ALL_REDUCE), "011");
	EQ(rules.threads, 256);
	EQ(rules.ll128_threads, 320);
	EQ(rules.thresholds[0], 1);
	EQ(rules.thresholds[3], 4);
	EQ(rules.thresholds[4], -2);
	EQ(rules.net_overhead_ns, 1500);
	EQ(rules.nvls_enable, 0);
	EQ(rules.pat_enable, 1);
	TRUE(!rules.ll128_c2c && rules.algo_set && rules.proto_set);
	set("NCCL_ALGO", PARAM_ALGO, "AllReduce:trees");
	EQ(model_rules_read(&rules), ERR_USAGE);
}

int main(void)
{
	lists();
	errors();
	environment();
	return 0;
}
