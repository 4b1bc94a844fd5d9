#include "comm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "setting.h"

enum {
	MAGIC = 0x57464f31, /* of handles and of what is said when connecting */
	WIRE_VERSION = 1,
	CALLERS = 8, /* that a listener hears at once */
	REQUESTS_MAX = 128,
	CLOSE_TURNS = 100,
	CLOSE_US = 10
};

struct handle {
	uint32_t magic;
	uint16_t version, address_bytes;
	uint32_t listener; /* its tag */
	unsigned char address[ADDRESS_BYTES];
	struct ofi_comm *connecting; /* of who connects */
};
_Static_assert(sizeof(struct handle) <= PLUGIN_HANDLE_BYTES, "a handle holds it");

/* What the two ends say when they connect. */
struct call {
	uint32_t magic;
	uint16_t version, address_bytes;
	uint32_t answer; /* a tag of who calls */
	unsigned char address[ADDRESS_BYTES];
};

struct answer {
	uint32_t magic, version;
	uint32_t tag; /* for messages */
};

enum comm_kind { COMM_LISTENER, COMM_SENDER, COMM_RECEIVER };

struct caller {
	struct ofi_request request;
	struct call call;
};

struct ofi_comm {
	enum comm_kind kind;
	struct ofi_context *context;
	struct ofi_port *port;
	struct ofi_comm *next; /* of the port's graves */
	fi_addr_t peer;
	uint32_t tag; /* of its messages; of a listener what callers use */
	uint32_t answer_tag;
	/* while it is being made, and afterwards the memory of that */
	struct ofi_request call_request, answer_request;
	struct call call;
	struct answer answer;
	struct caller *callers;	    /* owned: of a listener */
	struct ofi_comm *accepting; /* owned: the answer is not on its way yet */
	uint32_t next_request;
	struct ofi_request requests[REQUESTS_MAX];
};

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

static bool is_open(const struct ofi_request *request)
{
	return request->is_asked && !request->is_done;
}

