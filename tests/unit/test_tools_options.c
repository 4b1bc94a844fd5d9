/* nccl-tests' command lines mean here what they mean there. */
#include "perf/data.h"
#include "perf/options.h"
#include "test.h"

static bool parse(struct options *options, const char *line)
{
	static char text[256];
	char *argv[32] = {"all_reduce_perf"};
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return options_parse(options, argc, argv);
}

static void defaults(void)
{
	struct options options;

	TRUE(parse(&options, ""));
	EQ(options.min_bytes, 32 << 20);
	EQ(options.max_bytes, 32 << 20);
	EQ(options.iters, 20);
	EQ(options.warmup_iters, 1);
	EQ(options.average, 1);
	EQ(options.check_rounds, 1);
	EQ(options.procs, 1);
	EQ(options.type, ELEMENT_FLOAT);
	EQ(options.memory, MEMORY_NCCL);
}

static void usual(void)
{
	struct options options;

	TRUE(parse(&options, "-b 8 -e 8G -f 2 -n 100 -w 20 -c 1 -g 2 -t 3 -p 4"));
	EQ(options.max_bytes, 8LL << 30);
	EQ(options.step_factor, 2);
	EQ(options.procs * options.threads * options.gpus, 24);
	TRUE(parse(&options,
		"-d all -o mulsum -r -1 --parallel_init 1 -J out.JSON --plain"));
	EQ(options.type, OPTION_ALL);
	EQ(options.op, DATA_MULSUM);
	EQ(options.root, OPTION_ALL);
	TRUE(options.parallel_init && options.plain);
	EQ_STR(options.json_path, "out.JSON");
	TRUE(parse(&options, "-J out.txt -d fp8_e4m3 -o nonsense"));
	TRUE(!options.json_path);
	EQ(options.type, ELEMENT_F8E4M3);
	EQ(options.op, DATA_SUM);
	TRUE(parse(&options, "--memory register -M 1"));
	EQ(options.memory, MEMORY_REGISTER);
	TRUE(options.report_memory);
	TRUE(parse(&options, "-G 1 -x 0 -y 1"));
	EQ(options.graph_launches, 1);
	TRUE(options.stream_null && !options.is_memory_given);
	TRUE(parse(&options, "--memory device"));
	EQ(options.memory, MEMORY_DEVICE);
	TRUE(parse(&options, "--memory host") && options.is_memory_given);
	EQ(options.memory, MEMORY_NCCL);
	TRUE(parse(&options, "-h -b nonsense"));
	TRUE(options.help);
}

int main(void)
{
	static const char *const bad[] = {"-b 8x", "-b 64M", "-b 8 -e 4", "-n 0", "-t 0",
		"-p x", "-i 0 -b 1 -e 2", "-D 1", "--memory disk", "-z 4", "stray"};
	struct options options;

	defaults();
	usual();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		TRUE(!parse(&options, bad[i]));
	return 0;
}
