/* A peer: any MPI. mpirun -n N ./mpi_coll COLLECTIVE BYTES,BYTES,.. (see method.h) */
#include <mpi.h>

#include "method.h"

static void call(int coll, float *send, float *recv, size_t bytes, int ranks)
{
	int all = (int)(bytes / sizeof(float)), block = (int)method_block(bytes, ranks);

	switch (coll) {
	case ALL_REDUCE:
		MPI_Allreduce(send, recv, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case ALL_GATHER:
		MPI_Allgather(
			send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	case REDUCE_SCATTER:
		MPI_Reduce_scatter_block(
			send, recv, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		break;
	case BROADCAST:
		MPI_Bcast(send, all, MPI_FLOAT, 0, MPI_COMM_WORLD);
		break;
	default:
		MPI_Alltoall(
			send, block, MPI_FLOAT, recv, block, MPI_FLOAT, MPI_COMM_WORLD);
		break;
	}
}

/* Seconds per call of the slowest rank. */
static double loop(int coll, float *send, float *recv, size_t bytes, int ranks, int iters)
{
	double start, mine, slowest;

	MPI_Barrier(MPI_COMM_WORLD);
	start = method_now();
	for (int i = 0; i < iters; i++)
		call(coll, send, recv, bytes, ranks);
	mine = (method_now() - start) / iters;
	MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

static void time_size(int coll, float *send, float *recv, size_t bytes, int ranks)
{
	double best = 0;
	int rank, iters;

	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	iters = method_loop(
		bytes, loop(coll, send, recv, bytes, ranks, method_warm(bytes)));
	for (int i = 0; i < METHOD_LOOPS; i++) {
		double seconds = loop(coll, send, recv, bytes, ranks, iters);
		best = i && best < seconds ? best : seconds;
	}
	if (!rank)
		method_print(coll, ranks, bytes, best);
}

int main(int argc, char **argv)
{
	size_t sizes[METHOD_SIZES_MAX], room;
	float *send, *recv;
	int ranks, count, coll;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	coll = argc == 3 ? method_find(argv[1]) : METHOD_COLLS;
	if (coll == METHOD_COLLS) {
		fprintf(stderr, "usage: mpi_coll COLLECTIVE BYTES[,BYTES..]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	count = method_sizes(argv[2], sizes);
	room = method_buffer(method_largest(sizes, count), ranks);
	send = aligned_alloc(4096, room);
	recv = aligned_alloc(4096, room);
	if (!send || !recv)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(send, 0, room);
	memset(recv, 0, room);
	for (int i = 0; i < count; i++)
		time_size(coll, send, recv, sizes[i], ranks);
	free(send);
	free(recv);
	MPI_Finalize();
	return 0;
}
