/*
 * host.h - which host this is: whose ranks share memory.
 */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The host's name, and a number that two processes have in common when they are on one
 * host. As NCCL has it, that is the name and the boot, or what NCCL_HOSTID says instead:
 * two containers of one machine with names of their own are two hosts. Two that cannot
 * see each other's processes are two as well, whatever their names, because they could
 * not share memory. */
enum err host_identity(char *name, size_t room, uint64_t *identity);

#endif
