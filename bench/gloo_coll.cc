// A peer: Gloo over TCP, on the loopback or between hosts of namespaces.
// ./gloo_coll [hosts=K] N COLLECTIVE BYTES,BYTES,.. (see method.h). Of all_reduce the best of its
// three algorithms counts: ring, bcube, halving-doubling (which works in place).
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <memory>
#include <vector>

#include "host.h"
#include "method.h"

namespace
{
using Call = std::function<void()>;
using Context = std::shared_ptr<gloo::rendezvous::Context>;
using Algorithm = gloo::AllreduceOptions::Algorithm;

void sum(void *out, const void *a, const void *b, size_t count)
{
	gloo::sum<float>(out, a, b, count);
}

void slower(void *out, const void *a, const void *b, size_t count)
{
	gloo::max<double>(out, a, b, count);
}

// The ways Gloo has for one collective at one size.
std::vector<Call> calls_of(
	const Context &context, int coll, float *send, float *recv, size_t bytes)
{
	size_t all = bytes / sizeof(float), block = method_block(bytes, context->size);
	size_t blocks = block * static_cast<size_t>(context->size);
	std::vector<Call> calls;

	if (coll == ALL_REDUCE) {
		for (auto algorithm : {Algorithm::RING, Algorithm::BCUBE})
			calls.push_back([=] {
				gloo::AllreduceOptions options(context);
				options.setAlgorithm(algorithm);
				options.setInput(send, all);
				options.setOutput(recv, all);
				options.setReduceFunction(sum);
				gloo::allreduce(options);
			});
		auto halving = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
			context, std::vector<float *>{recv}, static_cast<int>(all));
		calls.push_back([=] { halving->run(); });
	} else if (coll == ALL_GATHER) {
		calls.push_back([=] {
			gloo::AllgatherOptions options(context);
			options.setInput(send, block);
			options.setOutput(recv, blocks);
			gloo::allgather(options);
		});
	} else if (coll == REDUCE_SCATTER) {
		std::vector<int> counts(
			static_cast<size_t>(context->size), static_cast<int>(block));
		auto halving =
			std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
				context, std::vector<float *>{recv},
				static_cast<int>(blocks), counts);
		calls.push_back([=] { halving->run(); });
	} else if (coll == BROADCAST) {
		calls.push_back([=] {
			gloo::BroadcastOptions options(context);
			options.setOutput(send, all);
			options.setRoot(0);
			gloo::broadcast(options);
		});
	} else {
		calls.push_back([=] {
			gloo::AlltoallOptions options(context);
			options.setInput(send, blocks);
			options.setOutput(recv, blocks);
			gloo::alltoall(options);
		});
	}
	return calls;
}

// Seconds per call of the slowest rank.
double loop(const Context &context, const Call &call, int iters)
{
	gloo::BarrierOptions barrier(context);
	gloo::AllreduceOptions options(context);
	double start, seconds;

	gloo::barrier(barrier);
	start = method_now();
	for (int i = 0; i < iters; i++)
		call();
	seconds = (method_now() - start) / iters;
	options.setOutput(&seconds, 1);
	options.setReduceFunction(slower);
	gloo::allreduce(options);
	return seconds;
}

void rank_main(int rank, int ranks, int hosts, const std::string &folder, int coll,
	const char *text)
{
	char address[32];
	size_t sizes[METHOD_SIZES_MAX];
	int count = method_sizes(text, sizes);
	size_t room = method_buffer(method_largest(sizes, count), ranks);
	std::vector<float> send(room / sizeof(float)), recv(room / sizeof(float));
	gloo::rendezvous::FileStore store(folder);
	if (hosts)
		host_enter(host_of(rank, ranks, hosts));
	host_address(hosts ? host_of(rank, ranks, hosts) : 0, !hosts, address);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
	gloo::transport::tcp::attr attr(address);
	auto device = gloo::transport::tcp::CreateDevice(attr);

	context->connectFullMesh(store, device);
	for (int i = 0; i < count; i++) {
		double best = 1e9;

		for (auto &call :
			calls_of(context, coll, send.data(), recv.data(), sizes[i])) {
			double warm = loop(context, call, method_warm(sizes[i]));
			int iters = method_loop(sizes[i], warm);

			for (int j = 0; j < METHOD_LOOPS; j++)
				best = std::min(best, loop(context, call, iters));
		}
		if (!rank)
			method_print(coll, ranks, sizes[i], best);
	}
}
} // namespace

int main(int argc, char **argv)
{
	char folder[] = "/tmp/gloo_coll.XXXXXX";
	int hosts = argc == 5 ? host_count(argv[1]) : 0;

	if (hosts) {
		argc--;
		argv++;
	}
	int ranks = argc == 4 ? atoi(argv[1]) : 0, status, failed = 0;
	int coll = argc == 4 ? method_find(argv[2]) : METHOD_COLLS;

	if (ranks < 2 || coll == METHOD_COLLS || !mkdtemp(folder)) {
		fprintf(stderr, "usage: gloo_coll [hosts=K] N COLLECTIVE BYTES[,BYTES..]\n");
		return 2;
	}
	for (int i = 0; i < ranks; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		try {
			rank_main(i, ranks, hosts, folder, coll, argv[3]);
		} catch (const std::exception &error) {
			std::cerr << "gloo_coll: " << error.what() << std::endl;
			_exit(1);
		}
		_exit(0);
	}
	while (!failed && wait(&status) > 0)
		failed = status != 0;
	if (system(("rm -rf " + std::string(folder)).c_str()))
		failed = 1;
	return failed;
}
