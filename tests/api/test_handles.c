/*
 * Handles that are not ours, or no more: every call refuses them with a sentence and
 * reads nothing through them. Most of the wrong ones point at memory nobody may read.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "nccl.h"
#include "test.h"
#include "weft.h"

static ncclComm_t comm;
static float in[16], out[16];
static void *forbidden; /* reading it kills */

/* The call is refused, and ncclGetLastError() says why. */
#define REFUSED(call, word)                                                              \
	do {                                                                             \
		EQ(call, ncclInvalidArgument);                                           \
		if (!strstr(ncclGetLastError(comm), word)) {                             \
			fprintf(stderr, "%s:%d: \"%s\" lacks \"%s\"\n", __FILE__,        \
				__LINE__, ncclGetLastError(comm), word);                 \
			exit(1);                                                         \
		}                                                                        \
	} while (0)

/* Every call that takes a communicator. */
static void comm_refused(ncclComm_t wrong)
{
	const char *why = "no communicator or was destroyed";
	ncclWaitSignalDesc_t desc = {.opCnt = 1};
	ncclComm_t made = NULL;
	ncclWindow_t win;
	ncclUniqueId id;
	ncclRedOp_t op;
	ncclResult_t stored;
	void *handle;
	int n;

	REFUSED(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, wrong, NULL), why);
	REFUSED(ncclSend(in, 1, ncclFloat, 0, wrong, NULL), why);
	REFUSED(ncclCommCount(wrong, &n), why);
	REFUSED(ncclCommGetAsyncError(wrong, &stored), why);
	REFUSED(ncclCommFinalize(wrong), why);
	REFUSED(ncclCommDestroy(wrong), why);
	REFUSED(ncclCommAbort(wrong), why);
	REFUSED(ncclCommRevoke(wrong, NCCL_REVOKE_DEFAULT), why);
	REFUSED(ncclCommSplit(wrong, 0, 0, &made, NULL), why);
	REFUSED(ncclCommShrink(wrong, &n, 1, &made, NULL, NCCL_SHRINK_ABORT), why);
	REFUSED(ncclCommGrow(wrong, 2, NULL, -1, &made, NULL), why);
	REFUSED(ncclCommGetUniqueId(wrong, &id), why);
	REFUSED(ncclCommRegister(wrong, in, 4, &handle), why);
	REFUSED(ncclCommDeregister(wrong, in), why);
	REFUSED(ncclCommWindowRegister(wrong, in, 4, &win, 0), why);
	REFUSED(ncclCommWindowDeregister(wrong, (ncclWindow_t)forbidden), why);
	REFUSED(ncclRedOpCreatePreMulSum(
			&op, in, ncclFloat, ncclScalarHostImmediate, wrong),
		why);
	REFUSED(ncclRedOpDestroy((ncclRedOp_t)77, wrong), why);
	REFUSED(ncclSignal(0, 0, 0, 0, wrong, NULL), why);
	REFUSED(ncclWaitSignal(1, &desc, wrong, NULL), why);
	TRUE(made == NULL);
}

static void test_comm(void)
{
	ncclComm_t gone;

	comm_refused((ncclComm_t)forbidden);
	comm_refused((ncclComm_t)(uintptr_t)1);
	EQ(ncclCommInitAll(&gone, 1, NULL), ncclSuccess);
	EQ(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, gone, NULL), ncclSuccess);
	EQ(ncclCommDestroy(gone), ncclSuccess);
	comm_refused(gone);
	EQ(ncclCommInitAll(&gone, 1, NULL), ncclSuccess);
	EQ(ncclCommAbort(gone), ncclSuccess);
	comm_refused(gone);
}

/* More than a thread remembers, and none of them mistaken for another. */
static void test_many_comms(void)
{
	ncclComm_t many[40];
	cudaStream_t stream;
	int rank;

	EQ(weftStreamCreate(&stream), ncclSuccess);
	for (int i = 0; i < 40; i++)
		EQ(ncclCommInitAll(&many[i], 1, NULL), ncclSuccess);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 40; i++)
			EQ(ncclCommUserRank(many[i], &rank), ncclSuccess);
	REFUSED(ncclCommUserRank((ncclComm_t)stream, &rank), "no communicator");
	for (int i = 0; i < 40; i += 2)
		EQ(ncclCommDestroy(many[i]), ncclSuccess);
	for (int i = 0; i < 40; i++)
		EQ(ncclCommUserRank(many[i], &rank),
			i % 2 ? ncclSuccess : ncclInvalidArgument);
	for (int i = 1; i < 40; i += 2)
		EQ(ncclCommDestroy(many[i]), ncclSuccess);
	EQ(weftStreamDestroy(stream), ncclSuccess);
}

static void stream_refused(cudaStream_t wrong)
{
	ncclWaitSignalDesc_t desc = {.opCnt = 1};

	REFUSED(ncclAllReduce(in, out, 1, ncclFloat, ncclSum, comm, wrong),
		"weftStreamCreate");
	REFUSED(ncclSignal(0, 0, 0, 0, comm, wrong), "weftStreamCreate");
	REFUSED(ncclWaitSignal(1, &desc, comm, wrong), "weftStreamCreate");
	REFUSED(weftStreamSynchronize(wrong), "weftStreamCreate");
	REFUSED(weftStreamQuery(wrong), "weftStreamCreate");
	REFUSED(weftStreamDestroy(wrong), "weftStreamCreate");
}

