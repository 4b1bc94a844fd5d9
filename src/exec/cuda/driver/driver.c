#include "exec/cuda/driver/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/log.h"

enum { SHORT_BYTES = 2048 }; /* of a copy: the driver's limit on an H200 */

static const char library_name[] = "libcuda.so.1";

/* Where each function goes, and the name of an older one that takes the same, or `absent`
 * when we can do without. The names are those of the library, not of its header, which
 * renames behind the reader's back. */
static const char absent[] = "";
static const struct symbol {
	const char *name, *older;
	size_t offset;
} symbols[] = {
	{"cuInit", NULL, offsetof(struct cuda_driver, init)},
	{"cuDriverGetVersion", NULL, offsetof(struct cuda_driver, driver_version)},
	{"cuGetErrorName", NULL, offsetof(struct cuda_driver, error_name)},
	{"cuDeviceGet", NULL, offsetof(struct cuda_driver, device_get)},
	{"cuDeviceGetAttribute", NULL, offsetof(struct cuda_driver, device_attribute)},
	{"cuDeviceGetUuid_v2", "cuDeviceGetUuid",
		offsetof(struct cuda_driver, device_uuid)},
	{"cuDeviceGetPCIBusId", NULL, offsetof(struct cuda_driver, device_bus_id)},
	{"cuCtxGetCurrent", NULL, offsetof(struct cuda_driver, context_get)},
	{"cuCtxSetCurrent", NULL, offsetof(struct cuda_driver, context_set)},
	{"cuCtxGetDevice", NULL, offsetof(struct cuda_driver, context_device)},
	{"cuThreadExchangeStreamCaptureMode", NULL,
		offsetof(struct cuda_driver, capture_mode)},
	{"cuCtxEnablePeerAccess", NULL, offsetof(struct cuda_driver, peer_access)},
	{"cuCtxSynchronize", NULL, offsetof(struct cuda_driver, context_synchronize)},
	{"cuCtxCreate_v2", absent, offsetof(struct cuda_driver, context_create)},
	{"cuCtxDestroy_v2", absent, offsetof(struct cuda_driver, context_destroy)},
	{"cuDevicePrimaryCtxRetain", NULL, offsetof(struct cuda_driver, primary_retain)},
	{"cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxRelease",
		offsetof(struct cuda_driver, primary_release)},
	{"cuMemAlloc_v2", NULL, offsetof(struct cuda_driver, mem_alloc)},
	{"cuMemFree_v2", NULL, offsetof(struct cuda_driver, mem_free)},
	{"cuMemHostAlloc", NULL, offsetof(struct cuda_driver, mem_host_alloc)},
	{"cuMemFreeHost", NULL, offsetof(struct cuda_driver, mem_host_free)},
	{"cuMemHostRegister_v2", "cuMemHostRegister",
		offsetof(struct cuda_driver, mem_host_register)},
	{"cuMemHostUnregister", NULL, offsetof(struct cuda_driver, mem_host_unregister)},
	{"cuMemHostGetDevicePointer_v2", NULL,
		offsetof(struct cuda_driver, mem_host_device_pointer)},
	{"cuMemGetAddressRange_v2", NULL,
		offsetof(struct cuda_driver, mem_address_range)},
	{"cuMemcpyAsync", NULL, offsetof(struct cuda_driver, memcpy_async)},
	{"cuMemcpy2DAsync_v2", NULL, offsetof(struct cuda_driver, memcpy_2d_async)},
	{"cuMemsetD8Async", NULL, offsetof(struct cuda_driver, memset_async)},
	{"cuMemcpyHtoD_v2", NULL, offsetof(struct cuda_driver, memcpy_to_device)},
	{"cuMemcpyDtoH_v2", NULL, offsetof(struct cuda_driver, memcpy_from_device)},
	{"cuMemsetD8_v2", NULL, offsetof(struct cuda_driver, memset_d8)},
	{"cuIpcGetMemHandle", NULL, offsetof(struct cuda_driver, ipc_get)},
	{"cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle",
		offsetof(struct cuda_driver, ipc_open)},
	{"cuIpcCloseMemHandle", NULL, offsetof(struct cuda_driver, ipc_close)},
	{"cuMemRetainAllocationHandle", absent,
		offsetof(struct cuda_driver, physical_of)},
	{"cuMemExportToShareableHandle", absent,
		offsetof(struct cuda_driver, physical_export)},
	{"cuMemImportFromShareableHandle", absent,
		offsetof(struct cuda_driver, physical_import)},
	{"cuMemRelease", absent, offsetof(struct cuda_driver, physical_release)},
	{"cuMemAddressReserve", absent, offsetof(struct cuda_driver, range_reserve)},
	{"cuMemAddressFree", absent, offsetof(struct cuda_driver, range_free)},
	{"cuMemMap", absent, offsetof(struct cuda_driver, range_map)},
	{"cuMemUnmap", absent, offsetof(struct cuda_driver, range_unmap)},
	{"cuMemSetAccess", absent, offsetof(struct cuda_driver, range_access)},
	{"cuMemGetHandleForAddressRange", absent,
		offsetof(struct cuda_driver, range_handle)},
	{"cuPointerGetAttributes", NULL,
		offsetof(struct cuda_driver, pointer_attributes)},
	{"cuStreamCreate", NULL, offsetof(struct cuda_driver, stream_create)},
	{"cuStreamCreateWithPriority", absent,
		offsetof(struct cuda_driver, stream_create_priority)},
	{"cuCtxGetStreamPriorityRange", absent,
		offsetof(struct cuda_driver, priority_range)},
	{"cuStreamDestroy_v2", NULL, offsetof(struct cuda_driver, stream_destroy)},
	{"cuStreamSynchronize", NULL, offsetof(struct cuda_driver, stream_synchronize)},
	{"cuStreamQuery", NULL, offsetof(struct cuda_driver, stream_query)},
	{"cuStreamWaitEvent", NULL, offsetof(struct cuda_driver, stream_wait_event)},
	{"cuStreamIsCapturing", NULL, offsetof(struct cuda_driver, stream_is_capturing)},
	{"cuStreamGetId", absent, offsetof(struct cuda_driver, stream_id)},
	{"cuStreamBatchMemOp_v2", "cuStreamBatchMemOp",
		offsetof(struct cuda_driver, stream_batch_memop)},
	{"cuLaunchHostFunc", absent, offsetof(struct cuda_driver, launch_host)},
	{"cuEventCreate", NULL, offsetof(struct cuda_driver, event_create)},
	{"cuEventRecord", NULL, offsetof(struct cuda_driver, event_record)},
	{"cuEventDestroy_v2", NULL, offsetof(struct cuda_driver, event_destroy)},
	{"cuEventQuery", NULL, offsetof(struct cuda_driver, event_query)},
	{"cuModuleLoadData", NULL, offsetof(struct cuda_driver, module_load)},
	{"cuModuleUnload", NULL, offsetof(struct cuda_driver, module_unload)},
	{"cuModuleGetFunction", NULL, offsetof(struct cuda_driver, module_function)},
	{"cuLaunchKernel", NULL, offsetof(struct cuda_driver, launch)},
};
enum { SYMBOL_COUNT = sizeof(symbols) / sizeof(*symbols) };
_Static_assert(SYMBOL_COUNT * sizeof(void (*)(void)) == sizeof(struct cuda_driver),
	"one row per function");

