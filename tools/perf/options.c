#include "perf/options.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/units.h"
#include "perf/names.h"

enum { LONG_PARALLEL_INIT = 256, LONG_PLAIN };

static const struct option long_options[] = {
	{"nthreads", required_argument, 0, 't'},
	{"ngpus", required_argument, 0, 'g'},
	{"procs", required_argument, 0, 'p'},
	{"minbytes", required_argument, 0, 'b'},
	{"maxbytes", required_argument, 0, 'e'},
	{"stepbytes", required_argument, 0, 'i'},
	{"stepfactor", required_argument, 0, 'f'},
	{"iters", required_argument, 0, 'n'},
	{"agg_iters", required_argument, 0, 'm'},
	{"warmup_iters", required_argument, 0, 'w'},
	{"run_cycles", required_argument, 0, 'N'},
	{"parallel_init", required_argument, 0, LONG_PARALLEL_INIT},
	{"check", required_argument, 0, 'c'},
	{"op", required_argument, 0, 'o'},
	{"datatype", required_argument, 0, 'd'},
	{"root", required_argument, 0, 'r'},
	{"blocking", required_argument, 0, 'z'},
	{"stream_null", required_argument, 0, 'y'},
	{"timeout", required_argument, 0, 'T'},
	{"cudagraph", required_argument, 0, 'G'},
	{"report_cputime", required_argument, 0, 'C'},
	{"report_timestamps", required_argument, 0, 'S'},
	{"output_file", required_argument, 0, 'J'},
	{"average", required_argument, 0, 'a'},
	{"local_register", required_argument, 0, 'R'},
	{"cta_policy", required_argument, 0, 'x'},
	{"device_implementation", required_argument, 0, 'D'},
	{"device_cta_count", required_argument, 0, 'V'},
	{"memory", required_argument, 0, 'M'},
	{"unalign", required_argument, 0, 'u'},
	{"per_iter_timing", required_argument, 0, 'I'},
	{"per_iter_skip", required_argument, 0, 'K'},
	{"plain", no_argument, 0, LONG_PLAIN},
	{"help", no_argument, 0, 'h'},
	{0, 0, 0, 0},
};

static const char short_options[] =
	"t:g:p:b:e:i:f:n:m:w:N:c:o:d:r:z:y:T:G:C:S:J:a:R:x:D:V:M:u:I:K:h";

/* Flags whose value is a whole number in a range. */
static const struct number_option {
	int flag;
	size_t offset;
	int lowest, highest;
	bool is_bool;
	const char *name;
} number_options[] = {
	{'t', offsetof(struct options, threads), 1, 4096, false, "nthreads"},
	{'g', offsetof(struct options, gpus), 1, 4096, false, "ngpus"},
	{'p', offsetof(struct options, procs), 1, 4096, false, "procs"},
	{'f', offsetof(struct options, step_factor), 0, 1 << 30, false, "stepfactor"},
	{'n', offsetof(struct options, iters), 1, 1 << 30, false, "iters"},
	{'m', offsetof(struct options, agg_iters), 1, 1 << 20, false, "agg_iters"},
	{'w', offsetof(struct options, warmup_iters), 0, 1 << 30, false, "warmup_iters"},
	{'N', offsetof(struct options, cycles), 0, 1 << 30, false, "run_cycles"},
	{'c', offsetof(struct options, check_rounds), 0, 1 << 30, false, "check"},
	{'r', offsetof(struct options, root), OPTION_ALL, 1 << 20, false, "root"},
	{'z', offsetof(struct options, blocking), 0, 3, false, "blocking"},
	{'a', offsetof(struct options, average), 0, 3, false, "average"},
	{'R', offsetof(struct options, local_register), 0, 2, false, "local_register"},
	{'u', offsetof(struct options, unalign), 0, 1 << 20, false, "unalign"},
	{'T', offsetof(struct options, timeout_s), 0, 1 << 30, false, "timeout"},
	{'G', offsetof(struct options, graph_launches), 0, 1 << 20, false, "cudagraph"},
	{'y', offsetof(struct options, stream_null), 0, 1, true, "stream_null"},
	{'C', offsetof(struct options, report_cpu_time), 0, 1, true, "report_cputime"},
	{'S', offsetof(struct options, report_timestamps), 0, 1, true,
		"report_timestamps"},
	{LONG_PARALLEL_INIT, offsetof(struct options, parallel_init), 0, 1, true,
		"parallel_init"},
};

const char *memory_kind_name(enum memory_kind kind)
{
	static const char *const names[] = {"nccl", "malloc", "register", "device"};

	return names[kind];
}

