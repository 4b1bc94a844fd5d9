/*
 * A stand-in for CUDA's driver that runs our kernels on the CPU, so that everything
 * around them is tried where there is no GPU: threads and processes that share a device,
 * their streams, memory and words.
 *
 * Device memory is a file in memory that other processes can map. A stream does at once
 * what it is given, in the calling thread, and waits there for words in memory. A launch
 * does what the kernel would (cpu_kernels.h). There are no graphs.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu_kernels.h"

enum { DONE = 0, INVALID = 1, NO_MEMORY = 2, BAD_HANDLE = 400, NOT_SUPPORTED = 801 };
enum { AREAS_MAX = 2048, PAGE = 4096, MULTIPROCESSORS = 132, NAP_US = 20 };
enum kind { UNUSED, DEVICE, PINNED, MAPPING };

struct area {
	enum kind kind;
	char *base;
	size_t bytes;
	uint64_t id;
	int fd;
};

struct handle {
	char bytes[64];
};

/* The lock guards the areas. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area areas[AREAS_MAX];
static uint64_t last_id = 100;
static int only_context;
static _Thread_local void *current;

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* With the lock held. */
static struct area *area_of(uint64_t ptr)
{
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind && ptr - (uintptr_t)areas[i].base < areas[i].bytes)
			return &areas[i];
	return NULL;
}

static int area_add(enum kind kind, int fd, size_t bytes, uint64_t *ptr)
{
	char *base = mmap(
		NULL, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int i = 0;

	if (base == MAP_FAILED)
		return NO_MEMORY;
	pthread_mutex_lock(&lock);
	while (i < AREAS_MAX && areas[i].kind)
		i++;
	if (i < AREAS_MAX)
		areas[i] = (struct area){kind, base, bytes, ++last_id, fd};
	pthread_mutex_unlock(&lock);
	*ptr = (uintptr_t)base;
	return i < AREAS_MAX ? DONE : NO_MEMORY;
}

static int area_new(enum kind kind, size_t bytes, uint64_t *ptr)
{
	int fd = memfd_create("device", MFD_CLOEXEC);

	if (!bytes || fd < 0 || ftruncate(fd, (off_t)whole_pages(bytes)))
		return NO_MEMORY;
	return area_add(kind, fd, bytes, ptr);
}

static int area_end(uint64_t ptr)
{
	struct area *area, gone = {0};

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area) {
		gone = *area;
		area->kind = UNUSED;
	}
	pthread_mutex_unlock(&lock);
	if (!gone.kind)
		return INVALID;
	munmap(gone.base, whole_pages(gone.bytes));
	close(gone.fd);
	return DONE;
}

/* ---- device and contexts ---- */

int cuInit(unsigned flags)
{
	return flags ? INVALID : DONE;
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return DONE;
}

int cuGetErrorName(int error, const char **name)
{
	*name = error == NOT_SUPPORTED ? "CUDA_ERROR_NOT_SUPPORTED" : "CUDA_ERROR";
	return DONE;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = 0;
	return ordinal ? INVALID : DONE;
}

/* CPU_CUDA_MPS: is there an MPS server? */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 16    ? MULTIPROCESSORS
		 : attribute == 133 ? getenv("CPU_CUDA_MPS") != NULL
				    : 0;
	return device ? INVALID : DONE;
}

int cuDeviceGetUuid_v2(char *uuid, int device)
{
	memset(uuid, 7, 16);
	return device ? INVALID : DONE;
}

int cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:01:00.0");
	return device ? INVALID : DONE;
}

int cuCtxGetCurrent(void **context)
{
	*context = current;
	return DONE;
}

int cuCtxSetCurrent(void *context)
{
	current = context;
	return DONE;
}

int cuCtxGetDevice(int *device)
{
	*device = 0;
	return current ? DONE : 201;
}

int cuCtxSynchronize(void)
{
	return DONE;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	return peer && !flags ? DONE : INVALID;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = &only_context;
	return device ? INVALID : DONE;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device ? INVALID : DONE;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	*mode = 0;
	return DONE;
}

/* ---- memory ---- */

int cuMemAlloc_v2(uint64_t *ptr, size_t bytes)
{
	return area_new(DEVICE, bytes, ptr);
}

int cuMemFree_v2(uint64_t ptr)
{
	return area_end(ptr);
}

int cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
	uint64_t base = 0;
	int code = flags & ~7u ? INVALID : area_new(PINNED, bytes, &base);

	*ptr = (void *)(uintptr_t)base;
	return code;
}

int cuMemFreeHost(void *ptr)
{
	return area_end((uintptr_t)ptr);
}

int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
	return ptr && bytes && !(flags & ~15u) ? DONE : INVALID;
}

int cuMemHostUnregister(void *ptr)
{
	return ptr ? DONE : INVALID;
}

int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags)
{
	*device = (uintptr_t)host;
	return flags ? INVALID : DONE;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t ptr)
{
	struct area *area;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area) {
		*base = (uintptr_t)area->base;
		*bytes = area->bytes;
	}
	pthread_mutex_unlock(&lock);
	return area ? DONE : INVALID;
}

int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*left = *all = (size_t)1 << 36;
	return DONE;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	(void)stream;
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return DONE;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	return cuMemcpyAsync(to, (uintptr_t)from, bytes, NULL);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	return cuMemcpyAsync((uintptr_t)to, from, bytes, NULL);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	(void)stream;
	memset((void *)(uintptr_t)to, value, bytes);
	return DONE;
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes)
{
	return cuMemsetD8Async(to, value, bytes, NULL);
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream)
{
	unsigned *words = (unsigned *)(uintptr_t)to;

	(void)stream;
	for (size_t i = 0; i < count; i++)
		words[i] = value;
	return DONE;
}

/* A handle says whose file it is and how long. */
int cuIpcGetMemHandle(struct handle *handle, uint64_t ptr)
{
	uint64_t words[3] = {0};
	struct area *area;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area && area->kind == DEVICE) {
		words[0] = (uint64_t)getpid();
		words[1] = (uint64_t)area->fd;
		words[2] = area->bytes;
	}
	pthread_mutex_unlock(&lock);
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, words, sizeof(words));
	return words[0] ? DONE : INVALID;
}

int cuIpcOpenMemHandle_v2(uint64_t *ptr, struct handle handle, unsigned flags)
{
	uint64_t words[3];
	char path[64];
	int fd;

	memcpy(words, handle.bytes, sizeof(words));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)words[0], (int)words[1]);
	fd = flags == 1 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	return fd < 0 ? BAD_HANDLE : area_add(MAPPING, fd, words[2], ptr);
}

int cuIpcCloseMemHandle(uint64_t ptr)
{
	return area_end(ptr);
}

static void attribute_write(const struct area *area, int attribute, void *value)
{
	unsigned type = !area->kind ? 0 : area->kind == PINNED ? 1 : 2;
	uint64_t word = 0;

	if (attribute == 1)
		word = area->kind ? (uintptr_t)&only_context : 0;
	else if (attribute == 7 || attribute == 20)
		word = area->id;
	else if (attribute == 11 || attribute == 19)
		word = (uintptr_t)area->base;
	else if (attribute == 12 || attribute == 18)
		word = area->bytes;
	if (attribute == 2)
		memcpy(value, &type, sizeof(type));
	else if (attribute == 8 || attribute == 10)
		*(char *)value = attribute == 10 && area->kind == DEVICE;
	else if (attribute == 9)
		memset(value, 0, sizeof(int));
	else
		memcpy(value, &word, sizeof(word));
}

int cuPointerGetAttributes(
	unsigned count, const int *attributes, void **values, uint64_t ptr)
{
	struct area *found, area = {0};

	pthread_mutex_lock(&lock);
	found = area_of(ptr);
	if (found)
		area = *found;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < count; i++)
		attribute_write(&area, attributes[i], values[i]);
	return DONE;
}

/* ---- streams and events ---- */

int cuStreamCreate(void **stream, unsigned flags)
{
	(void)flags;
	*stream = calloc(1, 64);
	return *stream ? DONE : NO_MEMORY;
}

int cuStreamDestroy_v2(void *stream)
{
	free(stream);
	return DONE;
}

int cuStreamSynchronize(void *stream)
{
	(void)stream;
	return DONE;
}

int cuStreamQuery(void *stream)
{
	(void)stream;
	return DONE;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return DONE;
}

