/*
 * export.h - the public headers as the library itself sees them.
 *
 * An entry point is written under its strong name, pncclX(), and WEAK_TWIN(ncclX) gives
 * it the weak one beside it. Handles of the public header are our structures under
 * another name; the casts are here and nowhere else.
 */
#ifndef API_EXPORT_H
#define API_EXPORT_H

#pragma GCC visibility push(default)
#include "nccl.h"
#include "nccl_device.h"
#include "weft.h"
#pragma GCC visibility pop

#include "comm/comm.h"

#define WEAK_TWIN(name)                                                                  \
	extern __typeof__(p##name) name __attribute__((weak, alias("p" #name)))

static inline ncclResult_t result_of(enum err code)
{
	return (ncclResult_t)code;
}

static inline struct comm *comm_of(ncclComm_t handle)
{
	return (struct comm *)handle;
}

static inline ncclComm_t handle_of(struct comm *comm)
{
	return (ncclComm_t)comm;
}

#endif
