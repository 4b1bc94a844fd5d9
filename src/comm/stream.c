/*
 * stream.c - host streams: a queue of batches and a thread that runs them in order.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/thread.h"
#include "comm/comm.h"
#include "comm/inside.h"
#include "comm/relay.h"
#include "comm/state.h"

struct batch {
	struct work *works; /* owned */
	uint32_t count;
	struct batch *next;
};

struct stream {
	pthread_t thread;
	pthread_mutex_t lock; /* guards all below */
	pthread_cond_t changed;
	struct batch *first, **last;
	uint32_t pending; /* queued or running */
	bool closing;
	enum err error; /* first failure since the last query */
};

/* What was refused before it began is the stream's to say, and no failure of the comm;
 * only a non-blocking comm and a call by a CUDA stream have nobody else to say it. */
static void batch_finish(struct batch *batch, enum err result, bool has_begun)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct comm *comm = batch->works[i].comm;

		/* until the last is finished nobody else comes inside, and the engine's
		 * culprit is this batch's */
		if (result && has_begun)
			comm_fail(comm, result, host_engine_culprit(comm->engine));
		else if (result && (!comm->config.blocking || batch->works[i].berth ||
					   batch->works[i].carry.list))
			comm_fail(comm, result, comm->rank);
		profile_over(batch->works[i].profile);
		relay_hand_back(&batch->works[i]);
		comm_busy_sub(comm);
	}
	free(batch->works);
	free(batch);
}

static struct batch *batch_next(struct stream *stream)
{
	struct batch *batch;

	pthread_mutex_lock(&stream->lock);
	while (!stream->first && !stream->closing)
		pthread_cond_wait(&stream->changed, &stream->lock);
	batch = stream->first;
	if (batch) {
		stream->first = batch->next;
		if (!stream->first)
			stream->last = &stream->first;
	}
	pthread_mutex_unlock(&stream->lock);
	return batch;
}

/* Two streams may have calls of one comm; they run in the order they were enqueued, and
 * when the buffers are there. */
static enum err batch_wait(const struct batch *batch)
{
	enum err e = OK;

	for (uint32_t i = 0; i < batch->count; i++) {
		const struct work *work = &batch->works[i];
		uint32_t j = 0;

		while (batch->works[j].comm != work->comm)
			j++;
		if (j == i) /* the first of this comm; the batch has the next turns */
			comm_turn_wait(work->comm, work->turn);
	}
	for (uint32_t i = 0; i < batch->count && !e; i++)
		e = relay_await(&batch->works[i]);
	return e;
}

static enum err batch_run(struct batch *batch)
{
	enum err e = batch_wait(batch);

	if (!e)
		e = works_enter(batch->works, batch->count);
	if (e) {
		batch_finish(batch, e, false);
		return e;
	}
	e = works_run(batch->works, batch->count);
	works_leave(batch->works, batch->count);
	batch_finish(batch, e, e != ERR_ARGUMENT);
	return e;
}

static void *stream_main(void *argument)
{
	struct stream *stream = argument;
	struct batch *batch;

	inside_be_stream();
	while ((batch = batch_next(stream))) {
		enum err e = batch_run(batch);

		pthread_mutex_lock(&stream->lock);
		if (e && !stream->error)
			stream->error = e;
		stream->pending--;
		pthread_cond_broadcast(&stream->changed);
		pthread_mutex_unlock(&stream->lock);
	}
	return NULL;
}

enum err stream_create(struct stream **stream)
{
	struct stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(ERR_SYSTEM, "no memory for a stream");
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	errno = thread_start_roomy(&s->thread, "weft-stream", stream_main, s);
	if (errno) {
		free(s);
		return err_set(ERR_SYSTEM, "cannot start a stream's thread: %m");
	}
	*stream = s;
	return OK;
}

enum err stream_push(struct stream *stream, struct work *works, uint32_t count)
{
	struct batch *batch = malloc(sizeof(*batch));

	if (!batch) {
		for (uint32_t i = 0; i < count; i++) {
			profile_over(works[i].profile);
			relay_give_up(&works[i]);
			comm_busy_sub(works[i].comm);
		}
		free(works);
		return err_set(ERR_SYSTEM, "no memory for a batch");
	}
	*batch = (struct batch){.works = works, .count = count};
	pthread_mutex_lock(&stream->lock);
	*stream->last = batch;
	stream->last = &batch->next;
	stream->pending++;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return OK;
}

static enum err error_take(struct stream *stream)
{
	enum err e = stream->error;

	stream->error = OK;
	return e;
}

enum err stream_synchronize(struct stream *stream)
{
	enum err e;

	pthread_mutex_lock(&stream->lock);
	while (stream->pending)
		pthread_cond_wait(&stream->changed, &stream->lock);
	e = error_take(stream);
	pthread_mutex_unlock(&stream->lock);
	return e;
}

enum err stream_query(struct stream *stream)
{
	enum err e;

	pthread_mutex_lock(&stream->lock);
	e = stream->pending && !stream->error ? ERR_PROGRESS : error_take(stream);
	pthread_mutex_unlock(&stream->lock);
	return e;
}

enum err stream_destroy(struct stream *stream)
{
	enum err e = stream_synchronize(stream);

	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	pthread_join(stream->thread, NULL);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->changed);
	free(stream);
	return e;
}
