/*
 * drive_world.h - a network plugin as drive_net.c calls it, whatever its version.
 */
#ifndef TEST_DRIVE_WORLD_H
#define TEST_DRIVE_WORLD_H

#include <stdbool.h>
#include <stddef.h>

#include "net_test.h"

enum { SAID_BYTES = 8192, GROUP_MAX = 8 };

extern const ncclNet_t *net;
extern bool is_quiet; /* what it warns of now is wanted */
extern bool may_fail;
extern int failure;	      /* the first */
extern char said[SAID_BYTES]; /* warnings */

/* Did it succeed? Where it must, it has. */
bool went(int result);

/* What one communicator has of it. */
struct world {
	void *context; /* from version 11 on */
};
struct world world_open(void);
void world_close(struct world *world);

int net_listen(struct world *world, void *handle, void **comm);
int net_connect(struct world *world, void *handle, void **comm);
int net_accept(void *listener, void **comm);
int net_send(void *comm, void *data, size_t bytes, void *known, void **request);
int net_recv(void *comm, void *data, size_t bytes, void *known, void **request);

/* With tags; several receives at once, from version 9 on. */
struct place {
	char *data;
	size_t bytes;
	int tag;
};
int net_send_tagged(void *comm, const struct place *place, void *known, void **request);
int net_recv_group(
	void *comm, const struct place *places, int count, void *known, void **request);

#endif
