/*
 * net.c - what NCCL loads: ncclNetPlugin_v6 to _v12, one table each over the same
 * functions.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "comm.h"
#include "fabric_names.h"
#include "gpu.h"
#include "platform.h"
#include "say.h"
#include "setting.h"
#include "topology.h"
#include "tune/regions.h"

#define EXPORT __attribute__((visibility("default")))

/* Those before version 11 share one for the process. */
static struct ofi_context shared = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NCCL_NET may ask for the plugin by an older name. */
static char name[32] = "Libfabric";

__attribute__((constructor)) static void name_choose(void)
{
	static const char *const names[] = {"AWS Libfabric", "OFI"};
	const char *asked = getenv("NCCL_NET");

	for (size_t i = 0; asked && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcasecmp(asked, names[i]))
			snprintf(name, sizeof(name), "%s", names[i]);
}

/* ---- beginning and end ---- */

/* One of the words, in any case? */
static int word_check(enum setting id, const char *const *words, int count)
{
	const char *asked = setting_text(id);
	char list[64] = "";

	for (int i = 0; asked && i < count; i++) {
		size_t used = strlen(list);

		if (!strcasecmp(asked, words[i]))
			return OFI_OK;
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? " or " : "",
			words[i]);
	}
	return asked ? say_wrong(OFI_ARGUMENT,
			       "%s is %s: it must be %s; correct or unset it",
			       setting_info(id)->name, asked, list)
		     : OFI_OK;
}

static int words_check(void)
{
	static const char *const protocols[] = {"SENDRECV", "RDMA"};
	static const char *const models[] = {"AUTO", "MANUAL", "UNSPEC"};
	static const char *const tuners[] = {"REGION", "INTERNAL", "MODEL"};
	int result = word_check(SET_PROTOCOL, protocols, 2);

	if (!result)
		result = word_check(SET_PROGRESS_MODEL, models, 3);
	if (!result)
		result = word_check(SET_TUNER_TYPE, tuners, 3);
	if (!result && !strcasecmp(setting_text(SET_TUNER_TYPE), "MODEL"))
		say_info("%s is MODEL, for which the tables of REGION are used: there is "
			 "no tuner by a model",
			setting_info(SET_TUNER_TYPE)->name);
	return result;
}

static bool is_efa(void)
{
	return !strncmp(device_at(0)->infos[0]->fabric_attr->prov_name, "efa", 3);
}

/* An instance that is bought for EFA should use it, and where it has GPUs for them, too:
 * what works without is slow, and nobody would know why. */
static int promise_check(void)
{
	char type[PLATFORM_TYPE_BYTES];

	platform_type(type);
	if (!platform_here()->wants_gpu || !gpu_is_there())
		return OFI_OK;
	if (!is_efa() && !getenv("FI_PROVIDER"))
		say_wrong(OFI_OK,
			"this is a %s, and libfabric has no provider efa here, so %s is "
			"used, which is much slower: see fi_info -p efa, whether the pod "
			"asks for vpc.amazonaws.com/efa, and LD_LIBRARY_PATH",
			type, device_at(0)->infos[0]->fabric_attr->prov_name);
	if (!is_efa() || device_at(0)->takes_gpu ||
		setting_int(SET_DISABLE_GDR_REQUIRED_CHECK))
		return OFI_OK;
	return say_wrong(OFI_SYSTEM,
		"GDR disabled on GDR-supported instance type %s: see whether the driver "
		"has dma-buf or nvidia_peermem is loaded; "
		"OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK=1 goes on without",
		type);
}

/* Why LL and LL128 cannot be used, in words that users know; NULL: they can. */
static const char *simple_why(void)
{
	const struct ofi_device *device = device_at(0);

	if (!is_efa())
		return NULL;
	if (!device->takes_gpu)
		return "GDR not supported";
	if (device->is_rdma && platform_here()->keeps_lines) {
		say_info(
			"Skipping NCCL_PROTO checks on %s + RDMA", platform_here()->name);
		return NULL;
	}
	return device->keeps_lines ? NULL : "byte delivery ordering not supported";
}

