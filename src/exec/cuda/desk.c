#include "exec/cuda/desk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "exec/cuda/moves_abi.h"
#include "exec/cuda/share.h"
#include "exec/cuda/where.h"
#include "link/region.h"

enum { SLOT_IDLE, SLOT_ASKED, SLOT_ANSWERED };
enum { NAP_US = 100000, PATIENCE_S = 20, KNOWN_MAX = 4096 };

struct desk_slot {
	_Atomic uint32_t state;
	int32_t result; /* enum err */
	struct cuda_shared shared;
	uint64_t address; /* in rank 0's process */
};

struct desk_page {
	_Atomic uint32_t bell;
	_Atomic uint32_t is_over;
	struct desk_slot slots[MOVES_RANKS_MAX];
};

/* An allocation of ours and where rank 0 sees it. */
struct known {
	uint64_t base, buffer_id, address;
};

struct desk {
	const struct cuda_driver *driver;
	struct desk_page *page; /* shared */
	bool is_owner;
	uint32_t rank, rank_count;
	cu_context context;
	pthread_t thread; /* of the owner */
	bool has_thread;
	struct cuda_share *share;      /* owned */
	struct known known[KNOWN_MAX]; /* the others' */
	uint32_t known_count;
};

static void slot_serve(struct desk *desk, uint32_t rank)
{
	struct desk_slot *slot = &desk->page->slots[rank];
	struct cuda_shared shared = slot->shared;
	cu_ptr address = 0;

	shared.offset = 0;
	slot->result = (int32_t)cuda_share_import(desk->share, rank, &shared, &address);
	slot->address = address;
	atomic_store(&slot->state, SLOT_ANSWERED);
	futex_wake(&slot->state);
}

static void *desk_main(void *argument)
{
	struct desk *desk = argument;

	desk->driver->context_set(desk->context);
	while (!atomic_load(&desk->page->is_over)) {
		uint32_t bell = atomic_load(&desk->page->bell);

		for (uint32_t r = 1; r < desk->rank_count; r++)
			if (atomic_load(&desk->page->slots[r].state) == SLOT_ASKED)
				slot_serve(desk, r);
		futex_wait(&desk->page->bell, bell, NAP_US);
	}
	return NULL;
}

static enum err desk_make(
	const struct cuda_driver *driver, uint32_t rank_count, struct desk **desk)
{
	struct desk *d = calloc(1, sizeof(*d));
	enum err e;

	*desk = d;
	if (!d)
		return err_set(ERR_SYSTEM, "no memory to share device memory");
	d->driver = driver;
	d->rank_count = rank_count;
	e = cuda_share_create(driver, &d->share);
	return e ? e
		 : cuda_check(driver->context_get(&d->context), "ask for the context");
}

enum err desk_open(const struct cuda_driver *driver, uint32_t rank_count,
	struct desk **desk, int *fd)
{
	struct desk *d = NULL;
	struct region region;
	void *page = NULL;
	enum err e = desk_make(driver, rank_count, &d);

	if (!e)
		e = region_alloc(sizeof(struct desk_page), &page);
	if (!e) {
		d->is_owner = true;
		d->page = page;
		region_find(page, 1, &region);
		*fd = region.fd;
		if (pthread_create(&d->thread, NULL, desk_main, d))
			e = err_set(ERR_SYSTEM, "no thread to share device memory");
		else
			d->has_thread = true;
	}
	*desk = d;
	if (e) {
		desk_close(d);
		*desk = NULL;
	}
	return e;
}

enum err desk_join(const struct cuda_driver *driver, int pid, int fd, uint32_t rank,
	struct desk **desk)
{
	struct desk *d = NULL;
	void *page = NULL;
	enum err e = desk_make(driver, 0, &d);

	if (!e)
		e = region_map_peer(pid, fd, sizeof(struct desk_page), &page);
	if (!e) {
		d->page = page;
		d->rank = rank;
	}
	*desk = d;
	if (e) {
		desk_close(d);
		*desk = NULL;
	}
	return e;
}

static enum err desk_ask(
	struct desk *desk, const struct cuda_shared *shared, uint64_t *address)
{
	struct desk_slot *slot = &desk->page->slots[desk->rank];
	uint64_t end = clock_ns() + PATIENCE_S * 1000000000ull;

	slot->shared = *shared;
	atomic_store(&slot->state, SLOT_ASKED);
	atomic_fetch_add(&desk->page->bell, 1);
	futex_wake(&desk->page->bell);
	while (atomic_load(&slot->state) == SLOT_ASKED) {
		if (atomic_load(&desk->page->is_over) || clock_ns() > end)
			return err_set(ERR_REMOTE,
				"rank 0 does not answer a request to map device memory");
		futex_wait(&slot->state, SLOT_ASKED, NAP_US);
	}
	*address = slot->address;
	atomic_store(&slot->state, SLOT_IDLE);
	return slot->result
		       ? err_set(ERR_CUDA,
				 "rank 0 cannot map the device memory of rank %u; its "
				 "log says why",
				 desk->rank)
		       : OK;
}

enum err desk_address(struct desk *desk, const void *ptr, uint64_t *address)
{
	struct cuda_where where;
	struct cuda_shared shared;
	struct known *known = desk->known;
	enum err e = cuda_where(desk->driver, ptr, &where);

	if (e)
		return e;
	while (known < desk->known + desk->known_count &&
		(known->buffer_id != where.buffer_id || known->base != where.base))
		known++;
	if (known == desk->known + desk->known_count) {
		struct known fresh = {.base = where.base, .buffer_id = where.buffer_id};

		e = cuda_share_export(desk->share, ptr, 1, &shared);
		if (!e)
			e = desk_ask(desk, &shared, &fresh.address);
		if (e)
			return e;
		if (desk->known_count == KNOWN_MAX)
			desk->known_count = 0;
		known = &desk->known[desk->known_count++];
		*known = fresh;
	}
	*address = known->address + ((uint64_t)(uintptr_t)ptr - where.base);
	return OK;
}

void desk_close(struct desk *desk)
{
	if (!desk)
		return;
	if (desk->is_owner && desk->page) {
		atomic_store(&desk->page->is_over, 1);
		atomic_fetch_add(&desk->page->bell, 1);
		futex_wake(&desk->page->bell);
		if (desk->has_thread)
			pthread_join(desk->thread, NULL);
		region_free(desk->page);
	} else if (desk->page) {
		region_unmap(desk->page, sizeof(struct desk_page));
	}
	cuda_share_destroy(desk->share);
	free(desk);
}
