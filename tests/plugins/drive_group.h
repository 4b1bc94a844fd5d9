/*
 * drive_group.h - receives that are asked for together, each with a tag of its own, while
 * the senders of some tags run ahead of those of others.
 */
#ifndef TEST_DRIVE_GROUP_H
#define TEST_DRIVE_GROUP_H

#include <stdbool.h>

/* Two ends of a connection and registered memory of GROUP_BYTES at each, which `seen`
 * shows. */
enum { GROUP_BYTES = 4 << 20 };
struct group_end {
	void *comm, *known;
	char *data, *seen;
};

/* Groups of `size` tags. `flush` has what has come to the receiver be seen. */
void group_drive(struct group_end *send, struct group_end *recv, int size,
	void (*flush)(void *line), void *line);

/* Receives that are done before anything is sent, where that is so (`is_early`), and what
 * comes to them all the same. */
void early_drive(struct group_end ends[2], bool is_early);

#endif
