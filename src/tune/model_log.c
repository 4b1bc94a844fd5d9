#include "tune/model_log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"

enum { LINE_BYTES = 1024, ALGOS_PER_BLOCK = 3 };

struct text {
	size_t used;
	char bytes[LINE_BYTES];
};

/* Append, or as much of it as there is room for. */
__attribute__((format(printf, 2, 3))) static void put(
	struct text *text, const char *format, ...)
{
	size_t room = sizeof(text->bytes) - text->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text->bytes + text->used, room, format, args);
	va_end(args);
	if (n > 0)
		text->used += (size_t)n < room ? (size_t)n : room - 1;
}

/* One line of a block, from its title on; `cell` appends what stands in one column. */
struct row {
	const char *title;
	int func;
	void (*cell)(const struct row *row, const struct model *model, int algo,
		int proto, struct text *text);
};

static void name_cell(const struct row *row, const struct model *model, int algo,
	int proto, struct text *text)
{
	(void)row;
	(void)model;
	if (proto == 0)
		put(text, " %14s   %14s   %14s |", "", algo_name((enum algo)algo), "");
}

static void threads_cell(const struct row *row, const struct model *model, int algo,
	int proto, struct text *text)
{
	(void)row;
	put(text, " %14d |", model->max_threads[algo][proto]);
}

static void value_cell(const struct row *row, const struct model *model, int algo,
	int proto, struct text *text)
{
	put(text, "%8.1f/%6.1f |", (double)model->latency[row->func][algo][proto],
		(double)model->bandwidth[row->func][algo][proto]);
}

static void row_print(
	const struct row *row, const struct model *model, int first, struct text *text)
{
	text->used = 0;
	put(text, "%13s |", row->title);
	for (int a = first; a < first + ALGOS_PER_BLOCK && a < ALGO_COUNT; a++)
		for (int p = 0; p < PROTO_COUNT; p++)
			row->cell(row, model, a, p, text);
}

/* NCCL heads three algorithms in every block, also where there is one. */
static void protocols_print(struct text *text)
{
	text->used = 0;
	put(text, "  Protocol    |");
	for (int i = 0; i < ALGOS_PER_BLOCK * PROTO_COUNT; i++)
		put(text, " %14s |", proto_name((enum proto)(i % PROTO_COUNT)));
}

void model_table(
	const struct model *model, void (*line)(void *arg, const char *text), void *arg)
{
	const struct row names = {"  Algorithm  ", 0, name_cell};
	const struct row threads = {" Max NThreads", 0, threads_cell};
	struct text text = {0};

	for (int a = 0; a < ALGO_COUNT; a += ALGOS_PER_BLOCK) {
		row_print(&names, model, a, &text);
		line(arg, text.bytes);
		protocols_print(&text);
		line(arg, text.bytes);
		row_print(&threads, model, a, &text);
		line(arg, text.bytes);
		for (int f = 0; f < MODEL_FUNCS; f++) {
			struct row values = {
				model_func_name((enum model_func)f), f, value_cell};

			row_print(&values, model, a, &text);
			line(arg, text.bytes);
		}
	}
}

static void log_line(void *arg, const char *text)
{
	(void)arg;
	log_info(LOG_TUNING, "%s", text);
}

void model_log_table(const struct model *model)
{
	if (log_is_on(LOG_INFO, LOG_TUNING))
		model_table(model, log_line, NULL);
}

/* NCCL prints the matrix as one text of many lines; our log keeps to one line each. */
void model_log_matrix(const struct model_rules *rules)
{
	struct text text = {0};

	if (!rules->algo_set && !rules->proto_set)
		return;
	log_info(LOG_ENV, "Enabled NCCL Func/Proto/Algo Matrix:");
	put(&text, "     Function | ");
	for (int p = 0; p < PROTO_COUNT; p++)
		put(&text, "%8s  ", proto_name((enum proto)p));
	put(&text, " | ");
	for (int a = 0; a < ALGO_COUNT; a++)
		put(&text, "%13s  ", algo_name((enum algo)a));
	log_info(LOG_ENV, "%s", text.bytes);
	for (int f = 0; f < MODEL_FUNCS; f++) {
		text.used = 0;
		put(&text, "%13s | ", model_func_name((enum model_func)f));
		for (int p = 0; p < PROTO_COUNT; p++)
			put(&text, "%8d  ", rules->proto[f][p]);
		put(&text, " | ");
		for (int a = 0; a < ALGO_COUNT; a++)
			put(&text, "%13d  ", rules->algo[f][a]);
		log_info(LOG_ENV, "%s", text.bytes);
	}
}

void model_log_thresholds(const struct model *model)
{
	const int64_t *tree = model->thresholds[ALGO_TREE];
	const int64_t *ring = model->thresholds[ALGO_RING];

	log_info(LOG_INIT,
		"threadThresholds %" PRId64 "/%" PRId64 "/%" PRId64 " | %" PRId64
		"/%" PRId64 "/%" PRId64 " | %" PRId64 " | %" PRId64,
		tree[PROTO_LL], tree[PROTO_LL128], tree[PROTO_SIMPLE], ring[PROTO_LL],
		ring[PROTO_LL128], ring[PROTO_SIMPLE],
		model->thresholds[ALGO_COLLNET_DIRECT][PROTO_SIMPLE],
		model->thresholds[ALGO_COLLNET_CHAIN][PROTO_SIMPLE]);
}

void model_log_choice(const struct model *model, const struct model_call *call,
	const struct model_choice *choice)
{
	static const char *const algos[ALGO_COUNT] = {"TREE", "RING", "COLLNET_DIRECT",
		"COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
	static const char *const protos[PROTO_COUNT] = {"LL", "LL128", "SIMPLE"};
	bool blocks = call->func == MODEL_ALL_GATHER ||
		      call->func == MODEL_REDUCE_SCATTER;
	uint64_t own = blocks ? call->bytes / (uint64_t)model->cluster->rank_count
			      : call->bytes;

	log_info(LOG_TUNING,
		"%s: %" PRIu64 " Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}",
		model_func_name(call->func), own, algos[choice->algo],
		protos[choice->proto], choice->channels_used - 1);
}
