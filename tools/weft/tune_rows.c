#include "weft/tune_rows.h"

#include <inttypes.h>
#include <stdio.h>

#include "weft/tune_net.h"

/* Bytes on the busiest link per byte of the call, nccl-tests' definition. */
static double bus_factor(enum model_func func, int ranks)
{
	switch (func) {
	case MODEL_ALL_REDUCE:
		return 2.0 * (ranks - 1) / ranks;
	case MODEL_ALL_GATHER:
	case MODEL_REDUCE_SCATTER:
		return 1.0 * (ranks - 1) / ranks;
	default:
		return 1;
	}
}

/* Asked here so that the model need not complain of what the user has ruled out. */
static bool is_allowed(const struct model *model, const struct model_call *call)
{
	model_costs costs;

	model_costs_fill(model, call, costs);
	for (int i = 0; i < ALGO_COUNT * PROTO_COUNT; i++)
		if (costs[i / PROTO_COUNT][i % PROTO_COUNT] >= 0)
			return true;
	return false;
}

static void row_fill(const struct model *model, const struct model_call *asked,
	const struct tune_net *net, struct tune_row *row)
{
	struct model_call call = *asked;

	*row = (struct tune_row){.bytes = asked->bytes};
	call.bytes = model_round(model, asked);
	if (!call.bytes || !is_allowed(model, &call) ||
		tune_net_choose(net, model, &call, &row->choice))
		return;
	row->usable = true;
	row->algbw = (double)call.bytes / 1e3 / (double)row->choice.time_us;
	row->busbw = row->algbw * bus_factor(call.func, model->cluster->rank_count);
}

static void run_extend(struct tune_rows *rows, const struct tune_row *row)
{
	struct tune_run *last = rows->runs + rows->run_count - 1;

	if (!rows->run_count || last->algo != row->choice.algo ||
		last->proto != row->choice.proto) {
		last = rows->runs + rows->run_count++;
		last->algo = row->choice.algo;
		last->proto = row->choice.proto;
	}
	last->last = row->bytes;
}

void tune_rows_fill(const struct model *model, const struct model_call *call,
	const struct tune_net *net, struct tune_rows *rows)
{
	struct model_call one = *call;

	rows->func = call->func;
	rows->run_count = 0;
	one.pipe_ops = 1;
	for (int i = 0; i < TUNE_ROWS; i++) {
		one.bytes = (uint64_t)1 << (TUNE_SIZE_FIRST + i);
		row_fill(model, &one, net, &rows->rows[i]);
		if (rows->rows[i].usable)
			run_extend(rows, &rows->rows[i]);
	}
}

void tune_size_text(uint64_t bytes, char text[TUNE_SIZE_TEXT])
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
	int unit = 0;

	while (unit < 3 && bytes >= 1024 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, TUNE_SIZE_TEXT, "%" PRIu64 " %s", bytes, units[unit]);
}
