/* A worker: the ranks of one thread, their communicators and their buffers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/machine.h"
#include "perf/device.h"
#include "perf/point.h"

void worker_busy(struct worker *worker, bool on)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&worker->busy_since_ns,
		on ? (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec : 0);
}

int run_nccl_failed(const struct worker *worker, ncclResult_t result, const char *call)
{
	/* Whoever comes second usually only sees that the first is gone. */
	fprintf(stderr, "%s: Test NCCL failure in %s on rank %u '%s / %s'\n",
		worker->run->machine.host, call, worker->ranks[0].rank,
		ncclGetErrorString(result), ncclGetLastError(NULL));
	return meet_fail(worker->run->meet, TEST_NCCL);
}

/* ---- communicators ---- */

static int comms_open(struct worker *worker)
{
	const struct run *run = worker->run;
	ncclUniqueId id;
	ncclResult_t result = ncclSuccess;

	if (!worker->index) {
		result = ncclGetUniqueId(&id);
		if (result)
			return run_nccl_failed(worker, result, "ncclGetUniqueId");
	}
	if (!meet_share(run->meet, worker->index, &id, sizeof(id)))
		return meet_failure(run->meet);
	worker_busy(worker, true);
	if (worker->rank_count > 1)
		result = ncclGroupStart();
	for (uint32_t i = 0; !result && i < worker->rank_count; i++)
		result = ncclCommInitRank(&worker->ranks[i].comm, (int)run->rank_count,
			id, (int)worker->ranks[i].rank);
	if (!result && worker->rank_count > 1)
		result = ncclGroupEnd();
	worker_busy(worker, false);
	return result ? run_nccl_failed(worker, result, "ncclCommInitRank") : TEST_OK;
}

/* Destroying waits for the other ranks of the process, so all go in one group. */
static int comms_close(struct worker *worker)
{
	ncclResult_t result = ncclSuccess;

	worker_busy(worker, true);
	if (worker->rank_count > 1)
		result = ncclGroupStart();
	for (uint32_t i = 0; !result && i < worker->rank_count; i++)
		result = ncclCommDestroy(worker->ranks[i].comm);
	if (!result && worker->rank_count > 1)
		result = ncclGroupEnd();
	worker_busy(worker, false);
	return result ? run_nccl_failed(worker, result, "ncclCommDestroy") : TEST_OK;
}

/* ---- buffers ---- */

static size_t buffer_bytes(const struct run *run)
{
	/* The widest element is 8 bytes; the rest is room for -u. */
	return run->max_bytes + 8 * ((size_t)run->options.unalign + 2);
}

/* Plain memory, each page touched by the thread that will use it. */
static char *plain_alloc(size_t bytes)
{
	char *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);

	if (memory)
		memset(memory, 0, bytes);
	return memory;
}

static bool is_plain(const struct worker *worker)
{
	enum memory_kind memory = worker->run->options.memory;

	return memory == MEMORY_MALLOC || memory == MEMORY_REGISTER;
}

static int buffer_fails(const struct worker *worker, size_t bytes)
{
	fprintf(stderr, "%s: no memory for a buffer of %zu bytes\n",
		worker->run->machine.host, bytes);
	return meet_fail(worker->run->meet, TEST_INTERNAL);
}

/* And where it is filled and looked at. */
static int buffer_open(struct worker *worker, char **memory, char **seen)
{
	size_t bytes = buffer_bytes(worker->run);
	void *mapped = NULL;
	ncclResult_t result;

	if (is_plain(worker)) {
		*memory = *seen = plain_alloc(bytes);
		return *memory ? TEST_OK : buffer_fails(worker, bytes);
	}
	result = ncclMemAlloc(&mapped, bytes);
	if (result)
		return run_nccl_failed(worker, result, "ncclMemAlloc");
	*memory = *seen = mapped;
	if (!worker_is_on_device(worker))
		memset(mapped, 0, bytes);
	else if (!worker->is_seen_on_device && worker->run->options.check_rounds)
		*seen = plain_alloc(bytes);
	return *seen ? TEST_OK : buffer_fails(worker, bytes);
}

/* A GPU for each thread, and a stream on it for each of its ranks. */
static int device_begin(struct worker *worker)
{
	const struct run *run = worker->run;
	uint32_t threads = (uint32_t)run->options.threads;
	bool is_well;

	if (!worker_is_on_device(worker))
		return TEST_OK;
	is_well = device_open(run->local_count > 1
				      ? run->local_rank * threads + worker->local
				      : worker->index);
	for (uint32_t i = 0;
		is_well && !run->options.stream_null && i < worker->rank_count; i++) {
		worker->ranks[i].stream = device_stream_open();
		is_well = worker->ranks[i].stream;
	}
	if (is_well) {
		worker->unseen_why = gpu_data_open(&worker->data);
		worker->is_seen_on_device = !worker->unseen_why;
	}
	return is_well ? TEST_OK : meet_fail(run->meet, TEST_INTERNAL);
}

