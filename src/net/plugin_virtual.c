#include "net/plugin_virtual.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/param.h"

/* Functions of one card have paths that differ in the last letter alone, after a dot. */
static bool is_one_card(const struct plugin_device *a, const struct plugin_device *b)
{
	size_t bytes = strlen(a->pci_path);

	return bytes > 1 && a->pci_path[bytes - 2] == '.' &&
	       bytes == strlen(b->pci_path) &&
	       !strncmp(a->pci_path, b->pci_path, bytes - 1);
}

/* The plugin's devices, and which of them are in our list. */
struct ports {
	struct plugin_device *all;
	bool *taken;
	int count;
};

/* Those of the card of the first that are left; not those of another speed. */
static int ports_find(const struct ports *ports, int first, int most, int *parts)
{
	const struct plugin_device *all = ports->all;
	int found = 0;

	for (int i = first; i < ports->count && found < most; i++)
		if (!ports->taken[i] &&
			(i == first ||
				(is_one_card(&all[first], &all[i]) &&
					all[first].speed_mbps == all[i].speed_mbps)))
			parts[found++] = i;
	return found;
}

/* The device to use from one of them on; what the plugin does not join stays as it is. */
static int port_join(struct plugin_file *file, const struct net_plugin *plugin,
	const struct ports *ports, int first)
{
	int most = file->version >= 12 ? PLUGIN_PARTS_MAX : PLUGIN_PARTS_OLD;
	int parts[PLUGIN_PARTS_MAX], joined = -1;
	int found = ports_find(ports, first, most, parts);
	const char *name = ports->all[first].name;

	ports->taken[first] = true;
	if (found < 2)
		return first;
	if (speak_join(plugin, parts, found, &joined) || joined < ports->count) {
		log_info(LOG_INIT | LOG_NET,
			"NET/Plugin: %s does not join the %d ports of %s", file->name,
			found, name);
		return first;
	}
	for (int i = 0; i < found; i++)
		ports->taken[parts[i]] = true;
	log_info(LOG_INIT | LOG_NET,
		"NET/Plugin: Made virtual device %d of %s: the %d ports of the card of "
		"%s",
		joined, file->name, found, name);
	return joined;
}

int plugin_ports_join(
	struct plugin_file *file, const struct net_plugin *plugin, int count)
{
	const char *level = param_text(PARAM_NET_MERGE_LEVEL);
	struct ports ports = {.count = count};
	int *numbers;
	int known = 0, used = 0;

	if (file->devices)
		return file->device_count;
	if (file->version < 9 || !file->abi->make_virtual ||
		(level && !strcasecmp(level, "LOC")))
		return count;
	ports.all = calloc((size_t)count, sizeof(*ports.all));
	ports.taken = calloc((size_t)count, sizeof(*ports.taken));
	numbers = calloc((size_t)count, sizeof(*numbers));
	while (ports.all && known < count &&
		!speak_device(plugin, known, &ports.all[known]))
		known++;
	for (int i = 0; ports.taken && numbers && known == count && i < count; i++)
		if (!ports.taken[i])
			numbers[used++] = port_join(file, plugin, &ports, i);
	free(ports.taken);
	free(ports.all);
	if (!used) { /* it cannot be told what they are */
		free(numbers);
		return count;
	}
	file->device_count = used;
	file->devices = numbers;
	return used;
}
