/*
 * A stand-in for CUDA's runtime, as far as the library asks it: the device that this
 * thread has chosen, which is 0 until it has. There is one device.
 */
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
	chosen = device;
	return device ? 101 : 0;
}
