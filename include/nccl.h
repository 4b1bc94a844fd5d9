/*
 * nccl.h - collective communication among ranks, with NCCL's names, values and layouts.
 *
 * The interface is that of NCCL 2.32. On host memory a buffer is any address of the process, and a stream is
 * NULL or one of weft.h's host streams; with the NULL stream a call has finished when it,
 * or the outermost ncclGroupEnd(), returns. Ranks that share a GPU may also pass its
 * memory, with CUDA's streams.
 *
 * Every function returns ncclSuccess or a code; ncclGetLastError() has the sentence that
 * explains it. One thread at a time may use a communicator, except for
 * ncclCommGetAsyncError(), ncclCommAbort() and ncclCommRevoke().
 *
 * Each ncclX() is a weak symbol whose strong twin is pncclX(): a tool may define ncclX()
 * itself and call pncclX(). The twins are listed at the end.
 */
#ifndef NCCL_H_
#define NCCL_H_

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

/* Programs written for NCCL expect its header to bring CUDA's types along. Where there is
 * no CUDA a stream is the same pointer to the same unknown structure. */
#if defined(__has_include) && !defined(WEFT_NO_CUDA_HEADERS)
#if __has_include(<cuda_runtime.h>)
#define NCCL_HAS_CUDA_HEADERS 1
#endif
#endif
#ifdef NCCL_HAS_CUDA_HEADERS
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#if __has_include(<cuda_bf16.h>)
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && __has_include(<cuda_fp8.h>)
#include <cuda_fp8.h>
#endif
#else
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
#endif

#define NCCL_MAJOR	  2
#define NCCL_MINOR	  32
#define NCCL_PATCH	  3
#define NCCL_SUFFIX	  ""

#define NCCL_VERSION_CODE 23203
#define NCCL_VERSION(X, Y, Z)                                                            \
	(((X) <= 2 && (Y) <= 8) ? (X)*1000 + (Y)*100 + (Z) : (X)*10000 + (Y)*100 + (Z))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---- */

/* The ranks that talk to each other, as one of them sees it. */
typedef struct ncclComm *ncclComm_t;
#define NCCL_COMM_NULL NULL

/* A buffer that all ranks of a communicator registered together. */
typedef struct ncclWindow_vidmem *ncclWindow_t;

/* The meeting point of a new communicator, and the right to join it: one process makes
 * it, all ranks get a copy. Whoever has the bytes can join, so treat them as a secret. */
#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,	 /* the operating system refused something */
	ncclInternalError = 3,	 /* a bug of the library */
	ncclInvalidArgument = 4, /* a wrong value; the call had no effect */
	ncclInvalidUsage = 5,	 /* right values at the wrong moment or together */
	ncclRemoteError = 6,	 /* another rank died, left or aborted */
	ncclInProgress = 7,	 /* not finished; ask ncclCommGetAsyncError() */
	ncclTimeout = 8,
	ncclNumResults = 9
} ncclResult_t;

/* Floats are IEEE where IEEE has them; e4m3 and e5m2 are OCP's 8-bit floats. */
typedef enum {
	ncclInt8 = 0,
	ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclHalf = 6,
	ncclFloat32 = 7,
	ncclFloat = 7,
	ncclFloat64 = 8,
	ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

/* How a reduction combines. ncclAvg is the sum divided by the number of ranks. Handles
 * made by ncclRedOpCreatePreMulSum() lie between ncclNumOps and ncclMaxRedOp. */
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,
	ncclMaxRedOp = 0x7fffffff
} ncclRedOp_t;

/* When the factor of a pre-multiplied sum is read: each time a collective runs, or once,
 * when the operator is made. */
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

