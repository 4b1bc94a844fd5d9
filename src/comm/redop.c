/*
 * redop.c - operators: the five built in, and pre-multiplied sums a user makes.
 *
 * A handle is 5 + index, mixed with the comm's address so that a handle of another comm
 * is noticed.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "comm/state.h"

enum { HANDLE_MAX = 0x7fffffff, INDEX_BITS = 12 };

static int handle_mix(const struct comm *comm)
{
	uint64_t address = (uint64_t)(uintptr_t)comm;

	/* leaves the index bits alone, and the sign */
	return (int)((address >> 4 ^ address >> 20) & (HANDLE_MAX >> INDEX_BITS))
	       << INDEX_BITS;
}

static struct redop_entry *entry_of(struct comm *comm, int handle)
{
	int plain = handle ^ handle_mix(comm);
	int index = plain - REDOP_BUILTIN;

	if (handle < REDOP_BUILTIN || index < 0 || (uint32_t)index >= comm->redops.count)
		return NULL;
	return comm->redops.entries[index].used ? &comm->redops.entries[index] : NULL;
}

static enum err entry_free(struct comm *comm, uint32_t *index)
{
	struct redop_entry *grown;

	for (*index = 0; *index < comm->redops.count; ++*index)
		if (!comm->redops.entries[*index].used)
			return OK;
	if (*index + REDOP_BUILTIN >= 1 << INDEX_BITS)
		return err_set(ERR_USAGE, "a communicator holds at most %d operators",
			(1 << INDEX_BITS) - REDOP_BUILTIN);
	grown = realloc(comm->redops.entries, (*index + 1) * sizeof(*grown));
	if (!grown)
		return err_set(ERR_SYSTEM, "no memory for an operator");
	comm->redops.entries = grown;
	comm->redops.count++;
	return OK;
}

enum err comm_redop_create(struct comm *comm, const void *scalar, enum dtype type,
	bool immediate, int *handle)
{
	uint32_t index;
	enum err e = entry_free(comm, &index);

	if (e)
		return e;
	comm->redops.entries[index] = (struct redop_entry){
		.used = true, .immediate = immediate, .type = type};
	if (immediate)
		memcpy(&comm->redops.entries[index].scalar_bits, scalar,
			dtype_size(type));
	else
		comm->redops.entries[index].scalar_pointer = scalar;
	*handle = (int)(index + REDOP_BUILTIN) ^ handle_mix(comm);
	return OK;
}

enum err comm_redop_destroy(struct comm *comm, int handle)
{
	struct redop_entry *entry = entry_of(comm, handle);

	if (handle >= 0 && handle < REDOP_BUILTIN)
		return err_set(ERR_ARGUMENT,
			"operator %d is built in and cannot be destroyed", handle);
	if (!entry)
		return err_set(ERR_ARGUMENT,
			"operator 0x%x is not one of this communicator's", handle);
	entry->used = false;
	return OK;
}

enum err comm_redop_resolve(
	struct comm *comm, int handle, enum dtype type, struct comm_op *out)
{
	struct redop_entry *entry;

	if (handle >= 0 && handle < REDOP_BUILTIN) {
		*out = (struct comm_op){.op = (enum redop)handle};
		return OK;
	}
	entry = entry_of(comm, handle);
	if (!entry)
		return err_set(ERR_ARGUMENT,
			"operator 0x%x is not one of this communicator's", handle);
	if (entry->type != type)
		return err_set(ERR_ARGUMENT,
			"the operator was made for %s, the data are %s",
			dtype_name(entry->type), dtype_name(type));
	*out = (struct comm_op){.op = REDOP_PREMUL,
		.scalar_bits = entry->scalar_bits,
		.scalar_pointer = entry->scalar_pointer};
	return OK;
}
