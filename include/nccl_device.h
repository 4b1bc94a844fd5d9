/*
 * nccl_device.h - the host side of NCCL's device API.
 *
 * Kernels that communicate by themselves need a GPU; on host memory there is nothing to
 * hand to them. The functions exist so that programs which merely link them load: those
 * that would make device state fail with ncclInvalidUsage, those that ask about ranks or
 * properties answer truly. Include this header only where nccl.h is not enough.
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

/* Filled by NCCL for its kernels; never filled here. */
typedef struct ncclDevComm ncclDevComm_t;
typedef struct ncclDevCommRequirements ncclDevCommRequirements_t;
typedef struct ncclDevResourceRequirements ncclDevResourceRequirements_t;
typedef struct ncclLsaBarrierHandle ncclLsaBarrierHandle_t;
typedef struct ncclGinBarrierHandle ncclGinBarrierHandle_t;
typedef struct ncclLLA2AHandle ncclLLA2AHandle_t;

typedef struct ncclMultimemHandle {
	void *mcBasePtr;
} ncclMultimemHandle_t;

typedef enum {
	NCCL_GIN_TYPE_NONE = 0,
	NCCL_GIN_TYPE_PROXY = 2,
	NCCL_GIN_TYPE_GDAKI = 3,
	NCCL_GIN_TYPE_GPI = 4
} ncclGinType_t;

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
	bool hostRmaSupport;
	ncclGinType_t railedGinType;
} ncclCommProperties_t;

#define NCCL_COMM_PROPERTIES_INITIALIZER                                                 \
	{                                                                                \
		sizeof(ncclCommProperties_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, 0, 0,   \
			0, 0, false, false, NCCL_GIN_TYPE_NONE, 0, false,                \
			NCCL_GIN_TYPE_NONE                                               \
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
int pncclLLA2ACalcSlots(int maxElts, int maxEltSize);

#ifdef __cplusplus
}
#endif

#endif
