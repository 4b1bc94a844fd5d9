#include "device.h"

#include <limits.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fabric_names.h"
#include "gpu.h"
#include "group.h"
#include "platform.h"
#include "port.h"
#include "say.h"
#include "setting.h"

enum {
	SPEED_DEFAULT_MBPS = 10000,
	TAG_BITS_MIN = 33,
	MESSAGE_BYTES_MAX = 1 << 30,
	/* what is asked of libfabric: the oldest that has all we use, or dma-buf, too */
	API_OLD = FI_VERSION(1, 17),
	API_DMABUF = FI_VERSION(1, 20)
};

static struct ofi_device devices[DEVICES_MAX];
static int count;

/* From the best to the last; each is compared with the beginning of a provider's name, so
 * `tcp` is `tcp;ofi_rxm`, too. What is tcp from 1.18 on is net in 1.17. */
static const char *const order[] = {
	"efa", "verbs", "cxi", "opx", "psm3", "psm2", "net", "tcp", "sockets", "udp"};
enum { ORDER_COUNT = sizeof(order) / sizeof(order[0]) };

int provider_rank(const char *provider)
{
	for (int i = 0; i < ORDER_COUNT; i++)
		if (!strncmp(provider, order[i], strlen(order[i])))
			return i;
	return -1;
}

/* shm and others offer FI_HMEM for memory of the host alone, or copy. */
bool provider_takes_gpu(const char *provider)
{
	static const char *const those[] = {"efa", "verbs", "cxi", "opx"};

	for (size_t i = 0; i < sizeof(those) / sizeof(those[0]); i++)
		if (!strncmp(provider, those[i], strlen(those[i])))
			return true;
	return false;
}

/* tcp, which is net in 1.17, reads on only when the message in front is asked for; with
 * the layer ofi_rxm over it each is taken in. shm gives out a few buffers for all. */
bool provider_holds_up(const char *provider)
{
	static const char *const those[] = {"net", "tcp", "shm"};

	for (size_t i = 0; i < sizeof(those) / sizeof(those[0]); i++)
		if (!strcmp(provider, those[i]))
			return true;
	return false;
}

bool list_has(const char *list, const char *name)
{
	size_t bytes = strlen(name);

	while (list && *list) {
		size_t word = strcspn(list, ",");

		if (word == bytes && !strncmp(list, name, bytes))
			return true;
		list += word + (list[word] == ',');
	}
	return false;
}

static bool is_of_addresses(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR_IN ||
	       info->addr_format == FI_SOCKADDR_IN6 || info->addr_format == FI_SOCKADDR;
}

/* Interfaces of TCP come once for each address, and with those of no use. */
static bool is_wanted(const struct fi_info *info)
{
	const char *provider = info->fabric_attr->prov_name;

	if (provider_rank(provider) < 0 && !getenv("FI_PROVIDER"))
		return false;
	if (!is_of_addresses(info) || !strncmp(provider, "verbs", 5))
		return true;
	if (info->addr_format == FI_SOCKADDR_IN6 && !setting_int(SET_USE_IPV6_TCP))
		return false;
	return !list_has(setting_text(SET_EXCLUDE_TCP_IF), info->domain_attr->name);
}

static uint32_t api_version(void)
{
	return FI_VERSION_GE(fi_version(), API_DMABUF) ? API_DMABUF : API_OLD;
}

/* Usable bits of a tag. */
static int tag_bits(uint64_t format)
{
	return format ? 64 - __builtin_clzll(format) : 0;
}

/* What is no such word was refused by now (net.c). */
static enum fi_progress progress_wanted(void)
{
	const char *asked = setting_text(SET_PROGRESS_MODEL);

	if (!strcasecmp(asked, "AUTO"))
		return FI_PROGRESS_AUTO;
	return strcasecmp(asked, "MANUAL") ? FI_PROGRESS_UNSPEC : FI_PROGRESS_MANUAL;
}

static struct fi_info *hints_make(bool is_rdma, bool has_gpu)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_MSG | (is_rdma || has_gpu ? FI_RMA : 0) |
		      (has_gpu ? FI_HMEM : 0);
	hints->domain_attr->cq_data_size = is_rdma ? sizeof(uint32_t) : 0;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_ENDPOINT |
				      (has_gpu ? FI_MR_HMEM : 0);
	hints->domain_attr->threading = FI_THREAD_DOMAIN; /* we lock */
	hints->domain_attr->data_progress = progress_wanted();
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	return hints;
}

