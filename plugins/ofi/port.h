/*
 * port.h - the endpoints of libfabric on a device, with what belongs to them, and how
 * their work is moved on.
 *
 * A communicator has a port for each device it uses, for all its connections; they are
 * told apart by tags. A device is one interface, or several that carry a message
 * together: its rails, each with an endpoint. One lock guards a port: whoever calls the
 * plugin takes it, and moves on the work of all connections of the port while it is at
 * it.
 *
 * Where a provider has one stream between two endpoints, a message that nobody has asked
 * for yet holds up all that come behind it (device.h, `holds_up`). There each connection
 * has an end of its own, as the connections of NCCL must not wait for each other.
 */
#ifndef PLUGINS_OFI_PORT_H
#define PLUGINS_OFI_PORT_H

#include <pthread.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "device.h"
#include "known.h"

enum { ADDRESS_BYTES = 80, WHY_BYTES = 160, RECEIVERS_MAX = 1 << 16 };

struct ofi_request;

/* What libfabric is asked for at once: a message, or what goes of it over one rail. */
struct ofi_piece {
	struct fi_context2 context; /* first: libfabric gives this back */
	struct ofi_request *request;
	struct fid_ep *ep; /* that was asked */
	uint8_t rail;
	bool is_asked, is_done;
};

/* It is done when all its pieces are. */
struct ofi_request {
	struct ofi_piece pieces[RAILS_MAX];
	uint32_t piece_count;
	bool is_used, is_asked, is_done;
	bool is_early; /* it may be done before its data is there */
	bool is_flush; /* no message, but of memory that such have come to */
	size_t bytes;  /* that came */
	size_t posted;
	char why[WHY_BYTES]; /* it failed; "": it did not */
	void *owner;
	/* of the RDMA protocol */
	uint32_t sequence;
	int label;	  /* NCCL's tag */
	uint32_t ordinal; /* among those with this label */
	uint32_t arrived; /* pieces that came, by bit */
	int group_count;  /* of the first of those that were asked for together; or 0 */
	char *data;
	void *known;
};

/* Where messages leave and arrive, and whom it knows. */
struct ofi_end {
	struct fid_av *av;
	struct fid_ep *ep;
	unsigned char address[ADDRESS_BYTES];
	size_t address_bytes;
};

struct ofi_rail {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct ofi_end end; /* of all connections; not open where each has its own */
	fi_addr_t self;	    /* its own address, where memory of GPUs is taken */
};

void rail_close(struct ofi_rail *rail);

/* Its endpoint is to take memory of GPUs; 0, or libfabric's error. */
int rail_gpu_set(struct ofi_rail *rail);

/* .. and lines of 128 bytes are to come whole; do they? */
bool rail_lines_set(struct ofi_rail *rail, bool is_rdma);

struct ofi_port {
	const struct ofi_device *device;
	struct ofi_port *next; /* of the context's */
	uint32_t users;	       /* guarded by the context's lock */
	pthread_mutex_t lock;  /* of all below */
	struct ofi_rail rails[RAILS_MAX];
	int rail_count;
	uint32_t next_id; /* tags of what comes to this port */
	struct known_cache cache;
	char *page; /* owned: what is read to flush a GPU goes there */
	struct known *page_known;
	struct ofi_comm **receivers; /* owned: by number, for what is written to them */
	uint32_t receiver_room;
	uint32_t failures;	 /* of requests, so far */
	struct ofi_comm *graves; /* owned: closed with requests under way */
};

/* The ports of a communicator; of a process before version 11. */
struct ofi_context {
	pthread_mutex_t lock;
	struct ofi_port *ports;
	struct ofi_comm *connecting; /* owned: begun, and perhaps given up */
	bool is_over; /* nobody asks for more: it goes with its last port */
};

/* What was begun and is not connected goes: NCCL's interface has no call to give it up.
 * What is connected still works: a communicator may be ended before those that were
 * split off from it and use its connections. NULL is allowed. */
void context_end(struct ofi_context *context);

/* One user more: opened for the first, closed with the last. */
int port_get(struct ofi_context *context, int device, struct ofi_port **port);
void port_put(struct ofi_context *context, struct ofi_port *port);

/* An end for one connection alone, on the first rail; and closed again. */
int port_end_open(struct ofi_port *port, struct ofi_end *end);
void port_end_close(struct ofi_end *end);

/* A fresh tag. With the port's lock, as all that follow. */
uint32_t port_id(struct ofi_port *port);
int port_peer(struct ofi_port *port, const struct ofi_end *end,
	const unsigned char *address, fi_addr_t *peer);

/* A number for who is written to; OFI_SYSTEM: there is none left. */
int port_enlist(struct ofi_port *port, struct ofi_comm *comm, uint32_t *number);
void port_delist(struct ofi_port *port, uint32_t number);

/* Take what is done. OFI_OK even where a request has failed: that is its own affair. */
int port_move(struct ofi_port *port);

/* Call off what is under way of a request; how many pieces are left. */
uint32_t request_cancel(struct ofi_request *request, bool calls_off);

/* Ask for a message, on the first rail. OFI_AGAIN: there is no room now. */
struct port_message {
	const struct ofi_end *end; /* NULL: that of the port's first rail */
	void *data;
	size_t bytes;
	void *known;	/* its registration, or NULL */
	fi_addr_t peer; /* of a send */
	uint32_t tag;
	int label;	/* NCCL's tag, which only the RDMA protocol looks at */
	bool is_behind; /* asked for together with one before it */
	bool is_early;	/* the caller looks for the data itself */
};
int port_send(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request);
int port_recv(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request);

/* Write into the memory of the other end, and tell it so by a number. */
struct port_write {
	const char *data;
	size_t bytes;
	void *known;
	fi_addr_t peer;
	uint64_t address, key;
	uint64_t number; /* the provider may carry its lower half alone */
};
int port_write(
	struct ofi_port *port, const struct port_write *write, struct ofi_piece *piece);

/* Read from memory of this port's own into other such memory: by the network's card,
 * which reaches GPUs. `peer` is not looked at. */
int port_read_own(
	struct ofi_port *port, const struct port_write *read, struct ofi_piece *piece);

/* A few bytes from each rail of what was written to a GPU's memory: when they are there,
 * so is the rest. */
int port_flush(
	struct ofi_port *port, void *data, void *known, struct ofi_request *request);

/* What the other end must be told of registered memory to write there. */
uint64_t port_key(const struct ofi_port *port, void *known, int rail);
uint64_t port_address(const struct ofi_port *port, void *known, const void *data);

/* Do numbers arrive whole, and not just 32 bits of them? */
bool port_has_long_numbers(const struct ofi_port *port);

/* What a provider's own error number means, where it is worth a word; "" where not. */
const char *port_meaning(const char *provider, int number);

#endif
