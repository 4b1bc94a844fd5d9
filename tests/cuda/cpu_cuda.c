/*
 * A stand-in for CUDA's driver that runs our kernels on the CPU, so that everything
 * around them is tried where there is no GPU: threads and processes that share a device
 * or have several (cpu_devices.h), their streams, memory and words.
 *
 * Device memory is a file in memory that other processes can map; small allocations lie
 * together in one, and a process that opens one of them can touch all, but copies only
 * what it has opened, as with a real driver. Streams and events are in cpu_streams.h. A
 * launch does what the kernel would (cpu_kernels.h), and ends the process where that
 * touches memory that its context does not reach. With
 * CPU_CUDA_COPY_US a copy on a stream that works by itself takes so long.
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

#include "copy_2d.h"
#include "cpu_devices.h"
#include "cpu_kernels.h"
#include "cpu_streams.h"

enum {
	DONE = 0,
	INVALID = 1,
	NO_MEMORY = 2,
	NO_CONTEXT = 201,
	NO_PEER = 217,
	BAD_HANDLE = 400,
	NOT_FOUND = 500,
	NOT_SUPPORTED = 801
};
enum { AREAS_MAX = 2048, PAGE = 4096 };
enum { ARGUMENTS_MAX = 4096 };
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
	struct block *block;	 /* counted */
	struct context *context; /* where it was allocated or opened */
	int device;		 /* where it lies */
};

/* Memory of the host's that was made known. */
enum { REGISTERED_MAX = 1024 };
struct registered {
	char *base;
	size_t bytes;
};

struct handle {
	char bytes[64];
};

/* The lock guards all that follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct area areas[AREAS_MAX];
static struct registered registered[REGISTERED_MAX];
static struct block *small_blocks[DEVICES_MAX]; /* with room for small allocations */
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
	for (int i = 0; i < DEVICES_MAX; i++)
		if (block == small_blocks[i])
			small_blocks[i] = NULL;
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
	areas[i] = (struct area){kind, block->base + offset, bytes, ++last_id, block,
		context_here(), context_here()->device};
	*ptr = (uintptr_t)areas[i].base;
	return DONE;
}

static int small_add(size_t bytes, uint64_t *ptr)
{
	struct block **block = &small_blocks[context_here()->device];
	size_t offset;

	if (!*block || (*block)->used + bytes > (*block)->bytes)
		*block = block_new(BLOCK_BYTES);
	if (!*block)
		return NO_MEMORY;
	offset = (*block)->used;
	(*block)->used += whole(bytes, ALIGNMENT);
	return area_add(DEVICE, *block, offset, bytes, ptr);
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

/* With the lock held: may what runs in this context touch it? What another process has
 * allocated only where it was opened. */
static bool is_reached(const struct context *context, const struct area *area)
{
	if (area->kind == MAPPING)
		return area->context == context;
	return area->kind == PINNED || context_reaches(context, area->device);
}

bool memory_is_reached(const struct context *context, uint64_t ptr)
{
	const struct area *area;
	bool answer;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	answer = !area || is_reached(context, area);
	pthread_mutex_unlock(&lock);
	return answer;
}

/* ---- begin ---- */

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

/* All that was given to the memory's context. */
static void users_wait(uint64_t ptr)
{
	const struct area *area;
	const struct context *context;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	context = area ? area->context : NULL;
	pthread_mutex_unlock(&lock);
	if (context)
		streams_wait(context);
}

int cuMemFree_v2(uint64_t ptr)
{
	users_wait(ptr);
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
	users_wait((uintptr_t)ptr);
	return area_end((uintptr_t)ptr);
}

/* With the lock held. The one that begins at `base`; NULL: one that is free. */
static struct registered *registered_find(const void *base)
{
	struct registered *one = registered;

	while (one < registered + REGISTERED_MAX && one->base != base)
		one++;
	return one < registered + REGISTERED_MAX ? one : NULL;
}

int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
	struct registered *one = NULL;

	if (!ptr || !bytes || flags & ~15u)
		return INVALID;
	pthread_mutex_lock(&lock);
	one = registered_find(NULL);
	if (one)
		*one = (struct registered){ptr, bytes};
	pthread_mutex_unlock(&lock);
	return one ? DONE : NO_MEMORY;
}

int cuMemHostUnregister(void *ptr)
{
	struct registered *one = NULL;

	pthread_mutex_lock(&lock);
	if (ptr)
		one = registered_find(ptr);
	if (one)
		*one = (struct registered){0};
	pthread_mutex_unlock(&lock);
	return one ? DONE : INVALID;
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

/* What this process has of the current device is not left. CPU_CUDA_BYTES says how much a
 * device has. */
int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	const char *bytes = getenv("CPU_CUDA_BYTES");
	int device = context_here()->device;

	*left = *all = bytes ? strtoull(bytes, NULL, 10) : (size_t)1 << 36;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind == DEVICE && areas[i].device == device)
			*left -= areas[i].bytes;
	pthread_mutex_unlock(&lock);
	return DONE;
}

