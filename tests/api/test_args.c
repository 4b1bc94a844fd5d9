/*
 * Every argument check: the code, a sentence about this failure, and the order, by
 * giving several wrong arguments at once.
 */
#include <stdint.h>

#include "nccl.h"
#include "nccl_device.h"
#include "test.h"
#include "weft.h"

static ncclComm_t comm;
static float in[16], out[16];

/* The call failed as it should, and ncclGetLastError() talks about it. */
#define FAILS(call, code, word)                                                          \
	do {                                                                             \
		EQ(call, code);                                                          \
		if (!strstr(ncclGetLastError(comm), word)) {                             \
			fprintf(stderr, "%s:%d: \"%s\" lacks \"%s\"\n", __FILE__,        \
				__LINE__, ncclGetLastError(comm), word);                 \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

static const ncclDataType_t bad_type = (ncclDataType_t)12;
static const ncclRedOp_t bad_op = (ncclRedOp_t)1234567;
static const ncclRedOp_t negative_op = (ncclRedOp_t)-1;

static void test_comm(void)
{
	static uint64_t garbage[4096];
	ncclComm_t fake = (ncclComm_t)(void *)garbage;
	int n;

	FAILS(ncclAllReduce(in, out, 1, bad_type, bad_op, NULL, NULL),
		ncclInvalidArgument, "comm is NULL");
	FAILS(ncclAllReduce(in, out, 1, bad_type, bad_op, fake, NULL),
		ncclInvalidArgument, "corrupted comm");
	FAILS(ncclSend(in, 1, ncclFloat, 99, NULL, NULL), ncclInvalidArgument,
		"comm is NULL");
	FAILS(ncclCommCount(NULL, &n), ncclInvalidArgument, "CommCount: comm is NULL");
	FAILS(ncclCommCount(comm, NULL), ncclInvalidArgument, "NULL");
	FAILS(ncclCommUserRank(NULL, &n), ncclInvalidArgument, "NULL");
	FAILS(ncclCommCuDevice(fake, &n), ncclInvalidArgument, "corrupted comm");
	FAILS(ncclCommGetAsyncError(comm, NULL), ncclInvalidArgument,
		"asyncError is NULL");
	FAILS(ncclCommFinalize(NULL), ncclInvalidArgument, "NULL");
	FAILS(ncclCommDestroy(fake), ncclInvalidArgument, "no communicator");
	FAILS(ncclCommAbort(fake), ncclInvalidArgument, "no communicator");
	EQ(ncclCommDestroy(NULL), ncclSuccess);
	EQ(ncclCommAbort(NULL), ncclSuccess);
	FAILS(ncclCommRevoke(comm, 1), ncclInvalidArgument, "flags");
}

static void test_call(void)
{
	size_t huge = SIZE_MAX / 2;

	/* root, then type, then op, then pointers */
	FAILS(ncclReduce(NULL, NULL, 1, bad_type, bad_op, 1, comm, NULL),
		ncclInvalidArgument, "invalid root 1");
	FAILS(ncclReduce(NULL, NULL, 1, bad_type, bad_op, -1, comm, NULL),
		ncclInvalidArgument, "invalid root -1");
	FAILS(ncclReduce(NULL, NULL, 1, bad_type, bad_op, 0, comm, NULL),
		ncclInvalidArgument, "invalid type 12");
	FAILS(ncclReduce(NULL, NULL, 1, (ncclDataType_t)-1, bad_op, 0, comm, NULL),
		ncclInvalidArgument, "invalid type -1");
	FAILS(ncclReduce(NULL, NULL, 1, ncclFloat, negative_op, 0, comm, NULL),
		ncclInvalidArgument, "invalid reduction operation -1");
	EQ(ncclReduce(NULL, NULL, 1, ncclFloat, bad_op, 0, comm, NULL),
		ncclInvalidArgument);
	FAILS(ncclReduce(NULL, NULL, 1, ncclFloat, ncclSum, 0, comm, NULL),
		ncclInvalidArgument, "sendbuff");
	FAILS(ncclReduce(in, NULL, 1, ncclFloat, ncclSum, 0, comm, NULL),
		ncclInvalidArgument, "recvbuff");
	FAILS(ncclBroadcast(in, out, 1, ncclFloat, 2, comm, NULL), ncclInvalidArgument,
		"root");
	FAILS(ncclBcast(in, 1, ncclFloat, 2, comm, NULL), ncclInvalidArgument, "Bcast");
	FAILS(ncclBcast(NULL, 1, ncclFloat, 0, comm, NULL), ncclInvalidArgument,
		"sendbuff");
	FAILS(ncclGather(in, out, 1, ncclFloat, 2, comm, NULL), ncclInvalidArgument,
		"root");
	FAILS(ncclScatter(in, out, 1, ncclFloat, 2, comm, NULL), ncclInvalidArgument,
		"root");
	FAILS(ncclSend(in, 1, ncclFloat, 5, comm, NULL), ncclInvalidArgument,
		"invalid peer 5");
	FAILS(ncclRecv(out, 1, bad_type, 0, comm, NULL), ncclInvalidArgument, "type");
	FAILS(ncclAllReduce(in, out, huge, ncclDouble, ncclSum, comm, NULL),
		ncclInvalidArgument, "does not fit");
	/* nothing to do is checked, then dropped; pointers of nothing may be anything */
	EQ(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
	FAILS(ncclAllReduce(NULL, NULL, 0, bad_type, ncclSum, comm, NULL),
		ncclInvalidArgument, "type");
}

static void test_init(void)
{
	ncclUniqueId id;
	ncclComm_t made = NULL;
	int wrong[] = {0, -3};

	FAILS(ncclGetVersion(NULL), ncclInvalidArgument, "NULL");
	FAILS(ncclGetUniqueId(NULL), ncclInvalidArgument, "NULL");
	EQ(ncclGetUniqueId(&id), ncclSuccess);
	FAILS(ncclCommInitRank(NULL, 1, id, 0), ncclInvalidArgument, "comm is NULL");
	FAILS(ncclCommInitRank(&made, 0, id, 0), ncclInvalidArgument, "nranks is 0");
	FAILS(ncclCommInitRank(&made, 2, id, 2), ncclInvalidArgument, "2/2");
	FAILS(ncclCommInitRank(&made, 2, id, -1), ncclInvalidArgument, "-1/2");
	FAILS(ncclCommInitRankScalable(&made, 2, 0, 0, &id, NULL), ncclInvalidArgument,
		"nId");
	FAILS(ncclCommInitRankScalable(&made, 1, 0, 2, &id, NULL), ncclInvalidArgument,
		"nId");
	FAILS(ncclCommInitRankScalable(&made, 1, 0, 1, NULL, NULL), ncclInvalidArgument,
		"commIds");
	FAILS(ncclCommInitAll(NULL, 1, NULL), ncclInvalidArgument, "comm is NULL");
	FAILS(ncclCommInitAll(&made, 0, NULL), ncclInvalidArgument, "ndev");
	FAILS(ncclCommInitAll(&made, 2, wrong), ncclInvalidArgument, "devlist[1]");
	TRUE(made == NULL);
}

static void test_derive(void)
{
	ncclComm_t child = NULL;
	ncclUniqueId id;
	int exclude[] = {0};

	FAILS(ncclCommSplit(NULL, 0, 0, &child, NULL), ncclInvalidArgument,
		"comm is NULL");
	FAILS(ncclCommSplit(comm, 0, 0, NULL, NULL), ncclInvalidArgument, "newcomm");
	FAILS(ncclCommSplit(comm, -2, 0, &child, NULL), ncclInvalidArgument,
		"color is -2");
	FAILS(ncclCommShrink(comm, exclude, 0, &child, NULL, 0), ncclInvalidArgument,
		"exclude");
	FAILS(ncclCommShrink(comm, exclude, 1, &child, NULL, 4), ncclInvalidArgument,
		"flags");
	FAILS(ncclCommGetUniqueId(comm, NULL), ncclInvalidArgument, "uniqueId");
	FAILS(ncclCommGetUniqueId(NULL, &id), ncclInvalidArgument, "comm is NULL");
	FAILS(ncclCommGrow(comm, 2, NULL, 0, &child, NULL), ncclInvalidArgument,
		"passes -1");
	FAILS(ncclCommGrow(comm, 1, NULL, -1, &child, NULL), ncclInvalidArgument,
		"nRanks");
	FAILS(ncclCommGrow(NULL, 2, NULL, 1, &child, NULL), ncclInvalidArgument,
		"uniqueId");
	TRUE(child == NULL);
}

static void test_redop(void)
{
	float factor = 2;
	ncclRedOp_t op;

	FAILS(ncclRedOpCreatePreMulSum(
		      NULL, &factor, ncclFloat, ncclScalarHostImmediate, comm),
		ncclInvalidArgument, "op is NULL");
	FAILS(ncclRedOpCreatePreMulSum(
		      &op, NULL, ncclFloat, ncclScalarHostImmediate, comm),
		ncclInvalidArgument, "scalar");
	FAILS(ncclRedOpCreatePreMulSum(
		      &op, &factor, bad_type, ncclScalarHostImmediate, comm),
		ncclInvalidArgument, "type");
	FAILS(ncclRedOpCreatePreMulSum(
		      &op, &factor, ncclFloat, (ncclScalarResidence_t)2, comm),
		ncclInvalidArgument, "residence");
	FAILS(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument, "built in");
	FAILS(ncclRedOpDestroy(negative_op, comm), ncclInvalidArgument, "no operator");
	FAILS(ncclRedOpDestroy(bad_op, NULL), ncclInvalidArgument, "comm is NULL");
	EQ(ncclRedOpDestroy(bad_op, comm), ncclInvalidArgument);
	EQ(ncclRedOpCreatePreMulSum(
		   &op, &factor, ncclFloat, ncclScalarHostImmediate, comm),
		ncclSuccess);
	TRUE((int)op >= ncclNumOps);
	EQ(ncclRedOpDestroy(op, comm), ncclSuccess);
}

static void test_memory(void)
{
	void *ptr = NULL, *handle;
	ncclWindow_t win;
	uint64_t value = 7;

	FAILS(ncclMemAlloc(NULL, 1), ncclInvalidArgument, "ptr");
	FAILS(ncclMemAlloc(&ptr, 0), ncclInvalidArgument, "size is 0");
	EQ(ncclMemFree(NULL), ncclSuccess);
	FAILS(ncclCommRegister(comm, NULL, 1, &handle), ncclInvalidArgument, "buff");
	FAILS(ncclCommRegister(comm, in, 0, &handle), ncclInvalidArgument, "size is 0");
	FAILS(ncclCommRegister(comm, in, SIZE_MAX, &handle), ncclInvalidArgument,
		"more than there are addresses");
	FAILS(ncclCommRegister(comm, in, 4, NULL), ncclInvalidArgument, "handle");
	FAILS(ncclCommDeregister(comm, NULL), ncclInvalidArgument, "handle");
	EQ(ncclMemAlloc(&ptr, 8192), ncclSuccess);
	FAILS(ncclCommWindowRegister(comm, ptr, 4096, NULL, 0), ncclInvalidArgument,
		"win");
	FAILS(ncclCommWindowRegister(comm, ptr, 4096, &win, 16), ncclInvalidArgument,
		"flags");
	FAILS(ncclCommWindowRegister(comm, ptr, 4096, &win, NCCL_WIN_CFT_COUNTED),
		ncclInvalidUsage, "cftCountedSupport");
	FAILS(ncclCommWindowRegister(
		      comm, ptr, 4096, &win, NCCL_WIN_GIN_ONLY | NCCL_WIN_COLL_SYMMETRIC),
		ncclInvalidArgument, "symmetric");
	FAILS(ncclCommWindowRegister(comm, (char *)ptr + 8, 4096, &win, 0),
		ncclInvalidArgument, "multiple of 4096");
	FAILS(ncclWinGetUserPtr(comm, NULL, &handle), ncclInvalidArgument, "win");
	EQ(ncclMemFree(ptr), ncclSuccess);
	FAILS(ncclCommMemStats(comm, (ncclCommMemStat_t)4, &value), ncclInvalidArgument,
		"statistic");
	EQ(ncclCommMemStats(comm, ncclStatGpuMemTotal, &value), ncclSuccess);
	EQ(value, 0);
}

/* In between it takes no calls, and can be asked. */
static void test_suspend(void)
{
	uint64_t value = 7;

	FAILS(ncclCommSuspend(comm, 0), ncclInvalidArgument, "flags");
	FAILS(ncclCommSuspend(NULL, NCCL_SUSPEND_MEM), ncclInvalidArgument, "NULL");
	FAILS(ncclCommResume(comm), ncclInvalidUsage, "not suspended");
	EQ(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclSuccess);
	FAILS(ncclCommSuspend(comm, NCCL_SUSPEND_MEM), ncclInvalidUsage, "already");
	FAILS(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, NULL), ncclInvalidUsage,
		"ncclCommResume");
	EQ(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value), ncclSuccess);
	EQ(value, 1);
	EQ(ncclCommResume(comm), ncclSuccess);
	EQ(ncclCommMemStats(comm, ncclStatGpuMemSuspended, &value), ncclSuccess);
	EQ(value, 0);
	EQ(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
}

static void test_onesided(void)
{
	ncclWindow_t win = (ncclWindow_t)(void *)in;
	ncclWaitSignalDesc_t desc = {1, 0, 0, 0};

	FAILS(ncclPutSignal(in, 1, ncclFloat, 3, win, 0, 0, 0, 0, comm, NULL),
		ncclInvalidArgument, "peer 3");
	FAILS(ncclPutSignal(in, 1, ncclFloat, 0, win, 0, 1, 0, 0, comm, NULL),
		ncclInvalidArgument, "sigIdx");
	FAILS(ncclPutSignal(in, 1, ncclFloat, 0, NULL, 0, 0, 0, 0, comm, NULL),
		ncclInvalidArgument, "peerWin");
	FAILS(ncclPutSignal(in, 1, ncclFloat, 0, win, 0, 0, 0, 0, comm, NULL),
		ncclInvalidArgument, "no window");
	FAILS(ncclPutSignal(in, 1, ncclFloat, 0, win, 0, 0, 1, 0, comm, NULL),
		ncclInvalidArgument, "ctx 1");
	FAILS(ncclPutSignal(in, 1, ncclFloat, 0, win, 0, 0, -1, 0, comm, NULL),
		ncclInvalidArgument, "ctx -1");
	FAILS(ncclSignal(0, 0, 0, 1, comm, NULL), ncclInvalidArgument, "flags");
	FAILS(ncclSignal(0, 0, 0, 0, comm, NULL), ncclInvalidUsage, "rmaEagerInit");
	FAILS(ncclWaitSignal(1, &desc, comm, NULL), ncclInvalidUsage, "rmaEagerInit");
	FAILS(ncclWaitSignal(0, &desc, comm, NULL), ncclInvalidArgument, "nDesc");
	desc.opCnt = 0;
	FAILS(ncclWaitSignal(1, &desc, comm, NULL), ncclInvalidArgument, "opCnt");
}

static void test_params(void)
{
	ncclParamHandle_t handle;
	const char *text, **keys;
	int64_t number;
	uint8_t small;
	char raw[8];
	int count, len;

	FAILS(ncclParamBind(&handle, "NCCL_NO_SUCH"), ncclInvalidArgument,
		"NCCL_NO_SUCH");
	FAILS(ncclParamBind(NULL, "NCCL_ALGO"), ncclInvalidArgument, "out");
	FAILS(ncclParamGetI64(NULL, &number), ncclInvalidArgument, "handle");
	EQ(ncclParamBind(&handle, "NCCL_CHECK_POINTERS"), ncclSuccess);
	EQ(ncclParamGetI64(handle, &number), ncclSuccess);
	EQ(number, 0);
	EQ(ncclParamGetStr(handle, &text), ncclSuccess);
	EQ_STR(text, "0");
	EQ(ncclParamGet(handle, raw, 8, &len), ncclSuccess);
	EQ(len, 8);
	FAILS(ncclParamGet(handle, raw, 4, &len), ncclInvalidArgument, "8 bytes");
	EQ(ncclParamBind(&handle, "WEFT_SPIN"), ncclSuccess);
	FAILS(ncclParamGetU8(handle, &small), ncclInvalidArgument, "range");
	EQ(ncclParamBind(&handle, "NCCL_DEBUG_SUBSYS"), ncclSuccess);
	FAILS(ncclParamGetI64(handle, &number), ncclInvalidUsage, "is text");
	EQ(ncclParamGetParameter("NCCL_ALGO", &text, &len), ncclSuccess);
	TRUE(text == NULL && len == 0);
	EQ(ncclParamGetAllParameterKeys(&keys, &count), ncclSuccess);
	TRUE(count > 10);
	for (int i = 0; i < count; i++)
		EQ(ncclParamBind(&handle, keys[i]), ncclSuccess);
}

static void test_device(void)
{
	ncclCommProperties_t props = NCCL_COMM_PROPERTIES_INITIALIZER;
	ncclTeam_t world = ncclTeamWorld(comm);

	EQ(world.nRanks, 1);
	EQ(ncclTeamLsa(comm).nRanks, 1);
	EQ(ncclTeamRankToWorld(comm, world, 0), 0);
	EQ(ncclTeamWorld(NULL).nRanks, 0);
	EQ(ncclCommQueryProperties(comm, &props), ncclSuccess);
	EQ(props.nRanks, 1);
	EQ(props.deviceApiSupport, false);
	props.magic = 0;
	FAILS(ncclCommQueryProperties(comm, &props), ncclInvalidArgument, "props");
	FAILS(ncclDevCommCreate(comm, NULL, NULL), ncclInvalidUsage, "GPU");
}

static void test_stream(void)
{
	static uint64_t garbage[512];
	cudaStream_t wrong = (cudaStream_t)(void *)garbage, stream;

	FAILS(weftStreamCreate(NULL), ncclInvalidArgument, "stream is NULL");
	FAILS(weftStreamQuery(wrong), ncclInvalidArgument, "weftStreamCreate");
	FAILS(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, wrong),
		ncclInvalidArgument, "weftStreamCreate");
	EQ(weftStreamDestroy(NULL), ncclSuccess);
	EQ(weftStreamQuery(NULL), ncclSuccess);
	EQ(weftStreamCreate(&stream), ncclSuccess);
	EQ(ncclAllReduce(in, out, 16, ncclFloat, ncclSum, comm, stream), ncclSuccess);
	EQ(weftStreamSynchronize(stream), ncclSuccess);
	EQ(weftStreamDestroy(stream), ncclSuccess);
}

int main(void)
{
	int version, n;

	EQ(ncclGetVersion(&version), ncclSuccess);
	EQ(version, NCCL_VERSION_CODE);
	EQ_STR(weftVersion(), WEFT_VERSION);
	EQ_STR(ncclGetErrorString(ncclSuccess), "no error");
	EQ_STR(ncclGetErrorString((ncclResult_t)77), "unknown result code");
	test_init();
	EQ(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	EQ(ncclCommCount(comm, &n), ncclSuccess);
	EQ(n, 1);
	test_comm();
	test_call();
	test_derive();
	test_redop();
	test_memory();
	test_suspend();
	test_onesided();
	test_params();
	test_device();
	test_stream();
	EQ(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT), ncclSuccess);
	FAILS(ncclAllReduce(in, out, 1, bad_type, bad_op, comm, NULL), ncclInvalidUsage,
		"communicator was revoked");
	FAILS(ncclCommFinalize(comm), ncclInvalidUsage, "revoked");
	EQ(ncclCommDestroy(comm), ncclSuccess);
	FAILS(ncclCommDestroy(comm), ncclInvalidArgument, "was destroyed");
	return 0;
}