static bool parse_number(struct options *options, const struct number_option *row)
{
	char *field = (char *)options + row->offset;
	int64_t value;

	if (!units_int(optarg, row->lowest, row->highest, &value)) {
		fprintf(stderr,
			"invalid value '%s' for '%s': give a number from %d to %d\n",
			optarg, row->name, row->lowest, row->highest);
		return false;
	}
	if (row->is_bool)
		*(bool *)field = value != 0;
	else
		*(int *)(void *)field = (int)value;
	return true;
}

static bool parse_size(const char *name, uint64_t *bytes)
{
	if (units_size(optarg, bytes))
		return true;
	fprintf(stderr, "invalid size specified for '%s'\n", name);
	return false;
}

static void parse_op(struct options *options)
{
	options->op = (int)data_op_find(optarg);
	if (options->op == DATA_OP_COUNT && !strcmp(optarg, "all"))
		options->op = OPTION_ALL;
	if (options->op != DATA_OP_COUNT)
		return;
	printf("invalid op %s, defaulting to sum\n", optarg);
	options->op = DATA_SUM;
}

static void parse_type(struct options *options)
{
	options->type = (int)element_find(optarg);
	if (options->type == ELEMENT_COUNT && !strcmp(optarg, "all"))
		options->type = OPTION_ALL;
	if (options->type != ELEMENT_COUNT)
		return;
	printf("invalid type %s, defaulting to float\n", optarg);
	options->type = ELEMENT_FLOAT;
}

/* nccl-tests' -M 0|1 asks for a report; ours names the kind of buffers. */
static bool parse_memory(struct options *options)
{
	const char *wanted = strcmp(optarg, "host") ? optarg : "nccl";

	for (int kind = MEMORY_NCCL; kind <= MEMORY_DEVICE; kind++) {
		if (strcmp(wanted, memory_kind_name((enum memory_kind)kind)))
			continue;
		options->memory = (enum memory_kind)kind;
		options->is_memory_given = true;
		return true;
	}
	if (!strcmp(optarg, "0") || !strcmp(optarg, "1")) {
		options->report_memory = optarg[0] == '1';
		return true;
	}
	fprintf(stderr,
		"invalid value '%s' for 'memory': give device, host, nccl, malloc or "
		"register, or 0 or 1 for the report\n",
		optarg);
	return false;
}

static bool parse_json(struct options *options)
{
	size_t length = strlen(optarg);

	if (optarg[0] == '-') {
		fprintf(stderr, "-J needs the name of a file, and '%s' is an option\n",
			optarg);
		return false;
	}
	if (length > 5 && !strcasecmp(optarg + length - 5, ".json"))
		options->json_path = optarg;
	else
		fprintf(stderr, "-J %s does not end in .json: no file is written\n",
			optarg);
	return true;
}

/* What these programs have nothing for. A value of 0 asks for nothing, so it needs no
 * word. */
static bool parse_without_effect(int flag)
{
	if (!strcmp(optarg, "0"))
		return true;
	if (flag == 'D') {
		fprintf(stderr,
			"-D %s: there are no device implementations here; leave it "
			"out\n",
			optarg);
		return false;
	}
	fprintf(stderr, "-%c %s: %s; ignored\n", flag, optarg,
		strchr("IK", flag)
			? "iterations are not timed one by one here"
			: "how many blocks a kernel has is the library's choice");
	return true;
}

static bool parse_flag(struct options *options, int flag)
{
	size_t rows = sizeof(number_options) / sizeof(number_options[0]);

	for (size_t i = 0; i < rows; i++)
		if (number_options[i].flag == flag)
			return parse_number(options, &number_options[i]);
	switch (flag) {
	case 'b':
		return parse_size("minbytes", &options->min_bytes);
	case 'e':
		return parse_size("maxbytes", &options->max_bytes);
	case 'i':
		return parse_size("stepbytes", &options->step_bytes);
	case 'o':
		parse_op(options);
		return true;
	case 'd':
		parse_type(options);
		return true;
	case 'J':
		return parse_json(options);
	case 'M':
		return parse_memory(options);
	case LONG_PLAIN:
		options->plain = true;
		return true;
	case 'h':
		options->help = true;
		return true;
	case '?':
		printf("invalid option\n");
		options->help = true;
		return true;
	default:
		return parse_without_effect(flag);
	}
}

