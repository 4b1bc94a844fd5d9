#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "weft/command.h"
#include "weft/option.h"
#include "weft/sim.h"

enum flag {
	FLAG_NODES = OPTION_LONG,
	FLAG_GPUS,
	FLAG_PODS,
	FLAG_POD_NICS,
	FLAG_NICS,
	FLAG_COLL,
	FLAG_SIZE,
	FLAG_FABRIC,
	FLAG_FAIL,
	FLAG_SLOW,
	FLAG_ALGO,
	FLAG_PROTO,
	FLAG_NCCL,
	FLAG_NET,
	FLAG_EXPLAIN,
	FLAG_VS,
	FLAG_JSON,
	FLAG_SVG,
	FLAG_POINTS,
	FLAG_TIMELINE,
	FLAG_MEASURED,
	FLAG_CASES,
	FLAG_ACCURACY,
	FLAG_CALIBRATE
};

static const struct option options[] = {
	{"nodes", required_argument, 0, FLAG_NODES},
	{"gpus-per-node", required_argument, 0, FLAG_GPUS},
	{"pods", required_argument, 0, FLAG_PODS},
	{"efa-per-pod", required_argument, 0, FLAG_POD_NICS},
	{"nics", required_argument, 0, FLAG_NICS},
	{"coll", required_argument, 0, FLAG_COLL},
	{"size", required_argument, 0, FLAG_SIZE},
	{"fabric", required_argument, 0, FLAG_FABRIC},
	{"fail", required_argument, 0, FLAG_FAIL},
	{"slow", required_argument, 0, FLAG_SLOW},
	{"algo", required_argument, 0, FLAG_ALGO},
	{"proto", required_argument, 0, FLAG_PROTO},
	{"nccl", required_argument, 0, FLAG_NCCL},
	{"net", required_argument, 0, FLAG_NET},
	{"explain", required_argument, 0, FLAG_EXPLAIN},
	{"vs", required_argument, 0, FLAG_VS},
	{"json", no_argument, 0, FLAG_JSON},
	{"svg", required_argument, 0, FLAG_SVG},
	{"points", required_argument, 0, FLAG_POINTS},
	{"timeline", required_argument, 0, FLAG_TIMELINE},
	{"measured", required_argument, 0, FLAG_MEASURED},
	{"cases", required_argument, 0, FLAG_CASES},
	{"accuracy", required_argument, 0, FLAG_ACCURACY},
	{"calibrate", required_argument, 0, FLAG_CALIBRATE},
	{0, 0, 0, 0},
};

static const struct option_set set = {"sim", ":", options};

void sim_args_usage(FILE *file)
{
	fputs("usage: weft sim MACHINE [OPTIONS]\n"
	      "       weft sim --cases FILE.csv\n"
	      "       weft sim --accuracy FILE.csv...\n\n"
	      "How long a collective takes on so many machines, size by size, with the\n"
	      "interval that 9 of 10 measurements fall into. weft topo --list names the\n"
	      "machines; p5, h100, a3-mega or gb200-nvl72 are taken for one, too.\n\n"
	      "  --nodes N           so many machines; 1 unless said\n"
	      "  --gpus-per-node G   of each machine's GPUs; all unless said\n"
	      "  --pods PxG          each machine cut into P pods of G GPUs\n"
	      "  --efa-per-pod N     NICs of a pod; an equal share unless said\n"
	      "  --nics N            NICs of a machine that take part\n"
	      "  --coll NAME         all_reduce unless said; also alltoall, sendrecv\n"
	      "  --size MIN:MAX:FACTOR  sizes; 8:8G:2 unless said\n"
	      "  --fabric PLAN       switch, fat-tree:leaf=16,spine=8,over=2, "
	      "rail:leaf=32,\n"
	      "                      dual, efa, ib, roce, tcp:100Gb, nvl:18, or a file\n"
	      "  --fail PART         nic:NODE.NIC, spine:N, leaf:N, link:LEAF.SPINE\n"
	      "  --slow PART=SHARE   the same, node:N and gpu:RANK, at a share of its "
	      "rate\n"
	      "  --algo, --proto     as NCCL_ALGO and NCCL_PROTO\n"
	      "  --nccl VERSION      2.18, 2.23, 2.27, 2.30 or 2.32\n"
	      "  --net NET           ofi: with AWS's libfabric plugin, as on its "
	      "instances;\n"
	      "                      plain: without; socket: TCP\n"
	      "  --explain SIZE      where the time goes and what would change it\n"
	      "  --vs 'NAME=VALUE ..'  beside it the same with these options\n"
	      "  --json              the table as JSON\n"
	      "  --svg FILE          busbw over size; --points FILE.csv adds "
	      "measurements\n"
	      "  --timeline FILE     the flows between nodes, for Perfetto\n"
	      "  --measured FILE     an nccl-tests log or JSON against what should be\n"
	      "  --cases FILE.csv    a table of questions, answered row by row\n"
	      "  --accuracy FILE..   predictions against measurements\n"
	      "  --calibrate FILE..  the calibration that measurements give\n\n"
	      "example: weft sim p5.48xlarge --nodes 4 --coll all_reduce\n"
	      "example: weft sim p4d.24xlarge --pods 4x2 --explain 1G\n"
	      "example: weft sim dgx-h100 --nodes 64 --fabric fat-tree:leaf=16,spine=8 "
	      "--fail spine:2\n",
		file);
}

