/*
 * stall.h - who is missing of a meeting that does not get on, said once in a warning.
 *
 * A rank that comes late is nothing to speak of as long as others come. When nobody has
 * come for WEFT_STALL_SEC, the root says for whom all wait; the time limit of the meeting
 * may be far away.
 */
#ifndef BOOT_STALL_H
#define BOOT_STALL_H

#include <stdbool.h>
#include <stdint.h>

struct root;

struct stall {
	uint32_t arrived, round; /* how far the meeting was .. */
	uint64_t since_ns;	 /* .. since then; 0: it has not begun */
	bool is_told;
};

/* Warn if it is time to. Returns when to look again, UINT64_MAX for never. */
uint64_t stall_look(struct stall *stall, const struct root *root);

#endif
