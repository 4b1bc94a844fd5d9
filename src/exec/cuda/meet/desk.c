#include "exec/cuda/meet/desk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/thread.h"
#include "exec/cuda/driver/share.h"
#include "exec/cuda/driver/where.h"
#include "exec/cuda/lists/moves_abi.h"
#include "link/region.h"

enum { SLOT_IDLE, SLOT_ASKED, SLOT_ANSWERED };
enum {
	WATCH_MS = 30,
	NAP_US = 100000,
	PATIENCE_S = 20,
	SWEEP_EVERY = 16,  /* new blocks, between two looks at the old ones */
	KNOWN_SPREAD = 512 /* lists of known blocks, by hash */
};

struct desk_slot {
	_Atomic uint32_t state;
	int32_t result;	  /* enum err */
	uint64_t dropped; /* a block that was freed; 0: none, map this one: */
	struct cuda_shared shared;
	uint64_t address; /* there */
};

struct desk_page {
	_Atomic uint32_t bell;
	_Atomic uint32_t is_over;
	struct desk_slot slots[MOVES_RANKS_MAX];
};

/* A block of ours and where the others see it; 0: they do not. */
struct known {
	struct known *next;
	uint64_t block, block_id;
	const void *seen;     /* the address in it that was used last */
	bool is_pinned;	      /* a graph or a window has its address for good */
	uint64_t addresses[]; /* by rank */
};

struct desk {
	struct desk_args args;
	uint32_t pid;
	cu_context context;
	struct desk_page *page; /* owned, shared */
	struct desk_address *addresses;
	struct desk_page *pages[MOVES_RANKS_MAX]; /* the others', once they were needed */
	bool is_mute[MOVES_RANKS_MAX]; /* did not answer: its slot may still be read */
	pthread_t thread, janitor;
	bool has_thread, has_janitor;
	struct cuda_share *exports, *imports; /* owned; imports: the thread's */
	struct known *known[KNOWN_SPREAD];
	uint32_t fresh_count;
	/* the janitor's, with a lock that guards them */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_untidy;
	bool is_over;
};

/* ---- the owner's side ---- */

/* Unmapping waits until the device has done everything it was given, which may itself
 * wait for what the desk does: hence a thread of its own. */
static void *janitor_main(void *argument)
{
	struct desk *desk = argument;

	desk->args.driver->context_set(desk->context);
	cuda_capture_relax(desk->args.driver, NULL);
	pthread_mutex_lock(&desk->lock);
	while (!desk->is_over) {
		if (!desk->is_untidy) {
			pthread_cond_wait(&desk->changed, &desk->lock);
			continue;
		}
		desk->is_untidy = false;
		pthread_mutex_unlock(&desk->lock);
		cuda_share_tidy(desk->imports);
		pthread_mutex_lock(&desk->lock);
	}
	pthread_mutex_unlock(&desk->lock);
	return NULL;
}

/* Without a janitor it is done when the share goes. */
static void drop(struct desk *desk, uint32_t rank, uint64_t block_id)
{
	cuda_share_forget(desk->imports, desk->addresses[rank].pid, block_id);
	pthread_mutex_lock(&desk->lock);
	desk->is_untidy = true;
	if (!desk->has_janitor)
		desk->has_janitor = !thread_start_roomy(
			&desk->janitor, "weft-janitor", janitor_main, desk);
	pthread_cond_signal(&desk->changed);
	pthread_mutex_unlock(&desk->lock);
}

static void slot_serve(struct desk *desk, uint32_t rank)
{
	struct desk_slot *slot = &desk->page->slots[rank];
	struct cuda_shared shared = slot->shared;
	uint64_t dropped = slot->dropped;
	cu_ptr address = 0;

	slot->result = OK;
	shared.offset = 0;
	if (dropped)
		drop(desk, rank, dropped);
	else
		slot->result = (int32_t)cuda_share_import(
			desk->imports, desk->addresses[rank].pid, &shared, &address);
	slot->address = address;
	atomic_store(&slot->state, SLOT_ANSWERED);
	futex_wake(&slot->state);
}

