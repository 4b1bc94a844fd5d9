/*
 * abi.c - what the casts of this room rely on, said to the compiler. No code.
 */
#include "api/export.h"
#include "base/env_plugin.h"

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

SAME(WINDOW_SYMMETRIC, NCCL_WIN_COLL_SYMMETRIC);
SAME(WINDOW_ORDERED, NCCL_WIN_STRICT_ORDERING);
SAME(WINDOW_GIN_ONLY, NCCL_WIN_GIN_ONLY);
SAME(WINDOW_COUNTED, NCCL_WIN_CFT_COUNTED);

SAME(BOOT_ID_BYTES, NCCL_UNIQUE_ID_BYTES);
_Static_assert(sizeof(ncclUniqueId) == sizeof(struct boot_id), "an id is an id");
SAME(ENV_PLUGIN_MAJOR, NCCL_MAJOR);
SAME(ENV_PLUGIN_MINOR, NCCL_MINOR);
SAME(ENV_PLUGIN_PATCH, NCCL_PATCH);
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
AT(ncclConfig_t, launchOrderImplicit, 96);
AT(ncclConfig_t, numRmaSig, 100);
AT(ncclConfig_t, rmaEagerInit, 104);
AT(ncclConfig_t, hostCftMode, 108);
AT(ncclConfig_t, nvlsHostMode, 112);
_Static_assert(sizeof(ncclConfig_t) == 120, "ncclConfig_t of 2.32");

AT(ncclCollConfig_t, version, 12);
AT(ncclCollConfig_t, ext, 16);
AT(ncclCollConfig_t, minCTAs, 24);
AT(ncclCollConfig_t, maxCTAs, 28);
AT(ncclCollConfig_t, nvlsCTAs, 32);
AT(ncclCollConfig_t, cgaClusterSize, 36);
AT(ncclCollConfig_t, algSelection, 40);
AT(ncclCollConfig_t, forceAlgSelection, 48);
AT(ncclCollConfig_t, CTAPolicy, 52);
AT(ncclCollConfig_t, userProfilerTag, 56);
AT(ncclCollConfig_t, launchCompletionEvent, 64);
_Static_assert(sizeof(ncclCollConfig_t) == 72, "ncclCollConfig_t of 2.32");
AT(ncclConfigExt_t, key, 8);
AT(ncclConfigExt_t, val, 16);
_Static_assert(sizeof(ncclConfigExt_t) == 24, "ncclConfigExt_t");
AT(ncclEncryptionConfig_t, mode, 16);
AT(ncclEncryptionConfig_t, psk, 24);
_Static_assert(sizeof(ncclEncryptionConfig_t) == 32, "ncclEncryptionConfig_t");

AT(ncclSimInfo_t, magic, 8);
AT(ncclSimInfo_t, version, 12);
AT(ncclSimInfo_t, estimatedTime, 16);
_Static_assert(sizeof(ncclSimInfo_t) == 24, "ncclSimInfo_t of 2.22");

AT(ncclCommProperties_t, rank, 16);
AT(ncclCommProperties_t, deviceApiSupport, 32);
AT(ncclCommProperties_t, ginType, 36);
AT(ncclCommProperties_t, hostRmaSupport, 44);
AT(ncclCommProperties_t, railedGinType, 48);
AT(ncclCommProperties_t, commHash, 56);
AT(ncclCommProperties_t, ginMinStride, 64);
AT(ncclCommProperties_t, ginConnectionType, 68);
AT(ncclCommProperties_t, ginSupport, 72);
AT(ncclCommProperties_t, devCommRuntimeVersionSize, 136);
AT(ncclCommProperties_t, cftSupport, 144);
_Static_assert(sizeof(ncclCommProperties_t) == 152, "ncclCommProperties_t of 2.32");
AT(ncclDevCommRequirements_t, lsaMultimem, 32);
AT(ncclDevCommRequirements_t, ginForceEnable, 56);
AT(ncclDevCommRequirements_t, ginConnectionType, 72);
AT(ncclDevCommRequirements_t, worldGinBarrierCount, 88);
AT(ncclDevCommRequirements_t, ginCustomStride, 96);
AT(ncclDevCommRequirements_t, ginType, 100);
AT(ncclDevCommRequirements_t, useRuntimeVersion, 104);
AT(ncclDevCommRequirements_t, cftCaps, 108);
AT(ncclDevCommRequirements_t, cftBarrierCount, 112);
_Static_assert(sizeof(ncclDevCommRequirements_t) == 120, "of 2.32");
_Static_assert(sizeof(ncclTeam_t) == 12, "ncclTeam_t");
_Static_assert(sizeof(ncclWaitSignalDesc_t) == 16, "ncclWaitSignalDesc_t");
