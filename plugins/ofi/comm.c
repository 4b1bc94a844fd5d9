#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "say.h"
#include "setting.h"
#include "state.h"

enum { CLOSE_TURNS = 100, CLOSE_US = 10 };

struct handle {
	uint32_t magic;
	uint16_t version, address_bytes;
	uint32_t listener; /* its tag */
	uint8_t is_rdma;
	unsigned char address[ADDRESS_BYTES];
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
	return comm;
}

/* ---- closing ---- */

static void comm_free(struct ofi_comm *comm)
{
	free(comm->callers);
	rdma_free(comm->rdma);
	free(comm);
}

void comms_bury(struct ofi_comm *graves)
{
	while (graves) {
		struct ofi_comm *next = graves->next;

		comm_free(graves);
		graves = next;
	}
}

/* What is under way is called off where that can be done; how much is left. */
static uint32_t requests_open(struct ofi_comm *comm, bool calls_off)
{
	uint32_t count = rdma_cancel(comm, calls_off);

	count += request_cancel(comm->port, &comm->call_request, calls_off);
	count += request_cancel(comm->port, &comm->answer_request, calls_off);
	for (uint32_t i = 0; i < REQUESTS_MAX; i++)
		count += request_cancel(comm->port, &comm->requests[i], calls_off);
	for (uint32_t i = 0; i < FLUSHES_MAX; i++)
		count += request_cancel(comm->port, &comm->flushes[i], calls_off);
	for (uint32_t i = 0; comm->callers && i < CALLERS; i++)
		count += request_cancel(comm->port, &comm->callers[i].request, calls_off);
	return count;
}

int comm_close(struct ofi_comm *comm)
{
	struct ofi_context *context = comm->context;
	struct ofi_port *port = comm->port;
	uint32_t left;

	if (comm->accepting)
		comm_close(comm->accepting);
	comm->accepting = NULL;
	pthread_mutex_lock(&port->lock);
	if (comm->is_enlisted)
		port_delist(port, comm->number);
	left = requests_open(comm, true);
	for (int turn = 0; left && turn < CLOSE_TURNS; turn++) {
		port_move(port);
		left = requests_open(comm, false);
		if (left)
			usleep(CLOSE_US);
	}
	if (left) { /* libfabric may still write into it */
		comm->next = port->graves;
		port->graves = comm;
	}
	pthread_mutex_unlock(&port->lock);
	if (!left)
		comm_free(comm);
	port_put(context, port);
	return OFI_OK;
}

/* ---- connecting ---- */