/* What ncclCommMemStats() can tell, in bytes but for Suspended, which is 0 or 1. */
typedef enum {
	ncclStatGpuMemSuspend = 0,
	ncclStatGpuMemSuspended = 1,
	ncclStatGpuMemPersist = 2,
	ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

/* "The caller did not say": the value every attribute of a fresh ncclConfig_t has. */
#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_UNDEF_FLOAT      (-1.0f)

/* A colour for ncclCommSplit(): take part in the call, but get no communicator. */
#define NCCL_SPLIT_NOCOLOR (-1)

/* ncclCommWindowRegister(): flags, and what a window's address must be a multiple of. */
#define NCCL_WIN_DEFAULT	    0x00
#define NCCL_WIN_COLL_SYMMETRIC	    0x01
#define NCCL_WIN_STRICT_ORDERING    0x02
#define NCCL_WIN_GIN_ONLY	    0x04 /* not with COLL_SYMMETRIC */
#define NCCL_WIN_CFT_COUNTED	    0x08 /* not with COLL_SYMMETRIC; no GPU here has it */
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

/* CTAPolicy of both configurations: bits; ZERO wins over EFFICIENCY. */
#define NCCL_CTA_POLICY_DEFAULT	   0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO	   0x02

/* ncclCommShrink(): ABORT stops what is in flight on the parent first. */
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT   0x01

#define NCCL_REVOKE_DEFAULT 0x00
#define NCCL_SUSPEND_MEM    0x01

/* ncclConfig_t.hostCftMode: logical endpoints, which Blackwell's fabric has. */
typedef enum {
	ncclHostCftDefault = INT_MIN,
	ncclHostCftEnable = 1,
	ncclHostCftDisable = 2,
	ncclHostCftFallback = 3
} ncclHostCftMode_t;

/* ncclConfig_t.nvlsHostMode: what of NVLink SHARP the library must not use. */
typedef enum {
	ncclNvlsHostModeDefault = INT_MIN,
	ncclNvlsHostModeEnable = 0,
	ncclNvlsHostModeDisableTransport = 1,
	ncclNvlsHostModeDisableSymmetricMultimem = 2,
	ncclNvlsHostModeDisable = INT_MAX
} ncclNvlsHostMode_t;

/* Wishes for one communicator. Start from NCCL_CONFIG_INITIALIZER, then set what matters.
 * The first three members say which header the caller was compiled with, so that a
 * newer library never reads past an older caller's structure. Members that describe
 * GPU hardware are checked and otherwise ignored on host memory. */
typedef struct ncclConfig_v23100 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;		 /* 0: calls may return ncclInProgress */
	int cgaClusterSize;	 /* 0..8 */
	int minCTAs;		 /* channels: at least, */
	int maxCTAs;		 /* at most */
	const char *netName;	 /* network module, any case */
	int splitShare;		 /* 1: children by split use the parent's resources */
	int trafficClass;	 /* handed to the network */
	const char *commName;	 /* shown in logs */
	int collnetEnable;	 /* 0 or 1 */
	int CTAPolicy;		 /* NCCL_CTA_POLICY_* */
	int shrinkShare;	 /* as splitShare, for shrink */
	int nvlsCTAs;		 /* > 0 */
	int nChannelsPerNetPeer; /* > 0 */
	int nvlinkCentricSched;	 /* 0 or 1 */
	int graphUsageMode;	 /* 0 no CUDA graphs, 1 only graphs, 2 both */
	int numRmaCtx;		 /* contexts of ncclPutSignal(): 1 unless set */
	int maxP2pPeers;	 /* > 0 */
	int graphStreamOrdering; /* 0 or 1 */
	int launchOrderImplicit; /* 0 or 1; calls are always in program order here */
	int numRmaSig;		 /* signals of each context: 1 unless set */
	int rmaEagerInit;	 /* 1: signals work before a window is registered */
	int hostCftMode;	 /* ncclHostCftMode_t, the same on all ranks */
	int nvlsHostMode;	 /* ncclNvlsHostMode_t */
} ncclConfig_t;

#define NCCL_API_MAGIC 0xcafebeefu

