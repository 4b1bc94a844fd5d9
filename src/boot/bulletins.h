/*
 * bulletins.h - a list of bulletins, numbered from 0 on: appended at one end, forgotten
 * at the other.
 */
#ifndef BOOT_BULLETINS_H
#define BOOT_BULLETINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/strand.h"

enum bulletin_type {
	BULLETIN_BEAT = 1, /* we are still here, and have taken `number` bulletins that
			    * came over this strand */
	BULLETIN_LEAVE,	   /* we close this strand and are well */
	BULLETIN_FLOOD,	   /* for all ranks, by way of all processes */
	BULLETIN_LOST,	 /* the same: the process of the rank that `kind` says is lost */
	BULLETIN_DIRECT, /* for one rank */
	BULLETIN_MANY	 /* several of the last three in one frame, each with its head */
};

struct bulletin {
	struct strand_head head;
	uint32_t from; /* the process that we have it from */
	unsigned char bytes[];
};

/* Zeroed is empty. */
struct bulletins {
	struct bulletin **ring; /* owned; bulletin i is at i % room */
	uint64_t first, end;
	uint64_t room;
	size_t bytes; /* of all of them */
};

/* A copy; false when there is no memory. */
bool bulletins_append(struct bulletins *bulletins, const struct strand_head *head,
	const void *bytes, uint32_t from);

/* The bulletin of this number, from `first` to `end` - 1. */
const struct bulletin *bulletins_at(const struct bulletins *bulletins, uint64_t number);

/* Forget the oldest. */
void bulletins_drop(struct bulletins *bulletins);

/* Forget all. */
void bulletins_fini(struct bulletins *bulletins);

#endif
