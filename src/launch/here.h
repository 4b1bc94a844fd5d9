/*
 * here.h - which addresses are of this host.
 */
#ifndef LAUNCH_HERE_H
#define LAUNCH_HERE_H

#include <stdbool.h>

#include "net/addr.h"

enum { HERE_ADDRS = 64 };

struct here {
	int count;
	struct addr addrs[HERE_ADDRS]; /* of interfaces that are up; without ports */
};

void here_read(struct here *here);

/* Of this host alone: nobody else can reach it. */
bool here_is_loopback(const struct addr *addr);

/* One of the addresses, or a loopback one. */
bool here_has(const struct here *here, const struct addr *addr);

#endif