/* The tuner is in this file, and NCCL looks for one after its network. */
static void tuner_offer(void)
{
	static const char variable[] = "NCCL_TUNER_PLUGIN=";
	char type[PLATFORM_TYPE_BYTES], path[PATH_MAX];
	char entry[PATH_MAX + sizeof(variable)];
	Dl_info self;

	platform_type(type);
	if (!region_machine(type) || setting_int(SET_FORCE_NUM_RAILS) ||
		!strcasecmp(setting_text(SET_TUNER_TYPE), "INTERNAL") ||
		!dladdr(variable, &self) || !realpath(self.dli_fname, path))
		return;
	snprintf(entry, sizeof(entry), "%s%s", variable, path);
	platform_variable_set(entry);
}

/* libfabric 1.17 has the TCP of all later ones under the name of net; what it calls tcp
 * takes four messages where that takes one. Who wants that names its layer, too. */
static void tcp_prepare(void)
{
	const char *named = getenv("FI_PROVIDER");

	if (!named || strcmp(named, "tcp") ||
		FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)))
		return;
	say_info("FI_PROVIDER=tcp is taken for net, as which libfabric 1.17 has the tcp "
		 "of later ones; FI_PROVIDER=tcp,ofi_rxm is the older one");
	setenv("FI_PROVIDER", "tcp,net", 1);
}

/* net of 1.17 takes up to four short messages in that nobody has asked for yet, and keeps
 * a short one back that the socket has no room for; and forgets them when the connection
 * is closed at the other end, or here. With an end for each connection there is no need
 * for either. */
static void net_prepare(void)
{
	const char *protocol = setting_text(SET_PROTOCOL);

	if (FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)) ||
		(protocol && !strcasecmp(protocol, "RDMA")))
		return;
	platform_variable_set("FI_NET_MAX_SAVED=0");
	platform_variable_set("FI_NET_STAGING_SBUF_SIZE=0");
}

/* What has to be known before libfabric looks for its devices. */
static void fabric_prepare(void)
{
	char type[PLATFORM_TYPE_BYTES];

	tcp_prepare();
	net_prepare();
	platform_type(type);
	if (type[0])
		platform_variable_set("FI_EFA_FORK_SAFE=1");
}

static int all_find(void)
{
	uint32_t version = fi_version();
	int result;

	say_info("Initializing weft-ofi 0.1.0");
	say_info("Using Libfabric version %u.%u", FI_MAJOR(version), FI_MINOR(version));
	result = settings_read();
	if (!result)
		result = words_check();
	if (!result) {
		fabric_prepare();
		result = devices_find();
	}
	fabric_names_check();
	if (!result)
		result = promise_check();
	if (!result) {
		platform_apply(simple_why());
		topology_offer();
		tuner_offer();
	}
	if (!result)
		say_info("Using transport protocol %s%s",
			device_at(0)->is_rdma ? "RDMA" : "SENDRECV",
			setting_is_given(SET_PROTOCOL) ? " (user set)"
			: device_at(0)->is_rdma	       ? " (platform set)"
						       : "");
	return result;
}

/* Every communicator starts, from any thread, while others use what the first has found.
 */
static int start(plugin_log *log)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool is_started;
	int result = OFI_OK;

	say_open(log);
	pthread_mutex_lock(&lock);
	if (!is_started)
		result = all_find();
	is_started = !result;
	pthread_mutex_unlock(&lock);
	return result;
}

static int init_v10(plugin_log *log, plugin_event *event)
{
	(void)event;
	return start(log);
}

static int init_v11(void **context, uint64_t comm, struct plugin_wish *wish,
	plugin_log *log, plugin_event *event)
{
	struct ofi_context *made;
	int result = start(log);

	(void)comm;
	(void)wish;
	(void)event;
	if (result)
		return result;
	made = calloc(1, sizeof(*made));
	if (!made)
		return say_wrong(OFI_SYSTEM, "no memory for a communicator");
	pthread_mutex_init(&made->lock, NULL);
	*context = made;
	return OFI_OK;
}