/* The provider to use: the first wanted of the best kind. */
static const struct fi_info *best_of(const struct fi_info *list)
{
	const struct fi_info *best = NULL;
	int best_rank = INT_MAX;

	for (const struct fi_info *info = list; info; info = info->next) {
		int rank = provider_rank(info->fabric_attr->prov_name);

		if (!is_wanted(info) ||
			tag_bits(info->ep_attr->mem_tag_format) < TAG_BITS_MIN)
			continue;
		if (rank < 0)
			rank = ORDER_COUNT;
		if (rank < best_rank) {
			best_rank = rank;
			best = info;
		}
	}
	return best;
}

static int link_speed(const char *interface)
{
	char path[DEVICE_PATH_BYTES];
	long speed = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", interface);
	file = strchr(interface, '/') ? NULL : fopen(path, "re");
	if (file) {
		char text[32] = "";

		if (fgets(text, sizeof(text), file))
			speed = strtol(text, NULL, 10);
		fclose(file);
	}
	return speed > 0 && speed < 100000000 ? (int)speed : SPEED_DEFAULT_MBPS;
}

static void nic_take(const struct fi_info *info, struct ofi_device *device)
{
	const struct fid_nic *nic = info->nic;
	const struct fi_pci_attr *pci;
	char path[DEVICE_PATH_BYTES], *real;

	if (nic && nic->link_attr && nic->link_attr->speed)
		device->speed_mbps = (int)(nic->link_attr->speed / 1000000);
	else
		device->speed_mbps = link_speed(info->domain_attr->name);
	if (platform_here()->nic_mbps && !strncmp(info->fabric_attr->prov_name, "efa", 3))
		device->speed_mbps = platform_here()->nic_mbps;
	if (!nic || !nic->bus_attr || nic->bus_attr->bus_type != FI_BUS_PCI)
		return;
	pci = &nic->bus_attr->attr.pci;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x",
		pci->domain_id, pci->bus_id, pci->device_id, pci->function_id);
	real = realpath(path, NULL);
	snprintf(device->pci_path, sizeof(device->pci_path), "%s", real ? real : "");
	free(real);
}

/* The same for a host and card, and no other's: of the host's name. */
static uint64_t guid_make(int index)
{
	char name[DEVICE_NAME_BYTES] = "";
	uint64_t hash = 1469598103934665603ull;

	gethostname(name, sizeof(name) - 1);
	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211ull;
	return hash << 8 | (uint64_t)index;
}

static bool is_known_already(const struct fi_info *info)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(devices[i].name, info->domain_attr->name) &&
			devices[i].infos[0]->addr_format == info->addr_format)
			return true;
	return false;
}

static void device_add(const struct fi_info *info, bool has_gpu)
{
	struct ofi_device *device = &devices[count];
	size_t most = info->ep_attr->max_msg_size;

	if (count == DEVICES_MAX || is_known_already(info))
		return;
	*device = (struct ofi_device){
		.infos = {fi_dupinfo(info)}, .rail_count = 1, .nic_count = 1, .port = 1};
	if (!device->infos[0])
		return;
	snprintf(device->name, sizeof(device->name), "%s", info->domain_attr->name);
	nic_take(info, device);
	device->guid = guid_make(count);
	device->message_bytes_max = most < MESSAGE_BYTES_MAX ? most : MESSAGE_BYTES_MAX;
	device->needs_known = info->domain_attr->mr_mode & FI_MR_LOCAL;
	device->takes_gpu = has_gpu;
	device->takes_dmabuf = has_gpu && api_version() >= API_DMABUF &&
			       !setting_int(SET_DISABLE_DMABUF);
	device->is_reg_global = !(info->domain_attr->mr_mode & FI_MR_ENDPOINT);
	device->holds_up = provider_holds_up(info->fabric_attr->prov_name);
	count++;
}

static int none_tell(int rc, bool is_any, bool is_rdma)
{
	const char *named = getenv("FI_PROVIDER");
	const char *near = named ? fabric_provider_near(named) : NULL;

	if (is_any)
		return say_wrong(OFI_SYSTEM,
			"no interface is left: OFI_NCCL_EXCLUDE_TCP_IF is %s; set it to "
			"nothing that is needed, such as none",
			setting_text(SET_EXCLUDE_TCP_IF));
	return say_wrong(OFI_SYSTEM,
		"no provider of libfabric offers tagged messages%s%s%s%s%s (%s): "
		"see fi_info, and whether its library and device are there",
		is_rdma ? " and writes" : "",
		named ? " of those that FI_PROVIDER names, " : "", named ? named : "",
		near ? "; is it meant to be " : "", near ? near : "",
		rc ? fi_strerror(-rc) : "none of use");
}

