/*
 * memory.c - device memory for users, and the context it belongs to.
 */
#include <unistd.h>

#include "exec/cuda/driver/context.h"
#include "exec/cuda/kernels/kernels.h"
#include "exec/cuda/state.h"

enum err cuda_context(cu_context *context)
{
	const struct cuda_driver *driver = cuda_kernels_bytes ? cuda_driver() : NULL;

	*context = NULL;
	return driver ? context_of_thread(driver, context) : OK;
}

enum err cuda_device_context(int ordinal, cu_context *context)
{
	return context_of_device(cuda_driver(), ordinal, context);
}

int cuda_device(void)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_device device;

	return driver && !driver->context_device(&device) ? device : -1;
}

enum err cuda_memory_context(const void *ptr, cu_context *context)
{
	return context_of_memory(cuda_driver(), ptr, context);
}

bool cuda_memory_is(const void *ptr)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE};
	const struct cuda_driver *driver = ptr ? cuda_driver() : NULL;
	unsigned type = 0;
	void *values[] = {&type};

	return driver &&
	       !driver->pointer_attributes(1, wanted, values, (cu_ptr)(uintptr_t)ptr) &&
	       type == CU_MEMORY_DEVICE;
}

bool cuda_memory_is_here(const void *ptr)
{
	static const int wanted[] = {
		CU_POINTER_MEMORY_TYPE, CU_POINTER_IS_MANAGED, CU_POINTER_DEVICE_ORDINAL};
	const struct cuda_driver *driver = ptr ? cuda_driver() : NULL;
	unsigned type = 0, is_managed = 0;
	int device = -1;
	void *values[] = {&type, &is_managed, &device};

	return driver &&
	       !driver->pointer_attributes(3, wanted, values, (cu_ptr)(uintptr_t)ptr) &&
	       type == CU_MEMORY_DEVICE && (is_managed || device == cuda_device());
}

bool cuda_memory_is_direct(const void *ptr, uint64_t *buffer_id)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_IS_MANAGED,
		CU_POINTER_IS_RDMA_CAPABLE, CU_POINTER_BUFFER_ID};
	const struct cuda_driver *driver = ptr ? cuda_driver() : NULL;
	unsigned type = 0, is_managed = 0, is_capable = 0;
	void *values[] = {&type, &is_managed, &is_capable, buffer_id};

	return driver &&
	       !driver->pointer_attributes(4, wanted, values, (cu_ptr)(uintptr_t)ptr) &&
	       type == CU_MEMORY_DEVICE && !is_managed && is_capable;
}

/* The driver gives whole pages. */
void *cuda_context_now(void)
{
	cu_context context = NULL;

	if (cuda_driver())
		cuda_driver()->context_get(&context);
	return context;
}

void cuda_context_enter(void *context)
{
	if (cuda_context_now() != context)
		cuda_driver()->context_set(context);
}

bool cuda_memory_dmabuf(const void *ptr, size_t bytes, int *fd, uint64_t *offset)
{
	const struct cuda_driver *driver = cuda_driver();
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = (uintptr_t)ptr / page * page;
	uint64_t end = ((uintptr_t)ptr + bytes + page - 1) / page * page;
	int device = cuda_device(), is_supported = 0, got = -1, had = 0;
	cu_result result;

	if (!driver || !driver->range_handle || device < 0 ||
		driver->device_attribute(
			&is_supported, CU_DEVICE_DMABUF, (cu_device)device) ||
		!is_supported)
		return false;
	cuda_capture_relax(driver, &had);
	result = driver->range_handle(&got, first, end - first, CU_RANGE_DMABUF, 0);
	cuda_capture_restore(driver, had);
	if (result || got < 0)
		return false;
	*fd = got;
	*offset = (uintptr_t)ptr - first;
	return true;
}

void cuda_device_busid(char busid[CUDA_BUSID_BYTES])
{
	const struct cuda_driver *driver = cuda_driver();
	int device = cuda_device();

	if (!driver || device < 0 ||
		driver->device_bus_id(busid, CUDA_BUSID_BYTES, (cu_device)device))
		busid[0] = '\0';
}

int cuda_device_major(void)
{
	const struct cuda_driver *driver = cuda_driver();
	int device = cuda_device(), major = 0;

	if (!driver || device < 0 ||
		driver->device_attribute(&major, CU_DEVICE_MAJOR, (cu_device)device))
		return 0;
	return major;
}

enum err cuda_memory_check(const void *ptr, size_t bytes, bool is_sent)
{
	struct cuda_where where;
	enum err e = cuda_where(cuda_driver(), ptr, &where);

	return e ? e : cuda_where_check(&where, ptr, bytes, is_sent);
}

/* Whole blocks: a window begins at a multiple of 4096, and others map a whole one. */
enum err cuda_memory_alloc(size_t bytes, void **ptr)
{
	cu_context context;
	cu_ptr address = 0;
	enum err e = cuda_context(&context);

	*ptr = NULL;
	if (e || !context)
		return e;
	if (bytes > SIZE_MAX - CU_BLOCK_BYTES)
		return err_set(ERR_ARGUMENT, "%zu bytes are more than a GPU has", bytes);
	bytes = (bytes + CU_BLOCK_BYTES - 1) / CU_BLOCK_BYTES * CU_BLOCK_BYTES;
	e = cuda_check(
		cuda_driver()->mem_alloc(&address, bytes), "allocate device memory");
	*ptr = (void *)(uintptr_t)address;
	return e;
}

enum err cuda_memory_free(void *ptr)
{
	return cuda_check(
		cuda_driver()->mem_free((cu_ptr)(uintptr_t)ptr), "free device memory");
}
