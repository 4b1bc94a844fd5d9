/*
 * weft.h - the few things NCCL has no name for.
 *
 * A host stream is a queue of calls that one helper thread runs in order, as a CUDA
 * stream would: a collective given a host stream returns at once and has finished when
 * the stream was synchronized. It goes wherever nccl.h asks for a cudaStream_t.
 *
 * A launcher starts the ranks of a job and tells each which one it is, in a way of its
 * own. weftInitFromEnv() knows these ways, so that a program needs neither MPI nor a word
 * about launchers.
 */
#ifndef WEFT_H_
#define WEFT_H_

#include "nccl.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION "0.1.0"

/* The library's own version, as WEFT_VERSION was when it was built. */
const char *weftVersion(void);

/* What the launcher that started this process says of it: mpirun, mpiexec, srun,
 * torchrun, weft run, a Kubernetes indexed Job; docs/launchers.md has all of them, and
 * which one counts when there are several. */
typedef struct {
	int rank, nRanks;
	int localRank, nLocalRanks; /* among those of this host; -1 where nobody says */
	const char *launcher;	    /* "Open MPI", "Slurm" .. or "no launcher" */
} weftLaunch_t;

/* Read the environment. Without a launcher this is rank 0 of 1. ncclInvalidUsage when its
 * variables do not fit together; ncclGetLastError() says what was looked for and what is
 * missing. */
ncclResult_t weftGetLaunch(weftLaunch_t *launch);

/* One unique id for all ranks that the launcher started: rank 0 makes it and the
 * launcher, a file or a connection to rank 0 carries it to the others. Every rank calls
 * it, the same number of times, and each time it is another id. Waits as long as
 * WEFT_BOOT_TIMEOUT_SEC says. */
ncclResult_t weftGetUniqueIdFromEnv(ncclUniqueId *uniqueId);

/* A communicator of all those ranks: the two above and ncclCommInitRank(). */
ncclResult_t weftInitFromEnv(ncclComm_t *comm);

ncclResult_t weftStreamCreate(cudaStream_t *stream);

/* Finish what is queued, then free. NULL is fine. */
ncclResult_t weftStreamDestroy(cudaStream_t stream);

/* Wait until everything queued has run. Returns the first failure since the last time
 * somebody asked. NULL is always idle. */
ncclResult_t weftStreamSynchronize(cudaStream_t stream);

/* As above without waiting: ncclInProgress while something is queued. */
ncclResult_t weftStreamQuery(cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
