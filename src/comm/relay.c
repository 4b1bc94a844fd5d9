#include "comm/relay.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "comm/inside.h"
#include "comm/replay.h"
#include "comm/state.h"
#include "comm/straight.h"
#include "exec/cuda/berth.h"
#include "exec/cuda/engine.h"
#include "exec/cuda/ferry.h"
#include "tune/device.h"

enum {
	LINE = 128,	  /* buffers in a berth begin at multiples of it */
	SPIN_US = 200,	  /* as long as a stream may be about to tell */
	NAP_LEAST_US = 5, /* then it has other work before; longer and longer */
	NAP_MOST_US = 200
};

struct relay {
	struct cuda_berths *berths; /* owned */
	struct cuda_ferry *ferry;   /* owned; NULL: all goes by copies */
	struct stream *stream;	    /* owned: whose thread runs the calls */
	/* owned: for who enqueues, while that thread has the engine's; NULL: not needed
	 * yet */
	struct planner *planner;
	struct replays *replays; /* owned: NULL until a call is captured */
	struct straight straight;
	bool is_settled; /* no stream comes to any of these any more */
};

/* Without it all goes by copies. */
static void ferry_open(struct relay *relay)
{
	enum err e = cuda_ferry_open(&relay->ferry);

	if (e)
		log_info(LOG_INIT, "device buffers between hosts: all by copies: %s",
			err_last());
	else
		log_info(LOG_INIT,
			"device buffers of up to %d KiB between hosts: by a kernel, "
			"larger ones by copies",
			FERRY_BYTES_MAX / 1024);
}

/* In the context that is current. */
static enum err relay_make(bool may_wait, struct relay **relay)
{
	struct relay *made = calloc(1, sizeof(*made));
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");

	if (!e)
		e = cuda_berths_open(&made->berths);
	if (!e)
		e = stream_create(&made->stream);
	if (e && made)
		cuda_berths_close(made->berths, NULL);
	if (e)
		free(made);
	else if (may_wait)
		ferry_open(made);
	*relay = e ? NULL : made;
	return e;
}

enum err relay_open(struct comm *comm, const void *ptr, bool may_wait)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context had = NULL, wanted = NULL;
	struct relay *relay;
	enum err e = ptr ? cuda_memory_context(ptr, &wanted) : cuda_context(&wanted);

	if (e)
		return e;
	driver->context_get(&had);
	driver->context_set(wanted);
	e = relay_make(may_wait, &relay);
	driver->context_set(had);
	if (e)
		return e;
	if (!comm->hosts)
		log_info(LOG_INIT, "messages between GPUs without peer access: through "
				   "pinned host memory");
	atomic_store(&comm->relay, relay);
	return OK;
}

void relay_close(struct comm *comm)
{
	struct relay *relay = comm->relay;

	if (!relay)
		return;
	replays_end(relay->replays);
	stream_destroy(relay->stream);
	if (relay->is_settled)
		replays_destroy(relay->replays);
	else if (relay->replays)
		cuda_berths_let_go(relay->berths);
	cuda_berths_close(relay->berths, relay->ferry);
	planner_destroy(relay->planner);
	free(relay);
	comm->relay = NULL;
}

void relay_settle(struct comm *comm)
{
	struct relay *relay = comm->relay;

	if (relay && relay->replays && !atomic_load(&comm->abort) &&
		!comm_has_failed(comm))
		relay->is_settled = !cuda_berths_settle(relay->berths);
}

void relay_drain(struct comm *comm)
{
	struct relay *relay = comm->relay;

	if (relay && relay->replays && !comm_has_failed(comm))
		cuda_berths_settle(relay->berths);
}

void relay_end(struct comm *comm)
{
	if (comm->relay)
		replays_end(comm->relay->replays);
}

void relay_let_go(struct comm *comm)
{
	struct relay *relay = comm->relay;

	if (!relay)
		return;
	replays_end(relay->replays);
	cuda_berths_let_go(relay->berths);
}

/* ---- the thread that runs calls ---- */

enum err relay_await(const struct work *work)
{
	uint64_t start = clock_ns();
	unsigned nap = NAP_LEAST_US;

