/* Bridges of the PCI bus: which of them send what one device writes to another one up to
 * the CPU (access control services). */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft/doctor/host_facts.h"

/* PCI Express: extended capabilities begin at 0x100; each has its id, and where the next
 * one is. */
enum {
	CONFIG_BYTES = 4096,
	EXTENDED = 0x100,
	CAP_ACS = 0x0d,
	ACS_CONTROL = 6,
	ACS_REDIRECT = 0x0c, /* of requests and of completions */
	CAPS_MAX = 96,
	PATH = 1024
};

static uint32_t word_at(const unsigned char *config, uint32_t at)
{
	return (uint32_t)config[at] | (uint32_t)config[at + 1] << 8 |
	       (uint32_t)config[at + 2] << 16 | (uint32_t)config[at + 3] << 24;
}

int host_acs_control(const unsigned char *config, size_t bytes)
{
	uint32_t at = EXTENDED;

	if (bytes < EXTENDED + 4)
		return HOST_UNKNOWN;
	for (int i = 0; i < CAPS_MAX && at >= EXTENDED && at + 8 <= bytes; i++) {
		uint32_t head = word_at(config, at);

		if ((head & 0xffff) == CAP_ACS)
			return config[at + ACS_CONTROL] | config[at + ACS_CONTROL + 1]
								  << 8;
		at = head >> 20 & 0xffc;
	}
	return 0;
}

static size_t read_bytes(const char *path, unsigned char *bytes, size_t room)
{
	FILE *file = fopen(path, "r");
	size_t got = file ? fread(bytes, 1, room, file) : 0;

	if (file)
		fclose(file);
	return got;
}

static bool is_bridge(const char *root, const char *name)
{
	char path[PATH], text[16] = "";

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%.32s/class", root, name);
	read_bytes(path, (unsigned char *)text, sizeof(text) - 1);
	return !strncmp(text, "0x0604", 6);
}

/* A captured host keeps the control word alone. */
static int control_of(const char *root, const char *name)
{
	static unsigned char config[CONFIG_BYTES];
	char path[PATH], text[16] = "";

	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%.32s/weft-acs", root, name);
	if (read_bytes(path, (unsigned char *)text, sizeof(text) - 1))
		return (int)strtol(text, NULL, 16);
	snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%.32s/config", root, name);
	return host_acs_control(config, read_bytes(path, config, sizeof(config)));
}

void host_read_bus(struct host_facts *facts, const char *root)
{
	char full[PATH];
	const struct dirent *entry;
	DIR *dir;

	snprintf(full, sizeof(full), "%s/sys/bus/pci/devices", root);
	dir = opendir(full);
	while (dir && (entry = readdir(dir))) {
		int control;

		if (entry->d_name[0] == '.' || strlen(entry->d_name) > 32 ||
			!is_bridge(root, entry->d_name))
			continue;
		facts->bridge_count++;
		control = control_of(root, entry->d_name);
		if (control == HOST_UNKNOWN)
			facts->bridges_hidden++;
		else if (control & ACS_REDIRECT) {
			if (!facts->acs_count++ ||
				strcmp(entry->d_name, facts->acs_bridge) < 0)
				snprintf(facts->acs_bridge, sizeof(facts->acs_bridge),
					"%.31s", entry->d_name);
		}
	}
	if (dir)
		closedir(dir);
}
