#include "weft/k8s/k8s_args.h"

#include <string.h>

#include "common/units.h"
#include "weft/option.h"

enum { NODES_MAX = 65536, PODS_MAX = 128, VERSION_BYTES = 32 };

enum flag {
	FLAG_MACHINE = OPTION_LONG,
	FLAG_TRAINER,
	FLAG_FIX,
	FLAG_DIFF,
	FLAG_SARIF,
	FLAG_JSON,
	FLAG_NODES,
	FLAG_KIND,
	FLAG_PODS,
	FLAG_IMAGE,
	FLAG_NAME,
	FLAG_ZONE
};

static const struct option options[] = {
	{"machine", required_argument, 0, FLAG_MACHINE},
	{"trainer-version", required_argument, 0, FLAG_TRAINER},
	{"fix", no_argument, 0, FLAG_FIX},
	{"diff", no_argument, 0, FLAG_DIFF},
	{"in-place", no_argument, 0, 'i'},
	{"sarif", no_argument, 0, FLAG_SARIF},
	{"json", no_argument, 0, FLAG_JSON},
	{"quiet", no_argument, 0, 'q'},
	{"nodes", required_argument, 0, FLAG_NODES},
	{"kind", required_argument, 0, FLAG_KIND},
	{"pods", required_argument, 0, FLAG_PODS},
	{"image", required_argument, 0, FLAG_IMAGE},
	{"name", required_argument, 0, FLAG_NAME},
	{"zone", required_argument, 0, FLAG_ZONE},
	{0},
};

static const struct option_set set = {"k8s", "iq", options};

void k8s_args_usage(FILE *file)
{
	fputs("usage: weft k8s check FILE... [OPTIONS]\n"
	      "       weft k8s new nccl-test|torchrun|deepspeed|weft --machine M "
	      "[OPTIONS]\n"
	      "       weft k8s rules [--json]\n\n"
	      "check finds what is wrong with manifests of jobs that use NCCL: where, "
	      "why, "
	      "and\n"
	      "what to write instead; and tells how every pair of ranks will reach each "
	      "other.\n"
	      "FILE is YAML or JSON, - is standard input. new writes a manifest that is "
	      "right.\n\n"
	      "  --machine M            the instance type (weft topo --list), where no "
	      "nodeSelector\n"
	      "                         names it\n"
	      "  --trainer-version V    the release of Kubeflow Trainer: 2.0, 2.1, or "
	      "2.2 "
	      "unless said\n"
	      "check:\n"
	      "  --fix                  print the file with everything corrected that "
	      "can "
	      "be\n"
	      "  --diff                 with --fix: print what changes, as diff -u does\n"
	      "  -i, --in-place         with --fix: write the file, at once or not at "
	      "all\n"
	      "  -q, --quiet            one line for each finding, and nothing of "
	      "NCCL\n"
	      "  --json, --sarif        the findings for programs, and for code hosts\n"
	      "new:\n"
	      "  --nodes N              machines; 2 unless said\n"
	      "  --kind K               mpijob, pytorchjob, trainjob, job, jobset or "
	      "statefulset\n"
	      "  --pods PxG             P pods of G GPUs on each machine, instead of one "
	      "with all\n"
	      "  --image I, --name N, --zone Z\n\n"
	      "example: weft k8s check job.yaml\n"
	      "example: weft k8s check --fix --diff job.yaml\n"
	      "example: weft k8s new nccl-test --machine p5.48xlarge --nodes 2\n",
		file);
}

static bool refuse(const char *flag, const char *value, const char *how)
{
	fprintf(stderr, "weft k8s: %s '%s': %s\n", flag, value, how);
	return false;
}

static bool wrong(const char *sentence)
{
	fprintf(stderr, "weft k8s: %s\n", sentence);
	return false;
}

/* "2.1", "v2.1.0" */
static bool trainer_version(struct k8s_args *args)
{
	const char *text = optarg + (*optarg == 'v');
	char number[VERSION_BYTES];
	int64_t minor;

	snprintf(number, sizeof(number), "%.*s",
		(int)strcspn(strncmp(text, "2.", 2) ? "" : text + 2, "."), text + 2);
	if (strncmp(text, "2.", 2) != 0 || !units_int(number, 0, 99, &minor))
		return refuse("--trainer-version", optarg,
			"give a release of Kubeflow Trainer, such as 2.1");
	args->check.trainer_version = args->write.trainer_version = 200 + (int)minor;
	return true;
}

/* "8x1" */
static bool pods(struct k8s_args *args)
{
	int64_t count, gpus;

	if (!units_pair(optarg, PODS_MAX, &count, &gpus))
		return refuse("--pods", optarg,
			"give pods per machine and GPUs per pod, such as 8x1");
	args->write.pods = (uint32_t)count;
	args->write.gpus = (uint32_t)gpus;
	return true;
}

