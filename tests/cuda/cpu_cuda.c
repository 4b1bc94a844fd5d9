/*
 * A stand-in for CUDA's driver that runs our kernels on the CPU, so that everything
 * around them is tried where there is no GPU: threads and processes that share a device,
 * their streams, memory and words.
 *
 * Device memory is a file in memory that other processes can map; small allocations lie
 * together in one, and a process that opens one of them can touch all, but copies only
 * what it has opened, as with a real driver. A stream does at once what it is given, in
 * the calling thread, and waits there for words in memory. A launch does what the kernel
 * would (cpu_kernels.h). There are no graphs.
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
#include "one_context.h"

enum { DONE = 0, INVALID = 1, NO_MEMORY = 2, BAD_HANDLE = 400, NOT_SUPPORTED = 801 };
enum { AREAS_MAX = 2048, PAGE = 4096, MULTIPROCESSORS = 132, NAP_US = 20 };
enum { BLOCK_BYTES = 2 << 20, SMALL_MAX = BLOCK_BYTES / 2, ALIGNMENT = 512 };
enum kind { UNUSED, DEVICE, PINNED, MAPPING };

/* What is mapped at once. */
struct block {
	char *base;
	size_t bytes, used; /* used: of a block of small allocations */
	uint64_t id;
	int fd;
	unsigned areas; /* in it */
};

struct area {
	enum kind kind;
	char *base;
	size_t bytes;
	uint64_t id;
	struct block *block; /* counted */
};

struct handle {
	char bytes[64];
};

/* The lock guards the areas and the blocks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area areas[AREAS_MAX];
static struct block *small_block; /* with room for small allocations, or NULL */
static uint64_t last_id = 100;

static size_t whole(size_t bytes, size_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static bool is_within(uint64_t ptr, const char *base, size_t bytes)
{
	return ptr - (uintptr_t)base < bytes;
}

/* With the lock held, as the next ones. */
static struct area *area_of(uint64_t ptr)
{
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind && is_within(ptr, areas[i].base, areas[i].bytes))
			return &areas[i];
	return NULL;
}

/* A file as a block; it is the block's then. */
static struct block *block_map(int fd, size_t bytes)
{
	struct block *block = calloc(1, sizeof(*block));
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (!block || base == MAP_FAILED) {
		free(block);
		close(fd);
		return NULL;
	}
	*block = (struct block){.base = base, .bytes = bytes, .id = ++last_id, .fd = fd};
	return block;
}

static struct block *block_new(size_t bytes)
{
	int fd = memfd_create("device", MFD_CLOEXEC);

	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		return block_map(fd, bytes);
	if (fd >= 0)
		close(fd);
	return NULL;
}

static void block_put(struct block *block)
{
	if (--block->areas)
		return;
	if (block == small_block)
		small_block = NULL;
	munmap(block->base, block->bytes);
	close(block->fd);
	free(block);
}

static int area_add(
	enum kind kind, struct block *block, size_t offset, size_t bytes, uint64_t *ptr)
{
	int i = 0;

	if (!block)
		return NO_MEMORY;
	block->areas++;
	while (i < AREAS_MAX && areas[i].kind)
		i++;
	if (i == AREAS_MAX) {
		block_put(block);
		return NO_MEMORY;
	}
	areas[i] = (struct area){kind, block->base + offset, bytes, ++last_id, block};
	*ptr = (uintptr_t)areas[i].base;
	return DONE;
}

static int small_add(size_t bytes, uint64_t *ptr)
{
	size_t offset;

	if (!small_block || small_block->used + bytes > small_block->bytes)
		small_block = block_new(BLOCK_BYTES);
	if (!small_block)
		return NO_MEMORY;
	offset = small_block->used;
	small_block->used += whole(bytes, ALIGNMENT);
	return area_add(DEVICE, small_block, offset, bytes, ptr);
}

