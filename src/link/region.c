/*
 * region.c - the registry of mappable memory.
 *
 * A sorted array under a read-write lock; frees and allocations are rare. Each thread
 * remembers its last two answers, which stay good until the generation moves.
 */
#include "link/region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fsize.h"
#include "base/log.h"
#include "net/plugin.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct region *regions; /* guarded by lock; sorted by base */
static size_t region_count, region_room;
static uint64_t next_id = 1;
static _Atomic uint64_t generation = 1;

enum { CACHE_WAYS = 2 };
static _Thread_local struct {
	uint64_t generation;
	struct region region;
} cache[CACHE_WAYS];
static _Thread_local unsigned cache_turn;

static enum err region_insert(const struct region *region)
{
	size_t at;

	if (region_count == region_room) {
		size_t room = region_room ? 2 * region_room : 16;
		struct region *grown = realloc(regions, room * sizeof(*grown));

		if (!grown)
			return err_set(ERR_SYSTEM, "no memory to register %zu bytes",
				region->bytes);
		regions = grown;
		region_room = room;
	}
	for (at = region_count; at > 0 && regions[at - 1].base > region->base; at--)
		regions[at] = regions[at - 1];
	regions[at] = *region;
	region_count++;
	return OK;
}

static enum err region_map_new(struct region *region)
{
	region->fd = memfd_create("weft", MFD_CLOEXEC);
	if (region->fd < 0)
		return err_set(ERR_SYSTEM, "memfd_create: %m");
	if (fsize_truncate(region->fd, region->bytes)) {
		enum err e = err_set(ERR_SYSTEM,
			"no room for %zu bytes of shared memory: %m%s", region->bytes,
			fsize_hint(errno));

		close(region->fd);
		return e;
	}
	region->base = mmap(
		NULL, region->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (region->base == MAP_FAILED) {
		enum err e = err_set(ERR_SYSTEM, "map %zu bytes: %m", region->bytes);

		close(region->fd);
		return e;
	}
	/* only a wish: shared huge pages are often off */
	madvise(region->base, region->bytes, MADV_HUGEPAGE);
	return OK;
}

enum err region_alloc(size_t bytes, void **ptr)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct region region = {0};
	enum err e;

	if (bytes > SIZE_MAX / 2)
		return err_set(ERR_ARGUMENT, "cannot allocate %zu bytes", bytes);
	region.bytes = bytes ? (bytes + page - 1) / page * page : page;
	e = region_map_new(&region);
	if (e)
		return e;
	pthread_rwlock_wrlock(&lock);
	region.id = next_id++;
	e = region_insert(&region);
	pthread_rwlock_unlock(&lock);
	if (e) {
		munmap(region.base, region.bytes);
		close(region.fd);
		return e;
	}
	*ptr = region.base;
	return OK;
}

/* The last region that begins at or below `ptr`; -1 when there is none. Lock held. */
static ptrdiff_t region_below(const char *ptr)
{
	size_t low = 0, high = region_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (regions[middle].base <= ptr)
			low = middle + 1;
		else
			high = middle;
	}
	return (ptrdiff_t)low - 1;
}

enum err region_free(void *ptr)
{
	struct region region = {0};
	ptrdiff_t at;

	pthread_rwlock_wrlock(&lock);
	at = region_below(ptr);
	if (at >= 0 && regions[at].base == ptr) {
		region = regions[at];
		memmove(&regions[at], &regions[at + 1],
			(region_count - (size_t)at - 1) * sizeof(*regions));
		region_count--;
		atomic_fetch_add(&generation, 1);
	}
	pthread_rwlock_unlock(&lock);
	if (!region.id)
		return err_set(ERR_ARGUMENT, "%p was not allocated by ncclMemAlloc", ptr);
	munmap(region.base, region.bytes);
	net_plugins_pages_replaced(region.base, region.bytes);
	if (region.fd >= 0)
		close(region.fd);
	return OK;
}

static bool region_holds(const struct region *region, const char *ptr, size_t bytes)
{
	return ptr >= region->base && (size_t)(ptr - region->base) <= region->bytes &&
	       bytes <= region->bytes - (size_t)(ptr - region->base);
}

/* One page anew; bytes [from, to) of it come back as zeros, the others as they were, and
 * at no moment otherwise. */
static bool page_renew(char *page, size_t bytes, size_t from, size_t to)
{
	char *fresh = mmap(
		NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fresh == MAP_FAILED)
		return false;
	memcpy(fresh, page, from);
	memcpy(fresh + to, page + to, bytes - to);
	return mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, page) == page;
}

static bool pages_renew(char *ptr, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *end = ptr + bytes;
	char *whole = (char *)(((uintptr_t)ptr + page - 1) & ~(page - 1));
	char *whole_end = (char *)((uintptr_t)end & ~(page - 1));

	if (whole > whole_end) /* in the middle of one page */
		return page_renew(whole_end, page, (size_t)(ptr - whole_end),
			(size_t)(end - whole_end));
	return (whole == ptr || page_renew(whole - page, page,
					page - (size_t)(whole - ptr), page)) &&
	       (whole_end == end ||
		       page_renew(whole_end, page, 0, (size_t)(end - whole_end))) &&
	       (whole == whole_end ||
		       mmap(whole, (size_t)(whole_end - whole), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
			       -1, 0) == whole);
}

