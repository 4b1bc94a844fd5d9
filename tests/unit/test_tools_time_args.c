/* What `weft sched time` is asked is read whole, in any order, or refused. */
#include "sched/hosts.h"
#include "test.h"
#include "weft/time_args.h"

static bool parse(struct time_args *args, const char *line)
{
	static char text[256];
	char *argv[32] = {"time"};
	int argc = 1;

	snprintf(text, sizeof(text), "%s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	return time_args_parse(args, argc, argv);
}

int main(void)
{
	static const char *const bad[] = {"", "all_reduce", "all_reduce ring more",
		"all_reduce ring -n 0", "all_reduce ring -n 8 --root 8",
		"all_reduce ring --latency 1", "all_reduce ring --bandwidth 10G",
		"all_reduce ring --size 1KB", "all_reduce ring --colour red",
		"all_reduce ring --bandwidth 0GB/s", "all_reduce ring --bandwidth -1GB/s",
		"all_reduce ring --bandwidth nanGB/s",
		"all_reduce ring --bandwidth infGB/s",
		"all_reduce ring --bandwidth 1e400GB/s",
		"all_reduce ring --bandwidth 1e300TB/s",
		"all_reduce ring --bandwidth 1e-9B/s", "all_reduce ring --latency -1us",
		"all_reduce ring --latency nanus", "all_reduce ring --latency inf",
		"all_reduce ring --latency 1e400s", "all_reduce ring --latency 1e300s",
		"all_reduce ring --latency 2s", "all_reduce ring --size -1",
		"all_reduce ring --size 1e30", "all_reduce ring --size 2000G",
		"all_reduce ring --size nan", "all_reduce ring --size --root",
		"all_reduce ring --root -1", "all_reduce ring --hosts",
		"all_reduce ring --hosts 2x", "all_reduce ring --hosts 2x4 -n 9",
		"all_reduce ring --hosts 2x4 --root 8"};
	struct time_args args;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		TRUE(!parse(&args, bad[i]));
		sched_hosts_destroy(args.hosts);
	}
	TRUE(parse(&args, "all_reduce ring"));
	EQ(args.rank_count, 8);
	EQ(args.bytes, 1 << 20);
	TRUE(parse(&args,
		"all_reduce -n 64 --latency 2us ring --bandwidth 400Gb/s --size 8K"));
	EQ_STR(args.coll, "all_reduce");
	EQ_STR(args.name, "ring");
	EQ(args.rank_count, 64);
	EQ(args.latency_s * 1e9 + 0.5, 2000);
	EQ(args.bandwidth, 50000000000);
	EQ(args.bytes, 8192);
	TRUE(!args.hosts);
	TRUE(parse(&args, "all_reduce ring --hosts 9x1 --hosts 3+5"));
	EQ(args.rank_count, 8);
	EQ(args.hosts->host_count, 2);
	sched_hosts_destroy(args.hosts);
	return 0;
}
