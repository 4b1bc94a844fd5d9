#include "port.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"
#include "newer.h"
#include "say.h"
#include "setting.h"

enum { PAGE_BYTES = 4096, FLUSH_BYTES = 4 };
enum { DRAIN_TURNS = 20, DRAIN_US = 10, READ_MAX = 64, RECEIVERS_MIN = 64 };

/* ---- memory ---- */

/* A registration on every rail. */
struct memory {
	struct fid_mr *on[RAILS_MAX];
};

static void memory_dereg(void *context, void *made)
{
	struct memory *memory = made;

	(void)context;
	for (int i = 0; i < RAILS_MAX; i++)
		if (memory->on[i])
			fi_close(&memory->on[i]->fid);
	free(memory);
}

/* In the words of libfabric: by its address, or by its dma-buf. */
static int range_reg(struct ofi_port *port, int rail, const struct known_range *range,
	uint64_t access, struct fid_mr **mr)
{
	struct iovec iov = {.iov_base = range->data, .iov_len = range->bytes};
	struct newer_dmabuf dmabuf = {.fd = range->fd,
		.offset = range->offset,
		.bytes = range->bytes,
		.base = range->data};
	union newer_mr_attr attr = {.room = {0}};

	attr.attr.mr_iov = &iov;
	attr.attr.iov_count = 1;
	attr.attr.access = access;
	/* where the user chooses keys they must differ */
	attr.attr.requested_key = port_id(port);
	attr.attr.iface = FI_HMEM_CUDA;
	attr.attr.device.cuda = range->device;
	if (range->kind == KNOWN_DMABUF)
		attr.dmabuf = &dmabuf;
	return fi_mr_regattr(port->rails[rail].domain, &attr.attr,
		range->kind == KNOWN_DMABUF ? NEWER_MR_DMABUF : 0, mr);
}

static int memory_reg_on(struct ofi_port *port, int rail, const struct known_range *range,
	struct fid_mr **mr)
{
	uint64_t access = FI_SEND | FI_RECV;
	const struct fi_info *info = port->device->infos[rail];
	int rc;

	if (port->device->is_rdma)
		access |= FI_WRITE | FI_REMOTE_WRITE;
	if (port->device->takes_gpu)
		access |= FI_READ | FI_REMOTE_READ;
	if (range->kind == KNOWN_HOST)
		rc = fi_mr_reg(port->rails[rail].domain, range->data, range->bytes,
			access, 0, port_id(port), 0, mr, NULL);
	else
		rc = range_reg(port, rail, range, access, mr);
	if (!rc && info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		rc = fi_mr_bind(*mr, &port->rails[rail].end.ep->fid, 0);
		if (!rc)
			rc = fi_mr_enable(*mr);
	}
	return -rc;
}

static int memory_reg(void *context, const struct known_range *range, void **made)
{
	struct ofi_port *port = context;
	struct memory *memory = calloc(1, sizeof(*memory));
	int rc = memory ? 0 : FI_ENOMEM;

	for (int i = 0; i < port->rail_count && !rc; i++)
		rc = memory_reg_on(port, i, range, &memory->on[i]);
	if (rc && memory)
		memory_dereg(port, memory);
	*made = memory;
	return rc;
}

static const struct known_ops memory_ops = {memory_reg, memory_dereg};

static void *descriptor_of(void *known, int rail)
{
	const struct memory *memory = known ? known_made(known) : NULL;

	return memory ? fi_mr_desc(memory->on[rail]) : NULL;
}

uint64_t port_key(const struct ofi_port *port, void *known, int rail)
{
	const struct memory *memory = known_made(known);

	(void)port;
	return fi_mr_key(memory->on[rail]);
}

bool port_has_long_numbers(const struct ofi_port *port)
{
	return port->device->infos[0]->domain_attr->cq_data_size >= sizeof(uint64_t);
}

uint64_t port_address(const struct ofi_port *port, void *known, const void *data)
{
	bool is_virtual = port->device->infos[0]->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

	return (uint64_t)(uintptr_t)data - (is_virtual ? 0 : known_first(known));
}

/* ---- opening and closing ---- */

