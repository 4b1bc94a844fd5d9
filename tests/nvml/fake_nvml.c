/*
 * fake_nvml.c - a stand-in for libnvidia-ml.so.1, for tests without a GPU.
 *
 * WEFT_NVML_LIBRARY names this file's shared object, FAKE_NVML the machine it describes:
 * nvswitch8, bridge4, vm8, grace2, mig1, idle1, standin4 (the GPUs of the driver's
 * stand-in), none or broken. The layouts are written down a second time here, on
 * purpose: a slip in one of them fails the test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DONE = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_DRIVER = 9, VERSION_MISMATCH = 25 };

struct machine {
	const char *name;
	unsigned count, buses[8], device;
	int sm;
	unsigned gen, width, gen_max;
};

static const struct machine machines[] = {
	{"nvswitch8", 8, {0x13, 0x23, 0x33, 0x43, 0x93, 0xa3, 0xb3, 0xc3}, 0x233010de, 90,
		5, 16, 5},
	{"bridge4", 4, {0x13, 0x23, 0x93, 0xa3}, 0x20b510de, 80, 4, 16, 4},
	{"vm8", 8, {0x53, 0x64, 0x75, 0x86, 0x97, 0xa8, 0xb9, 0xca}, 0x233510de, 90, 5,
		16, 5},
	{"grace2", 2, {0x01, 0x02}, 0x294110de, 100, 6, 16, 6},
	{"mig1", 1, {0x13}, 0x20b010de, 80, 4, 16, 4},
	{"idle1", 1, {0x13}, 0x26b910de, 89, 1, 8, 4},
	{"standin4", 4, {0x01, 0x02, 0x03, 0x04}, 0x233010de, 90, 5, 16, 5},
	{"none", .count = 0},
};

static const struct machine *now;

static const struct machine *device_of(const void *handle)
{
	return handle ? now : NULL;
}

static unsigned index_of(const void *handle)
{
	return (unsigned)((const char *)handle - (const char *)now - 1);
}

int nvmlInit_v2(void)
{
	const char *name = getenv("FAKE_NVML");

	now = NULL;
	for (size_t i = 0; name && i < sizeof(machines) / sizeof(*machines); i++)
		if (!strcmp(machines[i].name, name))
			now = &machines[i];
	return now ? DONE : NO_DRIVER;
}

int nvmlShutdown(void)
{
	return DONE;
}

const char *nvmlErrorString(int code)
{
	return code == NO_DRIVER ? "Driver Not Loaded" : "Some Error";
}

int nvmlSystemGetDriverVersion(char *text, unsigned room)
{
	return snprintf(text, room, "580.95.05") < (int)room ? DONE : INVALID;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	*count = now->count;
	return DONE;
}

/* A handle is a pointer nobody may follow. */
int nvmlDeviceGetHandleByIndex_v2(unsigned index, const void **handle)
{
	if (index >= now->count)
		return INVALID;
	*handle = (const char *)now + index + 1;
	return DONE;
}

int nvmlDeviceGetName(const void *handle, char *text, unsigned room)
{
	(void)handle;
	snprintf(text, room, "%s",
		now->sm == 89 ? "NVIDIA GeForce" : "NVIDIA Data Centre");
	return DONE;
}

/* 16 old bus id, 4 domain, 4 bus, 4 device, 4 ids, 4 subsystem ids, 32 bus id. */
static void pci_write(char *bytes, unsigned bus)
{
	unsigned numbers[5] = {0, bus, 0, now->device, 0x16c110de};

	snprintf(bytes, 16, "0000:%02X:00.0", bus);
	memcpy(bytes + 16, numbers, sizeof(numbers));
	snprintf(bytes + 36, 32, "00000000:%02X:00.0", bus);
}

int nvmlDeviceGetPciInfo_v3(const void *handle, char *bytes)
{
	pci_write(bytes, now->buses[index_of(handle)]);
	return DONE;
}

