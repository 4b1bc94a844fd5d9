/*
 * model_rules.c - what the user allows the model, the names of things, and the constants
 * that NCCL measured.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/param.h"
#include "tune/model.h"

static const char *const algo_names[ALGO_COUNT] = {
	"Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const proto_names[PROTO_COUNT] = {"LL", "LL128", "Simple"};
static const char *const func_names[MODEL_FUNCS] = {
	"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

const char *algo_name(enum algo algo)
{
	return algo_names[algo];
}

const char *proto_name(enum proto proto)
{
	return proto_names[proto];
}

const char *model_func_name(enum model_func func)
{
	return func_names[func];
}

/* clang-format off */
static const struct model_constants measured = {
	.base_latency = {
		[ALGO_TREE] = {6.8, 14.0, 8.4},
		[ALGO_RING] = {6.6, 14.0, 8.4},
		[ALGO_PAT] = {8.0, 8.0, 8.0},
	},
	.wire_latency = {
		[WIRE_NVLINK] = {
			[ALGO_TREE] = {0.6, 1.25, 4.0},
			[ALGO_RING] = {0.6, 1.9, 3.4},
			[ALGO_COLLNET_DIRECT] = {0, 0, 3.7},
			[ALGO_COLLNET_CHAIN] = {0, 0, 2.8},
			[ALGO_NVLS] = {0, 0, 25.0},
			[ALGO_NVLS_TREE] = {0, 0, 25.0},
			[ALGO_PAT] = {0, 0, 4.0},
		},
		[WIRE_PCI] = {
			[ALGO_TREE] = {1.0, 1.9, 4.0},
			[ALGO_RING] = {1.0, 2.5, 5.7},
			[ALGO_COLLNET_DIRECT] = {0, 0, 3.7},
			[ALGO_COLLNET_CHAIN] = {0, 0, 2.8},
			[ALGO_PAT] = {0, 0, 4.0},
		},
		[WIRE_NET] = {
			[ALGO_TREE] = {5.0, 8.5, 14.0},
			[ALGO_RING] = {2.7, 4.0, 14.0},
			[ALGO_COLLNET_DIRECT] = {0, 0, 31.0},
			[ALGO_COLLNET_CHAIN] = {0, 0, 30.0},
			[ALGO_NVLS] = {0, 0, 18.0},
			[ALGO_NVLS_TREE] = {0, 0, 20.9},
			[ALGO_PAT] = {0, 0, 14.0},
		},
	},
	/* several nodes: the first row is for Intel, the second for AMD and mixtures */
	.ll_max = {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0},
		{282.0, 90.0, 70.0}},
	.ring_ll128_max = {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7},
		{40.0, 40.0, 40.0}},
	.tree_ll128_max = {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0},
		{55.6, 31.67, 20.0}},
	.tree_max = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0},
		{70.0, 42.8, 24.0}},
	.nvls_tree_max = {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0.0, 57.7, 45.5},
		{0.0, 96.0, 80.0}},
};
/* clang-format on */

/* Part of a text that is not ours to change. */
struct span {
	const char *start;
	size_t length;
};

/* The text up to one of `ends`; what is left goes to `rest`, without the end. */
static struct span span_cut(struct span text, char end, struct span *rest)
{
	const char *at = memchr(text.start, end, text.length);
	size_t length = at ? (size_t)(at - text.start) : text.length;

	rest->start = text.start + length + (at != NULL);
	rest->length = text.length - length - (at != NULL);
	return (struct span){text.start, length};
}

static int span_find(struct span word, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strlen(names[i]) == word.length &&
			!strncasecmp(word.start, names[i], word.length))
			return i;
	return -1;
}

/* One of the two lists: which variable, its words, and how many. */
struct list {
	const char *variable, *kind, *text;
	const char *const *names;
	int count;
};

/* All the words of a sentence; `width` keeps a hostile text short. */
static enum err list_unknown(const struct list *list, const char *kind, struct span word,
	const char *const *names, int count)
{
	char known[160] = "";
	size_t used = 0;
	int width = word.length < 64 ? (int)word.length : 64;

	for (int i = 0; i < count && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
			i ? ", " : "", names[i]);
	return err_set(ERR_USAGE, "%s: there is no %s '%.*s'; there are %s",
		list->variable, kind, width, word.start, known);
}

/* What one part of a list says. */
struct row {
	bool on[ALGO_COUNT];
	bool listed; /* the words name what is on, not what is off */
};

/* `[^]a,b` into one row of switches. */
static enum err words_parse(const struct list *list, struct span words, struct row *row)
{
	bool inverse = words.length && words.start[0] == '^';

	words.start += inverse;
	words.length -= inverse;
	row->listed = !inverse;
	for (int i = 0; i < list->count; i++)
		row->on[i] = inverse;
	while (words.length) {
		struct span word = span_cut(words, ',', &words);
		int at = span_find(word, list->names, list->count);

		if (!word.length)
			continue;
		if (at < 0)
			return list_unknown(
				list, list->kind, word, list->names, list->count);
		row->on[at] = !inverse;
	}
	return OK;
}