	if (!work->berth)
		return OK;
	/* plugins may ask the driver of memory that they are told of */
	if (work->job.kind == JOB_P2P && work->job.p2p.gpu)
		cuda_berths_enter(work->comm->relay->berths);
	while (!cuda_berth_is_handed_over(work->berth)) {
		if (atomic_load(&work->comm->abort))
			return err_set(ERR_REMOTE, "the communicator was aborted");
		if (comm_has_failed(work->comm)) /* perhaps what enqueues it */
			return err_set(ERR_REMOTE, "the communicator has failed");
		if (clock_ns() - start < SPIN_US * 1000ull) {
			cpu_relax();
			continue;
		}
		usleep(nap);
		nap = nap * 2 < NAP_MOST_US ? nap * 2 : NAP_MOST_US;
	}
	return OK;
}

void relay_hand_back(const struct work *work)
{
	if (work->trial.is_over)
		straight_learn(&work->comm->relay->straight, &work->trial);
	if (work->berth)
		cuda_berth_hand_back(work->berth);
}

/* ---- enqueuing ---- */

/* A buffer of a call: of how many bytes, and where in the berth it is, if it is device
 * memory. */
struct passenger {
	size_t bytes, at;
	bool is_aboard;
};

/* How buffers are cut: every chunk alike, into so many parts. */
struct cut {
	size_t chunk_bytes, part_bytes;
	uint32_t parts;
};

/* A call, and its copy whose buffers are in the berth. */
struct trip {
	const struct comm_call *call;
	struct comm_call relayed;
	struct passenger in, out, scalar;
	struct cut cut;
	struct cuda_berth *berth;
	struct p2p_trial trial; /* of its buffer; data is NULL: none */
	bool is_straight;	/* its buffer is the network's, and not in the berth */
	bool is_alone;		/* the only one of its group */
	bool is_kept;		/* it is captured into a graph */
	bool is_behind; /* another of its communicator is before it in the group */
};

static bool is_device(const void *ptr, size_t bytes)
{
	return bytes && cuda_memory_is(ptr);
}

static size_t room_for(struct passenger *passenger, size_t at)
{
	passenger->at = at;
	return passenger->is_aboard ? at + (passenger->bytes + LINE - 1) / LINE * LINE
				    : at;
}

/* Do the two blocks share memory, or could they? Where a result may be made in place, one
 * buffer does for both. */
static bool is_in_place(const struct trip *trip)
{
	const struct comm_call *call = trip->call;

	return call->kind == CALL_COLL && trip->in.bytes == trip->out.bytes &&
	       (call->coll == COLL_ALL_REDUCE || call->coll == COLL_REDUCE ||
		       call->coll == COLL_BROADCAST);
}

/* Where both are in the berth; one that is part of the other stays so. */
static size_t buffers_place(struct trip *trip, size_t at)
{
	const char *in = trip->call->in, *out = trip->call->out;
	bool are_both = trip->in.is_aboard && trip->out.is_aboard;
	bool is_in_out = in >= out && in + trip->in.bytes <= out + trip->out.bytes;
	bool is_out_in = out >= in && out + trip->out.bytes <= in + trip->in.bytes;

	if (are_both && is_in_place(trip)) {
		at = room_for(&trip->out, at);
		trip->in.at = trip->out.at;
	} else if (are_both && is_in_out) {
		at = room_for(&trip->out, at);
		trip->in.at = trip->out.at + (size_t)(in - out);
	} else if (are_both && is_out_in) {
		at = room_for(&trip->in, at);
		trip->out.at = trip->in.at + (size_t)(out - in);
	} else {
		at = room_for(&trip->in, at);
		at = room_for(&trip->out, at);
	}
	return at;
}

