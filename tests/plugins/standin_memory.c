#include "standin_memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "ofi/newer.h"

enum { KEYS_MAX = 8192, PAGE_BYTES = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- memory of GPUs ---- */

static struct {
	bool is_taken;
	__typeof__(gpu_see) *see;
	__typeof__(gpu_file) *file;
} gpu;

/* What of a GPU's memory is written and not flushed yet. */
struct unseen {
	struct unseen *next;
	const void *by;
	char *at;
	size_t bytes;
	char data[];
};
static struct unseen *unseen;

/* NULL where it is the host's. */
char *gpu_at(const void *data)
{
	return gpu.see ? gpu.see(data) : NULL;
}

/* With the lock; `by` NULL: all of them. */
static void unseen_move(const void *by)
{
	struct unseen **link = &unseen;

	while (*link) {
		struct unseen *one = *link;

		if (by && one->by != by) {
			link = &one->next;
			continue;
		}
		if (gpu_at(one->at)) /* or it was freed meanwhile */
			memcpy(gpu_at(one->at), one->data, one->bytes);
		*link = one->next;
		free(one);
	}
}

/* As the card does; `by` is the end that it comes by. */
void bytes_put(const void *by, char *to, const char *from, size_t bytes)
{
	const char *source = gpu_at(from) ? gpu_at(from) : from;
	struct unseen **last = &unseen;

	if (!bytes || !gpu_at(to)) {
		memcpy(to, source, bytes);
		return;
	}
	pthread_mutex_lock(&lock);
	while (*last)
		last = &(*last)->next;
	*last = malloc(sizeof(**last) + bytes);
	**last = (struct unseen){.by = by, .at = to, .bytes = bytes};
	memcpy((*last)->data, source, bytes);
	pthread_mutex_unlock(&lock);
}

void unseen_show(const void *by)
{
	pthread_mutex_lock(&lock);
	unseen_move(by);
	pthread_mutex_unlock(&lock);
}

static void all_show(void)
{
	pthread_mutex_lock(&lock);
	unseen_move(NULL);
	pthread_mutex_unlock(&lock);
}

void gpu_find(void)
{
	__typeof__(gpu_flush_call) *call = (__typeof__(gpu_flush_call) *)dlsym(
		RTLD_DEFAULT, "gpu_flush_call");

	gpu.is_taken = getenv("STANDIN_HMEM");
	gpu.see = (__typeof__(gpu_see) *)dlsym(RTLD_DEFAULT, "gpu_see");
	gpu.file = (__typeof__(gpu_file) *)dlsym(RTLD_DEFAULT, "gpu_file");
	if (call)
		call(all_show);
}

bool gpu_is_taken(void)
{
	return gpu.is_taken;
}

/* ---- what is registered ---- */

struct region {
	struct fid_mr fid;
	char *data;
	size_t bytes;
	bool is_gpu;
};

static struct region *regions[KEYS_MAX];
static size_t locked; /* of their pages */

static size_t pages_bytes(const char *data, size_t bytes)
{
	uintptr_t first = (uintptr_t)data / PAGE_BYTES;

	return bytes ? (((uintptr_t)data + bytes - 1) / PAGE_BYTES - first + 1) *
			       PAGE_BYTES
		     : 0;
}

/* As the kernel does for a card, whose registrations it counts, page by page; with
 * STANDIN_MEMLOCK, since root may lock what it likes. */
static bool may_lock(size_t bytes)
{
	struct rlimit limit;

	return !getenv("STANDIN_MEMLOCK") || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	       locked + bytes <= limit.rlim_cur;
}

struct region *region_of(uint64_t key)
{
	return key < KEYS_MAX ? regions[key] : NULL;
}

bool region_has(const struct region *region, const char *at, size_t bytes)
{
	return region && at >= region->data &&
	       at + bytes <= region->data + region->bytes &&
	       region->is_gpu == (bytes && gpu_at(at) != NULL);
}

static int region_close(struct fid *fid)
{
	struct region *region = (struct region *)fid;

	pthread_mutex_lock(&lock);
	regions[region->fid.key] = NULL;
	locked -= pages_bytes(region->data, region->bytes);
	pthread_mutex_unlock(&lock);
	free(region);
	return 0;
}

static struct fi_ops region_ops = {.size = sizeof(region_ops), .close = region_close};

static int region_make(struct fid *fid, const void *data, size_t bytes, uint64_t access,
	uint64_t offset, uint64_t wanted, uint64_t flags, struct fid_mr **made,
	void *context)
{
	struct region *region = calloc(1, sizeof(*region));
	bool is_refused = standin_refuses();
	uint64_t key = 1;

	(void)fid;
	(void)access;
	(void)offset;
	(void)wanted;
	(void)flags;
	pthread_mutex_lock(&lock);
	while (key < KEYS_MAX && regions[key])
		key++;
	if (key < KEYS_MAX && !is_refused && may_lock(pages_bytes(data, bytes))) {
		regions[key] = region;
		locked += pages_bytes(data, bytes);
	} else
		key = KEYS_MAX;
	pthread_mutex_unlock(&lock);
	if (key == KEYS_MAX) {
		free(region);
		return -FI_ENOMEM;
	}
	*region = (struct region){.data = (char *)(uintptr_t)data, .bytes = bytes};
	region->fid = (struct fid_mr){.fid = {FI_CLASS_MR, context, &region_ops},
		.mem_desc = region,
		.key = key};
	*made = &region->fid;
	return 0;
}

/* Is the file that of the memory, from there on? */
static bool is_its_file(const struct newer_dmabuf *dmabuf)
{
	uint64_t offset = 0;
	struct stat own, given;

	return !fstat(gpu.file(dmabuf->base, &offset), &own) &&
	       !fstat(dmabuf->fd, &given) && own.st_ino == given.st_ino &&
	       dmabuf->offset == offset;
}

static int region_make_gpu(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
	struct fid_mr **made)
{
	const struct newer_dmabuf *dmabuf =
		((const union newer_mr_attr *)(const void *)attr)->dmabuf;
	bool is_dmabuf = flags & NEWER_MR_DMABUF;
	char *data = is_dmabuf ? dmabuf->base : attr->mr_iov->iov_base;
	size_t bytes = is_dmabuf ? dmabuf->bytes : attr->mr_iov->iov_len;
	int rc;

	if (!gpu.is_taken || attr->iov_count != 1 || attr->iface != FI_HMEM_CUDA ||
		attr->device.cuda != GPU_DEVICE || !gpu_at(data) ||
		!gpu_at(data + bytes - 1) || is_dmabuf != (getenv("GPU_DMABUF") != NULL))
		return -FI_EINVAL;
	if (is_dmabuf && !is_its_file(dmabuf))
		return -FI_EBADF;
	rc = region_make(fid, data, bytes, attr->access, 0, 0, 0, made, NULL);
	if (!rc)
		((struct region *)*made)->is_gpu = true;
	return rc;
}

struct fi_ops_mr standin_memory = {
	.size = sizeof(standin_memory), .reg = region_make, .regattr = region_make_gpu};
