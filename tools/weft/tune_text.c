#include <inttypes.h>
#include <stdio.h>

#include "base/dtype.h"
#include "tune/model_log.h"
#include "weft/graph.h"
#include "weft/tune.h"
#include "weft/tune_net.h"
#include "weft/tune_rows.h"

static bool reduces(enum model_func func)
{
	return func == MODEL_ALL_REDUCE || func == MODEL_REDUCE ||
	       func == MODEL_REDUCE_SCATTER;
}

/* "Tree LL up to 128 KiB, Tree LL128 up to 8 MiB, then NVLSTree Simple" */
static void print_runs(const struct tune_rows *rows, const char *nothing)
{
	char size[TUNE_SIZE_TEXT];

	for (int i = 0; i < rows->run_count; i++) {
		const struct tune_run *run = &rows->runs[i];
		bool last = i == rows->run_count - 1;

		tune_size_text(run->last, size);
		printf("%s%s %s",
			!i     ? ""
			: last ? ", then "
			       : ", ",
			algo_name(run->algo), proto_name(run->proto));
		if (!last)
			printf(" up to %s", size);
		else if (!i)
			printf(" for every size");
	}
	printf("%s\n", rows->run_count ? "" : nothing);
}

static void print_row(const struct tune_row *row)
{
	char size[TUNE_SIZE_TEXT];

	tune_size_text(row->bytes, size);
	if (!row->usable) {
		printf("%10s  -\n", size);
		return;
	}
	printf("%10s  %-13s  %-6s  %8d  %7d  %11.2f  %10.2f  %10.2f\n", size,
		algo_name(row->choice.algo), proto_name(row->choice.proto),
		row->choice.channels_used, row->choice.threads,
		(double)row->choice.time_us, row->algbw, row->busbw);
}

static void print_rows(const struct tune_rows *rows)
{
	if (!rows->run_count)
		return;
	printf("%10s  %-13s  %-6s  %8s  %7s  %11s  %10s  %10s\n", "size", "algorithm",
		"proto", "channels", "threads", "time (us)", "algbw GB/s", "busbw GB/s");
	for (int i = 0; i < TUNE_ROWS; i++)
		print_row(&rows->rows[i]);
}

static void print_line(void *arg, const char *text)
{
	(void)arg;
	puts(text);
}

static void print_head(const struct graph_job *job, const struct tune_net *net)
{
	const struct cluster *cluster = job->decision->cluster;
	char text[TUNE_NET_TEXT];

	graph_text_names(job);
	printf("%d rank%s on %d node%s, %d channels, %d for NVLS\n", cluster->rank_count,
		cluster->rank_count == 1 ? "" : "s", cluster->node_count,
		cluster->node_count == 1 ? "" : "s", cluster->channel_count,
		cluster->nvls_channels);
	tune_net_text(net, cluster, text);
	if (text[0])
		puts(text);
}

void tune_text(const struct graph_job *job, const struct tune_args *args)
{
	static const enum model_func order[MODEL_FUNCS] = {MODEL_ALL_REDUCE,
		MODEL_ALL_GATHER, MODEL_REDUCE_SCATTER, MODEL_BROADCAST, MODEL_REDUCE};
	const struct tune_net net = tune_net_find(args);
	struct tune_rows rows;

	print_head(job, &net);
	if (args->table) {
		printf("\nlatency (us) / algorithm bandwidth (GB/s)\n");
		model_table(&job->model, print_line, NULL);
	}
	for (int i = 0; i < MODEL_FUNCS; i++) {
		struct model_call call = {
			.func = order[i], .type = args->type, .op = args->op};

		if (!tune_args_want(args, model_func_name(order[i])))
			continue;
		tune_rows_fill(&job->model, &call, &net, &rows);
		printf("\n%s", model_func_name(order[i]));
		if (reduces(order[i]))
			printf(" (%s %s)", dtype_name((enum dtype)args->type),
				redop_name((enum redop)args->op));
		printf(": ");
		print_runs(
			&rows, job->decision->cluster->rank_count > 1
				       ? "no algorithm and protocol is left; allow more"
				       : "nothing, one rank has nobody to talk to");
		print_rows(&rows);
	}
}
