#include "perf/report.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weft.h>

#include "common/units.h"
#include "perf/json.h"

void report_number(char *text, size_t text_size, double value, int width)
{
	for (int decimals = 2; decimals >= 0; decimals--)
		if (snprintf(text, text_size, "%*.*f", width, decimals, value) <= width)
			return;
	snprintf(text, text_size, "%*.*e", width, width > 7 ? width - 7 : 0, value);
}

double report_min_bandwidth(void)
{
	const char *text = getenv("NCCL_TESTS_MIN_BW");

	return text ? atof(text) : 0;
}

/* ---- above the table ---- */

static const char *library_path(void)
{
	Dl_info info;

	return dladdr((void *)(uintptr_t)ncclGetVersion, &info) && info.dli_fname
		       ? info.dli_fname
		       : "libnccl.so.2";
}

static void print_memory_kind(const struct worker *worker)
{
	static const char *const memories[] = {
		"host memory: ncclMemAlloc, which other processes map",
		"host memory: malloc", "host memory: malloc and ncclCommRegister",
		"device memory: ncclMemAlloc"};

	printf("# %s", memories[worker->run->options.memory]);
	if (worker->is_seen_on_device)
		printf("; filled and checked by kernels");
	else if (worker->unseen_why)
		printf("; copied to the host to be checked: %s", worker->unseen_why);
	printf("\n");
}

static void print_ours(const struct worker *worker)
{
	const struct run *run = worker->run;
	const struct options *options = &run->options;
	const struct machine *machine = &run->machine;
	uint32_t processes = run->process_count * (uint32_t)options->procs;
	uint32_t here = run->rank_count / run->process_count * run->local_count;

	printf("# weft %s, library %s\n", weftVersion(), library_path());
	printf("# %u rank%s: %u process%s%s%s x %d thread%s x %d\n", run->rank_count,
		run->rank_count == 1 ? "" : "s", processes, processes == 1 ? "" : "es",
		run->launcher ? " of " : "", run->launcher ? run->launcher : "",
		options->threads, options->threads == 1 ? "" : "s", options->gpus);
	print_memory_kind(worker);
	printf("# %s, %d core%s%s, %s\n#\n", machine->cpu, machine->cores,
		machine->cores == 1 ? "" : "s",
		here > (uint32_t)machine->cores ? " (fewer than ranks)" : "",
		machine->vector_unit);
}

static void print_settings(const struct run *run)
{
	const struct options *options = &run->options;
	bool factor = options->step_factor > 1;
	int version = 0;

	ncclGetVersion(&version);
	printf("# weft version %s nccl-headers=%d nccl-library=%d\n", WEFT_VERSION,
		NCCL_VERSION_CODE, version);
	printf("# Collective test starting: %s\n", run->program);
	printf("# nThread %d nGpus %d minBytes %llu maxBytes %llu step: %llu(%s) warmup "
	       "iters: "
	       "%d iters: %d agg iters: %d validation: %d graph: %d unalign: %d\n",
		options->threads, options->gpus, (unsigned long long)options->min_bytes,
		(unsigned long long)run->max_bytes,
		factor ? (unsigned long long)options->step_factor
		       : (unsigned long long)options->step_bytes,
		factor ? "factor" : "bytes", options->warmup_iters, options->iters,
		options->agg_iters, options->check_rounds, options->graph_launches,
		options->unalign);
	if (options->blocking == 1)
		printf("# Blocking Enabled: wait for completion and barrier after each "
		       "collective\n");
	if (options->blocking == 2)
		printf("# Blocking Enabled: wait for completion after each collective\n");
	if (options->blocking == 3)
		printf("# Blocking Enabled: wait for completion and barrier after each "
		       "iteration, barrier not timed\n");
	if (options->parallel_init)
		printf("# Parallel Init Enabled: threads call into NcclInit "
		       "concurrently\n");
	printf("#\n");
}

static void print_ranks(const struct run *run)
{
	printf("# Using devices\n");
	for (uint32_t rank = 0; rank < run->rank_count; rank++) {
		struct place place = run_place(run, rank);

		printf("#  Rank %2u Group %2d Pid %6d on %10s device %2u [0000:00:00] "
		       "%s\n",
			rank, 0, place.pid, place.host, place.local_rank,
			run->machine.cpu);
	}
}

