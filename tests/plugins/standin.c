/*
 * A stand-in for a provider of libfabric, loaded by FI_PROVIDER_PATH, that behaves as EFA
 * does where the software providers do not: several interfaces with a place in the PCI
 * tree, memory that must be registered, writes that tell 32 bits and their length, and
 * failures with EFA's numbers. All ends are in one process.
 *
 * What is asked for is done when somebody reads completions, so that memory which is
 * touched too early or given back too soon shows. STANDIN_NICS: how many interfaces.
 * STANDIN_HMEM: memory of GPUs (gpu_memory.h) is taken, where it was registered as such;
 * what is written there is not to be seen before it is flushed.
 * STANDIN_AUTO: it says that data moves without being asked to.
 * STANDIN_MEMLOCK: registrations count against RLIMIT_MEMLOCK.
 * STANDIN_FAULT: words with colons between them, see `faults`.
 */
#include <pthread.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofi/newer.h"
#include "standin_memory.h"

enum {
	ENDS_MAX = 256,
	LATE_READS = 7,
	NICS_MAX = 8,
	MESSAGE_BYTES_MAX = 1 << 30,
	STOPPED_ANSWERING = 4124
};

static const char name[] = "efa_standin";

/* Each is a word, or a word and a number: so many are spared before it comes. */
static struct {
	bool reordered; /* writes and completions in any order */
	bool late;	/* nothing moves but at every few reads */
	bool twice;	/* every completion is told twice */
	bool again;	/* most calls are to be made again */
	long refused;	/* registrations; -1: never */
	long cut;	/* messages are too long for who receives them; -1: never */
	long failed;	/* of what is sent and written; -1: never */
} faults;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t dice = 12345;

static uint32_t roll(uint32_t sides)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 16) % sides;
}

static const char *fault_find(const char *word)
{
	const char *list = getenv("STANDIN_FAULT");
	size_t bytes = strlen(word);

	for (; list && *list; list += strcspn(list, ":"), list += *list == ':')
		if (!strncmp(list, word, bytes) && strchr(":=", list[bytes]))
			return list + bytes;
	return NULL;
}

static long fault_number(const char *word)
{
	const char *text = fault_find(word);

	return text ? (*text == '=' ? strtol(text + 1, NULL, 10) : 0) : -1;
}

static void faults_read(void)
{
	faults.reordered = fault_find("reordered");
	faults.late = fault_find("late");
	faults.twice = fault_find("twice");
	faults.again = fault_find("again");
	faults.cut = fault_number("cut");
	faults.refused = fault_number("refused");
	faults.failed = fault_number("failed");
}

bool standin_refuses(void)
{
	bool is_refused;

	pthread_mutex_lock(&lock);
	is_refused = !faults.refused;
	if (faults.refused > 0)
		faults.refused--;
	pthread_mutex_unlock(&lock);
	return is_refused;
}

/* ---- things ---- */

struct told { /* a completion, or with `error` a failure */
	struct told *next;
	struct fi_cq_tagged_entry entry;
	int error, number;
};

struct queue {
	struct fid_cq fid;
	struct told *first;
};

struct asked { /* a message to receive */
	struct asked *next;
	void *data, *context;
	size_t bytes;
	uint64_t tag, ignore;
};

struct flight { /* what is sent or written */
	struct flight *next;
	struct end *from;
	uint64_t to, tag, number, address, key;
	const char *data;
	size_t bytes;
	void *context;
	bool is_write, is_read;
};

struct early { /* a message that nobody has asked for */
	struct early *next;
	uint64_t tag;
	size_t bytes;
	char data[];
};

struct end {
	struct fid_ep fid;
	struct queue *queue;
	uint64_t id;
	struct asked *asked;
	struct early *early;
};

static struct end *ends[ENDS_MAX];
static struct flight *flights;

/* ---- completions ---- */

