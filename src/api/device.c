/*
 * device.c - nccl_device.h's host side: what can be answered is answered, what would make
 * state for a kernel is refused.
 */
#include <string.h>

#include "api/check.h"

static ncclResult_t no_kernels(const char *function)
{
	return result_of(err_set(ERR_USAGE,
		"%s: kernels that communicate by themselves are not supported, on a GPU "
		"either; call the collectives from the host",
		function));
}

/* Members the caller's release does not have yet are not written. */
ncclResult_t pncclCommQueryProperties(ncclComm_t comm, ncclCommProperties_t *props)
{
	const char *function = "CommQueryProperties";
	ncclCommProperties_t mine = NCCL_COMM_PROPERTIES_INITIALIZER;
	enum err e = check_ready(comm_of(comm), function);

	if (!e)
		e = check_pointer(props, function, "props");
	if (!e && (props->magic != NCCL_API_MAGIC || props->size < 16))
		e = err_set(ERR_ARGUMENT,
			"%s: props was not initialized with "
			"NCCL_COMM_PROPERTIES_INITIALIZER",
			function);
	if (e)
		return result_of(e);
	mine.size = props->size;
	mine.version = props->version;
	mine.rank = (int)comm_rank(comm_of(comm));
	mine.nRanks = (int)comm_rank_count(comm_of(comm));
	mine.cudaDev = mine.nvmlDev = comm_device(comm_of(comm));
	mine.nLsaTeams = mine.nRanks;
	mine.hostRmaSupport = comm_can_put(comm_of(comm));
	mine.commHash = comm_hash(comm_of(comm));
	memcpy(props, &mine, props->size < sizeof(mine) ? props->size : sizeof(mine));
	return ncclSuccess;
}
WEAK_TWIN(ncclCommQueryProperties);

ncclResult_t pncclDevCommCreate(
	ncclComm_t comm, const ncclDevCommRequirements_t *reqs, ncclDevComm_t *outDevComm)
{
	enum err e = check_comm(comm_of(comm), "DevCommCreate");

	(void)reqs;
	(void)outDevComm;
	return e ? result_of(e) : no_kernels("DevCommCreate");
}
WEAK_TWIN(ncclDevCommCreate);

ncclResult_t pncclDevCommDestroy(ncclComm_t comm, const ncclDevComm_t *devComm)
{
	enum err e = check_handle(comm_of(comm), "DevCommDestroy");

	(void)devComm;
	return e ? result_of(e) : no_kernels("DevCommDestroy");
}
WEAK_TWIN(ncclDevCommDestroy);

ncclTeam_t pncclTeamWorld(ncclComm_t comm)
{
	if (check_ready(comm_of(comm), "TeamWorld"))
		return (ncclTeam_t){0};
	return (ncclTeam_t){.nRanks = (int)comm_rank_count(comm_of(comm)),
		.rank = (int)comm_rank(comm_of(comm)),
		.stride = 1};
}
WEAK_TWIN(ncclTeamWorld);

ncclTeam_t pncclTeamLsa(ncclComm_t comm)
{
	if (check_ready(comm_of(comm), "TeamLsa"))
		return (ncclTeam_t){0};
	return (ncclTeam_t){.nRanks = 1, .rank = 0, .stride = 1};
}
WEAK_TWIN(ncclTeamLsa);

/* Every LSA team has one rank, so the rail through all of them is the world. */
ncclTeam_t pncclTeamRail(ncclComm_t comm)
{
	return pncclTeamWorld(comm);
}
WEAK_TWIN(ncclTeamRail);

static ncclTeam_t no_endpoints(ncclComm_t comm, const char *function)
{
	if (!check_ready(comm_of(comm), function))
		err_set(ERR_USAGE,
			"%s: no fabric here has logical endpoints; "
			"ncclCommQueryProperties() "
			"says so in cftSupport",
			function);
	return (ncclTeam_t){0};
}

ncclTeam_t pncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode)
{
	(void)mode;
	return no_endpoints(comm, "TeamCft");
}
WEAK_TWIN(ncclTeamCft);

ncclTeam_t pncclTeamCftMultimem(ncclComm_t comm)
{
	return no_endpoints(comm, "TeamCftMultimem");
}
WEAK_TWIN(ncclTeamCftMultimem);

int pncclTeamRankToWorld(ncclComm_t comm, ncclTeam_t team, int rank)
{
	if (check_ready(comm_of(comm), "TeamRankToWorld"))
		return -1;
	return (int)comm_rank(comm_of(comm)) + (rank - team.rank) * team.stride;
}
WEAK_TWIN(ncclTeamRankToWorld);

int pncclTeamRankToLsa(ncclComm_t comm, ncclTeam_t team, int rank)
{
	if (check_ready(comm_of(comm), "TeamRankToLsa"))
		return -1;
	return (rank - team.rank) * team.stride;
}
WEAK_TWIN(ncclTeamRankToLsa);