#define NCCL_CONFIG_INITIALIZER                                                          \
	{                                                                                \
		sizeof(ncclConfig_t),	       /* size */                                \
			NCCL_API_MAGIC,	       /* magic */                               \
			NCCL_VERSION_CODE,     /* version */                             \
			NCCL_CONFIG_UNDEF_INT, /* blocking */                            \
			NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */                      \
			NCCL_CONFIG_UNDEF_INT, /* minCTAs */                             \
			NCCL_CONFIG_UNDEF_INT, /* maxCTAs */                             \
			NCCL_CONFIG_UNDEF_PTR, /* netName */                             \
			NCCL_CONFIG_UNDEF_INT, /* splitShare */                          \
			NCCL_CONFIG_UNDEF_INT, /* trafficClass */                        \
			NCCL_CONFIG_UNDEF_PTR, /* commName */                            \
			NCCL_CONFIG_UNDEF_INT, /* collnetEnable */                       \
			NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */                           \
			NCCL_CONFIG_UNDEF_INT, /* shrinkShare */                         \
			NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */                            \
			NCCL_CONFIG_UNDEF_INT, /* nChannelsPerNetPeer */                 \
			NCCL_CONFIG_UNDEF_INT, /* nvlinkCentricSched */                  \
			NCCL_CONFIG_UNDEF_INT, /* graphUsageMode */                      \
			NCCL_CONFIG_UNDEF_INT, /* numRmaCtx */                           \
			NCCL_CONFIG_UNDEF_INT, /* maxP2pPeers */                         \
			NCCL_CONFIG_UNDEF_INT, /* graphStreamOrdering */                 \
			NCCL_CONFIG_UNDEF_INT, /* launchOrderImplicit */                 \
			NCCL_CONFIG_UNDEF_INT, /* numRmaSig */                           \
			NCCL_CONFIG_UNDEF_INT, /* rmaEagerInit */                        \
			NCCL_CONFIG_UNDEF_INT, /* hostCftMode */                         \
			NCCL_CONFIG_UNDEF_INT  /* nvlsHostMode */                        \
	}

/* An option of somebody else's, in a list; never looked at here. */
typedef struct ncclConfigExt {
	struct ncclConfigExt *next;
	struct {
		int vendorId; /* 1 .. 2^24 - 1 */
		int optionId;
	} key;
	union {
		int i;
		const char *s;
		void *raw;
	} val;
} ncclConfigExt_t;

/* Wishes for one call of ncclXConfig(), the same on every rank. Start from
 * NCCL_COLLCONFIG_INITIALIZER.
 *
 * algSelection names what may be used: `,` is or, `+` and, `^` not; a word is the
 * beginning of a name, in any case. The names are NCCL's: RING_SIMPLE, TREE_LL,
 * SYMK_LD, .. (docs/selection.md says what each is here). What cannot be met is
 * ncclInvalidArgument, or with forceAlgSelection 0 as if nothing were selected. */
typedef struct ncclCollConfig_v23200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	ncclConfigExt_t *ext;
	int minCTAs;	    /* 1..64, else ignored; */
	int maxCTAs;	    /* there is one channel on host memory */
	int nvlsCTAs;	    /* > 0, else ignored */
	int cgaClusterSize; /* 0..8, else ignored */
	const char *algSelection;
	int forceAlgSelection;	  /* 0 or 1 */
	int CTAPolicy;		  /* NCCL_CTA_POLICY_* */
	uint64_t userProfilerTag; /* for a profiler; the highest bit is reserved */
	/* On a GPU: recorded on the call's stream when its turn has come. One per
	 * communicator and group. */
	cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER                                                      \
	{                                                                                \
		sizeof(ncclCollConfig_t),      /* size */                                \
			NCCL_API_MAGIC,	       /* magic */                               \
			NCCL_VERSION_CODE,     /* version */                             \
			NULL,		       /* ext */                                 \
			NCCL_CONFIG_UNDEF_INT, /* minCTAs */                             \
			NCCL_CONFIG_UNDEF_INT, /* maxCTAs */                             \
			NCCL_CONFIG_UNDEF_INT, /* nvlsCTAs */                            \
			NCCL_CONFIG_UNDEF_INT, /* cgaClusterSize */                      \
			NULL,		       /* algSelection */                        \
			1,		       /* forceAlgSelection */                   \
			NCCL_CONFIG_UNDEF_INT, /* CTAPolicy */                           \
			0,		       /* userProfilerTag */                     \
			NULL		       /* launchCompletionEvent */               \
	}

