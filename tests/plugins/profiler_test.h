/* NCCL's profiler plugin interface as those who write plugins declare it, for the version
 * that PROFILER_VERSION says. Written from its description, apart from
 * src/prof/profiler_abi.h, so that a mistake in either shows. */
#ifndef TEST_PROFILER_TEST_H
#define TEST_PROFILER_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int ncclResult_t;
enum { ncclSuccess = 0, ncclSystemError = 2 };
enum {
	ncclProfileGroup = 1 << 0,
	ncclProfileColl = 1 << 1,
	ncclProfileP2p = 1 << 2,
	ncclProfileProxyOp = 1 << 3,
	ncclProfileProxyStep = 1 << 4,
	ncclProfileNetPlugin = 1 << 7,
	ncclProfileGroupApi = 1 << 8,
	ncclProfileCollApi = 1 << 9,
	ncclProfileP2pApi = 1 << 10,
	ncclProfileKernelLaunch = 1 << 11
};
enum {
	ncclProfilerProxyOpSendDone = 3,
	ncclProfilerProxyOpRecvDone = 7,
	ncclProfilerProxyStepSendWait = 9,
	ncclProfilerProxyStepRecvWait = 10,
	ncclProfilerProxyStepRecvFlushWait = 11,
	ncclProfilerProxyOpInProgress_v4 = 19,
	ncclProfilerNetPluginUpdate = 21,
	ncclProfilerGroupStartApiStop = 23,
	ncclProfilerGroupEndApiStart = 24
};

typedef void (*ncclDebugLogger_t)(
	int level, unsigned long flags, const char *file, int line, const char *fmt, ...);

/* Names and types were numbers at first. */
#if PROFILER_VERSION == 1
typedef uint8_t profiler_word;
#else
typedef const char *profiler_word;
#endif

#if PROFILER_VERSION < 5
typedef uint8_t profiler_type;
#else
typedef uint64_t profiler_type;
#endif

typedef struct {
	profiler_type type;
	void *parentObj;
	int rank;
	union {
		struct {
#if PROFILER_VERSION < 4
			const char *name;
			uint64_t commHash;
#endif
			uint64_t seqNumber;
			profiler_word func;
			void const *sendBuff;
			void *recvBuff;
			size_t count;
			int root;
			profiler_word datatype;
#if PROFILER_VERSION == 1
			uint32_t op;
#endif
#if PROFILER_VERSION < 3
			size_t trafficBytes;
#endif
			uint8_t nChannels;
			uint8_t nWarps;
			profiler_word algo;
			profiler_word proto;
#if PROFILER_VERSION == 1
			int isCollnet;
			int isNvls;
#endif
#if PROFILER_VERSION >= 5
			void *parentGroup;
#endif
#if PROFILER_VERSION >= 7
			const char *kernelVariant;
			bool isSymColl;
			uint64_t userTag;
#endif
		} coll;
		struct {
#if PROFILER_VERSION < 4
			const char *name;
			uint64_t commHash;
#endif
			profiler_word func;
			void *buff;
			profiler_word datatype;
			size_t count;
			int peer;
#if PROFILER_VERSION >= 4
			uint8_t nChannels;
#endif
#if PROFILER_VERSION >= 5
			void *parentGroup;
#endif
#if PROFILER_VERSION >= 7
			uint64_t userTag;
#endif
		} p2p;
		struct {
			pid_t pid;
			uint8_t channelId;
			int peer;
			int nSteps;
			int chunkSize;
			int isSend;
		} proxyOp;
		struct {
			int step;
		} proxyStep;
#if PROFILER_VERSION >= 2
		struct {
			int64_t id;
			void *data;
		} netPlugin;
#endif
#if PROFILER_VERSION >= 5
		struct {
			bool graphCaptured;
			int groupDepth;
		} groupApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			int root;
			void *stream;
			bool graphCaptured;
#if PROFILER_VERSION >= 7
			uint64_t userTag;
#endif
		} collApi;
		struct {
			const char *func;
			size_t count;
			const char *datatype;
			void *stream;
			bool graphCaptured;
#if PROFILER_VERSION >= 7
			uint64_t userTag;
#endif
		} p2pApi;
		struct {
			void *stream;
		} kernelLaunch;
#endif
	};
} ncclProfilerEventDescr_t;

typedef union {
#if PROFILER_VERSION < 4
	struct {
		size_t transSize;
		int steps;
	} proxyOp;
#else
	struct {
		size_t transSize;
	} proxyStep;
	struct {
		void *data;
	} netPlugin;
#endif
	struct {
		int appendedProxyOps;
	} proxyCtrl;
} ncclProfilerEventStateArgs_t;

typedef struct {
	const char *name;
#if PROFILER_VERSION < 4
	ncclResult_t (*init)(void **context, int *eActivationMask);
#elif PROFILER_VERSION == 4
	ncclResult_t (*init)(void **context, int *eActivationMask, const char *commName,
		uint64_t commHash, int nNodes, int nranks, int rank,
		ncclDebugLogger_t logfn);
#else
	ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
		const char *commName, int nNodes, int nranks, int rank,
		ncclDebugLogger_t logfn);
#endif
	ncclResult_t (*startEvent)(
		void *context, void **eHandle, ncclProfilerEventDescr_t *eDescr);
	ncclResult_t (*stopEvent)(void *eHandle);
	ncclResult_t (*recordEventState)(
		void *eHandle, int eState, ncclProfilerEventStateArgs_t *eStateArgs);
	ncclResult_t (*finalize)(void *context);
} ncclProfiler_t;

#endif