static enum err trip_measure(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	struct call_blocks blocks = comm_call_blocks(
		call->comm, call->kind, call->coll, call->root);
	size_t bytes = call->count * dtype_size(call->type);
	enum err e;

	if (call->kind == CALL_PUT)
		blocks.in = 1;
	trip->in.bytes = bytes * blocks.in;
	trip->out.bytes = bytes * blocks.out;
	if (call->op.scalar_pointer && call->kind == CALL_COLL &&
		coll_reduces(call->coll))
		trip->scalar.bytes = dtype_size(call->type);
	trip->in.is_aboard = is_device(call->in, trip->in.bytes);
	trip->out.is_aboard = is_device(call->out, trip->out.bytes);
	trip->scalar.is_aboard = is_device(call->op.scalar_pointer, trip->scalar.bytes);
	straight_decide(call->comm, &call->comm->relay->straight);
	trip->is_straight = straight_takes(
		&call->comm->relay->straight, call, &trip->trial);
	e = trip->in.is_aboard ? cuda_memory_check(call->in, trip->in.bytes, true) : OK;
	if (!e && trip->out.is_aboard)
		e = cuda_memory_check(call->out, trip->out.bytes, false);
	if (trip->is_straight)
		trip->in.is_aboard = trip->out.is_aboard = false;
	return e;
}

/* What is refused is refused before anything of its group has begun. */
static enum err trip_check(struct trip *trip)
{
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	int status = 0;
	enum err e = OK;

	trip->is_kept = !cuda_driver()->stream_is_capturing(stream, &status) && status;
	if (trip->is_kept)
		e = replays_can();
	return e ? e : trip_measure(trip);
}

/* May parts come while others go? Where IN and OUT share memory, a rank's OUT must
 * depend on what it has read of its IN. */
static bool can_be_cut(const struct trip *trip)
{
	const struct comm_call *call = trip->call;
	const char *in = call->in, *out = call->out;
	bool are_apart = in + trip->in.bytes <= out || out + trip->out.bytes <= in;

	if (call->kind != CALL_COLL || !(trip->in.is_aboard || trip->out.is_aboard) ||
		(call->comm->limits && limits_model(call->comm->limits)))
		return false;
	return are_apart || (call->coll != COLL_ALL_TO_ALL && call->coll != COLL_GATHER &&
				    call->coll != COLL_SCATTER);
}

/* Chunks are the plan's, and parts are whole tiles of it: what the engine does first
 * comes first. What has no plan is refused by the thread that runs it. */
static void trip_cut(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	struct relay *relay = call->comm->relay;
	const struct host_spec spec = call_spec(call);
	size_t bytes = trip->in.bytes > trip->out.bytes ? trip->in.bytes
							: trip->out.bytes;
	const struct shape *shape;
	const struct plan *plan;
	struct device_copy copy;
	enum err e = OK;
	size_t part;

	trip->cut = (struct cut){.chunk_bytes = bytes, .part_bytes = bytes, .parts = 1};
	if (!can_be_cut(trip))
		return;
	if (!relay->planner)
		e = planner_twin(
			host_engine_planner(call->comm->engine), &relay->planner);
	if (!e)
		e = plan_get(relay->planner, &spec.key, &plan);
	if (e || plan->eager)
		return;
	shape = &plan->shapes[MODE_STAGED];
	copy = (struct device_copy){.bytes = bytes,
		.chunk_bytes = shape->chunk_bytes,
		.tile_bytes = shape->tile_bytes,
		.chunks = (uint32_t)((bytes + shape->chunk_bytes - 1) /
				     shape->chunk_bytes)};
	part = device_part(&copy);
	if (part < copy.chunk_bytes)
		trip->cut = (struct cut){.chunk_bytes = copy.chunk_bytes,
			.part_bytes = part,
			.parts = (uint32_t)((copy.chunk_bytes + part - 1) / part)};
}

static enum err trip_book(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	struct relay *relay = call->comm->relay;
	char *memory;
	size_t bytes;
	enum err e;

	trip->relayed = *call;
	if (trip->is_kept) /* it runs when the call's profile has gone */
		trip->relayed.profile = NULL;
	bytes = room_for(&trip->scalar, buffers_place(trip, 0));
	trip_cut(trip);
	e = cuda_berth_take(relay->berths,
		(struct berth_wish){
			bytes, trip->cut.parts, trip->is_kept, trip->is_behind},
		&call->comm->abort, &trip->berth);
	if (!e && trip->is_kept && !relay->replays)
		e = replays_create(relay->stream, &relay->replays);
	if (e)
		return e;
	memory = cuda_berth_memory(trip->berth);
	if (trip->in.is_aboard)
		trip->relayed.in = memory + trip->in.at;
	if (trip->out.is_aboard)
		trip->relayed.out = memory + trip->out.at;
	if (trip->scalar.is_aboard)
		trip->relayed.op.scalar_pointer = memory + trip->scalar.at;
	return OK;
}

