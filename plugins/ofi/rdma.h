/*
 * rdma.h - messages by writes into the receiver's memory (the RDMA protocol).
 *
 *      sender                                           receiver
 *        | <- invitation: where, how much, keys  (irecv)   |
 *        | writes, one for each rail, each with a number ->|
 *        | short ones before an invitation: as a message ->|
 *
 * Receives are numbered from 0 in the order in which they are asked for, one by one or
 * several together. A write tells the receiver, in 32 bits, which connection it is for,
 * which receive, which part of how many: so parts may come in any order, and twice. Where
 * the provider carries 64, the rest is how long the part is. Messages have labels, which
 * are NCCL's tags, and the k-th with a label goes to the k-th receive with it. A short
 * message that nobody has invited says which it is, and goes into memory that the
 * receiver keeps for such, as many as it has room for; if it is there when the receiver
 * asks for it, no invitation goes out, for the sender may have left by then.
 */
#ifndef PLUGINS_OFI_RDMA_H
#define PLUGINS_OFI_RDMA_H

#include "port.h"

struct ofi_comm;
struct rdma_end;

/* Once the ends know each other. */
int rdma_open(struct ofi_comm *comm);

/* What libfabric has of it still; called off where that can be done. */
uint32_t rdma_cancel(struct ofi_comm *comm, bool calls_off);
void rdma_free(struct rdma_end *end);

/* As comm_send(), comm_recv(), with the lock; OFI_AGAIN: not now. */
int rdma_send(struct ofi_comm *comm, const struct port_message *message,
	struct ofi_request *request);
int rdma_recv(struct ofi_comm *comm, const struct port_message *message,
	struct ofi_request *request);

/* Do what can be done now. */
int rdma_move(struct ofi_comm *comm);

/* ---- for its test ---- */

/* The number that goes with a write. */
struct rdma_part {
	uint32_t receiver, sequence; /* the last of 10 bits */
	uint32_t part, count;
};
uint32_t rdma_number(struct rdma_part part);
struct rdma_part rdma_part(uint32_t number);

/* Into how many parts a message is cut, and how long all but the last are. */
uint32_t rdma_parts(size_t bytes, int rail_count, size_t least, size_t *part_bytes);

#endif