/* Hear as many as can be. There being no room now is no failure. */
static int callers_hear(struct ofi_comm *listener)
{
	int result = OFI_OK;

	while (listener->callers_heard - listener->callers_taken < CALLERS_HEARD &&
		!result) {
		struct caller *caller =
			&listener->callers[listener->callers_heard % CALLERS];
		struct port_message message = {.data = &caller->call,
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
	const struct ofi_rail *rail;
	struct ofi_port *port;
	int result = OFI_OK;

	if (!comm)
		return OFI_SYSTEM;
	port = comm->port;
	comm->callers = calloc(CALLERS, sizeof(*comm->callers));
	pthread_mutex_lock(&port->lock);
	comm->tag = port_id(port);
	rail = &port->rails[0];
	body.listener = comm->tag;
	body.is_rdma = port->device->is_rdma;
	body.address_bytes = (uint16_t)rail->address_bytes;
	memcpy(body.address, rail->address, sizeof(body.address));
	result = comm->callers ? callers_hear(comm) : OFI_SYSTEM;
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

static int request_lost(const struct ofi_comm *comm, const struct ofi_request *request)
{
	static const char *const doing[] = {[COMM_LISTENER] = "listening",
		[COMM_SENDER] = "sending",
		[COMM_RECEIVER] = "receiving"};

	if (setting_int(SET_ABORT_ON_ERROR)) {
		say_wrong(OFI_REMOTE, "%s by %s failed: %s (OFI_NCCL_ABORT_ON_ERROR)",
			doing[comm->kind], comm->port->device->name, request->why);
		abort();
	}
	return say_wrong(OFI_REMOTE, "%s by %s failed: %s", doing[comm->kind],
		comm->port->device->name, request->why);
}

static int skew_tell(uint32_t magic, uint32_t version)
{
	return say_wrong(OFI_REMOTE,
		"the other end speaks version %u%s and this one %d: use the same plugin "
		"on all hosts",
		version, magic == MAGIC ? "" : " of another plugin", WIRE_VERSION);
}

static void addresses_give(
	const struct ofi_port *port, unsigned char addresses[RAILS_MAX][ADDRESS_BYTES])
{
	for (int i = 0; i < port->rail_count; i++)
		memcpy(addresses[i], port->rails[i].address, ADDRESS_BYTES);
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
		result = port_peer(comm->port, i, addresses[i], &comm->peers[i]);
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
	int result = protocol_check(comm, handle->is_rdma);

	if (!result)
		result = port_peer(port, 0, handle->address, &comm->peers[0]);
	comm->call = (struct call){.magic = MAGIC,
		.version = WIRE_VERSION,
		.address_bytes = (uint16_t)port->rails[0].address_bytes,
		.is_rdma = port->device->is_rdma,
		.rail_count = (uint8_t)port->rail_count,
		.answer = port_id(port)};
	addresses_give(port, comm->call.addresses);
	return result;
}

/* Hear the listener's answer, and call it. */
static int listener_call(struct ofi_comm *comm, const struct handle *handle)
{
	struct port_message answer = {.data = &comm->answer,
		.bytes = sizeof(comm->answer),
		.tag = comm->call.answer};
	struct port_message call = {.data = &comm->call,
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
	if (comm->port->device->is_rdma)
		result = peers_take(
			comm, comm->answer.rail_count, comm->answer.addresses);
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

int comm_connect(
	struct ofi_context *context, int device, void *opaque, struct ofi_comm **sender)
{
	struct handle *handle = opaque;
	struct ofi_comm *comm = handle->connecting;
	int result = OFI_OK;

	*sender = NULL;
	if (handle->magic != MAGIC || handle->version != WIRE_VERSION ||
		handle->address_bytes > ADDRESS_BYTES)
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
	addresses_give(comm->port, comm->answer.addresses);
	return result;
}

static int accept_move(struct ofi_comm *comm)
{
	struct port_message message = {.data = &comm->answer,
		.bytes = sizeof(comm->answer),
		.peer = comm->peers[0],
		.tag = comm->answer_tag};
	int result = OFI_OK;

	if (!comm->answer_request.is_asked)
		result = port_send(comm->port, &message, &comm->answer_request);
	return result;
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
		if (!caller->request.why[0] &&
			caller->request.bytes == sizeof(caller->call))
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

/* ---- memory ---- */

/* Stands for memory that need not be known. */
static char nothing_to_know;

/* Can it be registered at all? */
static int range_check(const struct ofi_device *device, const struct known_range *range)
{
	if (range->kind == KNOWN_HOST ||
		(range->kind == KNOWN_CUDA && device->takes_gpu) ||
		(range->kind == KNOWN_DMABUF && device->takes_dmabuf))
		return OFI_OK;
	return say_wrong(OFI_ARGUMENT,
		"%s does not take memory of GPUs%s, which was not offered", device->name,
		range->kind == KNOWN_DMABUF ? " by dma-buf" : "");
}

int comm_reg(struct ofi_comm *comm, const struct known_range *range, void **known)
{
	struct ofi_port *port = comm->port;
	struct known *found = NULL;
	int rc;

	if (range_check(port->device, range))
		return OFI_ARGUMENT;
	if (range->kind == KNOWN_HOST && !port->device->needs_known &&
		!port->device->is_rdma) {
		*known = &nothing_to_know;
		return OFI_OK;
	}
	pthread_mutex_lock(&port->lock);
	rc = known_get(&port->cache, range, &found);
	pthread_mutex_unlock(&port->lock);
	if (rc)
		return say_wrong(OFI_SYSTEM, "%s does not register %zu bytes%s: %s; %s",
			port->device->name, range->bytes,
			range->kind == KNOWN_HOST ? "" : " of a GPU", strerror(rc),
			range->kind == KNOWN_HOST
				? "see ulimit -l"
				: "see whether nvidia_peermem or dma-buf is there");
	*known = found;
	return OFI_OK;
}

int comm_dereg(struct ofi_comm *comm, void *known)
{
	if (known == &nothing_to_know)
		return OFI_OK;
	pthread_mutex_lock(&comm->port->lock);
	known_put(&comm->port->cache, known);
	pthread_mutex_unlock(&comm->port->lock);
	return OFI_OK;
}

static void *registration(void *known)
{
	return known == &nothing_to_know ? NULL : known;
}

/* ---- messages ---- */

/* The next one, or one behind it; NULL: it is used. */
static struct ofi_request *request_find(struct ofi_comm *comm, uint32_t behind)
{
	uint32_t next = comm->next_request + behind;
	struct ofi_request *request = &comm->requests[next % REQUESTS_MAX];

	return request->is_used ? NULL : request;
}

static int message_ask(
	struct ofi_comm *comm, struct port_message *message, struct ofi_request *request)
{
	bool is_sender = comm->kind == COMM_SENDER;

	if (comm->rdma)
		return is_sender ? rdma_send(comm, message, request)
				 : rdma_recv(comm, message, request);
	message->peer = comm->peers[0];
	message->tag = comm->tag;
	return is_sender ? port_send(comm->port, message, request)
			 : port_recv(comm->port, message, request);
}

/* With the lock. */
static int place_ask(
	struct ofi_comm *comm, const struct comm_place *place, bool is_behind)
{
	struct port_message message = {.data = place->data,
		.bytes = place->bytes,
		.known = registration(place->known),
		.label = place->label,
		.is_behind = is_behind};
	struct ofi_request *request = request_find(comm, 0);
	int result;

	memset(request, 0, sizeof(*request));
	request->owner = comm;
	result = message_ask(comm, &message, request);
	if (result)
		return result;
	request->is_used = true;
	comm->next_request++;
	return OFI_OK;
}

/* All or nothing: only the first can be without room (rdma_recv()). */
static int comm_ask(struct ofi_comm *comm, const struct comm_place *places, int count,
	struct ofi_request **request)
{
	struct ofi_request *first;
	int result = OFI_OK;

	*request = NULL;
	pthread_mutex_lock(&comm->port->lock);
	first = request_find(comm, 0);
	for (int i = 0; i < count && !result; i++)
		if (!request_find(comm, (uint32_t)i))
			result = OFI_AGAIN;
	for (int i = 0; i < count && !result; i++)
		result = place_ask(comm, &places[i], i > 0);
	if (!result) {
		first->group_count = count;
		*request = first;
	}
	pthread_mutex_unlock(&comm->port->lock);
	return result == OFI_AGAIN ? OFI_OK : result;
}

int comm_send(struct ofi_comm *comm, const struct comm_place *place,
	struct ofi_request **request)
{
	return comm->kind == COMM_SENDER ? comm_ask(comm, place, 1, request)
					 : OFI_ARGUMENT;
}

int comm_recv(struct ofi_comm *comm, const struct comm_place *places, int count,
	struct ofi_request **request)
{
	int most = comm->rdma ? RECVS_MAX : 1;

	if (count < 1 || count > most)
		return say_wrong(OFI_INTERNAL,
			"%d receives at once were asked for, and %d were offered", count,
			most);
	return comm->kind == COMM_RECEIVER ? comm_ask(comm, places, count, request)
					   : OFI_ARGUMENT;
}

/* With the lock. What there is no room for now is asked again in comm_test(): a flush
 * without a request would be taken for done. */
static int flush_begin(struct ofi_comm *comm, struct ofi_request *request, void *data,
	struct known *known)
{
	int result;

	memset(request, 0, sizeof(*request));
	request->owner = comm;
	request->is_used = request->is_flush = true;
	request->group_count = 1;
	request->data = data;
	request->known = known;
	result = port_flush(comm->port, data, known, request);
	return result == OFI_AGAIN ? OFI_OK : result;
}

int comm_flush(
	struct ofi_comm *comm, void *data, void *known, struct ofi_request **request)
{
	struct ofi_request *free_one = NULL;
	int result = OFI_OK;

	*request = NULL;
	if (!registration(known) || !known_is_gpu(known) ||
		setting_int(SET_GDR_FLUSH_DISABLE))
		return OFI_OK;
	if (setting_int(SET_CUDA_FLUSH_ENABLE))
		return gpu_flush();
	pthread_mutex_lock(&comm->port->lock);
	for (int i = 0; i < FLUSHES_MAX && !free_one; i++)
		if (!comm->flushes[i].is_used)
			free_one = &comm->flushes[i];
	if (free_one)
		result = flush_begin(comm, free_one, data, known);
	else
		result = say_wrong(OFI_INTERNAL,
			"more than %d flushes are under way on a connection",
			FLUSHES_MAX);
	pthread_mutex_unlock(&comm->port->lock);
	if (!result)
		*request = free_one;
	return result;
}

/* The parts of a flush that libfabric has not taken yet. */
static int flush_move(struct ofi_request *request)
{
	struct ofi_comm *comm = request->owner;
	int result = port_flush(comm->port, request->data, request->known, request);

	return result == OFI_AGAIN ? OFI_OK : result;
}

/* One of those that were asked for together. */
static struct ofi_request *member(struct ofi_request *first, int i)
{
	struct ofi_comm *comm = first->owner;
	uint32_t index;

	if (first->is_flush)
		return first;
	index = (uint32_t)(first - comm->requests) + (uint32_t)i;
	return &comm->requests[index % REQUESTS_MAX];
}

/* Are all of them done? Or one lost? */
static int group_look(struct ofi_request *first, bool *are_done)
{
	struct ofi_comm *comm = first->owner;
	int result = OFI_OK;

	*are_done = true;
	for (int i = 0; i < first->group_count && !result; i++) {
		const struct ofi_request *request = member(first, i);

		*are_done = *are_done && request->is_done;
		if (request->is_done && request->why[0])
			result = request_lost(comm, request);
	}
	return result;
}

static void group_end(struct ofi_request *first, int *bytes)
{
	const struct ofi_comm *comm = first->owner;

	for (int i = 0; i < first->group_count; i++) {
		struct ofi_request *request = member(first, i);

		if (bytes)
			bytes[i] = (int)(comm->kind == COMM_SENDER ? request->posted
								   : request->bytes);
		request->is_used = false;
	}
}

int comm_test(struct ofi_request *request, int *is_done, int *bytes)
{
	struct ofi_comm *comm = request->owner;
	bool are_done = false;
	int result = OFI_OK;

	*is_done = 0;
	pthread_mutex_lock(&comm->port->lock);
	if (!request->is_done && request->is_flush)
		result = flush_move(request);
	if (!result)
		result = group_look(request, &are_done);
	if (!result && !are_done) {
		result = comm->rdma ? rdma_move(comm) : port_move(comm->port);
		if (!result)
			result = group_look(request, &are_done);
	}
	if (!result && are_done) {
		*is_done = 1;
		group_end(request, bytes);
	}
	pthread_mutex_unlock(&comm->port->lock);
	return result;
}
