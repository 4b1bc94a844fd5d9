#include "topo/nvml.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

/*
 * NVML's binary interface, as far as we use it: names, numbers and layouts are facts of
 * the driver's library and have not changed since they appeared. All calls return 0 when
 * they succeed. Functions whose struct grew have a version in the name; where an older
 * driver lacks the newer one, the older is used if its layout begins alike.
 */
typedef struct nvml_handle *handle;

struct abi_pci {
	char busid_legacy[16];
	unsigned domain, bus, device, pci_device, pci_subsystem;
	char busid[32]; /* not written by the functions without a version in the name */
	unsigned spare[8];
};
_Static_assert(offsetof(struct abi_pci, busid) == 36, "nvmlPciInfo_t");

struct abi_field {
	unsigned field, scope;
	long long timestamp, latency_us;
	unsigned type;
	int result;
	union {
		unsigned number;
		unsigned long long wide;
	};
};
_Static_assert(sizeof(struct abi_field) == 40, "nvmlFieldValue_t");

struct abi_fabric {
	unsigned version;
	unsigned char cluster[16];
	int status;
	unsigned clique;
	unsigned char state;
	unsigned health;
};
_Static_assert(sizeof(struct abi_fabric) == 36, "nvmlGpuFabricInfo_v2_t");

enum {
	CAP_P2P_SUPPORTED = 0,
	FIELD_LINK_STATE = 165,
	FIELD_C2C_COUNT = 170,
	FIELD_C2C_STATUS = 171,
	FIELD_C2C_BW = 172,
	P2P_READ = 0,
	P2P_WRITE = 1,
	FABRIC_VERSION = 36 | 2 << 24
};

struct nvml {
	void *library;
	uint32_t gpu_count;
	char driver[64];
	int (*init)(void);
	int (*shutdown)(void);
	const char *(*error_string)(int);
	int (*driver_version)(char *, unsigned);
	int (*count)(unsigned *);
	int (*by_index)(unsigned, handle *);
	int (*name)(handle, char *, unsigned);
	int (*pci)(handle, struct abi_pci *);
	int (*capability)(handle, int *, int *);
	int (*gen)(handle, unsigned *);
	int (*width)(handle, unsigned *);
	int (*gen_max)(handle, unsigned *);
	int (*width_max)(handle, unsigned *);
	int (*link_cap)(handle, unsigned, unsigned, unsigned *);
	int (*link_state)(handle, unsigned, unsigned *);
	int (*link_remote)(handle, unsigned, struct abi_pci *);
	int (*fields)(handle, int, struct abi_field *);
	int (*mig)(handle, unsigned *, unsigned *);
	int (*fabric)(handle, struct abi_fabric *);
	int (*p2p)(handle, handle, unsigned, unsigned *);
};

/* Where each function goes, and the name of an older one that will do. */
static const struct symbol {
	const char *name, *older;
	size_t offset;
	bool is_needed;
} symbols[] = {
	{"nvmlInit_v2", "nvmlInit", offsetof(struct nvml, init), true},
	{"nvmlShutdown", NULL, offsetof(struct nvml, shutdown), true},
	{"nvmlErrorString", NULL, offsetof(struct nvml, error_string), false},
	{"nvmlSystemGetDriverVersion", NULL, offsetof(struct nvml, driver_version),
		false},
	{"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount", offsetof(struct nvml, count),
		true},
	{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex",
		offsetof(struct nvml, by_index), true},
	{"nvmlDeviceGetName", NULL, offsetof(struct nvml, name), false},
	{"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", offsetof(struct nvml, pci),
		true},
	{"nvmlDeviceGetCudaComputeCapability", NULL, offsetof(struct nvml, capability),
		false},
	{"nvmlDeviceGetCurrPcieLinkGeneration", NULL, offsetof(struct nvml, gen), false},
	{"nvmlDeviceGetCurrPcieLinkWidth", NULL, offsetof(struct nvml, width), false},
	{"nvmlDeviceGetMaxPcieLinkGeneration", NULL, offsetof(struct nvml, gen_max),
		false},
	{"nvmlDeviceGetMaxPcieLinkWidth", NULL, offsetof(struct nvml, width_max), false},
	{"nvmlDeviceGetNvLinkCapability", NULL, offsetof(struct nvml, link_cap), false},
	{"nvmlDeviceGetNvLinkState", NULL, offsetof(struct nvml, link_state), false},
	{"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo",
		offsetof(struct nvml, link_remote), false},
	{"nvmlDeviceGetFieldValues", NULL, offsetof(struct nvml, fields), false},
	{"nvmlDeviceGetMigMode", NULL, offsetof(struct nvml, mig), false},
	{"nvmlDeviceGetGpuFabricInfoV", NULL, offsetof(struct nvml, fabric), false},
	{"nvmlDeviceGetP2PStatus", NULL, offsetof(struct nvml, p2p), false},
};