typedef enum {
	NCCL_ENCRYPTION_MODE_NONE = 0,
	NCCL_ENCRYPTION_MODE_PSK = 1
} ncclEncryptionMode_t;

/* How processes hide what they say over sockets. Start from
 * NCCL_ENCRYPTION_CONFIG_INITIALIZER. */
typedef struct ncclEncryptionConfig_v23200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int mode;	 /* ncclEncryptionMode_t */
	const char *psk; /* text of at least 32 bytes that all processes know */
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER                                               \
	{                                                                                \
		sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE,       \
			NCCL_ENCRYPTION_MODE_NONE, NULL                                  \
	}

/* The answer of ncclGroupSimulateEnd(). Start from NCCL_SIM_INFO_INITIALIZER. */
typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime; /* microseconds; NCCL_UNDEF_FLOAT when unknown */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER                                                        \
	{                                                                                \
		sizeof(ncclSimInfo_t), 0x74685283u, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT  \
	}

/* One line of ncclWaitSignal(): wait until `opCnt` signals of `peer` have arrived. */
typedef struct {
	int opCnt;
	int peer;
	int sigIdx; /* below numRmaSig */
	int ctx;    /* below numRmaCtx */
} ncclWaitSignalDesc_t;

/* A variable bound by ncclParamBind(); lives as long as the library. */
typedef struct ncclParamHandle *ncclParamHandle_t;

/* ---- version and errors ---- */

/* The version this library stands in for: NCCL_VERSION_CODE, or what
 * WEFT_REPORT_VERSION says. */
ncclResult_t ncclGetVersion(int *version);

/* A fixed text for a code; never NULL. */
const char *ncclGetErrorString(ncclResult_t result);

/* The newest failure's sentence, with its cause: of this thread if it had one, else of
 * the process; "" when nothing failed. `comm` may be NULL. Valid until the next failure.
 */
const char *ncclGetLastError(ncclComm_t comm);

/* How the communicator is: ncclSuccess, ncclInProgress while a non-blocking call runs, or
 * the first failure. Any thread may ask at any time. */
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);

/* Kept for old programs; does nothing. */
void ncclResetDebugInit(void);

/* NCCL_DEBUG and its family are read again at the next line. NCCL exports it without
 * declaring it, and without a twin. */
void ncclResetDebugInitInternal(void);

/* ---- making communicators ---- */

/* From now on what this process says to others over sockets is encrypted and
 * authenticated by a key that all processes share, and whoever does not have it is not
 * heard. NULL or mode NONE: no longer. Call it before anything else, in every process. */
ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config);

/* Make a meeting point. Call it in one process, and give the id to all ranks by whatever
 * way there is (a file, MPI, a store). Each id serves one communicator. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *uniqueId);

/* Meet the other `nranks` - 1 ranks and connect. All ranks call it, each in its own
 * thread or process, or one thread for several inside a group. */
ncclResult_t ncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);

/* As above with wishes; `config` may be NULL. With blocking 0 the call returns
 * ncclInProgress and gives the handle at once. */
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId,
	int rank, ncclConfig_t *config);

/* As above with `nId` ids, the same on every rank, that share the load of the meeting. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config);

/* Make all `ndev` ranks of one communicator in this process. `devlist` (or 0, 1, ..) is
 * what ncclCommCuDevice() will say of each; several ranks may name one device. */
ncclResult_t ncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);

/* Divide: ranks of one colour get a communicator together, ordered by `key`, then by old
 * rank. NCCL_SPLIT_NOCOLOR gives NULL. All ranks call it. config NULL: the parent's. */