static void fid_close(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

/* What was sent last may still be in the provider's hands. */
static void port_drain(struct ofi_port *port)
{
	for (int turn = 0; turn < DRAIN_TURNS; turn++) {
		port_move(port);
		usleep(DRAIN_US);
	}
}

void port_end_close(struct ofi_end *end)
{
	fid_close(end->ep ? &end->ep->fid : NULL);
	fid_close(end->av ? &end->av->fid : NULL);
	*end = (struct ofi_end){.ep = NULL};
}

void rail_close(struct ofi_rail *rail)
{
	port_end_close(&rail->end);
	fid_close(rail->cq ? &rail->cq->fid : NULL);
	fid_close(rail->domain ? &rail->domain->fid : NULL);
	fid_close(rail->fabric ? &rail->fabric->fid : NULL);
}

static void port_close(struct ofi_port *port)
{
	if (port->rail_count == port->device->rail_count)
		port_drain(port);
	known_forget(&port->cache);
	for (int i = 0; i < RAILS_MAX; i++)
		rail_close(&port->rails[i]);
	comms_bury(port->graves);
	free(port->receivers);
	free(port->page);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

/* EFA wants to be told; who does not know these options needs not. */
int rail_gpu_set(struct ofi_rail *rail)
{
	int p2p = FI_HMEM_P2P_REQUIRED, rc;
	bool is_permitted = false;

	rc = fi_setopt(&rail->end.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
		sizeof(p2p));
	if (!rc && FI_VERSION_GE(fi_version(), FI_VERSION(1, 18)))
		rc = fi_setopt(&rail->end.ep->fid, FI_OPT_ENDPOINT, NEWER_OPT_CUDA_API,
			&is_permitted, sizeof(is_permitted));
	return rc == -FI_ENOPROTOOPT || rc == -FI_ENOSYS ? 0 : rc;
}

bool rail_lines_set(struct ofi_rail *rail, bool is_rdma)
{
	bool is_wanted = true;

	return !fi_setopt(&rail->end.ep->fid, FI_OPT_ENDPOINT,
		is_rdma ? NEWER_OPT_EFA_LINES_WRITTEN : NEWER_OPT_EFA_LINES_SENT,
		&is_wanted, sizeof(is_wanted));
}

/* Where GPU memory is taken: what is read to flush it comes from here and goes here. */
static int port_prepare(struct ofi_port *port)
{
	struct known_range range = {.bytes = PAGE_BYTES};
	int rc = 0;

	port->page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
	if (!port->page)
		return -FI_ENOMEM;
	range.data = port->page;
	for (int i = 0; i < port->rail_count && !rc; i++)
		rc = fi_av_insert(port->rails[i].end.av, port->rails[i].end.address, 1,
			     &port->rails[i].self, 0, NULL) == 1
			     ? 0
			     : -FI_EINVAL;
	return rc ? rc : -known_get(&port->cache, &range, &port->page_known);
}

static int end_bind(struct ofi_end *end, const struct ofi_rail *rail,
	struct fi_info *info, const char **step)
{
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	int rc;

	*step = "fi_av_open";
	rc = fi_av_open(rail->domain, &av, &end->av, NULL);
	if (rc)
		return rc;
	*step = "fi_endpoint";
	rc = fi_endpoint(rail->domain, info, &end->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(end->ep, &end->av->fid, 0);
	return rc ? rc : fi_ep_bind(end->ep, &rail->cq->fid, FI_SEND | FI_RECV);
}

static int end_enable(struct ofi_end *end, const char **step)
{
	int rc;

	*step = "fi_enable";
	rc = fi_enable(end->ep);
	if (rc)
		return rc;
	*step = "fi_getname";
	end->address_bytes = sizeof(end->address);
	return fi_getname(&end->ep->fid, end->address, &end->address_bytes);
}

static int rail_end_open(const struct ofi_device *device, struct ofi_rail *rail,
	struct fi_info *info, const char **step)
{
	int rc = end_bind(&rail->end, rail, info, step);

	if (!rc && device->takes_gpu)
		rc = rail_gpu_set(rail);
	if (!rc && device->keeps_lines && !rail_lines_set(rail, device->is_rdma))
		rc = -FI_EOPNOTSUPP;
	return rc ? rc : end_enable(&rail->end, step);
}

/* Those that need one of their own take no memory of GPUs. */
int port_end_open(struct ofi_port *port, struct ofi_end *end)
{
	const char *step = "";
	int rc = end_bind(end, &port->rails[0], port->device->infos[0], &step);

	if (!rc)
		rc = end_enable(end, &step);
	if (!rc)
		return OFI_OK;
	port_end_close(end);
	return say_wrong(OFI_SYSTEM, "%s on %s failed: %s%s", step, port->device->name,
		fi_strerror(-rc), rc == -FI_EMFILE ? "; see ulimit -n" : "");
}

/* 0, or libfabric's error of the step. */
static int rail_open(const struct ofi_device *device, struct ofi_rail *rail,
	struct fi_info *info, const char **step)
{
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .size = (size_t)setting_int(SET_CQ_SIZE)};
	int rc;

	*step = "fi_fabric";
	rc = fi_fabric(info->fabric_attr, &rail->fabric, NULL);
	if (rc)
		return rc;
	*step = "fi_domain";
	rc = fi_domain(rail->fabric, info, &rail->domain, NULL);
	if (rc)
		return rc;
	*step = "fi_cq_open";
	rc = fi_cq_open(rail->domain, &cq, &rail->cq, NULL);
	return rc || device->holds_up ? rc : rail_end_open(device, rail, info, step);
}

static int port_open(struct ofi_port *port, const char **step)
{
	int rc = 0;

	for (int i = 0; i < port->device->rail_count && !rc; i++) {
		rc = rail_open(
			port->device, &port->rails[i], port->device->infos[i], step);
		if (!rc)
			port->rail_count++;
	}
	if (!rc && port->device->takes_gpu) {
		*step = "fi_mr_reg";
		rc = port_prepare(port);
	}
	return rc;
}

static int port_make(const struct ofi_device *device, struct ofi_port **port)
{
	struct ofi_port *made = calloc(1, sizeof(*made));
	const char *step = "";
	char remedy[SAY_REMEDY_BYTES];
	int rc;

	if (!made)
		return say_wrong(OFI_SYSTEM, "no memory for an endpoint");
	pthread_mutex_init(&made->lock, NULL);
	made->device = device;
	made->next_id = 1;
	made->cache = (struct known_cache){.ops = &memory_ops,
		.context = made,
		.is_off = setting_int(SET_MR_CACHE_DISABLE) != 0};
	rc = port_open(made, &step);
	if (rc) {
		say_wrong(OFI_SYSTEM, "%s on %s failed: %s%s", step, device->name,
			fi_strerror(-rc), say_memlock(-rc, remedy));
		port_close(made);
		return OFI_SYSTEM;
	}
	*port = made;
	return OFI_OK;
}

int port_get(struct ofi_context *context, int device, struct ofi_port **port)
{
	const struct ofi_device *wanted = device_at(device);
	struct ofi_port *found;
	int result = OFI_OK;

	if (!wanted)
		return say_wrong(OFI_ARGUMENT, "there is no device %d", device);
	pthread_mutex_lock(&context->lock);
	for (found = context->ports; found && found->device != wanted;)
		found = found->next;
	if (!found) {
		result = port_make(wanted, &found);
		if (!result) {
			found->next = context->ports;
			context->ports = found;
		}
	}
	if (!result) {
		found->users++;
		*port = found;
	}
	pthread_mutex_unlock(&context->lock);
	return result;
}

static void context_free(struct ofi_context *context)
{
	pthread_mutex_destroy(&context->lock);
	free(context);
}

void context_end(struct ofi_context *context)
{
	bool is_empty;

	if (!context)
		return;
	comms_give_up(context);
	pthread_mutex_lock(&context->lock);
	context->is_over = true;
	is_empty = !context->ports;
	pthread_mutex_unlock(&context->lock);
	if (is_empty)
		context_free(context);
}

void port_put(struct ofi_context *context, struct ofi_port *port)
{
	struct ofi_port **link = &context->ports;
	bool is_last, is_over;

	pthread_mutex_lock(&context->lock);
	is_last = !--port->users;
	while (is_last && *link != port)
		link = &(*link)->next;
	if (is_last)
		*link = port->next;
	is_over = is_last && context->is_over && !context->ports;
	pthread_mutex_unlock(&context->lock);
	if (is_last)
		port_close(port);
	if (is_over)
		context_free(context);
}

/* ---- work ---- */

uint32_t port_id(struct ofi_port *port)
{
	return port->next_id++;
}

int port_peer(struct ofi_port *port, const struct ofi_end *end,
	const unsigned char *address, fi_addr_t *peer)
{
	int rc = fi_av_insert(end->av, address, 1, peer, 0, NULL);

	return rc == 1 ? OFI_OK
		       : say_wrong(OFI_SYSTEM, "%s takes no address of a peer: %s",
				 port->device->name, rc < 0 ? fi_strerror(-rc) : "none");
}

static int receivers_grow(struct ofi_port *port)
{
	uint32_t room = port->receiver_room ? 2 * port->receiver_room : RECEIVERS_MIN;
	struct ofi_comm **more = realloc(port->receivers, room * sizeof(*more));

	if (!more)
		return OFI_SYSTEM;
	memset(more + port->receiver_room, 0,
		(room - port->receiver_room) * sizeof(*more));
	port->receivers = more;
	port->receiver_room = room;
	return OFI_OK;
}

int port_enlist(struct ofi_port *port, struct ofi_comm *comm, uint32_t *number)
{
	uint32_t i = 0;

	while (i < port->receiver_room && port->receivers[i])
		i++;
	if (i == RECEIVERS_MAX || (i == port->receiver_room && receivers_grow(port)))
		return say_wrong(OFI_SYSTEM,
			"%s has no room for more than %u connections", port->device->name,
			i);
	port->receivers[i] = comm;
	*number = i;
	return OFI_OK;
}

void port_delist(struct ofi_port *port, uint32_t number)
{
	port->receivers[number] = NULL;
}

const char *port_meaning(const char *provider, int number)
{
	static const struct {
		int number;
		const char *text;
	} meanings[] = {
		{7, "the other end does not know this key; did it close the memory?"},
		{8, "the other end has reset the connection"},
		{9, "the other process is gone: look for the first rank that failed"},
		{13, "the other host does not answer: look for the first rank that "
		     "failed"},
		{15, "the other host cannot be reached: see its security group, which "
		     "must let all traffic of the group in and out"},
		{4105, "no memory: see ulimit -l"},
		{4124, "the other process stopped answering after it had been there: "
		       "look for the first rank that failed"},
		{4125, "both ends need the same libfabric, or FI_EFA_USE_ZCPY_RX=0"},
		{4126, "the other process never answered: look for the first rank that "
		       "failed, then for different versions of libfabric, then at the "
		       "security group"},
		{4127, "the other process has ended"},
	};

	if (strncmp(provider, "efa", 3))
		return "";
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].number == number)
			return meanings[i].text;
	return "";
}

