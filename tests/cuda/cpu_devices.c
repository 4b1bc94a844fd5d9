#include "cpu_devices.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DONE = 0,
	INVALID = 1,
	NO_DEVICE = 101,
	NO_CONTEXT = 201,
	NO_PEER = 217,
	PEER_ALREADY = 704
};
enum { MULTIPROCESSORS = 132 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context contexts[CONTEXTS_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int devices = 1;
static _Thread_local struct context *current;

static void devices_read(void)
{
	const char *text = getenv("CPU_CUDA_DEVICES");

	if (text)
		devices = atoi(text);
	if (devices < 1 || devices > DEVICES_MAX) {
		fprintf(stderr, "cpu_cuda: CPU_CUDA_DEVICES=%s: 1 to %d\n", text,
			DEVICES_MAX);
		abort();
	}
	for (int i = 0; i < CONTEXTS_MAX; i++)
		contexts[i] = (struct context){
			.device = i / 2, .is_beside = i % 2, .reached = 1u << i / 2};
}

int device_count(void)
{
	pthread_once(&once, devices_read);
	return devices;
}

bool devices_are_peers(int one, int other)
{
	const char *pairs = getenv("CPU_CUDA_PEERS");
	char there[8], back[8];

	snprintf(there, sizeof(there), "%d-%d", one, other);
	snprintf(back, sizeof(back), "%d-%d", other, one);
	return !pairs || strstr(pairs, there) || strstr(pairs, back);
}

struct context *context_now(void)
{
	return current;
}

struct context *context_here(void)
{
	device_count();
	return current ? current : contexts;
}

unsigned context_number(const struct context *context)
{
	return (unsigned)(context - contexts);
}

bool context_reaches(const struct context *context, int device)
{
	bool is_reached;

	pthread_mutex_lock(&lock);
	is_reached = context->reached >> device & 1;
	pthread_mutex_unlock(&lock);
	return is_reached;
}

static int device_check(int device)
{
	return device < 0 || device >= device_count() ? NO_DEVICE : DONE;
}

/* ---- the driver's functions ---- */

int cuDeviceGetCount(int *count)
{
	*count = device_count();
	return DONE;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return device_check(ordinal);
}

/* CPU_CUDA_MPS: is there an MPS server? */
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	*value = attribute == 16 ? MULTIPROCESSORS
		 : attribute == 75
			 ? (getenv("CPU_CUDA_MAJOR") ? atoi(getenv("CPU_CUDA_MAJOR")) : 9)
		 : attribute == 124 ? 1
		 : attribute == 133 ? getenv("CPU_CUDA_MPS") != NULL
				    : 0;
	return device_check(device);
}

int cuDeviceGetUuid_v2(char *uuid, int device)
{
	memset(uuid, 7 + device, 16);
	return device_check(device);
}

int cuDeviceGetPCIBusId(char *text, int bytes, int device)
{
	snprintf(text, (size_t)bytes, "0000:%02x:00.0", 1 + device);
	return device_check(device);
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = device_check(device) ? NULL : &contexts[2 * device];
	return device_check(device);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device_check(device);
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	if (flags || device_check(device))
		return INVALID;
	*context = current = &contexts[2 * device + 1];
	return DONE;
}

int cuCtxDestroy_v2(void *context)
{
	if (current == context)
		current = NULL;
	return ((const struct context *)context)->is_beside ? DONE : INVALID;
}

int cuCtxGetCurrent(void **context)
{
	*context = current;
	return DONE;
}

int cuCtxSetCurrent(void *context)
{
	device_count();
	current = context;
	return DONE;
}

int cuCtxGetDevice(int *device)
{
	*device = current ? current->device : 0;
	return current ? DONE : NO_CONTEXT;
}

int cuCtxEnablePeerAccess(void *peer, unsigned flags)
{
	const struct context *other = peer;
	int code = DONE;

	if (!other || flags)
		return INVALID;
	if (!current || current->device == other->device)
		return NO_CONTEXT;
	if (!devices_are_peers(current->device, other->device))
		return NO_PEER;
	pthread_mutex_lock(&lock);
	if (current->reached >> other->device & 1)
		code = PEER_ALREADY;
	current->reached |= 1u << other->device;
	pthread_mutex_unlock(&lock);
	return code;
}
