/*
 * foreign.h - memory of another process that is not mapped here: the kernel copies it.
 *
 * Cross-memory attach (process_vm_readv). It works between processes of one user where
 * the kernel and the container allow it, which is asked once, when a communicator is
 * made.
 */
#ifndef LINK_FOREIGN_H
#define LINK_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Does the kernel let us read `expected` at that address of that process? */
bool foreign_works(uint32_t pid, const void *theirs, uint64_t expected);

/* Copy from address `theirs` of process `pid`. ERR_REMOTE when that is gone. There is no
 * copy to it: its owner could have the memory back by the time it comes. */
enum err foreign_read(uint32_t pid, void *mine, const void *theirs, size_t bytes);

#endif
