#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"
#include "say.h"
#include "setting.h"
#include "state.h"

enum { CLOSE_TURNS = 100, CLOSE_US = 10 };

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

	count += request_cancel(&comm->call_request, calls_off);
	count += request_cancel(&comm->answer_request, calls_off);
	for (uint32_t i = 0; i < REQUESTS_MAX; i++)
		count += request_cancel(&comm->requests[i], calls_off);
	for (uint32_t i = 0; i < FLUSHES_MAX; i++)
		count += request_cancel(&comm->flushes[i], calls_off);
	for (uint32_t i = 0; comm->callers && i < CALLERS; i++)
		count += request_cancel(&comm->callers[i].request, calls_off);
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
	if (comm->end == &comm->own)
		port_end_close(&comm->own);
	pthread_mutex_unlock(&port->lock);
	if (!left)
		comm_free(comm);
	port_put(context, port);
	return OFI_OK;
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
	char remedy[SAY_REMEDY_BYTES];
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
		return say_wrong(OFI_SYSTEM, "%s does not register %zu bytes%s: %s%s",
			port->device->name, range->bytes,
			range->kind == KNOWN_HOST ? "" : " of a GPU", strerror(rc),
			range->kind == KNOWN_HOST
				? say_memlock(rc, remedy)
				: "; see whether nvidia_peermem or dma-buf is there");
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

int request_lost(const struct ofi_comm *comm, const struct ofi_request *request)
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
	message->end = comm->end;
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
		.is_early = place->is_early && comm->port->device->ends_early,
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
