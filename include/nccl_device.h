/*
 * nccl_device.h - NCCL's device API: kernels that communicate by themselves.
 *
 * Programs with such kernels compile, link and load. The library makes no state for
 * kernels yet: functions that would fail with ncclInvalidUsage, those that ask about
 * ranks or properties answer truly. So no kernel is ever handed a ncclDevComm, and what
 * follows here is the shape that one would have. Under nvcc the device side comes along:
 * nccl_device/coop.h, lsa.h and gin.h. Include this header only where nccl.h is not
 * enough.
 */
#ifndef NCCL_DEVICE_H_
#define NCCL_DEVICE_H_

#include "nccl.h"

#ifndef __cplusplus
#include <stdbool.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Some of a communicator's ranks: every `stride`th, `nRanks` of them, of which the caller
 * is number `rank`. */
typedef struct ncclTeam {
	int nRanks;
	int rank;
	int stride;
} ncclTeam_t;

/* Device memory that the library keeps for a kernel: a multiple of 128 bytes into the
 * resource window. */
typedef uint32_t ncclDevResourceHandle;
typedef ncclDevResourceHandle ncclDevResourceHandle_t;

/* Numbers of signals and counters of the network interface that kernels drive. */
typedef uint32_t ncclGinSignal_t;
typedef uint32_t ncclGinCounter_t;

/* The address under which one store reaches all ranks of a team; NULL: there is none. */
typedef struct ncclMultimemHandle {
	void *mcBasePtr;
} ncclMultimemHandle_t;

/* Barriers among ranks that load and store each other's memory, and among others. */
typedef struct ncclLsaBarrierHandle {
	ncclDevResourceHandle_t bufHandle;
	int nBarriers;
} ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle {
	ncclGinSignal_t signal0;
} ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;
typedef struct ncclGinOutboxHandle ncclGinOutboxHandle_t;
typedef struct ncclGinInboxA2AHandle ncclGinInboxA2AHandle_t;

/* What a program wants besides, as lists: memory and signals, and multicast teams. */
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
struct ncclDevResourceRequirements {
	ncclDevResourceRequirements_t *next;
	size_t bufferSize;
	size_t bufferAlign;
	ncclDevResourceHandle_t *outBufferHandle;
	int ginSignalCount;
	int ginCounterCount;
	ncclGinSignal_t *outGinSignalStart;
	ncclGinCounter_t *outGinCounterStart;
};
typedef struct ncclTeamRequirements ncclTeamRequirements_t;
struct ncclTeamRequirements {
	ncclTeamRequirements_t *next;
	ncclTeam_t team;
	bool multimem;
	ncclMultimemHandle_t *outMultimemHandle;
};

/* Kinds of networks that kernels can drive, and which ranks they would reach. */
typedef enum {
	NCCL_GIN_TYPE_NONE = 0,
	NCCL_GIN_TYPE_PROXY = 2,
	NCCL_GIN_TYPE_GDAKI = 3,
	NCCL_GIN_TYPE_GPI = 4,
	NCCL_GIN_TYPE_EFA_GDA = 5,
	NCCL_GIN_MAX_TYPES = 6
} ncclGinType_t;
typedef enum {
	NCCL_GIN_CONNECTION_NONE = 0,
	NCCL_GIN_CONNECTION_FULL = 1,
	NCCL_GIN_CONNECTION_RAIL = 2,
	NCCL_GIN_CONNECTION_CUSTOM_STRIDE = 3
} ncclGinConnectionType_t;

/* Compute fabric transport: memory by endpoint and offset instead of an address. */
typedef enum {
	NCCL_CFT_TEAM_FLAT = 0,
	NCCL_CFT_TEAM_HIER_MULTIMEM = 1,
	NCCL_CFT_TEAM_HIER_LSA = 2
} ncclCftTeamMode_t;
typedef enum { NCCL_CFT_NONE = 0, NCCL_CFT = 1, NCCL_CFT_MULTIMEM = 2 } ncclCftCap_t;
typedef uint32_t ncclCftLeId; /* all ones: none */

/* What a program's kernels will use. The macro asks for nothing. The first three members
 * say which header the caller was compiled with. */
typedef struct ncclDevCommRequirements {
	size_t size;
	unsigned int magic;
	unsigned int version;
	ncclDevResourceRequirements_t *resourceRequirementsList;
	ncclTeamRequirements_t *teamRequirementsList;
	bool lsaMultimem;
	int barrierCount;
	int lsaBarrierCount;
	int railGinBarrierCount;
	int lsaLLA2ABlockCount;
	int lsaLLA2ASlotCount;
	bool ginForceEnable;
	int ginContextCount;
	int ginSignalCount;
	int ginCounterCount;
	ncclGinConnectionType_t ginConnectionType;
	bool ginExclusiveContexts;
	int ginQueueDepth;
	int ginTrafficClass;
	int worldGinBarrierCount;
	bool ginStrongSignalsRequired;
	bool ginVaSignalsRequired;
	int ginCustomStride;
	ncclGinType_t ginType;
	bool useRuntimeVersion;
	int cftCaps; /* ncclCftCap_t, joined */
	int cftBarrierCount;
} ncclDevCommRequirements_t;

#define NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER                                           \
	{                                                                                \
		sizeof(ncclDevCommRequirements_t), NCCL_API_MAGIC, NCCL_VERSION_CODE,    \
			NULL, NULL, false, 0, 0, 0, 0, 0, false, 4, 0, 0,                \
			NCCL_GIN_CONNECTION_NONE, false, 0, NCCL_CONFIG_UNDEF_INT, 0,    \
			true, true, 1, NCCL_GIN_TYPE_NONE, false, 0, 0                   \
	}

