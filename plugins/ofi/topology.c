#include "topology.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"
#include "pci.h"
#include "platform.h"
#include "say.h"

enum {
	CHAIN_MAX = 8, /* a CPU, the switches below it, and the interface */
	WORD_BYTES = 32,
	GPUS_MAX = 64
};

static const char variable[] = "NCCL_TOPO_FILE";

/* Where an interface is: the number of its CPU, then busids from above. */
struct chain {
	char words[CHAIN_MAX][WORD_BYTES];
	int length; /* 0: not known */
	struct pci_link link;
};

/* ---- the file of what is grouped ---- */

static bool is_busid(const char *word)
{
	unsigned int parts[4];
	int used = 0;

	return sscanf(word, "%x:%x:%x.%x%n", &parts[0], &parts[1], &parts[2], &parts[3],
		       &used) == 4 &&
	       !word[used] && used < WORD_BYTES;
}

/* Busids from the interface up. Of a switch, which is a port above its ports, NCCL's
 * files have the upper one: so every second place of the path. */
static int above_find(const char *path, char words[CHAIN_MAX][WORD_BYTES])
{
	char rest[PATH_MAX];
	int count = 0, steps = 0;
	char *slash;

	snprintf(rest, sizeof(rest), "%s", path);
	while ((slash = strrchr(rest, '/')) && is_busid(slash + 1)) {
		if (steps++ % 2 == 0) {
			if (count == CHAIN_MAX - 1)
				return 0;
			snprintf(words[count++], WORD_BYTES, "%s", slash + 1);
		}
		*slash = '\0';
	}
	return count;
}

/* The link of so many interfaces: for each halving twice the speed, then twice the lanes,
 * but not more than a GPU has. */
static struct pci_link link_of(struct pci_link one, int count, struct pci_link gpu)
{
	for (; count > 1; count = (count + 1) / 2) {
		if (one.step < gpu.step && one.step < pci_step_last())
			one.step++;
		else if (2 * one.lanes <= gpu.lanes)
			one.lanes *= 2;
	}
	return one;
}

static void chain_find(
	struct chain *chain, const struct topology_nic *nic, struct pci_link gpu)
{
	char words[CHAIN_MAX][WORD_BYTES];
	int count = above_find(nic->path, words);

	*chain = (struct chain){.link = pci_link(nic->path)};
	if (!count || nic->count < 2 || chain->link.step < 0 || !chain->link.lanes)
		return;
	chain->link = link_of(chain->link, nic->count, gpu);
	pci_word(nic->path, "numa_node", chain->words[0], WORD_BYTES);
	if (!chain->words[0][0])
		snprintf(chain->words[0], WORD_BYTES, "-1");
	chain->length = 1 + count;
	for (int i = 0; i < count; i++)
		memcpy(chain->words[1 + i], words[count - 1 - i], WORD_BYTES);
}

/* Do they have the first `depth` words in common? */
static bool is_alike(const struct chain *a, const struct chain *b, int depth)
{
	for (int i = 0; i < depth; i++)
		if (i >= a->length || i >= b->length || strcmp(a->words[i], b->words[i]))
			return false;
	return true;
}

struct chains {
	const struct chain *all;
	int count;
};

/* What is at `depth` below the first words of `above`: each once, where it comes first.
 * It is called by itself, CHAIN_MAX times at most. */
static void level_print(
	FILE *file, const struct chains *chains, const struct chain *above, int depth)
{
	for (int i = 0; i < chains->count; i++) {
		const struct chain *chain = &chains->all[i];
		int first = 0;

		if (chain->length <= depth || !is_alike(chain, above, depth))
			continue;
		while (!is_alike(&chains->all[first], chain, depth + 1))
			first++;
		if (first < i)
			continue;
		fprintf(file, "%*s<%s %s=\"%s\"", 2 * (depth + 1), "",
			depth ? "pci" : "cpu", depth ? "busid" : "numaid",
			chain->words[depth]);
		if (depth == chain->length - 1) {
			fprintf(file, " link_speed=\"%s\" link_width=\"%d\"/>\n",
				pci_step_text(chain->link.step), chain->link.lanes);
			continue;
		}
		fprintf(file, ">\n");
		level_print(file, chains, chain, depth + 1);
		fprintf(file, "%*s</%s>\n", 2 * (depth + 1), "", depth ? "pci" : "cpu");
	}
}

