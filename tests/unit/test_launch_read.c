/* Every launcher's variables are understood, the innermost counts, and what does not fit
 * gives a sentence that says what is missing. The texts are what the launchers really
 * set. */
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "launch/launch.h"
#include "launch/nodes.h"
#include "test.h"

/* NAME=VALUE texts, NULL at the end. */
static const char *fixture_get(const void *arg, const char *name)
{
	size_t bytes = strlen(name);

	for (const char *const *text = arg; *text; text++)
		if (!strncmp(*text, name, bytes) && (*text)[bytes] == '=')
			return *text + bytes + 1;
	return NULL;
}

static enum err read_of(const char *const *fixture, struct launch *launch)
{
	struct launch_env env = {fixture_get, fixture};

	return launch_read(&env, launch);
}

static struct launch good(const char *const *fixture, enum launch_kind kind, int rank,
	int rank_count, enum launch_travel travel)
{
	struct launch launch = {0};

	if (read_of(fixture, &launch))
		EQ_STR(err_last(), fixture[0]);
	EQ_STR(launch_name(launch.kind), launch_name(kind));
	EQ(launch.rank, rank);
	EQ(launch.rank_count, rank_count);
	EQ(launch.travel, travel);
	return launch;
}

static void bad(const char *const *fixture, const char *part)
{
	struct launch launch = {.rank = 77};

	if (!read_of(fixture, &launch) || !strstr(err_last(), part))
		EQ_STR(err_last(), part);
	EQ(launch.rank, 77); /* untouched */
}

static void test_openmpi(void)
{
	static const char *const env[] = {"OMPI_COMM_WORLD_RANK=1",
		"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
		"OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_ess_base_jobid=1412628481",
		"PMIX_NAMESPACE=1412628481", "PMIX_RANK=1", "PMIX_VERSION=4.2.2rc2",
		"OMPI_FILE_LOCATION=/tmp/ompi.vm.0/pid.14541/0/0", NULL};
	static const char *const one_host[] = {"OMPI_COMM_WORLD_RANK=1",
		"OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
		"OMPI_COMM_WORLD_LOCAL_SIZE=2", "OMPI_MCA_ess_base_jobid=7", NULL};
	static const char *const no_way[] = {"OMPI_COMM_WORLD_RANK=1",
		"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
		"OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL};
	static const char *const half[] = {"OMPI_COMM_WORLD_RANK=1", NULL};
	static const char *const other_half[] = {"OMPI_COMM_WORLD_SIZE=2", NULL};
	struct launch launch = good(env, LAUNCH_OPENMPI, 1, 4, TRAVEL_PMIX);

	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 2);
	launch = good(one_host, LAUNCH_OPENMPI, 1, 2, TRAVEL_FILE);
	TRUE(launch.is_host_file);
	TRUE(!strncmp(launch.path, "/tmp/weft-id-", 13));
	bad(no_way, "PMIX_RANK and PMIX_NAMESPACE are not both set");
	bad(half, "OMPI_COMM_WORLD_RANK is set and OMPI_COMM_WORLD_SIZE is not set");
	bad(other_half,
		"OMPI_COMM_WORLD_SIZE is set and OMPI_COMM_WORLD_RANK is not set");
}