/* A communicator as a kernel sees it, passed by value. */
typedef struct ncclDevComm {
	int rank;
	int nRanks;
	int lsaRank;
	int lsaSize;
	ncclWindow_t resourceWindow;
	ncclMultimemHandle_t lsaMultimem;
	ncclLsaBarrierHandle_t lsaBarrier;
	ncclGinBarrierHandle_t railGinBarrier;
} ncclDevComm_t;

/* The caller fills size, magic and version; the library fills what fits in `size`. */
typedef struct ncclCommProperties {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int rank;
	int nRanks;
	int cudaDev;
	int nvmlDev;
	bool deviceApiSupport;
	bool multimemSupport;
	ncclGinType_t ginType;
	int nLsaTeams;
	bool hostRmaSupport; /* ncclPutSignal() works */
	ncclGinType_t railedGinType;
	uint64_t commHash; /* the same on all ranks, another for each communicator */
	int ginMinStride;
	ncclGinConnectionType_t ginConnectionType;
	bool ginSupport[64]; /* by ncclGinType_t */
	size_t devCommRuntimeVersionSize;
	bool cftSupport;
	bool cftMulticastSupport;
	bool cftCountedSupport;
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                                 \
	{                                                                                \
		sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, 0, 0,   \
			0, 0, false, false, NCCL_GIN_TYPE_NONE, 0, false,                \
			NCCL_GIN_TYPE_NONE, 0, 0, NCCL_GIN_CONNECTION_NONE, {false}, 0,  \
			false, false, false                                              \
	}

ncclResult_t ncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);

/* Always ncclInvalidUsage here. */
ncclResult_t ncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
	ncclDevComm_t *outDevComm);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);

/* All ranks; those whose memory can be loaded and stored directly (here, only the
 * caller); those at the same place in other such groups (here, all). An invalid
 * communicator gives a team of no ranks. */
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);

/* No fabric here has logical endpoints: always a team of no ranks. */
ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode);
ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm);

/* The number that `rank` of `team` has among all ranks, or in the caller's LSA team; -1
 * for an invalid communicator. */
int ncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int ncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);

/* Always ncclInvalidUsage here. */
ncclResult_t ncclGetLsaDevicePointer(
	ncclWindow_t window, size_t offset, int lsaRank, void **outPtr);
ncclResult_t ncclGetPeerDevicePointer(
	ncclWindow_t window, size_t offset, int peer, void **outPtr);
ncclResult_t ncclGetLsaMultimemDevicePointer(
	ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t ncclGetMultimemDevicePointer(
	ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr);
ncclResult_t ncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
	ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team,
	int nBarriers, ncclGinBarrierHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclLLA2ACreateRequirement(int nBlocks, int nSlots,
	ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinOutboxCreateRequirement(int nBlocks, int size_log2,
	ncclGinOutboxHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks,
	int size_log2, ncclGinInboxA2AHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq);
ncclResult_t ncclGetMultimemDeviceLeInfo(
	ncclWindow_t window, size_t offset, ncclCftLeId *outLeId, size_t *outLeOffset);
ncclResult_t ncclGetPeerDeviceLeInfo(ncclWindow_t window, size_t offset, int peerWorld,
	ncclCftLeId *outLeId, size_t *outLeOffset);
ncclResult_t ncclGetCftDeviceLeInfo(ncclWindow_t window, size_t offset, int peerCft,
	ncclTeam_t team, ncclCftLeId *outLeId, size_t *outLeOffset);
/* Always 0 here: there are no slots to count. */
int ncclLLA2ACalcSlots(int maxElts, int maxEltSize);

/* ---- the strong twins ---- */

ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props);
ncclResult_t pncclDevCommCreate(ncclComm_t comm, const ncclDevCommRequirements_t *reqs,
	ncclDevComm_t *outDevComm);
ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm);
ncclTeam_t pncclTeamWorld(ncclComm_t comm);
ncclTeam_t pncclTeamLsa(ncclComm_t comm);
ncclTeam_t pncclTeamRail(ncclComm_t comm);
ncclTeam_t pncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode);
ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm);
int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank);
int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank);
ncclResult_t pncclGetLsaDevicePointer(
	ncclWindow_t window, size_t offset, int lsaRank, void **outPtr);
ncclResult_t pncclGetPeerDevicePointer(
	ncclWindow_t window, size_t offset, int peer, void **outPtr);
ncclResult_t pncclGetLsaMultimemDevicePointer(
	ncclWindow_t window, size_t offset, void **outPtr);
ncclResult_t pncclGetMultimemDevicePointer(
	ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr);
ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
	ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team,
	int nBarriers, ncclGinBarrierHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq);
ncclResult_t pncclLLA2ACreateRequirement(int nBlocks, int nSlots,
	ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t pncclGinOutboxCreateRequirement(int nBlocks, int size_log2,
	ncclGinOutboxHandle_t *outHandle, ncclDevResourceRequirements_t *outReq);
ncclResult_t pncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks,
	int size_log2, ncclGinInboxA2AHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq);
ncclResult_t pncclGetMultimemDeviceLeInfo(
	ncclWindow_t window, size_t offset, ncclCftLeId *outLeId, size_t *outLeOffset);
ncclResult_t pncclGetPeerDeviceLeInfo(ncclWindow_t window, size_t offset, int peerWorld,
	ncclCftLeId *outLeId, size_t *outLeOffset);
ncclResult_t pncclGetCftDeviceLeInfo(ncclWindow_t window, size_t offset, int peerCft,
	ncclTeam_t team, ncclCftLeId *outLeId, size_t *outLeOffset);
int pncclLLA2ACalcSlots(int maxElts, int maxEltSize);

#ifdef __cplusplus
}
#endif

#ifdef __CUDACC__
#include "nccl_device/gin.h"
#endif

#endif
