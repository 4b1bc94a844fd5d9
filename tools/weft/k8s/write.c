#include "weft/k8s/write.h"

#include <stdarg.h>
#include <string.h>

#include "weft/k8s/write_sheet.h"

enum { LINE_BYTES = 400 };

const char *const write_loads[LOAD_COUNT] = {
	"nccl-test", "torchrun", "deepspeed", "weft"};

/* Where each load may run; the first is taken unless another is asked for. */
static const struct {
	enum write_load load;
	enum work_kind kinds[7];
	const char *image;
} loads[] = {
	{LOAD_NCCL_TEST,
		{WORK_MPIJOB, WORK_PYTORCHJOB, WORK_TRAINJOB, WORK_JOB, WORK_JOBSET,
			WORK_STATEFULSET},
		NULL},
	{LOAD_TORCHRUN,
		{WORK_PYTORCHJOB, WORK_TRAINJOB, WORK_JOB, WORK_JOBSET, WORK_STATEFULSET},
		NULL},
	{LOAD_DEEPSPEED,
		{WORK_PYTORCHJOB, WORK_TRAINJOB, WORK_JOB, WORK_JOBSET, WORK_STATEFULSET},
		NULL},
	{LOAD_WEFT, {WORK_JOB, WORK_MPIJOB, WORK_JOBSET}, "example.com/weft:latest"},
};

static const char nccl_tests_image[] = "public.ecr.aws/hpc-cloud/nccl-tests:latest";
static const char torch_image[] =
	"public.ecr.aws/deep-learning-containers/pytorch-training:"
	"2.8.0-gpu-py312-cu129-ubuntu22.04-ec2-v1.0";

static const struct {
	const char *name;
	enum work_kind kind;
	void (*write)(const struct sheet *sheet);
} kinds[] = {
	{"mpijob", WORK_MPIJOB, kind_mpijob},
	{"pytorchjob", WORK_PYTORCHJOB, kind_pytorchjob},
	{"trainjob", WORK_TRAINJOB, kind_trainjob},
	{"job", WORK_JOB, kind_job},
	{"jobset", WORK_JOBSET, kind_jobset},
	{"statefulset", WORK_STATEFULSET, kind_statefulset},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

enum work_kind write_kind(const char *name)
{
	for (int i = 0; i < KINDS; i++)
		if (!strcasecmp(kinds[i].name, name))
			return kinds[i].kind;
	return WORK_NONE;
}

void sheet_line(const struct sheet *sheet, int indent, const char *comment,
	const char *format, ...)
{
	char text[LINE_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	fprintf(sheet->out, "%*s%s%s%s\n", indent, "", text, comment ? " # " : "",
		comment ? comment : "");
}

static enum err choose_kind(const struct write_args *args, int *chosen)
{
	const enum work_kind *allowed = loads[args->load].kinds;
	enum work_kind kind = args->kind;

	for (int i = 0; allowed[i] != WORK_NONE; i++)
		if (kind == WORK_NONE || kind == allowed[i])
			for (int k = 0; k < KINDS; k++)
				if (kinds[k].kind == allowed[i]) {
					*chosen = k;
					return OK;
				}
	return err_set(ERR_USAGE, "%s does not run as that kind; leave --kind out",
		write_loads[args->load]);
}

/* The devices of one pod. */
static enum err share(struct sheet *sheet)
{
	const struct write_args *args = sheet->args;
	const struct machine_kind *machine = sheet->machine;
	int per_machine = args->pods ? (int)args->pods : 1;

	sheet->gpus = args->gpus ? (int)args->gpus : machine->gpus;
	sheet->pods = per_machine * (int)args->nodes;
	sheet->is_wide = sheet->pods > 1;
	if (per_machine * sheet->gpus > machine->gpus)
		return err_set(ERR_USAGE,
			"%d pods of %d GPUs do not fit on a %s, which has %d GPUs",
			per_machine, sheet->gpus, machine->name, machine->gpus);
	sheet->efa = machine->efa > 0 && sheet->is_wide ? machine->efa / per_machine : 0;
	if (machine->efa > 0 && sheet->is_wide && !sheet->efa)
		return err_set(ERR_USAGE,
			"%s has %d EFA devices, which %d pods cannot share; make it %d "
			"pods of "
			"%d GPUs, or one",
			machine->name, machine->efa, per_machine, machine->efa,
			machine->gpus / machine->efa);
	return OK;
}

static void head(const struct sheet *sheet)
{
	const struct write_args *args = sheet->args;

	sheet_line(sheet, 0, NULL,
		"# %s on %u x %s: %d pod%s of %d GPU%s, a rank on each GPU.",
		write_loads[args->load], args->nodes, sheet->machine->name, sheet->pods,
		sheet->pods == 1 ? "" : "s", sheet->gpus, sheet->gpus == 1 ? "" : "s");
	sheet_line(
		sheet, 0, NULL, "# Written by weft k8s new; weft k8s check says more.");
	if (sheet->gpus < sheet->machine->gpus)
		sheet_line(sheet, 0, NULL,
			"# GPUs of one machine in several pods reach each other by the "
			"network only.\n# weft: allow pods-split-node");
}

enum err write_manifest(FILE *out, const struct write_args *args)
{
	struct sheet sheet = {.out = out, .args = args, .name = args->name};
	int kind = 0;
	enum err e;

	if (!args->machine)
		return err_set(ERR_USAGE,
			"new needs --machine, such as p5.48xlarge (weft topo --list)");
	sheet.machine = machine_kind_find(args->machine);
	if (!sheet.machine)
		return err_set(ERR_USAGE,
			"there is no machine %s; weft topo --list names those that are "
			"known%s%s",
			args->machine, machine_kind_near(args->machine) ? ": is it " : "",
			machine_kind_near(args->machine)
				? machine_kind_near(args->machine)
				: "");
	sheet.is_aws = machine_kind_is_aws(sheet.machine->name);
	e = choose_kind(args, &kind);
	if (!e)
		e = share(&sheet);
	if (e)
		return e;
	if (!sheet.name)
		sheet.name = write_loads[args->load];
	sheet.image = args->image;
	if (!sheet.image)
		sheet.image = loads[args->load].image;
	if (!sheet.image)
		sheet.image = args->load == LOAD_NCCL_TEST &&
					      kinds[kind].kind == WORK_MPIJOB
				      ? nccl_tests_image
				      : torch_image;
	head(&sheet);
	kinds[kind].write(&sheet);
	return OK;
}