/* `found` points to `table` once it is whole: the acquire in cuda_driver() pairs with the
 * release in driver_find(). The lock guards all writing. */
static _Atomic(const struct cuda_driver *) found;
static struct cuda_driver table;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_refused; /* the library lacks something, and we have said so */

static bool symbols_load(void *library, struct cuda_driver *driver)
{
	for (size_t i = 0; i < SYMBOL_COUNT; i++) {
		const struct symbol *symbol = &symbols[i];
		void *address = dlsym(library, symbol->name);

		if (!address && symbol->older == absent)
			continue;
		if (!address && symbol->older)
			address = dlsym(library, symbol->older);
		if (!address) {
			log_warn("%s has no %s: its driver is too old for CUDA buffers, "
				 "update it",
				library_name, symbol->name);
			return false;
		}
		memcpy((char *)driver + symbol->offset, &address, sizeof(address));
	}
	return true;
}

static int is_library(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)bytes;
	(void)unused;
	return !strncmp(name, library_name, strlen("libcuda.so"));
}

/* With the lock held. A dlopen() that finds nothing leaves memory with its thread, so the
 * list of what is loaded is looked at first. The handle of a good library is kept for
 * ever, so that it stays. */
static const struct cuda_driver *driver_find(void)
{
	void *library;

	if (is_refused || !dl_iterate_phdr(is_library, NULL))
		return NULL;
	library = dlopen(library_name, RTLD_NOW | RTLD_NOLOAD);
	if (!library)
		return NULL;
	if (!symbols_load(library, &table)) {
		is_refused = true;
		dlclose(library);
		return NULL;
	}
	atomic_store_explicit(&found, &table, memory_order_release);
	return &table;
}

const struct cuda_driver *cuda_driver(void)
{
	const struct cuda_driver *driver = atomic_load_explicit(
		&found, memory_order_acquire);

	if (driver)
		return driver;
	pthread_mutex_lock(&lock);
	driver = atomic_load_explicit(&found, memory_order_relaxed);
	if (!driver)
		driver = driver_find();
	pthread_mutex_unlock(&lock);
	return driver;
}

void cuda_capture_relax(const struct cuda_driver *driver, int *had)
{
	int mode = CU_CAPTURE_RELAXED;

	driver->capture_mode(&mode);
	if (had)
		*had = mode;
}

void cuda_capture_restore(const struct cuda_driver *driver, int had)
{
	driver->capture_mode(&had);
}

uint64_t cuda_stream_number(const struct cuda_driver *driver, cu_stream stream)
{
	uint64_t id = 0;

	if (!driver->stream_id || driver->stream_id(stream, &id))
		return (uint64_t)(uintptr_t)stream;
	return id;
}

/* In two rows, or as many as there are bytes: no plain copy. */
static cu_result rows_copy(const struct cuda_driver *driver, cu_ptr to, const void *from,
	size_t bytes, cu_stream stream)
{
	size_t rows = bytes % 2 ? bytes : 2;
	const struct cu_copy_2d copy = {.from_type = CU_MEMORY_HOST,
		.from_host = from,
		.from_pitch = bytes / rows,
		.to_type = CU_MEMORY_DEVICE,
		.to_device = to,
		.to_pitch = bytes / rows,
		.row_bytes = bytes / rows,
		.rows = rows};

	return driver->memcpy_2d_async(&copy, stream);
}

cu_result cuda_copy_in(const struct cuda_driver *driver, cu_ptr to, const void *from,
	size_t bytes, cu_stream stream)
{
	if (bytes < SHORT_BYTES)
		return rows_copy(driver, to, from, bytes, stream);
	return driver->memcpy_async(to, (cu_ptr)(uintptr_t)from, bytes, stream);
}

enum err cuda_check(cu_result result, const char *what)
{
	const struct cuda_driver *driver;
	const char *name = NULL;

	if (result == CU_OK)
		return OK;
	driver = cuda_driver();
	if (!driver || driver->error_name(result, &name) || !name)
		name = "an error the driver has no name for";
	return err_set(ERR_CUDA, "%s: the CUDA driver says %s (%d)", what, name, result);
}