/* One piece less to wait for. One that is told of twice is passed over. */
static void piece_done(struct ofi_piece *piece)
{
	struct ofi_request *request = piece->request;
	bool is_done = true;

	if (!piece->is_asked || piece->is_done)
		return;
	piece->is_done = true;
	for (uint32_t i = 0; i < request->piece_count; i++)
		is_done = is_done && request->pieces[i].is_done;
	request->is_done = is_done || request->why[0];
}

static void error_write(struct ofi_port *port, struct ofi_rail *rail,
	const struct fi_cq_err_entry *entry, struct ofi_request *request)
{
	const char *provider = port->device->infos[0]->fabric_attr->prov_name;
	const char *meaning = port_meaning(provider, entry->prov_errno);
	const char *text = fi_cq_strerror(
		rail->cq, entry->prov_errno, entry->err_data, NULL, 0);

	port->failures++;
	if (entry->err == FI_ETRUNC)
		snprintf(request->why, sizeof(request->why),
			"a message of more than the %zu bytes came that were asked for",
			request->posted);
	else
		snprintf(request->why, sizeof(request->why), "%s (%d, %s)%s%s",
			fi_strerror(entry->err), entry->prov_errno, text ? text : "",
			*meaning ? ": " : "", meaning);
}

static void error_take(struct ofi_port *port, struct ofi_rail *rail)
{
	struct fi_cq_err_entry entry = {0};
	struct ofi_piece *piece;

	if (fi_cq_readerr(rail->cq, &entry, 0) != 1)
		return;
	piece = entry.op_context;
	if (!piece) {
		say_wrong(OFI_REMOTE,
			"%s reports a failure that belongs to no request: %s",
			port->device->name, fi_strerror(entry.err));
		return;
	}
	if (entry.err != FI_ECANCELED && piece->is_asked && !piece->is_done)
		error_write(port, rail, &entry, piece->request);
	piece_done(piece);
}

