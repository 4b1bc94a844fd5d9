/*
 * fake_cuda.c - a stand-in for libcuda.so.1, for tests without a GPU.
 *
 * Device memory is host memory that can be mapped twice, so that a handle opens at
 * another address, as a real one does; handles are good within this process only. Streams
 * do everything at once and nothing can be launched. Freed memory is given out again to
 * the next that asks for as much: at the same address, with a new id. Declarations are
 * written down a second time here, on purpose: a slip in one of them fails the test.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "copy_2d.h"
#include "one_context.h"

enum {
	DONE = 0,
	INVALID = 1,
	NO_MEMORY = 2,
	NOT_BEGUN = 3,
	ALREADY_MAPPED = 208,
	BAD_HANDLE = 400,
	NOT_SUPPORTED = 801
};
enum kind { UNUSED, FREED, DEVICE, PINNED, MANAGED, POOL, MAPPING };
enum { AREAS_MAX = 256, PAGE = 4096 };

struct area {
	enum kind kind;
	char *base;
	size_t bytes;
	unsigned long long id;
	int fd;
	int source; /* of a MAPPING: which area, and its id when it was opened */
	unsigned long long source_id;
	int opened; /* of a MAPPING: how often */
};

struct handle {
	char bytes[64];
};

struct uuid {
	char bytes[16];
};

struct memop {
	int operation;
	uint64_t address, value;
	unsigned flags;
	uint64_t alias, spare;
};

int fake_cuda_mappings, fake_cuda_handles;

static struct area areas[AREAS_MAX];
static int is_begun;
static unsigned long long last_id = 100;

static struct area *area_of(uint64_t ptr)
{
	for (int i = 0; i < AREAS_MAX; i++) {
		uint64_t base = (uintptr_t)areas[i].base;

		if (areas[i].kind > FREED && ptr >= base && ptr - base < areas[i].bytes)
			return &areas[i];
	}
	return NULL;
}

/* A freed area of the size, else a fresh one; NULL when all are taken. */
static struct area *area_pick(size_t bytes)
{
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind == FREED && areas[i].bytes == bytes)
			return &areas[i];
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind == UNUSED)
			return &areas[i];
	return NULL;
}

static char *area_map(struct area *area, size_t bytes)
{
	size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
	char *base;

	if (area->kind == FREED)
		return area->base;
	area->fd = memfd_create("fake-cuda", MFD_CLOEXEC);
	if (area->fd < 0 || ftruncate(area->fd, (off_t)whole))
		return NULL;
	base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
	return base == MAP_FAILED ? NULL : base;
}

static int area_new(uint64_t *ptr, size_t bytes, enum kind kind)
{
	struct area *area = area_pick(bytes);
	char *base;

	if (!is_begun)
		return NOT_BEGUN;
	if (!bytes || !area)
		return bytes ? NO_MEMORY : INVALID;
	base = area_map(area, bytes);
	if (!base)
		return NO_MEMORY;
	area->kind = kind;
	area->base = base;
	area->bytes = bytes;
	area->id = ++last_id;
	*ptr = (uintptr_t)base;
	return DONE;
}

static int area_free(uint64_t ptr)
{
	struct area *area = area_of(ptr);

	if (!area || area->kind == MAPPING || ptr != (uintptr_t)area->base)
		return INVALID;
	area->kind = FREED;
	return DONE;
}

int cuInit(unsigned flags)
{
	is_begun = 1;
	return flags ? INVALID : DONE;
}

int cuDriverGetVersion(int *version)
{
	*version = 13000;
	return DONE;
}

int cuGetErrorName(int code, const char **name)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {{INVALID, "CUDA_ERROR_INVALID_VALUE"},
		{ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED"},
		{BAD_HANDLE, "CUDA_ERROR_INVALID_HANDLE"}};

	*name = NULL;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].code == code)
			*name = names[i].name;
	return *name ? DONE : INVALID;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal ? 101 : DONE;
}

/* FAKE_CUDA_MPS: 0 or 1; unset is a driver that does not know the attribute. */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	const char *mps = getenv("FAKE_CUDA_MPS");

	if (attribute != 133 || device || !mps)
		return INVALID;
	*value = atoi(mps);
	return DONE;
}