static void test_stream(void)
{
	cudaStream_t stream;

	stream_refused((cudaStream_t)forbidden);
	stream_refused((cudaStream_t)comm);
	EQ(weftStreamCreate(&stream), ncclSuccess);
	EQ(ncclAllReduce(in, out, 16, ncclFloat, ncclSum, comm, stream), ncclSuccess);
	EQ(weftStreamSynchronize(stream), ncclSuccess);
	EQ(weftStreamDestroy(stream), ncclSuccess);
	stream_refused(stream);
}

static void window_refused(ncclWindow_t wrong)
{
	void *ptr;

	REFUSED(ncclWinGetUserPtr(comm, wrong, &ptr), "no window");
	REFUSED(ncclPutSignal(in, 1, ncclFloat, 0, wrong, 0, 0, 0, 0, comm, NULL),
		"no window");
	REFUSED(ncclCommWindowDeregister(comm, wrong), "no window");
}

static void test_window(void)
{
	ncclWindow_t win, other;
	ncclComm_t second;
	void *memory, *ptr;

	EQ(ncclMemAlloc(&memory, 8192), ncclSuccess);
	EQ(ncclCommInitAll(&second, 1, NULL), ncclSuccess);
	EQ(ncclCommWindowRegister(comm, memory, 4096, &win, 0), ncclSuccess);
	EQ(ncclCommWindowRegister(second, memory, 4096, &other, 0), ncclSuccess);
	window_refused((ncclWindow_t)forbidden);
	window_refused(other);
	EQ(ncclWinGetUserPtr(comm, win, &ptr), ncclSuccess);
	TRUE(ptr == memory);
	EQ(ncclCommWindowDeregister(comm, NULL), ncclSuccess);
	EQ(ncclCommWindowDeregister(comm, win), ncclSuccess);
	window_refused(win);
	/* `other` goes with its communicator */
	EQ(ncclCommDestroy(second), ncclSuccess);
	window_refused(other);
	EQ(ncclMemFree(memory), ncclSuccess);
	EQ(ncclMemFree(memory), ncclInvalidArgument);
}

static void test_registration(void)
{
	void *handle, *same;

	REFUSED(ncclCommDeregister(comm, forbidden), "not a registration");
	EQ(ncclCommRegister(comm, in, sizeof(in), &handle), ncclSuccess);
	EQ(ncclCommRegister(comm, in, sizeof(in), &same), ncclSuccess);
	TRUE(handle == same);
	EQ(ncclCommDeregister(comm, handle), ncclSuccess);
	EQ(ncclCommDeregister(comm, handle), ncclSuccess);
	REFUSED(ncclCommDeregister(comm, handle), "not a registration");
}

static void test_redop(void)
{
	ncclRedOp_t op;
	float factor = 3;

	for (int bit = 3; bit < 31; bit++)
		REFUSED(ncclAllReduce(in, out, 1, ncclFloat, (ncclRedOp_t)(1u << bit),
				comm, NULL),
			"operator");
	EQ(ncclRedOpCreatePreMulSum(
		   &op, &factor, ncclFloat, ncclScalarHostImmediate, comm),
		ncclSuccess);
	EQ(ncclRedOpDestroy(op, comm), ncclSuccess);
	REFUSED(ncclRedOpDestroy(op, comm), "operator");
	REFUSED(ncclAllReduce(in, out, 1, ncclFloat, op, comm, NULL), "operator");
}

/* What a group uses may go before the group ends. */
static void test_group(void)
{
	ncclComm_t gone, made = NULL;
	cudaStream_t stream;
	ncclWindow_t win;
	void *memory;

	EQ(ncclCommInitAll(&gone, 1, NULL), ncclSuccess);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclAllReduce(in, out, 16, ncclFloat, ncclSum, gone, NULL), ncclSuccess);
	EQ(ncclCommAbort(gone), ncclSuccess);
	REFUSED(ncclGroupEnd(), "was destroyed");

	EQ(ncclCommInitAll(&gone, 1, NULL), ncclSuccess);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclCommSplit(gone, 0, 0, &made, NULL), ncclSuccess);
	EQ(ncclCommAbort(gone), ncclSuccess);
	REFUSED(ncclGroupEnd(), "was destroyed");
	TRUE(made == NULL);

	EQ(weftStreamCreate(&stream), ncclSuccess);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclAllReduce(in, out, 16, ncclFloat, ncclSum, comm, stream), ncclSuccess);
	EQ(weftStreamDestroy(stream), ncclSuccess);
	REFUSED(ncclGroupEnd(), "was destroyed");

	EQ(ncclMemAlloc(&memory, 4096), ncclSuccess);
	EQ(ncclCommWindowRegister(comm, memory, 4096, &win, 0), ncclSuccess);
	EQ(ncclGroupStart(), ncclSuccess);
	EQ(ncclPutSignal(in, 1, ncclFloat, 0, win, 0, 0, 0, 0, comm, NULL), ncclSuccess);
	EQ(ncclCommWindowDeregister(comm, win), ncclSuccess);
	REFUSED(ncclGroupEnd(), "no window");
	EQ(ncclMemFree(memory), ncclSuccess);
}

int main(void)
{
	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TRUE(forbidden != MAP_FAILED);
	EQ(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	test_comm();
	test_many_comms();
	test_stream();
	test_window();
	test_registration();
	test_redop();
	test_group();
	EQ(ncclAllReduce(in, out, 16, ncclFloat, ncclSum, comm, NULL), ncclSuccess);
	EQ(ncclCommDestroy(comm), ncclSuccess);
	return 0;
}