static void test_pmi(void)
{
	static const char *const hydra[] = {"PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=9",
		"MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", "HYDI_CONTROL_FD=6",
		"PMI_PROCESS_MAPPING=(vector,(0,2,2))", NULL};
	static const char *const slurm[] = {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=11",
		"PMI_JOBID=15.0", "SLURM_JOB_ID=15", "SLURM_STEP_ID=0", "SLURM_PROCID=1",
		"SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1", "SLURM_NODEID=0",
		"SLURM_STEP_TASKS_PER_NODE=2", "SLURM_STEP_NODELIST=vm", NULL};
	static const char *const no_fd[] = {"PMI_RANK=1", "PMI_SIZE=2", NULL};
	static const char *const odd_fd[] = {
		"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=-1", NULL};
	static const char *const port[] = {"PMI_PORT=vm:43111", "PMI_ID=3",
		"MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", NULL};
	static const char *const both[] = {"PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=9",
		"PMI_PORT=vm:43111", "PMI_ID=3", NULL};
	static const char *const port_alone[] = {"PMI_PORT=vm:43111", "PMI_RANK=1", NULL};
	static const char *const odd_id[] = {"PMI_PORT=vm:43111", "PMI_ID=x", NULL};
	struct launch launch = good(hydra, LAUNCH_PMI, 3, 4, TRAVEL_PMI);

	EQ(launch.pmi_fd, 9);
	TRUE(!launch.is_pmi2_first);
	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 2);
	launch = good(slurm, LAUNCH_PMI, 1, 2, TRAVEL_PMI);
	TRUE(launch.is_pmi2_first);
	EQ_STR(launch.pmi_job, "15.0");
	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 2);
	bad(no_fd, "PMI_FD is not set");
	bad(odd_fd, "PMI_FD is not set");
	bad(port_alone, "PMI_RANK is set and PMI_SIZE is not set");
	bad(odd_id, "PMI_ID is 'x' and should be a whole number");
	launch = good(port, LAUNCH_PMI, 3, 0, TRAVEL_PMI);
	EQ(launch.pmi_fd, -1);
	EQ_STR(launch.pmi_port, "vm:43111");
	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 2);
	launch = good(both, LAUNCH_PMI, 3, 4, TRAVEL_PMI); /* as MPICH itself chooses */
	EQ(launch.pmi_fd, 9);
	EQ_STR(launch.pmi_port, "");
}

static void test_pmix(void)
{
	static const char *const slurm[] = {"PMIX_RANK=2",
		"PMIX_NAMESPACE=slurm.pmix.9.0", "SLURM_PROCID=2",
		"SLURM_STEP_NUM_TASKS=4", "SLURM_LOCALID=0", "SLURM_NODEID=1",
		"SLURM_STEP_TASKS_PER_NODE=2(x2)", NULL};
	static const char *const prte[] = {
		"PMIX_RANK=2", "PMIX_NAMESPACE=prte-7@1", NULL};
	struct launch launch = good(slurm, LAUNCH_PMIX, 2, 4, TRAVEL_PMIX);

	EQ(launch.local_rank, 0);
	EQ(launch.local_count, 2);
	good(prte, LAUNCH_PMIX, 2, 0, TRAVEL_PMIX); /* the library knows how many */
}

static void test_slurm(void)
{
	static const char *const task[] = {"SLURM_JOB_ID=15", "SLURM_STEP_ID=0",
		"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=7", "SLURM_NTASKS=7",
		"SLURM_LOCALID=1", "SLURM_NODEID=2", "SLURM_STEP_TASKS_PER_NODE=2(x2),3",
		"SLURM_STEP_NODELIST=gpu[07-08,12]", NULL};
	static const char *const other_job[] = {"SLURM_JOB_ID=16", "SLURM_STEP_ID=0",
		"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=7",
		"SLURM_STEP_NODELIST=gpu[07-08,12]", NULL};
	/* a batch script, before srun, is rank 0 of nothing */
	static const char *const batch[] = {"SLURM_JOB_ID=15", "SLURM_PROCID=0",
		"SLURM_NTASKS=8", "SLURM_LOCALID=0", "SLURM_NODEID=0",
		"SLURM_JOB_NODELIST=gpu[07-08]", NULL};
	static const char *const no_list[] = {
		"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", NULL};
	static const char *const odd_list[] = {"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2",
		"SLURM_STEP_NODELIST=gpu[07", NULL};
	static const char *const half[] = {"SLURM_STEP_NUM_TASKS=2", NULL};
	struct launch launch = good(task, LAUNCH_SLURM, 5, 7, TRAVEL_TCP), other;

	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 3);
	EQ_STR(launch.master, "gpu07");
	TRUE(launch.port >= LAUNCH_PORT_FIRST &&
		launch.port < LAUNCH_PORT_FIRST + LAUNCH_PORT_SPAN);
	other = good(other_job, LAUNCH_SLURM, 0, 7, TRAVEL_TCP);
	TRUE(strcmp(other.job, launch.job));
	TRUE(other.port != launch.port);
	good(batch, LAUNCH_ALONE, 0, 1, TRAVEL_NONE);
	bad(no_list, "SLURM_STEP_NODELIST is not set");
	bad(odd_list, "'gpu[07', which is no list of hosts");
	bad(half, "SLURM_PROCID is not set");
}

