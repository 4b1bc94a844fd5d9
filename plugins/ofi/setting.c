#include "setting.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

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
	[SET_PROTOCOL] = {"OFI_NCCL_PROTOCOL", true, .text_fallback = "SENDRECV", .meaning =
		"SENDRECV; RDMA is refused"},
	[SET_NET_LATENCY] = {"OFI_NCCL_NET_LATENCY", false, -1, 0, 1000000, .meaning =
		"microseconds that NCCL's model is told; unset: by the platform"},
	[SET_MR_CACHE_DISABLE] = {"OFI_NCCL_MR_CACHE_DISABLE", false, 0, 0, 1, .meaning =
		"1: register memory anew each time"},
	[SET_PLATFORM] = {"OFI_NCCL_PLATFORM", true, .meaning =
		"AWS or Default; unset: AWS on a machine of Amazon's"},
	[SET_FORCE_PRODUCT_NAME] = {"OFI_NCCL_FORCE_PRODUCT_NAME", true, .meaning =
		"the instance type to be taken for, such as p5.48xlarge"},
	[SET_TUNER_TYPE] = {"OFI_NCCL_TUNER_TYPE", true, .text_fallback = "REGION", .meaning =
		"REGION: the tuner's tables; INTERNAL: the library chooses"},
	[SET_ABORT_ON_ERROR] = {"OFI_NCCL_ABORT_ON_ERROR", false, 0, 0, 1, .meaning =
		"1: abort() where an error would be returned"},
};
/* clang-format on */

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

/* How many letters differ, at most: the length of the longer where they have nothing in
 * common. */
static size_t name_distance(const char *a, size_t a_bytes, const char *b)
{
	enum { NAME_MAX_BYTES = 64 };
	size_t row[NAME_MAX_BYTES + 1], b_bytes = strlen(b);

	if (a_bytes > NAME_MAX_BYTES || b_bytes > NAME_MAX_BYTES)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_bytes; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_bytes; i++) {
		size_t corner = row[0]++;

		for (size_t j = 1; j <= b_bytes; j++) {
			size_t best = corner + (a[i - 1] != b[j - 1]);

			corner = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[b_bytes];
}

static void unknown_tell(const char *entry)
{
	size_t bytes = strcspn(entry, "="), best = SIZE_MAX;
	const char *nearest = "";

	for (int i = 0; i < SET_COUNT; i++) {
		size_t distance = name_distance(entry, bytes, table[i].name);

		if (!distance)
			return;
		if (distance < best) {
			best = distance;
			nearest = table[i].name;
		}
	}
	say_wrong(OFI_OK, "%.*s is not a variable of this plugin and has no effect%s%s",
		(int)bytes, entry, best <= 3 ? "; is it meant to be " : "",
		best <= 3 ? nearest : "");
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
