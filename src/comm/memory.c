/*
 * memory.c - mappable memory, registration and windows.
 *
 * Memory of ncclMemAlloc() is found by its address at every call, so among ranks of a
 * host registering it changes nothing but the promise that it stays. Other host memory
 * cannot be mapped by peers; registering it is allowed and its calls go through the
 * stage. Between hosts that promise lets a network plugin keep what it knows of the
 * memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"
#include "comm/comm.h"
#include "comm/gpu.h"
#include "comm/rma.h"
#include "comm/state.h"
#include "exec/cuda/engine.h"
#include "link/ref.h"
#include "link/region.h"
#include "link/wires.h"
#include "net/rma.h"

enum { WINDOW_ALIGNMENT = 4096 };

struct registration {
	char *base;
	size_t bytes;
	uint32_t count;
	struct registration *next;
};

/* What each rank tells the others of its part of a window. */
struct window_part {
	uint64_t ref, bytes;
	uint32_t directory;
	uint32_t wrong; /* its arguments were: nobody gets a window */
	uint32_t flags;
	uint32_t number; /* .. by which it knows it */
};

struct window {
	struct window *next; /* of the comm's list */
	void *base;
	size_t bytes;
	bool is_kept; /* by a network plugin, if there is one */
	uint32_t flags;
	uint32_t number; /* for ranks on other hosts */
	void *known;	 /* what a one-sided plugin calls it; NULL: it does not know it */
	uint64_t *there; /* owned; on a GPU: every rank's part, in this process */
	struct window_part parts[]; /* by rank */
};

enum err mem_alloc(size_t bytes, void **ptr)
{
	enum err e = cuda_memory_alloc(bytes, ptr);

	return e || *ptr ? e : region_alloc(bytes, ptr);
}

enum err mem_free(void *ptr)
{
	return cuda_memory_is(ptr) ? cuda_memory_free(ptr) : region_free(ptr);
}

/* Where it does not work out a plugin is told of the memory for every message. */
static void plugin_keeps(const struct comm *comm, void *ptr, size_t bytes)
{
	if (param_int(PARAM_LOCAL_REGISTER) && wires_keep(comm->hosts.wires, ptr, bytes))
		log_info(LOG_REG, "%s", err_last());
}

/* The link that points at the registration, or at NULL when there is none. Lock held. */
static struct registration **registration_find(
	struct comm *comm, const void *base, size_t bytes)
{
	struct registration **link = &comm->memory.registrations;

	while (*link && ((*link)->base != base || (*link)->bytes != bytes))
		link = &(*link)->next;
	return link;
}

enum err comm_register(struct comm *comm, void *ptr, size_t bytes, void **handle)
{
	struct registration *fresh = malloc(sizeof(*fresh)), *r;

	if (!fresh)
		return err_set(ERR_SYSTEM, "no memory to register %zu bytes", bytes);
	pthread_mutex_lock(&comm->lock);
	r = *registration_find(comm, ptr, bytes);
	if (r) {
		r->count++;
	} else {
		plugin_keeps(comm, ptr, bytes);
		*fresh = (struct registration){.base = ptr,
			.bytes = bytes,
			.count = 1,
			.next = comm->memory.registrations};
		comm->memory.registrations = r = fresh;
		fresh = NULL;
	}
	pthread_mutex_unlock(&comm->lock);
	free(fresh);
	*handle = r;
	return OK;
}

enum err comm_deregister(struct comm *comm, void *handle)
{
	struct registration **link, *r;
	bool is_last;

	pthread_mutex_lock(&comm->lock);
	for (link = &comm->memory.registrations; *link && *link != handle;)
		link = &(*link)->next;
	r = *link;
	is_last = r && --r->count == 0;
	if (is_last)
		*link = r->next;
	pthread_mutex_unlock(&comm->lock);
	if (is_last) {
		wires_forget(comm->hosts.wires, r->base, r->bytes);
		free(r);
	}
	return r ? OK
		 : err_set(ERR_ARGUMENT, "%p is not a registration of this communicator",
			   handle);
}

