#include "exec/cuda/driver/share.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "exec/cuda/driver/where.h"

enum { BUCKET_COUNT = 256, CLOSING_NAP_US = 200 };

/* A block we have exported. */
struct export
{
	struct export *next;
	struct cuda_shared shared; /* of the whole block */
};

/* A block that is mapped into this process, for all who use it. */
struct mapping {
	struct mapping *next;
	cu_context context;
	uint64_t process, block_id, block_bytes;
	cu_ptr here, opened;  /* where the block begins, and what the driver gave */
	cu_physical physical; /* of a block by descriptor, else 0 */
	uint32_t users;
	bool is_closing; /* by somebody, who will take it out */
};

/* That we are one of them. */
struct import {
	struct import *next;
	struct mapping *mapping;
};

struct cuda_share {
	const struct cuda_driver *driver; /* borrowed */
	cu_context context;
	struct export *exports[BUCKET_COUNT];
	struct import *imports[BUCKET_COUNT];
};

/* All of this process; the lock guards them and their users. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

/* Ids are counters: mix them, so that those of several processes do not fall together. */
static size_t bucket_of(uint64_t process, uint64_t block_id)
{
	uint64_t mixed = hash_spread(process) ^ block_id;

	return (size_t)((mixed ^ mixed >> 32) % BUCKET_COUNT);
}

enum err cuda_share_create(const struct cuda_driver *driver, struct cuda_share **share)
{
	struct cuda_share *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to keep track of shared buffers");
	fresh->driver = driver;
	driver->context_get(&fresh->context);
	*share = fresh;
	return OK;
}

/* ---- exports ---- */

static struct export **export_find(struct cuda_share *share, uint64_t block_id)
{
	struct export **link = &share->exports[bucket_of(0, block_id)];

	for (; *link; link = &(*link)->next)
		if ((*link)->shared.block_id == block_id)
			return link;
	return NULL;
}

/* Ask the driver for the handle of an allocation. */
static enum err handle_get(
	const struct cuda_driver *driver, cu_ptr base, struct cu_ipc_handle *handle)
{
	cu_result result = driver->ipc_get(handle, base);

	if (result != CU_INVALID_VALUE && result != CU_NOT_SUPPORTED)
		return cuda_check(result, "sharing a buffer between processes");
	return err_set(ERR_ARGUMENT,
		"a buffer cannot be shared between processes: only memory of cudaMalloc "
		"can, not managed memory, cudaMallocAsync or PyTorch's "
		"expandable_segments (allocate with ncclMemAlloc, or turn these off)");
}

/* .. or for a descriptor of the physical memory behind a range. */
static enum err fd_get(const struct cuda_driver *driver, cu_ptr block, int64_t *fd)
{
	cu_physical physical = 0;
	int made = -1;
	enum err e = cuda_check(driver->physical_of(&physical, (void *)(uintptr_t)block),
		"finding the memory behind a range");

	if (e)
		return e;
	e = cuda_check(driver->physical_export(&made, physical, CU_HANDLE_FD, 0),
		"sharing memory by a descriptor");
	driver->physical_release(physical);
	*fd = made;
	return e;
}

/* A block seen for the first time. */
static enum err export_open(struct cuda_share *share, const struct cuda_where *where,
	const struct export **export)
{
	struct export **head = &share->exports[bucket_of(0, where->block_id)];
	struct export *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to share a buffer");
	fresh->shared = (struct cuda_shared){.handle_offset = where->base - where->block,
		.block_id = where->block_id,
		.block = where->block,
		.block_bytes = where->block_bytes};
	fresh->shared.fd = -1;
	e = where->is_by_fd
		    ? fd_get(share->driver, where->block, &fresh->shared.fd)
		    : handle_get(share->driver, where->base, &fresh->shared.handle);
	if (e) {
		free(fresh);
		return e;
	}
	fresh->next = *head;
	*head = fresh;
	*export = fresh;
	return OK;
}

enum err cuda_share_export(struct cuda_share *share, const void *ptr, size_t bytes,
	struct cuda_shared *shared)
{
	const struct export *export;
	struct export **link;
	struct cuda_where where;
	uint64_t offset;
	enum err e = cuda_where(share->driver, ptr, &where);

	if (e)
		return e;
	if (!where.is_device)
		return err_set(ERR_ARGUMENT,
			"%p is not device memory: share it as host "
			"memory",
			ptr);
	offset = (cu_ptr)(uintptr_t)ptr - where.base;
	if (offset > where.bytes || bytes > where.bytes - offset)
		return err_set(ERR_ARGUMENT,
			"a buffer of %zu bytes at %p goes beyond its allocation of %zu",
			bytes, ptr, where.bytes);
	link = export_find(share, where.block_id);
	export = link ? *link : NULL;
	if (!export) {
		e = export_open(share, &where, &export);
		if (e)
			return e;
	}
	*shared = export->shared;
	shared->offset = (cu_ptr)(uintptr_t)ptr - where.block;
	shared->bytes = bytes;
	return OK;
}

