#include "perf/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nccl.h>

#include "exec/cuda/driver/driver.h"

enum { NON_BLOCKING = 1, DEVICES_MAX = 1024 };

/* What the library itself has no use for. */
typedef struct CUgraph_st *cu_graph;
typedef struct CUgraphExec_st *cu_exec;
static struct graph_calls {
	cu_result (*begin)(cu_stream stream, int mode);
	cu_result (*end)(cu_stream stream, cu_graph *graph);
	cu_result (*make)(cu_exec *exec, cu_graph graph, unsigned long long flags);
	cu_result (*launch)(cu_exec exec, cu_stream stream);
	cu_result (*destroy)(cu_graph graph);
	cu_result (*exec_destroy)(cu_exec exec);
} graphs;

bool device_is_well(int result, const char *what)
{
	if (!cuda_check(result, what))
		return true;
	fprintf(stderr, "%s\n", err_last());
	return false;
}

static const struct cuda_driver *driver_find(void)
{
	const struct cuda_driver *driver;

	if (!dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL))
		return NULL;
	driver = cuda_driver();
	return driver && !driver->init(0) ? driver : NULL;
}

static int devices_count(const struct cuda_driver *driver)
{
	cu_device device;
	int count = 0;

	while (count < DEVICES_MAX && !driver->device_get(&device, count))
		count++;
	return count;
}

bool device_open(uint32_t number)
{
	const struct cuda_driver *driver = driver_find();
	cu_context context = NULL;
	cu_device device = 0;
	int count;

	if (!driver) {
		fprintf(stderr, "there is no CUDA driver: use --memory host\n");
		return false;
	}
	count = devices_count(driver);
	if (!count) {
		fprintf(stderr, "the CUDA driver has no GPU: use --memory host\n");
		return false;
	}
	return device_is_well(
		       driver->device_get(&device, (int)number % count), "find a GPU") &&
	       device_is_well(driver->primary_retain(&context, device), "open a GPU") &&
	       device_is_well(driver->context_set(context), "use a GPU");
}

void *device_stream_open(void)
{
	cu_stream stream = NULL;

	return device_is_well(cuda_driver()->stream_create(&stream, NON_BLOCKING),
		       "make a stream")
		       ? stream
		       : NULL;
}

void device_stream_close(void *stream)
{
	cuda_driver()->stream_destroy(stream);
}

bool device_wait(void *stream)
{
	return device_is_well(
		cuda_driver()->stream_synchronize(stream), "wait for a stream");
}

bool device_zero(void *at, size_t bytes, void *stream)
{
	return device_is_well(
		cuda_driver()->memset_async((uintptr_t)at, 0, bytes, stream),
		"clear a buffer");
}

bool device_copy(void *to, const void *from, size_t bytes, void *stream)
{
	return !bytes || device_is_well(cuda_driver()->memcpy_async((uintptr_t)to,
						(uintptr_t)from, bytes, stream),
				 "copy a buffer");
}

bool device_write(void *to, const void *from, size_t bytes, void *stream)
{
	return device_copy(to, from, bytes, stream) && device_wait(stream);
}

bool device_read(void *to, const void *from, size_t bytes, void *stream)
{
	return device_copy(to, from, bytes, stream) && device_wait(stream);
}

/* What the library itself has no use for is looked for by its name. */
static bool driver_name(const char *name, void *function)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	void *found = library ? dlsym(library, name) : NULL;

	memcpy(function, &found, sizeof(found));
	return found;
}

/* A GPU counts if the library gives out memory of it: not if it was built without
 * kernels. */
static struct device_facts look(void)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE};
	const struct cuda_driver *driver = driver_find();
	cu_result (*memory_left)(size_t * left, size_t * all);
	size_t left = 0, all = 0;
	unsigned type = 0;
	void *values[] = {&type}, *memory = NULL;
	cu_device device;

	if (!driver || driver->device_get(&device, 0) || !device_open(0) ||
		ncclMemAlloc(&memory, 1) ||
		driver->pointer_attributes(1, wanted, values, (uintptr_t)memory) ||
		type != CU_MEMORY_DEVICE)
		return (struct device_facts){0};
	if (!driver_name("cuMemGetInfo_v2", &memory_left) || memory_left(&left, &all))
		left = 0;
	return (struct device_facts){(uint32_t)devices_count(driver), left};
}

static _Noreturn void look_aside(int out)
{
	struct device_facts facts = look();

	_exit(write(out, &facts, sizeof(facts)) != sizeof(facts));
}

struct device_facts device_look(void)
{
	struct device_facts facts = {0};
	int ends[2], status = 1;
	pid_t pid;

	if (pipe(ends))
		return facts;
	fflush(NULL);
	pid = fork();
	if (!pid)
		look_aside(ends[1]);
	close(ends[1]);
	if (pid < 0 || read(ends[0], &facts, sizeof(facts)) != sizeof(facts))
		facts = (struct device_facts){0};
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, &status, 0);
	return facts;
}

/* ---- graphs ---- */

/* In the order of struct graph_calls. */
static const char *const graph_names[] = {"cuStreamBeginCapture_v2", "cuStreamEndCapture",
	"cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuGraphDestroy",
	"cuGraphExecDestroy"};
_Static_assert(sizeof(struct graph_calls) == sizeof(graph_names), "a name for each");

static bool graphs_find(void)
{
	for (size_t i = 0; i < sizeof(graph_names) / sizeof(*graph_names); i++) {
		if (!driver_name(graph_names[i], (char *)&graphs + i * sizeof(void *))) {
			fprintf(stderr,
				"this CUDA driver has no %s: update it, or leave "
				"out -G\n",
				graph_names[i]);
			return false;
		}
	}
	return true;
}

bool device_capture(void *stream)
{
	return graphs_find() &&
	       device_is_well(
		       graphs.begin(stream, CU_CAPTURE_THREAD_LOCAL), "begin to capture");
}

void *device_captured(void *stream)
{
	cu_graph graph = NULL;
	cu_exec exec = NULL;
	bool made;

	if (!device_is_well(graphs.end(stream, &graph), "end a capture"))
		return NULL;
	made = device_is_well(graphs.make(&exec, graph, 0), "make a graph");
	graphs.destroy(graph);
	return made ? exec : NULL;
}

bool device_replay(void *graph, void *stream)
{
	return device_is_well(graphs.launch(graph, stream), "launch a graph");
}

void device_graph_close(void *graph)
{
	if (graph)
		graphs.exec_destroy(graph);
}