static void devices_forget(void)
{
	for (int i = 0; i < count; i++)
		fi_freeinfo(devices[i].infos[0]);
	count = 0;
}

/* The interfaces of the best provider, or of one that is named; is there any? What is
 * wrong is said, or not. */
static bool interfaces_ask(bool is_rdma, const char *gpu_provider, bool is_quiet)
{
	struct fi_info *hints = hints_make(is_rdma, gpu_provider), *list = NULL;
	uint32_t version = gpu_provider ? api_version() : API_OLD;
	int rc = hints ? fi_getinfo(version, NULL, NULL, 0, hints, &list) : -FI_ENOMEM;
	const struct fi_info *best = rc ? NULL : best_of(list);
	const char *provider = gpu_provider ? gpu_provider
			       : best	    ? best->fabric_attr->prov_name
					    : NULL;

	for (const struct fi_info *info = best ? list : NULL; info; info = info->next)
		if (is_wanted(info) && !strcmp(info->fabric_attr->prov_name, provider))
			device_add(info, gpu_provider);
	if (!count && !is_quiet)
		none_tell(rc, list, is_rdma);
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return count;
}

/* May its endpoints use memory of GPUs where it is, and without calls of CUDA, which
 * could wait for the kernel that waits for the message? */
static bool gpu_is_reached(struct fi_info *info, bool is_rdma, bool *keeps_lines)
{
	struct ofi_rail rail = {0};
	int rc = fi_fabric(info->fabric_attr, &rail.fabric, NULL);

	if (!rc)
		rc = fi_domain(rail.fabric, info, &rail.domain, NULL);
	if (!rc)
		rc = fi_endpoint(rail.domain, info, &rail.end.ep, NULL);
	if (!rc)
		rc = rail_gpu_set(&rail);
	*keeps_lines = !rc && rail_lines_set(&rail, is_rdma);
	if (rc)
		say_info("GPU memory goes through the host: %s does not take it: %s",
			info->domain_attr->name, fi_strerror(-rc));
	rail_close(&rail);
	return !rc;
}

/* Of the same provider, with memory of GPUs, where the process has a driver. */
static void interfaces_with_gpu(bool is_rdma)
{
	char provider[DEVICE_NAME_BYTES];
	bool keeps_lines = false, is_reached;

	snprintf(provider, sizeof(provider), "%s",
		devices[0].infos[0]->fabric_attr->prov_name);
	if (!provider_takes_gpu(provider) || !gpu_is_there())
		return;
	devices_forget();
	is_reached = interfaces_ask(is_rdma, provider, true) &&
		     gpu_is_reached(devices[0].infos[0], is_rdma, &keeps_lines);
	for (int i = 0; i < count; i++)
		devices[i].keeps_lines = keeps_lines;
	if (is_reached)
		return;
	devices_forget();
	interfaces_ask(is_rdma, NULL, true);
}

static bool interfaces_list(bool is_rdma, bool is_quiet)
{
	if (!interfaces_ask(is_rdma, NULL, is_quiet))
		return false;
	interfaces_with_gpu(is_rdma);
	return count;
}

/* One device of several interfaces: the first stands for them. */
static void rails_join(const struct ofi_device *nics, const struct nic_groups *groups)
{
	int forced = (int)setting_int(SET_FORCE_NUM_RAILS);

	count = 0;
	for (int g = 0; g < groups->count; g++) {
		struct ofi_device *device = &devices[count++];
		int rails = forced ? forced : groups->sizes[g];

		rails = rails > RAILS_MAX ? RAILS_MAX : rails;
		*device = nics[groups->members[g][0]];
		device->nic_count = groups->sizes[g] < rails ? groups->sizes[g] : rails;
		device->speed_mbps *= device->nic_count;
		device->rail_count = rails;
		device->holds_up = false; /* whatever comes is asked for */
		device->is_rdma = true;
		for (int r = 0; r < rails; r++)
			device->infos[r] =
				nics[groups->members[g][r % groups->sizes[g]]].infos[0];
	}
}

static void rails_group(void)
{
	static struct ofi_device nics[DEVICES_MAX]; /* owns the infos from now on */
	const char *paths[DEVICES_MAX];
	struct nic_groups groups;
	int forced = (int)setting_int(SET_FORCE_NUM_RAILS);

	memcpy(nics, devices, sizeof(nics));
	for (int i = 0; i < count; i++)
		paths[i] = nics[i].pci_path;
	if (forced)
		nics_group_evenly(count, forced, &groups);
	else
		nics_group_here(paths, count, &groups);
	if (setting_is_given(SET_SKIP_LONE) ? setting_int(SET_SKIP_LONE)
					    : platform_here()->skips_lone)
		nics_lone_drop(&groups);
	rails_join(nics, &groups);
}

