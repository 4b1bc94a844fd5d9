/* A network plugin as others write them, over TCP on the loopback interface, with faults
 * on demand.
 *
 * It is as strict as a plugin may be: nothing travels before the receiver has asked for
 * it, memory must be registered and is checked, at most 32 requests are taken, connecting
 * takes several calls, and its state is kept in the handle. NET_TEST_FAULT has words
 * with colons between them; see net_test_fault(). */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_region.h"
#include "net_test.h"
#include "net_unseen.h"

enum { REQUESTS = 32, HANDLE_MAGIC = 0x7e57, LATE_TESTS = 300, BUSY = 3 };
enum { OPTIONAL = 1 }; /* NCCL's word for a receive whose completion nobody needs */
enum { REGION_BYTES_FEW = 300000 }; /* "few_pages" */

struct request {
	struct comm *comm;
	bool is_used, is_send, is_asked, is_done;
	char *data;
	char *aside; /* where bytes for a GPU come; NULL: straight to `data` */
	bool is_flush;
	bool is_left;	  /* nobody asks about it any more */
	bool is_optional; /* done when it is asked about, whatever has come by then */
	size_t bytes, head_done, data_done;
	uint64_t room; /* what the receiver asked for, or its answer's size */
	uint64_t size; /* of the message */
	int tests;
	void *event; /* of a profiler */
};

struct comm {
	struct comm *next_begun;
	int fd;
	bool is_listener, is_send;
	atomic_int regions; /* registered now */
	uint64_t gpu_messages, dmabufs, flushes;
	struct unseen *unseen; /* owned, a list */
	uint64_t next, first;  /* requests, in order */
	struct request requests[REQUESTS];
	uint64_t credit; /* a send's: what came of the receiver's next size */
	size_t credit_done;
	uint64_t calls;
};

struct handle {
	int magic;
	struct sockaddr_in at;
	struct comm *connecting;
};
_Static_assert(sizeof(struct handle) <= 128, "a handle holds it");

/* What a profiler is told: an id of our own, and the size. */
enum { EVENT_ID = 3 << 16 | 1, EVENT_START = 0, EVENT_UPDATE_AND_STOP = 3 };

static ncclDebugLogger_t say;
#if NET_VERSION >= 10
static ncclProfilerCallback_t tell;
#endif
static atomic_int contexts;

static ncclResult_t start(ncclDebugLogger_t log)
{
	say = log;
	if (net_test_fault("hang"))
		for (;;)
			pause();
	if (net_test_fault("init"))
		return ncclSystemError;
	say(3, 1, __FILE__, __LINE__, "NET/Test: started, version %d", NET_VERSION);
	return ncclSuccess;
}

#if NET_VERSION >= 11
static ncclResult_t test_init(void **ctx, uint64_t commId, ncclNetCommConfig_t *config,
	ncclDebugLogger_t log, ncclProfilerCallback_t prof)
{
	ncclResult_t result = ncclInvalidArgument;

	if (ctx && config && prof)
		result = start(log);
	if (result)
		return result;
	tell = prof;
	atomic_fetch_add(&contexts, 1);
	*ctx = malloc(sizeof(commId));
	memcpy(*ctx, &commId, sizeof(commId));
	return ncclSuccess;
}

static ncclResult_t test_finalize(void *ctx)
{
	if (!ctx || atomic_fetch_sub(&contexts, 1) <= 0)
		return ncclInternalError;
	free(ctx);
	return ncclSuccess;
}
#elif NET_VERSION == 10
static ncclResult_t test_init(ncclDebugLogger_t log, ncclProfilerCallback_t prof)
{
	if (!prof || atomic_fetch_add(&contexts, 1))
		return ncclInvalidArgument;
	tell = prof;
	return start(log);
}
#else
static ncclResult_t test_init(ncclDebugLogger_t log)
{
	/* versions before 11 are started once */
	if (atomic_fetch_add(&contexts, 1))
		return ncclInvalidArgument;
	return start(log);
}
#endif

static struct comm *comm_make(int fd, bool is_send)
{
	struct comm *comm = calloc(1, sizeof(*comm));
	int on = 1;

	comm->fd = fd;
	comm->is_send = is_send;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return comm;
}

