#include "exec/cuda/share.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/log.h"
#include "exec/cuda/where.h"

enum { BUCKET_COUNT = 256 };

/* An allocation we have exported (process 0, `handle` set) or imported (`here` set). */
struct entry {
	struct entry *next;
	uint64_t process, buffer_id;
	uint64_t base, bytes; /* in the owner's addresses */
	cu_ptr here;
	struct cu_ipc_handle handle;
};

struct cuda_share {
	const struct cuda_driver *driver; /* borrowed */
	struct entry *exports[BUCKET_COUNT], *imports[BUCKET_COUNT];
};

/* Ids are counters: mix them, so that those of several processes do not fall together. */
static size_t bucket_of(uint64_t process, uint64_t buffer_id)
{
	uint64_t mixed = (process * 0x9e3779b97f4a7c15u) ^ buffer_id;

	return (size_t)((mixed ^ mixed >> 32) % BUCKET_COUNT);
}

/* The link that leads to the entry, so that it can be taken out; NULL when there is none.
 */
static struct entry **entry_find(
	struct entry **buckets, uint64_t process, uint64_t buffer_id)
{
	struct entry **link = &buckets[bucket_of(process, buffer_id)];

	for (; *link; link = &(*link)->next)
		if ((*link)->process == process && (*link)->buffer_id == buffer_id)
			return link;
	return NULL;
}

static void entry_add(struct entry **buckets, struct entry *entry)
{
	struct entry **head = &buckets[bucket_of(entry->process, entry->buffer_id)];

	entry->next = *head;
	*head = entry;
}

static void entry_forget(struct entry **link)
{
	struct entry *entry = *link;

	*link = entry->next;
	free(entry);
}

/* A mapping that does not go is no reason to stop: the process's end removes it. */
static void import_close(struct cuda_share *share, struct entry **link)
{
	cu_result result = share->driver->ipc_close((*link)->here);

	if (result)
		log_info(LOG_P2P,
			"shared memory of process %llu does not unmap: error %d",
			(unsigned long long)(*link)->process, result);
	entry_forget(link);
}

enum err cuda_share_create(const struct cuda_driver *driver, struct cuda_share **share)
{
	struct cuda_share *fresh = calloc(1, sizeof(*fresh));

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to keep track of shared buffers");
	fresh->driver = driver;
	*share = fresh;
	return OK;
}

void cuda_share_destroy(struct cuda_share *share)
{
	if (!share)
		return;
	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		while (share->exports[i])
			entry_forget(&share->exports[i]);
		while (share->imports[i])
			import_close(share, &share->imports[i]);
	}
	free(share);
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

/* An allocation seen for the first time. */
static enum err export_open(struct cuda_share *share, const struct cuda_where *where,
	const struct entry **entry)
{
	struct entry *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to share a buffer");
	e = handle_get(share->driver, where->base, &fresh->handle);
	if (e) {
		free(fresh);
		return e;
	}
	fresh->buffer_id = where->buffer_id;
	fresh->base = where->base;
	fresh->bytes = where->bytes;
	entry_add(share->exports, fresh);
	*entry = fresh;
	return OK;
}

enum err cuda_share_export(struct cuda_share *share, const void *ptr, size_t bytes,
	struct cuda_shared *shared)
{
	const struct entry *entry;
	struct entry **link;
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
	link = entry_find(share->exports, 0, where.buffer_id);
	entry = link ? *link : NULL;
	if (!entry) {
		e = export_open(share, &where, &entry);
		if (e)
			return e;
	}
	*shared = (struct cuda_shared){.handle = entry->handle,
		.buffer_id = where.buffer_id,
		.base = where.base,
		.base_bytes = where.bytes,
		.offset = offset,
		.bytes = bytes};
	return OK;
}

void cuda_share_unexport(struct cuda_share *share, uint64_t buffer_id)
{
	struct entry **link = entry_find(share->exports, 0, buffer_id);

	if (link)
		entry_forget(link);
}

static bool is_overlapping(const struct entry *entry, const struct cuda_shared *shared)
{
	return entry->base < shared->base + shared->base_bytes &&
	       shared->base < entry->base + entry->bytes;
}

/* Two allocations of a process never lie over each other: the older one is freed. */
static void imports_evict(
	struct cuda_share *share, uint64_t process, const struct cuda_shared *shared)
{
	for (size_t i = 0; i < BUCKET_COUNT; i++) {
		struct entry **link = &share->imports[i];

		while (*link) {
			if ((*link)->process == process && is_overlapping(*link, shared))
				import_close(share, link);
			else
				link = &(*link)->next;
		}
	}
}

/* Does the mapping really hold what its owner says it does? */
static enum err import_check(
	const struct cuda_share *share, cu_ptr here, const struct cuda_shared *shared)
{
	cu_ptr base = 0;
	size_t bytes = 0;
	enum err e = cuda_check(share->driver->mem_address_range(&base, &bytes, here),
		"looking at a peer's buffer");

	if (e)
		return e;
	if (here - base > bytes || shared->base_bytes > bytes - (here - base))
		return err_set(ERR_REMOTE,
			"a peer shares %zu bytes as an allocation of %llu: it is broken "
			"or runs another version",
			bytes, (unsigned long long)shared->base_bytes);
	return OK;
}

static enum err import_open(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, const struct entry **entry)
{
	struct entry *fresh = calloc(1, sizeof(*fresh));
	enum err e;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to open a peer's buffer");
	/* Closing waits for all work of the context, which may itself be waiting for this
	 * buffer. So what was freed is closed first only where the driver insists; else
	 * with the rest. */
	if (share->driver->ipc_open(&fresh->here, shared->handle, CU_IPC_LAZY_PEER)) {
		imports_evict(share, process, shared);
		e = cuda_check(share->driver->ipc_open(
				       &fresh->here, shared->handle, CU_IPC_LAZY_PEER),
			"opening a peer's buffer");
	} else {
		e = OK;
	}
	if (e)
		goto err_free;
	e = import_check(share, fresh->here, shared);
	if (e)
		goto err_close;
	fresh->process = process;
	fresh->buffer_id = shared->buffer_id;
	fresh->base = shared->base;
	fresh->bytes = shared->base_bytes;
	entry_add(share->imports, fresh);
	*entry = fresh;
	return OK;

err_close:
	share->driver->ipc_close(fresh->here);
err_free:
	free(fresh);
	return e;
}

enum err cuda_share_import(struct cuda_share *share, uint64_t process,
	const struct cuda_shared *shared, cu_ptr *ptr)
{
	struct entry **link = entry_find(share->imports, process, shared->buffer_id);
	const struct entry *entry = link ? *link : NULL;
	/* What the allocation was found to be when it was opened, not what is said now.
	 */
	uint64_t room = entry ? entry->bytes : shared->base_bytes;
	enum err e;

	if (shared->offset > room || shared->bytes > room - shared->offset ||
		shared->base + room < room)
		return err_set(ERR_REMOTE,
			"a peer shares a buffer that its allocation of %llu bytes does "
			"not hold: it is broken or runs another version",
			(unsigned long long)room);
	if (!entry) {
		e = import_open(share, process, shared, &entry);
		if (e)
			return e;
	}
	*ptr = entry->here + shared->offset;
	return OK;
}

cu_ptr cuda_share_forget(struct cuda_share *share, uint64_t process, uint64_t buffer_id)
{
	struct entry **link = entry_find(share->imports, process, buffer_id);
	cu_ptr here = link ? (*link)->here : 0;

	if (link)
		entry_forget(link);
	return here;
}