static int finalize(void *opaque)
{
	context_end(opaque);
	return OFI_OK;
}

/* ---- devices ---- */

static int devices(int *count)
{
	*count = device_count();
	return OFI_OK;
}

static int properties_v12(int index, struct plugin_props_v12 *props)
{
	const struct ofi_device *device = device_at(index);

	if (!device)
		return say_wrong(OFI_ARGUMENT, "there is no device %d", index);
	*props = (struct plugin_props_v12){
		.who = {.name = (char *)(uintptr_t)device->name,
			.pci_path = device->pci_path[0]
					    ? (char *)(uintptr_t)device->pci_path
					    : NULL,
			.guid = device->guid},
		.memory = PLUGIN_HOST | (device->takes_gpu ? PLUGIN_CUDA : 0) |
			  (device->takes_dmabuf ? PLUGIN_DMABUF : 0),
		.is_reg_global = device->takes_gpu && device->is_reg_global,
		.link = {.speed_mbps = device->speed_mbps,
			.port = device->port,
			.latency_us = platform_latency(),
			.recvs_max = device->is_rdma ? RECVS_MAX : 1},
		.part_count = 1,
		.parts = {index},
		.message_bytes_max = device->message_bytes_max,
		.collective_bytes_max = device->message_bytes_max,
		.rail = -1,
		.plane = -1};
	return OFI_OK;
}

static int get_v12(int index, void *opaque)
{
	return properties_v12(index, opaque);
}

/* 9 and 10 lack its last member. */
static int properties_v11(int index, struct plugin_props_v11 *props)
{
	struct plugin_props_v12 all;
	int result = properties_v12(index, &all);

	if (result)
		return result;
	memcpy(props, &all, offsetof(struct plugin_props_v11, part_count));
	props->part_count = all.part_count;
	memset(props->parts, 0, sizeof(props->parts));
	props->parts[0] = index;
	props->message_bytes_max = all.message_bytes_max;
	props->collective_bytes_max = all.collective_bytes_max;
	return OFI_OK;
}

static int get_v9(int index, void *opaque)
{
	return properties_v11(index, opaque);
}

static int get_v11(int index, void *opaque)
{
	int result = properties_v11(index, opaque);

	if (!result)
		((struct plugin_props_v11 *)opaque)->multi_request_max = 1;
	return result;
}

static int get_v8(int index, void *opaque)
{
	struct plugin_props_v12 all;
	int result = properties_v12(index, &all);

	if (!result)
		*(struct plugin_props_v8 *)opaque = (struct plugin_props_v8){
			.who = all.who,
			.memory = all.memory,
			.is_reg_global = all.is_reg_global,
			.link = all.link};
	if (!result) /* sizes are ints there, and nobody asks for more */
		((struct plugin_props_v8 *)opaque)->link.recvs_max = 1;
	return result;
}

static int get_v6(int index, void *opaque)
{
	struct plugin_props_v12 all;
	int result = properties_v12(index, &all);

	if (!result)
		*(struct plugin_props_v6 *)opaque = (struct plugin_props_v6){
			.who = all.who, .memory = all.memory, .link = all.link};
	if (!result)
		((struct plugin_props_v6 *)opaque)->link.recvs_max = 1;
	return result;
}

static int get_v7(int index, void *opaque)
{
	struct plugin_props_v7 *props = opaque;

	props->device_type = props->device_version = 0;
	return get_v6(index, &props->v6);
}

/* ---- connections ---- */

static int listen_v11(void *context, int device, void *handle, void **listener)
{
	return comm_listen(context, device, handle, (struct ofi_comm **)listener);
}

static int listen_v6(int device, void *handle, void **listener)
{
	return listen_v11(&shared, device, handle, listener);
}

static int connect_v11(
	void *context, int device, void *handle, void **sender, void **in_gpu)
{
	if (in_gpu)
		*in_gpu = NULL;
	return comm_connect(context, device, handle, (struct ofi_comm **)sender);
}

