#include "exec/cuda/driver/context.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "exec/cuda/driver/where.h"

typedef int runtime_get_device(int *device);

enum { PATH_BYTES = 1024 };

static int runtime_path(struct dl_phdr_info *info, size_t bytes, void *path)
{
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash ? slash + 1 : info->dlpi_name;

	(void)bytes;
	if (strncmp(name, "libcudart.so", strlen("libcudart.so")))
		return 0;
	snprintf(path, PATH_BYTES, "%s", info->dlpi_name);
	return 1;
}

/* Of the runtime that the program has loaded. One that is part of the program itself
 * cannot be asked; since CUDA 12 its cudaSetDevice() makes a context, which is seen. The
 * library is never let go, so that the function stays. */
static runtime_get_device *runtime_find(void)
{
	runtime_get_device *function = NULL;
	char path[PATH_BYTES] = "";
	void *library, *address;

	if (!dl_iterate_phdr(runtime_path, path))
		return NULL;
	library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	address = library ? dlsym(library, "cudaGetDevice") : NULL;
	memcpy(&function, &address, sizeof(function));
	return function;
}

static enum err primary_take(
	const struct cuda_driver *driver, int ordinal, cu_context *context)
{
	cu_device device;
	enum err e = cuda_check(
		driver->device_get(&device, ordinal), "ask for the current device");

	if (!e)
		e = cuda_check(driver->primary_retain(context, device),
			"make the device's primary context");
	return e;
}

/* A driver that nobody has initialized says so here. */
enum err context_of_thread(const struct cuda_driver *driver, cu_context *context)
{
	runtime_get_device *get_device;
	int ordinal = 0;
	enum err e;

	*context = NULL;
	if (driver->context_get(context) || *context)
		return OK;
	get_device = runtime_find();
	if (!get_device || get_device(&ordinal))
		return OK;
	e = primary_take(driver, ordinal, context);
	if (!e)
		e = cuda_check(driver->context_set(*context),
			"make the device's primary context current");
	return e;
}

enum err context_of_device(
	const struct cuda_driver *driver, int ordinal, cu_context *context)
{
	cu_device device, here;
	if (driver->device_get(&device, ordinal))
		return err_set(ERR_CUDA,
			"there is no CUDA device %d: name one that this process sees "
			"(CUDA_VISIBLE_DEVICES)",
			ordinal);
	if (!driver->context_get(context) && *context && !driver->context_device(&here) &&
		here == device)
		return OK;
	return cuda_check(driver->primary_retain(context, device),
		"make the device's primary context");
}

enum err context_of_memory(
	const struct cuda_driver *driver, const void *ptr, cu_context *context)
{
	struct cuda_where where;
	enum err e = cuda_where(driver, ptr, &where);

	if (e)
		return e;
	*context = where.context;
	if (*context)
		return OK;
	return primary_take(driver, where.device > 0 ? where.device : 0, context);
}
