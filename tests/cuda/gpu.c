#include "gpu.h"
#include "ranks.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct cuda_driver *driver;

/* In the order of struct gpu_calls. */
static const char *const call_names[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
	"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphDestroy",
	"cuGraphExecDestroy", "cuMemsetD32Async", "cuMemGetInfo_v2", "cuMemAllocManaged",
	"cuMemAllocAsync", "cuMemFreeAsync", "cuMemPoolCreate", "cuMemAllocFromPoolAsync",
	"cuMemPoolDestroy", "cuMemGetAllocationGranularity", "cuMemCreate",
	"cuMemRelease", "cuMemAddressReserve", "cuMemAddressFree", "cuMemMap",
	"cuMemUnmap", "cuMemSetAccess"};
_Static_assert(sizeof(struct gpu_calls) == sizeof(call_names), "a name for each");

void gpu_check(cu_result result, const char *text, const char *file, int line)
{
	const char *name = "?";

	if (result == CU_OK)
		return;
	driver->error_name(result, &name);
	fprintf(stderr, "%s:%d: %s: the driver says %s (%d)\n", file, line, text, name,
		result);
	_exit(1);
}

int gpu_count(void)
{
	const char *text = getenv("WEFT_TEST_DEVICES");

	return text ? atoi(text) : 1;
}

void gpu_use(int rank)
{
	cu_context context;
	cu_device device;

	CUDA(driver->device_get(&device, rank % gpu_count()));
	CUDA(driver->primary_retain(&context, device));
	CUDA(driver->context_set(context));
}

/* The driver and a context; false when there is none. */
static bool begin(void)
{
	static _Thread_local bool has_begun;
	cu_device device;

	if (has_begun)
		return true;
	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || !cuda_driver())
		return false;
	driver = cuda_driver();
	if (driver->init(0) || driver->device_get(&device, gpu_count() - 1))
		return false;
	gpu_use(rank_of_thread());
	has_begun = true;
	return true;
}

static int look(void)
{
	void *ptr = NULL;

	if (!begin()) {
		printf("skipped: no CUDA driver or no GPU\n");
		return TEST_SKIP;
	}
	OK(ncclMemAlloc(&ptr, 4096));
	if (!gpu_owns(ptr)) {
		printf("skipped: the library was built without its kernels (no nvcc)\n");
		return TEST_SKIP;
	}
	OK(ncclMemFree(ptr));
	return 0;
}

void gpu_need(void)
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	TRUE(pid >= 0);
	if (!pid) {
		status = look();
		fflush(NULL);
		_exit(status);
	}
	EQ(waitpid(pid, &status, 0), pid);
	if (status)
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

const struct cuda_driver *gpu_begin(void)
{
	HOLDS(begin());
	return driver;
}

cu_stream gpu_stream(void)
{
	cu_stream stream;

	CUDA(driver->stream_create(&stream, 1));
	return stream;
}

void gpu_stream_end(cu_stream stream)
{
	gpu_wait(stream);
	CUDA(driver->stream_destroy(stream));
}

void *gpu_alloc(size_t bytes)
{
	cu_ptr ptr = 0;

	CUDA(driver->mem_alloc(&ptr, bytes));
	return (void *)(uintptr_t)ptr;
}

void gpu_free(void *ptr)
{
	CUDA(driver->mem_free((cu_ptr)(uintptr_t)ptr));
}

void gpu_write(void *to, const void *from, size_t bytes, cu_stream stream)
{
	if (bytes)
		CUDA(driver->memcpy_async(
			(cu_ptr)(uintptr_t)to, (cu_ptr)(uintptr_t)from, bytes, stream));
}

void gpu_read(void *to, const void *from, size_t bytes, cu_stream stream)
{
	gpu_write(to, from, bytes, stream);
	gpu_wait(stream);
}

void gpu_wait(cu_stream stream)
{
	CUDA(driver->stream_synchronize(stream));
}

void gpu_set(void *to, unsigned value, size_t count, cu_stream stream)
{
	CUDA(gpu_calls()->memset_d32_async((cu_ptr)(uintptr_t)to, value, count, stream));
}

bool gpu_is_done(cu_stream stream)
{
	cu_result result = driver->stream_query(stream);

	if (result == CU_NOT_READY)
		return false;
	CUDA(result);
	return true;
}

size_t gpu_free_bytes(void)
{
	size_t free_bytes = 0, total;

	CUDA(gpu_calls()->mem_info(&free_bytes, &total));
	return free_bytes;
}

/* ---- what the library itself never calls ---- */

static pthread_once_t calls_once = PTHREAD_ONCE_INIT;
static struct gpu_calls calls;

static void calls_find(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;

	for (size_t i = 0; i < sizeof(call_names) / sizeof(*call_names); i++) {
		found = dlsym(library, call_names[i]);
		rank_context("the driver has no %s", call_names[i]);
		HOLDS(found);
		memcpy((char *)&calls + i * sizeof(found), &found, sizeof(found));
	}
	rank_context("%s", "");
}

const struct gpu_calls *gpu_calls(void)
{
	pthread_once(&calls_once, calls_find);
	return &calls;
}

void gpu_capture(cu_stream stream, int mode)
{
	CUDA(gpu_calls()->capture_begin(stream, mode));
}

struct gpu_graph gpu_capture_end(cu_stream stream)
{
	struct gpu_graph graph = {0};

	CUDA(gpu_calls()->capture_end(stream, &graph.graph));
	return graph;
}

void gpu_graph_make(struct gpu_graph *graph)
{
	CUDA(gpu_calls()->instantiate(&graph->exec, graph->graph, 0));
}

struct gpu_graph gpu_captured(cu_stream stream)
{
	struct gpu_graph graph = gpu_capture_end(stream);

	gpu_graph_make(&graph);
	return graph;
}

void gpu_replay(const struct gpu_graph *graph, cu_stream stream)
{
	CUDA(gpu_calls()->graph_launch(graph->exec, stream));
}

void gpu_graph_end(struct gpu_graph *graph)
{
	CUDA(gpu_calls()->exec_destroy(graph->exec));
	CUDA(gpu_calls()->graph_destroy(graph->graph));
	*graph = (struct gpu_graph){0};
}

/* ---- checks ---- */

bool gpu_owns(const void *ptr)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE};
	unsigned type = 0;
	void *values[] = {&type};

	CUDA(driver->pointer_attributes(1, wanted, values, (cu_ptr)(uintptr_t)ptr));
	return type == CU_MEMORY_DEVICE;
}

void gpu_sentence(const char *part)
{
	const char *said = ncclGetLastError(NULL);

	if (strstr(said, part))
		return;
	fprintf(stderr, "the sentence is \"%s\" and has no \"%s\"\n", said, part);
	_exit(1);
}