/* What is under way is called off where that can be done; how much is left. */
static uint32_t requests_open(struct ofi_comm *comm, bool calls_off)
{
	struct ofi_request *own[] = {&comm->call_request, &comm->answer_request};
	uint32_t count = 0;

	for (uint32_t i = 0; i < REQUESTS_MAX + 2 + CALLERS; i++) {
		struct ofi_request *request;

		if (i < REQUESTS_MAX)
			request = &comm->requests[i];
		else if (i < REQUESTS_MAX + 2)
			request = own[i - REQUESTS_MAX];
		else if (comm->callers)
			request = &comm->callers[i - REQUESTS_MAX - 2].request;
		else
			break;
		if (!is_open(request))
			continue;
		count++;
		if (calls_off)
			fi_cancel(&comm->port->ep->fid, &request->context);
	}
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

static int caller_hear(struct ofi_comm *listener, struct caller *caller)
{
	struct port_message message = {.data = &caller->call,
		.bytes = sizeof(caller->call),
		.tag = listener->tag};

	memset(&caller->request, 0, sizeof(caller->request));
	return port_recv(listener->port, &message, &caller->request);
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
	comm->tag = port_id(port);
	body.listener = comm->tag;
	body.address_bytes = (uint16_t)port->address_bytes;
	memcpy(body.address, port->address, sizeof(body.address));
	for (int i = 0; comm->callers && i < CALLERS && !result; i++)
		result = caller_hear(comm, &comm->callers[i]);
	pthread_mutex_unlock(&port->lock);
	if (!comm->callers || result) {
		comm_close(comm);
		return say_wrong(OFI_SYSTEM, "%s cannot listen", port->device->name);
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

/* Call the listener, and hear its answer. With the lock. */
static int connect_begin(struct ofi_comm *comm, const struct handle *handle)
{
	struct ofi_port *port = comm->port;
	struct port_message message = {
		.data = &comm->answer, .bytes = sizeof(comm->answer)};
	int result = port_peer(port, handle->address, &comm->peer);

	if (result)
		return result;
	message.tag = port_id(port);
	comm->call = (struct call){.magic = MAGIC,
		.version = WIRE_VERSION,
		.address_bytes = (uint16_t)port->address_bytes,
		.answer = message.tag};
	memcpy(comm->call.address, port->address, sizeof(port->address));
	return port_recv(port, &message, &comm->answer_request);
}

static int connect_move(struct ofi_comm *comm, const struct handle *handle)
{
	struct port_message message = {.data = &comm->call,
		.bytes = sizeof(comm->call),
		.peer = comm->peer,
		.tag = handle->listener};
	int result = OFI_OK;

	if (!comm->call_request.is_asked)
		result = port_send(comm->port, &message, &comm->call_request);
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
	return OFI_OK;
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
	if (result)
		comm_close(comm);
	else
		*sender = comm;
	return result;
}

/* A receiver for who called; its answer goes out in accept_move(). */
static int accept_begin(struct ofi_comm *listener, const struct call *call)
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
	result = port_peer(comm->port, call->address, &comm->peer);
	comm->answer_tag = call->answer;
	comm->tag = port_id(comm->port);
	comm->answer = (struct answer){MAGIC, WIRE_VERSION, comm->tag};
	listener->accepting = comm;
	return result;
}

static int accept_move(struct ofi_comm *comm)
{
	struct port_message message = {.data = &comm->answer,
		.bytes = sizeof(comm->answer),
		.peer = comm->peer,
		.tag = comm->answer_tag};
	int result = OFI_OK;

	if (!comm->answer_request.is_asked)
		result = port_send(comm->port, &message, &comm->answer_request);
	return result;
}

/* Has somebody called? With the lock. */
static int callers_look(struct ofi_comm *listener)
{
	int result = port_move(listener->port);

	for (int i = 0; i < CALLERS && !listener->accepting && !result; i++) {
		struct caller *caller = &listener->callers[i];

		if (!caller->request.is_asked) { /* there was no room */
			result = caller_hear(listener, caller);
			result = result == OFI_AGAIN ? OFI_OK : result;
		}
		if (!caller->request.is_done || result)
			continue;
		/* what is no call is passed over */
		if (!caller->request.why[0] &&
			caller->request.bytes == sizeof(caller->call))
			result = accept_begin(listener, &caller->call);
		if (!result)
			result = caller_hear(listener, caller);
		if (result == OFI_AGAIN)
			result = OFI_OK;
	}
	return result;
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
	if (!result) {
		*receiver = listener->accepting;
		listener->accepting = NULL;
	}
	return result == OFI_AGAIN ? OFI_OK : result;
}

/* ---- memory ---- */

/* Stands for memory that need not be known. */
static char nothing_to_know;

int comm_reg(struct ofi_comm *comm, void *data, size_t bytes, void **known)
{
	struct ofi_port *port = comm->port;
	struct known *found = NULL;
	int rc;

	if (!port->device->needs_known) {
		*known = &nothing_to_know;
		return OFI_OK;
	}
	pthread_mutex_lock(&port->lock);
	rc = known_get(&port->cache, data, bytes, &found);
	pthread_mutex_unlock(&port->lock);
	if (rc)
		return say_wrong(OFI_SYSTEM,
			"%s does not register %zu bytes: %s; see ulimit -l",
			port->device->name, bytes, strerror(rc));
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

static void *descriptor_of(void *known)
{
	return known == &nothing_to_know ? NULL : fi_mr_desc(known_made(known));
}

/* ---- messages ---- */

static struct ofi_request *request_find(struct ofi_comm *comm)
{
	struct ofi_request *request = &comm->requests[comm->next_request % REQUESTS_MAX];

	if (request->is_used)
		return NULL;
	memset(request, 0, sizeof(*request));
	request->owner = comm;
	return request;
}

static int comm_ask(
	struct ofi_comm *comm, struct port_message *message, struct ofi_request **request)
{
	struct ofi_request *free_one;
	int result = OFI_AGAIN;

	*request = NULL;
	message->peer = comm->peer;
	message->tag = comm->tag;
	pthread_mutex_lock(&comm->port->lock);
	free_one = request_find(comm);
	if (free_one && comm->kind == COMM_SENDER)
		result = port_send(comm->port, message, free_one);
	else if (free_one)
		result = port_recv(comm->port, message, free_one);
	if (!result) {
		free_one->is_used = true;
		comm->next_request++;
		*request = free_one;
	}
	pthread_mutex_unlock(&comm->port->lock);
	return result == OFI_AGAIN ? OFI_OK : result;
}

int comm_send(struct ofi_comm *comm, void *data, size_t bytes, void *known,
	struct ofi_request **request)
{
	struct port_message message = {
		.data = data, .bytes = bytes, .descriptor = descriptor_of(known)};

	return comm->kind == COMM_SENDER ? comm_ask(comm, &message, request)
					 : OFI_ARGUMENT;
}

int comm_recv(struct ofi_comm *comm, void *data, size_t bytes, void *known,
	struct ofi_request **request)
{
	struct port_message message = {
		.data = data, .bytes = bytes, .descriptor = descriptor_of(known)};

	return comm->kind == COMM_RECEIVER ? comm_ask(comm, &message, request)
					   : OFI_ARGUMENT;
}

int comm_test(struct ofi_request *request, int *is_done, int *bytes)
{
	struct ofi_comm *comm = request->owner;
	int result = OFI_OK;

	*is_done = 0;
	pthread_mutex_lock(&comm->port->lock);
	if (!request->is_done)
		result = port_move(comm->port);
	if (!result && request->is_done && request->why[0])
		result = request_lost(comm, request);
	if (!result && request->is_done) {
		*is_done = 1;
		if (bytes)
			*bytes = (int)(comm->kind == COMM_SENDER ? request->posted
								 : request->bytes);
		request->is_used = false;
	}
	pthread_mutex_unlock(&comm->port->lock);
	return result;
}
