#include "comm/relay.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/log.h"
#include "comm/haul_trip.h"
#include "comm/inside.h"
#include "comm/replay.h"
#include "comm/state.h"
#include "comm/trip.h"
#include "exec/cuda/berth.h"
#include "exec/cuda/engine.h"
#include "link/wires.h"

enum {
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
	struct hauling hauling;
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

/* Messages come and go there, so a network plugin is told of it once. */
static void berths_made(void *owner, void *memory, size_t bytes)
{
	const struct comm *comm = owner;

	if (wires_keep(comm->hosts.wires, memory, bytes))
		log_info(LOG_REG, "%s", err_last());
}

/* In the context that is current. */
static enum err relay_make(struct comm *comm, bool may_wait, struct relay **relay)
{
	struct relay *made = calloc(1, sizeof(*made));
	enum err e = made ? OK : err_set(ERR_SYSTEM, "no memory for device buffers");

	if (!e)
		e = cuda_berths_open(
			(struct berth_owner){berths_made, comm}, &made->berths);
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
	e = relay_make(comm, may_wait, &relay);
	driver->context_set(had);
	if (e)
		return e;
	if (!comm->hosts.numbers)
		log_info(LOG_INIT, "messages between GPUs without peer access: through "
				   "pinned host memory");
	atomic_store(&comm->gpu.relay, relay);
	return OK;
}

/* A rank without a relay takes part, so that no other has kernels that wait for it. */
enum err relay_haul(struct comm *comm, const struct cuda_hello *const *hellos)
{
	struct relay *relay = comm->gpu.relay;
	cu_context had = relay ? cuda_berths_enter(relay->berths) : NULL;
	enum err e = hauling_meet(comm, hellos, relay ? &relay->hauling : NULL,
		relay ? &relay->straight : NULL);

	if (relay)
		cuda_berths_go(relay->berths, had);
	return e;
}

void relay_rest(struct comm *comm)
{
	struct relay *relay = comm->gpu.relay;

	if (!relay)
		return;
	replays_end(relay->replays);
	stream_destroy(relay->stream);
	relay->stream = NULL;
}

void relay_close(struct comm *comm)
{
	struct relay *relay = comm->gpu.relay;

	if (!relay)
		return;
	if (relay->is_settled)
		replays_destroy(relay->replays);
	else if (relay->replays)
		cuda_berths_let_go(relay->berths);
	cuda_haul_close(relay->hauling.haul, relay->is_settled);
	cuda_berths_close(relay->berths, relay->ferry);
	planner_destroy(relay->planner);
	free(relay);
	comm->gpu.relay = NULL;
}

void relay_settle(struct comm *comm)
{
	struct relay *relay = comm->gpu.relay;

	if (relay && relay->replays && !atomic_load(&comm->life.abort) &&
		!comm_has_failed(comm))
		relay->is_settled = !cuda_berths_settle(relay->berths);
}

void relay_drain(struct comm *comm)
{
	struct relay *relay = comm->gpu.relay;

	if (relay && relay->replays && !comm_has_failed(comm))
		cuda_berths_settle(relay->berths);
}

void relay_end(struct comm *comm)
{
	if (comm->gpu.relay)
		replays_end(comm->gpu.relay->replays);
}

void relay_let_go(struct comm *comm)
{
	struct relay *relay = comm->gpu.relay;

	if (!relay)
		return;
	replays_end(relay->replays);
	cuda_haul_stop(relay->hauling.haul);
	cuda_berths_let_go(relay->berths);
}

/* ---- the thread that runs calls ---- */

enum err relay_await(const struct work *work)
{
	uint64_t start = clock_ns();
	unsigned nap = NAP_LEAST_US;

	if (!work->berth)
		return OK;
	while (!cuda_berth_is_handed_over(work->berth)) {
		if (atomic_load(&work->comm->life.abort))
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
	if (work->carry.list && comm_has_failed(work->comm))
		cuda_haul_stop(work->comm->gpu.relay->hauling.haul);
	if (work->trial.is_over)
		straight_learn(&work->comm->gpu.relay->straight, &work->trial);
	if (work->berth)
		cuda_berth_hand_back(work->berth);
}

void relay_give_up(const struct work *work)
{
	if (work->carry.list)
		cuda_haul_stop(work->comm->gpu.relay->hauling.haul);
	relay_hand_back(work);
}

/* ---- enqueuing ---- */

/* What is refused is refused before anything of its group has begun. */
static enum err trip_check(struct trip *trip)
{
	struct relay *relay = trip->call->comm->gpu.relay;
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	int status = 0;
	enum err e = OK;