static const char *nvml_says(const struct nvml *nvml, int code)
{
	const char *text = nvml->error_string ? nvml->error_string(code) : NULL;

	return text ? text : "no reason given";
}

static bool symbols_load(struct nvml *nvml, const char *name, char *why, size_t room)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		const struct symbol *symbol = &symbols[i];
		void *found = dlsym(nvml->library, symbol->name);

		if (!found && symbol->older)
			found = dlsym(nvml->library, symbol->older);
		if (!found && symbol->is_needed) {
			snprintf(why, room, "%s has no %s", name, symbol->name);
			return false;
		}
		memcpy((char *)nvml + symbol->offset, &found, sizeof(found));
	}
	return true;
}

struct nvml *nvml_open(const char *library, char *why, size_t room)
{
	const char *name = library ? library : "libnvidia-ml.so.1";
	struct nvml *nvml = calloc(1, sizeof(*nvml));
	unsigned count = 0;
	int code;

	if (!nvml) {
		snprintf(why, room, "no memory");
		return NULL;
	}
	if (strchr(name, '/') && file_is_special(name)) {
		snprintf(why, room, "%s is no regular file", name);
		goto err_free;
	}
	nvml->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->library) {
		const char *cause = dlerror();

		snprintf(why, room, "no NVML library (%s)", cause ? cause : name);
		goto err_free;
	}
	if (!symbols_load(nvml, name, why, room))
		goto err_unload;
	code = nvml->init();
	if (code) {
		snprintf(why, room, "NVML does not start: %s", nvml_says(nvml, code));
		goto err_unload;
	}
	code = nvml->count(&count);
	if (code)
		count = 0;
	nvml->gpu_count = count < NVML_GPUS_MAX ? count : NVML_GPUS_MAX;
	if (!nvml->driver_version ||
		nvml->driver_version(nvml->driver, sizeof(nvml->driver)))
		nvml->driver[0] = '\0';
	nvml->driver[sizeof(nvml->driver) - 1] = '\0';
	return nvml;

err_unload:
	dlclose(nvml->library);
err_free:
	free(nvml);
	return NULL;
}

void nvml_close(struct nvml *nvml)
{
	if (!nvml)
		return;
	nvml->shutdown();
	dlclose(nvml->library);
	free(nvml);
}

uint32_t nvml_gpu_count(const struct nvml *nvml)
{
	return nvml->gpu_count;
}

const char *nvml_driver(const struct nvml *nvml)
{
	return nvml->driver;
}

/* A number a function gives, 0 when it is missing or fails. */
static unsigned ask(int (*function)(handle, unsigned *), handle device)
{
	unsigned value = 0;

	return function && !function(device, &value) ? value : 0;
}

/* One field; 0 when this driver or GPU does not know it. */
static unsigned field(
	const struct nvml *nvml, handle device, unsigned number, unsigned scope)
{
	struct abi_field value = {.field = number, .scope = scope};

	if (!nvml->fields || nvml->fields(device, 1, &value) || value.result)
		return 0;
	return value.number;
}

/* How many NVLinks NCCL looks at. */
static uint32_t links_of(int sm)
{
	if (sm < 60)
		return 0;
	return sm < 70 ? 4 : sm < 80 ? 6 : sm < 90 ? 12 : NVML_LINKS_MAX;
}

static bool link_is_up(const struct nvml *nvml, handle device, int sm, unsigned link)
{
	unsigned state = 0;

	if (sm >= 90)
		return field(nvml, device, FIELD_LINK_STATE, link) == 1;
	return nvml->link_state && !nvml->link_state(device, link, &state) && state == 1;
}

