/*
 * A stand-in for CUDA's runtime, as far as the library asks it: the device that this
 * thread has chosen, which is 0 until it has.
 */
#include <stdlib.h>

static _Thread_local int chosen;

int cudaGetDevice(int *device);
int cudaSetDevice(int device);

int cudaGetDevice(int *device)
{
	*device = chosen;
	return 0;
}

int cudaSetDevice(int device)
{
	const char *count = getenv("CPU_CUDA_DEVICES");

	if (device < 0 || device >= (count ? atoi(count) : 1))
		return 101;
	chosen = device;
	return 0;
}
