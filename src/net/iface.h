/*
 * iface.h - which of this host's network interfaces to use, by NCCL's rules.
 *
 * Where the user names some (NCCL_SOCKET_IFNAME, for meeting and keeping in touch
 * NCCL_OOB_NET_IFNAME), all of those, but loopback only when it is alone; else
 * InfiniBand's, else those in the network of NCCL_COMM_ID, else all but Docker's,
 * loopback and virbr, else those in this order. NCCL_SOCKET_FAMILY restricts the
 * addresses. An interface counts when it runs and has an address; its first counts. A
 * link-local IPv6 address is passed over: another host cannot tell by which of its
 * interfaces to reach it.
 */
#ifndef NET_IFACE_H
#define NET_IFACE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/addr.h"

enum { IFACES_MAX = 16, IFACE_SPEED_DEFAULT_MBPS = 10000 };

struct iface {
	char name[IF_NAMESIZE];
	struct addr addr;     /* port 0 */
	uint32_t prefix_bits; /* of the network it is in */
	int64_t speed_mbps;   /* as the driver says, else the default */
	bool is_loopback;
};

enum iface_use {
	IFACE_CONTROL, /* ranks meet, and keep in touch */
	IFACE_DATA     /* what the collectives send */
};

/* The interfaces for this use, best first, at most IFACES_MAX. There may be none: the
 * caller knows whether that matters, iface_none() says why. */
enum err iface_list(enum iface_use use, struct iface *ifaces, uint32_t *count);

/* The end of a sentence about why there is none: what was asked for and what there is. */
enum { IFACE_NONE_BYTES = 256 };
void iface_none(enum iface_use use, char text[IFACE_NONE_BYTES]);

/* As NCCL's log has it: "eth0:10.0.0.1<0>". */
void iface_print(const struct iface *iface, char text[ADDR_LOG_BYTES]);

/* "NET/Socket : Using [0]eth0:10.0.0.1<0> [1]eth1:..", once per process. */
void iface_log(const struct iface *ifaces, uint32_t count);

/* ---- what iface_list() is made of, for its test ---- */

struct iface_wish {
	const char *names;	 /* NULL: NCCL's order */
	int family;		 /* enum addr_family; 0: any */
	const struct addr *near; /* of NCCL_COMM_ID; NULL: not set */
};

/* Choose from `all`, in their order; returns how many. */
uint32_t iface_choose(const struct iface *all, uint32_t all_count,
	const struct iface_wish *wish, struct iface *ifaces);

#endif
