/*
 * Counts beyond 2^31: everything is 64 bits wide all the way through.
 */
#include <sys/sysinfo.h>
#include <unistd.h>

#include "ranks.h"

static const size_t count = ((size_t)1 << 31) + 12345;

/* A byte that depends on more than the low 32 bits of its index. */
static signed char byte_at(size_t i, int rank)
{
	return (signed char)((i * 31 + (i >> 20) * 7 + (size_t)rank * 3) % 13);
}

static void big_main(struct rank *rank)
{
	ncclComm_t comm = rank_comm(rank, 0);
	signed char *in, *out;

	OK(ncclMemAlloc((void **)&in, count));
	OK(ncclMemAlloc((void **)&out, 2 * count));
	for (size_t i = 0; i < count; i++)
		in[i] = byte_at(i, rank->rank);
	OK(ncclAllReduce(in, out, count, ncclInt8, ncclSum, comm, NULL));
	for (size_t i = 0; i < count; i++)
		HOLDS(out[i] == byte_at(i, 0) + byte_at(i, 1));
	OK(ncclBroadcast(in, out, count, ncclInt8, 1, comm, NULL));
	for (size_t i = 0; i < count; i++)
		HOLDS(out[i] == byte_at(i, 1));
	OK(ncclAllGather(in, out, count, ncclInt8, comm, NULL));
	for (size_t i = 0; i < 2 * count; i++)
		HOLDS(out[i] == byte_at(i % count, (int)(i / count)));
	OK(ncclMemFree(in));
	OK(ncclMemFree(out));
	OK(ncclCommDestroy(comm));
}

int main(int argc, char **argv)
{
	struct ranks ranks = {
		.processes = 2, .threads = 1, .function = big_main, .limit_s = 280};
	struct sysinfo info;

	EQ(sysinfo(&info), 0);
	if ((info.freeram + info.bufferram) * info.mem_unit < (size_t)14 << 30) {
		printf("not enough free memory\n");
		return TEST_SKIP;
	}
	ranks_run(&ranks);
	if (has_option(argc, argv, "--threads")) {
		ranks.processes = 1;
		ranks.threads = 2;
		ranks_run(&ranks);
	}
	return 0;
}
