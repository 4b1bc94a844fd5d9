/*
 * connect.c - how two ends come to know each other: of comm.h comm_listen(),
 * comm_connect() and comm_accept().
 *
 * Ends of different versions tell each other so. For that the first words of a handle and
 * of a call are the same in all versions, and an end that finds another version in a
 * handle calls the listener all the same, so that it hears of it, too.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"
#include "state.h"

struct handle {
	/* the same in all versions */
	uint32_t magic;
	uint16_t version, address_bytes;
	uint32_t listener; /* its tag */
	uint8_t is_rdma;
	unsigned char address[ADDRESS_BYTES];
	/* of this one */
	struct ofi_comm *connecting; /* of who connects */
};
_Static_assert(sizeof(struct handle) <= PLUGIN_HANDLE_BYTES, "a handle holds it");

static struct ofi_comm *comm_make(
	struct ofi_context *context, int device, enum comm_kind kind)
{
	struct ofi_comm *comm = calloc(1, sizeof(*comm));

	if (!comm) {
		say_wrong(OFI_SYSTEM, "no memory for a connection");
		return NULL;
	}
	comm->kind = kind;
	comm->context = context;
	if (port_get(context, device, &comm->port)) {
		free(comm);
		return NULL;
	}
	comm->end = comm->port->device->holds_up ? &comm->own : &comm->port->rails[0].end;
	return comm;
}

/* Have the end of its messages. With the lock. */
static int end_get(struct ofi_comm *comm)
{
	return comm->end == &comm->own ? port_end_open(comm->port, &comm->own) : OFI_OK;
}

/* Hear as many as can be. There being no room now is no failure. */
static int callers_hear(struct ofi_comm *listener)
{
	int result = OFI_OK;

	while (listener->callers_heard - listener->callers_taken < CALLERS_HEARD &&
		!result) {
		struct caller *caller =
			&listener->callers[listener->callers_heard % CALLERS];
		struct port_message message = {.end = listener->end,
			.data = &caller->call,
			.bytes = sizeof(caller->call),
			.tag = listener->tag};

		memset(&caller->request, 0, sizeof(caller->request));
		result = port_recv(listener->port, &message, &caller->request);
		if (!result)
			listener->callers_heard++;
	}
	return result == OFI_AGAIN ? OFI_OK : result;
}

int comm_listen(
	struct ofi_context *context, int device, void *handle, struct ofi_comm **listener)
{
	struct ofi_comm *comm = comm_make(context, device, COMM_LISTENER);
	struct handle body = {.magic = MAGIC, .version = WIRE_VERSION};
	struct ofi_port *port;
	int result = OFI_OK;

	if (!comm)
		return OFI_SYSTEM;
	port = comm->port;
	comm->callers = calloc(CALLERS, sizeof(*comm->callers));
	pthread_mutex_lock(&port->lock);
	result = comm->callers ? end_get(comm) : OFI_SYSTEM;
	comm->tag = port_id(port);
	body.listener = comm->tag;
	body.is_rdma = port->device->is_rdma;
	body.address_bytes = (uint16_t)comm->end->address_bytes;
	memcpy(body.address, comm->end->address, sizeof(body.address));
	if (!result)
		result = callers_hear(comm);
	pthread_mutex_unlock(&port->lock);
	if (result) {
		say_wrong(OFI_SYSTEM, "%s cannot listen", port->device->name);
		comm_close(comm);
		return OFI_SYSTEM;
	}
	memset(handle, 0, PLUGIN_HANDLE_BYTES);
	memcpy(handle, &body, sizeof(body));
	*listener = comm;
	return OFI_OK;
}

static int skew_tell(uint32_t magic, uint32_t version)
{
	return say_wrong(OFI_REMOTE,
		"the other end speaks version %u%s and this one %d: use the same plugin "
		"on all hosts",
		version, magic == MAGIC ? "" : " of another plugin", WIRE_VERSION);
}

/* Of the first rail it is the end of this connection. */
static const struct ofi_end *end_of(const struct ofi_comm *comm, int rail)
{
	return rail ? &comm->port->rails[rail].end : comm->end;
}

static void addresses_give(
	const struct ofi_comm *comm, unsigned char addresses[RAILS_MAX][ADDRESS_BYTES])
{
	for (int i = 0; i < comm->port->rail_count; i++)
		memcpy(addresses[i], end_of(comm, i)->address, ADDRESS_BYTES);
}

