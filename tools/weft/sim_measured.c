/* weft sim --measured: an nccl-tests log, or JSON of nccl-tests or of ours, against what
 * the machine should give, with the causes that would explain the difference. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "weft/command.h"
#include "weft/sim.h"

enum { POINTS_MAX = 4096, LOG_BYTES_MAX = 64 << 20 };

struct point {
	uint64_t bytes;
	double time_us;
};

struct points {
	struct point list[POINTS_MAX];
	uint32_t count;
};

static void point_add(struct points *points, double bytes, double time_us)
{
	if (bytes < 1 || bytes > 0x1p50 || !(time_us > 0) || points->count == POINTS_MAX)
		return;
	points->list[points->count++] = (struct point){
		.bytes = (uint64_t)bytes, .time_us = time_us};
}

/* mpirun and srun put who says it before the line: "[1,0]<stdout>:", "0: ". */
static const char *after_tag(const char *line)
{
	static const char STDOUT[] = "<stdout>:";
	const char *tag = strstr(line, STDOUT);
	size_t digits = strspn(line, "0123456789");

	if (tag)
		return tag + strlen(STDOUT);
	return digits && line[digits] == ':' ? line + digits + 1 : line;
}

/* Is the third the bandwidth of so many bytes in that time, as it was rounded? */
static bool agrees(double bytes, double time_us, double algbw)
{
	return time_us > 0 && fabs(bytes / time_us / 1e3 - algbw) <= .006 + .01 * algbw;
}

/* "  1048576  262144  float  sum  -1  28.56  36.72 .."; before 2021 without a root. Of a
 * long time neither has a point. */
static void line_take(struct points *points, const char *line)
{
	char type[16], op[16], root[24];
	double bytes, elements, time_us, algbw;
	int found = sscanf(after_tag(line), " %lf %lf %15s %15s %23s %lf %lf", &bytes,
		&elements, type, op, root, &time_us, &algbw);

	if (found != 7)
		return;
	if (strchr(root, '.') || (!agrees(bytes, time_us, algbw) &&
					 agrees(bytes, strtod(root, NULL), time_us)))
		time_us = strtod(root, NULL);
	point_add(points, bytes, time_us);
}

static void result_take(struct points *points, const json_t *row)
{
	const json_t *side = json_object_get(row, "out_of_place");
	double bytes = json_number_value(json_object_get(row, "size"));

	point_add(points, bytes,
		json_number_value(json_object_get(side ? side : row, "time")));
}

static void json_take(struct points *points, const json_t *top)
{
	const json_t *results = json_object_get(top, "results");

	for (size_t i = 0; i < json_array_size(results); i++)
		result_take(points, json_array_get(results, i));
}

static enum err points_read(const char *path, struct points *points)
{
	json_t *top = json_load_file(path, 0, NULL);
	char line[1024];
	size_t bytes = 0;
	FILE *file;

	points->count = 0;
	if (top) {
		json_take(points, top);
		json_decref(top);
	} else {
		file = fopen(path, "re");
		if (!file)
			return err_set(ERR_SYSTEM, "%s cannot be opened: %m", path);
		/* a line that begins with a zero byte is no text's */
		while (bytes < LOG_BYTES_MAX && fgets(line, sizeof(line), file) &&
			*line) {
			bytes += strlen(line);
			line_take(points, line);
		}
		fclose(file);
	}
	if (!points->count)
		return err_set(ERR_USAGE,
			"%s has no rows of nccl-tests, neither as a table nor as JSON",
			path);
	return OK;
}

/* How far a configuration is from what was measured: the median of logarithms. */
static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static bool has_large(const struct points *points)
{
	for (uint32_t i = 0; i < points->count; i++)
		if (points->list[i].bytes >= 1 << 20)
			return true;
	return false;
}

/* By how much each large one differs, in logarithms: how many there are. */
static uint32_t differences(
	const struct sim_run *run, const struct points *points, double of[POINTS_MAX])
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < points->count; i++) {
		struct sim_answer a;

		if (points->list[i].bytes >= 1 << 20 &&
			!sim_run_ask(run, points->list[i].bytes, &a))
			of[found++] = log(points->list[i].time_us / a.time_us);
	}
	return found;
}

/* Of an even number it is between the two in the middle. */
static double middle(double *of, uint32_t count)
{
	if (!count)
		return 0;
	qsort(of, count, sizeof(*of), by_size);
	return (of[(count - 1) / 2] + of[count / 2]) / 2;
}

/* Below 0 where most are faster than they should be. */
static double lag(const struct sim_run *run, const struct points *points)
{
	static double of[POINTS_MAX];

	return middle(of, differences(run, points, of));
}

static double distance(const struct sim_run *run, const struct points *points)
{
	static double of[POINTS_MAX];
	uint32_t count = differences(run, points, of);

	for (uint32_t i = 0; i < count; i++)
		of[i] = fabs(of[i]);
	return middle(of, count);
}

