/* What the network plugin of net_test.c says of its devices, and which faults it is to
 * have. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_test.h"

bool net_test_fault(const char *word)
{
	const char *list = getenv("NET_TEST_FAULT");
	const char *only = getenv("NET_TEST_FAULT_RANK"); /* of NET_TEST_RANK */
	const char *rank = getenv("NET_TEST_RANK");
	size_t bytes = strlen(word);

	if (!list || (only && (!rank || strcmp(only, rank))))
		return false;
	for (; *list; list += strcspn(list, ":"), list += *list == ':')
		if (!strncmp(list, word, bytes) && (!list[bytes] || list[bytes] == ':'))
			return true;
	return false;
}

/* NET_TEST_PCI has the places of its devices in sysfs, with commas between them; without
 * it there are two, nowhere. The place of one; how many there are. */
enum { DEVICES_MAX = 8, PLACE_BYTES = 256 };

static int places(int dev, char place[PLACE_BYTES])
{
	const char *list = getenv("NET_TEST_PCI");
	int count = 0;

	if (!list)
		return 2;
	for (; *list && count < DEVICES_MAX; count++) {
		size_t bytes = strcspn(list, ",");

		if (count == dev && bytes < PLACE_BYTES)
			snprintf(place, PLACE_BYTES, "%.*s", (int)bytes, list);
		list += bytes + (list[bytes] == ',');
	}
	return count;
}

ncclResult_t net_test_devices(int *count)
{
	*count = net_test_fault("empty") ? 0 : places(-1, NULL);
	return ncclSuccess;
}

/* Both ports of the one card there is ("ports"). */
static int joined;

/* What was joined is not used alone any more. */
bool net_test_has(int dev)
{
	return joined ? dev == 2 : dev >= 0 && dev < places(-1, NULL);
}

#if NET_VERSION >= 9
ncclResult_t net_test_make_virtual(int *d, ncclNetVDeviceProps_t *props)
{
	if (net_test_fault("apart") || props->ndevs != 2 || props->devs[0] != 0 ||
		props->devs[1] != 1)
		return ncclInvalidArgument;
	joined = 1;
	*d = 2;
	return ncclSuccess;
}
#endif

/* Texts of a device, for good: written once, since several threads may ask at once. */
struct texts {
	char name[16], place[PLACE_BYTES];
};

static const struct texts *texts_of(int dev)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct texts known[DEVICES_MAX + 1];
	struct texts now = {.place = ""}, *kept = &known[dev];

	places(dev, now.place);
	if (joined && dev == 2)
		snprintf(now.name, sizeof(now.name), "test0+test1");
	else
		snprintf(now.name, sizeof(now.name), "test%d", dev);
	pthread_mutex_lock(&lock);
	if (memcmp(kept, &now, sizeof(now)))
		*kept = now;
	pthread_mutex_unlock(&lock);
	return kept;
}

ncclResult_t net_test_properties(int dev, ncclNetProperties_t *props)
{
	static char paths[2][32] = {
		"/sys/nowhere/0000:10:00.0", "/sys/nowhere/0000:10:00.1"};
	const struct texts *texts;

	if (dev < 0 || dev >= places(-1, NULL) + joined)
		return ncclInvalidArgument;
	texts = texts_of(dev);
	props->name = (char *)(uintptr_t)texts->name;
	props->pciPath = net_test_fault("ports") ? paths[dev % 2]
			 : texts->place[0]	 ? (char *)(uintptr_t)texts->place
						 : NULL;
	props->guid = 100 + (uint64_t)dev;
	props->ptrSupport = net_test_fault("gpu") ? NCCL_PTR_CUDA
			    : net_test_fault("gdr")
				    ? NCCL_PTR_HOST |
					      (net_test_fault("dmabuf") ? NCCL_PTR_DMABUF
									: NCCL_PTR_CUDA)
				    : NCCL_PTR_HOST;
	props->speed = joined && dev == 2 ? 50000 : 25000;
	props->port = 1;
	props->latency = 12.5f;
	props->maxComms = net_test_fault("few") ? 5 : 1000;
	props->maxRecvs = 1;
#if NET_VERSION >= 8
	props->regIsGlobal = 1;
#endif
#if NET_VERSION >= 9
	props->forceFlush = 1;
	props->vProps.ndevs = 1;
	props->vProps.devs[0] = dev;
	props->maxP2pBytes = net_test_fault("tiny")    ? 100
			     : net_test_fault("small") ? 10000
						       : 1 << 30;
	props->maxCollBytes = 1 << 20;
#endif
#if NET_VERSION >= 11
	props->maxMultiRequestSize = 1;
#endif
#if NET_VERSION >= 12
	props->railId = 3;
	props->planeId = 4;
#endif
	return ncclSuccess;
}
