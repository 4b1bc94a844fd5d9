#include "kinds.h"
#include "ranks.h"

enum { PAGE = 4096 };

static const char *const names[KIND_COUNT] = {"device", "nccl", "async", "pool", "vmm",
	"private vmm", "managed", "pinned", "registered", "pageable"};

const char *kind_name(enum kind kind)
{
	return names[kind];
}

static const struct gpu_location here = {GPU_LOCATION_DEVICE, 0};

static cu_ptr vmm_open(struct memory *memory)
{
	struct gpu_allocation wanted = {.type = GPU_ALLOCATION_PINNED,
		.handle_types = memory->kind == KIND_VMM ? GPU_HANDLE_FILE
							 : GPU_HANDLE_NONE,
		.location = here};
	struct gpu_access access = {here, GPU_ACCESS_READ_WRITE};
	const struct gpu_calls *calls = gpu_calls();
	size_t unit;
	cu_ptr ptr;

	CUDA(calls->granularity(&unit, &wanted, 0));
	memory->bytes = (memory->bytes + unit - 1) / unit * unit;
	CUDA(calls->create(&memory->handle, memory->bytes, &wanted, 0));
	CUDA(calls->reserve(&ptr, memory->bytes, 0, 0, 0));
	CUDA(calls->map(ptr, memory->bytes, 0, memory->handle, 0));
	CUDA(calls->access(ptr, memory->bytes, &access, 1));
	return ptr;
}

static void vmm_close(struct memory *memory)
{
	const struct gpu_calls *calls = gpu_calls();
	cu_ptr ptr = (cu_ptr)(uintptr_t)memory->ptr;

	CUDA(calls->unmap(ptr, memory->bytes));
	CUDA(calls->unreserve(ptr, memory->bytes));
	CUDA(calls->release(memory->handle));
}

static cu_ptr pool_open(struct memory *memory)
{
	struct gpu_pool_properties wanted = {.type = GPU_ALLOCATION_PINNED,
		.handle_types = GPU_HANDLE_FILE,
		.location = here};
	cu_ptr ptr;

	CUDA(gpu_calls()->pool_create(&memory->pool, &wanted));
	CUDA(gpu_calls()->pool_alloc(&ptr, memory->bytes, memory->pool, memory->stream));
	return ptr;
}

static void *paged_open(struct memory *memory)
{
	void *ptr = NULL;

	memory->bytes = (memory->bytes + PAGE - 1) / PAGE * PAGE;
	EQ(posix_memalign(&ptr, PAGE, memory->bytes), 0);
	if (memory->kind == KIND_REGISTERED)
		CUDA(gpu_begin()->mem_host_register(ptr, memory->bytes, 0));
	return ptr;
}

struct memory memory_open(enum kind kind, size_t bytes, cu_stream stream)
{
	struct memory memory = {
		.kind = kind, .bytes = bytes ? bytes : 1, .stream = stream};
	const struct cuda_driver *driver = gpu_begin();
	cu_ptr ptr = 0;

	switch (kind) {
	case KIND_DEVICE:
		CUDA(driver->mem_alloc(&ptr, memory.bytes));
		break;
	case KIND_ASYNC:
		CUDA(gpu_calls()->alloc_async(&ptr, memory.bytes, stream));
		break;
	case KIND_POOL:
		ptr = pool_open(&memory);
		break;
	case KIND_VMM:
	case KIND_VMM_PRIVATE:
		ptr = vmm_open(&memory);
		break;
	case KIND_MANAGED:
		CUDA(gpu_calls()->managed_alloc(&ptr, memory.bytes, 1));
		break;
	case KIND_NCCL:
		OK(ncclMemAlloc(&memory.ptr, memory.bytes));
		break;
	case KIND_PINNED:
		CUDA(driver->mem_host_alloc(&memory.ptr, memory.bytes, 0));
		break;
	default:
		memory.ptr = paged_open(&memory);
	}
	if (ptr)
		memory.ptr = (void *)(uintptr_t)ptr;
	gpu_wait(stream);
	return memory;
}

void memory_close(struct memory *memory)
{
	cu_ptr ptr = (cu_ptr)(uintptr_t)memory->ptr;

	switch (memory->kind) {
	case KIND_ASYNC:
	case KIND_POOL:
		CUDA(gpu_calls()->free_async(ptr, memory->stream));
		gpu_wait(memory->stream);
		if (memory->kind == KIND_POOL)
			CUDA(gpu_calls()->pool_destroy(memory->pool));
		break;
	case KIND_VMM:
	case KIND_VMM_PRIVATE:
		vmm_close(memory);
		break;
	case KIND_NCCL:
		OK(ncclMemFree(memory->ptr));
		break;
	case KIND_PINNED:
		CUDA(gpu_begin()->mem_host_free(memory->ptr));
		break;
	case KIND_REGISTERED:
		CUDA(gpu_begin()->mem_host_unregister(memory->ptr));
		free(memory->ptr);
		break;
	case KIND_PAGEABLE:
		free(memory->ptr);
		break;
	default:
		gpu_free(memory->ptr);
	}
	*memory = (struct memory){0};
}