/* Each as several devices, which are several connections. NCCL is not told where they
 * are, or it would take them for one. */
static void nics_double(void)
{
	int times = setting_is_given(SET_NIC_DUP_CONNS)
			    ? (int)setting_int(SET_NIC_DUP_CONNS)
			    : platform_here()->connections;
	int nic_count = count;

	if (times < 2)
		return;
	for (int i = 0; i < nic_count; i++)
		devices[i].pci_path[0] = '\0';
	for (; count < times * nic_count && count < DEVICES_MAX; count++) {
		const struct ofi_device nic = devices[count % nic_count];
		struct ofi_device *device = &devices[count];

		*device = nic;
		snprintf(device->name, sizeof(device->name), "%.*s-%d",
			DEVICE_NAME_BYTES - 12, nic.name, count / nic_count);
		device->guid = guid_make(count);
	}
	say_info("%d nics are %d devices: several connections on each", nic_count, count);
}

static bool has_eager(void)
{
	return setting_int(SET_EAGER_MAX_SIZE) >= 0;
}

/* Can what is asked for be had? */
static int early_check(void)
{
	if (!setting_int(SET_EARLY_COMPLETION) || !has_eager())
		return OFI_OK;
	return say_wrong(OFI_ARGUMENT,
		"OFI_NCCL_EARLY_COMPLETION=1 needs OFI_NCCL_EAGER_MAX_SIZE=-1: set it, "
		"or unset the first");
}

/* May a receive be done before its data is there? Only what is written by itself comes
 * there then: who has it done looks for it no more. */
static void early_choose(void)
{
	bool is_asked = setting_int(SET_EARLY_COMPLETION);
	bool is_off = setting_is_given(SET_EARLY_COMPLETION) && !is_asked;

	for (int i = 0; i < count; i++) {
		const struct fi_domain_attr *domain = devices[i].infos[0]->domain_attr;

		devices[i].ends_early = !is_off && !has_eager() &&
					domain->data_progress == FI_PROGRESS_AUTO;
	}
	if (is_asked && !devices[0].ends_early)
		say_info("OFI_NCCL_EARLY_COMPLETION has no effect: %s moves data only "
			 "when "
			 "it is called",
			devices[0].infos[0]->fabric_attr->prov_name);
}

static bool is_of(const char *provider)
{
	const char *name = devices[0].infos[0]->fabric_attr->prov_name;

	return !strncmp(name, provider, strlen(provider));
}

static int devices_list(void)
{
	const char *asked = setting_text(SET_PROTOCOL);
	bool is_rdma = asked && !strcasecmp(asked, "RDMA");
	int nic_count;

	if (!interfaces_list(is_rdma, false))
		return OFI_SYSTEM;
	if (!asked && platform_here()->wants_rdma && is_of("efa")) {
		devices_forget();
		is_rdma = interfaces_list(true, true);
		if (!is_rdma && !interfaces_list(false, false))
			return OFI_SYSTEM;
	}
	if (is_rdma && early_check()) {
		devices_forget(); /* the next communicator is refused, too */
		return OFI_ARGUMENT;
	}
	nic_count = count;
	if (is_rdma)
		rails_group();
	else
		nics_double();
	say_info("Selected provider is %s, fabric is %s (found %d nics)",
		devices[0].infos[0]->fabric_attr->prov_name,
		devices[0].infos[0]->fabric_attr->name, nic_count);
	if (devices[0].takes_gpu) {
		say_info("Support for global registrations: %s",
			devices[0].is_reg_global ? "true" : "false");
		say_info("Support for DMA-BUF registrations: %s",
			devices[0].takes_dmabuf ? "true" : "false");
	}
	if (is_rdma) {
		early_choose();
		say_info("%d devices of up to %d rails", count, devices[0].rail_count);
	}
	return OFI_OK;
}

int devices_find(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	int result;

	pthread_mutex_lock(&lock);
	result = count ? OFI_OK : devices_list();
	pthread_mutex_unlock(&lock);
	return result;
}

int device_count(void)
{
	return count;
}

const struct ofi_device *device_at(int index)
{
	return index >= 0 && index < count ? &devices[index] : NULL;
}