static void export_close(struct export **link)
{
	struct export *export = *link;

	*link = export->next;
	if (export->shared.fd >= 0)
		close((int)export->shared.fd);
	free(export);
}

void cuda_share_unexport(struct cuda_share *share, uint64_t block_id)
{
	struct export **link = export_find(share, block_id);

	if (link)
		export_close(link);
}

/* ---- imports ---- */

static struct import **import_find(
	struct cuda_share *share, uint64_t process, uint64_t block_id)
{
	struct import **link = &share->imports[bucket_of(process, block_id)];

	for (; *link; link = &(*link)->next)
		if ((*link)->mapping->process == process &&
			(*link)->mapping->block_id == block_id)
			return link;
	return NULL;
}

/* Does the mapping really hold what its owner says it does? */
static enum err mapping_check(
	const struct cuda_share *share, cu_ptr opened, const struct cuda_shared *shared)
{
	struct cuda_where where;
	cu_ptr here = opened - shared->handle_offset;
	enum err e = cuda_where(share->driver, (const void *)(uintptr_t)opened, &where);

	if (e)
		return e;
	if (here > opened || here < where.block ||
		here - where.block > where.block_bytes ||
		shared->block_bytes > where.block_bytes - (here - where.block))
		return err_set(ERR_REMOTE,
			"a peer shares %zu bytes as a block of %llu: it is broken or "
			"runs another version",
			where.block_bytes, (unsigned long long)shared->block_bytes);
	return OK;
}

/* A descriptor of another process, as one of ours; negative: it cannot be had. */
static int fd_fetch(uint64_t process, int64_t fd)
{
	int watch = (int)syscall(SYS_pidfd_open, (pid_t)process, 0);
	int here = watch < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, watch, (int)fd, 0);

	if (watch >= 0)
		close(watch);
	return here;
}

bool cuda_share_can_pass(uint64_t process, int fd)
{
	int here = fd_fetch(process, fd);

	if (here >= 0)
		close(here);
	return here >= 0;
}

/* Map the physical memory: it is used from this context's device. */
static enum err physical_map(
	struct cuda_share *share, cu_physical physical, size_t bytes, cu_ptr *opened)
{
	const struct cuda_driver *driver = share->driver;
	struct cu_access access = {
		.location_type = CU_LOCATION_DEVICE, .access = CU_ACCESS_READ_WRITE};
	enum err e = cuda_check(
		driver->context_device(&access.location_id), "ask for the device");

	if (!e)
		e = cuda_check(driver->range_reserve(opened, bytes, 0, 0, 0),
			"reserving addresses for a peer's buffer");
	if (e)
		return e;
	e = cuda_check(driver->range_map(*opened, bytes, 0, physical, 0),
		"opening a peer's buffer");
	if (!e) {
		e = cuda_check(driver->range_access(*opened, bytes, &access, 1),
			"opening a peer's buffer");
		if (e)
			driver->range_unmap(*opened, bytes);
	}
	if (e)
		driver->range_free(*opened, bytes);
	return e;
}

static enum err fd_open(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, struct mapping *mapping)
{
	const struct cuda_driver *driver = share->driver;
	int fd = driver->physical_import ? fd_fetch(process, shared->fd) : -1;
	enum err e;

	if (fd < 0)
		return err_set(ERR_SYSTEM,
			"cannot take over memory of process %llu by its descriptor",
			(unsigned long long)process);
	e = cuda_check(driver->physical_import(
			       &mapping->physical, (void *)(intptr_t)fd, CU_HANDLE_FD),
		"opening a peer's buffer");
	close(fd);
	if (e)
		return e;
	e = physical_map(share, mapping->physical, shared->block_bytes, &mapping->opened);
	if (e)
		driver->physical_release(mapping->physical);
	return e;
}

static cu_result mapping_close(const struct cuda_share *share, struct mapping *mapping)
{
	const struct cuda_driver *driver = share->driver;

	if (!mapping->physical)
		return driver->ipc_close(mapping->opened);
	driver->context_synchronize(); /* as the other way does by itself */
	driver->range_unmap(mapping->opened, mapping->block_bytes);
	driver->range_free(mapping->opened, mapping->block_bytes);
	return driver->physical_release(mapping->physical);
}

