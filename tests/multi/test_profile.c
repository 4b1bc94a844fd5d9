/*
 * Profiler plugins of every version are told of the calls of two ranks: how many events
 * of which kind, in what order and by what they are nested (the plugin itself looks at
 * that), and that a job goes on without a plugin that fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log_text.h"
#include "ranks.h"
#include "weft.h"

enum { RANKS = 2, COUNT = 1000, FEW = 10, TAG = 77, PATH_BYTES = 512, OLDEST = 1 };

static char log_path[] = "/tmp/weft-profile-log-XXXXXX";
static char told_path[] = "/tmp/weft-profile-told-XXXXXX";

static ncclComm_t comm_named(struct rank *rank)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclComm_t comm;

	config.commName = "profiled";
	OK(ncclCommInitRankConfig(
		&comm, rank->rank_count, rank_id(rank, 0), rank->rank, &config));
	return comm;
}

static void reduce(ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config)
{
	static _Thread_local float in[COUNT], out[COUNT];

	for (int i = 0; i < COUNT; i++)
		in[i] = 1;
	OK(ncclAllReduceConfig(in, out, COUNT, ncclFloat, ncclSum, comm, stream, config));
	if (stream)
		OK(weftStreamSynchronize(stream));
	HOLDS(out[0] == RANKS && out[COUNT - 1] == RANKS);
}

static void group(struct rank *rank, ncclComm_t comm)
{
	int in[FEW] = {rank->rank}, out[RANKS * FEW] = {0}, got[FEW] = {0};
	int peer = 1 - rank->rank;

	OK(ncclGroupStart());
	OK(ncclAllGather(in, out, FEW, ncclInt, comm, NULL));
	OK(ncclSend(in, FEW, ncclInt, peer, comm, NULL));
	OK(ncclRecv(got, FEW, ncclInt, peer, comm, NULL));
	OK(ncclGroupEnd());
	HOLDS(out[FEW] == 1 && got[0] == peer);
}

/* One call, a group, one call on a stream, one with a tag. */
static void calls(struct rank *rank)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	ncclComm_t comm = comm_named(rank);
	cudaStream_t stream;

	config.userProfilerTag = TAG;
	reduce(comm, NULL, NULL);
	group(rank, comm);
	OK(weftStreamCreate(&stream));
	reduce(comm, stream, NULL);
	reduce(comm, NULL, &config);
	OK(weftStreamDestroy(stream));
	OK(ncclCommDestroy(comm));
}

/* A group whose communicator ends before it does, and one that is refused. */
static void broken(struct rank *rank)
{
	ncclComm_t comm = comm_named(rank);
	float data[FEW] = {0};

	OK(ncclGroupStart());
	OK(ncclAllReduce(data, data, FEW, ncclFloat, ncclSum, comm, NULL));
	GIVES(ncclAllReduce(data, data, FEW, (ncclDataType_t)99, ncclSum, comm, NULL),
		ncclInvalidArgument);
	GIVES(ncclGroupEnd(), ncclInvalidArgument);
	OK(ncclGroupStart());
	OK(ncclAllReduce(data, data, FEW, ncclFloat, ncclSum, comm, NULL));
	OK(ncclCommAbort(comm));
	GIVES(ncclGroupEnd(), ncclInvalidArgument);
}

static int told(const char *text)
{
	return log_count(told_path, text);
}

static void job(int processes, rank_function *function, const char *plugin,
	const char *name, const char *value)
{
	const char *environment[] = {"NCCL_DEBUG", "INFO", "NCCL_DEBUG_SUBSYS",
		"INIT,PROFILE", "NCCL_DEBUG_FILE", log_path, "NCCL_PROFILER_PLUGIN",
		plugin, "PROFILER_TEST_FILE", told_path, name, value, NULL};

	EQ(truncate(log_path, 0), 0);
	EQ(truncate(told_path, 0), 0);
	ranks_run(&(struct ranks){.processes = processes,
		.threads = RANKS / processes,
		.function = function,
		.environment = environment});
}

static void run(
	rank_function *function, const char *plugin, const char *name, const char *value)
{
	job(1, function, plugin, name, value);
}

static void name_of(int version, char path[PATH_BYTES])
{
	snprintf(path, PATH_BYTES, "%s/libnccl-profiler-test%d.so", WEFT_PLUGIN_FOLDER,
		version);
}