void report_open(struct report *report, const struct worker *worker)
{
	const struct run *run = worker->run;

	*report = (struct report){.run = run};
	if (!run->options.plain)
		print_ours(worker);
	print_settings(run);
	print_ranks(run);
	if (run->max_bytes < run->options.max_bytes)
		printf("#\n# Reducing maxBytes to %llu due to memory limitation\n",
			(unsigned long long)run->max_bytes);
	if (run->options.json_path)
		report->json = json_open(run);
	fflush(stdout);
}

/* ---- the table ---- */

void report_head(const struct report *report)
{
	const struct options *options = &report->run->options;
	const char *time = options->report_cpu_time ? "cputime" : "time";
	const char *stamp = options->report_timestamps ? "timestamp" : "";
	int width = options->report_timestamps ? 21 : 0;

	printf("#\n# %10s  %12s  %8s  %6s  %6s           out-of-place          "
	       "             in-place          \n",
		"", "", "", "", "");
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s "
	       "%*s\n",
		"size", "count", "type", "redop", "root", time, "algbw", "busbw",
		"#wrong", time, "algbw", "busbw", "#wrong", width, stamp);
	printf("# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s "
	       "%*s\n",
		"(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)",
		"(GB/s)", "(GB/s)", "", width, "");
	fflush(stdout);
}

static void print_result(const struct result *result)
{
	char time[32], algbw[32], busbw[32];

	report_number(time, sizeof(time), result->time_us, 7);
	report_number(algbw, sizeof(algbw), result->algbw, 6);
	report_number(busbw, sizeof(busbw), result->busbw, 6);
	printf("  %s  %s  %s", time, algbw, busbw);
	if (result->wrong < 0)
		printf("     N/A");
	else
		printf("  %6g", result->wrong);
}

static void add_result(struct report *report, const struct result *result)
{
	report->busbw_sum += result->busbw;
	report->busbw_count++;
	report->bad_count += result->wrong > 0;
}

void report_row(struct report *report, const struct row *row)
{
	char stamp[32];
	time_t now = time(NULL);
	struct tm local;

	printf("%12llu  %12llu  %8s  %6s  %6d", (unsigned long long)row->bytes,
		(unsigned long long)row->count, row->type, row->redop, row->root);
	print_result(&row->out_of_place);
	print_result(&row->in_place);
	if (report->run->options.report_timestamps) {
		strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S",
			localtime_r(&now, &local));
		printf("%21s", stamp);
	}
	printf("\n");
	fflush(stdout);
	add_result(report, &row->out_of_place);
	add_result(report, &row->in_place);
	if (report->json)
		json_row(report->json, row);
}

/* ---- below the table ---- */

static void print_amount(const char *before, uint64_t bytes)
{
	static const char *const units[] = {"B", "KB", "MB", "GB"};
	double value = (double)bytes;
	int unit = 0;

	while (unit < 3 && value >= 1024) {
		value /= 1024;
		unit++;
	}
	printf("%s%.*f %s", before,
		value < 10    ? 2
		: value < 100 ? 1
			      : 0,
		value, units[unit]);
}

static uint64_t grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

static void print_memory(const struct report *report, const struct worker *worker)
{
	uint64_t now = machine_resident_bytes();

	printf("# %-20s :",
		report->run->options.plain ? "GPU memory usage" : "Host memory usage");
	print_amount(
		" Initialization ", grown(worker->memory_start, worker->memory_init));
	print_amount(
		" | User-Allocated ", grown(worker->memory_init, worker->memory_buffers));
	print_amount(" | Collective ", grown(worker->memory_buffers, now));
	print_amount(" | Total  ", grown(worker->memory_start, now));
	printf("\n");
}

int report_close(struct report *report, const struct worker *worker)
{
	double lowest = report_min_bandwidth(), average = 0;
	bool slow, is_kept = !report->run->options.json_path;

	if (report->busbw_count)
		average = report->busbw_sum / (double)report->busbw_count;
	slow = lowest > 0 && average < 0.9 * lowest;
	if (report->run->options.report_memory)
		print_memory(report, worker);
	printf("# Out of bounds values : %llu %s\n",
		(unsigned long long)report->bad_count,
		report->bad_count ? "FAILED" : "OK");
	printf("# Avg bus bandwidth    : %g %s\n", average,
		lowest <= 0 ? ""
		: slow	    ? "FAILED"
			    : "OK");
	printf("#\n# Collective test concluded: %s\n#\n\n", report->run->program);
	fflush(stdout);
	if (report->json)
		is_kept = json_close(report->json, report->bad_count, average);
	if (slow || report->bad_count)
		return TEST_FAILED;
	return is_kept ? TEST_OK : TEST_INTERNAL;
}
