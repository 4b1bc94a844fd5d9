/*
 * The header's values, which are other people's binaries', and that nccl* can be taken
 * over by a tool that calls pnccl*.
 */
#include "nccl.h"
#include "test.h"

static int intercepted;

/* The program's own definition wins over the library's weak one. */
ncclResult_t ncclGetVersion(int *version)
{
	intercepted++;
	return pncclGetVersion(version);
}

int main(void)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclSimInfo_t sim = NCCL_SIM_INFO_INITIALIZER;
	int version = 0;

	EQ(NCCL_VERSION(2, 8, 4), 2804);
	EQ(NCCL_VERSION(2, 9, 6), 20906);
	EQ(NCCL_VERSION(2, 30, 7), 23007);
	EQ(NCCL_VERSION_CODE, 23203);
	EQ(sizeof(ncclUniqueId), 128);
	EQ(sizeof(ncclConfig_t), 120);
	EQ(sizeof(ncclSimInfo_t), 24);
	EQ(config.size, 120);
	EQ(config.magic, 0xcafebeef);
	EQ(config.version, 23203);
	EQ(config.blocking, NCCL_CONFIG_UNDEF_INT);
	EQ(config.graphStreamOrdering, NCCL_CONFIG_UNDEF_INT);
	EQ(config.launchOrderImplicit, NCCL_CONFIG_UNDEF_INT);
	EQ(config.nvlsHostMode, NCCL_CONFIG_UNDEF_INT);
	TRUE(config.netName == NULL && config.commName == NULL);
	EQ(sim.magic, 0x74685283);
	TRUE(sim.estimatedTime < 0);
	EQ(ncclTimeout, 8);
	EQ(ncclNumTypes, 12);
	EQ(ncclNumOps, 5);
	EQ(ncclMaxRedOp, 0x7fffffff);
	EQ(ncclHostCftFallback, 3);
	EQ(ncclNvlsHostModeDisable, INT_MAX);
	EQ(NCCL_WIN_GIN_ONLY | NCCL_WIN_CFT_COUNTED, 12);
	EQ(ncclGetVersion(&version), ncclSuccess);
	EQ(version, NCCL_VERSION_CODE);
	EQ(intercepted, 1);
	return 0;
}
