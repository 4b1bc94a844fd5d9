/* weft graph - what NCCL decides for a machine: graphs, rings, trees, channels, choices.
 */
#include "weft/graph.h"

#include <stdio.h>

#include "weft/command.h"
#include "weft/graph_env.h"
#include "weft/graph_json.h"

static void usage(FILE *file)
{
	fputs("usage: weft graph [MACHINE]... [OPTIONS]\n\n"
	      "What NCCL decides for these machines, as NCCL logs it: the graphs of each "
	      "kind\n"
	      "of node, the rings and trees over all ranks, the number of channels. "
	      "MACHINE\n"
	      "is an NCCL topology file, a name (weft topo --list), or nothing for this\n"
	      "machine.\n\n",
		file);
	machine_args_usage(file);
	fputs("  --json            everything, with paths, model and choices, as JSON\n"
	      "  --rank R          show the links of rank R\n"
	      "  --svg FILE        draw rings and trees over the machine; - is standard\n"
	      "                    output\n"
	      "  --channel C       draw this channel alone\n"
	      "  --graph FILE      take graphs from FILE, as NCCL_GRAPH_FILE\n"
	      "  --dump FILE       write the graphs of rank 0's node, as "
	      "NCCL_GRAPH_DUMP_FILE\n"
	      "  --pods PxG        what it costs to run each machine as P pods of G "
	      "GPUs\n"
	      "  --nics-per-pod N  NICs each pod is given; an equal share unless said\n"
	      "  --better          search with a far larger budget: is there a better "
	      "graph?\n\n"
	      "NCCL_ALGO, NCCL_P2P_LEVEL and the like count as for a job.\n\n"
	      "example: weft graph dgx-h100 --nodes 2\n"
	      "example: weft graph p5.48xlarge --pods 8x1\n"
	      "example: weft graph dgx-h100 --nodes 2 --svg rings.svg\n",
		file);
}

static enum err answer(const struct graph_args *args, struct graph_job *job)
{
	enum err e;

	if (args->pods)
		return graph_pods(job, args);
	if (args->better)
		return graph_better(job, args);
	e = graph_job_run(job);
	if (e)
		return e;
	if (args->rank >= job->decision->cluster->rank_count)
		return err_set(ERR_USAGE, "there is no rank %d; the last one is %d",
			(int)args->rank, job->decision->cluster->rank_count - 1);
	e = graph_job_dump(job, args->dump);
	if (e)
		return e;
	if (args->svg)
		return graph_svg(job, args);
	if (args->json)
		return graph_json_print(graph_json(job));
	graph_text(job, args);
	return OK;
}

int command_graph(int argc, char **argv)
{
	struct graph_args args;
	struct graph_job job;
	struct net_assumed net;
	enum err e;

	if (command_wants_help(argc, argv)) {
		usage(stdout);
		return EXIT_GOOD;
	}
	if (!graph_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	graph_job_init(&job);
	e = graph_job_environment(&job);
	machine_args_apply(&args.machines, &job);
	if (args.graph)
		job.args.graph_file = args.graph;
	graph_env_tell(&args.machines);
	if (!e)
		e = machine_args_load(&args.machines, &net, &job);
	if (!e)
		net_assumed_text(&net, job.net_text);
	if (!e && net.platform && net_forces_simple(net.type))
		e = model_proto_parse("simple", &job.rules);
	if (!e)
		e = answer(&args, &job);
	graph_job_fini(&job);
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft graph: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