static int connect_v10(
	int device, struct plugin_wish *wish, void *handle, void **sender, void **in_gpu)
{
	(void)wish;
	return connect_v11(&shared, device, handle, sender, in_gpu);
}

static int connect_v7(int device, void *handle, void **sender, void **in_gpu)
{
	return connect_v11(&shared, device, handle, sender, in_gpu);
}

static int connect_v6(int device, void *handle, void **sender)
{
	return connect_v11(&shared, device, handle, sender, NULL);
}

static int accept_v6(void *listener, void **receiver)
{
	return comm_accept(listener, (struct ofi_comm **)receiver);
}

static int accept_v7(void *listener, void **receiver, void **in_gpu)
{
	if (in_gpu)
		*in_gpu = NULL;
	return accept_v6(listener, receiver);
}

static int close_any(void *comm)
{
	return comm ? comm_close(comm) : OFI_OK;
}

/* ---- memory ---- */

/* Which GPU is it of? */
static int gpu_locate(struct known_range *range)
{
	range->kind = KNOWN_CUDA;
	range->device = gpu_of(range->data);
	if (range->device >= 0)
		return OFI_OK;
	return say_wrong(OFI_ARGUMENT, "%p is no memory of a GPU, though NCCL says so",
		(void *)range->data);
}

static int reg_v8(void *comm, void *data, size_t bytes, int memory, void **known)
{
	struct known_range range = {.data = data, .bytes = bytes};

	if (memory != PLUGIN_HOST && memory != PLUGIN_CUDA)
		return say_wrong(OFI_ARGUMENT,
			"memory of kind %d cannot be registered: this plugin takes "
			"memory of hosts and of GPUs",
			memory);
	if (memory == PLUGIN_CUDA && gpu_locate(&range))
		return OFI_ARGUMENT;
	return comm_reg(comm, &range, known);
}

static int reg_dmabuf(void *comm, void *data, size_t bytes, int memory, uint64_t offset,
	int fd, void **known)
{
	struct known_range range = {
		.data = data, .bytes = bytes, .fd = fd, .offset = offset};

	if (memory != PLUGIN_CUDA)
		return say_wrong(OFI_ARGUMENT,
			"a dma-buf of memory of kind %d cannot be registered", memory);
	if (gpu_locate(&range))
		return OFI_ARGUMENT;
	range.kind = KNOWN_DMABUF;
	return comm_reg(comm, &range, known);
}

static int reg_v6(void *comm, void *data, int bytes, int memory, void **known)
{
	return bytes < 0 ? OFI_ARGUMENT
			 : reg_v8(comm, data, (size_t)bytes, memory, known);
}

static int dereg(void *comm, void *known)
{
	return known ? comm_dereg(comm, known) : OFI_OK;
}

/* ---- messages ---- */

static int send_v9(
	void *comm, void *data, size_t bytes, int tag, void *known, void **request)
{
	const struct comm_place place = {data, bytes, known, tag, false};

	return comm_send(comm, &place, (struct ofi_request **)request);
}

static int send_v10(void *comm, void *data, size_t bytes, int tag, void *known,
	void *event, void **request)
{
	(void)event;
	return send_v9(comm, data, bytes, tag, known, request);
}

static int send_v6(
	void *comm, void *data, int bytes, int tag, void *known, void **request)
{
	return bytes < 0 ? OFI_ARGUMENT
			 : send_v9(comm, data, (size_t)bytes, tag, known, request);
}

/* NCCL's word in the place of a request: it looks for the data itself. */
static bool is_early(void *const *request)
{
	return *request == (void *)1;
}

static int recv_v9(void *comm, int count, void **data, size_t *bytes, int *tags,
	void **known, void **request)
{
	struct comm_place places[RECVS_MAX];

	for (int i = 0; i < count && i < RECVS_MAX; i++)
		places[i] = (struct comm_place){
			data[i], bytes[i], known[i], tags[i], is_early(request)};
	return comm_recv(comm, places, count, (struct ofi_request **)request);
}