static void test_torchrun(void)
{
	static const char *const env[] = {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1",
		"LOCAL_WORLD_SIZE=2", "GROUP_RANK=1", "MASTER_ADDR=10.0.0.7",
		"MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=none",
		"TORCHELASTIC_RESTART_COUNT=0", "PET_NNODES=2", "PET_NODE_RANK=1", NULL};
	static const char *const again[] = {"RANK=3", "WORLD_SIZE=4",
		"MASTER_ADDR=10.0.0.7", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=none",
		"TORCHELASTIC_RESTART_COUNT=1", NULL};
	static const char *const half[] = {"TORCHELASTIC_RUN_ID=x", "RANK=0", NULL};
	static const char *const by_hand[] = {"RANK=1", "WORLD_SIZE=2",
		"MASTER_ADDR=fd77::1", "MASTER_PORT=29500", NULL};
	static const char *const no_master[] = {"RANK=1", "WORLD_SIZE=2", NULL};
	static const char *const pet[] = {"PET_NNODES=2", "PET_NODE_RANK=1",
		"PET_NPROC_PER_NODE=8", "PET_MASTER_ADDR=job-node-0-0.job",
		"PET_MASTER_PORT=29400", NULL};
	static const char *const rank_only[] = {"RANK=1", NULL};
	static const char *const count_only[] = {"WORLD_SIZE=2", NULL};
	struct launch launch = good(env, LAUNCH_TORCHRUN, 3, 4, TRAVEL_TCP), other;

	EQ(launch.local_rank, 1);
	EQ(launch.local_count, 2);
	EQ_STR(launch.master, "10.0.0.7");
	TRUE(launch.port != 29500); /* the store's */
	other = good(again, LAUNCH_TORCHRUN, 3, 4, TRAVEL_TCP);
	TRUE(strcmp(other.job, launch.job)); /* a restart is another meeting */
	bad(half, "WORLD_SIZE is not set");
	launch = good(by_hand, LAUNCH_ENV, 1, 2, TRAVEL_TCP);
	EQ_STR(launch.master, "fd77::1");
	EQ(launch.local_rank, -1);
	EQ(launch.local_count, -1);
	bad(no_master, "MASTER_ADDR is not set");
	launch = good(pet, LAUNCH_PET, 1, 2, TRAVEL_TCP);
	EQ_STR(launch.master, "job-node-0-0.job");
	bad(rank_only, "RANK is set and WORLD_SIZE is not set");
	bad(count_only, "WORLD_SIZE is set and RANK is not set");
}

static void test_kubernetes(void)
{
	static const char *const env[] = {"JOB_COMPLETION_INDEX=2", "WORLD_SIZE=4",
		"MASTER_ADDR=train-0.train", "HOSTNAME=train-2", NULL};
	static const char *const bare[] = {"JOB_COMPLETION_INDEX=2", NULL};
	static const char *const no_master[] = {
		"JOB_COMPLETION_INDEX=2", "WORLD_SIZE=4", NULL};
	struct launch launch = good(env, LAUNCH_KUBERNETES, 2, 4, TRAVEL_TCP);

	EQ_STR(launch.master, "train-0.train");
	bad(bare, "JOB_COMPLETION_INDEX is set and WORLD_SIZE is not set");
	bad(no_master, "MASTER_ADDR is not set");
}