	trip->is_kept = !cuda_driver()->stream_is_capturing(stream, &status) && status;
	if (trip->is_kept)
		e = replays_can();
	if (!e)
		e = haul_trip_choose(trip, &relay->hauling, &relay->planner);
	if (e)
		return e;
	return trip->is_hauled ? haul_trip_measure(trip)
			       : trip_measure(trip, &relay->straight);
}

static enum err trip_book(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	struct relay *relay = call->comm->gpu.relay;
	struct cuda_berth *berth = NULL;
	size_t bytes;
	enum err e;

	trip->relayed = *call;
	if (trip->is_kept) /* it runs when the call's profile has gone */
		trip->relayed.profile = NULL;
	bytes = trip_place(trip);
	trip_cut(trip, &relay->planner);
	e = trip->is_hauled && !bytes
		    ? OK
		    : cuda_berth_take(relay->berths,
			      (struct berth_wish){bytes, trip->cut.parts, trip->is_kept,
				      trip->is_behind},
			      &call->comm->life.abort, &berth);
	if (!e && berth)
		trip_board(trip, berth);
	if (!e && trip->is_hauled)
		e = haul_trip_plan(trip, &relay->hauling);
	if (!e && trip->is_kept && !relay->replays)
		e = replays_create(relay->stream, &relay->replays);
	return e;
}

/* The buffers of a call that is cut come and go while it runs. */
static void tide_fill(const struct trip *trip, struct work *work)
{
	struct berth_tide berth;

	if (trip->is_hauled) {
		work->carry = trip->carry;
		work_join(work);
		return;
	}
	berth = cuda_berth_tide(trip->berth);
	if (work->job.kind == JOB_P2P)
		work->job.p2p.piece_bytes = trip->piece_bytes;
	if (trip->cut.parts == 1)
		return;
	work->tide = (struct host_tide){.part_bytes = trip->cut.part_bytes,
		.first = berth.first,
		.count = trip->cut.parts,
		.come = berth.ready,
		.done = berth.done};
	work_join(work);
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
	struct relay *relay = trip->call->comm->gpu.relay;
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
		works[used].berth = trips[i].is_hauled ? NULL : trips[i].berth;
		straight_fill(&trips[i], &works[used]);
		tide_fill(&trips[i], &works[used]);
		works[used++].profile = trip_profile(&trips[i]);
	}
	return batch_push(comm->gpu.relay, &trips[first], works, used);
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
		const struct relay *relay = trips[i].call->comm->gpu.relay;
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
	const struct relay *relay = first->comm->gpu.relay;

	if (!relay->ferry || relay->replays)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (trips[i].call->comm != first->comm ||
			trips[i].call->gpu_stream != first->gpu_stream ||
			!trip_load_ferry(&trips[i], args))
			return false;
	return true;
}

static enum err trips_ferry(const struct trip *trips, struct ferry_args *args)
{
	const struct relay *relay = trips->call->comm->gpu.relay;
	cu_context had = cuda_berths_enter(relay->berths);
	enum err e = cuda_ferry_run(
		relay->ferry, args, (cu_stream)trips->call->gpu_stream);

	cuda_berths_go(relay->berths, had);
	return e;
}

/* Is there one for which that does not hold? */
static bool trips_lack(
	const struct trip *trips, uint32_t count, bool (*holds)(const struct trip *))
{
	for (uint32_t i = 0; i < count; i++)
		if (!holds(&trips[i]))
			return true;
	return false;
}

static enum err begin_any(struct trip *trip)
{
	if (!trip->is_hauled)
		return trip_begin(trip);
	trip->loaded = trip->unloaded = trip->cut.parts;
	return haul_trip_begin(trip);
}

static enum err haul_any(struct trip *trip)
{
	return trip->is_hauled
		       ? haul_trip_run(trip, &trip->call->comm->gpu.relay->hauling)
		       : OK;
}

static enum err end_any(struct trip *trip)
{
	return trip->is_hauled ? haul_trip_end(trip) : trip_end(trip);
}

/* What the streams do. Parts of messages go in turns, since messages run side by side. */
static enum err trips_enqueue(struct trip *trips, uint32_t count)
{
	struct ferry_args args = {0};
	enum err e;

	if (trips_load(trips, count, &args))
		return trips_ferry(trips, &args);
	e = trips_step(trips, count, begin_any);
	while (!e && trips_lack(trips, count, trip_is_loaded))
		e = trips_step(trips, count, trip_load);
	if (!e)
		e = trips_step(trips, count, haul_any);
	while (!e && trips_lack(trips, count, trip_is_unloaded))
		e = trips_step(trips, count, trip_unload);
	return e ? e : trips_step(trips, count, end_any);
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
	const struct relay *relay = trip->call->comm->gpu.relay;
	cu_context had = cuda_berths_enter(relay->berths);
	enum err e = cuda_check(
		cuda_driver()->stream_synchronize((cu_stream)trip->call->gpu_stream),
		"wait for a stream");

	cuda_berths_go(relay->berths, had);
	return e;
}

static bool is_result_on_host(const struct trip *trip)
{
	if (trip->is_hauled)
		return trip->out.is_aboard;
	return trip->out.bytes && !trip->out.is_aboard && !trip->is_straight;
}

/* A result in host memory is there when the call returns, as a copy to such memory is.
 */
static enum err hosts_wait(const struct trip *trips, uint32_t count)
{
	char reason[ERR_TEXT_BYTES];
	enum err e = OK;

	for (uint32_t i = 0; i < count && !e; i++) {
		struct comm *comm = trips[i].call->comm;

		if (!is_result_on_host(&trips[i]) || trips[i].is_kept)
			continue;
		/* the stream has to come to it first */
		if (comm->gpu.relay->replays || trips[i].is_hauled)
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