void *window_unknow(struct comm *comm)
{
	void *known = NULL;

	pthread_mutex_lock(&comm->lock);
	for (struct window *w = comm->memory.windows; w && !known; w = w->next) {
		known = w->known;
		w->known = NULL;
	}
	pthread_mutex_unlock(&comm->lock);
	return known;
}

static void window_free(struct window *window)
{
	free(window->there);
	free(window);
}

void comm_registrations_drop(struct comm *comm)
{
	while (comm->memory.registrations) {
		struct registration *r = comm->memory.registrations;

		comm->memory.registrations = r->next;
		free(r);
	}
	while (comm->memory.windows) {
		struct window *w = comm->memory.windows;

		comm->memory.windows = w->next;
		rma_window_remove(comm, w->known);
		window_free(w);
	}
}

static enum err window_arguments(void *ptr, size_t bytes)
{
	struct region region;

	if ((uintptr_t)ptr % WINDOW_ALIGNMENT)
		return err_set(ERR_ARGUMENT,
			"a window begins at a multiple of %d, not at %p",
			WINDOW_ALIGNMENT, ptr);
	if (!region_find(ptr, bytes, &region))
		return err_set(ERR_ARGUMENT,
			"a window must lie in %smemory of ncclMemAlloc; %p does not",
			cuda_memory_is(ptr) ? "host " : "", ptr);
	return OK;
}

/* What another rank says of its part, against what this one has said of its own. */
static enum err part_check(const struct comm *comm, const struct window_part *mine,
	const struct window_part *other, uint32_t rank)
{
	if (other->wrong)
		return err_set(ERR_ARGUMENT,
			"rank %u cannot register its part of the window", rank);
	if ((other->flags ^ mine->flags) & WINDOW_GIN_ONLY)
		return err_set(ERR_ARGUMENT,
			"NCCL_WIN_GIN_ONLY is %s on rank %u and %s on rank %u: it must "
			"be "
			"the same on all ranks",
			other->flags & WINDOW_GIN_ONLY ? "set" : "not set", rank,
			mine->flags & WINDOW_GIN_ONLY ? "set" : "not set", comm->rank);
	return OK;
}

/* All ranks come here, also one whose arguments are wrong: it tells the others, and has
 * said why. */
static enum err parts_gather(
	struct comm *comm, const struct window_part *mine, struct window *window)
{
	struct host_spec spec = {.key = {.coll = COLL_ALL_GATHER,
					 .type = DTYPE_UINT8,
					 .count = sizeof(*mine)},
		.in = mine,
		.out = window->parts};
	enum err e = comm_exchange(comm, &spec);

	for (uint32_t i = 0; i < comm->rank_count && !e && !mine->wrong; i++)
		e = part_check(comm, mine, &window->parts[i], i);
	return e;
}

/* Everybody tells everybody where in its process the other's part is. */
static enum err addresses_gather(struct comm *comm, const uint64_t *mine, uint64_t *there)
{
	struct host_spec spec = {
		.key = {.coll = COLL_ALL_TO_ALL, .type = DTYPE_UINT64, .count = 1},
		.in = mine,
		.out = there};

	return comm_exchange(comm, &spec);
}

static enum err window_on_gpu(struct comm *comm, struct window *window)
{
	size_t bytes = comm->rank_count * sizeof(uint64_t);
	uint64_t *mine = calloc(1, bytes);
	struct window_part part = {.bytes = window->bytes, .flags = window->flags};
	enum err wrong, e;

	window->there = calloc(1, bytes);
	wrong = mine && window->there ? gpu_show(comm, window->base, window->bytes, mine)
				      : err_set(ERR_SYSTEM, "no memory for a window");
	part.wrong = wrong != OK;
	e = parts_gather(comm, &part, window);
	if (!wrong && !e)
		e = addresses_gather(comm, mine, window->there);
	free(mine);
	return wrong ? wrong : e;
}

static void window_keep(struct comm *comm, struct window *window)
{
	pthread_mutex_lock(&comm->lock);
	window->next = comm->memory.windows;
	comm->memory.windows = window;
	pthread_mutex_unlock(&comm->lock);
}

