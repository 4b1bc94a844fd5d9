/* A peer: any MPI. mpirun -n N ./mpi_coll COLLECTIVE BYTES,BYTES,.. (see method.h) */
#include <mpi.h>

#include "method.h"

struct job {
	int coll, rank, ranks;
	float *send, *recv;
};

static void call(const struct job *job, size_t bytes)
{
	int all = (int)(bytes / sizeof(float)),
	    block = (int)method_block(bytes, job->ranks);
	float *send = job->send, *recv = job->recv;

	switch (job->coll) {
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
static double loop(const struct job *job, size_t bytes, int iters)
{
	double start, mine, slowest;

	MPI_Barrier(MPI_COMM_WORLD);
	start = method_now();
	for (int i = 0; i < iters; i++)
		call(job, bytes);
	mine = (method_now() - start) / iters;
	MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	return slowest;
}

static void time_size(const struct job *job, size_t bytes)
{
	double warm = loop(job, bytes, method_warm(bytes)), best = 0;
	int iters = method_loop(bytes, warm);

	for (int i = 0; i < METHOD_LOOPS; i++) {
		double seconds = loop(job, bytes, iters);
		best = i && best < seconds ? best : seconds;
	}
	if (!job->rank)
		method_print(job->coll, job->ranks, bytes, best);
}

int main(int argc, char **argv)
{
	size_t sizes[METHOD_SIZES_MAX], room;
	struct job job;
	int count;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
	job.coll = argc == 3 ? method_find(argv[1]) : METHOD_COLLS;
	if (job.coll == METHOD_COLLS) {
		fprintf(stderr, "usage: mpi_coll COLLECTIVE BYTES[,BYTES..]\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	count = method_sizes(argv[2], sizes);
	room = method_buffer(method_largest(sizes, count), job.ranks);
	job.send = aligned_alloc(4096, room);
	job.recv = aligned_alloc(4096, room);
	if (!job.send || !job.recv)
		MPI_Abort(MPI_COMM_WORLD, 1);
	memset(job.send, 0, room);
	memset(job.recv, 0, room);
	for (int i = 0; i < count; i++)
		time_size(&job, sizes[i]);
	free(job.send);
	free(job.recv);
	MPI_Finalize();
	return 0;
}