/* `[func:]words`: `row` for the words, and true in `func` for the functions meant. */
static enum err entry_parse(const struct list *list, struct span entry, struct row *row,
	bool func[MODEL_FUNCS])
{
	struct span words;
	struct span name = span_cut(entry, ':', &words);
	int at;

	if (!words.length) { /* no colon, or nothing after it: NCCL takes both so */
		for (int f = 0; f < MODEL_FUNCS; f++)
			func[f] = true;
		return words_parse(list, name, row);
	}
	memset(func, 0, MODEL_FUNCS * sizeof(*func));
	at = span_find(name, func_names, MODEL_FUNCS);
	if (at < 0)
		return list_unknown(list, "function", name, func_names, MODEL_FUNCS);
	func[at] = true;
	return words_parse(list, words, row);
}

/* The whole list. `set` stores one row; it is called only for rows the list names. */
static enum err list_parse(const struct list *list, struct model_rules *rules,
	void (*set)(struct model_rules *, int, const struct row *))
{
	struct span rest = {list->text, strlen(list->text)};
	struct model_rules next = *rules;
	bool func[MODEL_FUNCS];
	struct row row;
	bool first = true;

	while (rest.length) {
		struct span entry = span_cut(rest, ';', &rest);
		enum err e;

		if (!entry.length)
			continue;
		e = entry_parse(list, entry, &row, func);
		if (e)
			return e;
		if (!first && func[0] && func[1])
			return err_set(ERR_USAGE,
				"%s is %.200s: every part but the first must name its "
				"function, as in AllReduce:%s",
				list->variable, list->text, list->names[0]);
		for (int f = 0; f < MODEL_FUNCS; f++)
			if (func[f])
				set(&next, f, &row);
		first = false;
	}
	*rules = next;
	return OK;
}

static void algo_row(struct model_rules *rules, int func, const struct row *row)
{
	memcpy(rules->algo[func], row->on, sizeof(rules->algo[func]));
	rules->algo_listed[func] = row->listed;
}

static void proto_row(struct model_rules *rules, int func, const struct row *row)
{
	for (int p = 0; p < PROTO_COUNT; p++)
		rules->proto[func][p] = row->on[p];
}

enum err model_algo_parse(const char *text, struct model_rules *rules)
{
	struct list list = {"NCCL_ALGO", "algorithm", text, algo_names, ALGO_COUNT};
	enum err e = list_parse(&list, rules, algo_row);

	if (!e)
		rules->algo_set = true;
	return e;
}

enum err model_proto_parse(const char *text, struct model_rules *rules)
{
	struct list list = {"NCCL_PROTO", "protocol", text, proto_names, PROTO_COUNT};
	enum err e = list_parse(&list, rules, proto_row);

	if (!e)
		rules->proto_set = true;
	return e;
}

void model_rules_default(struct model_rules *rules)
{
	*rules = (struct model_rules){.nvls_enable = 2,
		.pat_enable = 2,
		.ll128_c2c = true,
		.threads = -2,
		.ll128_threads = -2,
		.net_overhead_ns = -2,
		.thresholds = {-2, -2, -2, -2, -2, -2},
		.constants = measured};
	for (int f = 0; f < MODEL_FUNCS; f++) {
		memset(rules->algo[f], true, sizeof(rules->algo[f]));
		for (int p = 0; p < PROTO_COUNT; p++)
			rules->proto[f][p] = p == PROTO_LL128 ? 2 : 1;
	}
}

/* Numbers until one is not; what is missing stays automatic. */
static void thresholds_read(const char *text, long thresholds[6])
{
	long *t = thresholds;

	sscanf(text, "%ld %ld %ld %ld %ld %ld", t, t + 1, t + 2, t + 3, t + 4, t + 5);
	for (int i = 0; i < 6; i++)
		if (t[i] > INT32_MAX)
			t[i] = INT32_MAX;
}

enum err model_rules_read(struct model_rules *rules)
{
	const char *algo = param_text(PARAM_ALGO);
	const char *proto = param_text(PARAM_PROTO);
	const char *thresholds = param_text(PARAM_THREAD_THRESHOLDS);
	struct model_rules next;
	enum err e = OK;

	model_rules_default(&next);
	next.nvls_enable = (int)param_int(PARAM_NVLS_ENABLE);
	next.pat_enable = (int)param_int(PARAM_PAT_ENABLE);
	next.ll128_c2c = param_int(PARAM_LL128_C2C) != 0;
	next.threads = (int)param_int(PARAM_NTHREADS);
	next.ll128_threads = (int)param_int(PARAM_LL128_NTHREADS);
	next.net_overhead_ns = (int)param_int(PARAM_NET_OVERHEAD);
	if (thresholds)
		thresholds_read(thresholds, next.thresholds);
	if (proto)
		e = model_proto_parse(proto, &next);
	if (!e && algo)
		e = model_algo_parse(algo, &next);
	if (!e)
		*rules = next;
	return e;
}