static void words_check(int version)
{
	EQ(told(version == 1 ? "start Coll 4 count 1000 type 7 seq 0"
			     : "start Coll AllReduce count 1000 type ncclFloat32 seq 0"),
		RANKS);
	EQ(told(version == 1 ? "start Coll 4 count 1000 type 7 seq 2"
			     : "start Coll AllReduce count 1000 type ncclFloat32 seq 2"),
		RANKS);
	EQ(told(version == 1 ? "start Coll 2 count 10 type 2 seq 0"
			     : "start Coll AllGather count 10 type ncclInt32 seq 0"),
		RANKS);
	EQ(told(version == 1 ? "start P2p 6 count 10 type 2 peer 1 rank 0"
			     : "start P2p Send count 10 type ncclInt32 peer 1 rank 0"),
		1);
	EQ(told(version == 1 ? "start P2p 7 count 10 type 2 peer 0 rank 1"
			     : "start P2p Recv count 10 type ncclInt32 peer 0 rank 1"),
		1);
	EQ(told(version == 1 ? "proto 2 op 0" : "proto SIMPLE"), 3 * RANKS);
	EQ(told("algo Unknown"), version == 1 ? 0 : RANKS); /* the one on a stream */
	EQ(told("traffic 8000\n"), version < 3 ? 3 * RANKS : 0);
	EQ(told("traffic 80\n"), version < 3 ? RANKS : 0);
	if (version >= 4)
		EQ(told("init profiled rank 1 of 2 on 1"), 1);
}

static void api_check(int version)
{
	int new = version >= 5 ? RANKS : 0;

	EQ(told("start GroupApi"), 4 * new);
	EQ(told("start GroupApi depth 1"), 3 * new);
	EQ(told("start GroupApi depth 2"), new);
	EQ(told("stop GroupApi"), 4 * new);
	EQ(told("state 23 GroupApi"), 4 * new);
	EQ(told("state 24 GroupApi"), 4 * new);
	EQ(told("start CollApi"), 4 * new);
	EQ(told("start CollApi AllReduce count 1000 type ncclFloat32 root 0 stream 1"),
		new);
	EQ(told("start P2pApi"), 2 * new);
	EQ(told("stop CollApi"), 4 * new);
	EQ(told("stop P2pApi"), 2 * new);
	EQ(told("tag 77"), version >= 7 ? 2 * RANKS : 0);
}

static void version_check(int version)
{
	char path[PATH_BYTES], line[64];

	name_of(version, path);
	run(calls, path, NULL, NULL);
	EQ(told("WRONG"), 0);
	EQ(told("init"), RANKS);
	EQ(told("finalize\n"), RANKS);
	EQ(told("start Group rank"), 4 * RANKS);
	EQ(told("start Coll "), 4 * RANKS);
	EQ(told("start P2p "), 2 * RANKS);
	EQ(told("stop Group rank"), 4 * RANKS);
	EQ(told("stop Coll rank"), 4 * RANKS);
	EQ(told("stop P2p rank"), 2 * RANKS);
	EQ(told("KernelLaunch"), 0); /* there is no GPU */
	words_check(version);
	api_check(version);
	snprintf(
		line, sizeof(line), "PROFILER/Plugin: Using ProfilerTest (v%d)", version);
	EQ(log_count(log_path, line), RANKS);
	EQ(log_count(log_path, "WARN"), 0);
}

/* What is wanted, and what that is nested in. */
static void masks(void)
{
	char path[PATH_BYTES];

	name_of(6, path);
	run(calls, path, "PROFILER_TEST_MASK", "0");
	EQ(told("start"), 0);
	EQ(told("finalize"), RANKS);
	run(calls, path, "PROFILER_TEST_MASK", "2"); /* Coll */
	EQ(told("WRONG"), 0);
	EQ(told("start Coll "), 4 * RANKS);
	EQ(told("start CollApi"), 4 * RANKS);
	EQ(told("start GroupApi"), 4 * RANKS);
	EQ(told("start P2p"), 0);
	run(calls, path, "PROFILER_TEST_MASK", "256"); /* GroupApi */
	EQ(told("start"), 4 * RANKS);
	name_of(4, path);
	run(calls, path, "PROFILER_TEST_MASK", "4"); /* P2p */
	EQ(told("WRONG"), 0);
	EQ(told("start Group rank"), 4 * RANKS);
	EQ(told("start P2p"), 2 * RANKS);
	EQ(told("start Coll"), 0);
}