/* With the lock held. */
static enum err mapping_open(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, struct mapping **mapping)
{
	struct mapping *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to open a peer's buffer");
	fresh->context = share->context;
	fresh->process = process;
	fresh->block_id = shared->block_id;
	fresh->block_bytes = shared->block_bytes;
	if (shared->fd >= 0)
		e = fd_open(share, process, shared, fresh);
	else
		e = cuda_check(share->driver->ipc_open(
				       &fresh->opened, shared->handle, CU_IPC_LAZY_PEER),
			"opening a peer's buffer");
	if (!e && shared->fd < 0) {
		e = mapping_check(share, fresh->opened, shared);
		if (e)
			mapping_close(share, fresh);
	}
	if (e) {
		free(fresh);
		return e;
	}
	fresh->here = fresh->opened - (shared->fd >= 0 ? 0 : shared->handle_offset);
	fresh->next = mappings;
	mappings = fresh;
	*mapping = fresh;
	return OK;
}

static struct mapping *mapping_find(
	const struct cuda_share *share, uint64_t process, uint64_t block_id)
{
	struct mapping *mapping = mappings;

	while (mapping &&
		(mapping->context != share->context || mapping->process != process ||
			mapping->block_id != block_id))
		mapping = mapping->next;
	return mapping;
}

/* With the lock held. */
static void mapping_remove(struct mapping *mapping)
{
	struct mapping **link = &mappings;

	while (*link != mapping)
		link = &(*link)->next;
	*link = mapping->next;
	free(mapping);
}

/* One more user of the block, which is mapped if it was not. */
static enum err mapping_use(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, struct mapping **mapping)
{
	enum err e = OK;

	pthread_mutex_lock(&lock);
	while ((*mapping = mapping_find(share, process, shared->block_id)) &&
		(*mapping)->is_closing) {
		pthread_mutex_unlock(&lock);
		usleep(CLOSING_NAP_US);
		pthread_mutex_lock(&lock);
	}
	if (!*mapping)
		e = mapping_open(share, process, shared, mapping);
	if (!e)
		(*mapping)->users++;
	pthread_mutex_unlock(&lock);
	return e;
}

static enum err import_add(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, struct import **import)
{
	struct import **head = &share->imports[bucket_of(process, shared->block_id)];
	struct import *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to open a peer's buffer");
	e = mapping_use(share, process, shared, &fresh->mapping);
	if (e) {
		free(fresh);
		return e;
	}
	fresh->next = *head;
	*head = fresh;
	*import = fresh;
	return OK;
}

enum err cuda_share_import(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, cu_ptr *ptr)
{
	struct import **link = import_find(share, process, shared->block_id);
	struct import *import = link ? *link : NULL;
	/* what the block was found to be when it was opened, not what is said now */
	uint64_t room = import ? import->mapping->block_bytes : shared->block_bytes;
	enum err e = OK;

	if (shared->offset > room || shared->bytes > room - shared->offset)
		return err_set(ERR_REMOTE,
			"a peer shares a buffer that its block of %llu bytes does not "
			"hold: it is broken or runs another version",
			(unsigned long long)room);
	if (!import)
		e = import_add(share, process, shared, &import);
	if (!e)
		*ptr = import->mapping->here + shared->offset;
	return e;
}

static void import_drop(struct import **link)
{
	struct import *import = *link;

	*link = import->next;
	pthread_mutex_lock(&lock);
	import->mapping->users--;
	pthread_mutex_unlock(&lock);
	free(import);
}

void cuda_share_forget(struct cuda_share *share, uint64_t process, uint64_t block_id)
{
	struct import **link = import_find(share, process, block_id);

	if (link)
		import_drop(link);
}

/* One that nobody uses; it is the caller's to close. */
static struct mapping *mapping_unused(const struct cuda_share *share)
{
	struct mapping *mapping;

	pthread_mutex_lock(&lock);
	mapping = mappings;
	while (mapping && (mapping->context != share->context || mapping->users ||
				  mapping->is_closing))
		mapping = mapping->next;
	if (mapping)
		mapping->is_closing = true;
	pthread_mutex_unlock(&lock);
	return mapping;
}

/* A mapping that does not go is no reason to stop: the process's end removes it. */
void cuda_share_tidy(const struct cuda_share *share)
{
	struct mapping *mapping;

	while ((mapping = mapping_unused(share))) {
		cu_result result = mapping_close(share, mapping);

		if (result)
			log_info(LOG_P2P,
				"shared memory of process %llu does not unmap: error %d",
				(unsigned long long)mapping->process, result);
		pthread_mutex_lock(&lock);
		mapping_remove(mapping);
		pthread_mutex_unlock(&lock);
	}
}

void cuda_share_destroy(struct cuda_share *share)
{
	if (!share)
		return;
	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		while (share->exports[i])
			export_close(&share->exports[i]);
		while (share->imports[i])
			import_drop(&share->imports[i]);
	}
	cuda_share_tidy(share);
	free(share);
}
