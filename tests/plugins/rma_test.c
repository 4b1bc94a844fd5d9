/* A one-sided plugin as others write them, over TCP on the loopback interface, with
 * faults on demand.
 *
 * It is as lax as a plugin may be: a put is done when its bytes have left, what comes is
 * written when the receiver's side is let do so, and a put without a signal lands late,
 * but for a strong signal, which waits for all before it. And it is as strict: memory is
 * registered by all ranks before anybody puts there, a put is held against the length of
 * the own part, and nothing is deregistered under way. RMA_TEST_FAULT has words with
 * colons between them; those that begin with `late_` are for what comes after the first
 * window. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rma_test.h"

enum { REGIONS = 256, REQUESTS = 8, HELD_TURNS = 50, BUSY = 3, SMALL_BYTES = 4096 };
enum { HANDLE_MAGIC = 0x7e57, HEAD_MAGIC = 0x9a17, DEVICE_HOST_DRIVEN = 2 };

struct region {
	int id; /* the same on all ranks */
	char *data;
	size_t bytes;
	uint64_t flags;
	bool is_known;
};

struct head {
	uint32_t magic, is_signal, is_strong, op;
	int32_t region, signal_region;
	uint64_t to, bytes, signal, value;
};

struct request {
	struct head head;
	const struct region *from;
	const char *data;
	size_t head_done, data_done;
	bool is_done;
	struct request *next; /* to the same rank */
};

/* A put that has come and is written later. */
struct held {
	struct head head;
	char *data; /* owned */
	struct held *next;
};

struct peer {
	int out, in; /* sockets; -1: none */
	struct request *first;
	struct head head;
	char *data; /* owned: of the put that comes */
	size_t head_done, data_done;
	struct held *held; /* owned, a list, the oldest first */
	int held_turns;
};

struct coll {
	pthread_mutex_t lock;
	int rank, count;
	struct peer *peers;
	struct region regions[REGIONS];
	atomic_int region_count;
	int known;
	int under_way;
	unsigned calls;
	atomic_bool has_failed;
};

struct handle {
	int magic;
	struct sockaddr_in at;
};

struct listener {
	int fd;
};

/* For a test that looks whether the plugin is used. */
#define VISIBLE __attribute__((visibility("default")))
VISIBLE atomic_int rma_test_puts, rma_test_signals, rma_test_windows;

static ncclDebugLogger_t say;

static bool is_in(const char *list, const char *word)
{
	size_t bytes = strlen(word);

	for (; list && *list; list += strcspn(list, ":"), list += *list == ':')
		if (!strncmp(list, word, bytes) && (!list[bytes] || list[bytes] == ':'))
			return true;
	return false;
}

static bool fault_of(int rank, const char *word)
{
	const char *only = getenv("RMA_TEST_FAULT_RANK");

	return (!only || atoi(only) == rank) && is_in(getenv("RMA_TEST_FAULT"), word);
}

/* Before a rank has a number it has that of RMA_TEST_RANK. */
static bool fault(const char *word)
{
	const char *rank = getenv("RMA_TEST_RANK");

	return fault_of(rank ? atoi(rank) : -1, word);
}

/* .. also by that word with `late_` before it, once there is a window. */
static bool coll_fault(const struct coll *coll, const char *word)
{
	char late[64];

	snprintf(late, sizeof(late), "late_%s", word);
	return fault_of(coll->rank, word) ||
	       (coll->region_count > 1 && fault_of(coll->rank, late));
}

static void hang(void)
{
	for (;;)
		pause();
}

static void wrong(const char *what)
{
	fprintf(stderr, "rma_test: %s\n", what);
	abort();
}

/* ---- life ---- */

static ncclResult_t test_init(void **ctx, uint64_t commId, ncclDebugLogger_t log)
{
	say = log;
	if (fault("hang"))
		hang();
	if (fault("init"))
		return ncclSystemError;
	*ctx = malloc(sizeof(commId));
	memcpy(*ctx, &commId, sizeof(commId));
	say(3, 1, __FILE__, __LINE__, "RMA/Test: started, version %d", RMA_VERSION);
	return ncclSuccess;
}

static ncclResult_t test_finalize(void *ctx)
{
	free(ctx);
	return ncclSuccess;
}

static ncclResult_t test_devices(int *count)
{
	*count = fault("empty") ? 0 : 2;
	return ncclSuccess;
}

