#include "gpu.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "say.h"

/* Of the driver's interface. */
enum { ATTRIBUTE_DEVICE_ORDINAL = 9, FLUSH_CURRENT_CONTEXT = 0, FLUSH_TO_OWNER = 100 };

static struct {
	int (*attribute)(void *value, int attribute, unsigned long long pointer);
	int (*flush)(int target, int scope); /* NULL: it is older than 11.3 */
} driver;

static void driver_find(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (!library)
		return;
	*(void **)&driver.attribute = dlsym(library, "cuPointerGetAttribute");
	*(void **)&driver.flush = dlsym(library, "cuFlushGPUDirectRDMAWrites");
	if (!driver.attribute)
		say_info("libcuda.so.1 lacks cuPointerGetAttribute: GPU memory goes "
			 "through the host");
}

bool gpu_is_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, driver_find);
	return driver.attribute != NULL;
}

int gpu_of(const void *data)
{
	int device = -1;

	if (!gpu_is_there() || driver.attribute(&device, ATTRIBUTE_DEVICE_ORDINAL,
				       (unsigned long long)(uintptr_t)data))
		return -1;
	return device;
}

int gpu_flush(void)
{
	int result = driver.flush ? driver.flush(FLUSH_CURRENT_CONTEXT, FLUSH_TO_OWNER)
				  : -1;

	if (!result)
		return OFI_OK;
	return say_wrong(OFI_SYSTEM,
		"cuFlushGPUDirectRDMAWrites failed (%d): unset "
		"OFI_NCCL_CUDA_FLUSH_ENABLE",
		result);
}
