/*
 * The sweep. All workers walk through it in step; worker 0 reports. For each size: one
 * call off the clock, a loop of timed calls, then fresh data, one more call, and a check.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "perf/device.h"
#include "perf/names.h"
#include "perf/point.h"
#include "perf/report.h"

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* ---- calls ---- */

/* Iteration `i` walks through the buffers, so that small sizes do not stay in cache. */
static size_t shift_of(const struct worker *worker, const struct point *point, int i)
{
	struct coll_shape shape = point_shape(worker, point, 0);
	size_t bytes = point_row_elems(worker->run->kind, &shape) * shape.elem_bytes;
	size_t places = bytes ? worker->run->max_bytes / bytes : 1;

	return places > 1 ? (size_t)i % places * bytes : 0;
}

static ncclResult_t run_ranks(struct worker *worker, const struct point *point, int i)
{
	size_t shift = shift_of(worker, point, i);
	ncclResult_t result = ncclSuccess;

	for (uint32_t j = 0; !result && j < worker->rank_count; j++) {
		struct coll_call call = point_call(
			worker, point, &worker->ranks[j], shift);
		result = worker->run->kind->run(&call);
	}
	return result;
}

/* One iteration: `calls` calls, in a group when one thread has several to make. */
static int iterate(struct worker *worker, const struct point *point, int i, int calls)
{
	bool grouped = calls > 1 || worker->rank_count > 1;
	ncclResult_t result = grouped ? ncclGroupStart() : ncclSuccess;

	for (int j = 0; !result && j < calls; j++)
		result = run_ranks(worker, point, i * calls + j);
	if (!result && grouped)
		result = ncclGroupEnd();
	return result ? run_nccl_failed(worker, result, worker->run->program) : TEST_OK;
}

static int wait_all(const struct worker *worker)
{
	return meet_wait(worker->run->meet) ? TEST_OK : meet_failure(worker->run->meet);
}

/* -z 1 meets after each call, -z 3 after each iteration with the clock stopped; on a GPU
 * these and -z 2 wait for the stream each time. */
static int timed_loop(struct worker *worker, const struct point *point, double *time_us)
{
	const struct options *options = &worker->run->options;
	int calls = options->blocking == 1 ? 1 : options->agg_iters;
	int iters = options->blocking == 1 ? options->iters * options->agg_iters
					   : options->iters;
	double start = now_us(), stopped = 0;
	int status = TEST_OK;

	for (int i = 0; !status && i < iters; i++) {
		status = iterate(worker, point, i, calls);
		if (!status && options->blocking)
			status = worker_wait(worker);
		if (!status && options->blocking == 1)
			status = wait_all(worker);
		if (!status && options->blocking == 3) {
			double before = now_us();
			status = wait_all(worker);
			stopped += now_us() - before;
		}
	}
	if (!status)
		status = worker_wait(worker);
	*time_us = (now_us() - start - stopped) / ((double)iters * calls);
	return status;
}

/* All ranks of the thread are captured together: their calls are one group. */
static int graphs_capture(struct worker *worker, const struct point *point, void **graphs)
{
	const struct options *options = &worker->run->options;
	bool is_well = true;
	int status = TEST_OK;

	for (uint32_t j = 0; is_well && j < worker->rank_count; j++)
		is_well = device_capture(worker->ranks[j].stream);
	for (int i = 0; is_well && !status && i < options->iters; i++)
		status = iterate(worker, point, i, options->agg_iters);
	for (uint32_t j = 0; is_well && !status && j < worker->rank_count; j++) {
		graphs[j] = device_captured(worker->ranks[j].stream);
		is_well = graphs[j];
	}
	return is_well ? status : worker_device_failed(worker);
}

static int graphs_launch(struct worker *worker, void *const *graphs, double *time_us)
{
	const struct options *options = &worker->run->options;
	double start = now_us();
	int status;

	for (int i = 0; i < options->graph_launches; i++)
		for (uint32_t j = 0; j < worker->rank_count; j++)
			if (!device_replay(graphs[j], worker->ranks[j].stream))
				return worker_device_failed(worker);
	status = worker_wait(worker);
	*time_us = (now_us() - start) / ((double)options->graph_launches *
						options->iters * options->agg_iters);
	return status;
}

