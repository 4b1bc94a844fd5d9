/* NCCL's network plugin interface as those who write plugins declare it, for the version
 * that NET_VERSION says. Written from its description, apart from src/net/plugin_abi.h,
 * so that a mistake in either shows. */
#ifndef TEST_NET_TEST_H
#define TEST_NET_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int ncclResult_t;
enum {
	ncclSuccess = 0,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclRemoteError = 6
};
enum { NCCL_PTR_HOST = 1, NCCL_PTR_CUDA = 2, NCCL_PTR_DMABUF = 4 };

typedef void (*ncclDebugLogger_t)(
	int level, unsigned long flags, const char *file, int line, const char *fmt, ...);
typedef ncclResult_t (*ncclProfilerCallback_t)(
	void **eHandle, int type, void *pHandle, int64_t pluginId, void *extData);
typedef struct {
	int trafficClass;
} ncclNetCommConfig_t;

#if NET_VERSION >= 9
typedef size_t net_size;
#else
typedef int net_size;
#endif
#if NET_VERSION >= 8
typedef size_t net_reg_size;
#else
typedef int net_reg_size;
#endif

#if NET_VERSION >= 12
enum { NET_PARTS = 8 };
#else
enum { NET_PARTS = 4 };
#endif

typedef struct {
	int ndevs;
	int devs[NET_PARTS];
} ncclNetVDeviceProps_t;

typedef struct {
	char *name;
	char *pciPath;
	uint64_t guid;
	int ptrSupport;
#if NET_VERSION >= 8
	int regIsGlobal;
#endif
#if NET_VERSION >= 9
	int forceFlush;
#endif
	int speed;
	int port;
	float latency;
	int maxComms;
	int maxRecvs;
#if NET_VERSION >= 7
	int netDeviceType;
	int netDeviceVersion;
#endif
#if NET_VERSION >= 9
	ncclNetVDeviceProps_t vProps;
	size_t maxP2pBytes;
	size_t maxCollBytes;
#endif
#if NET_VERSION >= 11
	int maxMultiRequestSize;
#endif
#if NET_VERSION >= 12
	int16_t railId;
	int16_t planeId;
#endif
} ncclNetProperties_t;

typedef struct {
	const char *name;
#if NET_VERSION >= 11
	ncclResult_t (*init)(void **ctx, uint64_t commId, ncclNetCommConfig_t *config,
		ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
#elif NET_VERSION == 10
	ncclResult_t (*init)(
		ncclDebugLogger_t logFunction, ncclProfilerCallback_t profFunction);
#else
	ncclResult_t (*init)(ncclDebugLogger_t logFunction);
#endif
	ncclResult_t (*devices)(int *ndev);
	ncclResult_t (*getProperties)(int dev, ncclNetProperties_t *props);
#if NET_VERSION >= 11
	ncclResult_t (*listen)(void *ctx, int dev, void *handle, void **listenComm);
	ncclResult_t (*connect)(
		void *ctx, int dev, void *handle, void **sendComm, void **sendDevComm);
#elif NET_VERSION == 10
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	ncclResult_t (*connect)(int dev, ncclNetCommConfig_t *config, void *handle,
		void **sendComm, void **sendDevComm);
#elif NET_VERSION >= 7
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	ncclResult_t (*connect)(
		int dev, void *handle, void **sendComm, void **sendDevComm);
#else
	ncclResult_t (*listen)(int dev, void *handle, void **listenComm);
	ncclResult_t (*connect)(int dev, void *handle, void **sendComm);
#endif
#if NET_VERSION >= 7
	ncclResult_t (*accept)(void *listenComm, void **recvComm, void **recvDevComm);
#else
	ncclResult_t (*accept)(void *listenComm, void **recvComm);
#endif
	ncclResult_t (*regMr)(
		void *comm, void *data, net_reg_size size, int type, void **mhandle);
	ncclResult_t (*regMrDmaBuf)(void *comm, void *data, size_t size, int type,
		uint64_t offset, int fd, void **mhandle);
	ncclResult_t (*deregMr)(void *comm, void *mhandle);
#if NET_VERSION >= 10
	ncclResult_t (*isend)(void *sendComm, void *data, size_t size, int tag,
		void *mhandle, void *phandle, void **request);
	ncclResult_t (*irecv)(void *recvComm, int n, void **data, size_t *sizes,
		int *tags, void **mhandles, void **phandles, void **request);
#else
	ncclResult_t (*isend)(void *sendComm, void *data, net_size size, int tag,
		void *mhandle, void **request);
	ncclResult_t (*irecv)(void *recvComm, int n, void **data, net_size *sizes,
		int *tags, void **mhandles, void **request);
#endif
	ncclResult_t (*iflush)(void *recvComm, int n, void **data, int *sizes,
		void **mhandles, void **request);
	ncclResult_t (*test)(void *request, int *done, int *sizes);
	ncclResult_t (*closeSend)(void *sendComm);
	ncclResult_t (*closeRecv)(void *recvComm);
	ncclResult_t (*closeListen)(void *listenComm);
#if NET_VERSION >= 7
	ncclResult_t (*getDeviceMr)(void *comm, void *mhandle, void **dptr_mhandle);
	ncclResult_t (*irecvConsumed)(void *recvComm, int n, void *request);
#endif
#if NET_VERSION >= 9
	ncclResult_t (*makeVDevice)(int *d, ncclNetVDeviceProps_t *props);
#endif
#if NET_VERSION >= 11
	ncclResult_t (*finalize)(void *ctx);
	ncclResult_t (*setNetAttr)(void *ctx, void *netAttr);
#endif
} ncclNet_t;

/* ---- of the test plugin, in net_test_device.c ---- */

/* Is this word among those of NET_TEST_FAULT, for this rank? */
bool net_test_fault(const char *word);

bool net_test_has(int dev);
ncclResult_t net_test_devices(int *count);
ncclResult_t net_test_properties(int dev, ncclNetProperties_t *props);
#if NET_VERSION >= 9
ncclResult_t net_test_make_virtual(int *d, ncclNetVDeviceProps_t *props);
#endif

#endif
