#include "exec/cuda/driver/mps.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/param.h"

/* A client must be able to write to the daemon's socket. */
static bool is_daemon_there(void)
{
	char path[PATH_MAX];
	int bytes = snprintf(
		path, sizeof(path), "%s/control", param_text(PARAM_MPS_PIPE_DIRECTORY));

	return bytes > 0 && (size_t)bytes < sizeof(path) && !access(path, W_OK);
}

bool mps_is_client(const struct cuda_driver *driver, cu_device device)
{
	int value = 0;

	if (!driver->device_attribute(&value, CU_DEVICE_MPS_ENABLED, device))
		return value != 0;
	return is_daemon_there();
}
