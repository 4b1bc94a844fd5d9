/* weft graph - what NCCL decides for a machine: graphs, rings, trees, channels, choices.
 */
#include "weft/graph.h"

#include <stdio.h>

#include "weft/command.h"
#include "weft/graph_json.h"

static void usage(FILE *file)
{
	fprintf(file,
		"usage: weft graph [MACHINE]... [OPTIONS]\n\n"
		"What NCCL 2.30 decides for these machines, as NCCL logs it: the graphs "
		"of\n"
		"each kind of node, the rings and trees over all ranks, the number of\n"
		"channels. MACHINE is an NCCL topology file, a name (weft topo --list), "
		"or\n"
		"nothing for this machine.\n\n"
		"  --nodes N         so many machines; several names take turns\n"
		"  --json            everything, with paths, model and choices, as JSON\n"
		"  --rank R          show the links of rank R\n"
		"  --collnet         as if a CollNet plugin were on every NIC\n"
		"  --mnnvl K         NVLink domains of K machines\n"
		"  --no-nic-fusion   every port of a NIC is a device of its own\n"
		"  --no-nvml-p2p     as if NVML said no to P2P, as on GeForce\n"
		"  --ctas MIN:MAX    as NCCL_MIN_CTAS and NCCL_MAX_CTAS\n"
		"  --graph FILE      take graphs from FILE, as NCCL_GRAPH_FILE\n"
		"  --dump FILE       write the graphs of rank 0's node, as "
		"NCCL_GRAPH_DUMP_FILE\n"
		"  --pods PxG        what it costs to run each machine as P pods of G "
		"GPUs\n"
		"  --better          search with a far larger budget: is there a better "
		"graph?\n\n"
		"NCCL_ALGO, NCCL_P2P_LEVEL and the like count as for a job.\n\n"
		"example: weft graph dgx-h100 --nodes 2\n"
		"example: weft graph p5.48xlarge --pods 8x1\n");
}

static void apply(const struct graph_args *args, struct graph_job *job)
{
	job->args.host_count = args->hosts;
	job->args.mnnvl_hosts = args->mnnvl_hosts;
	job->args.collnet = args->collnet;
	job->args.search.min_channels = (int)args->min_ctas;
	job->args.search.max_channels = (int)args->max_ctas;
	job->args.graph_file = args->graph;
	if (args->no_nic_fusion)
		job->args.rules.merge_nics = false;
	if (args->no_nvml_p2p)
		job->args.rules.nvml_p2p_ok = false;
}

static enum err print_json(const struct graph_job *job)
{
	json_t *top = graph_json(job);
	int bad;

	if (!top)
		return ERR_SYSTEM;
	bad = json_dumpf(top, stdout, GRAPH_JSON_FLAGS);
	json_decref(top);
	if (bad || putchar('\n') == EOF || fflush(stdout))
		return err_set(ERR_SYSTEM, "cannot write the JSON: %m");
	return OK;
}

static enum err answer(const struct graph_args *args, struct graph_job *job)
{
	enum err e;

	if (args->pods)
		return graph_pods(job, args);
	if (args->better)
		return graph_better(job);
	e = graph_job_run(job);
	if (e)
		return e;
	if (args->rank >= job->decision->cluster->rank_count)
		return err_set(ERR_USAGE, "there is no rank %d; the last one is %d",
			(int)args->rank, job->decision->cluster->rank_count - 1);
	if (args->dump) {
		const struct domain *home = graph_job_home(job);

		e = graph_file_write(args->dump, home->topo, &home->set);
		if (e)
			return e;
	}
	if (args->json)
		return print_json(job);
	graph_text(job, args);
	return OK;
}

int command_graph(int argc, char **argv)
{
	struct graph_args args;
	struct graph_job job;
	enum err e;

	if (command_wants_help(argc, argv)) {
		usage(stdout);
		return EXIT_GOOD;
	}
	if (!graph_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	graph_job_init(&job);
	e = graph_job_environment(&job);
	apply(&args, &job);
	if (!e)
		e = graph_job_load(&job, args.name_count, args.names);
	if (!e)
		e = answer(&args, &job);
	graph_job_fini(&job);
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft graph: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