ncclResult_t pncclGetLsaDevicePointer(
	ncclWindow_t window, size_t offset, int lsaRank, void **outPtr)
{
	(void)window;
	(void)offset;
	(void)lsaRank;
	(void)outPtr;
	return no_kernels("GetLsaDevicePointer");
}
WEAK_TWIN(ncclGetLsaDevicePointer);

ncclResult_t pncclGetPeerDevicePointer(
	ncclWindow_t window, size_t offset, int peer, void **outPtr)
{
	(void)window;
	(void)offset;
	(void)peer;
	(void)outPtr;
	return no_kernels("GetPeerDevicePointer");
}
WEAK_TWIN(ncclGetPeerDevicePointer);

ncclResult_t pncclGetLsaMultimemDevicePointer(
	ncclWindow_t window, size_t offset, void **outPtr)
{
	(void)window;
	(void)offset;
	(void)outPtr;
	return no_kernels("GetLsaMultimemDevicePointer");
}
WEAK_TWIN(ncclGetLsaMultimemDevicePointer);

ncclResult_t pncclGetMultimemDevicePointer(
	ncclWindow_t window, size_t offset, ncclMultimemHandle_t multimem, void **outPtr)
{
	(void)window;
	(void)offset;
	(void)multimem;
	(void)outPtr;
	return no_kernels("GetMultimemDevicePointer");
}
WEAK_TWIN(ncclGetMultimemDevicePointer);

ncclResult_t pncclLsaBarrierCreateRequirement(ncclTeam_t team, int nBarriers,
	ncclLsaBarrierHandle_t *outHandle, ncclDevResourceRequirements_t *outReq)
{
	(void)team;
	(void)nBarriers;
	(void)outHandle;
	(void)outReq;
	return no_kernels("LsaBarrierCreateRequirement");
}
WEAK_TWIN(ncclLsaBarrierCreateRequirement);

ncclResult_t pncclGinBarrierCreateRequirement(ncclComm_t comm, ncclTeam_t team,
	int nBarriers, ncclGinBarrierHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq)
{
	(void)comm;
	(void)team;
	(void)nBarriers;
	(void)outHandle;
	(void)outReq;
	return no_kernels("GinBarrierCreateRequirement");
}
WEAK_TWIN(ncclGinBarrierCreateRequirement);

ncclResult_t pncclLLA2ACreateRequirement(int nBlocks, int nSlots,
	ncclLLA2AHandle_t *outHandle, ncclDevResourceRequirements_t *outReq)
{
	(void)nBlocks;
	(void)nSlots;
	(void)outHandle;
	(void)outReq;
	return no_kernels("LLA2ACreateRequirement");
}
WEAK_TWIN(ncclLLA2ACreateRequirement);

ncclResult_t pncclGinOutboxCreateRequirement(int nBlocks, int size_log2,
	ncclGinOutboxHandle_t *outHandle, ncclDevResourceRequirements_t *outReq)
{
	(void)nBlocks;
	(void)size_log2;
	(void)outHandle;
	(void)outReq;
	return no_kernels("GinOutboxCreateRequirement");
}
WEAK_TWIN(ncclGinOutboxCreateRequirement);

ncclResult_t pncclGinInboxA2ACreateRequirement(ncclTeam_t peers, int nBlocks,
	int size_log2, ncclGinInboxA2AHandle_t *outHandle,
	ncclDevResourceRequirements_t *outReq)
{
	(void)peers;
	(void)nBlocks;
	(void)size_log2;
	(void)outHandle;
	(void)outReq;
	return no_kernels("GinInboxA2ACreateRequirement");
}
WEAK_TWIN(ncclGinInboxA2ACreateRequirement);

ncclResult_t pncclGetMultimemDeviceLeInfo(
	ncclWindow_t window, size_t offset, ncclCftLeId *outLeId, size_t *outLeOffset)
{
	(void)window;
	(void)offset;
	(void)outLeId;
	(void)outLeOffset;
	return no_kernels("GetMultimemDeviceLeInfo");
}
WEAK_TWIN(ncclGetMultimemDeviceLeInfo);

ncclResult_t pncclGetPeerDeviceLeInfo(ncclWindow_t window, size_t offset, int peerWorld,
	ncclCftLeId *outLeId, size_t *outLeOffset)
{
	(void)window;
	(void)offset;
	(void)peerWorld;
	(void)outLeId;
	(void)outLeOffset;
	return no_kernels("GetPeerDeviceLeInfo");
}
WEAK_TWIN(ncclGetPeerDeviceLeInfo);

ncclResult_t pncclGetCftDeviceLeInfo(ncclWindow_t window, size_t offset, int peerCft,
	ncclTeam_t team, ncclCftLeId *outLeId, size_t *outLeOffset)
{
	(void)window;
	(void)offset;
	(void)peerCft;
	(void)team;
	(void)outLeId;
	(void)outLeOffset;
	return no_kernels("GetCftDeviceLeInfo");
}
WEAK_TWIN(ncclGetCftDeviceLeInfo);

int pncclLLA2ACalcSlots(int maxElts, int maxEltSize)
{
	(void)maxElts;
	(void)maxEltSize;
	return 0;
}
WEAK_TWIN(ncclLLA2ACalcSlots);