static void told_add(struct queue *queue, struct told told)
{
	for (int i = 0; i < (faults.twice && !told.error ? 2 : 1); i++) {
		struct told **link = &queue->first, *made = malloc(sizeof(*made));

		while (*link && !(faults.reordered && !roll(2)))
			link = &(*link)->next;
		*made = told;
		made->next = *link;
		*link = made;
	}
}

static void done_tell(struct end *end, void *context, uint64_t flags, size_t bytes)
{
	told_add(end->queue,
		(struct told){
			.entry = {.op_context = context, .flags = flags, .len = bytes}});
}

static void failure_tell(struct end *end, void *context, int error, int number)
{
	told_add(end->queue, (struct told){.entry = {.op_context = context},
				     .error = error,
				     .number = number});
}

/* ---- moving ---- */

static void message_give(
	struct end *to, struct asked *asked, const char *data, size_t bytes)
{
	bool is_cut = !faults.cut;

	if (faults.cut >= 0)
		faults.cut--;
	if (bytes > asked->bytes || is_cut) {
		failure_tell(to, asked->context, FI_ETRUNC, 0);
	} else {
		bytes_put(to, asked->data, data, bytes);
		done_tell(to, asked->context, FI_RECV | FI_TAGGED, bytes);
	}
	free(asked);
}

static void message_land(struct end *to, const struct flight *flight)
{
	struct asked **link = &to->asked;
	struct early **last = &to->early, *early;

	while (*link && ((*link)->tag ^ flight->tag) & ~(*link)->ignore)
		link = &(*link)->next;
	if (*link) {
		struct asked *asked = *link;

		*link = asked->next;
		message_give(to, asked, flight->data, flight->bytes);
		return;
	}
	early = malloc(sizeof(*early) + flight->bytes);
	*early = (struct early){.tag = flight->tag, .bytes = flight->bytes};
	bytes_put(to, early->data, flight->data, flight->bytes);
	while (*last)
		last = &(*last)->next;
	*last = early;
}

/* Is it the memory that the key is for? */
static bool write_land(struct end *to, const struct flight *flight)
{
	struct region *region = region_of(flight->key);
	char *at = (char *)(uintptr_t)flight->address;

	if (flight->bytes && !region_has(region, at, flight->bytes))
		return false;
	bytes_put(to, at, flight->data, flight->bytes);
	told_add(to->queue, (struct told){.entry = {.flags = FI_RMA | FI_REMOTE_WRITE |
							     FI_REMOTE_CQ_DATA,
						  .len = flight->bytes,
						  .data = flight->number & UINT32_MAX}});
	return true;
}

/* What is read from a GPU's memory pushes before it what was written there. */
static bool read_land(struct end *from, const struct flight *flight)
{
	struct region *region = region_of(flight->key);
	char *at = (char *)(uintptr_t)flight->address;

	if (!region_has(region, at, flight->bytes))
		return false;
	if (gpu_at(at))
		unseen_show(from);
	bytes_put(flight->from, (char *)(uintptr_t)flight->data, at, flight->bytes);
	return true;
}

static void flight_land(const struct flight *flight)
{
	enum { BAD_KEY = 7, NO_PEER = 9 };
	struct end *to = flight->to < ENDS_MAX ? ends[flight->to] : NULL;
	bool is_failed = !faults.failed;

	if (faults.failed >= 0)
		faults.failed--;
	if (is_failed)
		failure_tell(flight->from, flight->context, FI_EIO, STOPPED_ANSWERING);
	else if (!to)
		failure_tell(flight->from, flight->context, FI_EIO, NO_PEER);
	else if (flight->is_read && !read_land(to, flight))
		failure_tell(flight->from, flight->context, FI_EIO, BAD_KEY);
	else if (flight->is_read)
		done_tell(flight->from, flight->context, FI_RMA | FI_READ, flight->bytes);
	else if (flight->is_write && !write_land(to, flight))
		failure_tell(flight->from, flight->context, FI_EIO, BAD_KEY);
	else
		done_tell(flight->from, flight->context,
			flight->is_write ? FI_RMA | FI_WRITE : FI_SEND | FI_TAGGED,
			flight->bytes);
	if (!is_failed && to && !flight->is_write && !flight->is_read)
		message_land(to, flight);
}

