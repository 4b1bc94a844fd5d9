/* A profiler plugin as others write them, for the version that PROFILER_VERSION says.
 *
 * It writes a line for all it is told into the file of PROFILER_TEST_FILE, and one that
 * begins with WRONG for what cannot be: an event whose parent is of another kind or not
 * this communicator's, a group that is closed before what is in it begins, an event that
 * is stopped twice or never. PROFILER_TEST_MASK has the events that it wants, all when it
 * is unset; PROFILER_TEST_FAULT is `init` or `start`: what fails; or
 * `hang`: init does not return. */
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler_test.h"

#define EXPORT __attribute__((visibility("default")))

enum { EVENT_MAGIC = 0xe7e27, EVENTS_MAX = 4096, LINE_BYTES = 256 };

struct event {
	int magic;
	unsigned kind;
	bool is_open;
	int rank;
	const struct context *context;
	int steps, steps_told; /* of a ProxyOp */
	size_t bytes;
};

struct context {
	int rank; /* -1: not told */
	struct event *events[EVENTS_MAX];
	uint32_t count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((format(printf, 1, 2))) void note(const char *format, ...)
{
	const char *path = getenv("PROFILER_TEST_FILE");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	char line[LINE_BYTES];
	va_list args;
	int bytes;

	va_start(args, format);
	bytes = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	line[bytes++] = '\n';
	if (fd < 0 || write(fd, line, (size_t)bytes) != bytes)
		abort();
	close(fd);
}

static bool is_fault(const char *word)
{
	const char *fault = getenv("PROFILER_TEST_FAULT");

	return fault && !strcmp(fault, word);
}

static const char *kind_name(unsigned kind)
{
	switch (kind) {
	case ncclProfileGroup:
		return "Group";
	case ncclProfileColl:
		return "Coll";
	case ncclProfileP2p:
		return "P2p";
	case ncclProfileProxyOp:
		return "ProxyOp";
	case ncclProfileProxyStep:
		return "ProxyStep";
	case ncclProfileNetPlugin:
		return "NetPlugin";
	case ncclProfileGroupApi:
		return "GroupApi";
	case ncclProfileCollApi:
		return "CollApi";
	case ncclProfileP2pApi:
		return "P2pApi";
	case ncclProfileKernelLaunch:
		return "KernelLaunch";
	default:
		return "WRONG kind";
	}
}

/* ---- init ---- */

static ncclResult_t begin(void **context, int *mask, int rank)
{
	const char *wanted = getenv("PROFILER_TEST_MASK");
	struct context *fresh;

	if (is_fault("init"))
		return ncclSystemError;
	if (is_fault("hang"))
		pause();
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return ncclSystemError;
	fresh->rank = rank;
	/* calls of other communicators look at it meanwhile */
	__atomic_store_n(mask, wanted ? atoi(wanted) : (1 << 16) - 1, __ATOMIC_RELAXED);
	*context = fresh;
	return ncclSuccess;
}

#if PROFILER_VERSION < 4
static ncclResult_t init(void **context, int *mask)
{
	note("init");
	return begin(context, mask, -1);
}
#else
static ncclResult_t begin_known(void **context, int *mask, const char *name,
	const int counts[3], ncclDebugLogger_t log)
{
	note("init %s rank %d of %d on %d", name ? name : "nameless", counts[2],
		counts[1], counts[0]);
	log(3, 1, __FILE__, __LINE__, "the profiler begins on rank %d", counts[2]);
	return begin(context, mask, counts[2]);
}
#if PROFILER_VERSION == 4
static ncclResult_t init(void **context, int *mask, const char *name, uint64_t hash,
	int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
	if (!hash)
		note("WRONG hash");
	return begin_known(context, mask, name, (int[]){nodes, ranks, rank}, log);
}
#else
static ncclResult_t init(void **context, uint64_t id, int *mask, const char *name,
	int nodes, int ranks, int rank, ncclDebugLogger_t log)
{
	if (!id)
		note("WRONG id");
	return begin_known(context, mask, name, (int[]){nodes, ranks, rank}, log);
}
#endif
#endif

/* ---- events ---- */

static void relative_check(
	const struct event *event, const void *other, unsigned kind, bool must_be_open)
{
	const struct event *relative = other;

	if (!relative)
		note("WRONG %s without a %s", kind_name(event->kind), kind_name(kind));
	else if (relative->magic != EVENT_MAGIC || relative->kind != kind ||
		 relative->context != event->context)
		note("WRONG relative of %s", kind_name(event->kind));
	else if (must_be_open && !relative->is_open)
		note("WRONG %s in a closed %s", kind_name(event->kind), kind_name(kind));
}

/* Of messages between hosts. */
static void mail_check(struct event *event, const ncclProfilerEventDescr_t *descr)
{
	struct event *parent = descr->parentObj;

	if (event->kind == ncclProfileProxyOp) {
		relative_check(event, parent,
			parent && parent->kind == ncclProfileP2p ? ncclProfileP2p
								 : ncclProfileColl,
			true);
		event->steps = descr->proxyOp.nSteps;
	} else if (event->kind == ncclProfileProxyStep) {
		relative_check(event, parent, ncclProfileProxyOp, true);
		if (parent && parent->steps_told++ != descr->proxyStep.step)
			note("WRONG step");
	} else if (event->kind == ncclProfileNetPlugin) {
		relative_check(event, parent, ncclProfileProxyStep, true);
	}
}

/* A ProxyOp is over: was it what had been said? */
static void steps_check(const struct event *event)
{
	if (event->kind == ncclProfileProxyOp && event->steps != event->steps_told)
		note("WRONG %d of %d steps", event->steps_told, event->steps);
}

#if PROFILER_VERSION < 5
static void relatives_check(
	const struct event *event, const ncclProfilerEventDescr_t *descr)
{
	if (event->kind == ncclProfileColl || event->kind == ncclProfileP2p)
		relative_check(event, descr->parentObj, ncclProfileGroup, true);
}
#else
static void relatives_check(
	const struct event *event, const ncclProfilerEventDescr_t *descr)
{
	switch (event->kind) {
	case ncclProfileCollApi:
	case ncclProfileP2pApi:
	case ncclProfileKernelLaunch:
		relative_check(event, descr->parentObj, ncclProfileGroupApi, true);
		break;
	case ncclProfileColl:
		relative_check(event, descr->parentObj, ncclProfileCollApi, false);
		relative_check(event, descr->coll.parentGroup, ncclProfileGroup, true);
		break;
	case ncclProfileP2p:
		relative_check(event, descr->parentObj, ncclProfileP2pApi, false);
		relative_check(event, descr->p2p.parentGroup, ncclProfileGroup, true);
		break;
	default:
		break;
	}
}
#endif

static void coll_note(const ncclProfilerEventDescr_t *descr)
{
	uint64_t tag = 0;

#if PROFILER_VERSION >= 7
	tag = descr->coll.userTag;
#endif
#if PROFILER_VERSION < 3
	note("traffic %zu", descr->coll.trafficBytes);
#endif
#if PROFILER_VERSION < 4
	if (!descr->coll.commHash || strcmp(descr->coll.name, "profiled"))
		note("WRONG communicator");
#endif
#if PROFILER_VERSION == 1
	note("start Coll %u count %zu type %u seq %lu root %d rank %d tag %lu",
		descr->coll.func, descr->coll.count, descr->coll.datatype,
		(unsigned long)descr->coll.seqNumber, descr->coll.root, descr->rank,
		(unsigned long)tag);
	note("algo %u proto %u op %u", descr->coll.algo, descr->coll.proto,
		descr->coll.op);
#else
	note("start Coll %s count %zu type %s seq %lu root %d rank %d tag %lu",
		descr->coll.func, descr->coll.count, descr->coll.datatype,
		(unsigned long)descr->coll.seqNumber, descr->coll.root, descr->rank,
		(unsigned long)tag);
	note("algo %s proto %s", descr->coll.algo, descr->coll.proto);
#endif
	if (!descr->coll.sendBuff || !descr->coll.recvBuff || !descr->coll.nChannels)
		note("WRONG collective");
}

static void p2p_note(const ncclProfilerEventDescr_t *descr)
{
#if PROFILER_VERSION == 1
	note("start P2p %u count %zu type %u peer %d rank %d", descr->p2p.func,
		descr->p2p.count, descr->p2p.datatype, descr->p2p.peer, descr->rank);
#else
	note("start P2p %s count %zu type %s peer %d rank %d", descr->p2p.func,
		descr->p2p.count, descr->p2p.datatype, descr->p2p.peer, descr->rank);
#endif
	if (!descr->p2p.buff)
		note("WRONG transfer");
}

static bool mail_note(const ncclProfilerEventDescr_t *descr)
{
	if (descr->type == ncclProfileProxyOp)
		note("start ProxyOp %s peer %d steps %d bytes %d channel %u",
			descr->proxyOp.isSend ? "to" : "from", descr->proxyOp.peer,
			descr->proxyOp.nSteps, descr->proxyOp.chunkSize,
			descr->proxyOp.channelId);
	else if (descr->type == ncclProfileProxyStep)
		note("start ProxyStep rank %d", descr->rank);
#if PROFILER_VERSION >= 2
	else if (descr->type == ncclProfileNetPlugin)
		note("start NetPlugin id %lx bytes %zu", (long)descr->netPlugin.id,
			*(const size_t *)descr->netPlugin.data);
#endif
	else
		return false;
	if (descr->type == ncclProfileProxyOp && descr->proxyOp.pid != getpid())
		note("WRONG process");
	return true;
}

static void api_note(const ncclProfilerEventDescr_t *descr)
{
	if (mail_note(descr))
		return;
#if PROFILER_VERSION >= 5
	uint64_t tag = 0;

	if (descr->type == ncclProfileGroupApi) {
		note("start GroupApi depth %d rank %d", descr->groupApi.groupDepth,
			descr->rank);
		return;
	}
	if (descr->type == ncclProfileP2pApi) {
		note("start P2pApi %s count %zu type %s rank %d", descr->p2pApi.func,
			descr->p2pApi.count, descr->p2pApi.datatype, descr->rank);
		return;
	}
#if PROFILER_VERSION >= 7
	tag = descr->collApi.userTag;
#endif
	if (descr->type == ncclProfileCollApi) {
		note("start CollApi %s count %zu type %s root %d stream %d rank %d tag "
		     "%lu",
			descr->collApi.func, descr->collApi.count,
			descr->collApi.datatype, descr->collApi.root,
			descr->collApi.stream != NULL, descr->rank, (unsigned long)tag);
		return;
	}
#endif
	note("start %s rank %d", kind_name((unsigned)descr->type), descr->rank);
}

static ncclResult_t start(void *opaque, void **handle, ncclProfilerEventDescr_t *descr)
{
	struct context *context = opaque;
	struct event *event;

	if (is_fault("start"))
		return ncclSystemError;
	event = calloc(1, sizeof(*event));
	if (!event)
		return ncclSystemError;
	*event = (struct event){.magic = EVENT_MAGIC,
		.kind = (unsigned)descr->type,
		.is_open = true,
		.rank = descr->rank,
		.context = context};
	pthread_mutex_lock(&lock);
	if (context->rank >= 0 && context->rank != descr->rank)
		note("WRONG rank");
	if (context->count < EVENTS_MAX)
		context->events[context->count++] = event;
	relatives_check(event, descr);
	mail_check(event, descr);
	if (descr->type == ncclProfileColl)
		coll_note(descr);
	else if (descr->type == ncclProfileP2p)
		p2p_note(descr);
	else
		api_note(descr);
	pthread_mutex_unlock(&lock);
	*handle = event;
	return ncclSuccess;
}

static ncclResult_t stop(void *handle)
{
	struct event *event = handle;

	pthread_mutex_lock(&lock);
	if (event->magic != EVENT_MAGIC || !event->is_open)
		note("WRONG stop");
	event->is_open = false;
	steps_check(event);
	note("stop %s rank %d", kind_name(event->kind), event->rank);
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

/* What goes with a state; does anything have to? */
static bool args_note(int state, const ncclProfilerEventStateArgs_t *args)
{
	switch (state) {
#if PROFILER_VERSION < 4
	case ncclProfilerProxyOpSendDone:
	case ncclProfilerProxyOpRecvDone:
		if (args)
			note("done %zu bytes %d steps", args->proxyOp.transSize,
				args->proxyOp.steps);
		return true;
	case ncclProfilerProxyStepSendWait:
	case ncclProfilerProxyStepRecvFlushWait:
		return true;
#else
	case ncclProfilerProxyStepSendWait:
	case ncclProfilerProxyStepRecvFlushWait:
		if (args)
			note("moved %zu bytes", args->proxyStep.transSize);
		return true;
	case ncclProfilerNetPluginUpdate:
		if (args)
			note("update %zu bytes", *(const size_t *)args->netPlugin.data);
		return true;
#endif
	default:
		return false;
	}
}

static ncclResult_t record(void *handle, int state, ncclProfilerEventStateArgs_t *args)
{
	const struct event *event = handle;

	pthread_mutex_lock(&lock);
	if (event->magic != EVENT_MAGIC || !event->is_open)
		note("WRONG state");
	if (args_note(state, args) != (args != NULL))
		note("WRONG state %d with%s more", state, args ? "" : "out");
	note("state %d %s rank %d", state, kind_name(event->kind), event->rank);
	pthread_mutex_unlock(&lock);
	return ncclSuccess;
}

static ncclResult_t finalize(void *opaque)
{
	struct context *context = opaque;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < context->count; i++) {
		if (context->events[i]->is_open)
			note("WRONG %s is open at the end",
				kind_name(context->events[i]->kind));
		context->events[i]->magic = 0;
		free(context->events[i]);
	}
	note("finalize");
	pthread_mutex_unlock(&lock);
	free(context);
	return ncclSuccess;
}

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b)	 JOIN_AGAIN(a, b)

EXPORT const ncclProfiler_t JOIN(ncclProfiler_v, PROFILER_VERSION) = {
	"ProfilerTest", init, start, stop, record, finalize};