static bool nodes(struct k8s_args *args)
{
	int64_t count;

	if (!units_int(optarg, 1, NODES_MAX, &count))
		return refuse("--nodes", optarg, "give a number of machines");
	args->write.nodes = (uint32_t)count;
	return true;
}

static bool kind(struct k8s_args *args)
{
	args->write.kind = write_kind(optarg);
	return args->write.kind != WORK_NONE ||
	       refuse("--kind", optarg,
		       "give mpijob, pytorchjob, trainjob, job, jobset or statefulset");
}

/* Names become part of DNS names. */
static bool name(struct k8s_args *args)
{
	size_t bytes = strlen(optarg);

	if (!bytes || bytes > 50 ||
		strspn(optarg, "abcdefghijklmnopqrstuvwxyz0123456789-") != bytes ||
		optarg[0] == '-' || optarg[bytes - 1] == '-')
		return refuse("--name", optarg,
			"give up to 50 small letters, digits and dashes, as Kubernetes "
			"wants "
			"them");
	args->write.name = optarg;
	return true;
}

/* What goes into a YAML text without quotes. */
static bool plain(const char *flag, const char **value)
{
	if (!*optarg ||
		strspn(optarg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			       "0123456789-._/:@+") != strlen(optarg))
		return refuse(flag, optarg, "give a name without blanks and signs");
	*value = optarg;
	return true;
}

static bool take_value(struct k8s_args *args, int flag)
{
	switch (flag) {
	case FLAG_MACHINE:
		args->check.machine = args->write.machine = optarg;
		return true;
	case FLAG_TRAINER:
		return trainer_version(args);
	case FLAG_NODES:
		return nodes(args);
	case FLAG_KIND:
		return kind(args);
	case FLAG_PODS:
		return pods(args);
	case FLAG_IMAGE:
		return plain("--image", &args->write.image);
	case FLAG_ZONE:
		return plain("--zone", &args->write.zone);
	default:
		return name(args);
	}
}

static bool take(struct k8s_args *args, int flag)
{
	bool *const flags[] = {&args->fix, &args->diff, &args->sarif, &args->json};

	if (flag >= FLAG_FIX && flag <= FLAG_JSON)
		*flags[flag - FLAG_FIX] = true;
	else if (flag == 'i')
		args->in_place = true;
	else if (flag == 'q')
		args->quiet = true;
	else
		return take_value(args, flag);
	return true;
}

static bool finish_check(const struct k8s_args *args)
{
	if (!args->name_count)
		return wrong("check needs a file; - is standard input");
	if ((args->diff || args->in_place) && !args->fix)
		return wrong("--diff and -i say what becomes of --fix; add --fix");
	if (args->fix && (args->json || args->sarif))
		return wrong(
			"--fix writes manifests, --json and --sarif findings; leave one "
			"out");
	if (args->json && args->sarif)
		return wrong("--json and --sarif are two forms; leave one out");
	for (int i = 0; args->in_place && i < args->name_count; i++)
		if (!strcmp(args->names[i], "-"))
			return wrong("-i writes files, and standard input is none");
	if (args->write.kind != WORK_NONE || args->write.pods)
		return wrong("--kind and --pods are for new");
	return true;
}

static bool finish_new(struct k8s_args *args)
{
	if (args->name_count != 1)
		return wrong("new needs one of nccl-test, torchrun, deepspeed, weft");
	if (args->fix || args->diff || args->in_place || args->sarif || args->json)
		return wrong("new writes a manifest; --fix, --json and the like are for "
			     "check");
	for (int i = 0; i < LOAD_COUNT; i++)
		if (!strcasecmp(write_loads[i], args->names[0])) {
			args->write.load = (enum write_load)i;
			return true;
		}
	return refuse("new", args->names[0],
		"give one of nccl-test, torchrun, deepspeed, weft");
}

bool k8s_args_parse(struct k8s_args *args, int argc, char **argv)
{
	static const char *const verbs[] = {"check", "new", "rules"};
	int verb = 0, flag;

	*args = (struct k8s_args){.write.nodes = 2,
		.write.trainer_version = TRAINER_NEWEST,
		.check.trainer_version = TRAINER_NEWEST};
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!take(args, flag))
			return false;
	}
	if (optind >= argc)
		return wrong("say check, new or rules");
	while (verb <= K8S_RULES && strcasecmp(argv[optind], verbs[verb]) != 0)
		verb++;
	if (verb > K8S_RULES)
		return refuse("no such word", argv[optind], "say check, new or rules");
	args->verb = (enum k8s_verb)verb;
	args->names = argv + optind + 1;
	args->name_count = argc - optind - 1;
	if (args->verb == K8S_RULES && args->name_count)
		return wrong("rules takes no file");
	return args->verb == K8S_RULES ||
	       (args->verb == K8S_CHECK ? finish_check(args) : finish_new(args));
}
