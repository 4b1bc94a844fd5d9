/* weft tune - which algorithm and protocol a collective gets, size by size, and what that
 * is predicted to take. */
#include "weft/tune.h"

#include <stdio.h>

#include "weft/command.h"

static void usage(FILE *file)
{
	fprintf(file,
		"usage: weft tune FILE.xml|INSTANCE... [--nodes N] [--coll COLLECTIVE]\n"
		"                 [--type TYPE] [--op OP] [--algo LIST] [--proto LIST]\n"
		"                 [--collnet] [--mnnvl K] [--no-nic-fusion] "
		"[--no-nvml-p2p]\n"
		"                 [--table] [--json]\n"
		"       weft tune [-n RANKS] [--coll COLLECTIVE] [--json]\n\n"
		"What NCCL 2.30 chooses on N such machines, for sizes from 8 bytes to 8 "
		"GiB: algorithm,\n"
		"protocol, channels, threads, and the time its model expects. Without a "
		"machine: which\n"
		"schedule this library's own calls get on this host's memory.\n\n"
		"--nodes N       so many machines; several names take turns\n"
		"--coll NAME     only this collective, such as all_reduce\n"
		"--type, --op    what is reduced; float and sum unless said\n"
		"--algo, --proto what is allowed, as NCCL_ALGO and NCCL_PROTO\n"
		"--collnet       as if a CollNet plugin were on every NIC\n"
		"--mnnvl K       NVLink domains of K machines\n"
		"--no-nic-fusion every port of a NIC is a device of its own\n"
		"--no-nvml-p2p   as if NVML said no to P2P, as on GeForce\n"
		"--table         also the model's latencies and bandwidths\n"
		"-n RANKS        ranks on this host; one per core unless said\n\n"
		"example: weft tune dgx-h100.xml --nodes 2 --coll all_reduce\n"
		"example: weft tune dgx-h100.xml --algo ring --proto ^LL128\n");
}

static enum err machines_tune(const struct tune_args *args, struct graph_job *job)
{
	struct model_rules rules;
	enum err e = OK;

	model_rules_default(&rules);
	if (args->algo)
		e = model_algo_parse(args->algo, &rules);
	if (!e && args->proto)
		e = model_proto_parse(args->proto, &rules);
	if (!e)
		e = graph_job_load(job, args->name_count, args->names);
	if (!e)
		e = graph_job_run(job);
	if (!e)
		e = model_make(job->decision->cluster, &rules, &job->model);
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
	job.args.host_count = args.hosts;
	job.args.mnnvl_hosts = args.mnnvl_hosts;
	job.args.collnet = args.collnet;
	if (args.no_nic_fusion)
		job.args.rules.merge_nics = false;
	if (args.no_nvml_p2p)
		job.args.rules.nvml_p2p_ok = false;
	e = args.name_count ? machines_tune(&args, &job) : tune_host(&args);
	graph_job_fini(&job);
	if (!e)
		return EXIT_GOOD;
	fprintf(stderr, "weft tune: %s\n", err_last());
	return e == ERR_USAGE ? EXIT_USAGE : EXIT_WRONG;
}