void comm_windows_withdraw(struct comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	for (const struct window *w = comm->memory.windows; w; w = w->next)
		if (!w->there)
			region_detach(w->base, w->bytes);
	pthread_mutex_unlock(&comm->lock);
}

/* The link that points at the window, or at NULL when there is none. Lock held. */
static struct window **window_find(struct comm *comm, const struct window *window)
{
	struct window **link = &comm->memory.windows;

	while (*link && *link != window)
		link = &(*link)->next;
	return link;
}

static enum err no_window(const struct window *window)
{
	return err_set(ERR_ARGUMENT,
		"%p is no window of this communicator, or was deregistered",
		(const void *)window);
}

/* A plugin may hold what is put against the length of this rank's own part. */
static bool is_even(const struct comm *comm, const struct window *window)
{
	for (uint32_t i = 0; i < comm->rank_count; i++)
		if (window->parts[i].bytes != window->bytes)
			return false;
	return true;
}

/* A one-sided plugin is asked for by all ranks, or by none. */
static enum err window_on_plugin(struct comm *comm, struct window *window)
{
	void *known = NULL;
	enum err e = rma_meet(comm);

	if (!e && is_even(comm, window))
		e = rma_window_add(comm, window->base, window->bytes,
			window->flags & WINDOW_ORDERED, &known);
	pthread_mutex_lock(&comm->lock);
	window->known = known;
	pthread_mutex_unlock(&comm->lock);
	return e;
}

/* This rank's part is put up for the peers, who map it where they need it. */
static enum err window_on_host(struct comm *comm, struct window *window)
{
	struct window_part part = {
		.bytes = window->bytes, .flags = window->flags, .number = window->number};
	enum err wrong = window_arguments(window->base, window->bytes), e;

	part.wrong = wrong != OK;
	if (!wrong)
		part.ref = host_engine_show(
			comm->engine, window->base, window->bytes, &part.directory);
	e = parts_gather(comm, &part, window);
	if (!wrong && !e)
		e = window_on_plugin(comm, window);
	return wrong ? wrong : e;
}

enum err comm_window_register(
	struct comm *comm, void *ptr, size_t bytes, int flags, struct window **window)
{
	struct window *w;
	bool on_gpu = false;
	enum err e;

	*window = NULL;
	w = calloc(1, sizeof(*w) + comm->rank_count * sizeof(w->parts[0]));
	if (!w)
		return err_set(ERR_SYSTEM, "no memory for a window");
	w->base = ptr;
	w->bytes = bytes;
	/* symmetric or not, every part is reached where it is mapped */
	w->flags = (uint32_t)flags;
	w->number = ++comm->memory.window_count;
	/* where GPUs cannot be used, all ranks hear that this is no host memory */
	if (comm->hosts.numbers || gpu_takes(comm, ptr, NULL, &on_gpu))
		on_gpu = false;
	e = on_gpu && !comm->gpu.engine ? gpu_meet(comm, ptr) : OK;
	if (!e && comm->gpu.is_apart) { /* all ranks have agreed that it is so */
		log_info(LOG_REG,
			"no window: these GPUs cannot reach each other's memory");
		window_free(w);
		return OK;
	}
	/* a rank that is through with it may put into it while we are not */
	window_keep(comm, w);
	if (!e)
		e = on_gpu ? window_on_gpu(comm, w) : window_on_host(comm, w);
	if (e) {
		(void)comm_window_deregister(comm, w);
		return e;
	}
	atomic_store(&comm->memory.had_window, true);
	plugin_keeps(comm, ptr, bytes);
	w->is_kept = true;
	*window = w;
	return OK;
}

