#include "cpu_streams.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	DONE = 0,
	INVALID = 1,
	NO_MEMORY = 2,
	BAD_HANDLE = 400,
	NOT_READY = 600,
	CAPTURED = 900
};
enum { CHANNELS_MAX = 512, OF_CONTEXT = CHANNELS_MAX / CONTEXTS_MAX };
enum { NAP_US = 20, GREATEST = -5 };

struct given {
	struct given *next;
	stream_work *work;
	size_t bytes; /* of the argument */
	_Alignas(16) char argument[];
};

/* A thread and what it has to do, in order. */
struct channel {
	pthread_t thread;
	bool has_thread, is_taken; /* is_taken: by a stream that shares it with nobody */
	const struct context *context;
	struct given *first, **last;
	uint64_t given, done;
};

/* What a stream was given while it was captured. */
struct graph {
	unsigned users; /* itself, and everything made ready to run */
	struct given *first, **last;
};

struct stream {
	struct context *context;
	struct channel *channel;
	uint64_t last; /* the number that what it was given last has on its channel */
	struct graph *graph; /* that is being captured; NULL: none */
};

struct event {
	const struct context *context;
	unsigned users; /* its owner, and everything enqueued */
	uint64_t recorded, reached;
};

/* The lock guards everything; `changed` tells of anything. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct channel channels[CHANNELS_MAX];
static unsigned stream_count;

bool streams_are_async(void)
{
	static int answer;

	if (!answer)
		answer = getenv("CPU_CUDA_ASYNC") ? 1 : -1;
	return answer > 0;
}

static void *channel_main(void *argument)
{
	struct channel *channel = argument;

	pthread_mutex_lock(&lock);
	for (;;) {
		struct given *given = channel->first;

		if (!given) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		given->work(given->argument);
		pthread_mutex_lock(&lock);
		channel->first = given->next;
		if (!channel->first)
			channel->last = &channel->first;
		channel->done++;
		free(given);
		pthread_cond_broadcast(&changed);
	}
	return NULL;
}

/* With the lock held. A channel of the context for a stream, whatever its priority; NULL:
 * there are no more. */
static struct channel *channel_find(const struct context *context)
{
	const char *text = getenv("CPU_CUDA_CHANNELS");
	unsigned shared = text ? (unsigned)atoi(text) : 0, i = 0;

	if (shared)
		i = context_number(context) * OF_CONTEXT +
		    stream_count++ % shared % OF_CONTEXT;
	else
		while (i < CHANNELS_MAX &&
			(channels[i].is_taken || channels[i].done < channels[i].given))
			i++;
	if (i >= CHANNELS_MAX)
		return NULL;
	channels[i].is_taken = !shared;
	channels[i].context = context;
	if (channels[i].has_thread)
		return &channels[i];
	channels[i].last = &channels[i].first;
	channels[i].has_thread = !pthread_create(
		&channels[i].thread, NULL, channel_main, &channels[i]);
	return channels[i].has_thread ? &channels[i] : NULL;
}

/* The NULL stream, and the one that each thread has of its own, are the current
 * context's. */
static struct stream *stream_of(void *handle)
{
	static struct stream legacy[CONTEXTS_MAX];
	static _Thread_local struct stream own[CONTEXTS_MAX];
	unsigned here = context_number(context_here());
	struct stream *stream = handle;

	if ((uintptr_t)handle < 2)
		stream = &legacy[here];
	else if ((uintptr_t)handle == 2)
		stream = &own[here];
	if (!stream->context)
		stream->context = context_here();
	if (!stream->channel)
		stream->channel = channel_find(stream->context);
	return stream;
}

struct context *stream_context(void *stream)
{
	return (uintptr_t)stream > 2 ? ((const struct stream *)stream)->context
				     : context_here();
}

bool is_captured(void *stream)
{
	return (uintptr_t)stream > 2 && ((const struct stream *)stream)->graph;
}

static void graph_add(struct graph *graph, struct given *given)
{
	*graph->last = given;
	graph->last = &given->next;
}