/* Nearer than that a measurement is what it should be; a logarithm. */
static const double GOOD = .15;

/* Does it explain most of the difference? Then it is said. */
static bool cause_try(const struct sim_args *args, const struct points *points,
	double now, const char *what)
{
	static struct sim_run other;
	double then;

	if (sim_run_make(args, &other))
		return false;
	then = distance(&other, points);
	sim_run_free(&other);
	if (then < GOOD)
		printf("  %s would explain it: that gives what was measured within %.0f "
		       "%%\n",
			what, 100 * expm1(then));
	else if (then < now / 2)
		printf("  %s would explain most of it: %.0f %% are left\n", what,
			100 * expm1(then));
	return then < GOOD || then < now / 2;
}

/* Causes between nodes. */
static int causes_outside(
	const struct sim_run *run, const struct points *points, double now)
{
	struct sim_args args = *run->args;
	int found = 0;

	if (run->scene.site.nodes < 2)
		return 0;
	args.net = SIM_NET_SOCKET;
	found += cause_try(
		&args, points, now, "sockets instead of RDMA (no plugin found)");
	args = *run->args;
	args.plan.wire = SIM_STAGED;
	found += cause_try(
		&args, points, now, "no GPUDirect: everything by way of the host");
	for (uint32_t nics = run->scene.site.nics / 2; nics; nics /= 2) {
		char what[64];

		args = *run->args;
		args.nics = nics;
		snprintf(what, sizeof(what), "only %u of the NICs", nics);
		found += cause_try(&args, points, now, what);
	}
	args = *run->args;
	if (!fabric_harm_read("nic:0.0", false, &args.plan))
		found += cause_try(&args, points, now, "one NIC that is down");
	return found;
}

static int causes_inside(
	const struct sim_run *run, const struct points *points, double now)
{
	struct sim_args args = *run->args;
	int found = 0;

	args.site.no_nvls = true;
	found += cause_try(&args, points, now, "NVLS switched off");
	args = *run->args;
	snprintf(args.site.proto, sizeof(args.site.proto), "simple");
	found += cause_try(&args, points, now, "NCCL_PROTO=simple");
	args = *run->args;
	snprintf(args.site.algo, sizeof(args.site.algo), "ring");
	found += cause_try(&args, points, now, "NCCL_ALGO=Ring");
	args = *run->args;
	if (!fabric_harm_read("gpu:0=0.5", true, &args.plan))
		found += cause_try(&args, points, now, "one GPU at half its speed");
	return found;
}

/* The causes that people meet, each as a configuration. */
static void causes_print(const struct sim_run *run, const struct points *points)
{
	double now = distance(run, points), late = lag(run, points);
	int found;

	if (!has_large(points)) {
		printf("Nothing of 1 MiB or more was measured; below, launches decide, "
		       "and no cause is looked for.\n");
		return;
	}
	if (now < GOOD) {
		printf("Reality is what the machine should give.\n");
		return;
	}
	if (late < -GOOD) {
		printf("In the middle a call takes %.2f of the time that it should: this "
		       "is another machine than named, other nodes or GPUs, or another "
		       "collective.\n",
			exp(late));
		return;
	}
	if (late > GOOD)
		printf("In the middle a call takes %.2f times as long as it should. "
		       "Known "
		       "causes:\n",
			exp(late));
	else
		printf("Some calls are faster than they should be and others slower, "
		       "%.2f times in the middle. Known causes:\n",
			exp(now));
	found = causes_outside(run, points, now) + causes_inside(run, points, now);
	if (!found)
		printf("  none of them explains it. Tried: %sNVLS off, "
		       "NCCL_PROTO=simple, "
		       "NCCL_ALGO=Ring, a GPU at half its speed.\n"
		       "  weft doctor reads the log of the job itself.\n",
			run->scene.site.nodes > 1
				? "sockets, no GPUDirect, fewer NICs, a "
				  "NIC down, "
				: "");
}

int sim_measured(const struct sim_run *run, const char *path)
{
	static struct points points;
	enum err e = points_read(path, &points);
	double factor = sim_bus_factor(run->args->coll, run->scene.ranks);

	if (e)
		return sim_failed(e);
	printf("#%11s %12s %10s %10s %8s  %s\n", "size", "time", "busbw", "should be",
		"off", "");
	for (uint32_t i = 0; i < points.count; i++) {
		const struct point *p = &points.list[i];
		double busbw = (double)p->bytes * factor / p->time_us / 1e3;
		struct sim_answer a;

		if (sim_run_ask(run, p->bytes, &a))
			continue;
		printf("%12" PRIu64 " %12.2f %10.2f %10.2f %+7.0f%%  %s\n", p->bytes,
			p->time_us, busbw, a.busbw, 100 * (busbw / a.busbw - 1),
			busbw < a.low	 ? "slower than 9 of 10"
			: busbw > a.high ? "faster than 9 of 10"
					 : "as it should be");
	}
	causes_print(run, &points);
	return EXIT_GOOD;
}