static ncclResult_t listen_here(void *opaque, void **listenComm)
{
	struct handle *handle = opaque;
	socklen_t bytes = sizeof(handle->at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct comm *comm;

	if (net_test_fault("listen"))
		return ncclSystemError;
	memset(handle, 0, sizeof(*handle));
	handle->magic = HANDLE_MAGIC;
	handle->at.sin_family = AF_INET;
	handle->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&handle->at, bytes) || listen(fd, 128) ||
		getsockname(fd, (struct sockaddr *)&handle->at, &bytes))
		return ncclSystemError;
	comm = comm_make(fd, false);
	comm->is_listener = true;
	*listenComm = comm;
	return ncclSuccess;
}

/* NCCL has no call that gives up a connection that is only begun: they end with us. */
static pthread_mutex_t begun_lock = PTHREAD_MUTEX_INITIALIZER;
static struct comm *begun;

static void begun_add(struct comm *comm)
{
	pthread_mutex_lock(&begun_lock);
	comm->next_begun = begun;
	begun = comm;
	pthread_mutex_unlock(&begun_lock);
}

static void begun_drop(const struct comm *comm)
{
	struct comm **at = &begun;

	pthread_mutex_lock(&begun_lock);
	while (*at && *at != comm)
		at = &(*at)->next_begun;
	if (*at)
		*at = comm->next_begun;
	pthread_mutex_unlock(&begun_lock);
}

__attribute__((destructor)) static void begun_end(void)
{
	while (begun) {
		struct comm *comm = begun;

		begun = comm->next_begun;
		close(comm->fd);
		free(comm);
	}
}

/* The first call begins, a later one finds it done. */
static ncclResult_t connect_there(void *opaque, void **sendComm)
{
	struct handle *handle = opaque;
	struct pollfd poll_fd = {.events = POLLOUT};

	*sendComm = NULL;
	if (handle->magic != HANDLE_MAGIC || net_test_fault("connect"))
		return ncclSystemError;
	if (net_test_fault("unconnected"))
		return ncclSuccess;
	if (!handle->connecting) {
		handle->connecting = comm_make(
			socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), true);
		begun_add(handle->connecting);
		if (connect(handle->connecting->fd, (struct sockaddr *)&handle->at,
			    sizeof(handle->at)) &&
			errno != EINPROGRESS)
			return ncclRemoteError;
		return ncclSuccess;
	}
	poll_fd.fd = handle->connecting->fd;
	if (poll(&poll_fd, 1, 0) == 1) {
		begun_drop(handle->connecting);
		*sendComm = handle->connecting;
		handle->connecting = NULL;
	}
	return ncclSuccess;
}

#if NET_VERSION >= 11
static ncclResult_t test_listen(void *ctx, int dev, void *handle, void **listenComm)
{
	return ctx && net_test_has(dev) ? listen_here(handle, listenComm)
					: ncclInvalidArgument;
}

static ncclResult_t test_connect(
	void *ctx, int dev, void *handle, void **sendComm, void **sendDevComm)
{
	return ctx && net_test_has(dev) && sendDevComm ? connect_there(handle, sendComm)
						       : ncclInvalidArgument;
}
#else
static ncclResult_t test_listen(int dev, void *handle, void **listenComm)
{
	return net_test_has(dev) ? listen_here(handle, listenComm) : ncclInvalidArgument;
}
#if NET_VERSION == 10
static ncclResult_t test_connect(int dev, ncclNetCommConfig_t *config, void *handle,
	void **sendComm, void **sendDevComm)
{
	return net_test_has(dev) && config && config->trafficClass == -1 && sendDevComm
		       ? connect_there(handle, sendComm)
		       : ncclInvalidArgument;
}
#elif NET_VERSION >= 7
static ncclResult_t test_connect(
	int dev, void *handle, void **sendComm, void **sendDevComm)
{
	return net_test_has(dev) && sendDevComm ? connect_there(handle, sendComm)
						: ncclInvalidArgument;
}
#else
static ncclResult_t test_connect(int dev, void *handle, void **sendComm)
{
	return net_test_has(dev) ? connect_there(handle, sendComm) : ncclInvalidArgument;
}
#endif
#endif

static ncclResult_t accept_one(void *opaque, void **recvComm)
{
	const struct comm *comm = opaque;
	int fd = accept4(comm->fd, NULL, NULL, SOCK_CLOEXEC);

	*recvComm = NULL;
	if (net_test_fault("accept"))
		return ncclSystemError;
	if (fd >= 0)
		*recvComm = comm_make(fd, false);
	return ncclSuccess;
}