static void device_end(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->rank_count; i++)
		if (worker->ranks[i].stream)
			device_stream_close(worker->ranks[i].stream);
	if (worker->is_seen_on_device)
		gpu_data_close(&worker->data);
}

static void buffer_close(const struct worker *worker, char *memory, char *seen)
{
	if (seen != memory)
		free(seen);
	if (is_plain(worker))
		free(memory);
	else
		ncclMemFree(memory);
}

static int registration(const struct worker *worker)
{
	int asked = worker->run->options.local_register;

	return worker->run->options.memory == MEMORY_REGISTER && !asked ? 1 : asked;
}

static int windows_open(struct worker *worker)
{
	size_t bytes = buffer_bytes(worker->run);
	ncclResult_t result = ncclGroupStart();

	for (uint32_t i = 0; !result && i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];

		result = ncclCommWindowRegister(rank->comm, rank->send, bytes,
			&rank->send_window, NCCL_WIN_COLL_SYMMETRIC);
		if (!result)
			result = ncclCommWindowRegister(rank->comm, rank->recv, bytes,
				&rank->recv_window, NCCL_WIN_COLL_SYMMETRIC);
	}
	if (!result)
		result = ncclGroupEnd();
	return result ? run_nccl_failed(worker, result, "ncclCommWindowRegister")
		      : TEST_OK;
}

static int buffers_register(struct worker *worker)
{
	size_t bytes = buffer_bytes(worker->run);

	if (registration(worker) == 2)
		return windows_open(worker);
	for (uint32_t i = 0; registration(worker) == 1 && i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];
		ncclResult_t result = ncclCommRegister(
			rank->comm, rank->send, bytes, &rank->send_handle);

		if (!result)
			result = ncclCommRegister(
				rank->comm, rank->recv, bytes, &rank->recv_handle);
		if (result)
			return run_nccl_failed(worker, result, "ncclCommRegister");
	}
	return TEST_OK;
}

static int buffers_deregister(struct worker *worker)
{
	ncclResult_t result = ncclSuccess;

	for (uint32_t i = 0; !result && i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];

		if (registration(worker) == 1) {
			result = ncclCommDeregister(rank->comm, rank->send_handle);
			if (!result)
				result = ncclCommDeregister(
					rank->comm, rank->recv_handle);
		} else if (registration(worker) == 2) {
			result = ncclCommWindowDeregister(rank->comm, rank->send_window);
			if (!result)
				result = ncclCommWindowDeregister(
					rank->comm, rank->recv_window);
		}
	}
	return result ? run_nccl_failed(worker, result, "ncclCommDeregister") : TEST_OK;
}

static int buffers_open(struct worker *worker)
{
	int status = TEST_OK;

	for (uint32_t i = 0; !status && i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];

		status = buffer_open(worker, &rank->send, &rank->send_seen);
		if (!status)
			status = buffer_open(worker, &rank->recv, &rank->recv_seen);
	}
	return status ? status : buffers_register(worker);
}

static void buffers_close(struct worker *worker)
{
	for (uint32_t i = 0; i < worker->rank_count; i++) {
		struct rank *rank = &worker->ranks[i];

		buffer_close(worker, rank->send, rank->send_seen);
		buffer_close(worker, rank->recv, rank->recv_seen);
	}
}

/* Worker 0 knows it; every process ends with it. */
static int shared_verdict(struct worker *worker)
{
	double verdict = worker->verdict;

	return meet_combine(worker->run->meet, worker->index, COMBINE_MAX, &verdict)
		       ? (int)verdict
		       : meet_failure(worker->run->meet);
}

/* After a failure nothing is taken down: peers may be inside a call, and the process is
 * about to end. */
int worker_run(struct worker *worker)
{
	const struct run *run = worker->run;
	int status;

	worker->memory_start = machine_resident_bytes();
	status = device_begin(worker);
	if (!status)
		status = comms_open(worker);
	worker->memory_init = machine_resident_bytes();
	if (!status)
		status = buffers_open(worker);
	if (!status && !meet_wait(run->meet))
		status = meet_failure(run->meet);
	worker->memory_buffers = machine_resident_bytes();
	if (!status)
		status = measure_all(worker);
	if (!status)
		status = buffers_deregister(worker);
	if (!status && !meet_wait(run->meet)) /* nobody frees what another still reads */
		status = meet_failure(run->meet);
	if (!status)
		status = comms_close(worker);
	if (!status) {
		buffers_close(worker);
		device_end(worker);
	}
	return status ? status : shared_verdict(worker);
}
