#include "pci.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BYTES = 32 };

/* As the kernel writes them; read up to the blank. */
static const char *const steps[] = {"2.5 GT/s PCIe", "5.0 GT/s PCIe", "8.0 GT/s PCIe",
	"16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
enum { STEP_COUNT = sizeof(steps) / sizeof(steps[0]) };

void pci_word(const char *path, const char *file, char *word, size_t room)
{
	char name[PATH_MAX];
	FILE *handle;

	snprintf(name, sizeof(name), "%s/%s", path, file);
	word[0] = '\0';
	handle = fopen(name, "re");
	if (!handle)
		return;
	if (!fgets(word, (int)room, handle))
		word[0] = '\0';
	fclose(handle);
	word[strcspn(word, " \n")] = '\0';
}

/* With the class of what shows pictures or computes. */
static bool is_gpu(const char *path)
{
	char vendor[WORD_BYTES], kind[WORD_BYTES];

	pci_word(path, "vendor", vendor, sizeof(vendor));
	pci_word(path, "class", kind, sizeof(kind));
	return !strcmp(vendor, "0x10de") && !strncmp(kind, "0x03", 4);
}

int pci_gpus(const char *root, char **paths, int most)
{
	char name[PATH_MAX];
	const struct dirent *entry;
	DIR *folder;
	int count = 0;

	snprintf(name, sizeof(name), "%s/bus/pci/devices", root);
	folder = opendir(name);
	while (folder && count < most && (entry = readdir(folder))) {
		snprintf(
			name, sizeof(name), "%s/bus/pci/devices/%s", root, entry->d_name);
		if (is_gpu(name) && (paths[count] = realpath(name, NULL)))
			count++;
	}
	if (folder)
		closedir(folder);
	return count;
}

struct pci_link pci_link(const char *path)
{
	struct pci_link link = {.step = -1};
	char word[WORD_BYTES];

	pci_word(path, "max_link_width", word, sizeof(word));
	link.lanes = (int)strtol(word, NULL, 10);
	pci_word(path, "max_link_speed", word, sizeof(word));
	for (int i = 0; i < STEP_COUNT; i++)
		if (strtod(word, NULL) == strtod(steps[i], NULL))
			link.step = i;
	return link;
}

const char *pci_step_text(int step)
{
	return steps[step];
}

int pci_step_last(void)
{
	return STEP_COUNT - 1;
}