/* A copy; where it says so, the bytes themselves follow it. */
struct copy {
	uint64_t to, from; /* from 0: what follows */
	size_t bytes;
	char held[];
};

static int copy_do(void *argument)
{
	const struct copy *copy = argument;
	const void *from = copy->from ? (const void *)(uintptr_t)copy->from : copy->held;
	const char *slow_us = getenv("CPU_CUDA_COPY_US");

	if (slow_us && streams_are_async())
		usleep((unsigned)atoi(slow_us));
	memmove((void *)(uintptr_t)copy->to, from, copy->bytes);
	return DONE;
}

static bool is_pageable(uint64_t ptr)
{
	bool is_known;

	pthread_mutex_lock(&lock);
	is_known = area_of(ptr) != NULL;
	for (int i = 0; i < REGISTERED_MAX; i++)
		is_known |= is_within(ptr, registered[i].base, registered[i].bytes);
	pthread_mutex_unlock(&lock);
	return !is_known;
}

static int refuse(void)
{
	return NOT_SUPPORTED;
}

/* Pageable memory is read at once, and written before the call returns. */
int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	bool is_held = streams_are_async() && is_pageable(from);
	struct copy *copy;
	int code;

	if (!is_copyable(to, bytes) || !is_copyable(from, bytes))
		return INVALID;
	copy = malloc(sizeof(*copy) + (is_held ? bytes : 0));
	if (!copy)
		return NO_MEMORY;
	*copy = (struct copy){.to = to, .from = is_held ? 0 : from, .bytes = bytes};
	if (is_held)
		memcpy(copy->held, (const void *)(uintptr_t)from, bytes);
	code = stream_give(stream, copy_do, copy, sizeof(*copy) + (is_held ? bytes : 0));
	free(copy);
	if (streams_are_async() && is_pageable(to))
		stream_wait(stream);
	return code;
}

/* From host memory, row behind row without gaps. */
int cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream)
{
	if (copy->from_type != COPY_HOST || copy->to_type != COPY_DEVICE ||
		copy->from_pitch != copy->row_bytes || copy->to_pitch != copy->row_bytes)
		return refuse();
	return cuMemcpyAsync(copy->to_device, (uintptr_t)copy->from_host,
		copy->row_bytes * copy->rows, stream);
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	int code = cuMemcpyAsync(to, (uintptr_t)from, bytes, NULL);

	stream_wait(NULL);
	return code;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	return cuMemcpyAsync((uintptr_t)to, from, bytes, NULL);
}

struct set {
	uint64_t to;
	uint32_t value, is_wide;
	size_t count;
};

static int set_do(void *argument)
{
	const struct set *set = argument;
	uint32_t *words = (uint32_t *)(uintptr_t)set->to;

	if (!set->is_wide)
		memset(words, (int)set->value, set->count);
	for (size_t i = 0; set->is_wide && i < set->count; i++)
		words[i] = set->value;
	return DONE;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	const struct set set = {.to = to, .value = value, .count = bytes};

	if (!memory_is_reached(stream_context(stream), to))
		return INVALID;
	return stream_give(stream, set_do, &set, sizeof(set));
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes)
{
	int code = cuMemsetD8Async(to, value, bytes, NULL);

	stream_wait(NULL);
	return code;
}

int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream)
{
	const struct set set = {
		.to = to, .value = value, .is_wide = true, .count = count};

	if (!memory_is_reached(stream_context(stream), to))
		return INVALID;
	return stream_give(stream, set_do, &set, sizeof(set));
}

/* A handle says whose file it is and how long, and what of it. */
int cuIpcGetMemHandle(struct handle *handle, uint64_t ptr)
{
	uint64_t words[6] = {0};
	struct area *area;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	if (area && area->kind == DEVICE) {
		words[0] = (uint64_t)getpid();
		words[1] = (uint64_t)area->block->fd;
		words[2] = area->block->bytes;
		words[3] = (uint64_t)(area->base - area->block->base);
		words[4] = area->bytes;
		words[5] = (uint64_t)area->device;
	}
	pthread_mutex_unlock(&lock);
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, words, sizeof(words));
	return words[0] ? DONE : INVALID;
}

int cuIpcOpenMemHandle_v2(uint64_t *ptr, struct handle handle, unsigned flags)
{
	const struct context *context = context_now();
	uint64_t words[6];
	char path[64];
	int fd, code;

	memcpy(words, handle.bytes, sizeof(words));
	if (!context || words[0] == (uint64_t)getpid())
		return NO_CONTEXT;
	if (context->device != (int)words[5] &&
		!devices_are_peers(context->device, (int)words[5]))
		return NO_PEER;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)words[0], (int)words[1]);
	fd = flags == 1 ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return BAD_HANDLE;
	pthread_mutex_lock(&lock);
	code = area_add(MAPPING, block_map(fd, words[2]), words[3], words[4], ptr);
	if (!code)
		area_of(*ptr)->device = (int)words[5];
	pthread_mutex_unlock(&lock);
	return code;
}

