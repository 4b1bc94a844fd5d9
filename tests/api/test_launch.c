/* weft.h's view of launchers: alone it is one rank; variables that do not fit are refused
 * with a sentence, and mended ones are taken. tests/launch has the launchers themselves.
 */
#include <stdlib.h>
#include <weft.h>

#include "test.h"

static void test_refused(void)
{
	weftLaunch_t launch = {.rank = 77};
	ncclUniqueId id;
	ncclComm_t comm = NULL;

	EQ(weftGetLaunch(NULL), ncclInvalidArgument);
	EQ(weftGetUniqueIdFromEnv(NULL), ncclInvalidArgument);
	EQ(weftInitFromEnv(NULL), ncclInvalidArgument);
	setenv("RANK", "0", 1);
	EQ(weftGetLaunch(&launch), ncclInvalidUsage);
	TRUE(strstr(ncclGetLastError(NULL), "WORLD_SIZE is not set"));
	EQ(launch.rank, 77);
	EQ(weftGetUniqueIdFromEnv(&id), ncclInvalidUsage);
	EQ(weftInitFromEnv(&comm), ncclInvalidUsage);
	EQ(comm == NULL, 1);
	unsetenv("RANK");
}

static void test_alone(void)
{
	ncclUniqueId ids[2];
	weftLaunch_t launch;
	ncclComm_t comms[2];
	int one = 1, sum = 0;

	EQ(weftGetLaunch(&launch), ncclSuccess);
	EQ(launch.rank, 0);
	EQ(launch.nRanks, 1);
	EQ(launch.localRank, 0);
	EQ(launch.nLocalRanks, 1);
	EQ_STR(launch.launcher, "no launcher");
	EQ(weftGetUniqueIdFromEnv(&ids[0]), ncclSuccess);
	EQ(weftGetUniqueIdFromEnv(&ids[1]), ncclSuccess);
	TRUE(memcmp(&ids[0], &ids[1], sizeof(ids[0])));
	for (int i = 0; i < 2; i++) {
		EQ(weftInitFromEnv(&comms[i]), ncclSuccess);
		EQ(ncclAllReduce(&one, &sum, 1, ncclInt, ncclSum, comms[i], NULL),
			ncclSuccess);
		EQ(sum, 1);
	}
	for (int i = 0; i < 2; i++)
		EQ(ncclCommDestroy(comms[i]), ncclSuccess);
}

int main(void)
{
	static const char *const names[] = {"RANK", "WORLD_SIZE", "LOCAL_RANK",
		"TORCHELASTIC_RUN_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
		"PMI_RANK", "PMI_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "WEFT_RANK",
		"WEFT_RANKS", "PET_NODE_RANK", "JOB_COMPLETION_INDEX", "WEFT_LAUNCHER"};

	/* whatever runs the tests is not the launcher of this one */
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	test_refused();
	test_alone();
	return 0;
}