#if NET_VERSION >= 7
static ncclResult_t test_accept(void *listenComm, void **recvComm, void **recvDevComm)
{
	return recvDevComm ? accept_one(listenComm, recvComm) : ncclInvalidArgument;
}
#else
static ncclResult_t test_accept(void *listenComm, void **recvComm)
{
	return accept_one(listenComm, recvComm);
}
#endif

/* Memory registered ever, and now; not 0: much is not registered, 1: it waits. */
__attribute__((visibility("default"))) atomic_int net_test_registered, net_test_known,
	net_test_stuck;

static void region_add(struct comm *comm, const struct region *region, void **mhandle)
{
	*mhandle = malloc(sizeof(*region));
	memcpy(*mhandle, region, sizeof(*region));
	comm->regions++;
	net_test_registered++;
	net_test_known++;
}

static ncclResult_t test_reg(
	void *opaque, void *data, net_reg_size size, int type, void **mhandle)
{
	if ((type != NCCL_PTR_HOST &&
		    !(type == NCCL_PTR_CUDA && net_test_fault("gdr") &&
			    !net_test_fault("dmabuf") && !net_test_fault("refuse"))) ||
		size <= 0 || net_test_fault("register") ||
		(size > REGION_BYTES_FEW && net_test_fault("few_pages")))
		return ncclSystemError;
	for (int due = 2; size > REGION_BYTES_FEW && net_test_stuck; usleep(100))
		atomic_compare_exchange_strong(&net_test_stuck, &due, 1);
	region_add(opaque, &(struct region){data, (size_t)size, type == NCCL_PTR_CUDA},
		mhandle);
	return ncclSuccess;
}

/* The descriptor is the driver's stand-in's, which says what memory it is of. */
static ncclResult_t test_reg_dmabuf(void *opaque, void *data, size_t size, int type,
	uint64_t offset, int fd, void **mhandle)
{
	unsigned long long first = 0;
	size_t bytes = 0;
	char text[64] = "";

	if (type != NCCL_PTR_CUDA || !net_test_fault("dmabuf") ||
		net_test_fault("refuse") || pread(fd, text, sizeof(text) - 1, 0) <= 0 ||
		sscanf(text, "%llu %zu", &first, &bytes) != 2 ||
		first + offset != (uintptr_t)data || offset + size > bytes)
		return ncclSystemError;
	region_add(opaque, &(struct region){data, size, true}, mhandle);
	((struct comm *)opaque)->dmabufs++;
	return ncclSuccess;
}

static ncclResult_t test_dereg(void *opaque, void *mhandle)
{
	struct comm *comm = opaque;

	if (!mhandle || comm->regions-- <= 0)
		return ncclInternalError;
	region_must_be_there(mhandle);
	net_test_known--;
	free(mhandle);
	return ncclSuccess;
}

/* NULL when there is no room, now or on demand. */
static struct request *request_make(
	struct comm *comm, void *data, size_t bytes, const struct region *region)
{
	struct request *request = &comm->requests[comm->next % REQUESTS];

	if (!region || (char *)data < region->data ||
		(char *)data + bytes > region->data + region->bytes) {
		fprintf(stderr, "net_test: memory that is not registered\n");
		abort();
	}
	if (request->is_used || (net_test_fault("busy") && ++comm->calls % BUSY))
		return NULL;
	*request = (struct request){
		.comm = comm, .is_used = true, .data = data, .bytes = bytes};
	request->is_send = comm->is_send;
	comm->gpu_messages += region->in_gpu;
	if (region->in_gpu && !comm->is_send && !net_test_fault("coherent"))
		request->aside = malloc(bytes);
	comm->next++;
	return request;
}

/* How many messages were taken, for a test that counts them. */
__attribute__((visibility("default"))) atomic_int net_test_sends;

static ncclResult_t send_one(
	void *opaque, void *data, size_t bytes, void *mhandle, void **request)
{
	struct comm *comm = opaque;

	if (!comm->is_send || (net_test_fault("send") && comm->next > 2))
		return ncclSystemError;
	*request = request_make(comm, data, bytes, mhandle);
	if (*request)
		atomic_fetch_add(&net_test_sends, 1);
	return ncclSuccess;
}