int cuStreamGetId(void *stream, uint64_t *id)
{
	*id = (uintptr_t)stream;
	return DONE;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	(void)stream;
	return event && !flags ? DONE : INVALID;
}

int cuEventCreate(void **event, unsigned flags)
{
	(void)flags;
	*event = calloc(1, 8);
	return *event ? DONE : NO_MEMORY;
}

int cuEventRecord(void *event, void *stream)
{
	(void)stream;
	return event ? DONE : INVALID;
}

int cuEventDestroy_v2(void *event)
{
	free(event);
	return DONE;
}

int cuEventQuery(void *event)
{
	return event ? DONE : INVALID;
}

struct memop {
	int operation, pad;
	uint64_t address, value;
	unsigned flags;
	int pad2;
	uint64_t alias, pad3;
};

static void memop_do(const struct memop *op)
{
	uint32_t *word = (uint32_t *)(uintptr_t)op->address;
	uint32_t value = (uint32_t)op->value;

	if (op->operation == 2)
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	else if (op->operation == 5)
		__atomic_store_n(
			(uint64_t *)(uintptr_t)op->address, op->value, __ATOMIC_SEQ_CST);
	else
		while ((int32_t)(__atomic_load_n(word, __ATOMIC_SEQ_CST) - value) < 0)
			usleep(NAP_US);
}

int cuStreamBatchMemOp_v2(
	void *stream, unsigned count, const struct memop *ops, unsigned flags)
{
	(void)stream;
	for (unsigned i = 0; i < count && !flags; i++)
		memop_do(&ops[i]);
	return flags ? INVALID : DONE;
}

/* ---- kernels: a function is its name ---- */

int cuModuleLoadData(void **module, const void *image)
{
	*module = &only_context;
	return image ? DONE : INVALID;
}

int cuModuleUnload(void *module)
{
	return module ? DONE : INVALID;
}

/* Names are few and stay for good. */
int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = strdup(name);
	return *function && module ? DONE : INVALID;
}

/* The driver's own list of arguments, longer than we like. A kernel whose arguments come
 * as one block finds rubbish behind it. */
int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
	void *stream, void **params, void **extra)
{
	enum { RUBBISH = 0xa5, ARGUMENTS_MAX = 4096 };
	_Alignas(16) char block[ARGUMENTS_MAX];

	(void)block_x, (void)block_y, (void)block_z, (void)shared_bytes, (void)stream;
	if (!grid_x || !grid_z || (!params && *(const size_t *)extra[3] > sizeof(block)))
		return INVALID;
	if (params)
		return cpu_kernel_do(function, grid_y, params[0]);
	memset(block, RUBBISH, sizeof(block));
	memcpy(block, extra[1], *(const size_t *)extra[3]);
	return cpu_kernel_do(function, grid_y, block);
}

/* ---- what tests look for and do not use here ---- */

static int refuse(void)
{
	return NOT_SUPPORTED;
}

int cuStreamBeginCapture_v2(void) __attribute__((alias("refuse")));
int cuStreamEndCapture(void) __attribute__((alias("refuse")));
int cuGraphInstantiateWithFlags(void) __attribute__((alias("refuse")));
int cuGraphLaunch(void) __attribute__((alias("refuse")));
int cuGraphDestroy(void) __attribute__((alias("refuse")));
int cuGraphExecDestroy(void) __attribute__((alias("refuse")));
int cuMemAllocManaged(void) __attribute__((alias("refuse")));
int cuMemAllocAsync(void) __attribute__((alias("refuse")));
int cuMemFreeAsync(void) __attribute__((alias("refuse")));
int cuMemPoolCreate(void) __attribute__((alias("refuse")));
int cuMemAllocFromPoolAsync(void) __attribute__((alias("refuse")));
int cuMemPoolDestroy(void) __attribute__((alias("refuse")));
int cuMemGetAllocationGranularity(void) __attribute__((alias("refuse")));
int cuMemCreate(void) __attribute__((alias("refuse")));
int cuMemRelease(void) __attribute__((alias("refuse")));
int cuMemAddressReserve(void) __attribute__((alias("refuse")));
int cuMemAddressFree(void) __attribute__((alias("refuse")));
int cuMemMap(void) __attribute__((alias("refuse")));
int cuMemUnmap(void) __attribute__((alias("refuse")));
int cuMemSetAccess(void) __attribute__((alias("refuse")));