ncclResult_t ncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);

/* Go on without the listed ranks. The others call it, those in the list do not. */
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
	ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags);

/* Make the meeting point at which new ranks join this communicator. One rank calls it
 * and gives the id to the new ones. */
ncclResult_t ncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);

/* Become `nRanks`. Old ranks pass their communicator and rank -1, and keep their rank;
 * new ranks pass NULL, the id and a rank after the old ones. The parent stays alive. */
ncclResult_t ncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config);

/* ---- ending communicators ---- */

/* Finish what was enqueued; afterwards only ncclCommDestroy(). A second call is an
 * invalid argument. */
ncclResult_t ncclCommFinalize(ncclComm_t comm);

/* Finalize if that was not done, and free. NULL is fine. */
ncclResult_t ncclCommDestroy(ncclComm_t comm);

/* Stop what is in flight, let the other ranks know, and free. Waits for nobody; any
 * thread may call it. */
ncclResult_t ncclCommAbort(ncclComm_t comm);

/* Stop what is in flight and refuse new work. The communicator can still be split, shrunk
 * or destroyed. `revokeFlags` is NCCL_REVOKE_DEFAULT. */
ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags);

/* Give back GPU memory that is not needed for a while, and take it again; in between the
 * communicator takes no calls. There is none yet that could be given back. */
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);

/* ---- asking ---- */

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

/* ---- memory ---- */

/* Memory that the other ranks can map: collectives on it copy nothing twice. It is the
 * GPU's when this thread has a CUDA context, else the host's. */
ncclResult_t ncclMemAlloc(void **ptr, size_t size);
ncclResult_t ncclMemFree(void *ptr);

/* Tell a communicator of a buffer that will be used often. Counted: as many
 * deregistrations as registrations. */
ncclResult_t ncclCommRegister(
	const ncclComm_t comm, void *buff, size_t size, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);

/* The same for a buffer of every rank at once; all ranks call it. In a group *win is
 * filled by ncclGroupEnd(). */
ncclResult_t ncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);

/* The address this rank registered. */
ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);

/* ---- operators ---- */

/* An operator that multiplies each rank's input by *scalar, then sums. It works on this
 * communicator and this type only. */
ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);

/* May be called as soon as the last collective that uses it has been enqueued. */
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

/* ---- collectives ----
 *
 * All ranks make the same calls in the same order. Counts are elements. A count of 0 does
 * nothing. Buffers may overlap only in the one way called "in place".
 */

/* Rank `root` gets the reduction of all ranks' `count` elements. recvbuff is used at the
 * root only. In place: sendbuff == recvbuff. */
ncclResult_t ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream);

/* ncclBroadcast() in place; kept for old programs. */
ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream);

/* All ranks get the root's `count` elements. sendbuff is used at the root only. In place:
 * sendbuff == recvbuff. */
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* All ranks get the reduction of all ranks' `count` elements. In place: sendbuff ==
 * recvbuff. */
ncclResult_t ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* Rank r gets block r of the reduction; a block has `recvcount` elements, sendbuff has
 * one block per rank. In place: recvbuff == sendbuff + rank * recvcount. */
ncclResult_t ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);

/* All ranks get every rank's `sendcount` elements, in the order of ranks. In place:
 * sendbuff == recvbuff + rank * sendcount. */
ncclResult_t ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* Block j of rank i becomes block i of rank j; a block has `count` elements. There is no
 * in-place form. */
ncclResult_t ncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);

/* The root gets every rank's `count` elements, in the order of ranks. In place at the
 * root: sendbuff == recvbuff + root * count. */
ncclResult_t ncclGather(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* Rank r gets block r of the root's sendbuff; a block has `count` elements. In place at
 * the root: recvbuff == sendbuff + root * count. */
ncclResult_t ncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);

/* The same with wishes for this call; `config` NULL: none. It is checked before
 * everything else. */
