#include "perf/json.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { NAMES_MAX = 1000 };

struct json_log {
	const struct run *run; /* borrowed */
	FILE *file;
	json_t *top, *results;
};

static json_t *text_bool(bool value)
{
	return json_string(value ? "true" : "false");
}

static json_t *number(double value)
{
	return isfinite(value) ? json_real(value) : json_string("nan");
}

/* A text that may not be UTF-8, as environments are. */
static json_t *text(const char *string)
{
	json_t *value = json_string(string);

	return value ? value : json_string("");
}

static json_t *now(void)
{
	char stamp[32];
	time_t seconds = time(NULL);
	struct tm local;

	strftime(
		stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", localtime_r(&seconds, &local));
	return json_string(stamp);
}

static json_t *devices(const struct run *run)
{
	json_t *list = json_array();
	uint32_t per_process = (uint32_t)(run->options.threads * run->options.gpus);

	/* As nccl-tests: the first of each process. */
	for (uint32_t rank = 0; rank < run->rank_count; rank += per_process) {
		json_t *device = json_object();
		struct place place = run_place(run, rank);

		json_object_set_new(device, "rank", json_integer(rank));
		json_object_set_new(device, "group", json_integer(0));
		json_object_set_new(device, "pid", json_integer(place.pid));
		json_object_set_new(device, "hostname", text(place.host));
		json_object_set_new(device, "device", json_integer(0));
		json_object_set_new(device, "device_hex", json_string("0000:00:00"));
		json_object_set_new(device, "device_info", text(run->machine.cpu));
		json_array_append_new(list, device);
	}
	return list;
}

static json_t *config(const struct run *run)
{
	const struct options *options = &run->options;
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"nthreads", (uint64_t)options->threads},
		{"ngpus", (uint64_t)options->gpus},
		{"nprocs", (uint64_t)options->procs * run->process_count},
		{"minimum_bytes", options->min_bytes},
		{"maximum_bytes", run->max_bytes},
		{options->step_factor > 1 ? "step_factor" : "step_bytes",
			options->step_factor > 1 ? (uint64_t)options->step_factor
						 : options->step_bytes},
		{"warmup_iters", (uint64_t)options->warmup_iters},
		{"iterations", (uint64_t)options->iters},
		{"aggregated_iterations", (uint64_t)options->agg_iters},
		{"validation", (uint64_t)options->check_rounds},
		{"graph", 0},
		{"blocking_collectives", (uint64_t)options->blocking},
		{"per_iter_timing", 0},
		{"per_iter_skip", 0},
	};
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		json_object_set_new(object, numbers[i].name,
			json_integer((json_int_t)numbers[i].value));
	json_object_set_new(object, "parallel_init", text_bool(options->parallel_init));
	json_object_set_new(
		object, "memory", json_string(memory_kind_name(options->memory)));
	json_object_set_new(object, "devices", devices(run));
	return object;
}

/* Result files are passed around; the rest of an environment may hold secrets. */
static bool concerns_us(const char *variable)
{
	static const char *const prefixes[] = {"NCCL_", "WEFT_", "CUDA_", "FI_", "OMP_",
		"SLURM_", "OMPI_", "LD_LIBRARY_PATH="};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (!strncmp(variable, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static json_t *top_object(const struct run *run)
{
	json_t *top = json_object(), *args = json_array(), *env = json_array();
	int version = 0;

	for (int i = 0; i < run->argc; i++)
		json_array_append_new(args, text(run->argv[i]));
	for (char **variable = environ; *variable; variable++)
		if (concerns_us(*variable))
			json_array_append_new(env, text(*variable));
	ncclGetVersion(&version);
	json_object_set_new(top, "version", json_integer(3));
	json_object_set_new(top, "start_time", now());
	json_object_set_new(top, "args", args);
	json_object_set_new(top, "env", env);
	json_object_set_new(top, "nccl_version", json_integer(version));
	json_object_set_new(top, "config", config(run));
	return top;
}

static FILE *file_open(const char *path, char *name, size_t name_size)
{
	int fd = -1;

	snprintf(name, name_size, "%s", path);
	for (int i = 0; i <= NAMES_MAX; i++) {
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0 || errno != EEXIST)
			break;
		snprintf(name, name_size, "%s.%d", path, i);
	}
	return fd < 0 ? NULL : fdopen(fd, "w");
}

struct json_log *json_open(const struct run *run)
{
	struct json_log *log = calloc(1, sizeof(*log));
	char name[4096];

	if (!log)
		return NULL;
	log->file = file_open(run->options.json_path, name, sizeof(name));
	if (!log->file) {
		fprintf(stderr, "%s: cannot write %s: %m\n", run->machine.host, name);
		free(log);
		return NULL;
	}
	printf("# Writing JSON output to %s\n", name);
	log->run = run;
	log->top = top_object(run);
	log->results = json_array();
	return log;
}

static json_t *result_object(const struct run *run, const struct result *result)
{
	json_t *object = json_object();
	const char *time = run->options.report_cpu_time ? "cpu_time" : "time";

	json_object_set_new(object, time, number(result->time_us));
	json_object_set_new(object, "alg_bw", number(result->algbw));
	json_object_set_new(object, "bus_bw", number(result->busbw));
	json_object_set_new(object, "nwrong",
		result->wrong < 0 ? json_string("N/A") : number(result->wrong));
	return object;
}

void json_row(struct json_log *log, const struct row *row)
{
	json_t *object = json_object();
	char root[16];

	snprintf(root, sizeof(root), "%6d", row->root);
	json_object_set_new(object, "size", json_integer((json_int_t)row->bytes));
	json_object_set_new(object, "count", json_integer((json_int_t)row->count));
	json_object_set_new(object, "type", json_string(row->type));
	json_object_set_new(object, "redop", json_string(row->redop));
	json_object_set_new(object, "root", json_string(root));
	json_object_set_new(
		object, "out_of_place", result_object(log->run, &row->out_of_place));
	json_object_set_new(object, "in_place", result_object(log->run, &row->in_place));
	json_object_set_new(
		object, "actual_iterations", json_integer(log->run->options.iters));
	json_object_set_new(object, "experiment_name", json_string(""));
	json_array_append_new(log->results, object);
}

bool json_close(struct json_log *log, uint64_t bad_count, double average)
{
	json_t *bounds = json_object(), *bandwidth = json_object();
	double lowest = report_min_bandwidth();
	bool is_whole;

	json_object_set_new(bounds, "count", json_integer((json_int_t)bad_count));
	json_object_set_new(bounds, "okay", text_bool(!bad_count));
	json_object_set_new(bandwidth, "bandwidth", number(average));
	json_object_set_new(bandwidth, "okay",
		lowest <= 0 ? json_string("unchecked")
			    : text_bool(average >= 0.9 * lowest));
	json_object_set_new(log->top, "results", log->results);
	json_object_set_new(log->top, "out_of_bounds", bounds);
	json_object_set_new(log->top, "average_bus_bandwidth", bandwidth);
	json_object_set_new(log->top, "errors", json_array());
	json_object_set_new(log->top, "end_time", now());
	is_whole = !json_dumpf(log->top, log->file, JSON_INDENT(2) | JSON_ESCAPE_SLASH);
	is_whole = !fclose(log->file) && is_whole;
	if (!is_whole)
		fprintf(stderr, "%s: the JSON file is incomplete: %m\n",
			log->run->machine.host);
	json_decref(log->top);
	free(log);
	return is_whole;
}