int stream_give(
	void *stream, stream_work *work, const void *argument, size_t argument_bytes)
{
	struct given *given = malloc(sizeof(*given) + argument_bytes);
	struct stream *to;
	int code = DONE;

	if (!given)
		return NO_MEMORY;
	given->next = NULL;
	given->work = work;
	given->bytes = argument_bytes;
	memcpy(given->argument, argument, argument_bytes);
	if (is_captured(stream)) {
		graph_add(((struct stream *)stream)->graph, given);
		return DONE;
	}
	if (!streams_are_async()) {
		code = work(given->argument);
		free(given);
		return code;
	}
	pthread_mutex_lock(&lock);
	to = stream_of(stream);
	*to->channel->last = given;
	to->channel->last = &given->next;
	to->last = ++to->channel->given;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return code;
}

void stream_wait(void *stream)
{
	struct stream *of;
	uint64_t last;

	if (!streams_are_async() || is_captured(stream))
		return;
	pthread_mutex_lock(&lock);
	of = stream_of(stream);
	last = of->last;
	while (of->channel->done < last)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void streams_wait(const struct context *context)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < CHANNELS_MAX; i++) {
		uint64_t last = channels[i].given;

		while (channels[i].context == context && channels[i].done < last)
			pthread_cond_wait(&changed, &lock);
	}
	pthread_mutex_unlock(&lock);
}

void stop_if_wanted(const char *kind)
{
	const char *wanted = getenv("CPU_CUDA_STOP");

	if (!wanted || strcmp(wanted, kind))
		return;
	unsetenv("CPU_CUDA_STOP");
	raise(SIGSTOP);
}

/* ---- the driver's functions ---- */

int cuCtxSynchronize(void)
{
	streams_wait(context_here());
	return DONE;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = GREATEST;
	return DONE;
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	struct stream *made = calloc(1, sizeof(*made));

	(void)flags;
	if (!made || priority < GREATEST || priority > 0) {
		free(made);
		return INVALID;
	}
	made->context = context_here();
	pthread_mutex_lock(&lock);
	if (streams_are_async())
		made->channel = channel_find(made->context);
	pthread_mutex_unlock(&lock);
	*stream = made;
	return streams_are_async() && !made->channel ? NO_MEMORY : DONE;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

/* What is left on it is still done. */
int cuStreamDestroy_v2(void *stream)
{
	struct stream *gone = stream;

	pthread_mutex_lock(&lock);
	if (gone->channel)
		gone->channel->is_taken = false;
	pthread_mutex_unlock(&lock);
	free(gone);
	return DONE;
}

int cuStreamSynchronize(void *stream)
{
	stream_wait(stream);
	return is_captured(stream) ? CAPTURED : DONE;
}

int cuStreamQuery(void *stream)
{
	const struct stream *of;
	int code = DONE;

	if (!streams_are_async())
		return DONE;
	pthread_mutex_lock(&lock);
	of = stream_of(stream);
	if (of->channel->done < of->last)
		code = NOT_READY;
	pthread_mutex_unlock(&lock);
	return code;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	*status = is_captured(stream);
	return DONE;
}

/* ---- graphs: of one stream each, without events ---- */

int cuStreamBeginCapture_v2(void *stream, int mode)
{
	struct stream *of = stream;
	struct graph *graph = calloc(1, sizeof(*graph));

	(void)mode;
	if (!graph || (uintptr_t)stream <= 2 || of->graph) {
		free(graph);
		return INVALID;
	}
	graph->users = 1;
	graph->last = &graph->first;
	of->graph = graph;
	return DONE;
}

int cuStreamEndCapture(void *stream, void **graph)
{
	struct stream *of = stream;

	if (!is_captured(stream))
		return INVALID;
	*graph = of->graph;
	of->graph = NULL;
	return DONE;
}

int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags)
{
	((struct graph *)graph)->users++;
	*exec = graph;
	return flags ? INVALID : DONE;
}

int cuGraphLaunch(void *exec, void *stream)
{
	const struct graph *graph = exec;
	int code = DONE;

	for (const struct given *one = graph->first; one && !code; one = one->next)
		code = stream_give(stream, one->work, one->argument, one->bytes);
	return code;
}

int cuGraphDestroy(void *graph)
{
	struct graph *gone = graph;

	if (--gone->users)
		return DONE;
	while (gone->first) {
		struct given *one = gone->first;

		gone->first = one->next;
		free(one);
	}
	free(gone);
	return DONE;
}

