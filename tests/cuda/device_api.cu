/*
 * device_api.cu - a program with kernels of NCCL's device API, for compilers only: every
 * name that nccl-tests uses, in the ways it uses them. Nothing runs it.
 */
#include <stdio.h>
#include <string.h>
#include <vector>

#include "nccl.h"
#include "nccl_device.h"

/* Where in which window. */
struct place {
	ncclWindow_t window;
	size_t offset;
};

/* Sums every rank's vector by loading it, and stores the sum at every rank. */
template <typename T>
__global__ void all_reduce(place from, place to, size_t count, struct ncclDevComm comm)
{
	ncclLsaBarrierSession<ncclCoopCta> barrier{
		ncclCoopCta(), comm, ncclTeamLsa(comm), comm.lsaBarrier, blockIdx.x};
	size_t first = threadIdx.x + blockDim.x * (comm.rank + blockIdx.x * comm.nRanks);

	barrier.sync(ncclCoopCta(), cuda::memory_order_relaxed);
	for (size_t i = first; i < count; i += blockDim.x * gridDim.x * comm.nRanks) {
		T sum = T{0};

		for (int peer = 0; peer < comm.nRanks; peer++)
			sum += ((T *)ncclGetLsaPointer(
				from.window, from.offset, peer))[i];
		for (int peer = 0; peer < comm.nRanks; peer++)
			((T *)ncclGetLsaPointer(to.window, to.offset, peer))[i] = sum;
	}
	barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}

/* The same with one load and one store through the switch. */
template <typename T>
__global__ void multicast(place from, place to, size_t count, struct ncclDevComm comm)
{
	ncclLsaBarrierSession<ncclCoopCta> barrier{
		ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x, true};
	T *in = reinterpret_cast<T *>(
		ncclGetLsaMultimemPointer(from.window, from.offset, comm));
	T *out = reinterpret_cast<T *>(
		ncclGetLsaMultimemPointer(to.window, to.offset, comm));

	barrier.arrive(ncclCoopCta(), cuda::memory_order_acq_rel);
	barrier.wait(ncclCoopCta(), cuda::memory_order_acq_rel);
	for (size_t i = threadIdx.x; i < count; i += blockDim.x)
		out[i] = in[i];
	barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}

/* Near ranks by storing, far ones through the network. */
template <typename T>
__global__ void alltoall(place from, place to, size_t count, struct ncclDevComm comm)
{
	unsigned int index = 0;
	ncclGin gin{comm, 0};
	uint64_t before = gin.readSignal(index);
	ncclBarrierSession<ncclCoopCta> barrier{
		ncclCoopCta(), ncclTeamTagWorld(), gin, blockIdx.x};
	ncclTeam world = ncclTeamWorld(comm), lsa = ncclTeamLsa(comm);
	T *mine = (T *)ncclGetLocalPointer(from.window, from.offset);

	barrier.sync(
		ncclCoopCta(), cuda::memory_order_relaxed, ncclGinFenceLevel::Relaxed);
	for (int peer = threadIdx.x; peer < world.rank - lsa.rank; peer += blockDim.x)
		gin.put(world, peer, to.window,
			to.offset + world.rank * count * sizeof(T), from.window,
			from.offset + peer * count * sizeof(T), count * sizeof(T),
			ncclGin_SignalInc{index});
	for (int peer = 0; peer < lsa.nRanks; peer++) {
		T *out = (T *)ncclGetLsaPointer(to.window, to.offset, peer);

		for (size_t i = threadIdx.x; i < count; i += blockDim.x)
			out[world.rank * count + i] = mine[peer * count + i];
	}
	gin.waitSignal(ncclCoopCta(), index, before + world.nRanks - lsa.nRanks);
	gin.flush(ncclCoopCta());
	barrier.sync(
		ncclCoopCta(), cuda::memory_order_release, ncclGinFenceLevel::Relaxed);
}

typedef void (*kernel_fn)(place, place, size_t, struct ncclDevComm);

int main()
{
	kernel_fn kernels[] = {all_reduce<float>, multicast<double>, alltoall<int8_t>};
	ncclDevCommRequirements empty = {};
	ncclDevCommRequirements wishes = NCCL_DEV_COMM_REQUIREMENTS_INITIALIZER;
	std::vector<ncclDevComm> comms(1);
	ncclComm_t comm;

	if (memcmp(&empty, &wishes, sizeof(empty)) != 0)
		return 1;
	wishes.lsaMultimem = true;
	wishes.lsaBarrierCount = wishes.barrierCount = 16;
	wishes.ginSignalCount = 16;
	if (ncclCommInitAll(&comm, 1, NULL) != ncclSuccess)
		return 1;
	if (ncclDevCommCreate(comm, &wishes, comms.data()) != ncclSuccess) {
		printf("%s\n", ncclGetLastError(comm));
		return 0;
	}
	for (kernel_fn kernel : kernels)
		kernel<<<16, 512>>>({NULL, 0}, {NULL, 0}, 0, comms[0]);
	return ncclDevCommDestroy(comm, comms.data()) != ncclSuccess;
}