static ncclResult_t test_properties(int dev, ncclNetProperties_t *props)
{
	*props = (ncclNetProperties_t){.name = (char *)(dev ? "rma1" : "rma0"),
		.ptrSupport = fault("gpu") ? NCCL_PTR_CUDA : NCCL_PTR_HOST,
		.speed = 25000,
		.maxComms = 1000,
		.maxRecvs = 1,
		.netDeviceType = fault("kernel") ? 3 : DEVICE_HOST_DRIVEN,
		.maxP2pBytes = fault("small") ? SMALL_BYTES : 1 << 30};
	return dev < 0 || dev > 1 ? ncclInvalidArgument : ncclSuccess;
}

#if RMA_VERSION >= 16
static ncclResult_t test_group_properties(void *collComm, ncclRmaProperties_t *props)
{
	(void)collComm;
	props->flushesAllPutsOnAnySignal = false;
	return ncclSuccess;
}
#endif

static ncclResult_t test_listen(void *ctx, int dev, void *handle, void **listenComm)
{
	struct handle mine = {.magic = HANDLE_MAGIC, .at = {.sin_family = AF_INET}};
	struct listener *listener = calloc(1, sizeof(*listener));
	socklen_t bytes = sizeof(mine.at);

	mine.at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (!ctx || dev < 0 || fault("listen") ||
		bind(listener->fd, (struct sockaddr *)&mine.at, bytes) ||
		listen(listener->fd, 64) ||
		getsockname(listener->fd, (struct sockaddr *)&mine.at, &bytes)) {
		close(listener->fd);
		free(listener);
		return ncclSystemError;
	}
	memcpy(handle, &mine, sizeof(mine));
	*listenComm = listener;
	return ncclSuccess;
}

static ncclResult_t test_close_listen(void *listenComm)
{
	struct listener *listener = listenComm;

	close(listener->fd);
	free(listener);
	return ncclSuccess;
}