int cuIpcCloseMemHandle(uint64_t ptr)
{
	users_wait(ptr);
	return area_end(ptr);
}

/* Nobody maps it: it says what of the memory it stands for. */
int cuMemGetHandleForAddressRange(
	int *handle, uint64_t ptr, size_t bytes, int type, unsigned long long flags)
{
	const struct area *area;
	bool is_device;

	pthread_mutex_lock(&lock);
	area = area_of(ptr);
	is_device = area && area->kind == DEVICE &&
		    is_within(ptr + bytes - 1, area->block->base, area->block->bytes);
	pthread_mutex_unlock(&lock);
	if (!is_device || type != 1 || flags || ptr % PAGE || !bytes || bytes % PAGE)
		return INVALID;
	*handle = memfd_create("dmabuf", MFD_CLOEXEC);
	if (*handle < 0)
		return NO_MEMORY;
	dprintf(*handle, "%llu %zu", (unsigned long long)ptr, bytes);
	return DONE;
}

static void attribute_write(
	const struct area *area, const struct block *block, int attribute, void *value)
{
	unsigned type = !area->kind ? 0 : area->kind == PINNED ? 1 : 2;
	uint64_t word = 0;

	if (attribute == 1)
		word = area->kind ? (uintptr_t)area->context : 0;
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
	else if (attribute == 8 || attribute == 10 || attribute == 15)
		*(char *)value = attribute != 8 && area->kind == DEVICE;
	else if (attribute == 9)
		memcpy(value, &area->device, sizeof(int));
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

/* ---- kernels: a module is its context, a function its name in one ---- */

struct function {
	struct context *context;
	char *name;
};

int cuModuleLoadData(void **module, const void *image)
{
	*module = context_now();
	return image && *module ? DONE : INVALID;
}

int cuModuleUnload(void *module)
{
	return module ? DONE : INVALID;
}

/* Functions are few and stay for good, each once; those whose names begin as
 * CPU_CUDA_LACKS says are not there. */
int cuModuleGetFunction(void **function, void *module, const char *name)
{
	enum { FUNCTIONS_MAX = 4096 };
	static struct function functions[FUNCTIONS_MAX];
	const char *lacks = getenv("CPU_CUDA_LACKS");
	int i = 0;

	if (lacks && !strncmp(name, lacks, strlen(lacks)))
		return NOT_FOUND;
	pthread_mutex_lock(&lock);
	while (i < FUNCTIONS_MAX - 1 && functions[i].name &&
		(functions[i].context != module || strcmp(functions[i].name, name)))
		i++;
	if (!functions[i].name)
		functions[i] = (struct function){module, strdup(name)};
	*function = &functions[i];
	pthread_mutex_unlock(&lock);
	return module && functions[i].name && !strcmp(functions[i].name, name) ? DONE
									       : INVALID;
}

struct launch {
	const struct function *function;
	unsigned blocks, ranks, threads;
	_Alignas(16) char arguments[ARGUMENTS_MAX];
};

/* A code that nobody takes is said here. */
static int launch_do(void *argument)
{
	struct launch *launch = argument;
	const struct function *function = launch->function;
	const struct cpu_grid grid = {
		function->context, launch->blocks, launch->ranks, launch->threads};
	int code = cpu_kernel_do(function->name, &grid, launch->arguments);

	if (code && streams_are_async())
		fprintf(stderr, "cpu_cuda: kernel %s gives %d\n", function->name, code);
	return code;
}

/* The driver's own list of arguments, longer than we like. A kernel whose arguments come
 * as one block finds rubbish behind it. */
int cuLaunchKernel(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
	void *stream, void **params, void **extra)
{
	enum { RUBBISH = 0xa5 };
	const struct function *function = kernel;
	struct launch launch = {.function = function,
		.blocks = grid_x,
		.ranks = grid_y,
		.threads = block_x};
	size_t bytes = params ? cpu_kernel_bytes(function->name)
			      : *(const size_t *)extra[3];

	(void)block_y, (void)block_z, (void)shared_bytes;
	stop_if_wanted("launch");
	if (!grid_x || !grid_z || bytes > sizeof(launch.arguments))
		return INVALID;
	if (function->context != context_now() ||
		function->context != stream_context(stream))
		return BAD_HANDLE;
	memset(launch.arguments, RUBBISH, sizeof(launch.arguments));
	memcpy(launch.arguments, params ? params[0] : extra[1], bytes);
	return stream_give(stream, launch_do, &launch, sizeof(launch));
}

/* ---- what tests look for and do not use here ---- */

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