/* The best that a GPU has. */
static struct pci_link gpu_link(const char *root)
{
	struct pci_link best = {.step = -1};
	char *gpus[GPUS_MAX];
	int count = pci_gpus(root, gpus, GPUS_MAX);

	while (count) {
		struct pci_link link = pci_link(gpus[--count]);

		if (link.step > best.step ||
			(link.step == best.step && link.lanes > best.lanes))
			best = link;
		free(gpus[count]);
	}
	return best;
}

bool topology_write(
	FILE *file, const char *root, const struct topology_nic *nics, int count)
{
	struct pci_link gpu = gpu_link(root);
	struct chain all[DEVICES_MAX];
	struct chains chains = {all, count < DEVICES_MAX ? count : DEVICES_MAX};
	bool is_any = false;

	for (int i = 0; i < chains.count; i++) {
		chain_find(&all[i], &nics[i], gpu);
		is_any = is_any || all[i].length;
	}
	if (!is_any)
		return false;
	fprintf(file, "<system version=\"1\">\n");
	level_print(file, &chains, &all[0], 0);
	fprintf(file, "</system>\n");
	return true;
}

static bool groups_write(FILE *file)
{
	struct topology_nic nics[DEVICES_MAX];
	int count = device_count();

	for (int i = 0; i < count; i++)
		nics[i] = (struct topology_nic){
			device_at(i)->pci_path, device_at(i)->nic_count};
	return topology_write(file, "/sys", nics, count);
}

/* ---- where it is ---- */

/* A file in memory, for as long as the process lives. Its name has the process's number:
 * so it is the same file for processes that this one starts, and what they have under the
 * same number is not taken for it. */
static FILE *file_open(char *path, size_t room)
{
	int fd = memfd_create("weft_ofi_topology", MFD_CLOEXEC);

	snprintf(path, room, "/proc/%d/fd/%d", (int)getpid(), fd);
	return fd < 0 ? NULL : fdopen(fd, "w");
}

/* One that a plugin has made for a process that has ended, whose child this is. */
static void stale_forget(void)
{
	const char *set = getenv(variable);
	int process, fd, used = 0;

	if (set && sscanf(set, "/proc/%d/fd/%d%n", &process, &fd, &used) == 2 &&
		!set[used] && access(set, R_OK))
		unsetenv(variable);
}

static const struct topology_file *carried(const char *type)
{
	const struct platform *platform = platform_of(type);

	for (const struct topology_file *file = topology_files;
		platform && platform->topology && file->name; file++)
		if (!strcmp(file->name, platform->topology))
			return file;
	return NULL;
}

void topology_offer(void)
{
	char type[PLATFORM_TYPE_BYTES], path[WORD_BYTES];
	char entry[sizeof(variable) + WORD_BYTES];
	const struct topology_file *known;
	bool is_any = true;
	FILE *file;

	stale_forget();
	platform_type(type);
	known = carried(type);
	file = file_open(path, sizeof(path));
	if (!file)
		return;
	if (known)
		fputs(known->text, file);
	else
		is_any = groups_write(file);
	if (!is_any || fflush(file)) {
		fclose(file);
		return;
	}
	if (known)
		say_info("Running on %s platform, topology file %s, which is %s", type,
			path, known->name);
	else
		say_info("Topology file %s gives each device the link of its interfaces",
			path);
	snprintf(entry, sizeof(entry), "%s=%s", variable, path);
	if (!platform_variable_set(entry))
		fclose(file);
}
