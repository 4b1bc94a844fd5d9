/*
 * Programs look at ncclGetVersion() and then call what that release has. Each of these
 * calls works, or fails as the program expects it to: docs/versions.md lists them.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nccl.h"
#include "nccl_device.h"
#include "test.h"

static ncclComm_t comm;
static float in[4] = {1, 2, 3, 4}, out[4];

/* What a process says that was started with this value; NULL: unset. */
static int reported(const char *value)
{
	int status, version = 0, ends[2];
	pid_t pid;

	EQ(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		if (value)
			setenv("WEFT_REPORT_VERSION", value, 1);
		EQ(ncclGetVersion(&version), ncclSuccess);
		_exit(write(ends[1], &version, sizeof(version)) != sizeof(version));
	}
	EQ(waitpid(pid, &status, 0), pid);
	EQ(status, 0);
	EQ(read(ends[0], &version, sizeof(version)), sizeof(version));
	close(ends[0]);
	close(ends[1]);
	return version;
}

static void test_version(void)
{
	EQ(reported(NULL), 23203);
	EQ(reported("22809"), 22809);
	EQ(reported("0"), 23203);
	EQ(reported("nonsense"), 23203);
}

/* vLLM and SGLang, from 2.29.7: memory is given back while a model sleeps. */
static void test_sleep(void)
{
	uint64_t before = 1, value = 1;

	EQ(ncclCommMemStats(comm, ncclStatGpuMemTotal, &before), ncclSuccess);
	EQ(ncclCommMemStats(comm, ncclStatGpuMemSuspend, &value), ncclSuccess);
	EQ(value, 0);
	EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclSuccess);
	EQ(ncclCommResume(comm), ncclSuccess);
	EQ(ncclAllReduce(in, out, 4, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
	EQ(ncclCommMemStats(comm, ncclStatGpuMemPersist, &value), ncclSuccess);
	EQ(value, before);
	/* one that sleeps can be ended */
	EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclSuccess);
	EQ(ncclCommDestroy(comm), ncclSuccess);
	EQ(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
}

/* JAX, from 2.29: properties first, of whatever size its header knew; then puts. */
static void test_properties(void)
{
	static const size_t sizes[] = {56, 144, 152};
	struct {
		ncclCommProperties_t props;
		unsigned char more[64];
	} room;

	for (int i = 0; i < 3; i++) {
		const ncclCommProperties_t fresh = NCCL_COMM_PROPERTIES_INITIALIZER;

		memset(&room, 0xa5, sizeof(room));
		memcpy(&room, &fresh, 16);
		room.props.size = sizes[i];
		EQ(ncclCommQueryProperties(comm, &room.props), ncclSuccess);
		EQ(room.props.size, sizes[i]);
		EQ(room.props.nRanks, 1);
		EQ(room.props.hostRmaSupport, true);
		EQ(room.props.deviceApiSupport, false);
		EQ(room.props.ginType, NCCL_GIN_TYPE_NONE);
		for (size_t byte = sizes[i]; byte < sizeof(room); byte++)
			EQ(((unsigned char *)&room)[byte], 0xa5);
		if (sizes[i] < 144)
			continue;
		TRUE(room.props.commHash);
		EQ(room.props.ginConnectionType, NCCL_GIN_CONNECTION_NONE);
		EQ(room.props.ginSupport[NCCL_GIN_TYPE_PROXY], false);
		if (sizes[i] == 152)
			TRUE(!room.props.cftSupport && !room.props.cftCountedSupport);
	}
}

static void test_put(void)
{
	ncclWaitSignalDesc_t desc = {1, 0, 0, 0};
	ncclWindow_t window = NULL;
	void *memory;

	EQ(ncclMemAlloc(&memory, 4096), ncclSuccess);
	EQ(ncclCommWindowRegister(comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC),
		ncclSuccess);
	TRUE(window);
	EQ(ncclPutSignal(in, 4, ncclFloat, 0, window, 0, 0, 0, 0, comm, NULL),
		ncclSuccess);
	EQ(ncclWaitSignal(1, &desc, comm, NULL), ncclSuccess);
	TRUE(!memcmp(memory, in, sizeof(in)));
	EQ(ncclCommWindowDeregister(comm, window), ncclSuccess);
	EQ(ncclCommWindowDeregister(comm, NULL), ncclSuccess); /* where there are none */
	EQ(ncclMemFree(memory), ncclSuccess);
}

/* nccl-tests -D, JAX's and PyTorch's kernels of their own: refused before anything. */
static void test_kernels(void)
{
	ncclDevCommRequirements_t wishes = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
	ncclDevComm_t device;
	ncclCftLeId endpoint;
	size_t offset;
	void *ptr;

	EQ(wishes.size, 120);
	EQ(wishes.magic, 0xcafebeef);
	EQ(ncclDevCommCreate(comm, &wishes, &device), ncclInvalidUsage);
	TRUE(strstr(ncclGetLastError(NULL), "kernels that communicate by themselves"));
	EQ(ncclGetPeerDevicePointer(NULL, 0, 0, &ptr), ncclInvalidUsage);
	EQ(ncclGetLsaMultimemDevicePointer(NULL, 0, &ptr), ncclInvalidUsage);
	EQ(ncclGetPeerDeviceLeInfo(NULL, 0, 0, &endpoint, &offset), ncclInvalidUsage);
	EQ(ncclGetMultimemDeviceLeInfo(NULL, 0, &endpoint, &offset), ncclInvalidUsage);
	EQ(ncclGetCftDeviceLeInfo(
		   NULL, 0, 0, ncclTeamCft(comm, NCCL_CFT_TEAM_FLAT), &endpoint, &offset),
		ncclInvalidUsage);
	EQ(ncclTeamCft(comm, NCCL_CFT_TEAM_FLAT).nRanks, 0);
	TRUE(strstr(ncclGetLastError(NULL), "cftSupport"));
	EQ(ncclTeamCftMultimem(comm).nRanks, 0);
	EQ(ncclGinOutboxCreateRequirement(1, 7, NULL, NULL), ncclInvalidUsage);
	EQ(ncclGinInboxA2ACreateRequirement(ncclTeamWorld(comm), 1, 7, NULL, NULL),
		ncclInvalidUsage);
}

/* TensorRT-LLM, from 2.31.2: the algorithm by name. PyTorch, from 2.31.2: CFT by the
 * configuration, which is no failure where the hardware has none. */
static void test_later(void)
{
	ncclCollConfig_t ring = NCCL_COLLCONFIG_INITIALIZER;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclUniqueId id;
	ncclComm_t other;

	ring.algSelection = "RING";
	EQ(ncclAllReduceConfig(in, out, 4, ncclFloat, ncclSum, comm, NULL, &ring),
		ncclSuccess);
	config.hostCftMode = ncclHostCftEnable;
	config.nvlsHostMode = ncclNvlsHostModeDisable;
	EQ(ncclGetUniqueId(&id), ncclSuccess);
	EQ(ncclCommInitRankConfig(&other, 1, id, 0, &config), ncclSuccess);
	EQ(ncclCommDestroy(other), ncclSuccess);
}

/* PyTorch changes NCCL_DEBUG and says so by a call that no header declares for it. */
static void test_debug(void)
{
	ncclResetDebugInitInternal();
	ncclResetDebugInit();
}

int main(void)
{
	test_version();
	EQ(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	test_sleep();
	test_properties();
	test_put();
	test_kernels();
	test_later();
	test_debug();
	EQ(ncclCommDestroy(comm), ncclSuccess);
	return 0;
}
