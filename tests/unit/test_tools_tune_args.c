/* weft tune takes what its page says, and refuses the rest. */
#include "weft/tune_args.h"

#include <unistd.h>

#include "base/dtype.h"
#include "test.h"

enum { WORDS_MAX = 16 };

static struct tune_args args;

/* Words separated by spaces; the text is cut where it stands. */
static bool parse(const char *line)
{
	static char text[256];
	static char *words[WORDS_MAX];
	int count = 1;

	snprintf(text, sizeof(text), "%s", line);
	words[0] = "tune";
	for (char *word = strtok(text, " "); word && count < WORDS_MAX - 1;
		word = strtok(NULL, " "))
		words[count++] = word;
	words[count] = NULL;
	return tune_args_parse(&args, count, words);
}

static void taken(void)
{
	TRUE(parse(""));
	EQ(args.machines.name_count, 0);
	EQ(args.type, DTYPE_FLOAT32);
	EQ(args.op, REDOP_SUM);
	TRUE(parse("-n 16 --coll all_reduce --json"));
	EQ(args.ranks, 16);
	TRUE(args.json);
	TRUE(tune_args_want(&args, "AllReduce"));
	TRUE(tune_args_want(&args, "all_reduce"));
	TRUE(!tune_args_want(&args, "Reduce"));
	TRUE(!tune_args_want(&args, "AllReduces"));
	TRUE(parse("a.xml --nodes 4 b.xml --type f8e4m3 --op max --table"));
	EQ(args.machines.name_count, 2);
	EQ_STR(args.machines.names[1], "b.xml");
	EQ(args.machines.hosts, 4);
	EQ(args.type, DTYPE_FLOAT8E4M3);
	EQ(args.op, REDOP_MAX);
	TRUE(args.table);
	TRUE(tune_args_want(&args, "Reduce"));
	TRUE(parse("a b c"));
	EQ(args.machines.hosts, 3);
	TRUE(parse("a --algo ring --proto ^LL --collnet --nodes 36 --mnnvl 18"));
	EQ_STR(args.algo, "ring");
	EQ(args.machines.mnnvl_hosts, 18);
	TRUE(parse("a --no-nic-fusion --no-nvml-p2p"));
	TRUE(args.machines.no_nic_fusion && args.machines.no_nvml_p2p);
	TRUE(parse("a --nccl 2.30 --ctas 2:4"));
	EQ(args.machines.nccl, NCCL_RULES_2_30);
	EQ(args.machines.max_ctas, 4);
	TRUE(parse("a --coll ReduceScatter"));
	TRUE(parse("--coll alltoall"));
}

static void refused(void)
{
	static const char *const lines[] = {"--nodes 0 a", "--nodes x a",
		"--nodes 99999999 a", "-n 0", "-n 2 a", "--nodes 2", "--table",
		"--algo ring", "--no-nvml-p2p", "--nccl 2.30", "a --nccl 1",
		"a --ctas 4:2", "a --type int", "a --op xor", "a --coll all",
		"--nonsense", "a --coll", "a --mnnvl -1", "a --mnnvl 18", "--type half",
		"a --coll alltoall", "a -d half", "a --json=2"};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		if (parse(lines[i])) {
			fprintf(stderr, "taken: %s\n", lines[i]);
			exit(1);
		}
}

int main(void)
{
	TRUE(freopen("/dev/null", "w", stderr));
	taken();
	refused();
	return 0;
}