bool options_parse(struct options *options, int argc, char **argv)
{
	int flag;

	*options = (struct options){.procs = 1,
		.threads = 1,
		.gpus = 1,
		.min_bytes = 32 << 20,
		.max_bytes = 32 << 20,
		.step_bytes = 1 << 20,
		.step_factor = 1,
		.iters = 20,
		.agg_iters = 1,
		.warmup_iters = 1,
		.cycles = 1,
		.check_rounds = 1,
		.op = DATA_SUM,
		.type = ELEMENT_FLOAT,
		.average = 1};
	optind = 1;
	while ((flag = getopt_long(argc, argv, short_options, long_options, NULL)) !=
		-1) {
		if (!parse_flag(options, flag))
			return false;
		if (options->help)
			return true;
	}
	if (optind < argc) {
		fprintf(stderr, "unexpected argument '%s'\n", argv[optind]);
		return false;
	}
	if (options->min_bytes > options->max_bytes) {
		fprintf(stderr,
			"invalid sizes for 'minbytes' and 'maxbytes': %llu > %llu\n",
			(unsigned long long)options->min_bytes,
			(unsigned long long)options->max_bytes);
		return false;
	}
	if (options->step_factor <= 1 && !options->step_bytes &&
		options->min_bytes < options->max_bytes) {
		fprintf(stderr, "a step of 0 bytes never reaches 'maxbytes'\n");
		return false;
	}
	return true;
}

void options_usage(const char *program)
{
	printf("USAGE: %s\n"
	       "\nranks = procs x threads x ngpus, started by this program\n"
	       "\t[-p,--procs <processes>] default 1\n"
	       "\t[-t,--nthreads <threads per process>] default 1\n"
	       "\t[-g,--ngpus <ranks per thread, driven through groups>] default 1\n"
	       "\nsizes: a number and K, M or G\n"
	       "\t[-b,--minbytes <lowest size in bytes>] default 32M\n"
	       "\t[-e,--maxbytes <highest size in bytes>] default 32M\n"
	       "\t[-i,--stepbytes <increment>] default 1M\n"
	       "\t[-f,--stepfactor <factor>] default: off, increments\n"
	       "\ncollective\n"
	       "\t[-o,--op <sum/prod/max/min/avg/mulsum/all>] default sum\n"
	       "\t[-d,--datatype <type/all>] default float; int8 uint8 int32 uint32 "
	       "int64\n"
	       "\t\tuint64 half float double bfloat16 f8e4m3 f8e5m2\n"
	       "\t[-r,--root <rank, -1 for all>] default 0\n"
	       "\nloops\n"
	       "\t[-n,--iters <timed iterations>] default 20\n"
	       "\t[-m,--agg_iters <calls per group in an iteration>] default 1\n"
	       "\t[-w,--warmup_iters <iterations before timing>] default 1\n"
	       "\t[-N,--run_cycles <sweeps, 0 for ever>] default 1\n"
	       "\t[-z,--blocking <1: meet after each call, 2: wait only, 3: meet after "
	       "each\n"
	       "\t\titeration, off the clock>] default 0\n"
	       "\t[-T,--timeout <seconds per wait>] default 0, none\n"
	       "\t[--parallel_init <0/1>] each thread always makes its own ranks\n",
		program);
	printf("\nbuffers\n"
	       "\t[--memory <device/host/malloc/register>] default device where there is "
	       "a\n"
	       "\t\tGPU, else host: ncclMemAlloc, which other processes map, also "
	       "called\n"
	       "\t\tnccl; malloc: plain memory; register: malloc and ncclCommRegister\n"
	       "\t[-G,--cudagraph <launches>] default 0; on a GPU: the timed iterations "
	       "are\n"
	       "\t\tcaptured into a graph, which is launched so often\n"
	       "\t[-y,--stream_null <0/1>] default 0; on a GPU: use the NULL stream\n"
	       "\t[-R,--local_register <1: ncclCommRegister, 2: windows>] default 0\n"
	       "\t[-u,--unalign <elements>] default 0, shift the pointers\n"
	       "\nresults\n"
	       "\t[-c,--check <rounds>] default 1; 0: no check\n"
	       "\t[-a,--average <0: rank 0, 1: average, 2: min, 3: max>] default 1\n"
	       "\t[-C,--report_cputime <0/1>] default 0\n"
	       "\t[-S,--report_timestamps <0/1>] default 0\n"
	       "\t[-M,--memory <0/1>] report memory use, default 0\n"
	       "\t[-J,--output_file <name.json>] write the results as JSON too\n"
	       "\t[--plain] nccl-tests' layout and nothing else\n"
	       "\t[-h,--help]\n"
	       "\n-p is nccl-tests' --parallel_init there, and --procs here. Accepted "
	       "without effect:\n"
	       "-x -D -V, which are about kernels, and -I -K, the time of each "
	       "iteration\n"
	       "\nexample: 4 processes, 8 bytes to 64 MiB\n"
	       "\t%s -p 4 -b 8 -e 64M -f 2\n",
		program);
}