int cuDeviceGetUuid_v2(struct uuid *uuid, int device)
{
	memset(uuid, 7, sizeof(*uuid));
	return device ? INVALID : DONE;
}

int cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	static const char id[] = "0000:07:00.0";

	if (device || bytes < (int)sizeof(id))
		return INVALID;
	memcpy(text, id, sizeof(id));
	return DONE;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
	static _Thread_local int now;
	int had = now;

	now = *mode;
	*mode = had;
	return DONE;
}

int cuStreamGetId(void *stream, uint64_t *id)
{
	*id = (uintptr_t)stream;
	return DONE;
}

int cuMemAlloc_v2(uint64_t *ptr, size_t bytes)
{
	return area_new(ptr, bytes, DEVICE);
}

int cuMemAllocManaged(uint64_t *ptr, size_t bytes, unsigned flags)
{
	return flags ? area_new(ptr, bytes, MANAGED) : INVALID;
}

int cuMemAllocAsync(uint64_t *ptr, size_t bytes, void *stream)
{
	return stream ? area_new(ptr, bytes, POOL) : INVALID;
}

int cuMemFree_v2(uint64_t ptr)
{
	return area_free(ptr);
}

int cuMemHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
	uint64_t base = 0;
	int code = flags & ~7u ? INVALID : area_new(&base, bytes, PINNED);

	if (!code)
		*ptr = (void *)(uintptr_t)base;
	return code;
}

int cuMemFreeHost(void *ptr)
{
	return area_free((uintptr_t)ptr);
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
	const struct area *area = area_of(ptr);

	if (!area)
		return INVALID;
	*base = (uintptr_t)area->base;
	*bytes = area->bytes;
	return DONE;
}

int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	(void)stream;
	memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return DONE;
}

/* Rows that follow one another. */
int cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream)
{
	return cuMemcpyAsync(copy->to_device, (uintptr_t)copy->from_host,
		copy->row_bytes * copy->rows, stream);
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	(void)stream;
	memset((void *)(uintptr_t)to, value, bytes);
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

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes)
{
	memset((void *)(uintptr_t)to, value, bytes);
	return DONE;
}

/* A handle names the area and the id it had. */
int cuIpcGetMemHandle(struct handle *handle, uint64_t ptr)
{
	const struct area *area = area_of(ptr);
	unsigned long long words[2];

	if (!area || area->kind != DEVICE)
		return INVALID;
	words[0] = (unsigned long long)(area - areas);
	words[1] = area->id;
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->bytes, words, sizeof(words));
	fake_cuda_handles++;
	return DONE;
}

/* An open mapping of what once was there stands in the way of what is there now. */
int cuIpcOpenMemHandle_v2(uint64_t *ptr, struct handle handle, unsigned flags)
{
	struct area *area, *mapping = NULL;
	unsigned long long words[2];

	memcpy(words, handle.bytes, sizeof(words));
	if (flags != 1)
		return INVALID;
	if (words[0] >= AREAS_MAX)
		return BAD_HANDLE;
	area = &areas[words[0]];
	if (area->kind != DEVICE || area->id != words[1])
		return BAD_HANDLE;
	for (int i = 0; i < AREAS_MAX; i++)
		if (areas[i].kind == MAPPING && areas[i].source == (int)words[0])
			mapping = &areas[i];
	if (mapping && mapping->source_id != area->id)
		return ALREADY_MAPPED;
	if (!mapping) {
		char *base = mmap(NULL, area->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			area->fd, 0);

		for (int i = AREAS_MAX - 1; i >= 0 && !mapping; i--)
			if (areas[i].kind == UNUSED)
				mapping = &areas[i];
		if (base == MAP_FAILED || !mapping)
			return NO_MEMORY;
		*mapping = (struct area){MAPPING, base, area->bytes, ++last_id,
			.source = (int)words[0], .source_id = area->id};
	}
	mapping->opened++;
	fake_cuda_mappings++;
	*ptr = (uintptr_t)mapping->base;
	return DONE;
}

int cuIpcCloseMemHandle(uint64_t ptr)
{
	struct area *mapping = area_of(ptr);

	if (!mapping || mapping->kind != MAPPING || ptr != (uintptr_t)mapping->base)
		return INVALID;
	fake_cuda_mappings--;
	if (--mapping->opened)
		return DONE;
	munmap(mapping->base, mapping->bytes);
	*mapping = (struct area){0};
	return DONE;
}