static void test_weft(void)
{
	static const char *const env[] = {"WEFT_RANK=1", "WEFT_RANKS=2",
		"WEFT_LOCAL_RANK=1", "WEFT_LOCAL_RANKS=2", "PMI_RANK=1", "PMI_SIZE=2",
		"PMI_FD=5", "RANK=1", "WORLD_SIZE=2", NULL};
	static const char *const by_hand[] = {
		"WEFT_RANK=1", "WEFT_RANKS=2", "WEFT_MASTER=[fd77::1]:4000", NULL};
	static const char *const by_file[] = {
		"WEFT_RANK=1", "WEFT_RANKS=2", "WEFT_ID_FILE=/shared/id", NULL};
	static const char *const by_id[] = {
		"WEFT_RANK=1", "WEFT_RANKS=2", "NCCL_COMM_ID=10.0.0.1:4000", NULL};
	static const char *const odd_port[] = {
		"WEFT_RANK=1", "WEFT_RANKS=2", "WEFT_MASTER=a:99999", NULL};
	struct launch launch = good(env, LAUNCH_WEFT, 1, 2, TRAVEL_PMI);

	EQ(launch.local_rank, 1);
	EQ(launch.pmi_fd, 5);
	launch = good(by_hand, LAUNCH_WEFT, 1, 2, TRAVEL_TCP);
	EQ_STR(launch.master, "fd77::1");
	EQ(launch.port, 4000);
	TRUE(launch.is_port_given);
	launch = good(by_file, LAUNCH_WEFT, 1, 2, TRAVEL_FILE);
	EQ_STR(launch.path, "/shared/id");
	good(by_id, LAUNCH_WEFT, 1, 2, TRAVEL_COMM_ID);
	bad(odd_port, "its port should be 1 to 65535");
}

/* Two launchers at once. */
static void test_order(void)
{
	static const char *const mpi_in_slurm[] = {"OMPI_COMM_WORLD_RANK=3",
		"OMPI_COMM_WORLD_SIZE=4", "PMIX_RANK=3", "PMIX_NAMESPACE=1",
		"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=a",
		NULL};
	static const char *const torch_in_slurm[] = {"TORCHELASTIC_RUN_ID=7", "RANK=3",
		"WORLD_SIZE=4", "MASTER_ADDR=a", "MASTER_PORT=1", "SLURM_PROCID=0",
		"SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NODELIST=a", NULL};
	static const char *const mpi_in_pod[] = {"RANK=0", "WORLD_SIZE=1",
		"MASTER_ADDR=job-master-0", "PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=4", NULL};
	/* weft run takes out what came before it: Hydra's was set inside */
	static const char *const hydra_in_weft[] = {"WEFT_RANK=0", "WEFT_RANKS=2",
		"PMI_RANK=3", "PMI_SIZE=4", "PMI_FD=4", NULL};
	static const char *const named[] = {"OMPI_COMM_WORLD_RANK=3",
		"OMPI_COMM_WORLD_SIZE=4", "RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=a",
		"WEFT_LAUNCHER=env", NULL};
	static const char *const none[] = {
		"OMPI_COMM_WORLD_RANK=3", "WEFT_LAUNCHER=none", NULL};
	static const char *const unknown[] = {"WEFT_LAUNCHER=lsf", NULL};
	static const char *const nothing[] = {"HOME=/root", NULL};
	static const char *const empty[] = {"RANK=", "WORLD_SIZE=", NULL};

	good(mpi_in_slurm, LAUNCH_OPENMPI, 3, 4, TRAVEL_PMIX);
	good(torch_in_slurm, LAUNCH_TORCHRUN, 3, 4, TRAVEL_TCP);
	good(mpi_in_pod, LAUNCH_PMI, 1, 2, TRAVEL_PMI);
	good(hydra_in_weft, LAUNCH_PMI, 3, 4, TRAVEL_PMI);
	good(named, LAUNCH_ENV, 1, 2, TRAVEL_TCP);
	good(none, LAUNCH_ALONE, 0, 1, TRAVEL_NONE);
	good(nothing, LAUNCH_ALONE, 0, 1, TRAVEL_NONE);
	good(empty, LAUNCH_ALONE, 0, 1, TRAVEL_NONE);
	bad(unknown, "WEFT_LAUNCHER is lsf; there are none torchrun openmpi");
}

