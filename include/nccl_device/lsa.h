/*
 * nccl_device/lsa.h - ranks whose memory a kernel loads and stores directly (LSA): their
 * addresses and a barrier. Comes with nccl_device.h.
 *
 * Blocks have one dimension. Multicast is not there: its pointers stop the kernel.
 */
/* First, so that this header alone brings the others in their order. */
#include "../nccl_device.h"

#ifndef NCCL_DEVICE_LSA_H
#define NCCL_DEVICE_LSA_H

#ifdef __CUDACC__

#include <cuda/atomic>

#include "coop.h"

/* A window as a kernel sees it: where each rank of the LSA team has mapped it here. */
struct ncclWindow_vidmem {
	char *const *lsaBase;
	int lsaRank;
	int worldRank;
};

/* Teams by name. */
struct ncclTeamTagWorld {
};
struct ncclTeamTagLsa {
};
struct ncclTeamTagRail {
};

/* ---- teams ---- */

inline __host__ __device__ ncclTeam ncclTeamWorld(const ncclDevComm &comm)
{
	return ncclTeam{comm.nRanks, comm.rank, 1};
}

inline __host__ __device__ ncclTeam ncclTeamLsa(const ncclDevComm &comm)
{
	return ncclTeam{comm.lsaSize, comm.lsaRank, 1};
}

/* The ranks at the caller's place in all LSA teams. */
inline __host__ __device__ ncclTeam ncclTeamRail(const ncclDevComm &comm)
{
	return ncclTeam{
		comm.nRanks / comm.lsaSize, comm.rank / comm.lsaSize, comm.lsaSize};
}

inline __host__ __device__ int ncclTeamRankToWorld(
	const ncclDevComm &comm, ncclTeam team, int rank)
{
	return comm.rank + (rank - team.rank) * team.stride;
}

inline __host__ __device__ int ncclTeamRankToLsa(
	const ncclDevComm &comm, ncclTeam team, int rank)
{
	return comm.lsaRank + (rank - team.rank) * team.stride;
}

/* ---- addresses ---- */

/* `offset` bytes into the window of rank `peer` of the LSA team. */
inline __device__ void *ncclGetLsaPointer(ncclWindow_t window, size_t offset, int peer)
{
	return window->lsaBase[peer] + offset;
}

inline __device__ void *ncclGetLocalPointer(ncclWindow_t window, size_t offset)
{
	return window->lsaBase[window->lsaRank] + offset;
}

/* The same by the number among all ranks, or in a team. */
inline __device__ void *ncclGetPeerPointer(ncclWindow_t window, size_t offset, int peer)
{
	return window->lsaBase[window->lsaRank + peer - window->worldRank] + offset;
}

inline __device__ void *ncclGetPeerPointer(
	ncclWindow_t window, size_t offset, ncclTeam team, int peer)
{
	int place = window->lsaRank + (peer - team.rank) * team.stride;

	return window->lsaBase[place] + offset;
}

inline __device__ void *ncclGetMultimemPointer(
	ncclWindow_t window, size_t offset, ncclMultimemHandle multimem)
{
	(void)window;
	(void)offset;
	__trap();
	return multimem.mcBasePtr;
}

inline __device__ void *ncclGetLsaMultimemPointer(
	ncclWindow_t window, size_t offset, const ncclDevComm &comm)
{
	return ncclGetMultimemPointer(window, offset, comm.lsaMultimem);
}

inline __host__ __device__ size_t ncclGetResourceBufferOffset(
	ncclDevResourceHandle handle)
{
	return (size_t)handle * 128;
}

/* ---- the barrier ---- */

/* Barrier `index` of a team. Every rank's resource window has, for each barrier, one word
 * per rank: a peer's says how often that peer has arrived, the rank's own how often it
 * has passed. Whoever waits reads its own memory only. */
template <typename Coop> class ncclLsaBarrierSession
{
	Coop coop;
	const ncclDevComm &comm;
	ncclTeam team;
	size_t offset;
	uint32_t passed;

	typedef cuda::atomic_ref<uint32_t, cuda::thread_scope_system> Word;

	/* The word of `from` at `owner`. */
	__device__ Word word(int owner, int from) const
	{
		char *base = (char *)ncclGetLsaPointer(comm.resourceWindow, offset,
			ncclTeamRankToLsa(comm, team, owner));

		return Word(((uint32_t *)base)[from]);
	}

      public:
	/* Multicast could only make it quicker, so that wish is not looked at. */
	__device__ ncclLsaBarrierSession(Coop threads, const ncclDevComm &devComm,
		ncclTeam members, ncclLsaBarrierHandle handle, uint32_t index,
		bool multimem = false, ncclMultimemHandle multimemHandle = {})
	    : coop(threads), comm(devComm), team(members),
	      offset(ncclGetResourceBufferOffset(handle.bufHandle) +
		      index * sizeof(uint32_t) * (size_t)members.nRanks)
	{
		(void)multimem;
		(void)multimemHandle;
		passed = word(team.rank, team.rank).load(cuda::memory_order_relaxed);
	}

	__device__ ncclLsaBarrierSession(Coop threads, const ncclDevComm &devComm,
		ncclTeamTagLsa, uint32_t index, bool multimem = false)
	    : ncclLsaBarrierSession(threads, devComm, ncclTeamLsa(devComm),
		      devComm.lsaBarrier, index, multimem)
	{
	}

	ncclLsaBarrierSession(const ncclLsaBarrierSession &) = delete;

	__device__ ~ncclLsaBarrierSession()
	{
		if (coop.thread_rank() == 0)
			word(team.rank, team.rank)
				.store(passed, cuda::memory_order_relaxed);
		coop.sync();
	}

	__device__ void arrive(Coop, cuda::memory_order order)
	{
		bool plain = order == cuda::memory_order_relaxed ||
			     order == cuda::memory_order_acquire ||
			     order == cuda::memory_order_consume;
		cuda::memory_order mine = plain ? cuda::memory_order_relaxed
						: cuda::memory_order_release;

		coop.sync();
		for (int peer = coop.thread_rank(); peer < team.nRanks;
			peer += coop.size())
			if (peer != team.rank)
				word(peer, team.rank).store(passed + 1, mine);
	}

	/* Counts wrap around, so they are compared by their difference. */
	__device__ void wait(Coop, cuda::memory_order order)
	{
		bool plain = order == cuda::memory_order_relaxed ||
			     order == cuda::memory_order_release;
		cuda::memory_order mine = plain ? cuda::memory_order_relaxed
						: cuda::memory_order_acquire;

		for (int peer = coop.thread_rank(); peer < team.nRanks;
			peer += coop.size())
			while (peer != team.rank &&
				(int32_t)(word(team.rank, peer).load(mine) - passed) <= 0)
				;
		passed++;
		coop.sync();
	}

	__device__ void sync(Coop, cuda::memory_order order)
	{
		arrive(coop, order);
		wait(coop, order);
	}
};

#endif

#endif