static void attribute_write(const struct area *area, int attribute, void *value)
{
	enum kind kind = area ? area->kind : UNUSED;
	unsigned type = !area ? 0 : kind == PINNED ? 1 : 2;
	char is_managed = kind == MANAGED, is_capable = kind == DEVICE;
	int ordinal = area ? 0 : -2;
	void *context = area && kind != POOL ? &one_context : NULL;

	if (attribute == 1)
		memcpy(value, &context, sizeof(context));
	else if (attribute == 2)
		memcpy(value, &type, sizeof(type));
	else if (attribute == 7)
		memcpy(value, area ? &area->id : &(unsigned long long){0}, 8);
	else if (attribute == 8)
		memcpy(value, &is_managed, 1);
	else if (attribute == 9)
		memcpy(value, &ordinal, sizeof(ordinal));
	else if (attribute == 10)
		memcpy(value, &is_capable, 1);
	else if (attribute == 11)
		memcpy(value, area ? &area->base : &(char *){NULL}, 8);
	else if (attribute == 12 || attribute == 18)
		memcpy(value, area ? &area->bytes : &(size_t){0}, 8);
	else if (attribute == 19)
		memcpy(value, area ? &area->base : &(char *){NULL}, 8);
	else if (attribute == 20)
		memcpy(value, area ? &area->id : &(unsigned long long){0}, 8);
}

int cuPointerGetAttributes(
	unsigned count, const int *attributes, void **values, uint64_t ptr)
{
	if (!is_begun)
		return NOT_BEGUN;
	if (ptr == 0xbad)
		return 700;
	for (unsigned i = 0; i < count; i++)
		attribute_write(area_of(ptr), attributes[i], values[i]);
	return DONE;
}

int cuCtxSynchronize(void)
{
	return DONE;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = &is_begun;
	return flags > 1 ? INVALID : DONE;
}

int cuStreamDestroy_v2(void *stream)
{
	return stream ? DONE : INVALID;
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

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	(void)stream;
	return event && !flags ? DONE : INVALID;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return DONE;
}

/* Writes are done; a wait that does not hold now never would. */
static int memops_do(unsigned count, const struct memop *ops)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t now = 0;
		size_t bytes = ops[i].operation > 3 ? 8 : 4;
		void *at = (void *)(uintptr_t)ops[i].address;

		if (ops[i].operation == 2 || ops[i].operation == 5) {
			memcpy(at, &ops[i].value, bytes);
			continue;
		}
		memcpy(&now, at, bytes);
		if (ops[i].flags ? now != ops[i].value : now < ops[i].value)
			return NOT_SUPPORTED;
	}
	return DONE;
}

#ifdef FAKE_CUDA_OLDER
int cuStreamBatchMemOp(
	void *stream, unsigned count, const struct memop *ops, unsigned flags)
#else
int cuStreamBatchMemOp_v2(
	void *stream, unsigned count, const struct memop *ops, unsigned flags)
#endif
{
	(void)stream;
	return flags ? INVALID : memops_do(count, ops);
}

#ifdef FAKE_CUDA_OLDER
int cuDevicePrimaryCtxRelease(int device)
#else
int cuDevicePrimaryCtxRelease_v2(int device)
#endif
{
	return device ? INVALID : DONE;
}

int cuEventCreate(void **event, unsigned flags)
{
	(void)flags;
	*event = &is_begun;
	return DONE;
}

int cuEventRecord(void *event, void *stream)
{
	(void)stream;
	return event ? DONE : INVALID;
}

int cuEventDestroy_v2(void *event)
{
	return event ? DONE : INVALID;
}

int cuEventQuery(void *event)
{
	return event ? DONE : INVALID;
}

int cuModuleLoadData(void **module, const void *image)
{
	*module = NULL;
	return image ? NOT_SUPPORTED : INVALID;
}

int cuModuleUnload(void *module)
{
	(void)module;
	return NOT_SUPPORTED;
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	(void)module;
	*function = NULL;
	return name ? NOT_SUPPORTED : INVALID;
}

#ifndef FAKE_CUDA_LACKING
int cuLaunchKernel(void *function)
{
	return function ? NOT_SUPPORTED : INVALID;
}
#endif
