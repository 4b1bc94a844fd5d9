/* NCCL's one-sided plugin interface as those who write plugins declare it, for the
 * version that RMA_VERSION says. Written from its description, apart from
 * src/net/rma_abi.h, so that a mistake in either shows. */
#ifndef TEST_RMA_TEST_H
#define TEST_RMA_TEST_H

#include <stdbool.h>

#ifndef NET_VERSION
#define NET_VERSION 12 /* the properties of a device are that version's */
#endif
#include "net_test.h"

enum { NCCL_RMA_SIGNAL_OP_INC = 1, NCCL_RMA_SIGNAL_OP_ADD = 2 };
enum { NCCL_MR_FLAG_FORCE_SO = 1, NCCL_MR_FLAG_SIGNAL_NEVER_RESET = 2 };

#if RMA_VERSION >= 14
typedef struct {
	int nContexts;
	int trafficClass;
	int rankStride;
} ncclRmaConfig_t;
#else
typedef struct {
	int nSignals;
	int nCounters;
	int nContexts;
	int queueDepth;
	int trafficClass;
} ncclRmaConfig_t;
#endif

#if RMA_VERSION >= 16
typedef struct {
	bool flushesAllPutsOnAnySignal;
} ncclRmaProperties_t;
#endif

/* What each version adds to the words of a function. */
#if RMA_VERSION >= 14
#define RMA_DEV_OUT
#define RMA_STRONG , bool isStrongSignal
#else
#define RMA_DEV_OUT , void **devHandle
#define RMA_STRONG
#endif
#if RMA_VERSION >= 15
#define RMA_FLAGS , uint32_t optFlags
#else
#define RMA_FLAGS
#endif

typedef struct {
	const char *name;
	ncclResult_t (*init)(void **ctx, uint64_t commId, ncclDebugLogger_t logFunction);
	ncclResult_t (*devices)(int *ndev);
#if RMA_VERSION >= 16
	ncclResult_t (*getRmaProperties)(void *collComm, ncclRmaProperties_t *props);
#endif
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_t *props);
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
	ncclResult_t (*connect)(void *ctx, void *handles[], int nranks, int rank,
		void *listenComm, void **collComm);
	ncclResult_t (*createContext)(
		void *collComm, ncclRmaConfig_t *config, void **rmaCtx RMA_DEV_OUT);
	ncclResult_t (*regMrSym)(void *collComm, void *data, size_t size, int type,
		uint64_t mrFlags, void **mhandle RMA_DEV_OUT);
	ncclResult_t (*regMrSymDmaBuf)(void *collComm, void *data, size_t size, int type,
		uint64_t offset, int fd, uint64_t mrFlags, void **mhandle RMA_DEV_OUT);
	ncclResult_t (*deregMrSym)(void *collComm, void *mhandle);
	ncclResult_t (*destroyContext)(void *rmaCtx);
	ncclResult_t (*closeColl)(void *collComm);
	ncclResult_t (*closeListen)(void *listenComm);
	ncclResult_t (*iput)(void *rmaCtx, int context, uint64_t srcOff, void *srcMhandle,
		size_t size, uint64_t dstOff, void *dstMhandle, uint32_t rank RMA_FLAGS,
		void **request);
	ncclResult_t (*iputSignal)(void *rmaCtx, int context, uint64_t srcOff,
		void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle,
		uint32_t rank, uint64_t signalOff, void *signalMhandle,
		uint64_t signalValue, uint32_t signalOp RMA_STRONG RMA_FLAGS,
		void **request);
	ncclResult_t (*iget)(void *rmaCtx, int context, uint64_t remoteOff,
		void *remoteMhandle, size_t size, uint64_t localOff, void *localMhandle,
		uint32_t rank RMA_FLAGS, void **request);
	ncclResult_t (*iflush)(
		void *rmaCtx, int context, void *mhandle, uint32_t rank, void **request);
	ncclResult_t (*test)(void *collComm, void *request, int *done);
	ncclResult_t (*rmaProgress)(void *rmaCtx);
	ncclResult_t (*queryLastError)(void *rmaCtx, bool *hasError);
	ncclResult_t (*finalize)(void *ctx);
} ncclRma_t;

#endif