int nvmlDeviceGetCudaComputeCapability(const void *handle, int *major, int *minor)
{
	*major = device_of(handle)->sm / 10;
	*minor = device_of(handle)->sm % 10;
	return DONE;
}

int nvmlDeviceGetCurrPcieLinkGeneration(const void *handle, unsigned *value)
{
	*value = device_of(handle)->gen;
	return DONE;
}

int nvmlDeviceGetCurrPcieLinkWidth(const void *handle, unsigned *value)
{
	*value = device_of(handle)->width;
	return DONE;
}

int nvmlDeviceGetMaxPcieLinkGeneration(const void *handle, unsigned *value)
{
	*value = device_of(handle)->gen_max;
	return DONE;
}

int nvmlDeviceGetMaxPcieLinkWidth(const void *handle, unsigned *value)
{
	*value = device_of(handle)->width;
	return DONE;
}

static unsigned links(void)
{
	if (now->sm == 89 || !strcmp(now->name, "mig1"))
		return 0;
	return now->sm < 90 ? 12 : 18;
}

int nvmlDeviceGetNvLinkCapability(
	const void *handle, unsigned link, unsigned capability, unsigned *value)
{
	(void)handle;
	*value = link < links() && capability == 0;
	return link < links() ? DONE : NOT_SUPPORTED;
}

/* The last link of the last GPU with bridges is broken. */
int nvmlDeviceGetNvLinkState(const void *handle, unsigned link, unsigned *value)
{
	*value = !(index_of(handle) == now->count - 1 && link == 11);
	return link < links() ? DONE : NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(const void *handle, unsigned link, char *bytes)
{
	static const unsigned switches[] = {0x05, 0x06, 0x07, 0x08};

	memset(bytes, 0, 68);
	if (!strcmp(now->name, "nvswitch8"))
		pci_write(bytes, switches[link % 4]);
	else if (!strcmp(now->name, "bridge4"))
		pci_write(bytes, now->buses[index_of(handle) ^ 1]);
	else
		snprintf(bytes, 16, "FFFFFFF:FF:FF.0");
	return DONE;
}

struct field {
	unsigned id, scope;
	long long times[2];
	unsigned type, result;
	union {
		double real;
		unsigned number;
	};
};

int nvmlDeviceGetFieldValues(const void *handle, int count, struct field *fields)
{
	int grace = !strcmp(now->name, "grace2");

	(void)handle;
	for (int i = 0; i < count; i++) {
		fields[i].result = DONE;
		if (fields[i].id == 165)
			fields[i].number = fields[i].scope < links();
		else if (fields[i].id == 170 && grace)
			fields[i].number = 10;
		else if (fields[i].id == 171 && grace)
			fields[i].number = fields[i].scope != 3;
		else if (fields[i].id == 172 && grace)
			fields[i].number = 44712;
		else
			fields[i].result = NOT_SUPPORTED;
	}
	return DONE;
}

int nvmlDeviceGetMigMode(const void *handle, unsigned *current, unsigned *pending)
{
	(void)handle;
	*current = *pending = !strcmp(now->name, "mig1");
	return DONE;
}

/* version, 16 bytes of cluster, status, clique, state in a byte, health. */
int nvmlDeviceGetGpuFabricInfoV(const void *handle, unsigned *words)
{
	(void)handle;
	if (words[0] != (2u << 24 | 36))
		return VERSION_MISMATCH;
	if (now->sm < 90)
		return NOT_SUPPORTED;
	memset(words + 1, strcmp(now->name, "grace2") ? 0 : 0xab, 16);
	words[5] = 0;
	words[6] = 7;
	*(unsigned char *)&words[7] = strcmp(now->name, "vm8") ? 3 : 2;
	words[8] = 0;
	return DONE;
}

int nvmlDeviceGetP2PStatus(
	const void *one, const void *other, unsigned kind, unsigned *value)
{
	(void)kind;
	if (one == other)
		return INVALID;
	*value = strcmp(now->name, "bridge4") ? 0 : 5;
	return DONE;
}
