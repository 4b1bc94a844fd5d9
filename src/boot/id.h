/*
 * id.h - what is inside a unique id: where the ranks meet, and the secret by which they
 * know each other. boot.h has what the other rooms need of it.
 */
#ifndef BOOT_ID_H
#define BOOT_ID_H

#include <assert.h>

#include "boot/boot.h"
#include "net/addr.h"
#include "net/auth.h"

/* The 128 bytes of an id. The root listens at both addresses; who is at home where it was
 * made goes to the Unix name, everybody else to the other. */
struct id_body {
	char magic[8];
	unsigned char secret[AUTH_KEY_BYTES];
	struct addr addr; /* a Unix name, or what NCCL_COMM_ID says */
	uint64_t home; /* where a Unix name means anything: see home_read(); 0 unknown */
	struct addr away; /* for those of other hosts; family 0: none */
	unsigned char zero[32];
};

static_assert(sizeof(struct id_body) == BOOT_ID_BYTES, "an id is what nccl.h says");

/* ERR_ARGUMENT when it is no id of ours, ERR_USAGE when it is of another host that cannot
 * be reached. `to` is where this process finds the root. */
enum err id_read(const struct boot_id *id, struct id_body *body, struct addr *to);

/* Where the ranks of this host find each other in its meeting; false: they cannot. */
bool id_porch(const struct id_body *body, struct addr *addr);

/* Start the root it tells of; ERR_AGAIN as root_start(). `away` gets its port. */
enum err id_root_start(struct id_body *body);

/* By which interface this process meets others, as NCCL says it when it starts: once per
 * process. */
void id_log(const struct id_body *body);

/* WEFT_BOOT_TIMEOUT_SEC; 0 is for ever. */
uint64_t boot_timeout_ns(void);

#endif
