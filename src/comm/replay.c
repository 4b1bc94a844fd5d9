#include "comm/replay.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comm/relay.h"
#include "comm/state.h"

/* What a stream comes to. */
struct replay {
	struct replays *replays;   /* borrowed */
	struct replay_batch batch; /* its works are owned */
	struct replay *next;
};

struct replays {
	/* guards the two below; held while a batch is handed over */
	pthread_mutex_t lock;
	struct stream *stream;
	bool is_over;
	struct replay *kept;  /* owned, a list; of who enqueues */
	cu_event handed_over; /* owned: when the last plain batch was */
	bool has_handed_over;
};

enum err replays_can(void)
{
	return cuda_driver()->launch_host
		       ? OK
		       : err_set(ERR_USAGE,
				 "calls between hosts cannot be part of a CUDA graph "
				 "with "
				 "this driver, which has no host nodes: update it, or "
				 "call outside the capture");
}

enum err replays_create(struct stream *stream, struct replays **replays)
{
	struct replays *made = calloc(1, sizeof(*made));
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for a CUDA graph");

	if (!e)
		e = cuda_check(cuda_driver()->event_create(
				       &made->handed_over, CU_EVENT_NO_TIMING),
			"make an event");
	if (e) {
		free(made);
		return e;
	}
	pthread_mutex_init(&made->lock, NULL);
	made->stream = stream;
	*replays = made;
	return OK;
}

/* When all is over the communicator may be gone, and kernels have been told. */
static void batch_drop(const struct replay_batch *batch, bool is_over)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		if (is_over)
			batch->works[i].carry.list = NULL;
		relay_give_up(&batch->works[i]);
		if (!batch->is_kept)
			profile_over(batch->works[i].profile);
	}
}

/* What the thread gets: of a batch that is kept, a copy whose members know where they are
 * now. NULL: no memory. */
static struct work *batch_works(const struct replay_batch *batch)
{
	size_t bytes = batch->count * sizeof(*batch->works);
	struct work *works = batch->is_kept ? malloc(bytes) : batch->works;

	if (batch->is_kept && works)
		memcpy(works, batch->works, bytes);
	for (uint32_t i = 0; works && i < batch->count; i++)
		work_join(&works[i]);
	return works;
}

/* By a thread of the driver's, which may not call the driver. */
static void batch_hand_over(void *argument)
{
	struct replay *replay = argument;
	struct replays *replays = replay->replays;
	const struct replay_batch *batch = &replay->batch;
	struct comm *comm = batch->works[0].comm; /* of all of them */
	struct work *works = NULL;
	enum err e = OK;

	pthread_mutex_lock(&replays->lock);
	if (!replays->is_over)
		works = batch_works(batch);
	if (!replays->is_over && !works)
		e = err_set(ERR_SYSTEM, "no memory for %u calls of a CUDA graph",
			batch->count);
	for (uint32_t i = 0; works && i < batch->count; i++)
		works[i].turn = comm_busy_add(works[i].comm);
	if (works) /* what cannot be pushed is handed back there */
		e = stream_push(replays->stream, works, batch->count);
	else
		batch_drop(batch, replays->is_over);
	if (e) /* the others wait for it; the lock keeps the communicator */
		comm_fail(comm, e, comm->rank);
	pthread_mutex_unlock(&replays->lock);
	if (batch->is_kept)
		return;
	if (!works) /* else they are the thread's, or freed */
		free(batch->works);
	free(replay);
}

/* Who was called first is handed over first, whatever streams they are on. */
static enum err order_after(struct replays *replays, cu_stream stream)
{
	return replays->has_handed_over
		       ? cuda_check(cuda_driver()->stream_wait_event(
					    stream, replays->handed_over, 0),
				 "wait for the call before")
		       : OK;
}

static enum err order_note(struct replays *replays, cu_stream stream)
{
	enum err e = cuda_check(cuda_driver()->event_record(replays->handed_over, stream),
		"record an event");

	replays->has_handed_over = !e;
	return e;
}

enum err replays_add(
	struct replays *replays, const struct replay_batch *batch, cu_stream stream)
{
	struct replay *replay = malloc(sizeof(*replay));
	enum err e = replay ? OK : err_set(ERR_SYSTEM, "no memory for a CUDA graph");

	if (!e && !batch->is_kept)
		e = order_after(replays, stream);
	if (!e) {
		*replay = (struct replay){.replays = replays, .batch = *batch};
		e = cuda_check(
			cuda_driver()->launch_host(stream, batch_hand_over, replay),
			"have a stream call the host");
	}
	if (e) {
		batch_drop(batch, false);
		free(batch->works);
		free(replay);
		return e;
	}
	if (batch->is_kept) {
		replay->next = replays->kept;
		replays->kept = replay;
		return OK;
	}
	/* cppcheck-suppress memleak ; the stream has it */
	return order_note(replays, stream);
}

void replays_end(struct replays *replays)
{
	if (!replays)
		return;
	pthread_mutex_lock(&replays->lock);
	replays->is_over = true;
	pthread_mutex_unlock(&replays->lock);
}

void replays_destroy(struct replays *replays)
{
	if (!replays)
		return;
	while (replays->kept) {
		struct replay *replay = replays->kept;

		replays->kept = replay->next;
		free(replay->batch.works);
		free(replay);
	}
	cuda_driver()->event_destroy(replays->handed_over);
	pthread_mutex_destroy(&replays->lock);
	free(replays);
}