/* What of a buffer is in one part of the chunk that begins at `chunk`. */
struct stretch {
	size_t from, bytes;
};

static struct stretch part_stretch(
	const struct cut *cut, size_t chunk, uint32_t part, size_t buffer_bytes)
{
	size_t from = chunk + (part - 1) * cut->part_bytes;
	size_t end = from + cut->part_bytes;

	if (end > chunk + cut->chunk_bytes)
		end = chunk + cut->chunk_bytes;
	if (end > buffer_bytes)
		end = buffer_bytes;
	return (struct stretch){from, end > from ? end - from : 0};
}

/* A part of what is aboard, counted from 1: into the berth, or out of it. */
static enum err part_load(const struct trip *trip, uint32_t part)
{
	const struct cut *cut = &trip->cut;
	const char *in = trip->call->in;
	enum err e = OK;

	for (size_t chunk = 0; chunk < trip->in.bytes && !e; chunk += cut->chunk_bytes) {
		struct stretch part_of = part_stretch(cut, chunk, part, trip->in.bytes);

		if (part_of.bytes)
			e = cuda_berth_load(trip->berth, trip->in.at + part_of.from,
				in + part_of.from, part_of.bytes,
				(cu_stream)trip->call->gpu_stream);
	}
	return e;
}

static enum err part_unload(const struct trip *trip, uint32_t part)
{
	const struct cut *cut = &trip->cut;
	char *out = trip->call->out;
	enum err e = OK;

	for (size_t chunk = 0; chunk < trip->out.bytes && !e; chunk += cut->chunk_bytes) {
		struct stretch part_of = part_stretch(cut, chunk, part, trip->out.bytes);

		if (part_of.bytes)
			e = cuda_berth_unload(trip->berth, trip->out.at + part_of.from,
				out + part_of.from, part_of.bytes,
				(cu_stream)trip->call->gpu_stream);
	}
	return e;
}

/* The part that the stream waits for first. */
static uint32_t trip_awaits_first(const struct trip *trip)
{
	return trip->out.is_aboard ? 1 : trip->cut.parts;
}

/* The last part is here. A call by itself waits in the same breath: one call of the
 * driver less. */
static enum err trip_hand_over(const struct trip *trip, cu_stream stream)
{
	return trip->is_alone
		       ? cuda_berth_swap(trip->berth, trip->cut.parts,
				 trip_awaits_first(trip), stream)
		       : cuda_berth_hand_over(trip->berth, trip->cut.parts, stream);
}

/* Everything of a group is handed over before a stream waits for any of it. */
static enum err trip_begin(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	cu_stream stream = (cu_stream)call->gpu_stream;
	uint32_t parts = trip->cut.parts;
	enum err e = OK;

	if (call->launched)
		e = cuda_check(
			cuda_driver()->event_record((cu_event)call->launched, stream),
			"record launchCompletionEvent");
	if (!e && trip->scalar.is_aboard)
		e = cuda_berth_load(trip->berth, trip->scalar.at, call->op.scalar_pointer,
			trip->scalar.bytes, stream);
	for (uint32_t part = 1; part <= parts && trip->in.is_aboard && !e; part++) {
		e = part_load(trip, part);
		if (!e && part < parts)
			e = cuda_berth_hand_over(trip->berth, part, stream);
	}
	return e ? e : trip_hand_over(trip, stream);
}

static enum err trip_end(struct trip *trip)
{
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	uint32_t parts = trip->cut.parts, first = trip_awaits_first(trip);
	enum err e = OK;

	for (uint32_t part = first; part <= parts && !e; part++) {
		if (part > first || !trip->is_alone)
			e = cuda_berth_await(trip->berth, part, stream);
		if (!e && trip->out.is_aboard)
			e = part_unload(trip, part);
	}
	return e ? e : cuda_berth_leave(trip->berth, stream);
}

/* The buffers of a call that is cut come and go while it runs. */
static void tide_fill(const struct trip *trip, struct work *work)
{
	struct berth_tide berth = cuda_berth_tide(trip->berth);

	if (trip->cut.parts == 1)
		return;
	work->tide = (struct host_tide){.part_bytes = trip->cut.part_bytes,
		.first = berth.first,
		.count = trip->cut.parts,
		.come = berth.ready,
		.done = berth.done};
	work->job.spec.tide = &work->tide;
}

