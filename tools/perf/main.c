/* The *_perf programs: one source, built once per collective (PERF_COLLECTIVE). */
#include <stdio.h>
#include <stdlib.h>

#include "common/output.h"
#include "perf/device.h"
#include "perf/job.h"
#include "perf/run.h"

/* Two buffers for each of these ranks, in three quarters of what is free; free 0: it is
 * not known. */
static uint64_t share(uint64_t free_bytes, uint64_t ranks)
{
	uint64_t each = free_bytes / 4 * 3 / (2 * ranks);

	return free_bytes ? each / 4096 * 4096 : UINT64_MAX;
}

/* The ranks of a thread are on one GPU, and the threads go round. */
static uint64_t bytes_that_fit(const struct run *run)
{
	uint64_t wanted = run->options.max_bytes, fits = UINT64_MAX, on_device;
	uint64_t here = run->rank_count / run->process_count * run->local_count;
	uint64_t gpus = (uint64_t)run->options.gpus, devices = run->devices.count;

	if (!devices || !gpu_data_image_bytes)
		fits = share(run->machine.memory_available_bytes, here);
	if (devices) {
		on_device = share(run->devices.free_bytes,
			(here / gpus + devices - 1) / devices * gpus);
		fits = on_device < fits ? on_device : fits;
	}
	return wanted < fits ? wanted : fits;
}

/* The exit status when it cannot be run, the same in every process. */
static int refuse(const struct run *run)
{
	const struct options *options = &run->options;
	bool power_of_two = !(run->rank_count & (run->rank_count - 1));
	bool speaks = !run->process; /* one says it for all */

	if (run->kind->has_root && options->root >= (int)run->rank_count) {
		if (speaks)
			fprintf(stderr, "root %d: there are only %u ranks\n",
				options->root, run->rank_count);
		return TEST_USAGE;
	}
	if (options->graph_launches && options->stream_null) {
		if (speaks)
			fprintf(stderr,
				"-G %d with -y 1: the NULL stream cannot be captured; "
				"leave out one of them\n",
				options->graph_launches);
		return TEST_USAGE;
	}
	if (run->kind->in_rounds && !power_of_two) {
		if (speaks)
			printf("nRanks %u is not a power of 2, skipping\n",
				run->rank_count);
		return TEST_USAGE;
	}
	if (run->kind->in_rounds && (options->gpus > 1 || options->agg_iters > 1)) {
		if (speaks)
			fprintf(stderr,
				"%s swaps in rounds, which a group would merge: use -p "
				"or -t instead of -g, and no -m\n",
				run->program);
		return TEST_USAGE;
	}
	if (run->kind->setup && !run->kind->setup(run->rank_count, options->min_bytes,
					options->max_bytes))
		return TEST_USAGE;
	return TEST_OK;
}

/* Where there is a GPU its memory is meant, unless something else was asked for. */
static void memory_settle(struct run *run)
{
	struct options *options = &run->options;

	if (!options->is_memory_given || options->memory == MEMORY_DEVICE)
		run->devices = device_look();
	if (!options->is_memory_given && run->devices.count)
		options->memory = MEMORY_DEVICE;
	if (options->memory == MEMORY_DEVICE)
		return;
	if (options->graph_launches)
		fprintf(stderr,
			"-G %d: graphs are for a GPU's memory, and this is host "
			"memory; ignored\n",
			options->graph_launches);
	options->graph_launches = 0;
}

static int run_all(int argc, char **argv)
{
	struct run run = {.program = PERF_COLLECTIVE "_perf",
		.kind = coll_find(PERF_COLLECTIVE),
		.argc = argc,
		.argv = argv};
	uint32_t local_workers;
	int status;

	if (!options_parse(&run.options, argc, argv))
		return TEST_BAD_OPTION;
	if (run.options.help) {
		options_usage(run.program);
		return TEST_OK;
	}
	memory_settle(&run);
	machine_read(&run.machine);
	run.local_count = 1;
	status = job_find(&run);
	if (status)
		return status;
	local_workers = (uint32_t)(run.options.procs * run.options.threads);
	run.worker_count = local_workers * run.process_count;
	run.rank_count = run.worker_count * (uint32_t)run.options.gpus;
	run.max_bytes = bytes_that_fit(&run);
	status = refuse(&run);
	if (status)
		return status;
	run.meet = meet_create(local_workers);
	if (!run.meet) {
		fprintf(stderr, "%s: no shared page for %u workers: %m\n",
			run.machine.host, local_workers);
		return TEST_INTERNAL;
	}
	status = job_open(&run);
	if (!status)
		status = run_processes(&run);
	if (!status)
		job_close(&run);
	return status;
}

int main(int argc, char **argv)
{
	output_begin();
	setvbuf(stdout, NULL, _IOLBF, 0);
	return output_end(PERF_COLLECTIVE "_perf", run_all(argc, argv), TEST_INTERNAL);
}