enum err comm_window_check(struct comm *comm, const struct window *window, uint32_t peer,
	size_t offset, size_t bytes)
{
	size_t room = 0;
	bool is_known, is_mapped = false;

	pthread_mutex_lock(&comm->lock);
	is_known = *window_find(comm, window);
	if (is_known) {
		room = window->parts[peer].bytes;
		is_mapped = window->there || window->parts[peer].ref != REF_NONE ||
			    !comm_is_near(comm, peer);
	}
	pthread_mutex_unlock(&comm->lock);
	if (!is_known)
		return no_window(window);
	if (offset > room || bytes > room - offset)
		return err_set(ERR_ARGUMENT,
			"%zu bytes at %zu do not fit in the %zu bytes of rank %u's "
			"window",
			bytes, offset, room, peer);
	if (!is_mapped)
		return err_set(ERR_USAGE,
			"the window of rank %u cannot be mapped (WEFT_ZERO_COPY=0?)",
			peer);
	return OK;
}

uint64_t window_address(const struct comm_call *call)
{
	return call->put.window->there[call->root] + call->put.offset;
}

bool window_holds(const struct window *window, const void *ptr, size_t bytes)
{
	uintptr_t offset = (uintptr_t)ptr - (uintptr_t)window->base;

	return offset <= window->bytes && bytes <= window->bytes - offset;
}

void window_target(const struct comm_call *call, struct onesided *onesided)
{
	const struct window_part *part = &call->put.window->parts[call->root];

	onesided->ref = part->ref;
	onesided->directory = part->directory;
	onesided->window = part->number;
	onesided->own_window = call->put.window->number;
	onesided->offset = call->put.offset;
}

/* With the lock. */
static const struct window *window_around(
	const struct comm *comm, const void *ptr, size_t bytes)
{
	const struct window *w = comm->memory.windows;

	while (w && !(w->known && window_holds(w, ptr, bytes)))
		w = w->next;
	return w;
}

bool window_port(struct comm *comm, const struct port_put *put, struct rma_put *found)
{
	const struct window *from, *to;

	pthread_mutex_lock(&comm->lock);
	from = window_around(comm, put->data, put->bytes);
	for (to = comm->memory.windows; to && to->number != put->window;)
		to = to->next;
	if (from && to) {
		found->from =
			(uint64_t)((const char *)put->data - (const char *)from->base);
		found->from_known = from->known;
		found->to = put->offset;
		found->to_known = to->known;
	}
	pthread_mutex_unlock(&comm->lock);
	return from && to && found->to_known;
}

/* The lock is held meanwhile: who has deregistered a window has it for itself. */
enum err window_land(struct comm *comm, uint32_t from, const struct far_put *put,
	const void *data, size_t bytes)
{
	const struct window *w;
	bool fits = false;

	pthread_mutex_lock(&comm->lock);
	for (w = comm->memory.windows; w && w->number != put->window;)
		w = w->next;
	if (w)
		fits = put->offset <= w->bytes && bytes <= w->bytes - put->offset;
	if (fits)
		memcpy((char *)w->base + put->offset, data, bytes);
	pthread_mutex_unlock(&comm->lock);
	if (fits)
		return OK;
	return w ? err_set(ERR_REMOTE,
			   "rank %u puts %zu bytes at %lu of a window of rank %u, which "
			   "ends before that",
			   from, bytes, (unsigned long)put->offset, comm->rank)
		 : err_set(ERR_USAGE,
			   "rank %u puts %zu bytes into a window that rank %u has "
			   "deregistered: keep it until all puts have been waited for",
			   from, bytes, comm->rank);
}

enum err comm_window_deregister(struct comm *comm, struct window *window)
{
	struct window **link, *found;

	pthread_mutex_lock(&comm->lock);
	link = window_find(comm, window);
	found = *link;
	if (found)
		*link = found->next;
	pthread_mutex_unlock(&comm->lock);
	if (!found)
		return no_window(window);
	rma_window_remove(comm, found->known);
	if (found->is_kept)
		wires_forget(comm->hosts.wires, found->base, found->bytes);
	window_free(found);
	return OK;
}

enum err comm_window_pointer(struct comm *comm, const struct window *window, void **ptr)
{
	const struct window *found;

	pthread_mutex_lock(&comm->lock);
	found = *window_find(comm, window);
	if (found)
		*ptr = found->base;
	pthread_mutex_unlock(&comm->lock);
	return found ? OK : no_window(window);
}
