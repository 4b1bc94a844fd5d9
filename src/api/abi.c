/*
 * abi.c - what the casts of this room rely on, said to the compiler. No code.
 */
#include "api/export.h"

#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is " #b)
#define AT(type, member, offset)                                                         \
	_Static_assert(offsetof(type, member) == (offset), #type "." #member)

SAME(OK, ncclSuccess);
SAME(ERR_CUDA, ncclUnhandledCudaError);
SAME(ERR_SYSTEM, ncclSystemError);
SAME(ERR_INTERNAL, ncclInternalError);
SAME(ERR_ARGUMENT, ncclInvalidArgument);
SAME(ERR_USAGE, ncclInvalidUsage);
SAME(ERR_REMOTE, ncclRemoteError);
SAME(ERR_PROGRESS, ncclInProgress);
SAME(ERR_TIMEOUT, ncclTimeout);

SAME(DTYPE_INT8, ncclInt8);
SAME(DTYPE_UINT8, ncclUint8);
SAME(DTYPE_INT32, ncclInt32);
SAME(DTYPE_UINT32, ncclUint32);
SAME(DTYPE_INT64, ncclInt64);
SAME(DTYPE_UINT64, ncclUint64);
SAME(DTYPE_FLOAT16, ncclFloat16);
SAME(DTYPE_FLOAT32, ncclFloat32);
SAME(DTYPE_FLOAT64, ncclFloat64);
SAME(DTYPE_BFLOAT16, ncclBfloat16);
SAME(DTYPE_FLOAT8E4M3, ncclFloat8e4m3);
SAME(DTYPE_FLOAT8E5M2, ncclFloat8e5m2);
SAME(DTYPE_COUNT, ncclNumTypes);

SAME(REDOP_SUM, ncclSum);
SAME(REDOP_PROD, ncclProd);
SAME(REDOP_MAX, ncclMax);
SAME(REDOP_MIN, ncclMin);
SAME(REDOP_AVG, ncclAvg);
SAME(REDOP_PREMUL, ncclNumOps);

SAME(BOOT_ID_BYTES, NCCL_UNIQUE_ID_BYTES);
_Static_assert(sizeof(ncclUniqueId) == sizeof(struct boot_id), "an id is an id");
SAME(NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH), NCCL_VERSION_CODE);

/* The layouts other people's binaries were compiled with. */
AT(ncclConfig_t, size, 0);
AT(ncclConfig_t, magic, 8);
AT(ncclConfig_t, version, 12);
AT(ncclConfig_t, blocking, 16);
AT(ncclConfig_t, cgaClusterSize, 20);
AT(ncclConfig_t, minCTAs, 24);
AT(ncclConfig_t, maxCTAs, 28);
AT(ncclConfig_t, netName, 32);
AT(ncclConfig_t, splitShare, 40);
AT(ncclConfig_t, trafficClass, 44);
AT(ncclConfig_t, commName, 48);
AT(ncclConfig_t, collnetEnable, 56);
AT(ncclConfig_t, CTAPolicy, 60);
AT(ncclConfig_t, shrinkShare, 64);
AT(ncclConfig_t, nvlsCTAs, 68);
AT(ncclConfig_t, nChannelsPerNetPeer, 72);
AT(ncclConfig_t, nvlinkCentricSched, 76);
AT(ncclConfig_t, graphUsageMode, 80);
AT(ncclConfig_t, numRmaCtx, 84);
AT(ncclConfig_t, maxP2pPeers, 88);
AT(ncclConfig_t, graphStreamOrdering, 92);
_Static_assert(sizeof(ncclConfig_t) == 96, "ncclConfig_t of 2.30.7");

AT(ncclSimInfo_t, magic, 8);
AT(ncclSimInfo_t, version, 12);
AT(ncclSimInfo_t, estimatedTime, 16);
_Static_assert(sizeof(ncclSimInfo_t) == 24, "ncclSimInfo_t of 2.22");

AT(ncclCommProperties_t, rank, 16);
AT(ncclCommProperties_t, deviceApiSupport, 32);
AT(ncclCommProperties_t, ginType, 36);
AT(ncclCommProperties_t, hostRmaSupport, 44);
AT(ncclCommProperties_t, railedGinType, 48);
_Static_assert(sizeof(ncclTeam_t) == 12, "ncclTeam_t");
_Static_assert(sizeof(ncclWaitSignalDesc_t) == 16, "ncclWaitSignalDesc_t");