static void entry_take(struct ofi_port *port, const struct fi_cq_tagged_entry *entry)
{
	struct ofi_piece *piece = entry->op_context;

	if (entry->flags & FI_REMOTE_CQ_DATA && !(entry->flags & FI_RECV)) {
		comm_arrived(port, entry->data, entry->len);
		return;
	}
	if (!piece)
		return;
	if (entry->flags & FI_RECV && !piece->is_done)
		piece->request->bytes = entry->len;
	piece_done(piece);
}

static int rail_move(struct ofi_port *port, struct ofi_rail *rail)
{
	struct fi_cq_tagged_entry entries[READ_MAX];
	size_t most = (size_t)setting_int(SET_CQ_READ_COUNT);
	ssize_t got;

	do {
		got = fi_cq_read(rail->cq, entries, most);
		for (ssize_t i = 0; i < got; i++)
			entry_take(port, &entries[i]);
		if (got == -FI_EAVAIL)
			error_take(port, rail);
	} while (got == (ssize_t)most || got == -FI_EAVAIL);
	if (got < 0 && got != -FI_EAGAIN && got != -FI_EINTR)
		return say_wrong(OFI_SYSTEM, "reading completions of %s failed: %s",
			port->device->name, fi_strerror((int)-got));
	return OFI_OK;
}