/* -G: the timed iterations as a graph. */
static int timed_graphs(struct worker *worker, const struct point *point, double *time_us)
{
	void **graphs = calloc(worker->rank_count, sizeof(*graphs));
	int status;

	if (!graphs)
		return worker_device_failed(worker);
	status = graphs_capture(worker, point, graphs);
	if (!status)
		status = wait_all(worker);
	if (!status)
		status = graphs_launch(worker, graphs, time_us);
	if (!status)
		status = wait_all(worker); /* nobody frees while another still runs */
	for (uint32_t j = 0; !status && j < worker->rank_count; j++)
		device_graph_close(graphs[j]);
	free(graphs);
	return status;
}

/* ---- checks ---- */

/* Rounds until one is wrong. Nobody starts before all have filled, and nobody fills again
 * before all have looked. */
static int check(struct worker *worker, const struct point *point, double *wrong)
{
	int status = TEST_OK;

	*wrong = 0;
	for (int i = 0; !status && *wrong == 0 && i < worker->run->options.check_rounds;
		i++) {
		status = point_fill(worker, point, (uint64_t)i);
		if (!status)
			status = wait_all(worker);
		if (!status) {
			worker_busy(worker, true);
			status = iterate(worker, point, 0, 1);
			if (!status)
				status = point_fetch(worker, point);
			worker_busy(worker, false);
		}
		if (status)
			return status;
		status = point_count_wrong(worker, point, (uint64_t)i, wrong);
		if (!status && !meet_combine(worker->run->meet, worker->index,
				       COMBINE_SUM, wrong))
			return meet_failure(worker->run->meet);
	}
	return status;
}

/* ---- one measurement ---- */

static int time_point(struct worker *worker, const struct point *point, double *time_us)
{
	static const enum combine how[] = {
		COMBINE_FIRST, COMBINE_AVERAGE, COMBINE_MIN, COMBINE_MAX};
	const struct run *run = worker->run;
	int status = TEST_OK;

	if (run->options.check_rounds)
		status = point_fill(worker, point, 99);
	if (!status)
		status = wait_all(worker);
	if (status)
		return status;
	worker_busy(worker, true);
	status = iterate(worker, point, 0, 1);
	if (!status)
		status = worker_wait(worker);
	if (!status)
		status = wait_all(worker);
	if (!status)
		status = run->options.graph_launches
				 ? timed_graphs(worker, point, time_us)
				 : timed_loop(worker, point, time_us);
	worker_busy(worker, false);
	if (status)
		return status;
	return meet_combine(run->meet, worker->index, how[run->options.average], time_us)
		       ? TEST_OK
		       : meet_failure(run->meet);
}

static int measure(
	struct worker *worker, const struct point *point, struct result *result)
{
	const struct coll_kind *kind = worker->run->kind;
	struct coll_shape shape = point_shape(worker, point, 0);
	double payload = (double)(kind->payload(&shape) * shape.elem_bytes);
	int status = time_point(worker, point, &result->time_us);

	if (status)
		return status;
	result->algbw = payload / (result->time_us * 1e3);
	result->busbw = result->algbw * kind->factor(shape.rank_count);
	result->wrong = -1;
	if (worker->run->options.check_rounds &&
		(!point->in_place || kind->in_place_checked))
		return check(worker, point, &result->wrong);
	return TEST_OK;
}

/* Both placements of one size, one line. */
static int measure_row(struct worker *worker, struct point *point, struct report *report)
{
	const struct coll_kind *kind = worker->run->kind;
	struct coll_shape shape = point_shape(worker, point, 0);
	struct row row = {.bytes = point_row_elems(kind, &shape) * shape.elem_bytes,
		.count = shape.count,
		.type = element_name(point->type),
		.redop = kind->reduces ? data_op_name(point->op) : kind->redop,
		.root = kind->has_root ? (int)point->root : -1};
	int status;

	point->in_place = false;
	status = measure(worker, point, &row.out_of_place);
	point->in_place = true;
	if (!status)
		status = measure(worker, point, &row.in_place);
	if (!status && report)
		report_row(report, &row);
	return status;
}

/* ---- the sweep ---- */

static uint64_t next_size(const struct options *options, uint64_t bytes)
{
	if (options->step_factor <= 1)
		return bytes + options->step_bytes;
	return bytes ? bytes * (uint64_t)options->step_factor : 1;
}