/* A batch goes to the thread at once, or when its stream comes to it. */
static enum err batch_push(
	struct relay *relay, const struct trip *trip, struct work *works, uint32_t count)
{
	const struct replay_batch batch = {works, count, trip->is_kept};
	cu_context had;
	enum err e;

	if (relay->replays) {
		had = cuda_berths_enter(relay->berths);
		e = replays_add(
			relay->replays, &batch, (cu_stream)trip->call->gpu_stream);
		cuda_berths_go(relay->berths, had);
		return e;
	}
	for (uint32_t i = 0; i < count; i++)
		works[i].turn = comm_busy_add(works[i].comm);
	return stream_push(relay->stream, works, count);
}

/* What is captured is not run now, and is told to nobody when it is. */
static struct call_profile *trip_profile(const struct trip *trip)
{
	struct call_profile *profile = profile_keep(trip->call);

	if (trip->is_kept)
		profile_over(profile);
	return trip->is_kept ? NULL : profile;
}

/* A message that lies in the GPU's memory, or whose memory is tried after it. Graphs are
 * for what has been. */
static void straight_fill(const struct trip *trip, struct work *work)
{
	struct relay *relay = trip->call->comm->relay;
	bool is_tried = trip->trial.data && !trip->is_kept && !relay->replays;

	if (!trip->is_straight && !is_tried)
		return;
	work->job.p2p.gpu = &relay->straight.gpu;
	if (trip->is_straight)
		return;
	work->trial = trip->trial;
	work->job.p2p.trial = &work->trial;
}

/* The calls of one communicator, from call `first` on, as one batch for its thread. */
static enum err comm_push(const struct trip *trips, uint32_t first, uint32_t count)
{
	struct comm *comm = trips[first].call->comm;
	struct work *works = calloc(count - first, sizeof(*works));
	uint32_t used = 0;

	if (!works)
		return err_set(ERR_SYSTEM, "no memory for %u calls", count);
	for (uint32_t i = first; i < count; i++) {
		if (trips[i].call->comm != comm)
			continue;
		work_fill(&trips[i].relayed, &works[used]);
		works[used].berth = trips[i].berth;
		straight_fill(&trips[i], &works[used]);
		tide_fill(&trips[i], &works[used]);
		works[used++].profile = trip_profile(&trips[i]);
	}
	return batch_push(comm->relay, &trips[first], works, used);
}

static bool is_first_of_comm(const struct trip *trips, uint32_t at)
{
	for (uint32_t i = 0; i < at; i++)
		if (trips[i].call->comm == trips[at].call->comm)
			return false;
	return true;
}

typedef enum err trip_step(struct trip *trip);

/* One step of all trips, each in its communicator's context, whatever this thread's is.
 */
static enum err trips_step(struct trip *trips, uint32_t count, trip_step *step)
{
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		const struct relay *relay = trips[i].call->comm->relay;
		cu_context had = cuda_berths_enter(relay->berths);

		e = step(&trips[i]);
		cuda_berths_go(relay->berths, had);
	}
	return e;
}

/* A batch is handed over at once or by a graph, and not half of it. */
static enum err trips_compare(const struct trip *trips, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t j = i + 1; j < count; j++)
			if (trips[j].call->comm == trips[i].call->comm &&
				trips[j].is_kept != trips[i].is_kept)
				return err_set(ERR_USAGE,
					"of one group and communicator all calls must be "
					"captured into a CUDA graph, or none");
	return OK;
}

/* By one launch, if the ferry takes them all: calls of one communicator whose buffers are
 * small and come whole, from one stream. Those of a graph, and behind one, go by copies.
 */
