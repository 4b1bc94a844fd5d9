#include "setting.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/edits.h"
#include "say.h"

enum { NEAR_EDITS = 3 };

extern char **environ;

static const char prefix[] = "OFI_NCCL_";

/* clang-format off */
static const struct setting_info table[SET_COUNT] = {
	[SET_USE_IPV6_TCP] = {"OFI_NCCL_USE_IPV6_TCP", false, 0, 0, 1, .meaning =
		"1: IPv6 addresses, too, with a provider of TCP"},
	[SET_EXCLUDE_TCP_IF] = {"OFI_NCCL_EXCLUDE_TCP_IF", true, .text_fallback = "lo,docker0", .meaning =
		"comma list of interfaces that a provider of TCP does not use"},
	[SET_CQ_READ_COUNT] = {"OFI_NCCL_CQ_READ_COUNT", false, 4, 1, 64, .meaning =
		"completions taken at once"},
	[SET_CQ_SIZE] = {"OFI_NCCL_CQ_SIZE", false, 12288, 64, 1 << 20, .meaning =
		"completions that a queue holds"},
	[SET_PROTOCOL] = {"OFI_NCCL_PROTOCOL", true, .meaning =
		"SENDRECV or RDMA; unset: by the platform where the provider is efa, else SENDRECV"},
	[SET_EAGER_MAX_SIZE] = {"OFI_NCCL_EAGER_MAX_SIZE", false, 8192, -1, 8192, .meaning =
		"bytes of the longest message that RDMA sends before it is asked for; -1: none"},
	[SET_MIN_STRIPE_SIZE] = {"OFI_NCCL_MIN_STRIPE_SIZE", false, 131072, 1, 1 << 30, .meaning =
		"bytes that RDMA sends over one rail at least, before it uses another as well"},
	[SET_FORCE_NUM_RAILS] = {"OFI_NCCL_FORCE_NUM_RAILS", false, 0, 0, 4, .meaning =
		"rails of each device of RDMA, on as many interfaces as there are; 0: by the PCI tree"},
	[SET_NET_LATENCY] = {"OFI_NCCL_NET_LATENCY", false, -1, 0, 1000000, .meaning =
		"microseconds that NCCL's model is told; unset: by the platform"},
	[SET_MR_CACHE_DISABLE] = {"OFI_NCCL_MR_CACHE_DISABLE", false, 0, 0, 1, .meaning =
		"1: register memory anew each time"},
	[SET_PLATFORM] = {"OFI_NCCL_PLATFORM", true, .meaning =
		"AWS or Default; unset: AWS on a machine of Amazon's"},
	[SET_FORCE_PRODUCT_NAME] = {"OFI_NCCL_FORCE_PRODUCT_NAME", true, .meaning =
		"the instance type to be taken for, such as p5.48xlarge"},
	[SET_TUNER_TYPE] = {"OFI_NCCL_TUNER_TYPE", true, .text_fallback = "REGION", .meaning =
		"REGION: the tuner's tables; INTERNAL: the library chooses; MODEL: as REGION"},
	[SET_ABORT_ON_ERROR] = {"OFI_NCCL_ABORT_ON_ERROR", false, 0, 0, 1, .meaning =
		"1: abort() where an error would be returned"},
	[SET_GDR_FLUSH_DISABLE] = {"OFI_NCCL_GDR_FLUSH_DISABLE", false, 0, 0, 1, .meaning =
		"1: what was written to GPU memory is not flushed"},
	[SET_CUDA_FLUSH_ENABLE] = {"OFI_NCCL_CUDA_FLUSH_ENABLE", false, 0, 0, 1, .meaning =
		"1: GPU memory is flushed by CUDA's driver, and not by a read of it"},
	[SET_DISABLE_DMABUF] = {"OFI_NCCL_DISABLE_DMABUF", false, 0, 0, 1, .meaning =
		"1: GPU memory is not registered by dma-buf"},
	[SET_DISABLE_GDR_REQUIRED_CHECK] = {"OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK", false, 0, 0, 1, .meaning =
		"1: go on where an instance should take GPU memory on the network, and does not"},
	[SET_NIC_DUP_CONNS] = {"OFI_NCCL_NIC_DUP_CONNS", false, 0, 0, 16, .meaning =
		"devices that SENDRECV makes of each interface; unset: by the platform"},
	[SET_SKIP_LONE] = {"OFI_NCCL_SKIP_NICS_WITHOUT_ACCEL_AT_SAME_PCI_LEVEL", false, 0, 0, 1, .meaning =
		"1: RDMA leaves interfaces out that have no GPU beside them; unset: by the platform"},
	[SET_EARLY_COMPLETION] = {"OFI_NCCL_EARLY_COMPLETION", false, 0, 0, 1, .meaning =
		"1: RDMA has receives done, where NCCL looks for their data itself, when their sender is invited; "
		"unset: where the provider moves data by itself and OFI_NCCL_EAGER_MAX_SIZE is -1"},
	[SET_PROGRESS_MODEL] = {"OFI_NCCL_PROGRESS_MODEL", true, .text_fallback = "UNSPEC", .meaning =
		"AUTO or MANUAL: who moves messages on, the provider or who calls it; UNSPEC: as it likes"},
};