static void *desk_main(void *argument)
{
	struct desk *desk = argument;
	uint64_t look_at = 0;

	desk->args.driver->context_set(desk->context);
	cuda_capture_relax(desk->args.driver, NULL);
	while (!atomic_load(&desk->page->is_over)) {
		uint32_t bell = atomic_load(&desk->page->bell);

		for (uint32_t r = 0; r < desk->args.rank_count; r++)
			if (atomic_load(&desk->page->slots[r].state) == SLOT_ASKED)
				slot_serve(desk, r);
		if (clock_ns() >= look_at) {
			desk->args.look(desk->args.arg);
			look_at = clock_ns() + WATCH_MS * CLOCK_MS;
		}
		futex_wait(&desk->page->bell, bell, WATCH_MS * 1000);
	}
	return NULL;
}

enum err desk_open(
	const struct desk_args *args, struct desk **desk, struct desk_address *address)
{
	struct desk *d = calloc(1, sizeof(*d));
	struct region region;
	void *page = NULL;
	enum err e;

	if (!d)
		return err_set(ERR_SYSTEM, "no memory to share device memory");
	d->args = *args;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	e = cuda_check(args->driver->context_get(&d->context), "ask for the context");
	if (!e)
		e = cuda_share_create(args->driver, &d->exports);
	if (!e)
		e = cuda_share_create(args->driver, &d->imports);
	if (!e)
		e = region_alloc(sizeof(struct desk_page), &page);
	if (e) {
		desk_close(d);
		return e;
	}
	d->page = page;
	region_find(page, 1, &region);
	d->pid = (uint32_t)getpid();
	*address = (struct desk_address){d->pid, (uint32_t)region.fd};
	*desk = d;
	return OK;
}

enum err desk_start(struct desk *desk, const struct desk_address *addresses)
{
	size_t bytes = desk->args.rank_count * sizeof(*addresses);

	desk->addresses = malloc(bytes);
	if (!desk->addresses)
		return err_set(ERR_SYSTEM, "no memory to share device memory");
	memcpy(desk->addresses, addresses, bytes);
	if (thread_start_roomy(&desk->thread, "weft-desk", desk_main, desk))
		return err_set(ERR_SYSTEM, "no thread to share device memory");
	desk->has_thread = true;
	return OK;
}

/* ---- the asker's side ---- */

static enum err page_of(struct desk *desk, uint32_t peer, struct desk_page **page)
{
	const struct desk_address *at = &desk->addresses[peer];
	void *map = NULL;
	enum err e = OK;

	if (!desk->pages[peer])
		e = region_map_peer(
			(int)at->pid, (int)at->fd, sizeof(struct desk_page), &map);
	if (map)
		desk->pages[peer] = map;
	*page = desk->pages[peer];
	return e;
}

/* With the question in our slot of the peer's desk. */
static enum err ask(struct desk *desk, uint32_t peer, struct desk_page *page)
{
	struct desk_slot *slot = &page->slots[desk->args.rank];
	uint64_t end = clock_ns() + PATIENCE_S * CLOCK_SEC;

	atomic_store(&slot->state, SLOT_ASKED);
	atomic_fetch_add(&page->bell, 1);
	futex_wake(&page->bell);
	while (atomic_load(&slot->state) == SLOT_ASKED) {
		if (atomic_load(&page->is_over) || clock_ns() > end ||
			__atomic_load_n(desk->args.abort, __ATOMIC_RELAXED)) {
			desk->is_mute[peer] = true;
			return err_set(ERR_REMOTE,
				"rank %u does not answer a request to map device memory",
				peer);
		}
		futex_wait(&slot->state, SLOT_ASKED, NAP_US);
	}
	atomic_store(&slot->state, SLOT_IDLE);
	return slot->result
		       ? err_set(ERR_CUDA,
				 "rank %u cannot map the device memory of rank %u; its "
				 "log says why",
				 peer, desk->args.rank)
		       : OK;
}

/* Memory is gone: tell everybody who has mapped it. That a peer cannot be told is
 * noticed soon enough elsewhere. */
static void known_forget(struct desk *desk, struct known **link)
{
	struct known *known = *link;

	for (uint32_t peer = 0; peer < desk->args.rank_count; peer++) {
		struct desk_page *page = desk->pages[peer];

		if (!known->addresses[peer] || !page || desk->is_mute[peer])
			continue;
		page->slots[desk->args.rank].dropped = known->block_id;
		ask(desk, peer, page);
		page->slots[desk->args.rank].dropped = 0;
	}
	cuda_share_unexport(desk->exports, known->block_id);
	*link = known->next;
	free(known);
}

static size_t known_hash(uint64_t block)
{
	return (size_t)(hash_spread(block >> 9) >> 55) % KNOWN_SPREAD;
}