/* Numbers that are none, and none that fits. */
static void test_hostile(void)
{
	static const char *const odd[] = {
		"x", "-1", "+1", " 1", "1 ", "0x1", "1e3", "99999999", "1\n", "%s%n"};
	char rank[64], count[64];
	const char *fixture[] = {rank, count, "MASTER_ADDR=a", NULL};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		snprintf(rank, sizeof(rank), "RANK=%s", odd[i]);
		snprintf(count, sizeof(count), "WORLD_SIZE=2");
		bad(fixture, "should be a whole number");
		snprintf(rank, sizeof(rank), "RANK=1");
		snprintf(count, sizeof(count), "WORLD_SIZE=%s", odd[i]);
		bad(fixture, "should be a whole number");
	}
	snprintf(count, sizeof(count), "WORLD_SIZE=1");
	bad(fixture, "ranks count from 0");
	snprintf(count, sizeof(count), "WORLD_SIZE=0");
	bad(fixture, "should be 1 to 65536");
	snprintf(count, sizeof(count), "WORLD_SIZE=65537");
	bad(fixture, "should be 1 to 65536");
}

/* Any text, under any of the names: an answer or a sentence. */
static void test_random(void)
{
	static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
		"LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
		"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
		"PMI_FD", "PMI_PORT", "PMI_ID", "PMIX_RANK", "PMIX_NAMESPACE",
		"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",
		"SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE", "WEFT_RANK", "WEFT_RANKS",
		"WEFT_MASTER", "WEFT_ID_FILE", "WEFT_LAUNCHER", "JOB_COMPLETION_INDEX",
		"PET_NODE_RANK", "PET_NNODES"};
	static const char bytes[] = "0123456789[](),:x-a./ \xff";
	enum { NAMES = sizeof(names) / sizeof(names[0]), ROUNDS = 20000, LONG = 3000 };
	static char texts[NAMES][LONG + 64];
	const char *fixture[NAMES + 1];

	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		struct launch launch = {.rank_count = 1};
		int used = 0;

		for (int i = 0; i < NAMES; i++) {
			int length = rand() % 200 ? rand() % 6 : rand() % LONG, at;

			if (rand() % 3)
				continue;
			at = sprintf(texts[used], "%s=", names[i]);
			for (int j = 0; j < length; j++)
				texts[used][at++] =
					bytes[(size_t)rand() % (sizeof(bytes) - 1)];
			texts[used][at] = '\0';
			fixture[used] = texts[used];
			used++;
		}
		fixture[used] = NULL;
		if (!read_of(fixture, &launch))
			TRUE(launch.rank >= 0 &&
				(launch.rank < launch.rank_count || !launch.rank_count));
	}
}

static void test_nodes(void)
{
	static const struct {
		const char *text, *first;
	} lists[] = {{"node1", "node1"}, {"gpu[07-12,20],login1", "gpu07"}, {"a,b", "a"},
		{"r[1-2]n[3-4]", "r1n3"}, {"n[5]", "n5"}, {"n[05,07]x.y-z", "n05x.y-z"},
		{"", NULL}, {",a", NULL}, {"[", NULL}, {"n[", NULL}, {"n[]", NULL},
		{"n[a-b]", NULL}, {"n[1", NULL}, {"n[1-2", NULL}, {"n]", NULL},
		{"a b", NULL}, {"$(x)", NULL}, {"n[1[2]]", NULL}};
	char name[16];
	int tasks = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bool found = nodes_first(lists[i].text, name, sizeof(name));

		EQ(found, lists[i].first != NULL);
		if (found)
			EQ_STR(name, lists[i].first);
	}
	TRUE(!nodes_first("abcdefghijklmnop", name, sizeof(name)));
	TRUE(nodes_first("abcdefghijklmno", name, sizeof(name)));
	TRUE(nodes_tasks("2(x3),1", 0, &tasks) && tasks == 2);
	TRUE(nodes_tasks("2(x3),1", 2, &tasks) && tasks == 2);
	TRUE(nodes_tasks("2(x3),1", 3, &tasks) && tasks == 1);
	TRUE(!nodes_tasks("2(x3),1", 4, &tasks));
	TRUE(!nodes_tasks("2(x3", 3, &tasks));
	TRUE(!nodes_tasks("2(x99999999),1", 3, &tasks));
	TRUE(!nodes_tasks("x", 0, &tasks));
}

int main(void)
{
	test_openmpi();
	test_pmi();
	test_pmix();
	test_slurm();
	test_torchrun();
	test_kubernetes();
	test_weft();
	test_order();
	test_hostile();
	test_random();
	test_nodes();
	return 0;
}