static void links_read(const struct nvml *nvml, handle device, struct nvml_gpu *gpu)
{
	for (unsigned link = 0; link < links_of(gpu->sm); link++) {
		struct abi_pci remote = {0};
		char *end = gpu->links[gpu->link_count];
		unsigned able = 0;

		if (!nvml->link_cap ||
			nvml->link_cap(device, link, CAP_P2P_SUPPORTED, &able) || !able)
			continue;
		if (!link_is_up(nvml, device, gpu->sm, link) || !nvml->link_remote ||
			nvml->link_remote(device, link, &remote)) {
			gpu->links_down++;
			continue;
		}
		for (int i = 0; i < NVML_REMOTE_BYTES - 1 && remote.busid_legacy[i]; i++)
			end[i] = (char)tolower((unsigned char)remote.busid_legacy[i]);
		gpu->link_count++;
	}
}

static void c2c_read(const struct nvml *nvml, handle device, struct nvml_gpu *gpu)
{
	unsigned count = gpu->sm >= 90 ? field(nvml, device, FIELD_C2C_COUNT, 0) : 0;

	for (unsigned link = 0; link < count && link < 64; link++) {
		unsigned bw;

		if (field(nvml, device, FIELD_C2C_STATUS, link) != 1)
			continue;
		bw = field(nvml, device, FIELD_C2C_BW, link);
		if (!bw)
			continue;
		gpu->c2c_bw_mbs = bw;
		gpu->c2c_count++;
	}
}

static void fabric_read(const struct nvml *nvml, handle device, struct nvml_gpu *gpu)
{
	struct abi_fabric fabric = {.version = FABRIC_VERSION};

	if (!nvml->fabric || nvml->fabric(device, &fabric) || fabric.state > FABRIC_READY)
		return;
	gpu->fabric = (enum nvml_fabric)fabric.state;
	gpu->fabric_status = fabric.status;
	gpu->clique = fabric.clique;
	memcpy(gpu->cluster, fabric.cluster, sizeof(gpu->cluster));
}

bool nvml_gpu_read(const struct nvml *nvml, uint32_t index, struct nvml_gpu *gpu,
	char *why, size_t room)
{
	unsigned mig = 0, pending = 0;
	int major = 0, minor = 0, code;
	struct abi_pci pci = {0};
	handle device;

	*gpu = (struct nvml_gpu){.index = (int)index};
	code = nvml->by_index(index, &device);
	if (!code)
		code = nvml->pci(device, &pci);
	if (code) {
		snprintf(why, room, "%s", nvml_says(nvml, code));
		return false;
	}
	/* Linux writes a domain with four digits, and with more only when it must. */
	snprintf(gpu->busid, sizeof(gpu->busid), "%04x:%02x:%02x.0", pci.domain,
		pci.bus & 0xff, pci.device & 0x1f);
	gpu->pci_device = pci.pci_device;
	gpu->pci_subsystem = pci.pci_subsystem;
	if (!nvml->name || nvml->name(device, gpu->name, sizeof(gpu->name)))
		gpu->name[0] = '\0';
	gpu->name[sizeof(gpu->name) - 1] = '\0';
	if (nvml->capability && !nvml->capability(device, &major, &minor))
		gpu->sm = major * 10 + minor;
	gpu->gen = ask(nvml->gen, device);
	gpu->width = ask(nvml->width, device);
	gpu->gen_max = ask(nvml->gen_max, device);
	gpu->width_max = ask(nvml->width_max, device);
	gpu->is_mig = nvml->mig && !nvml->mig(device, &mig, &pending) && mig == 1;
	links_read(nvml, device, gpu);
	c2c_read(nvml, device, gpu);
	fabric_read(nvml, device, gpu);
	return true;
}

bool nvml_p2p_ok(const struct nvml *nvml, uint32_t a, uint32_t b, bool *known)
{
	unsigned read = 0, write = 0;
	handle one, other;

	*known = nvml->p2p && !nvml->by_index(a, &one) && !nvml->by_index(b, &other) &&
		 !nvml->p2p(one, other, P2P_READ, &read) &&
		 !nvml->p2p(one, other, P2P_WRITE, &write);
	return *known && !read && !write;
}