int cuGraphExecDestroy(void *exec)
{
	return cuGraphDestroy(exec);
}

struct host_call {
	void (*function)(void *argument);
	void *argument;
};

static int host_call_do(void *argument)
{
	const struct host_call *call = argument;

	call->function(call->argument);
	return DONE;
}

int cuLaunchHostFunc(void *stream, void (*function)(void *argument), void *argument)
{
	const struct host_call call = {function, argument};

	return function ? stream_give(stream, host_call_do, &call, sizeof(call))
			: INVALID;
}

/* ---- events ---- */

int cuStreamGetId(void *stream, uint64_t *id)
{
	*id = (uintptr_t)stream;
	return DONE;
}

int cuEventCreate(void **event, unsigned flags)
{
	struct event *made = calloc(1, sizeof(*made));

	(void)flags;
	if (!made)
		return NO_MEMORY;
	made->users = 1;
	made->context = context_here();
	*event = made;
	return DONE;
}

/* With the lock held. */
static void event_put(struct event *event)
{
	if (!--event->users)
		free(event);
}

int cuEventDestroy_v2(void *event)
{
	pthread_mutex_lock(&lock);
	event_put(event);
	pthread_mutex_unlock(&lock);
	return DONE;
}

/* One time that an event was recorded. */
struct moment {
	struct event *event;
	uint64_t number;
};

static struct moment moment_of(void *event, bool is_new)
{
	struct moment moment = {.event = event};

	pthread_mutex_lock(&lock);
	moment.number = moment.event->recorded += is_new;
	moment.event->users++;
	pthread_mutex_unlock(&lock);
	return moment;
}

static int event_reach(void *argument)
{
	struct moment *moment = argument;

	pthread_mutex_lock(&lock);
	if (moment->event->reached < moment->number)
		moment->event->reached = moment->number;
	event_put(moment->event);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return DONE;
}

static int event_await(void *argument)
{
	struct moment *moment = argument;

	pthread_mutex_lock(&lock);
	while (moment->event->reached < moment->number)
		pthread_cond_wait(&changed, &lock);
	event_put(moment->event);
	pthread_mutex_unlock(&lock);
	return DONE;
}

int cuEventRecord(void *event, void *stream)
{
	struct moment moment;

	if (!event || is_captured(stream))
		return INVALID;
	if (((const struct event *)event)->context != stream_context(stream))
		return BAD_HANDLE;
	moment = moment_of(event, true);
	return stream_give(stream, event_reach, &moment, sizeof(moment));
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct moment moment;

	if (!event || flags || is_captured(stream))
		return INVALID;
	moment = moment_of(event, false);
	return stream_give(stream, event_await, &moment, sizeof(moment));
}

int cuEventQuery(void *event)
{
	const struct event *of = event;
	int code;

	pthread_mutex_lock(&lock);
	code = of->reached < of->recorded ? NOT_READY : DONE;
	pthread_mutex_unlock(&lock);
	return code;
}

struct memop {
	int operation, pad;
	uint64_t address, value;
	unsigned flags;
	int pad2;
	uint64_t alias, pad3;
};

static int memop_do(void *argument)
{
	const struct memop *op = argument;
	uint32_t *word = (uint32_t *)(uintptr_t)op->address;
	uint32_t value = (uint32_t)op->value;

	if (op->operation == 2)
		__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	else if (op->operation == 5)
		__atomic_store_n(
			(uint64_t *)(uintptr_t)op->address, op->value, __ATOMIC_SEQ_CST);
	else
		while ((int32_t)(__atomic_load_n(word, __ATOMIC_SEQ_CST) - value) < 0)
			usleep(NAP_US);
	return DONE;
}

int cuStreamBatchMemOp_v2(
	void *stream, unsigned count, const struct memop *ops, unsigned flags)
{
	int code = flags ? INVALID : DONE;

	stop_if_wanted("memop");
	for (unsigned i = 0; i < count && !code; i++)
		code = memory_is_reached(stream_context(stream), ops[i].address)
			       ? stream_give(stream, memop_do, &ops[i], sizeof(ops[i]))
			       : INVALID;
	return code;
}
