#include "exec/cuda/driver/where.h"

/* Codes with which drivers of various ages say that they have never seen the address, or
 * that nothing is allocated anywhere since CUDA has not begun. */
static bool is_stranger(cu_result result)
{
	return result == CU_INVALID_VALUE || result == CU_NOT_INITIALIZED ||
	       result == CU_INVALID_CONTEXT;
}

/* An old driver does not know blocks, and then refuses the whole question. */
enum { PLAIN = 8, WITH_BLOCK = 13, HANDLE_FD = 1 };
static const int attributes[WITH_BLOCK] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_IS_MANAGED,
	CU_POINTER_DEVICE_ORDINAL, CU_POINTER_CONTEXT, CU_POINTER_BUFFER_ID,
	CU_POINTER_RANGE_START, CU_POINTER_RANGE_SIZE, CU_POINTER_IS_IPC_CAPABLE,
	CU_POINTER_BLOCK_ID, CU_POINTER_MAPPING_START, CU_POINTER_MAPPING_SIZE,
	CU_POINTER_HANDLE_TYPES, CU_POINTER_POOL};

/* Without a block that makes sense, the allocation stands for it. */
static void block_check(struct cuda_where *where)
{
	uint64_t before = where->base - where->block;

	if (where->is_by_fd) { /* the range may be many blocks */
		where->base = where->block;
		where->bytes = where->block_bytes;
		return;
	}
	if (where->block_id && where->base >= where->block &&
		before <= where->block_bytes &&
		where->bytes <= where->block_bytes - before)
		return;
	where->block_id = where->buffer_id;
	where->block = where->base;
	where->block_bytes = where->bytes;
}

enum err cuda_where(
	const struct cuda_driver *driver, const void *ptr, struct cuda_where *where)
{
	/* Booleans may be one byte or four: zeroed words hold either. */
	unsigned type = 0, is_managed = 0, is_shareable = 0;
	uint64_t handle_types = 0, pool = 0;
	struct cuda_where answer = {0};
	void *values[WITH_BLOCK] = {&type, &is_managed, &answer.device, &answer.context,
		&answer.buffer_id, &answer.base, &answer.bytes, &is_shareable,
		&answer.block_id, &answer.block, &answer.block_bytes, &handle_types,
		&pool};
	cu_result result = driver->pointer_attributes(
		WITH_BLOCK, attributes, values, (cu_ptr)(uintptr_t)ptr);

	if (result == CU_INVALID_VALUE)
		result = driver->pointer_attributes(
			PLAIN, attributes, values, (cu_ptr)(uintptr_t)ptr);
	if (result && !is_stranger(result))
		return cuda_check(result, "asking what a buffer's address is");
	answer.is_device = !result && (type == CU_MEMORY_DEVICE || is_managed);
	answer.is_managed = is_managed != 0;
	answer.is_shareable = is_shareable != 0;
	answer.is_by_fd = !answer.is_shareable && !is_managed && !pool &&
			  handle_types & HANDLE_FD && answer.block_id &&
			  answer.block_bytes;
	answer.is_bounded = answer.bytes && (answer.is_shareable || is_managed || pool);
	block_check(&answer);
	*where = answer.is_device ? answer : (struct cuda_where){0};
	return OK;
}

static bool is_within(cu_ptr base, size_t room, const void *ptr, size_t bytes)
{
	uint64_t offset = (uint64_t)(uintptr_t)ptr - base;

	return offset <= room && bytes <= room - offset;
}

bool cuda_where_holds(const struct cuda_where *where, const void *ptr, size_t bytes)
{
	return !where->is_bounded || is_within(where->base, where->bytes, ptr, bytes);
}

bool cuda_where_is_one_block(
	const struct cuda_where *where, const void *ptr, size_t bytes)
{
	return is_within(where->block, where->block_bytes, ptr, bytes);
}

bool cuda_where_is_same(
	const struct cuda_driver *driver, const void *ptr, const struct cuda_where *where)
{
	static const int wanted[] = {CU_POINTER_BUFFER_ID};
	uint64_t id = 0;
	void *values[] = {&id};

	return where->is_device &&
	       !driver->pointer_attributes(1, wanted, values, (cu_ptr)(uintptr_t)ptr) &&
	       id == where->buffer_id;
}

enum err cuda_where_check(
	const struct cuda_where *where, const void *ptr, size_t bytes, bool is_sent)
{
	if (cuda_where_holds(where, ptr, bytes))
		return OK;
	return err_set(ERR_ARGUMENT,
		"the %s buffer of %zu bytes at %p goes beyond its allocation of %zu "
		"bytes at %#llx",
		is_sent ? "send" : "receive", bytes, ptr, where->bytes,
		(unsigned long long)where->base);
}
