/*
 * nodes.h - Slurm's short forms of lists: host names and tasks per node.
 */
#ifndef LAUNCH_NODES_H
#define LAUNCH_NODES_H

#include <stdbool.h>
#include <stddef.h>

/* The first name of a list such as `gpu[07-12,20],login1` or `r[1-2]n[3-4]`; false when
 * the text is none, or the name does not fit `room`. */
bool nodes_first(const char *text, char *name, size_t room);

/* Tasks of the node with this index (from 0) in a text such as `2(x3),1`; false when the
 * text is none, or has no such node. */
bool nodes_tasks(const char *text, int index, int *tasks);

#endif