static ncclResult_t recv_one(
	void *opaque, void *data, size_t bytes, void *mhandle, void **request)
{
	struct comm *comm = opaque;

	/* with a word there it is done before the data is here, where the plugin has that
	 * ("optional"): who waits for the data must not ask so */
	bool is_optional = net_test_fault("optional") && *request == (void *)OPTIONAL;
	struct request *made;

	if (comm->is_send || (*request && !is_optional) ||
		(net_test_fault("receive") && comm->next > 2))
		return ncclSystemError;
	*request = made = request_make(comm, data, bytes, mhandle);
	if (made)
		made->is_optional = is_optional;
	return ncclSuccess;
}

#if NET_VERSION >= 10
static void request_tell(struct request *request, void *parent)
{
	if (request && parent)
		tell(&request->event, EVENT_START, parent, EVENT_ID, &request->bytes);
}

static ncclResult_t test_isend(void *comm, void *data, size_t size, int tag,
	void *mhandle, void *phandle, void **request)
{
	ncclResult_t result = send_one(comm, data, size, mhandle, request);

	(void)tag;
	if (!result)
		request_tell(*request, phandle);
	return result;
}

static ncclResult_t test_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
	void **mhandles, void **phandles, void **request)
{
	ncclResult_t result = n == 1 && tags && phandles
				      ? recv_one(comm, data[0], sizes[0], mhandles[0],
						request)
				      : ncclInvalidArgument;

	if (!result)
		request_tell(*request, phandles[0]);
	return result;
}
#else
static ncclResult_t test_isend(
	void *comm, void *data, net_size size, int tag, void *mhandle, void **request)
{
	(void)tag;
	return send_one(comm, data, (size_t)size, mhandle, request);
}

static ncclResult_t test_irecv(void *comm, int n, void **data, net_size *sizes, int *tags,
	void **mhandles, void **request)
{
	return n == 1 && tags
		       ? recv_one(comm, data[0], (size_t)sizes[0], mhandles[0], request)
		       : ncclInvalidArgument;
}
#endif

/* Some bytes of one thing; false: no more now, or lost. */
static bool move_some(
	const struct request *r, void *data, size_t bytes, size_t *done, bool is_out)
{
	ssize_t moved;

	if (*done == bytes)
		return true;
	moved = is_out ? send(r->comm->fd, (char *)data + *done, bytes - *done,
				 MSG_NOSIGNAL)
		       : recv(r->comm->fd, (char *)data + *done, bytes - *done, 0);
	if (moved > 0)
		*done += (size_t)moved;
	return *done == bytes;
}

