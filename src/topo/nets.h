/*
 * nets.h - the network devices that NCCL's own modules would use on this machine.
 *
 * RDMA ports when there are any (NCCL's NET/IB; EFA as the libfabric plugin counts them),
 * else network interfaces (NET/Socket). The position in the list is the device number.
 */
#ifndef TOPO_NETS_H
#define TOPO_NETS_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/report.h"
#include "topo/seen.h"

enum { NETS_MAX = 128, NETS_SOCKETS_MAX = 16 };

struct net_seen {
	char name[SEEN_TEXT_BYTES];
	char busid[SEEN_BUSID_BYTES]; /* "": no PCI device; it hangs on the first CPU */
	int port;
	int64_t speed_mbps;
	uint64_t guid;
	float latency_us;
	int connections_max;
	bool gdr; /* GPU memory can be registered */
};

struct nets_seen {
	struct net_seen nets[NETS_MAX];
	uint32_t count;
};

/* Never fails: what cannot be used is said in the report. */
void nets_look(
	const struct seen *seen, struct nets_seen *nets, struct discover_report *report);

#endif
