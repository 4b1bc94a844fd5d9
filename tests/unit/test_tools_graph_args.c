/* What `weft graph` is asked is read whole, in any order, or refused. */
#include "test.h"
#include "weft/graph_args.h"

static bool parse(struct graph_args *args, const char *line)
{
	static char text[256], *argv[32];
	int argc = 1;

	argv[0] = "graph";
	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return graph_args_parse(args, argc, argv);
}

int main(void)
{
	static const char *const bad[] = {"--nodes", "--nodes 0", "--nodes 65537",
		"--nodes two", "--mnnvl 0", "--pods 8", "--pods x1", "--pods 8x",
		"--pods 8x0", "--pods 2x4x1", "--pods 1000x1", "--ctas 8", "--ctas 8:4",
		"--ctas 1:65", "--ctas 0:4", "--rank -1", "--colour",
		"--pods 2x4 --better", "--nics-per-pod 1", "--pods 2x4 --nics-per-pod 0",
		"--nccl 2.29", "--nccl 2.3", "--nccl 2.300", "--nccl 2.30.",
		"--nccl 2.32.x", "--nccl", "--channel 0", "--svg a.svg --channel 64",
		"--svg a.svg --json", "--pods 2x4 --svg a.svg", "--graph g.xml --better",
		"--pods 2x4 --dump d.xml", "--better --rank 0", "--json --rank 0",
		"--json=1", "-n 2", "--mnnvl 2", "--nodes 4 --mnnvl 5"};
	struct graph_args args;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TRUE(!parse(&args, bad[i]));
	TRUE(parse(&args, ""));
	EQ(args.machines.name_count, 0);
	EQ(args.machines.hosts, 1);
	EQ(args.rank, -1);
	TRUE(!args.json && !args.better && !args.machines.collnet && !args.pods &&
		!args.dump);
	TRUE(parse(&args, "a.xml b.xml"));
	EQ(args.machines.name_count, 2);
	EQ(args.machines.hosts, 2);
	EQ_STR(args.machines.names[1], "b.xml");
	TRUE(parse(&args,
		"a.xml --nodes 16 --mnnvl 4 --collnet --no-nic-fusion --no-nvml-p2p "
		"--ctas 4:16 --json --dump d.xml --graph g.xml"));
	EQ(args.machines.name_count, 1);
	EQ(args.machines.hosts, 16);
	EQ(args.machines.mnnvl_hosts, 4);
	TRUE(args.machines.collnet && args.machines.no_nic_fusion &&
		args.machines.no_nvml_p2p && args.json);
	EQ(args.machines.min_ctas, 4);
	EQ(args.machines.max_ctas, 16);
	EQ_STR(args.dump, "d.xml");
	EQ_STR(args.graph, "g.xml");
	TRUE(parse(&args, "--nodes=2 a.xml --rank 7"));
	EQ(args.machines.hosts, 2);
	EQ(args.rank, 7);
	TRUE(parse(&args, "--pods 4x2 a.xml"));
	EQ(args.pods, 4);
	EQ(args.gpus_per_pod, 2);
	EQ(args.nics_per_pod, 0);
	TRUE(parse(&args, "--pods 4x2 a.xml --nics-per-pod 3 --json"));
	EQ(args.nics_per_pod, 3);
	TRUE(args.json);
	TRUE(parse(&args, "--better --json"));
	TRUE(parse(&args, "--svg - --channel 3"));
	EQ_STR(args.svg, "-");
	EQ(args.channel, 3);
	TRUE(parse(&args, ""));
	EQ(args.machines.nccl, NCCL_RULES_NEWEST);
	TRUE(parse(&args, "--nccl 2.30"));
	EQ(args.machines.nccl, NCCL_RULES_2_30);
	TRUE(parse(&args, "--nccl 2.30.7"));
	EQ(args.machines.nccl, NCCL_RULES_2_30);
	TRUE(parse(&args, "--nccl 2.31.2"));
	EQ(args.machines.nccl, NCCL_RULES_2_32);
	TRUE(parse(&args, "--nccl=2.32"));
	EQ(args.machines.nccl, NCCL_RULES_2_32);
	return 0;
}