ncclResult_t ncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t ncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t ncclReduceScatterConfig(const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t ncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t ncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t ncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t ncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);

/* ---- point to point ----
 *
 * The nth send from a to b goes with the nth receive of b from a, of the same count and
 * type. Sends and receives that must make progress together belong in one group; a rank
 * can send to itself only so.
 */

ncclResult_t ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream);

/* ---- one-sided ----
 *
 * Write into a window of another rank and raise its signal; raise a signal only; wait for
 * signals. Each (peer, ctx, sigIdx) counts for itself. A signal before any window was
 * registered is ncclInvalidUsage unless the communicator has rmaEagerInit.
 */

ncclResult_t ncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
	unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs, ncclComm_t comm,
	cudaStream_t stream);

/* ---- groups ----
 *
 * Calls between Start and End of one thread are taken as one: nothing runs before the
 * outermost End, then all of it runs side by side. A failing call fails the group: End
 * returns its code and nothing runs. Calls that make or end communicators cannot share a
 * group with calls that use them, and all communicators of a group are blocking or none.
 */

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);

/* End the group without running it, and say how long it would have taken. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simInfo);

/* ---- environment variables ----
 *
 * The values in force, of the variables the library knows. Text is the library's own.
 */

/* ncclInvalidArgument when there is no such variable. */
ncclResult_t ncclParamBind(ncclParamHandle_t *out, const char *key);

/* The value of a numeric variable; ncclInvalidArgument when it does not fit the type,
 * ncclInvalidUsage when the variable is text. */
ncclResult_t ncclParamGetI8(ncclParamHandle_t handle, int8_t *out);
ncclResult_t ncclParamGetI16(ncclParamHandle_t handle, int16_t *out);
ncclResult_t ncclParamGetI32(ncclParamHandle_t handle, int32_t *out);
ncclResult_t ncclParamGetI64(ncclParamHandle_t handle, int64_t *out);
ncclResult_t ncclParamGetU8(ncclParamHandle_t handle, uint8_t *out);
ncclResult_t ncclParamGetU16(ncclParamHandle_t handle, uint16_t *out);
ncclResult_t ncclParamGetU32(ncclParamHandle_t handle, uint32_t *out);
ncclResult_t ncclParamGetU64(ncclParamHandle_t handle, uint64_t *out);

/* The value of a text variable, NULL when it is unset; of a numeric one, its digits,
 * valid until this thread asks again. */
ncclResult_t ncclParamGetStr(ncclParamHandle_t handle, const char **out);

/* The raw value: an int64_t, or the text with its final 0. *len is its size, also when
 * `maxLen` is too small for it (ncclInvalidArgument). */
ncclResult_t ncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len);

/* ncclParamGetStr() by name; *len is strlen of the value, `len` may be NULL. */
ncclResult_t ncclParamGetParameter(const char *key, const char **value, int *len);

ncclResult_t ncclParamGetAllParameterKeys(const char ***table, int *count);

/* Print NAME=value of every variable on the standard output. */
void ncclParamDumpAll(void);

/* ---- the strong twins ---- */

ncclResult_t pncclGetVersion(int *version);
const char *pncclGetErrorString(ncclResult_t result);
const char *pncclGetLastError(ncclComm_t comm);
ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError);
void pncclResetDebugInit(void);
ncclResult_t pncclSetEncryption(const ncclEncryptionConfig_t *config);
ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId);
ncclResult_t pncclCommInitRank(
	ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank);
ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId,
	int rank, ncclConfig_t *config);
ncclResult_t pncclCommInitRankScalable(ncclComm_t *newcomm, int nranks, int myrank,
	int nId, ncclUniqueId *commIds, ncclConfig_t *config);
ncclResult_t pncclCommInitAll(ncclComm_t *comm, int ndev, const int *devlist);
ncclResult_t pncclCommSplit(
	ncclComm_t comm, int color, int key, ncclComm_t *newcomm, ncclConfig_t *config);
ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList,
	int excludeRanksCount, ncclComm_t *newcomm, ncclConfig_t *config,
	int shrinkFlags);