static void move(void)
{
	struct flight **link = &flights;

	if (faults.late && roll(LATE_READS))
		return;
	while (*link) {
		struct flight *flight = *link;

		if ((flight->is_write || flight->is_read) && faults.reordered &&
			roll(3)) {
			link = &flight->next;
			continue;
		}
		*link = flight->next;
		flight_land(flight);
		free(flight);
	}
}

/* libfabric's own hooks ask every thing for more. */
static int no_more(
	struct fid *fid, const char *what, uint64_t flags, void **ops, void *context)
{
	(void)fid;
	(void)what;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

/* ---- completion queues ---- */

static ssize_t queue_read(struct fid_cq *fid, void *to, size_t count)
{
	struct queue *queue = (struct queue *)fid;
	ssize_t got = 0;

	pthread_mutex_lock(&lock);
	move();
	while (queue->first && !queue->first->error && got < (ssize_t)count) {
		struct told *told = queue->first;

		((struct fi_cq_tagged_entry *)to)[got++] = told->entry;
		queue->first = told->next;
		free(told);
	}
	if (!got)
		got = queue->first ? -FI_EAVAIL : -FI_EAGAIN;
	pthread_mutex_unlock(&lock);
	return got;
}

static ssize_t queue_read_error(
	struct fid_cq *fid, struct fi_cq_err_entry *to, uint64_t flags)
{
	struct queue *queue = (struct queue *)fid;
	struct told *told;
	ssize_t got = -FI_EAGAIN;

