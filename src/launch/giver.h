/*
 * giver.h - what rank 0 (giver.c) and those that ask it (master.c) agree on.
 */
#ifndef LAUNCH_GIVER_H
#define LAUNCH_GIVER_H

#include <stdint.h>

#include "launch/launch.h"
#include "net/addr.h"
#include "net/auth.h"

enum {
	GIVER_PORTS_BYTES = 40,
	GIVER_SENTENCE_BYTES = 640, /* more than an error keeps */
	GIVER_MAGIC_BYTES = 8,
	GIVER_ADDRS = 8
};

static const char giver_magic[GIVER_MAGIC_BYTES + 1] = "WEFTMS01";

/* Sealed; both ends have the same byte order or do not understand each other. */
struct giver_question {
	char magic[GIVER_MAGIC_BYTES];
	uint32_t number, rank, rank_count;
	uint32_t zero;
};

/* The key of this job's connections. Wipe it after use. */
void giver_key(const struct launch *launch, unsigned char key[AUTH_KEY_BYTES]);

/* The port to try as the turn-th; 0: there are no more. */
int giver_port(const struct launch *launch, int turn);
void giver_ports_print(const struct launch *launch, char text[GIVER_PORTS_BYTES]);

/* The addresses of rank 0 at this port, as its name is known here: at most
 * GIVER_ADDRS, how many in `count`. 0 or what getaddrinfo() says. */
int giver_resolve(const struct launch *launch, int port, struct addr addrs[GIVER_ADDRS],
	int *count);

/* When a warning says once who is missing (WEFT_STALL_SEC); UINT64_MAX: never. */
uint64_t giver_stall_ns(void);
/* `sentence` says who. */
void giver_warn(const char *sentence);

#endif
