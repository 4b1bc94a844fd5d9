#include "platform.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "say.h"
#include "setting.h"

#define BUFFERS "NCCL_BUFFSIZE=8388608", "NCCL_P2P_NET_CHUNKSIZE=524288"
#define HOPPER                                                                           \
	BUFFERS, "NCCL_NVLSTREE_MAX_CHUNKSIZE=524288", "NCCL_NVLS_CHUNKSIZE=524288",     \
		"NCCL_NET_FORCE_FLUSH=0"

enum { LATENCY_DEFAULT_US = 75 };

/* The first that matches. */
static const struct platform table[] = {
	{"p4d.24xlarge", .exact = "p4d.24xlarge", .topology = "p4d-24xl-topo.xml",
		.latency_us = 75, .wants_gpu = true, .variables = {BUFFERS}},
	{"p4de.24xlarge", .exact = "p4de.24xlarge", .topology = "p4de-24xl-topo.xml",
		.latency_us = 75, .wants_gpu = true, .variables = {BUFFERS}},
	{"p3dn.24xlarge", .exact = "p3dn.24xlarge", .latency_us = 150, .connections = 4},
	{"p5.4xlarge", .exact = "p5.4xlarge", .latency_us = 75},
	{"p5/p5e", .begins = {"p5.", "p5e."}, .latency_us = 75, .wants_rdma = true,
		.wants_gpu = true, .variables = {HOPPER}},
	{"p5en", .begins = {"p5en"}, .latency_us = 35, .wants_rdma = true,
		.wants_gpu = true, .keeps_lines = true, .nic_mbps = 200000,
		.variables = {HOPPER, "NCCL_NETDEVS_POLICY=max:1"}},
	{"p6-b200", .begins = {"p6-b200"}, .latency_us = 35, .wants_rdma = true,
		.wants_gpu = true, .variables = {HOPPER, "NCCL_NETDEVS_POLICY=max:1"}},
	{"p6-b300", .begins = {"p6-b300"}, .latency_us = 35, .wants_rdma = true,
		.wants_gpu = true, .variables = {HOPPER}},
	{"p6e-gb200", .begins = {"p6e-gb200"}, .latency_us = 35, .wants_rdma = true,
		.wants_gpu = true, .skips_lone = true, .variables = {HOPPER}},
	{"g5.48xlarge", .exact = "g5.48xlarge", .topology = "g5.48xl-topo.xml",
		.latency_us = 75},
	{"g7e.8xlarge", .exact = "g7e.8xlarge", .latency_us = 35, .variables = {BUFFERS}},
	{"g7e", .begins = {"g7e.12xlarge", "g7e.24xlarge", "g7e.48xlarge"},
		.latency_us = 35, .wants_rdma = true, .wants_gpu = true,
		.variables = {BUFFERS}},
	{"Trainium", .begins = {"trn"}, .latency_us = 75, .wants_rdma = true,
		.wants_gpu = true},
	{"inf", .begins = {"inf"}, .latency_us = 75, .wants_gpu = true},
};

/* Whatever comes after the p5. */
static const struct platform later = {"p-series", .latency_us = 35, .wants_rdma = true,
	.wants_gpu = true, .variables = {HOPPER}};

static bool is_later(const char *type)
{
	return type[0] == 'p' && isdigit((unsigned char)type[1]) &&
	       (type[1] >= '5' || isdigit((unsigned char)type[2]));
}

static bool matches(const struct platform *platform, const char *type)
{
	if (platform->exact && !strcmp(platform->exact, type))
		return true;
	for (int i = 0; i < 3 && platform->begins[i]; i++)
		if (!strncmp(type, platform->begins[i], strlen(platform->begins[i])))
			return true;
	return false;
}

const struct platform *platform_at(int index)
{
	return index < (int)(sizeof(table) / sizeof(table[0])) ? &table[index] : NULL;
}

const struct platform *platform_of(const char *type)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (matches(&table[i], type))
			return &table[i];
	return is_later(type) ? &later : NULL;
}

static bool line_read(const char *path, char *text, size_t room)
{
	FILE *file = fopen(path, "re");
	bool is_read = file && fgets(text, (int)room, file);

	if (file)
		fclose(file);
	if (is_read)
		text[strcspn(text, "\n")] = '\0';
	return is_read;
}

void platform_type(char type[PLATFORM_TYPE_BYTES])
{
	const char *forced = setting_text(SET_FORCE_PRODUCT_NAME);
	const char *platform = setting_text(SET_PLATFORM);
	bool is_forced = platform && !strcasecmp(platform, "AWS");
	char vendor[PLATFORM_TYPE_BYTES] = "";

	type[0] = '\0';
	if (platform && !is_forced)
		return;
	if (forced) {
		snprintf(type, PLATFORM_TYPE_BYTES, "%s", forced);
		return;
	}
	line_read("/sys/devices/virtual/dmi/id/sys_vendor", vendor, sizeof(vendor));
	if (is_forced || !strcmp(vendor, "Amazon EC2"))
		line_read("/sys/devices/virtual/dmi/id/product_name", type,
			PLATFORM_TYPE_BYTES);
}

/* NCCL reads what it has not read yet. */
bool platform_variable_set(const char *entry)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(entry, "="), entry);
	if (getenv(name)) {
		say_info("Skipping adding %s to environment, already set", name);
		return false;
	}
	say_info("Adding %s to environment", entry);
	return !setenv(name, entry + strlen(name) + 1, 0);
}

void platform_apply(const char *simple_why)
{
	static bool is_done;
	const struct platform *platform = platform_here();
	char type[PLATFORM_TYPE_BYTES];

	if (is_done)
		return;
	is_done = true;
	platform_type(type);
	if (!type[0]) {
		say_info("Plugin selected platform: Default");
		return;
	}
	say_info("Plugin selected platform: AWS");
	say_info("Configuring AWS-specific options");
	say_info("Internode latency set at %.1f us", (double)platform_latency());
	for (int i = 0; i < PLATFORM_VARIABLES_MAX && platform->variables[i]; i++)
		platform_variable_set(platform->variables[i]);
	if (simple_why) {
		say_info("Need to force simple protocol: %s", simple_why);
		platform_variable_set("NCCL_PROTO=simple");
	}
}

const struct platform *platform_here(void)
{
	static const struct platform unknown = {
		"unknown", .latency_us = LATENCY_DEFAULT_US};
	const struct platform *platform;
	char type[PLATFORM_TYPE_BYTES];

	platform_type(type);
	platform = type[0] ? platform_of(type) : NULL;
	return platform ? platform : &unknown;
}

float platform_latency(void)
{
	return setting_is_given(SET_NET_LATENCY) ? (float)setting_int(SET_NET_LATENCY)
						 : platform_here()->latency_us;
}
