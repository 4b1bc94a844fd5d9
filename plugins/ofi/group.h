/*
 * group.h - which interfaces stand together for one device.
 *
 * A machine has several interfaces for each GPU, under the same switch. So each GPU's
 * nearest switch with interfaces below it gets a group for each such GPU, and what is
 * below it is dealt to them evenly. Where no GPU is known, each is a group of its own.
 */
#ifndef PLUGINS_OFI_GROUP_H
#define PLUGINS_OFI_GROUP_H

#include <stdbool.h>

enum { NICS_MAX = 64 };

struct nic_groups {
	int count;
	int sizes[NICS_MAX];
	int members[NICS_MAX][NICS_MAX]; /* the first leads it */
	bool is_lone[NICS_MAX];		 /* no GPU is beside it */
};

/* Paths as sysfs has them, "/sys/devices/pci0000:10/0000:10:01.0/..". */
void nics_group(const char *const *nics, int nic_count, const char *const *gpus,
	int gpu_count, struct nic_groups *groups);

/* With the GPUs of this machine. */
void nics_group_here(const char *const *nics, int nic_count, struct nic_groups *groups);

/* As they come, `size` to each. */
void nics_group_evenly(int nic_count, int size, struct nic_groups *groups);

/* Without those that have no GPU beside them, if there are others. */
void nics_lone_drop(struct nic_groups *groups);

#endif
