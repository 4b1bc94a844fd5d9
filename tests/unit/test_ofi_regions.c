/* The tuner of the libfabric plugin: what AWS's tables say at every size and number of
 * nodes that they were read at, and where it has no opinion. */
#include <ctype.h>

#include "platform.h"
#include "test.h"
#include "tune/regions.h"

static const struct {
	const char *word;
	enum algo algo;
	enum proto proto;
} words[] = {
	{"TREE/LL", ALGO_TREE, PROTO_LL},
	{"TREE/LL128", ALGO_TREE, PROTO_LL128},
	{"TREE/SIMPLE", ALGO_TREE, PROTO_SIMPLE},
	{"RING/LL", ALGO_RING, PROTO_LL},
	{"RING/LL128", ALGO_RING, PROTO_LL128},
	{"RING/SIMPLE", ALGO_RING, PROTO_SIMPLE},
	{"NVLS_TREE/SIMPLE", ALGO_NVLS_TREE, PROTO_SIMPLE},
	{"PAT/SIMPLE", ALGO_PAT, PROTO_SIMPLE},
};

static struct region_question question;

static void check(uint64_t bytes, const char *word)
{
	enum algo algo = ALGO_COUNT;
	enum proto proto = PROTO_COUNT;
	bool has_opinion;

	question.bytes = bytes;
	has_opinion = region_choose(&question, &algo, &proto);
	EQ(has_opinion, strcmp(word, "-") != 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(word, words[i].word)) {
			EQ(algo, words[i].algo);
			EQ(proto, words[i].proto);
			return;
		}
	EQ_STR(word, "-");
}

/* ('p5en', '8', 'AllReduce') .. */
static void key_read(const char *line)
{
	char machine[16], func[16];
	unsigned ranks;

	EQ(sscanf(line, "## ('%15[^']', '%u', '%15[^']')", machine, &ranks, func), 3);
	question.machine = !strcmp(machine, "p5en")	? REGION_P5EN
			   : !strcmp(machine, "p5_p5e") ? REGION_P5
			   : !strcmp(machine, "p6")	? REGION_P6_B200
							: REGION_P6_B300;
	question.ranks_per_node = ranks;
	question.func = !strcmp(func, "AllReduce")   ? MODEL_ALL_REDUCE
			: !strcmp(func, "AllGather") ? MODEL_ALL_GATHER
						     : MODEL_REDUCE_SCATTER;
}

/* <26.9M> */
static uint64_t size_read(const char *text)
{
	char *unit;
	double number = strtod(text + 1, &unit);

	return (uint64_t)(number * (*unit == 'K'	  ? 1 << 10
					   : *unit == 'M' ? 1 << 20
							  : 1 << 30));
}

/* In the middle of every part, and well inside its ends. */
static int row_check(char *line)
{
	uint64_t first = 1, end;
	char *word = strtok(strchr(line, ':') + 1, " \n"), *size;
	int count = 0;

	question.node_count = (uint32_t)strtoul(line, NULL, 10);
	for (; word; word = strtok(NULL, " \n")) {
		size = strtok(NULL, " \n");
		end = size ? size_read(size) : first * 64;
		/* sizes in the file have three digits: what is narrower says nothing */
		if (end > first + first / 50) {
			check(first + first / 100 + 1, word);
			check(first + (end - first) / 2, word);
			check(end - end / 100, word);
			count++;
		}
		first = end;
	}
	return count;
}

static int file_check(void)
{
	FILE *file = fopen(WEFT_SHARED_DATA "/aws-tuner-decisions.txt", "r");
	char line[1024];
	int count = 0;

	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "## (", 4))
			key_read(line);
		else if (strstr(line, " nodes:"))
			count += row_check(line);
	}
	fclose(file);
	return count;
}

/* Known without the file. */
static void test_fixed(void)
{
	question = (struct region_question){.machine = region_machine("p5en.48xlarge"),
		.node_count = 16,
		.ranks_per_node = 8,
		.func = MODEL_ALL_REDUCE};
	check(1 << 10, "TREE/LL");
	check(100 << 20, "TREE/LL128");
	check(1ull << 30, "NVLS_TREE/SIMPLE");
	check(4ull << 30, "RING/SIMPLE");
	question.node_count = 24; /* between two: 124 MiB and 147 MiB */
	check(130ull << 20, "TREE/LL128");
	check(143ull << 20, "NVLS_TREE/SIMPLE");
	question.node_count = 1000;
	check(1 << 10, "TREE/LL");
	question.node_count = 2;
	check(1 << 20, "-");
	question.node_count = 16;
	question.ranks_per_node = 4;
	check(1 << 20, "-");
	question.ranks_per_node = 8;
	question.func = MODEL_BROADCAST;
	check(1 << 20, "-");
	question.func = MODEL_ALL_REDUCE;
	question.machine = region_machine("p4d.24xlarge");
	check(1 << 20, "-");
}

static void test_platforms(void)
{
	EQ_STR(platform_of("p4d.24xlarge")->name, "p4d.24xlarge");
	EQ_STR(platform_of("p5.48xlarge")->name, "p5/p5e");
	EQ_STR(platform_of("p5e.48xlarge")->name, "p5/p5e");
	EQ_STR(platform_of("p5.4xlarge")->name, "p5.4xlarge");
	EQ_STR(platform_of("p5en.48xlarge")->name, "p5en");
	EQ_STR(platform_of("p6-b300.48xlarge")->name, "p6-b300");
	EQ_STR(platform_of("p6e-gb200.36xlarge")->name, "p6e-gb200");
	EQ_STR(platform_of("p7.48xlarge")->name, "p-series");
	EQ_STR(platform_of("p10.metal")->name, "p-series");
	EQ_STR(platform_of("trn2.48xlarge")->name, "Trainium");
	TRUE(!platform_of("g6e.48xlarge"));
	TRUE(!platform_of("p3.16xlarge"));
	TRUE(!platform_of(""));
	EQ(platform_of("p3dn.24xlarge")->latency_us, 150);
	EQ(platform_of("p5en.48xlarge")->latency_us, 35);
}

int main(void)
{
	int count;

	test_fixed();
	test_platforms();
	count = file_check();
	printf("%d parts of the tables\n", count);
	TRUE(!count || count > 400);
	return 0;
}