/* The same bytes on pages of our own. */
static bool pages_copy(char *ptr, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	char *first = (char *)((uintptr_t)ptr & ~(page - 1));
	size_t all = (size_t)(ptr - first) + bytes;
	char *fresh;

	all = (all + page - 1) / page * page;
	fresh = mmap(
		NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh == MAP_FAILED)
		return false;
	memcpy(fresh, first, all);
	return mremap(fresh, all, all, MREMAP_MAYMOVE | MREMAP_FIXED, first) == first;
}

/* Whole pages, for what lies beside the memory on its first or last one has another
 * page, too. */
static void plugins_tell(char *ptr, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	size_t before = (uintptr_t)ptr % page;

	bytes = (before + bytes + page - 1) / page * page;
	net_plugins_pages_replaced(ptr - before, bytes);
}

/* Have `renew` put pages of our own under a part of a region, which is none any more. */
static void region_part(void *ptr, size_t bytes, bool (*renew)(char *ptr, size_t bytes))
{
	ptrdiff_t at;

	pthread_rwlock_wrlock(&lock);
	at = region_below(ptr);
	if (bytes && at >= 0 && region_holds(&regions[at], ptr, bytes)) {
		if (!renew(ptr, bytes))
			log_warn("no fresh pages for %zu bytes at %p that another "
				 "process may still write: %m",
				bytes, ptr);
		if (regions[at].fd >= 0)
			close(regions[at].fd);
		regions[at].fd = -1;
		atomic_fetch_add(&generation, 1);
	}
	pthread_rwlock_unlock(&lock);
	plugins_tell(ptr, bytes);
}

void region_withdraw(void *ptr, size_t bytes)
{
	region_part(ptr, bytes, pages_renew);
}

void region_detach(void *ptr, size_t bytes)
{
	region_part(ptr, bytes, pages_copy);
}

bool region_find(const void *ptr, size_t bytes, struct region *region)
{
	uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
	ptrdiff_t at;
	bool found = false;

	for (unsigned i = 0; i < CACHE_WAYS; i++)
		if (cache[i].generation == now &&
			region_holds(&cache[i].region, ptr, bytes)) {
			*region = cache[i].region;
			return true;
		}
	pthread_rwlock_rdlock(&lock);
	now = atomic_load_explicit(&generation, memory_order_relaxed);
	at = region_below(ptr);
	if (at >= 0 && regions[at].fd >= 0 && region_holds(&regions[at], ptr, bytes)) {
		*region = regions[at];
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	if (found) {
		cache[cache_turn % CACHE_WAYS].generation = now;
		cache[cache_turn++ % CACHE_WAYS].region = *region;
	}
	return found;
}

bool region_is_live(uint64_t id)
{
	bool found = false;

	pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; i < region_count && !found; i++)
		found = regions[i].id == id && regions[i].fd >= 0;
	pthread_rwlock_unlock(&lock);
	return found;
}

uint64_t region_generation(void)
{
	return atomic_load_explicit(&generation, memory_order_acquire);
}

enum err region_open_peer(int pid, int fd, size_t bytes, int *opened)
{
	struct stat status;
	char path[64];
	int mine;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	mine = open(path, O_RDWR | O_CLOEXEC);
	if (mine < 0)
		return err_set(ERR_SYSTEM,
			"cannot open the shared memory of process %d (%s: %m); %s", pid,
			path,
			errno == EMFILE || errno == ENFILE
				? "see ulimit -n"
				: "ranks of one communicator must see each other in "
				  "/proc");
	if (fstat(mine, &status)) {
		enum err e = err_set(ERR_SYSTEM,
			"cannot look at the shared memory of process %d: %m", pid);

		close(mine);
		return e;
	}
	if (!S_ISREG(status.st_mode) || status.st_size < 0 ||
		(size_t)status.st_size < bytes) {
		close(mine);
		return err_set(ERR_REMOTE,
			"process %d offered %zu bytes of memory it does not have", pid,
			bytes);
	}
	*opened = mine;
	return OK;
}

enum err region_map_open(int pid, int opened, size_t bytes, void **base)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);

	if (map == MAP_FAILED)
		return err_set(ERR_SYSTEM, "map %zu bytes of process %d: %m", bytes, pid);
	*base = map;
	return OK;
}

enum err region_map_peer(int pid, int fd, size_t bytes, void **base)
{
	int opened = -1;
	enum err e = region_open_peer(pid, fd, bytes, &opened);

	if (e)
		return e;
	e = region_map_open(pid, opened, bytes, base);
	close(opened);
	return e;
}

void region_unmap(void *base, size_t bytes)
{
	munmap(base, bytes);
}
