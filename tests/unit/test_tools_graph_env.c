/* A variable of NCCL's has its effect, or it is said once that it has none here. */
#include "weft/graph_env.h"

#include <unistd.h>

#include "test.h"

static char said[4096];

/* What is said on standard error with this environment. */
static const char *tell(const char *machine, const char *const *settings)
{
	char *names[] = {(char *)(uintptr_t)machine};
	struct machine_args args = {.command = "graph", .names = names, .name_count = 1};
	FILE *file = tmpfile();
	size_t bytes;
	int kept = dup(2);

	clearenv();
	for (; *settings; settings++)
		EQ(putenv((char *)(uintptr_t)*settings), 0);
	TRUE(file && kept >= 0);
	fflush(stderr);
	EQ(dup2(fileno(file), 2), 2);
	graph_env_tell(&args);
	fflush(stderr);
	EQ(dup2(kept, 2), 2);
	close(kept);
	rewind(file);
	bytes = fread(said, 1, sizeof(said) - 1, file);
	said[bytes] = 0;
	fclose(file);
	return said;
}
#define TELL(machine, ...) tell(machine, (const char *const[]){__VA_ARGS__, NULL})

/* One of each line of the table of variables that users know. */
static void every_class(void)
{
	static const struct {
		const char *name;
		enum graph_env_why why;
	} rows[] = {{"NCCL_DEBUG", GRAPH_ENV_COUNTS},
		{"NCCL_ENV_PLUGIN", GRAPH_ENV_COUNTS},
		{"NCCL_P2P_LEVEL", GRAPH_ENV_COUNTS},
		{"NCCL_MAX_NCHANNELS", GRAPH_ENV_COUNTS},
		{"NCCL_MIN_NCHANNELS", GRAPH_ENV_COUNTS},
		{"NCCL_MAX_CTAS", GRAPH_ENV_COUNTS}, {"NCCL_MIN_CTAS", GRAPH_ENV_COUNTS},
		{"NCCL_MAX_P2P_NCHANNELS", GRAPH_ENV_COUNTS},
		{"NCCL_NVLS_CHUNKSIZE", GRAPH_ENV_COUNTS},
		{"NCCL_COLLNET_NODE_THRESHOLD", GRAPH_ENV_COUNTS},
		{"NCCL_GRAPH_FILE", GRAPH_ENV_COUNTS},
		{"NCCL_BUFFSIZE", GRAPH_ENV_RUNNING}, {"NCCL_IB_TC", GRAPH_ENV_RUNNING},
		{"NCCL_COMM_BLOCKING", GRAPH_ENV_RUNNING},
		{"NCCL_CTA_POLICY", GRAPH_ENV_MODEL}, {"NCCL_NET", GRAPH_ENV_SEEN},
		{"NCCL_TUNER_PLUGIN", GRAPH_ENV_PLUGIN},
		{"NCCL_NET_FORCE_MERGE", GRAPH_ENV_MODEL},
		{"NCCL_COLLNET_ENABLE", GRAPH_ENV_COLLNET},
		{"NCCL_MNNVL_UUID", GRAPH_ENV_MNNVL}, {"NCCL_IB_HCA", GRAPH_ENV_SEEN},
		{"NCCL_TOPO_FILE", GRAPH_ENV_SEEN},
		{"NCCL_P2P_DIRECT_READ", GRAPH_ENV_GONE},
		{"NCCL_LL_THRESHOLD", GRAPH_ENV_GONE}, {"NCCL_NE", GRAPH_ENV_UNKNOWN},
		{"NCCL_NONSENSE", GRAPH_ENV_UNKNOWN}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (graph_env_why(rows[i].name, false) != rows[i].why) {
			fprintf(stderr, "%s: %d is not %d\n", rows[i].name,
				graph_env_why(rows[i].name, false), rows[i].why);
			exit(1);
		}
	EQ(graph_env_why("NCCL_IB_HCA", true), GRAPH_ENV_COUNTS);
	EQ(graph_env_why("NCCL_NET_PLUGIN", true), GRAPH_ENV_COUNTS);
}

static void said_once(void)
{
	EQ_STR(TELL("dgx-h100", "HOME=/root", "NCCL_MAX_CTAS=4", "NCCL_ALGO=Ring",
		       "NCCL_TESTS_DEVICE=1"),
		"");
	EQ_STR(TELL("dgx-h100", "NCCL_IB_TC=106", "NCCL_BUFFSIZE=8388608", "NCCL_TREE="),
		"weft graph: without effect here: NCCL_BUFFSIZE, NCCL_IB_TC (no path, "
		"graph, channel or choice depends on it)\n");
	EQ_STR(TELL("dgx-h100", "NCCL_COLLNET_ENABLE=1", "NCCL_IB_HCA=mlx5"),
		"weft graph: without effect here: NCCL_COLLNET_ENABLE (no plugin is "
		"loaded; --collnet supposes one)\n"
		"weft graph: without effect here: NCCL_IB_HCA (it is about the machine "
		"one runs on, and others are named)\n");
	EQ_STR(TELL("this", "NCCL_IB_HCA=mlx5"), "");
}

int main(void)
{
	every_class();
	said_once();
	return 0;
}