	(void)flags;
	pthread_mutex_lock(&lock);
	told = queue->first;
	if (told && told->error) {
		*to = (struct fi_cq_err_entry){.op_context = told->entry.op_context,
			.err = told->error,
			.prov_errno = told->number};
		queue->first = told->next;
		free(told);
		got = 1;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

static const char *queue_strerror(
	struct fid_cq *fid, int number, const void *data, char *text, size_t room)
{
	(void)fid;
	(void)data;
	(void)text;
	(void)room;
	return number == STOPPED_ANSWERING ? "Unresponsive receiver" : "failed";
}

static int queue_close(struct fid *fid)
{
	struct queue *queue = (struct queue *)fid;

	while (queue->first) {
		struct told *told = queue->first;

		queue->first = told->next;
		free(told);
	}
	free(queue);
	return 0;
}

static struct fi_ops queue_fid_ops = {
	.size = sizeof(queue_fid_ops), .ops_open = no_more, .close = queue_close};
static struct fi_ops_cq queue_ops = {.size = sizeof(queue_ops),
	.read = queue_read,
	.readerr = queue_read_error,
	.strerror = queue_strerror};

static int queue_open(struct fid_domain *domain, struct fi_cq_attr *attr,
	struct fid_cq **made, void *context)
{
	struct queue *queue = calloc(1, sizeof(*queue));

	(void)domain;
	(void)attr;
	queue->fid = (struct fid_cq){
		.fid = {FI_CLASS_CQ, context, &queue_fid_ops}, .ops = &queue_ops};
	*made = &queue->fid;
	return 0;
}

/* ---- endpoints ---- */

static bool is_refused(void)
{
	return faults.again && roll(3);
}

/* A GPU's memory goes with its registration, and no other. */
static bool is_described(const void *data, size_t bytes, const void *desc)
{
	return !bytes || !gpu_at(data) || region_has(desc, data, bytes);
}

static ssize_t end_recv(struct fid_ep *fid, void *data, size_t bytes, void *desc,
	fi_addr_t from, uint64_t tag, uint64_t ignore, void *context)
{
	struct end *end = (struct end *)fid;
	struct asked **last = &end->asked, *asked;
	struct early **link = &end->early;

	(void)from;
	if (!is_described(data, bytes, desc))
		return -FI_EINVAL;
	pthread_mutex_lock(&lock);
	if (is_refused()) {
		pthread_mutex_unlock(&lock);
		return -FI_EAGAIN;
	}
	asked = malloc(sizeof(*asked));
	*asked = (struct asked){NULL, data, context, bytes, tag, ignore};
	while (*link && ((*link)->tag ^ tag) & ~ignore)
		link = &(*link)->next;
	if (*link) {
		struct early *early = *link;

		*link = early->next;
		message_give(end, asked, early->data, early->bytes);
		free(early);
	} else {
		while (*last)
			last = &(*last)->next;
		*last = asked;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static ssize_t flight_add(struct flight wanted)
{
	struct flight **last = &flights;
	ssize_t rc = 0;

	pthread_mutex_lock(&lock);
	while (*last)
		last = &(*last)->next;
	if (is_refused()) {
		rc = -FI_EAGAIN;
	} else {
		*last = malloc(sizeof(**last));
		**last = wanted;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

static ssize_t end_send(struct fid_ep *fid, const void *data, size_t bytes, void *desc,
	fi_addr_t to, uint64_t tag, void *context)
{
	if (!is_described(data, bytes, desc))
		return -FI_EINVAL;
	return flight_add((struct flight){.from = (struct end *)fid,
		.to = to,
		.tag = tag,
		.data = data,
		.bytes = bytes,
		.context = context});
}

static ssize_t end_write(struct fid_ep *fid, const void *data, size_t bytes, void *desc,
	uint64_t number, fi_addr_t to, uint64_t address, uint64_t key, void *context)
{
	if (!desc || !is_described(data, bytes, desc)) /* as EFA has it */
		return -FI_EINVAL;
	return flight_add((struct flight){.from = (struct end *)fid,
		.to = to,
		.number = number,
		.address = address,
		.key = key,
		.data = data,
		.bytes = bytes,
		.context = context,
		.is_write = true});
}

static ssize_t end_read(struct fid_ep *fid, void *data, size_t bytes, void *desc,
	fi_addr_t from, uint64_t address, uint64_t key, void *context)
{
	if (!gpu_is_taken() || !desc || !region_has(desc, data, bytes))
		return -FI_EINVAL;
	return flight_add((struct flight){.from = (struct end *)fid,
		.to = from,
		.address = address,
		.key = key,
		.data = data,
		.bytes = bytes,
		.context = context,
		.is_read = true});
}

static ssize_t end_cancel(fid_t fid, void *context)
{
	struct end *end = (struct end *)fid;
	struct asked **link = &end->asked;

	pthread_mutex_lock(&lock);
	while (*link && (*link)->context != context)
		link = &(*link)->next;
	if (*link) {
		struct asked *asked = *link;

		*link = asked->next;
		failure_tell(end, context, FI_ECANCELED, 0);
		free(asked);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int end_close(struct fid *fid)
{
	struct end *end = (struct end *)fid;
	struct flight **link = &flights;

	pthread_mutex_lock(&lock);
	while (*link) {
		struct flight *flight = *link;

		if (flight->from == end) {
			*link = flight->next;
			free(flight);
		} else {
			link = &flight->next;
		}
	}
	ends[end->id] = NULL;
	unseen_show(end);
	for (struct asked *next; end->asked; end->asked = next) {
		next = end->asked->next;
		free(end->asked);
	}
	for (struct early *next; end->early; end->early = next) {
		next = end->early->next;
		free(end->early);
	}
	pthread_mutex_unlock(&lock);
	free(end);
	return 0;
}

static int end_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)flags;
	if (other->fclass == FI_CLASS_CQ)
		((struct end *)fid)->queue = (struct queue *)other;
	return 0;
}

static int end_control(struct fid *fid, int command, void *argument)
{
	(void)fid;
	(void)argument;
	return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static int end_name(fid_t fid, void *address, size_t *bytes)
{
	const struct end *end = (struct end *)fid;

	if (*bytes < sizeof(end->id))
		return -FI_ETOOSMALL;
	memcpy(address, &end->id, sizeof(end->id));
	*bytes = sizeof(end->id);
	return 0;
}

static struct fi_ops end_fid_ops = {.size = sizeof(end_fid_ops),
	.ops_open = no_more,
	.close = end_close,
	.bind = end_bind,
	.control = end_control};
/* P2P must be asked for, and calls of CUDA refused. */
static int end_setopt(fid_t fid, int level, int option, const void *value, size_t bytes)
{
	(void)fid;
	if (getenv("STANDIN_NO_P2P") && option == FI_OPT_FI_HMEM_P2P)
		return -FI_EOPNOTSUPP;
	if (level != FI_OPT_ENDPOINT || !gpu_is_taken())
		return -FI_ENOPROTOOPT;
	if (option == FI_OPT_FI_HMEM_P2P)
		return bytes == sizeof(int) && *(const int *)value == FI_HMEM_P2P_REQUIRED
			       ? 0
			       : -FI_EINVAL;
	if (option == NEWER_OPT_EFA_LINES_SENT || option == NEWER_OPT_EFA_LINES_WRITTEN)
		return getenv("STANDIN_LINES") && bytes == sizeof(bool) &&
				       *(const bool *)value
			       ? 0
			       : -FI_EOPNOTSUPP;
	if (option == NEWER_OPT_CUDA_API)
		return bytes == sizeof(bool) && !*(const bool *)value ? 0 : -FI_EINVAL;
	return -FI_ENOPROTOOPT;
}

static struct fi_ops_ep end_ops = {
	.size = sizeof(end_ops), .cancel = end_cancel, .setopt = end_setopt};
static struct fi_ops_cm end_cm = {.size = sizeof(end_cm), .getname = end_name};
static struct fi_ops_tagged end_tagged = {
	.size = sizeof(end_tagged), .recv = end_recv, .send = end_send};
static struct fi_ops_rma end_rma = {
	.size = sizeof(end_rma), .read = end_read, .writedata = end_write};

static int end_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **made,
	void *context)
{
	struct end *end = calloc(1, sizeof(*end));

	(void)domain;
	(void)info;
	pthread_mutex_lock(&lock);
	while (end->id < ENDS_MAX && ends[end->id])
		end->id++;
	if (end->id < ENDS_MAX)
		ends[end->id] = end;
	pthread_mutex_unlock(&lock);
	if (end->id == ENDS_MAX) {
		free(end);
		return -FI_ENOMEM;
	}
	end->fid = (struct fid_ep){.fid = {FI_CLASS_EP, context, &end_fid_ops},
		.ops = &end_ops,
		.cm = &end_cm,
		.tagged = &end_tagged,
		.rma = &end_rma};
	*made = &end->fid;
	return 0;
}

/* ---- addresses ---- */

static int plain_close(struct fid *fid)
{
	free(fid);
	return 0;
}

static struct fi_ops plain_ops = {
	.size = sizeof(plain_ops), .ops_open = no_more, .close = plain_close};

static int addresses_insert(struct fid_av *av, const void *address, size_t count,
	fi_addr_t *to, uint64_t flags, void *context)
{
	(void)av;
	(void)flags;
	(void)context;
	for (size_t i = 0; i < count; i++)
		memcpy(&to[i], (const char *)address + i * sizeof(uint64_t),
			sizeof(uint64_t));
	return (int)count;
}

static struct fi_ops_av addresses_ops = {
	.size = sizeof(addresses_ops), .insert = addresses_insert};

static int addresses_open(struct fid_domain *domain, struct fi_av_attr *attr,
	struct fid_av **made, void *context)
{
	struct fid_av *av = calloc(1, sizeof(*av));

	(void)domain;
	(void)attr;
	*av = (struct fid_av){
		.fid = {FI_CLASS_AV, context, &plain_ops}, .ops = &addresses_ops};
	*made = av;
	return 0;
}

/* ---- domains and fabrics ---- */

static struct fi_ops_domain domain_ops = {.size = sizeof(domain_ops),
	.av_open = addresses_open,
	.cq_open = queue_open,
	.endpoint = end_open};

static int domain_open(struct fid_fabric *fabric, struct fi_info *info,
	struct fid_domain **made, void *context)
{
	struct fid_domain *domain = calloc(1, sizeof(*domain));

	(void)fabric;
	(void)info;
	*domain = (struct fid_domain){.fid = {FI_CLASS_DOMAIN, context, &plain_ops},
		.ops = &domain_ops,
		.mr = &standin_memory};
	*made = domain;
	return 0;
}

static struct fi_ops_fabric fabric_ops = {
	.size = sizeof(fabric_ops), .domain = domain_open};

static int fabric_open(
	struct fi_fabric_attr *attr, struct fid_fabric **made, void *context)
{
	struct fid_fabric *fabric = calloc(1, sizeof(*fabric));

	(void)attr;
	*fabric = (struct fid_fabric){
		.fid = {FI_CLASS_FABRIC, context, &plain_ops}, .ops = &fabric_ops};
	*made = fabric;
	return 0;
}

/* ---- what there is ---- */

static struct fi_info *info_make(int index, bool has_gpu)
{
	struct fi_info *info = fi_allocinfo();
	char domain[32];

	snprintf(domain, sizeof(domain), "standin%d-rdm", index);
	info->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SEND | FI_RECV | FI_WRITE |
		     FI_REMOTE_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM;
	if (has_gpu)
		info->caps |= FI_HMEM | FI_READ | FI_REMOTE_READ;
	info->addr_format = FI_ADDR_STR;
	info->ep_attr->type = FI_EP_RDM;
	info->ep_attr->max_msg_size = MESSAGE_BYTES_MAX;
	info->ep_attr->mem_tag_format = UINT64_MAX;
	info->tx_attr->msg_order = info->rx_attr->msg_order = FI_ORDER_SAS;
	info->domain_attr->name = strdup(domain);
	info->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				     FI_MR_PROV_KEY | (has_gpu ? FI_MR_HMEM : 0);
	info->domain_attr->cq_data_size = sizeof(uint32_t);
	info->domain_attr->data_progress = getenv("STANDIN_AUTO") ? FI_PROGRESS_AUTO
								  : FI_PROGRESS_MANUAL;
	info->domain_attr->threading = FI_THREAD_SAFE;
	info->fabric_attr->name = strdup("efa");
	return info;
}

static int info_get(uint32_t version, const char *node, const char *service,
	uint64_t flags, const struct fi_info *hints, struct fi_info **info)
{
	const char *text = getenv("STANDIN_NICS");
	int count = text ? atoi(text) : 1;

	(void)version;
	(void)node;
	(void)service;
	(void)flags;
	*info = NULL;
	if (hints && hints->ep_attr && hints->ep_attr->type != FI_EP_RDM)
		return -FI_ENODATA; /* or others put themselves on top of it */
	if (hints && hints->caps & FI_HMEM && !gpu_is_taken())
		return -FI_ENODATA;
	for (int i = count < NICS_MAX ? count - 1 : NICS_MAX - 1; i >= 0; i--) {
		struct fi_info *made = info_make(i, hints && hints->caps & FI_HMEM);

		made->next = *info;
		*info = made;
	}
	return *info ? 0 : -FI_ENODATA;
}

static void cleanup(void)
{
}

static struct fi_provider provider = {.version = FI_VERSION(200, 0),
	.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION),
	.name = name,
	.getinfo = info_get,
	.fabric = fabric_open,
	.cleanup = cleanup};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	faults_read();
	gpu_find();
	return &provider;
}