static bool trips_load(const struct trip *trips, uint32_t count, struct ferry_args *args)
{
	const struct comm_call *first = trips->call;
	const struct relay *relay = first->comm->relay;

	if (!relay->ferry || relay->replays)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct trip *trip = &trips[i];
		const struct comm_call *call = trip->call;

		if (call->comm != first->comm || call->gpu_stream != first->gpu_stream ||
			call->launched || trip->is_kept || trip->is_straight ||
			trip->scalar.is_aboard || trip->cut.parts != 1 ||
			!cuda_ferry_load(args, trip->berth,
				(struct ferry_cargo){call->in, trip->in.at,
					trip->in.is_aboard ? trip->in.bytes : 0},
				(struct ferry_cargo){call->out, trip->out.at,
					trip->out.is_aboard ? trip->out.bytes : 0}))
			return false;
	}
	return true;
}

static enum err trips_ferry(const struct trip *trips, struct ferry_args *args)
{
	const struct relay *relay = trips->call->comm->relay;
	cu_context had = cuda_berths_enter(relay->berths);
	enum err e = cuda_ferry_run(
		relay->ferry, args, (cu_stream)trips->call->gpu_stream);

	cuda_berths_go(relay->berths, had);
	return e;
}

/* What the streams do. */
static enum err trips_enqueue(struct trip *trips, uint32_t count)
{
	struct ferry_args args = {0};
	enum err e;

	if (trips_load(trips, count, &args))
		return trips_ferry(trips, &args);
	e = trips_step(trips, count, trip_begin);
	return e ? e : trips_step(trips, count, trip_end);
}

/* The thread is told before the streams are: it wakes up meanwhile. */
static enum err trips_make(struct trip *trips, uint32_t count)
{
	enum err e = trips_step(trips, count, trip_check);

	if (!e)
		e = trips_compare(trips, count);
	if (!e)
		e = trips_step(trips, count, trip_book);
	for (uint32_t i = 0; i < count && !e; i++)
		if (is_first_of_comm(trips, i))
			e = comm_push(trips, i, count);
	return e ? e : trips_enqueue(trips, count);
}

/* Nobody waits for what a capture refuses. Any other end is a failure of all
 * communicators of the group: their peers may be waiting. */
static void trips_fail(const struct trip *trips, uint32_t count, enum err e)
{
	for (uint32_t i = 0; i < count; i++) {
		if (trips[i].berth)
			cuda_berth_hand_back(trips[i].berth);
		if (e != ERR_USAGE)
			comm_fail(trips[i].call->comm, e, trips[i].call->comm->rank);
	}
}

static enum err stream_settle(const struct trip *trip)
{
	const struct relay *relay = trip->call->comm->relay;
	cu_context had = cuda_berths_enter(relay->berths);
	enum err e = cuda_check(
		cuda_driver()->stream_synchronize((cu_stream)trip->call->gpu_stream),
		"wait for a stream");

	cuda_berths_go(relay->berths, had);
	return e;
}

/* A result in host memory is there when the call returns, as a copy to such memory is.
 */
static enum err hosts_wait(const struct trip *trips, uint32_t count)
{
	char reason[ERR_TEXT_BYTES];
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		struct comm *comm = trips[i].call->comm;

		if (!trips[i].out.bytes || trips[i].out.is_aboard ||
			trips[i].is_straight || trips[i].is_kept)
			continue;
		if (comm->relay->replays) /* the stream has to come to it first */
			e = stream_settle(&trips[i]);
		if (e)
			return e;
		comm_drain(comm);
		e = comm_async_get(comm);
		if (e && comm_reason(comm, reason, sizeof(reason)))
			err_adopt(reason);
	}
	return e;
}

enum err relay_submit(const struct comm_call *calls, uint32_t count)
{
	struct trip *trips = calloc(count, sizeof(*trips));
	bool *first = calloc(count, sizeof(*first));
	enum err e = trips && first
			     ? inside_enqueue(calls, count, first)
			     : err_set(ERR_SYSTEM, "no memory for %u calls", count);

	if (!e) {
		profile_run(calls, count, false);
		for (uint32_t i = 0; i < count; i++)
			trips[i] = (struct trip){
				.call = &calls[i], .is_alone = count == 1};
		for (uint32_t i = 0; i < count; i++)
			trips[i].is_behind = !is_first_of_comm(trips, i);
		e = trips_make(trips, count);
		if (e)
			trips_fail(trips, count, e);
		inside_enqueued(calls, count, first);
		if (!e)
			e = hosts_wait(trips, count);
	}
	free(trips);
	free(first);
	return e;
}