/* "8:8G:2", "1M:1G", "64M" */
static bool sizes(struct sim_args *args)
{
	char text[64], *last, *factor = NULL, *end = "";
	bool is_cut = snprintf(text, sizeof(text), "%s", optarg) >= (int)sizeof(text);

	last = strchr(text, ':');
	if (last)
		*last++ = 0;
	if (last)
		factor = strchr(last, ':');
	if (factor)
		*factor++ = 0;
	args->factor = factor ? strtod(factor, &end) : 2;
	if (is_cut || *end || !units_size(text, &args->first) ||
		!units_size(last ? last : text, &args->last) || !args->first ||
		args->last < args->first || args->last > (uint64_t)1 << 50 ||
		!(args->factor >= 1.05 && args->factor <= 1e6))
		return option_wrong(&set, "--size",
			"give the least, the most and a factor over 1, such as 8:8G:2");
	return true;
}

static bool coll(struct sim_args *args)
{
	args->coll = sim_coll_find(optarg);
	return args->coll >= 0 ||
	       option_wrong(&set, "--coll",
		       "there are all_reduce, all_gather, reduce_scatter, "
		       "broadcast, reduce, alltoall, gather, scatter and "
		       "sendrecv");
}

static bool nccl(struct sim_args *args)
{
	static const char *const known[] = {"2.18", "2.23", "2.27", "2.30", "2.32"};

	for (int i = 0; i < 5; i++)
		if (!strncmp(optarg, known[i], 4) && (!optarg[4] || optarg[4] == '.')) {
			args->nccl = optarg;
			return true;
		}
	return option_wrong(&set, "--nccl", "2.18, 2.23, 2.27, 2.30 and 2.32 are known");
}

static bool net(struct sim_args *args)
{
	static const char *const known[] = {"", "ofi", "plain", "socket"};

	for (int i = SIM_NET_OFI; i <= SIM_NET_SOCKET; i++)
		if (!strcmp(optarg, known[i])) {
			args->net = (enum sim_net)i;
			return true;
		}
	return option_wrong(&set, "--net", "there are ofi, plain and socket");
}

static bool said(struct sim_args *args, enum err e)
{
	if (e)
		args->status = sim_failed(e);
	return !e;
}

static bool list(char to[SIM_LIST_BYTES])
{
	if (strlen(optarg) >= SIM_LIST_BYTES)
		return option_wrong(&set, "--algo or --proto", "that list is too long");
	memcpy(to, optarg, strlen(optarg) + 1);
	return true;
}

