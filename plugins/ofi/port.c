#include "port.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm.h"
#include "say.h"
#include "setting.h"

enum { DRAIN_TURNS = 20, DRAIN_US = 10, READ_MAX = 64 };

/* ---- memory ---- */

static int memory_reg(void *context, void *data, size_t bytes, void **made)
{
	struct ofi_port *port = context;
	struct fid_mr *mr = NULL;
	/* where the user chooses keys they must differ */
	int rc = fi_mr_reg(port->domain, data, bytes, FI_SEND | FI_RECV, 0, port_id(port),
		0, &mr, NULL);

	if (!rc && port->device->info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
		rc = fi_mr_bind(mr, &port->ep->fid, 0);
		if (!rc)
			rc = fi_mr_enable(mr);
		if (rc)
			fi_close(&mr->fid);
	}
	*made = mr;
	return -rc;
}

static void memory_dereg(void *context, void *made)
{
	(void)context;
	fi_close(&((struct fid_mr *)made)->fid);
}

static const struct known_ops memory_ops = {memory_reg, memory_dereg};

/* ---- opening and closing ---- */

static void fid_close(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

/* What was sent last may still be in the provider's hands. */
static void port_drain(struct ofi_port *port)
{
	for (int turn = 0; port->cq && turn < DRAIN_TURNS; turn++) {
		port_move(port);
		usleep(DRAIN_US);
	}
}

static void port_close(struct ofi_port *port)
{
	if (port->ep)
		port_drain(port);
	known_forget(&port->cache);
	fid_close(port->ep ? &port->ep->fid : NULL);
	fid_close(port->cq ? &port->cq->fid : NULL);
	fid_close(port->av ? &port->av->fid : NULL);
	fid_close(port->domain ? &port->domain->fid : NULL);
	fid_close(port->fabric ? &port->fabric->fid : NULL);
	comms_bury(port->graves);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

static int endpoint_open(struct ofi_port *port, const char **step)
{
	struct fi_info *info = port->device->info;
	int rc;

	*step = "fi_endpoint";
	rc = fi_endpoint(port->domain, info, &port->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(port->ep, &port->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(port->ep, &port->cq->fid, FI_SEND | FI_RECV);
	if (rc)
		return rc;
	*step = "fi_enable";
	rc = fi_enable(port->ep);
	if (rc)
		return rc;
	*step = "fi_getname";
	port->address_bytes = sizeof(port->address);
	return fi_getname(&port->ep->fid, port->address, &port->address_bytes);
}

/* 0, or libfabric's error of the step. */
static int port_open(struct ofi_port *port, const char **step)
{
	struct fi_info *info = port->device->info;
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq = {
		.format = FI_CQ_FORMAT_TAGGED, .size = (size_t)setting_int(SET_CQ_SIZE)};
	int rc;

	*step = "fi_fabric";
	rc = fi_fabric(info->fabric_attr, &port->fabric, NULL);
	if (rc)
		return rc;
	*step = "fi_domain";
	rc = fi_domain(port->fabric, info, &port->domain, NULL);
	if (rc)
		return rc;
	*step = "fi_av_open";
	rc = fi_av_open(port->domain, &av, &port->av, NULL);
	if (rc)
		return rc;
	*step = "fi_cq_open";
	rc = fi_cq_open(port->domain, &cq, &port->cq, NULL);
	return rc ? rc : endpoint_open(port, step);
}

static int port_make(const struct ofi_device *device, struct ofi_port **port)
{
	struct ofi_port *made = calloc(1, sizeof(*made));
	const char *step = "";
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
			fi_strerror(-rc), rc == -FI_ENOMEM ? "; see ulimit -l" : "");
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

int port_peer(struct ofi_port *port, const unsigned char *address, fi_addr_t *peer)
{
	int rc = fi_av_insert(port->av, address, 1, peer, 0, NULL);

	return rc == 1 ? OFI_OK
		       : say_wrong(OFI_SYSTEM, "%s takes no address of a peer: %s",
				 port->device->name, rc < 0 ? fi_strerror(-rc) : "none");
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

static void error_take(struct ofi_port *port)
{
	const char *provider = port->device->info->fabric_attr->prov_name;
	struct fi_cq_err_entry entry = {0};
	struct ofi_request *request;
	const char *meaning, *text;

	if (fi_cq_readerr(port->cq, &entry, 0) != 1)
		return;
	request = entry.op_context;
	if (!request || entry.err == FI_ECANCELED) {
		if (request)
			request->is_done = true;
		return;
	}
	request->is_done = true;
	meaning = port_meaning(provider, entry.prov_errno);
	text = fi_cq_strerror(port->cq, entry.prov_errno, entry.err_data, NULL, 0);
	if (entry.err == FI_ETRUNC)
		snprintf(request->why, sizeof(request->why),
			"a message of more than the %zu bytes came that were asked for",
			request->posted);
	else
		snprintf(request->why, sizeof(request->why), "%s (%d, %s)%s%s",
			fi_strerror(entry.err), entry.prov_errno, text ? text : "",
			*meaning ? ": " : "", meaning);
}

int port_move(struct ofi_port *port)
{
	struct fi_cq_tagged_entry entries[READ_MAX];
	size_t most = (size_t)setting_int(SET_CQ_READ_COUNT);
	ssize_t got;

	do {
		got = fi_cq_read(port->cq, entries, most);
		for (ssize_t i = 0; i < got; i++) {
			struct ofi_request *request = entries[i].op_context;

			request->is_done = true;
			if (entries[i].flags & FI_RECV)
				request->bytes = entries[i].len;
		}
		if (got == -FI_EAVAIL)
			error_take(port);
	} while (got == (ssize_t)most || got == -FI_EAVAIL);
	if (got < 0 && got != -FI_EAGAIN && got != -FI_EINTR)
		return say_wrong(OFI_SYSTEM, "reading completions of %s failed: %s",
			port->device->name, fi_strerror((int)-got));
	return OFI_OK;
}

static int asked(struct ofi_port *port, struct ofi_request *request, ssize_t rc)
{
	if (rc == -FI_EAGAIN) {
		int result = port_move(port);

		return result ? result : OFI_AGAIN;
	}
	if (rc)
		return say_wrong(OFI_SYSTEM, "%s takes no message: %s",
			port->device->name, fi_strerror((int)-rc));
	request->is_asked = true;
	return OFI_OK;
}

int port_send(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request)
{
	request->posted = message->bytes;
	return asked(port, request,
		fi_tsend(port->ep, message->data, message->bytes, message->descriptor,
			message->peer, message->tag, &request->context));
}

int port_recv(struct ofi_port *port, const struct port_message *message,
	struct ofi_request *request)
{
	request->posted = message->bytes;
	return asked(port, request,
		fi_trecv(port->ep, message->data, message->bytes, message->descriptor,
			FI_ADDR_UNSPEC, message->tag, 0, &request->context));
}