/* Look at everything we have shown; forget what was freed. */
static void known_sweep(struct desk *desk)
{
	for (size_t i = 0; i < KNOWN_SPREAD; i++) {
		struct known **link = &desk->known[i];

		while (*link) {
			struct cuda_where where;

			if (!(*link)->is_pinned &&
				!cuda_where(desk->args.driver, (*link)->seen, &where) &&
				where.block_id != (*link)->block_id)
				known_forget(desk, link);
			else
				link = &(*link)->next;
		}
	}
}

static struct known *known_find(struct desk *desk, const struct cuda_where *where)
{
	struct known **link = &desk->known[known_hash(where->block)];

	while (*link) {
		if ((*link)->block != where->block) {
			link = &(*link)->next;
		} else if ((*link)->block_id == where->block_id) {
			return *link;
		} else {
			known_forget(desk, link); /* another one lies there now */
		}
	}
	return NULL;
}

static enum err known_add(
	struct desk *desk, const struct cuda_where *where, struct known **known)
{
	size_t places = desk->args.rank_count * sizeof((*known)->addresses[0]);
	struct known **head = &desk->known[known_hash(where->block)];

	if (++desk->fresh_count % SWEEP_EVERY == 0)
		known_sweep(desk);
	*known = calloc(1, sizeof(**known) + places);
	if (!*known)
		return err_set(ERR_SYSTEM, "no memory to share device memory");
	(*known)->block = where->block;
	(*known)->block_id = where->block_id;
	(*known)->next = *head;
	*head = *known;
	return OK;
}

static enum err known_show(
	struct desk *desk, struct known *known, uint32_t peer, const void *ptr)
{
	struct desk_page *page = NULL;
	struct desk_slot *slot;
	enum err e = page_of(desk, peer, &page);
	int mode;

	if (!e && desk->is_mute[peer])
		e = err_set(ERR_REMOTE, "rank %u has not answered before", peer);
	if (e)
		return e;
	slot = &page->slots[desk->args.rank];
	slot->dropped = 0;
	cuda_capture_relax(desk->args.driver, &mode);
	e = cuda_share_export(desk->exports, ptr, 1, &slot->shared);
	cuda_capture_restore(desk->args.driver, mode);
	if (!e)
		e = ask(desk, peer, page);
	if (!e)
		known->addresses[peer] = slot->address;
	return e;
}

enum err desk_show(struct desk *desk, uint32_t peer, const struct cuda_where *where,
	const void *ptr, uint64_t *address)
{
	struct known *known;
	enum err e = OK;

	if (desk->addresses[peer].pid == desk->pid) {
		*address = (uint64_t)(uintptr_t)ptr;
		return OK;
	}
	known = known_find(desk, where);
	if (!known)
		e = known_add(desk, where, &known);
	if (!e && !known->addresses[peer])
		e = known_show(desk, known, peer, ptr);
	if (e)
		return e;
	known->seen = ptr;
	*address = known->addresses[peer] + ((uint64_t)(uintptr_t)ptr - where->block);
	return OK;
}

void desk_pin(struct desk *desk, const struct cuda_where *where)
{
	struct known *known = known_find(desk, where);

	if (known)
		known->is_pinned = true;
}

void desk_close(struct desk *desk)
{
	if (!desk)
		return;
	if (desk->page) {
		atomic_store(&desk->page->is_over, 1);
		atomic_fetch_add(&desk->page->bell, 1);
		futex_wake(&desk->page->bell);
	}
	if (desk->has_thread)
		pthread_join(desk->thread, NULL);
	pthread_mutex_lock(&desk->lock);
	desk->is_over = true;
	pthread_cond_signal(&desk->changed);
	pthread_mutex_unlock(&desk->lock);
	if (desk->has_janitor)
		pthread_join(desk->janitor, NULL);
	for (uint32_t r = 0; r < desk->args.rank_count; r++)
		if (desk->pages[r])
			region_unmap(desk->pages[r], sizeof(struct desk_page));
	for (size_t i = 0; i < KNOWN_SPREAD; i++)
		while (desk->known[i]) {
			struct known *known = desk->known[i];

			desk->known[i] = known->next;
			free(known);
		}
	cuda_share_destroy(desk->exports);
	cuda_share_destroy(desk->imports);
	if (desk->page)
		region_free(desk->page);
	pthread_mutex_destroy(&desk->lock);
	pthread_cond_destroy(&desk->changed);
	free(desk->addresses);
	free(desk);
}