int port_move(struct ofi_port *port)
{
	int result = OFI_OK;

	for (int i = 0; i < port->rail_count && !result; i++)
		result = rail_move(port, &port->rails[i]);
	return result;
}

uint32_t request_cancel(struct ofi_request *request, bool calls_off)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < request->piece_count; i++) {
		struct ofi_piece *piece = &request->pieces[i];

		if (!piece->is_asked || piece->is_done)
			continue;
		count++;
		if (calls_off)
			fi_cancel(&piece->ep->fid, &piece->context);
	}
	return count;
}

static int asked(struct ofi_port *port, struct ofi_piece *piece, ssize_t rc)
{
	if (rc == -FI_EAGAIN) {
		int result = port_move(port);

		piece->is_asked = false;
		return result ? result : OFI_AGAIN;
	}
	if (rc) {
		piece->is_asked = false;
		return say_wrong(OFI_SYSTEM, "%s takes no message: %s",
			port->device->name, fi_strerror((int)-rc));
	}
	piece->request->is_asked = true;
	return OFI_OK;
}

/* It is known as asked for before it is: the answer may come first. */
static struct ofi_piece *piece_begin(struct ofi_port *port,
	const struct port_message *message, struct ofi_request *request)
{
	struct ofi_piece *piece = &request->pieces[0];
	const struct ofi_end *end = message->end ? message->end : &port->rails[0].end;

	request->posted = message->bytes;
	request->piece_count = 1;
	*piece = (struct ofi_piece){.request = request, .ep = end->ep, .is_asked = true};
	return piece;
}

int port_send(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request)
{
	struct ofi_piece *piece = piece_begin(port, message, request);

	return asked(port, piece,
		fi_tsend(piece->ep, message->data, message->bytes,
			descriptor_of(message->known, 0), message->peer, message->tag,
			&piece->context));
}

int port_recv(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request)
{
	struct ofi_piece *piece = piece_begin(port, message, request);

	return asked(port, piece,
		fi_trecv(piece->ep, message->data, message->bytes,
			descriptor_of(message->known, 0), FI_ADDR_UNSPEC, message->tag, 0,
			&piece->context));
}

int port_write(
	struct ofi_port *port, const struct port_write *write, struct ofi_piece *piece)
{
	piece->ep = port->rails[piece->rail].end.ep;
	piece->is_asked = true;
	return asked(port, piece,
		fi_writedata(piece->ep, write->data, write->bytes,
			descriptor_of(write->known, piece->rail), write->number,
			write->peer, write->address, write->key, &piece->context));
}

int port_read_own(
	struct ofi_port *port, const struct port_write *read, struct ofi_piece *piece)
{
	const struct ofi_rail *rail = &port->rails[piece->rail];

	piece->ep = rail->end.ep;
	piece->is_asked = true;
	return asked(port, piece,
		fi_read(piece->ep, (void *)(uintptr_t)read->data, read->bytes,
			descriptor_of(read->known, piece->rail), rail->self,
			read->address, read->key, &piece->context));
}

int port_flush(
	struct ofi_port *port, void *data, void *known, struct ofi_request *request)
{
	int result = OFI_OK;

	request->piece_count = (uint32_t)port->rail_count;
	for (int i = 0; i < port->rail_count; i++)
		if (!request->is_asked)
			request->pieces[i] = (struct ofi_piece){
				.request = request, .rail = (uint8_t)i};
	for (int i = 0; i < port->rail_count && !result; i++) {
		struct port_write read = {.data = port->page,
			.bytes = FLUSH_BYTES,
			.known = port->page_known,
			.address = port_address(port, known, data),
			.key = port_key(port, known, i)};

		if (!request->pieces[i].is_asked)
			result = port_read_own(port, &read, &request->pieces[i]);
	}
	return result;
}