static int area_new(enum kind kind, size_t bytes, uint64_t *ptr)
{
	int code;

	if (!bytes)
		return INVALID;
	pthread_mutex_lock(&lock);
	if (kind == DEVICE && bytes <= SMALL_MAX)
		code = small_add(bytes, ptr);
	else
		code = area_add(kind, block_new(whole(bytes, PAGE)), 0, bytes, ptr);
	pthread_mutex_unlock(&lock);
	return code;
}

static int area_end(uint64_t ptr)
{
	struct area *area;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area) {
		area->kind = UNUSED;
		block_put(area->block);
	}
	pthread_mutex_unlock(&lock);
	return area ? DONE : INVALID;
}

/* May the driver copy from or to it? Not if it is in a block and not all of it is in one
 * allocation that this process has made or opened. */
static bool is_copyable(uint64_t ptr, size_t bytes)
{
	bool is_device = false, is_whole = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < AREAS_MAX && !is_whole; i++) {
		const struct area *area = &areas[i];

		if (!area->kind)
			continue;
		if (is_within(ptr, area->block->base, area->block->bytes))
			is_device = true;
		if (is_within(ptr, area->base, area->bytes))
			is_whole = bytes <= area->bytes - (ptr - (uintptr_t)area->base);
	}
	pthread_mutex_unlock(&lock);
	return is_whole || !is_device;
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
	if (!is_copyable(to, bytes) || !is_copyable(from, bytes))
		return INVALID;
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

/* A handle says whose file it is and how long, and what of it. */
int cuIpcGetMemHandle(struct handle *handle, uint64_t ptr)
{
	uint64_t words[5] = {0};
	struct area *area;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area && area->kind == DEVICE) {
		words[0] = (uint64_t)getpid();
		words[1] = (uint64_t)area->block->fd;
		words[2] = area->block->bytes;
		words[3] = (uint64_t)(area->base - area->block->base);
		words[4] = area->bytes;
	}
	pthread_mutex_unlock(&lock);
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, words, sizeof(words));
	return words[0] ? DONE : INVALID;
}

int cuIpcOpenMemHandle_v2(uint64_t *ptr, struct handle handle, unsigned flags)
{
	uint64_t words[5];
	char path[64];
	int fd, code;

	memcpy(words, handle.bytes, sizeof(words));
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)words[0], (int)words[1]);
	fd = flags == 1 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return BAD_HANDLE;
	pthread_mutex_lock(&lock);
	code = area_add(MAPPING, block_map(fd, words[2]), words[3], words[4], ptr);
	pthread_mutex_unlock(&lock);
	return code;
}

int cuIpcCloseMemHandle(uint64_t ptr)
{
	return area_end(ptr);
}

static void attribute_write(
	const struct area *area, const struct block *block, int attribute, void *value)
{
	unsigned type = !area->kind ? 0 : area->kind == PINNED ? 1 : 2;
	uint64_t word = 0;

	if (attribute == 1)
		word = area->kind ? (uintptr_t)&one_context : 0;
	else if (attribute == 7)
		word = area->id;
	else if (attribute == 11)
		word = (uintptr_t)area->base;
	else if (attribute == 12)
		word = area->bytes;
	else if (attribute == 18)
		word = block->bytes;
	else if (attribute == 19)
		word = (uintptr_t)block->base;
	else if (attribute == 20)
		word = block->id;
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
	struct block block = {0};

	pthread_mutex_lock(&lock);
	found = area_of(ptr);
	if (found) {
		area = *found;
		block = *area.block;
	}
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < count; i++)
		attribute_write(&area, &block, attributes[i], values[i]);
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
	*module = &one_context;
	return image ? DONE : INVALID;
}

int cuModuleUnload(void *module)
{
	return module ? DONE : INVALID;
}

/* Names are few and stay for good, each once. */
int cuModuleGetFunction(void **function, void *module, const char *name)
{
	enum { NAMES_MAX = 512 };
	static char *names[NAMES_MAX];
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < NAMES_MAX - 1 && names[i] && strcmp(names[i], name))
		i++;
	if (!names[i])
		names[i] = strdup(name);
	*function = names[i];
	pthread_mutex_unlock(&lock);
	return *function && module && !strcmp(*function, name) ? DONE : INVALID;
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
