/*
 * hosts.h - a communicator whose ranks are on several hosts: who is where, a board for
 * each host, and the connections between them.
 */
#ifndef COMM_HOSTS_H
#define COMM_HOSTS_H

#include "boot/boot.h"
#include "comm/comm.h"
#include "link/board.h"

struct gpu_place;

/* Number the hosts in the order of their first rank. `identities` has each rank's.
 * comm->hosts.numbers stays NULL where all are the same. */
enum err comm_hosts_number(struct comm *comm, const uint64_t *identities);

/* The board of this rank's host, made by its first rank, and wires to all others: a round
 * of the meeting. `places` has every rank's GPU. */
enum err comm_hosts_connect(
	struct comm *comm, struct meeting *meeting, const struct gpu_place *places);

/* The processes of all ranks; free() it. NULL: no memory. */
uint32_t *comm_hosts_pids(const struct comm *comm);

/* Keep in touch with the others, now that the peers are there. */
enum err comm_hosts_touch(struct comm *comm, const struct meeting *meeting);

/* Bytes of a tile that goes between hosts; 0 where there are none. */
size_t comm_hosts_tile(const struct comm *comm);

/* What the board of this rank's host is made for. */
struct board_size comm_board_size(const struct comm *comm);

/* Share the board that rank `owner` of this host has made, if it still lives. */
enum err comm_board_attach(
	struct comm *comm, const struct board_address *address, uint32_t owner);

#endif