static int warm_up(struct worker *worker, struct point point)
{
	const struct run *run = worker->run;
	size_t elem_bytes = element_info(point.type)->bytes;
	uint64_t bytes = run->options.min_bytes;
	int status = TEST_OK;

	while (!status && bytes <= run->max_bytes) {
		point.total = bytes / elem_bytes;
		worker_busy(worker, true);
		for (int i = 0; !status && i < run->options.warmup_iters; i++)
			status = iterate(worker, &point, 0, 1);
		if (!status)
			status = worker_wait(worker);
		worker_busy(worker, false);
		bytes = bytes ? bytes * 2 : 1;
	}
	return status;
}

static int ops_create(struct worker *worker, const struct point *point)
{
	static const ncclRedOp_t built_in[] = {
		ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg};

	for (uint32_t i = 0; i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];
		ncclResult_t result;
		bool is_late;

		if (point->op != DATA_MULSUM) {
			rank->op = built_in[point->op];
			continue;
		}
		/* Both ways to hand over the factor, by turns; on a GPU one, since it is
		 * in host memory. */
		is_late = rank->rank & 1 && !worker_is_on_device(worker);
		rank->scalar = data_scalar(point->type, rank->rank);
		result = ncclRedOpCreatePreMulSum(&rank->op, &rank->scalar,
			(ncclDataType_t)point->type,
			is_late ? ncclScalarDevice : ncclScalarHostImmediate, rank->comm);
		if (result)
			return run_nccl_failed(
				worker, result, "ncclRedOpCreatePreMulSum");
	}
	return TEST_OK;
}

static int ops_destroy(struct worker *worker, const struct point *point)
{
	for (uint32_t i = 0; point->op == DATA_MULSUM && i < worker->rank_count; i++) {
		ncclResult_t result = ncclRedOpDestroy(
			worker->ranks[i].op, worker->ranks[i].comm);
		if (result)
			return run_nccl_failed(worker, result, "ncclRedOpDestroy");
	}
	return TEST_OK;
}

/* All sizes of one type, operator and root. */
static int sweep_sizes(struct worker *worker, struct point *point, struct report *report)
{
	const struct run *run = worker->run;
	size_t elem_bytes = element_info(point->type)->bytes;
	int status = ops_create(worker, point);

	if (!status)
		status = wait_all(worker);
	if (!status)
		status = warm_up(worker, *point);
	for (uint64_t bytes = run->options.min_bytes; !status && bytes <= run->max_bytes;
		bytes = next_size(&run->options, bytes)) {
		point->total = bytes / elem_bytes;
		status = measure_row(worker, point, report);
	}
	return status ? status : ops_destroy(worker, point);
}

static int sweep_roots(struct worker *worker, struct point *point, struct report *report)
{
	const struct run *run = worker->run;
	bool all = run->kind->has_root && run->options.root == OPTION_ALL;
	uint32_t first = all || !run->kind->has_root ? 0 : (uint32_t)run->options.root;
	uint32_t last = all ? run->rank_count - 1 : first;
	int status = TEST_OK;

	for (point->root = first; !status && point->root <= last; point->root++)
		status = sweep_sizes(worker, point, report);
	return status;
}

static int sweep_ops(struct worker *worker, struct point *point, struct report *report)
{
	const struct run *run = worker->run;
	bool all = run->kind->reduces && run->options.op == OPTION_ALL;
	int first = all || !run->kind->reduces ? DATA_SUM : run->options.op;
	int last = all ? DATA_OP_COUNT - 1 : first, status = TEST_OK;

	for (int op = first; !status && op <= last; op++) {
		point->op = (enum data_op)op;
		status = sweep_roots(worker, point, report);
	}
	return status;
}

static int sweep(struct worker *worker, struct report *report)
{
	bool all = worker->run->options.type == OPTION_ALL;
	int first = all ? 0 : worker->run->options.type;
	int last = all ? ELEMENT_COUNT - 1 : first, status = TEST_OK;

	for (int type = first; !status && type <= last; type++) {
		struct point point = {.type = (enum element)type};
		status = sweep_ops(worker, &point, report);
	}
	return status;
}

int measure_all(struct worker *worker)
{
	struct report storage, *report = worker->index ? NULL : &storage;
	int cycles = worker->run->options.cycles, status = TEST_OK;

	if (report) {
		report_open(report, worker);
		report_head(report);
	}
	for (int i = 0; !status && (!cycles || i < cycles); i++)
		status = sweep(worker, report);
	if (report && !status)
		worker->verdict = report_close(report, worker);
	return status;
}
