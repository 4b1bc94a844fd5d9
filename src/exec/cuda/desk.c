#include "exec/cuda/desk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "exec/cuda/moves_abi.h"
#include "link/region.h"

enum { SLOT_IDLE, SLOT_ASKED, SLOT_ANSWERED };
enum { NAP_US = 100000, PATIENCE_S = 20, KNOWN_MAX = 4096 };

struct desk_slot {
	_Atomic uint32_t state;
	int32_t result; /* the driver's */
	struct cu_ipc_handle handle;
	uint64_t base, bytes, buffer; /* in the asking process */
	uint64_t address;	      /* in rank 0's */
};

struct desk_page {
	_Atomic uint32_t bell;
	_Atomic uint32_t is_over;
	struct desk_slot slots[MOVES_RANKS_MAX];
};

/* An allocation and where rank 0 sees it. */
struct known {
	uint32_t rank;
	uint64_t base, bytes, buffer, address;
};

struct desk {
	const struct cuda_driver *driver;
	struct desk_page *page; /* shared */
	bool is_owner;
	uint32_t rank, rank_count;
	cu_context context;
	pthread_t thread; /* of the owner */
	bool has_thread;
	struct known *known; /* owned */
	uint32_t known_count;
};

/* Memory of the same rank that lies where new memory is now has been freed. */
static void forget_freed(struct desk *desk, const struct desk_slot *slot, uint32_t rank)
{
	for (uint32_t i = 0; i < desk->known_count;) {
		struct known *known = &desk->known[i];

		if (known->rank != rank || known->base >= slot->base + slot->bytes ||
			slot->base >= known->base + known->bytes) {
			i++;
			continue;
		}
		desk->driver->ipc_close(known->address);
		*known = desk->known[--desk->known_count];
	}
}

static void slot_serve(struct desk *desk, uint32_t rank)
{
	struct desk_slot *slot = &desk->page->slots[rank];
	cu_ptr address = 0;

	forget_freed(desk, slot, rank);
	slot->result = desk->driver->ipc_open(&address, slot->handle, 1);
	slot->address = address;
	if (!slot->result && desk->known_count < KNOWN_MAX)
		desk->known[desk->known_count++] = (struct known){
			rank, slot->base, slot->bytes, slot->buffer, address};
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

	if (d)
		d->known = calloc(KNOWN_MAX, sizeof(*d->known));
	if (!d || !d->known) {
		free(d);
		return err_set(ERR_SYSTEM, "no memory to share device memory");
	}
	d->driver = driver;
	d->rank_count = rank_count;
	*desk = d;
	return cuda_check(driver->context_get(&d->context), "ask for the context");
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
	uint32_t rank_count, struct desk **desk)
{
	struct desk *d = NULL;
	void *page = NULL;
	enum err e = desk_make(driver, rank_count, &d);

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

static enum err desk_ask(struct desk *desk, const struct desk_slot *question)
{
	struct desk_slot *slot = &desk->page->slots[desk->rank];
	uint64_t end = clock_ns() + PATIENCE_S * 1000000000ull;

	slot->handle = question->handle;
	slot->base = question->base;
	slot->bytes = question->bytes;
	slot->buffer = question->buffer;
	atomic_store(&slot->state, SLOT_ASKED);
	atomic_fetch_add(&desk->page->bell, 1);
	futex_wake(&desk->page->bell);
	while (atomic_load(&slot->state) == SLOT_ASKED) {
		if (atomic_load(&desk->page->is_over) || clock_ns() > end)
			return err_set(ERR_REMOTE,
				"rank 0 does not answer a request to map device memory");
		futex_wait(&slot->state, SLOT_ASKED, NAP_US);
	}
	atomic_store(&slot->state, SLOT_IDLE);
	return cuda_check(slot->result, "map another process's device memory");
}

static enum err where_is(struct desk *desk, const void *ptr, struct desk_slot *question)
{
	static const int wanted[] = {
		CU_POINTER_RANGE_START, CU_POINTER_RANGE_SIZE, CU_POINTER_BUFFER_ID};
	size_t bytes = 0;
	void *values[] = {&question->base, &bytes, &question->buffer};
	enum err e = cuda_check(desk->driver->pointer_attributes(
					3, wanted, values, (cu_ptr)(uintptr_t)ptr),
		"look at a buffer");

	question->bytes = bytes;
	return e;
}

static struct known *find_known(struct desk *desk, const struct desk_slot *question)
{
	for (uint32_t i = 0; i < desk->known_count; i++)
		if (desk->known[i].buffer == question->buffer &&
			desk->known[i].base == question->base)
			return &desk->known[i];
	return NULL;
}

enum err desk_address(struct desk *desk, const void *ptr, uint64_t *address)
{
	struct desk_slot question = {0};
	struct known *known;
	enum err e = where_is(desk, ptr, &question);

	if (e)
		return e;
	known = find_known(desk, &question);
	if (!known) {
		if (desk->driver->ipc_get(&question.handle, (cu_ptr)(uintptr_t)ptr))
			return err_set(ERR_ARGUMENT,
				"the device memory at %p cannot be shared between "
				"processes: use cudaMalloc or ncclMemAlloc (not a memory "
				"pool, not expandable segments)",
				ptr);
		e = desk_ask(desk, &question);
		if (e)
			return e;
		if (desk->known_count == KNOWN_MAX)
			desk->known_count = 0;
		known = &desk->known[desk->known_count++];
		*known = (struct known){desk->rank, question.base, question.bytes,
			question.buffer, desk->page->slots[desk->rank].address};
	}
	*address = known->address + ((uint64_t)(uintptr_t)ptr - question.base);
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
		for (uint32_t i = 0; i < desk->known_count; i++)
			desk->driver->ipc_close(desk->known[i].address);
		region_free(desk->page);
	} else if (desk->page) {
		region_unmap(desk->page, sizeof(struct desk_page));
	}
	free(desk->known);
	free(desk);
}
