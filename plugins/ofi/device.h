/*
 * device.h - which provider of libfabric, and which of its interfaces are devices.
 *
 * The providers that libfabric offers for tagged messages are taken in an order of ours:
 * efa, verbs, tcp, and so on; FI_PROVIDER names one. Of that all interfaces are devices;
 * with the RDMA protocol those that share a GPU's switch are one (group.h).
 */
#ifndef PLUGINS_OFI_DEVICE_H
#define PLUGINS_OFI_DEVICE_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdbool.h>

enum { DEVICES_MAX = 64, RAILS_MAX = 4, DEVICE_NAME_BYTES = 64, DEVICE_PATH_BYTES = 256 };

/* One interface; with the RDMA protocol several that carry a message together. */
struct ofi_device {
	struct fi_info *infos[RAILS_MAX]; /* owned by the list; for ever */
	int rail_count;
	int nic_count; /* different ones */
	bool is_rdma;  /* the protocol */
	char name[DEVICE_NAME_BYTES];
	char pci_path[DEVICE_PATH_BYTES]; /* "": not known */
	int speed_mbps, port;
	uint64_t guid;
	size_t message_bytes_max;
	bool needs_known;   /* local memory has to be registered */
	bool takes_gpu;	    /* memory of GPUs .. */
	bool takes_dmabuf;  /* .. also by its dma-buf */
	bool keeps_lines;   /* LL128 may be used: lines of 128 bytes come whole */
	bool ends_early;    /* receives may be done before their data is there */
	bool is_reg_global; /* a registration is no matter of endpoints */
	bool holds_up; /* a message that is not asked for yet keeps others from coming */
};

/* Look for them, once in a process; what is wrong is said. */
int devices_find(void);
int device_count(void);
const struct ofi_device *device_at(int index);

/* ---- what devices_find() is made of, for its test ---- */

/* The lower the better; -1: not to be used unless it is named. */
int provider_rank(const char *provider);

/* May it be asked to take memory of GPUs? */
bool provider_takes_gpu(const char *provider);

/* Does a message that nobody has asked for keep others of the same endpoints waiting? */
bool provider_holds_up(const char *provider);

/* Is a name in a comma list? */
bool list_has(const char *list, const char *name);

#endif