static bool is_broken(const struct comm *comm)
{
	int error = 0;
	socklen_t bytes = sizeof(error);
	char byte;
	ssize_t peeked = recv(comm->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	getsockopt(comm->fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
	return error || peeked == 0 ||
	       (peeked < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

static void unseen_add(struct request *r)
{
	struct unseen *unseen = malloc(sizeof(*unseen));

	*unseen = (struct unseen){r->comm->unseen, r->data, r->aside, r->size};
	r->comm->unseen = unseen;
	r->aside = NULL;
}

/* A flush needs memory that is registered, and no place in the row. */
static ncclResult_t test_iflush(
	void *opaque, int n, void **data, int *sizes, void **mhandles, void **request)
{
	const struct region *region = mhandles[0];
	struct request *flush = calloc(1, sizeof(*flush));

	if (n != 1 || !region->in_gpu || sizes[0] <= 0)
		return ncclInvalidArgument;
	((struct comm *)opaque)->flushes++;
	*flush = (struct request){.comm = opaque,
		.is_flush = true,
		.data = data[0],
		.bytes = (size_t)sizes[0]};
	*request = flush;
	return ncclSuccess;
}

/* Done when it is asked about the second time. */
static ncclResult_t flush_test(struct request *flush, int *done)
{
	struct unseen **at = &flush->comm->unseen;

	if (!flush->tests++)
		return ncclSuccess;
	while (*at && ((*at)->data != flush->data || (*at)->bytes != flush->bytes))
		at = &(*at)->next;
	if (!*at)
		return ncclInternalError;
	unseen_show(at);
	free(flush);
	*done = 1;
	return ncclSuccess;
}

/* A receiver says how much it takes; then the size and the bytes come. */
static ncclResult_t request_move(struct request *r)
{
	struct comm *comm = r->comm;

	if (!r->is_send && !r->is_asked) {
		r->room = r->bytes;
		r->is_asked = move_some(
			r, &r->room, sizeof(r->room), &comm->credit_done, true);
		if (r->is_asked)
			comm->credit_done = 0;
	}
	if (r->is_send && !r->is_asked) {
		r->is_asked = move_some(r, &comm->credit, sizeof(comm->credit),
			&comm->credit_done, false);
		if (r->is_asked) {
			comm->credit_done = 0;
			if (comm->credit < r->bytes)
				return ncclInvalidArgument;
			r->size = r->bytes;
		}
	}
	if (!r->is_asked)
		return ncclSuccess;
	if (!move_some(r, &r->size, sizeof(r->size), &r->head_done, r->is_send))
		return ncclSuccess;
	if (!r->is_send && r->size > r->bytes)
		return ncclInternalError;
	r->is_done = move_some(
		r, r->aside ? r->aside : r->data, r->size, &r->data_done, r->is_send);
	if (r->is_done && r->aside)
		unseen_add(r);
	return ncclSuccess;
}

static ncclResult_t test_test(void *opaque, int *done, int *sizes)
{
	struct request *r = opaque;
	struct comm *comm = r->comm;
	ncclResult_t result = ncclSuccess;

	*done = 0;
	if (r->is_flush)
		return flush_test(r, done);
	if (net_test_fault("test") && comm->next > 2)
		return ncclInternalError;
	/* all before it first */
	while (!result && comm->first < comm->next) {
		struct request *first = &comm->requests[comm->first % REQUESTS];

		if (!first->is_done)
			result = request_move(first);
		if (!first->is_done)
			break;
		first->is_used = first->is_used && !first->is_left;
		comm->first++;
	}
	if (result)
		return result;
	if (r->is_optional && !r->is_done) {
		*done = 1;
		if (sizes)
			*sizes = (int)r->bytes;
		r->is_optional = false; /* it is freed when its data has come */
		r->is_left = true;
		return ncclSuccess;
	}
	if (!r->is_done)
		return is_broken(comm) && !r->is_done ? ncclRemoteError : ncclSuccess;
	if (net_test_fault("late") && r->tests++ < LATE_TESTS)
		return ncclSuccess;
	*done = 1;
#if NET_VERSION >= 10
	if (r->event)
		tell(&r->event, EVENT_UPDATE_AND_STOP, NULL, EVENT_ID, &r->size);
#endif
	if (sizes)
		*sizes = (int)r->size + (net_test_fault("lies") && comm->first > 1);
	r->is_used = false;
	return ncclSuccess;
}

static ncclResult_t comm_close(void *opaque)
{
	struct comm *comm = opaque;

	if (comm->regions) {
		fprintf(stderr, "net_test: %d regions are still registered\n",
			comm->regions);
		abort();
	}
	if (net_test_fault("registrations"))
		fprintf(stderr, "net_test: %d registered by now\n", net_test_registered);
	if (net_test_fault("count") && !comm->is_listener)
		fprintf(stderr, "net_test: %s gpu %llu dmabuf %llu flushed %llu\n",
			comm->is_send ? "sent" : "received",
			(unsigned long long)comm->gpu_messages,
			(unsigned long long)comm->dmabufs,
			(unsigned long long)comm->flushes);
	while (comm->unseen)
		unseen_drop(&comm->unseen);
	for (int i = 0; i < REQUESTS; i++)
		free(comm->requests[i].aside);
	close(comm->fd);
	free(comm);
	return ncclSuccess;
}

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b)	 JOIN_AGAIN(a, b)

__attribute__((visibility("default"))) ncclNet_t JOIN(ncclNetPlugin_v, NET_VERSION) = {
#ifdef NET_NAME
	.name = NET_NAME,
#else
	.name = "Test",
#endif
	.init = test_init,
	.devices = net_test_devices,
	.getProperties = net_test_properties,
	.listen = test_listen,
	.connect = test_connect,
	.accept = test_accept,
	.regMr = test_reg,
	.regMrDmaBuf = test_reg_dmabuf,
	.deregMr = test_dereg,
	.isend = test_isend,
	.irecv = test_irecv,
	.iflush = test_iflush,
	.test = test_test,
	.closeSend = comm_close,
	.closeRecv = comm_close,
	.closeListen = comm_close,
#if NET_VERSION >= 9
	.makeVDevice = net_test_make_virtual,
#endif
#if NET_VERSION >= 11
	.finalize = test_finalize,
#endif
};
