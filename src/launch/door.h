/*
 * door.h - where rank 0 waits for the others: sockets that listen at its own addresses,
 * all at one port.
 *
 * It listens at the addresses that the master's name has and this host, too. Where the
 * name leads to loopback here and others are to come, as with Debian's /etc/hosts, these
 * know another address by it: then at those of all interfaces. Never at a wildcard.
 */
#ifndef LAUNCH_DOOR_H
#define LAUNCH_DOOR_H

#include "launch/master.h"
#include "net/addr.h"

enum { DOOR_SOCKETS = 16 };

struct door {
	int count;
	int fds[DOOR_SOCKETS]; /* owned */
	struct addr addr;      /* of the first, for sentences */
};

/* At the first port that is free. A sentence says why it cannot be. */
enum err door_open(const struct master_args *args, struct door *door);
void door_close(struct door *door);

#endif
