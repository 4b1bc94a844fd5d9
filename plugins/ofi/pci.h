/*
 * pci.h - what the kernel says of devices on PCI, by their paths in sysfs,
 * "/sys/devices/pci0000:10/0000:10:01.0/..".
 */
#ifndef PLUGINS_OFI_PCI_H
#define PLUGINS_OFI_PCI_H

#include <stdbool.h>
#include <stddef.h>

/* A word of a file beside the device; "" where there is none. */
void pci_word(const char *path, const char *file, char *word, size_t room);

/* The paths of NVIDIA's GPUs below `root` ("/sys"), each the caller's to free; how many.
 */
int pci_gpus(const char *root, char **paths, int most);

/* How fast a link may be: gigatransfers by lane, as a step in PCI's speeds, and lanes. */
struct pci_link {
	int step; /* -1: not known */
	int lanes;
};

struct pci_link pci_link(const char *path);

/* "16.0 GT/s PCIe" */
const char *pci_step_text(int step);

/* The last of them. */
int pci_step_last(void);

#endif