static bool take_text(struct sim_args *args, int flag)
{
	switch (flag) {
	case FLAG_SVG:
		args->svg = optarg;
		return true;
	case FLAG_POINTS:
		args->points = optarg;
		return true;
	case FLAG_TIMELINE:
		args->timeline = optarg;
		return true;
	case FLAG_MEASURED:
		args->measured = optarg;
		return true;
	case FLAG_CASES:
		args->cases = optarg;
		return true;
	case FLAG_ACCURACY:
		args->accuracy = optarg;
		return true;
	case FLAG_CALIBRATE:
		args->calibrate = optarg;
		return true;
	case FLAG_VS:
		args->vs = optarg;
		return true;
	default:
		args->json = true;
		return true;
	}
}

static bool fabric(struct sim_args *args)
{
	struct fabric_plan before = args->plan;

	if (!said(args, fabric_plan_read(optarg, &args->plan)))
		return false;
	for (uint32_t i = 0;
		i < before.harm_count && args->plan.harm_count < FABRIC_HARM_MAX; i++)
		args->plan.harms[args->plan.harm_count++] = before.harms[i];
	return true;
}

static bool take(struct sim_args *args, int flag)
{
	switch (flag) {
	case FLAG_NODES:
		return option_count(&set, "--nodes", 65536, &args->site.nodes);
	case FLAG_GPUS:
		return option_count(&set, "--gpus-per-node", 1024, &args->site.gpus);
	case FLAG_PODS:
		return option_pods(&set, &args->pods, &args->pod_gpus);
	case FLAG_POD_NICS:
		return option_count(&set, "--efa-per-pod", 64, &args->pod_nics);
	case FLAG_NICS:
		return option_count(&set, "--nics", 64, &args->nics);
	case FLAG_COLL:
		return coll(args);
	case FLAG_SIZE:
		return sizes(args);
	case FLAG_FABRIC:
		return fabric(args);
	case FLAG_FAIL:
	case FLAG_SLOW:
		return said(
			args, fabric_harm_read(optarg, flag == FLAG_SLOW, &args->plan));
	case FLAG_ALGO:
		return list(args->site.algo);
	case FLAG_PROTO:
		return list(args->site.proto);
	case FLAG_NCCL:
		return nccl(args);
	case FLAG_NET:
		return net(args);
	case FLAG_EXPLAIN:
		args->has_explain = true;
		return (units_size(optarg, &args->explain) && args->explain) ||
		       option_wrong(&set, "--explain", "give a size such as 1G");
	default:
		return take_text(args, flag);
	}
}

static bool wrong(const char *sentence)
{
	fprintf(stderr, "weft sim: %s\n", sentence);
	return false;
}

/* One answer at a time, and nothing asked for that would be passed over. */
static bool is_whole(const struct sim_args *args)
{
	int answers = !!args->svg + !!args->timeline + !!args->measured +
		      (args->has_explain && !args->timeline) + (args->vs || args->json);

	if (answers > 1)
		return wrong("--explain, --vs, --json, --svg, --timeline and "
			     "--measured are answers of their own; ask for one, or for "
			     "--vs with --json");
	if (args->points && !args->svg)
		return wrong("--points are drawn into a picture; name it with --svg");
	if (args->pod_nics && !args->pods)
		return wrong("--efa-per-pod is of pods; cut the machine with --pods");
	return true;
}

bool sim_args_parse(struct sim_args *args, int argc, char **argv)
{
	int flag;

	*args = (struct sim_args){.coll = COLL_ALL_REDUCE,
		.first = 8,
		.last = (uint64_t)8 << 30,
		.factor = 2,
		.nccl = "",
		.status = EXIT_USAGE};
	fabric_plan_default(&args->plan);
	option_start();
	while ((flag = option_next(&set, argc, argv)) != -1) {
		if (flag == '?' || flag == ':')
			return option_refuse(&set, flag, argv);
		if (!take(args, flag))
			return false;
	}
	args->files = argv + optind;
	args->file_count = argc - optind;
	if (args->cases && args->file_count)
		return wrong("--cases has its machines in the file; name none beside it");
	if (args->cases || args->accuracy || args->calibrate)
		return true;
	if (args->file_count == 1)
		return is_whole(args);
	return wrong(args->file_count
			     ? "one machine at a time; --vs compares two"
			     : "name a machine, such as p5.48xlarge; weft topo --list "
			       "names all");
}
