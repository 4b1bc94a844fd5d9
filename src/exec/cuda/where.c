#include "exec/cuda/where.h"

/* Codes with which drivers of various ages say that they have never seen the address, or
 * that nothing is allocated anywhere since CUDA has not begun. */
static bool is_stranger(cu_result result)
{
	return result == CU_INVALID_VALUE || result == CU_NOT_INITIALIZED ||
	       result == CU_INVALID_CONTEXT;
}

static void block_find(
	const struct cuda_driver *driver, const void *ptr, struct cuda_where *where)
{
	static const int attributes[] = {
		CU_POINTER_BLOCK_ID, CU_POINTER_MAPPING_START, CU_POINTER_MAPPING_SIZE};
	enum { COUNT = sizeof(attributes) / sizeof(*attributes) };
	uint64_t id = 0;
	size_t bytes = 0;
	cu_ptr block = 0;
	void *values[COUNT] = {&id, &block, &bytes};

	where->block_id = where->buffer_id;
	where->block = where->base;
	where->block_bytes = where->bytes;
	if (driver->pointer_attributes(
		    COUNT, attributes, values, (cu_ptr)(uintptr_t)ptr) ||
		!id || !bytes || where->base < block || where->base - block > bytes ||
		where->bytes > bytes - (where->base - block))
		return;
	where->block_id = id;
	where->block = block;
	where->block_bytes = bytes;
}

enum err cuda_where(
	const struct cuda_driver *driver, const void *ptr, struct cuda_where *where)
{
	static const int attributes[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_IS_MANAGED,
		CU_POINTER_DEVICE_ORDINAL, CU_POINTER_CONTEXT, CU_POINTER_BUFFER_ID,
		CU_POINTER_RANGE_START, CU_POINTER_RANGE_SIZE, CU_POINTER_IS_IPC_CAPABLE};
	enum { COUNT = sizeof(attributes) / sizeof(*attributes) };
	/* Booleans may be one byte or four: zeroed words hold either. */
	unsigned type = 0, is_managed = 0, is_shareable = 0;
	struct cuda_where answer = {0};
	void *values[COUNT] = {&type, &is_managed, &answer.device, &answer.context,
		&answer.buffer_id, &answer.base, &answer.bytes, &is_shareable};
	cu_result result = driver->pointer_attributes(
		COUNT, attributes, values, (cu_ptr)(uintptr_t)ptr);

	if (result && !is_stranger(result))
		return cuda_check(result, "asking what a buffer's address is");
	answer.is_device = !result && (type == CU_MEMORY_DEVICE || is_managed);
	answer.is_shareable = is_shareable != 0;
	*where = answer.is_device ? answer : (struct cuda_where){0};
	if (answer.is_device)
		block_find(driver, ptr, where);
	return OK;
}