/* The rails of the other end, as far as there are such here. */
static int peers_take(struct ofi_comm *comm, int rail_count,
	unsigned char addresses[RAILS_MAX][ADDRESS_BYTES])
{
	int result = OFI_OK;

	if (rail_count < 1 || rail_count > RAILS_MAX)
		return say_wrong(OFI_REMOTE, "the other end says that it has %d rails",
			rail_count);
	comm->rail_count = comm->port->rail_count;
	if (comm->rail_count > rail_count)
		comm->rail_count = rail_count;
	for (int i = 0; i < comm->rail_count && !result; i++)
		result = port_peer(
			comm->port, end_of(comm, i), addresses[i], &comm->peers[i]);
	return result;
}

/* Both ends must send as the other receives. */
static int protocol_check(const struct ofi_comm *comm, bool is_rdma)
{
	if (comm->port->device->is_rdma == is_rdma)
		return OFI_OK;
	return say_wrong(OFI_REMOTE,
		"the other end uses the protocol %s and this one %s: set "
		"OFI_NCCL_PROTOCOL alike on all hosts",
		is_rdma ? "RDMA" : "SENDRECV", is_rdma ? "SENDRECV" : "RDMA");
}

/* With the lock. */
static int connect_begin(struct ofi_comm *comm, const struct handle *handle)
{
	struct ofi_port *port = comm->port;
	int result = handle->version == WIRE_VERSION
			     ? protocol_check(comm, handle->is_rdma)
			     : OFI_OK;

	if (!result)
		result = end_get(comm);
	if (!result)
		result = port_peer(port, comm->end, handle->address, &comm->peers[0]);
	comm->call = (struct call){.magic = MAGIC,
		.version = WIRE_VERSION,
		.address_bytes = (uint16_t)comm->end->address_bytes,
		.is_rdma = port->device->is_rdma,
		.rail_count = (uint8_t)port->rail_count,
		.answer = port_id(port)};
	addresses_give(comm, comm->call.addresses);
	return result;
}

/* Hear the listener's answer, and call it. */
static int listener_call(struct ofi_comm *comm, const struct handle *handle)
{
	struct port_message answer = {.end = comm->end,
		.data = &comm->answer,
		.bytes = sizeof(comm->answer),
		.tag = comm->call.answer};
	struct port_message call = {.end = comm->end,
		.data = &comm->call,
		.bytes = sizeof(comm->call),
		.peer = comm->peers[0],
		.tag = handle->listener};
	int result = OFI_OK;

	if (!comm->answer_request.is_asked)
		result = port_recv(comm->port, &answer, &comm->answer_request);
	if (!result && !comm->call_request.is_asked)
		result = port_send(comm->port, &call, &comm->call_request);
	return result;
}

static int connect_move(struct ofi_comm *comm, const struct handle *handle)
{
	int result = listener_call(comm, handle);

	if (!result)
		result = port_move(comm->port);
	if (result)
		return result;
	if (handle->version != WIRE_VERSION) /* the listener knows it now, or is gone */
		return comm->call_request.is_done
			       ? skew_tell(handle->magic, handle->version)
			       : OFI_AGAIN;
	if (comm->call_request.why[0])
		return request_lost(comm, &comm->call_request);
	if (comm->answer_request.why[0])
		return request_lost(comm, &comm->answer_request);
	if (!comm->answer_request.is_done || !comm->call_request.is_done)
		return OFI_AGAIN;
	if (comm->answer.magic != MAGIC || comm->answer.version != WIRE_VERSION)
		return skew_tell(comm->answer.magic, comm->answer.version);
	comm->tag = comm->answer.tag;
	comm->number = comm->answer.number;
	result = peers_take(comm, comm->answer.rail_count, comm->answer.addresses);
	return result || !comm->port->device->is_rdma ? result : rdma_open(comm);
}

static void connecting_add(struct ofi_context *context, struct ofi_comm *comm)
{
	pthread_mutex_lock(&context->lock);
	comm->next = context->connecting;
	context->connecting = comm;
	pthread_mutex_unlock(&context->lock);
}

static void connecting_drop(struct ofi_context *context, struct ofi_comm *comm)
{
	struct ofi_comm **link = &context->connecting;

	pthread_mutex_lock(&context->lock);
	while (*link && *link != comm)
		link = &(*link)->next;
	if (*link)
		*link = comm->next;
	comm->next = NULL;
	pthread_mutex_unlock(&context->lock);
}

void comms_give_up(struct ofi_context *context)
{
	while (context->connecting) {
		struct ofi_comm *comm = context->connecting;

		connecting_drop(context, comm);
		comm_close(comm);
	}
}

/* What has been begun for this handle. Another version has something else in that place,
 * so it is looked for and not believed. */
static struct ofi_comm *connecting_find(
	struct ofi_context *context, const struct handle *handle)
{
	struct ofi_comm *comm;

