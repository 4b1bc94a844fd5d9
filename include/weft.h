/*
 * weft.h - the few things NCCL has no name for.
 *
 * A host stream is a queue of calls that one helper thread runs in order, as a CUDA
 * stream would: a collective given a host stream returns at once and has finished when
 * the stream was synchronized. It goes wherever nccl.h asks for a cudaStream_t.
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