static void stream_ready(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Calls everybody, then waits until everybody has called. */
static ncclResult_t mesh_make(
	struct coll *coll, void *handles[], const struct listener *mine)
{
	for (int i = 0; i < coll->count; i++) {
		const struct handle *other = handles[i];
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (other->magic != HANDLE_MAGIC)
			wrong("a handle that listen() has not made");
		coll->peers[i].out = fd;
		if (connect(fd, (const struct sockaddr *)&other->at, sizeof(other->at)) ||
			send(fd, &coll->rank, sizeof(coll->rank), MSG_NOSIGNAL) !=
				(ssize_t)sizeof(coll->rank))
			return ncclSystemError;
		stream_ready(fd);
	}
	for (int i = 0; i < coll->count; i++) {
		int fd = accept(mine->fd, NULL, NULL), from = -1;

		if (recv(fd, &from, sizeof(from), MSG_WAITALL) != (ssize_t)sizeof(from) ||
			from < 0 || from >= coll->count)
			return ncclSystemError;
		coll->peers[from].in = fd;
		stream_ready(fd);
	}
	return ncclSuccess;
}

static void peer_free(struct peer *peer)
{
	while (peer->first) {
		struct request *request = peer->first;

		peer->first = request->next;
		free(request);
	}
	while (peer->held) {
		struct held *held = peer->held;

		peer->held = held->next;
		free(held->data);
		free(held);
	}
	free(peer->data);
	if (peer->out >= 0)
		close(peer->out);
	if (peer->in >= 0)
		close(peer->in);
}

static void coll_free(struct coll *coll)
{
	for (int i = 0; i < coll->count; i++)
		peer_free(&coll->peers[i]);
	pthread_mutex_destroy(&coll->lock);
	free(coll->peers);
	free(coll);
}

static ncclResult_t test_connect(void *ctx, void *handles[], int nranks, int rank,
	void *listenComm, void **collComm)
{
	struct coll *coll = calloc(1, sizeof(*coll));
	ncclResult_t result = ctx ? ncclSuccess : ncclInvalidArgument;

	coll->rank = rank;
	coll->count = nranks;
	coll->peers = calloc((size_t)nranks, sizeof(*coll->peers));
	for (int i = 0; i < nranks; i++)
		coll->peers[i].out = coll->peers[i].in = -1;
	pthread_mutex_init(&coll->lock, NULL);
	if (coll_fault(coll, "hang_connect"))
		hang();
	if (coll_fault(coll, "connect"))
		result = ncclSystemError;
	if (!result)
		result = mesh_make(coll, handles, listenComm);
	if (result)
		coll_free(coll);
	else
		*collComm = coll;
	return result;
}

static ncclResult_t test_close_coll(void *collComm)
{
	struct coll *coll = collComm;

	if (coll->known)
		wrong("memory is still registered");
	coll_free(coll);
	return ncclSuccess;
}

static ncclResult_t test_context(
	void *collComm, ncclRmaConfig_t *config, void **rmaCtx RMA_DEV_OUT)
{
	struct coll *coll = collComm;

	if (config->nContexts != 1 || coll_fault(coll, "context"))
		return ncclInvalidArgument;
#if RMA_VERSION >= 14
	if (config->rankStride != 1 || config->trafficClass != -1)
		return ncclInvalidArgument;
#else
	*devHandle = coll;
	if (config->trafficClass != -1)
		return ncclInvalidArgument;
#endif
	*rmaCtx = coll;
	return ncclSuccess;
}

static ncclResult_t test_destroy_context(void *rmaCtx)
{
	return rmaCtx ? ncclSuccess : ncclInvalidArgument;
}

/* ---- memory ---- */

static ncclResult_t test_reg(void *collComm, void *data, size_t size, int type,
	uint64_t mrFlags, void **mhandle RMA_DEV_OUT)
{
	bool is_signals = mrFlags & NCCL_MR_FLAG_SIGNAL_NEVER_RESET;
	struct coll *coll = collComm;
	struct region *region;

	if (!is_signals && coll_fault(coll, "hang_register"))
		hang();
	if (type != NCCL_PTR_HOST || coll->region_count == REGIONS ||
		coll_fault(coll, is_signals ? "signals" : "register"))
		return ncclSystemError;
	pthread_mutex_lock(&coll->lock);
	region = &coll->regions[coll->region_count];
	*region = (struct region){coll->region_count++, data, size, mrFlags, true};
	coll->known++;
	rma_test_windows += !is_signals;
	pthread_mutex_unlock(&coll->lock);
	*mhandle = region;
#if RMA_VERSION < 14
	*devHandle = region;
#endif
	return ncclSuccess;
}

/* A program that deregisters what is under way has failed before: it does not travel. */
static ncclResult_t test_dereg(void *collComm, void *mhandle)
{
	struct region *region = mhandle;
	struct coll *coll = collComm;

	pthread_mutex_lock(&coll->lock);
	if (!region->is_known)
		wrong("memory is deregistered twice");
	region->is_known = false;
	coll->known--;
	for (int i = 0; i < coll->count; i++)
		for (struct request *r = coll->peers[i].first; r; r = r->next)
			if (r->from == region)
				shutdown(coll->peers[i].out, SHUT_RDWR);
	pthread_mutex_unlock(&coll->lock);
	return ncclSuccess;
}

/* ---- what comes ---- */

static bool region_has(
	const struct coll *coll, int32_t id, uint64_t offset, uint64_t bytes)
{
	const struct region *region = &coll->regions[id];

	return id >= 0 && id < coll->region_count && region->is_known &&
	       offset <= region->bytes && bytes <= region->bytes - offset;
}

static void data_write(struct coll *coll, const struct head *head, const char *data)
{
	if (!head->bytes)
		return;
	if (region_has(coll, head->region, head->to, head->bytes))
		memcpy(coll->regions[head->region].data + head->to, data, head->bytes);
	else
		coll->has_failed = true;
}

static void signal_write(struct coll *coll, const struct head *head)
{
	uint64_t value = head->op == NCCL_RMA_SIGNAL_OP_INC ? 1 : head->value;
	uint64_t *word;

	if (!region_has(coll, head->signal_region, head->signal, sizeof(*word)) ||
		!(coll->regions[head->signal_region].flags & NCCL_MR_FLAG_FORCE_SO)) {
		coll->has_failed = true;
		return;
	}
	word = (uint64_t *)(void *)(coll->regions[head->signal_region].data +
				    head->signal);
	if (coll_fault(coll, "back"))
		value = -value;
	__atomic_fetch_add(word, value, __ATOMIC_RELEASE);
}

static void held_write(struct coll *coll, struct peer *peer)
{
	while (peer->held) {
		struct held *held = peer->held;

		data_write(coll, &held->head, held->data);
		peer->held = held->next;
		free(held->data);
		free(held);
	}
	peer->held_turns = 0;
}

static void held_add(struct peer *peer)
{
	struct held *held = calloc(1, sizeof(*held)), **link = &peer->held;

	held->head = peer->head;
	held->data = peer->data;
	peer->data = NULL;
	while (*link)
		link = &(*link)->next;
	*link = held;
}

static void put_take(struct coll *coll, struct peer *peer)
{
	const struct head *head = &peer->head;
	bool is_early = coll_fault(coll, "early");

	if (head->magic != HEAD_MAGIC)
		wrong("a message that is none");
	if (!coll_fault(coll, "lose")) {
		if (!head->is_signal || is_early)
			held_add(peer);
		if (head->is_signal && head->is_strong && !is_early)
			held_write(coll, peer);
		if (head->is_signal && !is_early)
			data_write(coll, head, peer->data);
		if (head->is_signal)
			signal_write(coll, head);
	}
	free(peer->data);
	peer->data = NULL;
	peer->head_done = peer->data_done = 0;
}

/* True when `bytes` are there. Who has closed its end sends no more. */
static bool stream_read(struct peer *peer, void *data, size_t bytes, size_t *done)
{
	ssize_t got = 0;

	if (*done < bytes && peer->in >= 0)
		got = recv(peer->in, (char *)data + *done, bytes - *done, 0);
	if (got > 0)
		*done += (size_t)got;
	return *done == bytes;
}

static void peer_receive(struct coll *coll, struct peer *peer)
{
	while (stream_read(peer, &peer->head, sizeof(peer->head), &peer->head_done)) {
		if (!peer->data)
			peer->data = malloc(peer->head.bytes + 1);
		if (!stream_read(peer, peer->data, peer->head.bytes, &peer->data_done))
			break;
		put_take(coll, peer);
	}
	/* one that signals early is never caught up with: who looks must see it */
	if (peer->held && !coll_fault(coll, "early") && ++peer->held_turns > HELD_TURNS)
		held_write(coll, peer);
}

/* ---- what goes ---- */

static bool stream_write(struct peer *peer, const void *data, size_t bytes, size_t *done)
{
	ssize_t sent = 0;

	if (*done < bytes)
		sent = send(peer->out, (const char *)data + *done, bytes - *done,
			MSG_NOSIGNAL);
	if (sent > 0)
		*done += (size_t)sent;
	return *done == bytes;
}

static void peer_send(struct coll *coll, struct peer *peer)
{
	struct request *r = peer->first;

	while (r && stream_write(peer, &r->head, sizeof(r->head), &r->head_done) &&
		stream_write(peer, r->data, r->head.bytes, &r->data_done)) {
		r->is_done = true;
		peer->first = r->next;
		coll->under_way--;
		r = peer->first;
	}
}

/* With the lock. */
static void coll_progress(struct coll *coll)
{
	for (int i = 0; i < coll->count; i++) {
		peer_send(coll, &coll->peers[i]);
		peer_receive(coll, &coll->peers[i]);
	}
}

static ncclResult_t test_progress(void *rmaCtx)
{
	struct coll *coll = rmaCtx;

	if (coll_fault(coll, "hang_progress"))
		hang();
	if (coll_fault(coll, "progress"))
		return ncclRemoteError;
	pthread_mutex_lock(&coll->lock);
	coll_progress(coll);
	pthread_mutex_unlock(&coll->lock);
	return ncclSuccess;
}

static ncclResult_t test_query(void *rmaCtx, bool *hasError)
{
	struct coll *coll = rmaCtx;

	*hasError = coll->has_failed || coll_fault(coll, "error");
	return ncclSuccess;
}

static ncclResult_t test_test(void *collComm, void *request, int *done)
{
	struct coll *coll = collComm;
	struct request *r = request;

	if (coll_fault(coll, "test"))
		return ncclInternalError;
	pthread_mutex_lock(&coll->lock);
	/* nothing gets around the function that hangs */
	if (!coll_fault(coll, "hang_progress"))
		coll_progress(coll);
	*done = r->is_done;
	pthread_mutex_unlock(&coll->lock);
	if (*done)
		free(r);
	return ncclSuccess;
}

/* What both kinds of puts are told. */
struct put {
	void *rmaCtx;
	int context;
	uint64_t from;
	const struct region *from_region, *to_region;
	uint32_t rank;
};

static ncclResult_t put_one(
	const struct put *put, const struct head *head, void **request)
{
	struct coll *coll = put->rmaCtx;
	struct request *r, **link;

	if (coll_fault(coll, "hang_put"))
		hang();
	if (coll_fault(coll, "put"))
		return ncclSystemError;
	if (put->context != 0 || put->rank >= (uint32_t)coll->count)
		return ncclInvalidArgument;
	pthread_mutex_lock(&coll->lock);
	if (head->bytes && (!put->from_region->is_known ||
				   put->from + head->bytes > put->from_region->bytes ||
				   head->to + head->bytes > put->to_region->bytes))
		wrong("a put that is longer than memory is");
	if (coll->under_way == REQUESTS ||
		(coll_fault(coll, "busy") && ++coll->calls % BUSY)) {
		pthread_mutex_unlock(&coll->lock);
		return ncclSuccess;
	}
	r = calloc(1, sizeof(*r));
	r->head = *head;
	r->head.magic = HEAD_MAGIC;
	r->head.region = head->bytes ? put->to_region->id : -1;
	r->from = put->from_region;
	r->data = head->bytes ? put->from_region->data + put->from : NULL;
	for (link = &coll->peers[put->rank].first; *link;)
		link = &(*link)->next;
	*link = r;
	coll->under_way++;
	pthread_mutex_unlock(&coll->lock);
	rma_test_puts += head->bytes != 0;
	rma_test_signals += head->is_signal;
	*request = r;
	return ncclSuccess;
}

static ncclResult_t test_iput(void *rmaCtx, int context, uint64_t srcOff,
	void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle,
	uint32_t rank RMA_FLAGS, void **request)
{
	const struct put put = {rmaCtx, context, srcOff, srcMhandle, dstMhandle, rank};
	const struct head head = {.to = dstOff, .bytes = size};

#if RMA_VERSION >= 15
	if (optFlags)
		return ncclInvalidArgument;
#endif
	return size ? put_one(&put, &head, request) : ncclInvalidArgument;
}

static ncclResult_t test_iput_signal(void *rmaCtx, int context, uint64_t srcOff,
	void *srcMhandle, size_t size, uint64_t dstOff, void *dstMhandle, uint32_t rank,
	uint64_t signalOff, void *signalMhandle, uint64_t signalValue,
	uint32_t signalOp RMA_STRONG RMA_FLAGS, void **request)
{
	const struct put put = {rmaCtx, context, srcOff, srcMhandle, dstMhandle, rank};
	const struct region *signals = signalMhandle;
	struct head head = {.is_signal = 1,
		.is_strong = 1,
		.op = signalOp,
		.signal_region = signals->id,
		.to = dstOff,
		.bytes = size,
		.signal = signalOff,
		.value = signalValue};

#if RMA_VERSION >= 14
	head.is_strong = isStrongSignal;
#endif
#if RMA_VERSION >= 15
	if (optFlags)
		return ncclInvalidArgument;
#endif
	if (signalOp != NCCL_RMA_SIGNAL_OP_INC && signalOp != NCCL_RMA_SIGNAL_OP_ADD)
		return ncclInvalidArgument;
	return put_one(&put, &head, request);
}

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b)	 JOIN_AGAIN(a, b)
#ifndef RMA_SYMBOL
#define RMA_SYMBOL ncclRmaPlugin_v
#endif

VISIBLE ncclRma_t JOIN(RMA_SYMBOL, RMA_VERSION) = {
	.name = "RmaTest",
	.init = test_init,
	.devices = test_devices,
#if RMA_VERSION >= 16
	.getRmaProperties = test_group_properties,
#endif
	.getProperties = test_properties,
	.listen = test_listen,
	.connect = test_connect,
	.createContext = test_context,
	.regMrSym = test_reg,
	.deregMrSym = test_dereg,
	.destroyContext = test_destroy_context,
	.closeColl = test_close_coll,
	.closeListen = test_close_listen,
	.iput = test_iput,
	.iputSignal = test_iput_signal,
	.test = test_test,
	.rmaProgress = test_progress,
	.queryLastError = test_query,
	.finalize = test_finalize,
};