static int recv_v10(void *comm, int count, void **data, size_t *bytes, int *tags,
	void **known, void **events, void **request)
{
	(void)events;
	return recv_v9(comm, count, data, bytes, tags, known, request);
}

/* One was offered (get_v8()). */
static int recv_v6(void *comm, int count, void **data, int *bytes, int *tags,
	void **known, void **request)
{
	size_t size = (size_t)bytes[0];

	*request = NULL; /* there is no such word there */
	return bytes[0] < 0 || count != 1
		       ? OFI_ARGUMENT
		       : recv_v9(comm, count, data, &size, tags, known, request);
}

/* One that has come stands for all: they came by the same rails. */
static int flush(
	void *comm, int count, void **data, int *bytes, void **known, void **request)
{
	int last = count - 1;

	*request = NULL;
	while (last >= 0 && bytes[last] <= 0)
		last--;
	return last < 0 ? OFI_OK
			: comm_flush(comm, data[last], known[last],
				  (struct ofi_request **)request);
}

static int test(void *request, int *is_done, int *bytes)
{
	return comm_test(request, is_done, bytes);
}

/* What all versions have alike. */
#define ALIKE                                                                            \
	.name = name, .devices = devices, .dereg = dereg, .reg_dmabuf = reg_dmabuf,      \
	.iflush = flush, .test = test, .close_send = close_any, .close_recv = close_any, \
	.close_listen = close_any

EXPORT const struct plugin_abi ncclNetPlugin_v6 = {ALIKE, .init.v6 = start,
	.properties = get_v6, .listen.v6 = listen_v6, .connect.v6 = connect_v6,
	.accept.v6 = accept_v6, .reg.v6 = reg_v6, .isend.v6 = send_v6,
	.irecv.v6 = recv_v6};

EXPORT const struct plugin_abi ncclNetPlugin_v7 = {ALIKE, .init.v6 = start,
	.properties = get_v7, .listen.v6 = listen_v6, .connect.v7 = connect_v7,
	.accept.v7 = accept_v7, .reg.v6 = reg_v6, .isend.v6 = send_v6,
	.irecv.v6 = recv_v6};

EXPORT const struct plugin_abi ncclNetPlugin_v8 = {ALIKE, .init.v6 = start,
	.properties = get_v8, .listen.v6 = listen_v6, .connect.v7 = connect_v7,
	.accept.v7 = accept_v7, .reg.v8 = reg_v8, .isend.v6 = send_v6,
	.irecv.v6 = recv_v6};

EXPORT const struct plugin_abi ncclNetPlugin_v9 = {ALIKE, .init.v6 = start,
	.properties = get_v9, .listen.v6 = listen_v6, .connect.v7 = connect_v7,
	.accept.v7 = accept_v7, .reg.v8 = reg_v8, .isend.v9 = send_v9,
	.irecv.v9 = recv_v9};

EXPORT const struct plugin_abi ncclNetPlugin_v10 = {ALIKE, .init.v10 = init_v10,
	.properties = get_v9, .listen.v6 = listen_v6, .connect.v10 = connect_v10,
	.accept.v7 = accept_v7, .reg.v8 = reg_v8, .isend.v10 = send_v10,
	.irecv.v10 = recv_v10};

EXPORT const struct plugin_abi ncclNetPlugin_v11 = {ALIKE, .init.v11 = init_v11,
	.properties = get_v11, .listen.v11 = listen_v11, .connect.v11 = connect_v11,
	.accept.v7 = accept_v7, .reg.v8 = reg_v8, .isend.v10 = send_v10,
	.irecv.v10 = recv_v10, .finalize = finalize};

EXPORT const struct plugin_abi ncclNetPlugin_v12 = {ALIKE, .init.v11 = init_v11,
	.properties = get_v12, .listen.v11 = listen_v11, .connect.v11 = connect_v11,
	.accept.v7 = accept_v7, .reg.v8 = reg_v8, .isend.v10 = send_v10,
	.irecv.v10 = recv_v10, .finalize = finalize};
