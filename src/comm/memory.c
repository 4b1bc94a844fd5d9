/*
 * memory.c - mappable memory, registration and windows on host memory.
 *
 * Memory of ncclMemAlloc() is found by its address at every call, so registering it
 * changes nothing but the promise that it stays. Other host memory cannot be mapped by
 * peers; registering it is allowed and its calls go through the stage.
 */
#include <stdlib.h>

#include "comm/comm.h"
#include "comm/state.h"
#include "link/region.h"

enum { WINDOW_ALIGNMENT = 4096 };

struct registration {
	char *base;
	size_t bytes;
	uint32_t count;
	struct registration *next;
};

struct window {
	struct comm *comm;
	void *base;
	size_t bytes;
};

enum err mem_alloc(size_t bytes, void **ptr)
{
	return region_alloc(bytes, ptr);
}

enum err mem_free(void *ptr)
{
	return region_free(ptr);
}

enum err comm_register(struct comm *comm, void *ptr, size_t bytes, void **handle)
{
	struct registration *r;

	for (r = comm->registrations; r; r = r->next)
		if (r->base == ptr && r->bytes == bytes) {
			r->count++;
			*handle = r;
			return OK;
		}
	r = malloc(sizeof(*r));
	if (!r)
		return err_set(ERR_SYSTEM, "no memory to register %zu bytes", bytes);
	*r = (struct registration){
		.base = ptr, .bytes = bytes, .count = 1, .next = comm->registrations};
	comm->registrations = r;
	*handle = r;
	return OK;
}

enum err comm_deregister(struct comm *comm, void *handle)
{
	struct registration **link, *r;

	for (link = &comm->registrations; *link && *link != handle;)
		link = &(*link)->next;
	r = *link;
	if (!r)
		return err_set(ERR_ARGUMENT,
			"%p is not a registration of this communicator", handle);
	if (--r->count == 0) {
		*link = r->next;
		free(r);
	}
	return OK;
}

void comm_registrations_drop(struct comm *comm)
{
	while (comm->registrations) {
		struct registration *r = comm->registrations;

		comm->registrations = r->next;
		free(r);
	}
}

enum err comm_window_register(
	struct comm *comm, void *ptr, size_t bytes, int flags, struct window **window)
{
	struct region region;
	struct window *w;

	(void)flags; /* symmetric or not, host memory is reached through its region */
	if ((uintptr_t)ptr % WINDOW_ALIGNMENT)
		return err_set(ERR_ARGUMENT,
			"a window begins at a multiple of %d, not at %p",
			WINDOW_ALIGNMENT, ptr);
	if (!region_find(ptr, bytes, &region))
		return err_set(ERR_ARGUMENT,
			"a window must lie in memory of ncclMemAlloc; %p does not", ptr);
	w = malloc(sizeof(*w));
	if (!w)
		return err_set(ERR_SYSTEM, "no memory for a window");
	*w = (struct window){.comm = comm, .base = ptr, .bytes = bytes};
	*window = w;
	return OK;
}

enum err comm_window_deregister(struct comm *comm, struct window *window)
{
	if (window->comm != comm)
		return err_set(
			ERR_ARGUMENT, "the window belongs to another communicator");
	free(window);
	return OK;
}

enum err comm_window_pointer(struct comm *comm, const struct window *window, void **ptr)
{
	if (window->comm != comm)
		return err_set(
			ERR_ARGUMENT, "the window belongs to another communicator");
	*ptr = window->base;
	return OK;
}
