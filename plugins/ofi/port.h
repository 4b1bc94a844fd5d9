/*
 * port.h - an endpoint of libfabric, with what belongs to it, and how its work is moved
 * on.
 *
 * A communicator has one for each device it uses, for all its connections; they are told
 * apart by tags. One lock guards it: whoever calls the plugin takes it, and moves on the
 * work of all connections of the port while it is at it.
 */
#ifndef PLUGINS_OFI_PORT_H
#define PLUGINS_OFI_PORT_H

#include <pthread.h>
#include <rdma/fi_tagged.h>

#include "device.h"
#include "known.h"

enum { ADDRESS_BYTES = 88, WHY_BYTES = 160 };

/* Something that libfabric was asked for. */
struct ofi_request {
	struct fi_context2 context; /* first: libfabric gives this back */
	bool is_used, is_asked, is_done;
	size_t bytes; /* that came */
	size_t posted;
	char why[WHY_BYTES]; /* it failed; "": it did not */
	void *owner;
};

struct ofi_port {
	const struct ofi_device *device;
	struct ofi_port *next; /* of the context's */
	uint32_t users;	       /* guarded by the context's lock */
	pthread_mutex_t lock;  /* of all below */
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	unsigned char address[ADDRESS_BYTES];
	size_t address_bytes;
	uint32_t next_id; /* tags of what comes to this port */
	struct known_cache cache;
	struct ofi_comm *graves; /* owned: closed with requests under way */
};

/* The ports of a communicator; of a process before version 11. */
struct ofi_context {
	pthread_mutex_t lock;
	struct ofi_port *ports;
	bool is_over; /* nobody asks for more: it goes with its last port */
};

/* What is connected still works: a communicator may be ended before those that were
 * split off from it and use its connections. NULL is allowed. */
void context_end(struct ofi_context *context);

/* One user more: opened for the first, closed with the last. */
int port_get(struct ofi_context *context, int device, struct ofi_port **port);
void port_put(struct ofi_context *context, struct ofi_port *port);

/* A fresh tag. With the port's lock, as all that follow. */
uint32_t port_id(struct ofi_port *port);
int port_peer(struct ofi_port *port, const unsigned char *address, fi_addr_t *peer);

/* Take what is done. OFI_OK even where a request has failed: that is its own affair. */
int port_move(struct ofi_port *port);

/* Ask for a message. OFI_AGAIN: there is no room now. */
struct port_message {
	void *data;
	size_t bytes;
	void *descriptor; /* of registered memory */
	fi_addr_t peer;	  /* of a send */
	uint32_t tag;
};
int port_send(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request);
int port_recv(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request);

/* What a provider's own error number means, where it is worth a word; "" where not. */
const char *port_meaning(const char *provider, int number);

#endif
