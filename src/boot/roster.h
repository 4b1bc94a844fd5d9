/*
 * roster.h - which ranks are in one process, and where it is.
 */
#ifndef BOOT_ROSTER_H
#define BOOT_ROSTER_H

#include <stdint.h>

#include "base/err.h"
#include "boot/control.h"

/* Processes are numbered by their first ranks. */
struct roster {
	uint32_t rank_count, node_count;
	uint32_t *node_of;    /* owned; per rank: its process */
	uint32_t *first_rank; /* owned; per process */
};

/* ERR_ARGUMENT where ranks of one process are on two hosts. */
enum err roster_make(
	const struct control_peer *peers, uint32_t rank_count, struct roster *roster);
void roster_fini(struct roster *roster);

#endif
