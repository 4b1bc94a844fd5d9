/*
 * master.h - bytes from rank 0 to the others over TCP, at an address that all know.
 *
 * Rank 0 listens at its own address, never at a wildcard, at the first of a few ports
 * that is free; the others try the same ports until somebody there proves that it has the
 * job's key (net/seal.h). The key is made of WEFT_SECRET and of the job's name, so two
 * jobs that meet at one port do not mix; without WEFT_SECRET it keeps accidents out and
 * no attacker.
 */
#ifndef LAUNCH_MASTER_H
#define LAUNCH_MASTER_H

#include <stddef.h>
#include <stdint.h>

#include "launch/launch.h"

enum { MASTER_PORTS = 8 };

struct master_args {
	const struct launch *launch; /* master, port, job, rank, rank_count */
	uint32_t number;	     /* of the exchange, from 0 */
	uint64_t deadline_ns;
};

/* Of rank 0: until all others have the bytes. ERR_TIMEOUT names those that did not come.
 */
enum err master_give(const struct master_args *args, const void *bytes, size_t count);

/* Of the others. ERR_TIMEOUT says where it looked. */
enum err master_take(const struct master_args *args, void *bytes, size_t count);

#endif