/* Names of aws-ofi-nccl that users may have set, and what is so here. */
static const struct {
	const char *name, *why;
} idle[] = {
	{"OFI_NCCL_MR_KEY_SIZE", "keys are given out by 32 bits"},
	{"OFI_NCCL_GIN_CQ_PROCESS_MAX_ITER", "there is no GPU-initiated networking"},
	{"OFI_NCCL_GDAKI_EFA_HW_COUNTER", "there is no GPU-initiated networking"},
	{"OFI_NCCL_DISABLE_NATIVE_RDMA_CHECK", "writes that a provider emulates are taken"},
	{"OFI_NCCL_SCHED_MAX_SMALL_RR_SIZE", "invitations take the first rail"},
	{"OFI_NCCL_RR_CTRL_MSG", "invitations take the first rail"},
	{"OFI_NCCL_RDMA_MIN_POSTED_EAGER_BUFFERS", "each connection has 16 places for short messages"},
	{"OFI_NCCL_RDMA_MAX_POSTED_EAGER_BUFFERS", "each connection has 16 places for short messages"},
	{"OFI_NCCL_RDMA_MIN_POSTED_CONTROL_BUFFERS", "each connection has a place for every invitation"},
	{"OFI_NCCL_RDMA_MAX_POSTED_CONTROL_BUFFERS", "each connection has a place for every invitation"},
	{"OFI_NCCL_RDMA_MIN_POSTED_BOUNCE_BUFFERS", "each connection has 16 places for short messages"},
	{"OFI_NCCL_RDMA_MAX_POSTED_BOUNCE_BUFFERS", "each connection has 16 places for short messages"},
	{"OFI_NCCL_CM_NUM_RX_BUFFERS", "a listener hears 8 calls at once"},
	{"OFI_NCCL_ERRORCHECK_MUTEX", "locks are checked by the thread sanitizer"},
	{"OFI_NCCL_ENDPOINT_PER_COMM", "each communicator has endpoints of its own from version 11 on"},
	{"OFI_NCCL_TUNER_NUM_CHANNELS", "there is no tuner by a model; its tables are used"},
	{"OFI_NCCL_TUNER_NET_LATENCY", "there is no tuner by a model; its tables are used"},
	{"OFI_NCCL_TUNER_NET_COMP_OVERHEAD", "there is no tuner by a model; its tables are used"},
	{"OFI_NCCL_USE_LOW_LATENCY_TC", "all messages have the same traffic class"},
	{"OFI_NCCL_DISABLE_CLOSE_MESSAGE", "closing says nothing to the other end"},
	{"OFI_NCCL_NVTX_TRACE_DIMENSION", "there are no traces of NVTX"},
};
/* clang-format on */
enum { IDLE_COUNT = sizeof(idle) / sizeof(idle[0]) };

static struct {
	bool is_given;
	int64_t number;
	const char *text;
} values[SET_COUNT];

const struct setting_info *setting_info(enum setting id)
{
	return &table[id];
}

static int number_read(enum setting id, const char *text)
{
	const struct setting_info *info = &table[id];
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 0);
	if (errno || end == text || *end || value < info->lowest || value > info->highest)
		return say_wrong(OFI_ARGUMENT,
			"%s is %s, which is no number from %lld to %lld: correct or "
			"unset "
			"it",
			info->name, text, (long long)info->lowest,
			(long long)info->highest);
	values[id].number = value;
	return OFI_OK;
}

static int setting_read(enum setting id)
{
	const struct setting_info *info = &table[id];
	const char *text = getenv(info->name);

	values[id].is_given = text && *text;
	values[id].number = info->fallback;
	values[id].text = values[id].is_given ? text : info->text_fallback;
	if (!values[id].is_given || info->is_text)
		return OFI_OK;
	return number_read(id, text);
}

const char *setting_nearest(const char *entry, struct setting_names *names)
{
	uint32_t least = names->most + 1;
	const char *nearest = NULL;
	char name[EDITS_BYTES];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
	names->is_known = false;
	for (int i = 0; i < names->count && !names->is_known; i++) {
		uint32_t edits = edits_between(name, names->names[i]);

		names->is_known = !strcmp(name, names->names[i]);
		if (edits < least) {
			least = edits;
			nearest = names->names[i];
		}
	}
	return names->is_known ? NULL : nearest;
}

/* Has no effect: because nobody knows it, or because it is not needed here. */
static void unknown_tell(const char *entry)
{
	const char *all[SET_COUNT], *nearest;
	struct setting_names names = {all, SET_COUNT, NEAR_EDITS, false};
	int bytes = (int)strcspn(entry, "=");

	for (int i = 0; i < IDLE_COUNT; i++)
		if ((int)strlen(idle[i].name) == bytes &&
			!strncmp(idle[i].name, entry, (size_t)bytes)) {
			say_info("%s has no effect in this plugin: %s", idle[i].name,
				idle[i].why);
			return;
		}
	for (int i = 0; i < SET_COUNT; i++)
		all[i] = table[i].name;
	nearest = setting_nearest(entry, &names);
	if (!names.is_known)
		say_wrong(OFI_OK,
			"%.*s is not a variable of this plugin and has no effect%s%s",
			bytes, entry, nearest ? "; is it meant to be " : "",
			nearest ? nearest : "");
}

int settings_read(void)
{
	int result = OFI_OK;

	for (int i = 0; i < SET_COUNT && !result; i++)
		result = setting_read((enum setting)i);
	for (char **entry = environ; !result && entry && *entry; entry++)
		if (!strncmp(*entry, prefix, sizeof(prefix) - 1))
			unknown_tell(*entry);
	return result;
}

int64_t setting_int(enum setting id)
{
	return values[id].number;
}

const char *setting_text(enum setting id)
{
	return values[id].text;
}

bool setting_is_given(enum setting id)
{
	return values[id].is_given;
}