ncclResult_t pncclCommGetUniqueId(ncclComm_t comm, ncclUniqueId *uniqueId);
ncclResult_t pncclCommGrow(ncclComm_t comm, int nRanks, const ncclUniqueId *uniqueId,
	int rank, ncclComm_t *newcomm, ncclConfig_t *config);
ncclResult_t pncclCommFinalize(ncclComm_t comm);
ncclResult_t pncclCommDestroy(ncclComm_t comm);
ncclResult_t pncclCommAbort(ncclComm_t comm);
ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags);
ncclResult_t pncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t pncclCommResume(ncclComm_t comm);
ncclResult_t pncclCommMemStats(ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value);
ncclResult_t pncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank);
ncclResult_t pncclMemAlloc(void **ptr, size_t size);
ncclResult_t pncclMemFree(void *ptr);
ncclResult_t pncclCommRegister(
	const ncclComm_t comm, void *buff, size_t size, void **handle);
ncclResult_t pncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t pncclCommWindowRegister(
	ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int winFlags);
ncclResult_t pncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
ncclResult_t pncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void **outUserPtr);
ncclResult_t pncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar,
	ncclDataType_t datatype, ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t pncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);
ncclResult_t pncclReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream);
ncclResult_t pncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGather(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclScatter(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclBroadcastConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclAllReduceConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclReduceScatterConfig(const void *sendbuff, void *recvbuff,
	size_t recvcount, ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
	cudaStream_t stream, const ncclCollConfig_t *config);
ncclResult_t pncclAllGatherConfig(const void *sendbuff, void *recvbuff, size_t sendcount,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclAlltoAllConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclGatherConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclScatterConfig(const void *sendbuff, void *recvbuff, size_t count,
	ncclDataType_t datatype, int root, ncclComm_t comm, cudaStream_t stream,
	const ncclCollConfig_t *config);
ncclResult_t pncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclPutSignal(const void *localbuff, size_t count, ncclDataType_t datatype,
	int peer, ncclWindow_t peerWin, size_t peerWinOffset, int sigIdx, int ctx,
	unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclSignal(int peer, int sigIdx, int ctx, unsigned int flags,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclWaitSignal(int nDesc, ncclWaitSignalDesc_t *signalDescs,
	ncclComm_t comm, cudaStream_t stream);
ncclResult_t pncclGroupStart(void);
ncclResult_t pncclGroupEnd(void);
ncclResult_t pncclGroupSimulateEnd(ncclSimInfo_t *simInfo);
ncclResult_t pncclParamBind(ncclParamHandle_t *out, const char *key);
ncclResult_t pncclParamGetI8(ncclParamHandle_t handle, int8_t *out);
ncclResult_t pncclParamGetI16(ncclParamHandle_t handle, int16_t *out);
ncclResult_t pncclParamGetI32(ncclParamHandle_t handle, int32_t *out);
ncclResult_t pncclParamGetI64(ncclParamHandle_t handle, int64_t *out);
ncclResult_t pncclParamGetU8(ncclParamHandle_t handle, uint8_t *out);
ncclResult_t pncclParamGetU16(ncclParamHandle_t handle, uint16_t *out);
ncclResult_t pncclParamGetU32(ncclParamHandle_t handle, uint32_t *out);
ncclResult_t pncclParamGetU64(ncclParamHandle_t handle, uint64_t *out);
ncclResult_t pncclParamGetStr(ncclParamHandle_t handle, const char **out);
ncclResult_t pncclParamGet(ncclParamHandle_t handle, void *out, int maxLen, int *len);
ncclResult_t pncclParamGetParameter(const char *key, const char **value, int *len);
ncclResult_t pncclParamGetAllParameterKeys(const char ***table, int *count);
void pncclParamDumpAll(void);

#ifdef __cplusplus
}
#endif

#endif