	pthread_mutex_lock(&context->lock);
	comm = context->connecting;
	while (comm && comm != handle->connecting)
		comm = comm->next;
	pthread_mutex_unlock(&context->lock);
	return comm;
}

int comm_connect(
	struct ofi_context *context, int device, void *opaque, struct ofi_comm **sender)
{
	struct handle *handle = opaque;
	struct ofi_comm *comm = connecting_find(context, handle);
	int result = OFI_OK;

	*sender = NULL;
	if (handle->magic != MAGIC || handle->address_bytes > ADDRESS_BYTES)
		return skew_tell(handle->magic, handle->version);
	if (!comm) {
		comm = comm_make(context, device, COMM_SENDER);
		if (!comm)
			return OFI_SYSTEM;
		connecting_add(context, comm);
		pthread_mutex_lock(&comm->port->lock);
		result = connect_begin(comm, handle);
		pthread_mutex_unlock(&comm->port->lock);
	}
	handle->connecting = comm;
	if (!result) {
		pthread_mutex_lock(&comm->port->lock);
		result = connect_move(comm, handle);
		pthread_mutex_unlock(&comm->port->lock);
	}
	if (result == OFI_AGAIN)
		return OFI_OK;
	handle->connecting = NULL;
	connecting_drop(context, comm);
	if (result)
		comm_close(comm);
	else
		*sender = comm;
	return result;
}

/* A receiver for who called; its answer goes out in accept_move(). */
static int accept_begin(struct ofi_comm *listener, struct call *call)
{
	int device = 0;
	struct ofi_comm *comm;
	int result;

	if (call->magic != MAGIC || call->version != WIRE_VERSION)
		return skew_tell(call->magic, call->version);
	while (device_at(device) != listener->port->device)
		device++;
	comm = comm_make(listener->context, device, COMM_RECEIVER);
	if (!comm)
		return OFI_SYSTEM;
	listener->accepting = comm;
	comm->answer_tag = call->answer;
	comm->tag = port_id(comm->port);
	result = protocol_check(comm, call->is_rdma);
	if (!result)
		result = end_get(comm);
	if (!result)
		result = peers_take(comm, call->rail_count, call->addresses);
	if (!result && comm->port->device->is_rdma) {
		result = port_enlist(comm->port, comm, &comm->number);
		comm->is_enlisted = !result;
		if (!result)
			result = rdma_open(comm);
	}
	comm->answer = (struct answer){.magic = MAGIC,
		.version = WIRE_VERSION,
		.tag = comm->tag,
		.number = comm->number,
		.is_rdma = comm->port->device->is_rdma,
		.rail_count = (uint8_t)comm->port->rail_count};
	addresses_give(comm, comm->answer.addresses);
	return result;
}

static int accept_move(struct ofi_comm *comm)
{
	struct port_message message = {.end = comm->end,
		.data = &comm->answer,
		.bytes = sizeof(comm->answer),
		.peer = comm->peers[0],
		.tag = comm->answer_tag};
	int result = OFI_OK;

	if (!comm->answer_request.is_asked)
		result = port_send(comm->port, &message, &comm->answer_request);
	return result;
}

/* One of another version may be shorter, or too long to come whole. */
static bool call_is_whole(const struct caller *caller)
{
	const struct call *call = &caller->call;

	return (!caller->request.why[0] && caller->request.bytes == sizeof(*call)) ||
	       (caller->request.bytes >= offsetof(struct call, address_bytes) &&
		       call->magic == MAGIC && call->version != WIRE_VERSION);
}

/* Has somebody called? What is no call is passed over. With the lock. */
static int callers_look(struct ofi_comm *listener)
{
	int result = port_move(listener->port);

	while (!listener->accepting && !result) {
		struct caller *caller =
			&listener->callers[listener->callers_taken % CALLERS];

		if (!caller->request.is_done)
			break;
		caller->request.is_done = false;
		listener->callers_taken++;
		if (call_is_whole(caller))
			result = accept_begin(listener, &caller->call);
	}
	return result ? result : callers_hear(listener);
}

int comm_accept(struct ofi_comm *listener, struct ofi_comm **receiver)
{
	struct ofi_port *port = listener->port;
	int result = OFI_OK;

	*receiver = NULL;
	pthread_mutex_lock(&port->lock);
	if (!listener->accepting)
		result = callers_look(listener);
	if (!result && listener->accepting)
		result = accept_move(listener->accepting);
	else if (!result)
		result = OFI_AGAIN;
	pthread_mutex_unlock(&port->lock);
	if (result == OFI_AGAIN)
		return OFI_OK;
	if (!result)
		*receiver = listener->accepting;
	else if (listener->accepting)
		comm_close(listener->accepting);
	listener->accepting = NULL;
	return result;
}
