/*
 * ifname.h - which network devices a user's list of names means, by NCCL's rules.
 */
#ifndef BASE_IFNAME_H
#define BASE_IFNAME_H

#include <stdbool.h>
#include <stdint.h>

/* Does a list such as "eth", "^docker,lo", "=ib0" or "mlx5_0:1,mlx5_2" (NCCL's rules for
 * NCCL_SOCKET_IFNAME and NCCL_IB_HCA) choose this name? Port 0: not asked for. */
bool ifname_chosen(const char *list, const char *name, int port);

/* Where the user names no interfaces, lists that are tried in turn until one chooses
 * something; NULL after the last. Interfaces in the network of NCCL_COMM_ID come after
 * turn IFNAME_TURNS_FIRST - 1. */
enum { IFNAME_TURNS_FIRST = 1 };
const char *ifname_turn(uint32_t turn);

#endif
