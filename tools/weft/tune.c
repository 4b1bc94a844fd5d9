/* weft tune - which algorithm and protocol a collective gets, size by size, and what that
 * is predicted to take. */
#include "weft/tune.h"

#include <stdio.h>

#include "weft/command.h"
#include "weft/graph_env.h"
#include "weft/tune_net.h"

static void usage(FILE *file)
{
	fputs("usage: weft tune MACHINE... [OPTIONS]\n"
	      "       weft tune [-n RANKS | --hosts SHAPE] [--coll NAME] [--json]\n\n"
	      "What NCCL chooses on these machines, for sizes from 8 bytes to 8 GiB:\n"
	      "algorithm, protocol, channels, threads, and the time its model expects.\n"
	      "MACHINE is an NCCL topology file, a name (weft topo --list), or 'this'.\n"
	      "Without one: which schedule this library's own calls get on this host's\n"
	      "memory.\n\n",
		file);
	machine_args_usage(file);
	fputs("  --coll NAME       only this collective, such as all_reduce\n"
	      "  --type TYPE       what is reduced; float unless said\n"
	      "  --op OP           and how; sum unless said\n"
	      "  --algo LIST       algorithms allowed, as NCCL_ALGO\n"
	      "  --proto LIST      protocols allowed, as NCCL_PROTO\n"
	      "  --table           also the model's latencies and bandwidths\n"
	      "  --json            the same as JSON\n"
	      "  -n RANKS          ranks on this host; one per core unless said\n"
	      "  --hosts SHAPE     ranks on several hosts: 2x4, 3+5, or a host per "
	      "rank\n\n"
	      "NCCL_ALGO, NCCL_P2P_LEVEL and the like count as for a job.\n\n"
	      "example: weft tune dgx-h100 --nodes 2 --coll all_reduce\n"
	      "example: weft tune dgx-h100 --algo ring --proto ^LL128\n",
		file);
}

static enum err machines_tune(const struct tune_args *args, struct graph_job *job)
{
	const struct tune_net net = tune_net_find(args);
	struct net_assumed assumed;
	enum err e = graph_job_environment(job);

	if (!e && args->algo)
		e = model_algo_parse(args->algo, &job->rules);
	if (!e && args->proto)
		e = model_proto_parse(args->proto, &job->rules);
	if (!e)
		e = tune_net_apply(&net, &job->rules);
	machine_args_apply(&args->machines, job);
	graph_env_tell(&args->machines);
	if (!e)
		e = machine_args_load(&args->machines, &assumed, job);
	if (!e)
		e = graph_job_run(job);
	if (!e)
		e = graph_job_dump(job, NULL);
	if (e)
		return e;
	if (args->json)
		return tune_json(job, args);
	tune_text(job, args);
	return OK;
}

int command_tune(int argc, char **argv)
{
	struct tune_args args;
	struct graph_job job;
	enum err e;

	if (command_wants_help(argc, argv)) {
		usage(stdout);
		return EXIT_GOOD;
	}
	if (!tune_args_parse(&args, argc, argv))
		return EXIT_USAGE;
	graph_job_init(&job);
	e = args.machines.name_count ? machines_tune(&args, &job) : tune_host(&args);
	graph_job_fini(&job);
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft tune: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