/* What is started is stopped, and there is some. */
static int both(const char *kind)
{
	char start[32], stop[32];

	snprintf(start, sizeof(start), "start %s ", kind);
	snprintf(stop, sizeof(stop), "stop %s ", kind);
	EQ(told(start), told(stop));
	return told(start);
}

/* Each rank on a host of its own, and a network plugin that tells what it does. */
static void hosts_check(int version, const char *net_plugin)
{
	bool has_net = net_plugin && version >= 2;
	char path[PATH_BYTES];

	name_of(version, path);
	EQ(setenv("WEFT_TEST_HOSTS", "2", 1), 0);
	job(RANKS, calls, path, "NCCL_NET_PLUGIN", net_plugin ? net_plugin : "none");
	EQ(unsetenv("WEFT_TEST_HOSTS"), 0);
	EQ(told("WRONG"), 0);
	EQ(told("finalize\n"), RANKS);
	EQ(both("Coll"), 4 * RANKS);
	EQ(both("P2p"), 2 * RANKS);
	/* six calls, each with something to send and something to receive */
	HOLDS(both("ProxyOp") >= 5 * RANKS);
	HOLDS(told("start ProxyOp to peer 1 steps 1 bytes 40 channel 0") >= 1);
	HOLDS(told("start ProxyOp from peer 0 steps 1 bytes 40 channel 0") >= 1);
	HOLDS(both("ProxyStep") >= both("ProxyOp"));
	HOLDS(told(version < 4 ? "done 40 bytes 1 steps" : "moved 40 bytes") >= 4);
	EQ(told("state 19 ProxyOp"), version < 4 ? 0 : both("ProxyOp"));
	EQ(both("NetPlugin") > 0, has_net);
	EQ(told("start NetPlugin id 30001 bytes 40") > 0, has_net);
	EQ(told("update 40 bytes") > 0, has_net && version >= 4);
}

static void hosts(void)
{
	char net_plugin[PATH_BYTES];

	snprintf(net_plugin, sizeof(net_plugin), "%s/libnccl-net-test12.so",
		WEFT_PLUGIN_FOLDER);
	for (int version = OLDEST; version <= 7; version += 2)
		hosts_check(version, net_plugin);
	hosts_check(4, NULL);
}

static void failures(void)
{
	char path[PATH_BYTES];

	name_of(7, path);
	run(broken, path, NULL, NULL);
	EQ(told("WRONG"), 0);
	EQ(told("start GroupApi"), 2 * RANKS);
	EQ(told("start CollApi"), 2 * RANKS);
	EQ(told("start Coll "), 0);
	EQ(told("finalize"), RANKS);
	run(calls, path, "PROFILER_TEST_FAULT", "init");
	EQ(told("start"), 0);
	EQ(told("finalize"), 0);
	EQ(log_count(log_path, "the profiler plugin ProfilerTest (v7) could not start"),
		RANKS);
	run(calls, path, "PROFILER_TEST_FAULT", "start");
	EQ(log_count(log_path, "is not told of anything any more: startEvent gave"),
		RANKS);
	EQ(told("finalize"), RANKS);
	EQ(setenv("WEFT_PLUGIN_SEC", "1", 1), 0);
	run(calls, path, "PROFILER_TEST_FAULT", "hang");
	EQ(unsetenv("WEFT_PLUGIN_SEC"), 0);
	EQ(told("start"), 0);
	EQ(log_count(log_path,
		   "the profiler plugin ProfilerTest (v7) could not start: init has not "
		   "returned for 1 s (WEFT_PLUGIN_SEC); the job goes on without it"),
		1); /* and not asked again */
	run(calls, "not-there", NULL, NULL);
	EQ(log_count(log_path, "no profiler plugin not-there"), RANKS);
	run(calls, "none", NULL, NULL);
	EQ(log_count(log_path, "WARN"), 0);
	run(calls, "", NULL, NULL); /* not set: the usual one is looked for once */
	EQ(log_count(log_path, "Could not find: libnccl-profiler.so."), 1);
	EQ(log_count(log_path, "WARN"), 0);
}

int main(void)
{
	EQ(close(mkstemp(log_path)), 0);
	EQ(close(mkstemp(told_path)), 0);
	for (int version = OLDEST; version <= 7; version++)
		version_check(version);
	masks();
	hosts();
	failures();
	unlink(log_path);
	unlink(told_path);
	return 0;
}
