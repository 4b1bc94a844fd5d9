/*
 * nccl_device/gin.h - kernels that send through the network themselves (GIN), and the
 * barrier that reaches beyond the LSA team. Comes with nccl_device.h.
 *
 * No network of this library can be driven by a kernel: whoever tries is stopped.
 */
/* First, so that this header alone brings the others in their order. */
#include "../nccl_device.h"

#ifndef NCCL_DEVICE_GIN_H
#define NCCL_DEVICE_GIN_H

#ifdef __CUDACC__

#include "lsa.h"

/* What happens when a put is done: at the peer a signal, here a counter, or nothing. */
struct ncclGin_None {
};
struct ncclGin_SignalInc {
	ncclGinSignal_t signal;
};
struct ncclGin_SignalAdd {
	ncclGinSignal_t signal;
	uint64_t value;
};
struct ncclGin_CounterInc {
	ncclGinCounter_t counter;
};

enum class ncclGinFenceLevel { Relaxed };

/* One context of the network interface. The arguments left open are the actions, the
 * threads, the order and the scopes, which nothing looks at. */
struct ncclGin {
	const ncclDevComm &comm;
	int contextId;

	__device__ ncclGin(const ncclDevComm &devComm, int contextIndex)
	    : comm(devComm), contextId(contextIndex)
	{
	}

	template <typename... Rest>
	__device__ void put(ncclTeam, int, ncclWindow_t, size_t, ncclWindow_t, size_t,
		size_t, Rest...) const
	{
		__trap();
	}

	template <typename T, typename... Rest>
	__device__ void putValue(ncclTeam, int, ncclWindow_t, size_t, T, Rest...) const
	{
		__trap();
	}

	template <typename Action, typename... Rest>
	__device__ void signal(ncclTeam, int, Action, Rest...) const
	{
		__trap();
	}

	template <typename Coop, typename... Rest>
	__device__ void flush(Coop, Rest...) const
	{
		__trap();
	}

	template <typename... Rest>
	__device__ uint64_t readSignal(ncclGinSignal_t, Rest...) const
	{
		__trap();
		return 0;
	}

	template <typename Coop, typename... Rest>
	__device__ void waitSignal(Coop, ncclGinSignal_t, uint64_t, Rest...) const
	{
		__trap();
	}

	__device__ void resetSignal(ncclGinSignal_t) const
	{
		__trap();
	}

	template <typename... Rest>
	__device__ uint64_t readCounter(ncclGinCounter_t, Rest...) const
	{
		__trap();
		return 0;
	}

	template <typename Coop, typename... Rest>
	__device__ void waitCounter(Coop, ncclGinCounter_t, uint64_t, Rest...) const
	{
		__trap();
	}

	__device__ void resetCounter(ncclGinCounter_t) const
	{
		__trap();
	}
};

/* A barrier of all ranks or of the LSA team; the former where they are the same. */
template <typename Coop> class ncclBarrierSession
{
	ncclLsaBarrierSession<Coop> lsa;

      public:
	__device__ ncclBarrierSession(Coop coop, ncclTeamTagWorld, ncclGin gin,
		uint32_t index, bool multimem = false)
	    : lsa(coop, gin.comm, ncclTeamTagLsa(), index, multimem)
	{
		if (gin.comm.lsaSize != gin.comm.nRanks)
			__trap();
	}

	__device__ ncclBarrierSession(Coop coop, ncclTeamTagLsa, const ncclDevComm &comm,
		uint32_t index, bool multimem = false)
	    : lsa(coop, comm, ncclTeamTagLsa(), index, multimem)
	{
	}

	ncclBarrierSession(const ncclBarrierSession &) = delete;

	__device__ ncclLsaBarrierSession<Coop> &lsaBarrier()
	{
		return lsa;
	}

	__device__ void sync(Coop coop, cuda::memory_order order, ncclGinFenceLevel)
	{
		lsa.sync(coop, order);
	}
};

#endif

#endif
