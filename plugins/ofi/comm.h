/*
 * comm.h - connections by tagged messages (the SENDRECV protocol), and listeners; rdma.h
 * has what the RDMA protocol does otherwise once there is a connection.
 *
 *      connecting end                               listener
 *        | address, where to answer  (listener's tag) -> |
 *        | <- (where to answer)  the tag for messages    |
 *        | messages  (that tag) -----------------------> |
 *
 * Nothing blocks: who connects or accepts comes again until there is a connection. What
 * `connect` has done so far is kept in the handle, which NCCL hands in again.
 */
#ifndef PLUGINS_OFI_COMM_H
#define PLUGINS_OFI_COMM_H

#include "port.h"

struct ofi_comm;

int comm_listen(struct ofi_context *context, int device, void *handle,
	struct ofi_comm **listener);
int comm_connect(
	struct ofi_context *context, int device, void *handle, struct ofi_comm **sender);
int comm_accept(struct ofi_comm *listener, struct ofi_comm **receiver);

/* `known` is never NULL afterwards. */
int comm_reg(struct ofi_comm *comm, const struct known_range *range, void **known);
int comm_dereg(struct ofi_comm *comm, void *known);

/* A message, or where one is to go. */
struct comm_place {
	void *data;
	size_t bytes;
	void *known;
	int label;
	bool is_early; /* of a receive: the caller looks for the data itself */
};

/* So many receives may be asked for together; by SENDRECV one. */
enum { RECVS_MAX = 8 };

/* *request is NULL where there is no room now. With RDMA the k-th message that is sent
 * with a label goes to the k-th place that was given with it. */
int comm_send(struct ofi_comm *comm, const struct comm_place *place,
	struct ofi_request **request);
int comm_recv(struct ofi_comm *comm, const struct comm_place *places, int count,
	struct ofi_request **request);

/* Have a GPU see what has come to its memory; *request is NULL where it does. */
int comm_flush(
	struct ofi_comm *comm, void *data, void *known, struct ofi_request **request);

/* `bytes` has room for as many as were asked for together; NULL is fine. */
int comm_test(struct ofi_request *request, int *is_done, int *bytes);

int comm_close(struct ofi_comm *comm);

/* Something was written to a receiver of the port (rdma.h). With its lock. */
void comm_arrived(struct ofi_port *port, uint64_t number, size_t bytes);

/* Those that the context was asked to connect and that are not; nobody asks again. */
void comms_give_up(struct ofi_context *context);

/* Those that were closed with requests under way; their endpoint is closed by now. */
void comms_bury(struct ofi_comm *graves);

#endif
