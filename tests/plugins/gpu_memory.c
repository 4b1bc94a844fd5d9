#include "gpu_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fabric.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { BLOCKS_MAX = 1024, ATTRIBUTE_DEVICE_ORDINAL = 9, INVALID_VALUE = 1 };

static struct block {
	char *data, *seen; /* data NULL: it is free */
	size_t bytes;
	int fd;
} blocks[BLOCKS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*flush_call)(void);

/* With the lock. */
static struct block *block_of(const void *data)
{
	for (int i = 0; i < BLOCKS_MAX; i++)
		if (blocks[i].data && (const char *)data >= blocks[i].data &&
			(const char *)data < blocks[i].data + blocks[i].bytes)
			return &blocks[i];
	return NULL;
}

EXPORT void *gpu_alloc(size_t bytes)
{
	struct block *block = blocks;

	pthread_mutex_lock(&lock);
	while (block < blocks + BLOCKS_MAX && block->data)
		block++;
	if (block == blocks + BLOCKS_MAX)
		abort();
	block->bytes = bytes;
	block->fd = memfd_create("gpu", MFD_CLOEXEC);
	if (block->fd < 0 || ftruncate(block->fd, (off_t)bytes))
		abort();
	block->seen = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, block->fd, 0);
	block->data = mmap(NULL, bytes, PROT_NONE, MAP_SHARED, block->fd, 0);
	if (block->seen == MAP_FAILED || block->data == MAP_FAILED)
		abort();
	pthread_mutex_unlock(&lock);
	return block->data;
}

EXPORT void gpu_free(void *data)
{
	struct block *block;

	pthread_mutex_lock(&lock);
	block = block_of(data);
	if (!block)
		abort();
	munmap(block->data, block->bytes);
	munmap(block->seen, block->bytes);
	close(block->fd);
	block->data = NULL;
	pthread_mutex_unlock(&lock);
}

EXPORT void *gpu_see(const void *data)
{
	struct block *block;
	void *seen = NULL;

	pthread_mutex_lock(&lock);
	block = block_of(data);
	if (block)
		seen = block->seen + ((const char *)data - block->data);
	pthread_mutex_unlock(&lock);
	return seen;
}

EXPORT int gpu_file(const void *data, uint64_t *offset)
{
	struct block *block;
	int fd = -1;

	pthread_mutex_lock(&lock);
	block = block_of(data);
	if (block) {
		*offset = (uint64_t)((const char *)data - block->data);
		fd = block->fd;
	}
	pthread_mutex_unlock(&lock);
	return fd;
}

EXPORT void gpu_flush_call(void (*function)(void))
{
	flush_call = function;
}

/* ---- CUDA's driver ---- */

EXPORT int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer);
EXPORT int cuFlushGPUDirectRDMAWrites(int target, int scope);

int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer)
{
	if (attribute != ATTRIBUTE_DEVICE_ORDINAL || !gpu_see((void *)(uintptr_t)pointer))
		return INVALID_VALUE;
	*(int *)value = GPU_DEVICE;
	return 0;
}

int cuFlushGPUDirectRDMAWrites(int target, int scope)
{
	enum { CURRENT_CONTEXT = 0, TO_OWNER = 100 };

	if (target != CURRENT_CONTEXT || scope != TO_OWNER)
		return INVALID_VALUE;
	if (flush_call)
		flush_call();
	return 0;
}

/* ---- libfabric ---- */

typedef uint32_t version_function(void);
typedef int getinfo_function(uint32_t version, const char *node, const char *service,
	uint64_t flags, const struct fi_info *hints, struct fi_info **info);

static const char newer[] = "GPU_DMABUF";

/* The plugin has it loaded. */
static void *real_of(const char *name)
{
	void *library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_NOLOAD);

	return library ? dlsym(library, name) : NULL;
}

EXPORT uint32_t fi_version(void)
{
	version_function *real = (version_function *)real_of("fi_version");

	return getenv(newer) ? FI_VERSION(1, 20) : real();
}

EXPORT int fi_getinfo(uint32_t version, const char *node, const char *service,
	uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	getinfo_function *real = (getinfo_function *)real_of("fi_getinfo");

	if (getenv(newer))
		version = FI_VERSION(1, 17);
	return real(version, node, service, flags, hints, info);
}
