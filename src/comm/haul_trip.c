#include "comm/haul_trip.h"

#include <stdlib.h>

#include "base/log.h"
#include "comm/comm_log.h"
#include "comm/gpu.h"
#include "comm/state.h"
#include "link/wires.h"
#include "tune/squad.h"

/* ---- meeting ---- */

/* What a rank tells: the least bytes it would have hauled, 0 for none. */
struct haul_record {
	struct haul_offer offer;
	uint32_t is_straight; /* it would have its slots in its GPU's memory */
	uint64_t least;
};

/* Making a communicator's. */
struct haul_meeting {
	struct comm *comm;
	const struct haul_record *records; /* of all ranks, once they are there */
	struct hauling *hauling;
	struct straight *straight;
};

/* Messages leave from there and come there, so a network plugin is told of it once. */
static void memory_made(void *owner, void *memory, size_t bytes)
{
	const struct comm *comm = owner;

	if (wires_keep(comm->hosts.wires, memory, bytes))
		log_info(LOG_REG, "%s", err_last());
}

static enum err records_gather(
	struct comm *comm, const struct haul_record *mine, struct haul_record *all)
{
	const struct host_spec spec = {.key = {.coll = COLL_ALL_GATHER,
					       .type = DTYPE_UINT8,
					       .count = sizeof(*mine)},
		.in = mine,
		.out = all};

	return host_run_one(comm->engine, &spec);
}

/* The most that any asks for; 0 when somebody wants none, or cannot. */
static size_t least_agree(const struct comm *comm, const struct haul_record *all)
{
	size_t least = 0;

	for (uint32_t r = 0; r < comm->rank_count; r++) {
		if (!all[r].least || !all[r].offer.works)
			return 0;
		least = all[r].least > least ? all[r].least : least;
	}
	return least;
}

/* Slots of a host's ranks are in memory that all of them map. */
static bool are_apart(const struct comm *comm)
{
	return comm_near_count(comm) == 1 && comm->peers->host_count == comm->rank_count;
}

static uint32_t straight_wish(const struct comm *comm, struct straight *straight)
{
	if (!straight || !are_apart(comm))
		return 0;
	straight_decide(comm, straight);
	return straight->can_send && straight->can_receive;
}

/* All have slots that the plugin takes, or none. */
static enum err slots_agree(const struct haul_meeting *meeting, bool *are_straight)
{
	struct comm *comm = meeting->comm;
	struct cuda_haul *haul = meeting->hauling->haul;
	size_t bytes = 0;
	void *slots = NULL;
	enum err e;

	*are_straight = true;
	for (uint32_t r = 0; r < comm->rank_count; r++)
		*are_straight &= meeting->records[r].is_straight != 0;
	if (!*are_straight)
		return OK;
	*are_straight = !cuda_haul_slots(haul, &slots, &bytes) &&
			wires_would_take(
				comm->hosts.wires, &meeting->straight->gpu, slots, bytes);
	e = gpu_vote(comm, are_straight);
	if (!*are_straight)
		cuda_haul_leave_slots(haul);
	return e;
}

static enum err records_use(const struct haul_meeting *meeting)
{
	struct comm *comm = meeting->comm;
	struct hauling *hauling = meeting->hauling;
	struct haul_offer *offers;
	bool are_straight, works;
	enum err e = slots_agree(meeting, &are_straight);

	if (e)
		return e;
	offers = calloc(comm->rank_count, sizeof(*offers));
	works = offers != NULL;
	for (uint32_t r = 0; works && r < comm->rank_count; r++)
		offers[r] = meeting->records[r].offer;
	if (works)
		works = !cuda_haul_meet(hauling->haul, offers,
			are_straight ? &meeting->straight->gpu : NULL);
	free(offers);
	/* do all see what is their host's? */
	e = gpu_vote(comm, &works);
	if (e || !works)
		hauling->least = 0;
	hauling->is_straight = are_straight;
	return e;
}

/* What a plugin would choose is not known to this rank's thread that enqueues. */
static bool is_wanted(const struct comm *comm)
{
	return device_haul_least() && !(comm->limits && limits_model(comm->limits));
}

/* Once all have said what they have. */
static enum err hauling_settle(
	struct haul_meeting *meeting, const struct haul_record *mine)
{
	struct comm *comm = meeting->comm;
	struct hauling *hauling = meeting->hauling;
	struct haul_record *all = calloc(comm->rank_count, sizeof(*all));
	enum err e;

	if (!all)
		return err_set(
			ERR_SYSTEM, "no memory to meet %u ranks", comm->rank_count);
	meeting->records = all;
	e = records_gather(comm, mine, all);
	hauling->least = e ? 0 : least_agree(comm, all);
	if (hauling->least)
		e = records_use(meeting);
	free(all);
	return e;
}

static void hauling_log(const struct comm *comm, const struct hauling *hauling)
{
	if (hauling->is_straight)
		log_info(LOG_INIT | LOG_NET,
			"collectives of %zu bytes and more between hosts: by kernels of "
			"all ranks, straight between GPU memory and NET/%s",
			hauling->least, wires_name(comm->hosts.wires));
	else
		log_info(LOG_INIT | LOG_NET,
			"collectives of %zu bytes and more between hosts: by kernels of "
			"all ranks, whose messages a thread carries",
			hauling->least);
}

enum err hauling_meet(struct comm *comm, const struct cuda_hello *const *hellos,
	struct hauling *hauling, struct straight *straight)
{
	const struct haul_args args = {.rank = comm->rank,
		.rank_count = comm->rank_count,
		.hosts = comm->hosts.numbers,
		.hellos = hellos,
		.owner = {memory_made, comm}};
	struct haul_record mine = {0};
	struct hauling made = {0};
	struct haul_meeting meeting = {
		.comm = comm, .hauling = &made, .straight = straight};
	enum err e;

	if (!cuda_haul_may(hellos, comm->rank_count))
		return OK;
	if (hauling && is_wanted(comm) && !cuda_haul_open(&args, &mine.offer, &made.haul))
		mine.least = device_haul_least();
	mine.is_straight = mine.least ? straight_wish(comm, straight) : 0;
	e = hauling_settle(&meeting, &mine);
	if (e || !made.least || !hauling) {
		cuda_haul_close(made.haul, true);
		return e;
	}
	cuda_haul_tell(made.haul);
	hauling_log(comm, &made);
	*hauling = made;
	return OK;
}

/* ---- which calls ---- */

/* Of the larger buffer, on the rank that has the largest. */
static size_t bytes_most(const struct comm_call *call)
{
	uint32_t n = call->comm->rank_count, most = 0;

	for (int at_root = 0; at_root < 2; at_root++)
		for (int space = SPACE_IN; space <= SPACE_OUT; space++) {
			uint32_t blocks = coll_blocks(
				call->coll, (enum space)space, at_root, n);

			most = blocks > most ? blocks : most;
		}
	return most * call->count * dtype_size(call->type);
}

enum err haul_trip_choose(
	struct trip *trip, const struct hauling *hauling, struct planner **planner)
{
	const struct comm_call *call = trip->call;
	struct device_ask ask = {.has_slots = true, .is_hauled = true};
	enum err e = OK;

	trip->is_hauled = hauling->haul && call->kind == CALL_COLL && call->count &&
			  bytes_most(call) >= hauling->least;
	if (!trip->is_hauled)
		return OK;
	ask.key = call_spec(call).key;
	if (!*planner)
		e = planner_twin(host_engine_planner(call->comm->engine), planner);
	if (!e)
		e = plan_get_device(*planner, &ask, &trip->haul.plan);
	return e ? e
		 : cuda_haul_fits(
			   hauling->haul, &ask.key, &trip->haul.plan, &trip->is_hauled);
}

static bool is_brought(const void *ptr, size_t bytes)
{
	return bytes && !cuda_memory_is_here(ptr);
}

static enum err buffer_check(const void *ptr, size_t bytes, bool is_sent)
{
	return bytes && cuda_memory_is(ptr) ? cuda_memory_check(ptr, bytes, is_sent) : OK;
}

enum err haul_trip_measure(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	struct call_blocks blocks = comm_call_blocks(
		call->comm, call->kind, call->coll, call->root);
	size_t bytes = call->count * dtype_size(call->type);
	enum err e;

	trip->in.bytes = bytes * blocks.in;
	trip->out.bytes = bytes * blocks.out;
	if (call->op.scalar_pointer && coll_reduces(call->coll))
		trip->scalar.bytes = dtype_size(call->type);
	trip->in.is_aboard = is_brought(call->in, trip->in.bytes);
	trip->out.is_aboard = is_brought(call->out, trip->out.bytes);
	trip->scalar.is_aboard = is_brought(call->op.scalar_pointer, trip->scalar.bytes);
	e = buffer_check(call->in, trip->in.bytes, true);
	return e ? e : buffer_check(call->out, trip->out.bytes, false);
}

/* ---- what its stream does ---- */

/* What the kernel is given for a buffer; NULL: the rank has none. */
static void *reached(
	const struct trip *trip, const struct passenger *passenger, const void *ptr)
{
	if (passenger->is_aboard)
		return (void *)(uintptr_t)(cuda_berth_passage(trip->berth).memory +
					   passenger->at);
	return passenger->bytes ? (void *)(uintptr_t)ptr : NULL;
}

/* As the host engine counts them for a large call; none without a channel. */
static uint32_t threads_of(const struct comm *comm, const struct haul_shape *shape)
{
	uint32_t most = comm->hosts.squad.threads;

	if (most > shape->channels)
		most = shape->channels;
	return squad_size(shape->chunk_bytes, most, comm->hosts.squad.share_bytes);
}

enum err haul_trip_plan(struct trip *trip, const struct hauling *hauling)
{
	const struct comm_call *call = trip->call;
	const struct host_spec spec = call_spec(call);
	enum err e;

	trip->haul = (struct haul_call){.stream = (cu_stream)call->gpu_stream,
		.is_capturing = trip->is_kept,
		.key = spec.key,
		.op = spec.op,
		.scalar = spec.scalar,
		.scalar_at = reached(trip, &trip->scalar, call->op.scalar_pointer),
		.in = reached(trip, &trip->in, call->in),
		.out = reached(trip, &trip->out, call->out),
		.plan = trip->haul.plan};
	e = cuda_haul_prepare(hauling->haul, &trip->haul, &trip->carry);
	if (e)
		return e;
	trip->carry.plan.squad = threads_of(call->comm, &trip->carry.shape);
	comm_log_device(call->comm, &spec.key, &trip->haul.plan);
	return OK;
}

static enum err bring(
	const struct trip *trip, const struct passenger *passenger, const void *from)
{
	return passenger->is_aboard ? cuda_berth_load(trip->berth, passenger->at, from,
					      passenger->bytes, trip->haul.stream)
				    : OK;
}

enum err haul_trip_begin(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	enum err e = OK;

	if (call->launched)
		e = cuda_check(cuda_driver()->event_record(
				       (cu_event)call->launched, trip->haul.stream),
			"record launchCompletionEvent");
	if (!e)
		e = bring(trip, &trip->scalar, call->op.scalar_pointer);
	return e ? e : bring(trip, &trip->in, call->in);
}

enum err haul_trip_run(struct trip *trip, const struct hauling *hauling)
{
	return cuda_haul_launch(hauling->haul, &trip->haul);
}

enum err haul_trip_end(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	enum err e = OK;

	if (trip->out.is_aboard)
		e = cuda_check(cuda_driver()->memcpy_async((cu_ptr)(uintptr_t)call->out,
				       (cu_ptr)(uintptr_t)trip->haul.out, trip->out.bytes,
				       trip->haul.stream),
			"copy from pinned memory");
	if (!e && trip->berth)
		e = cuda_berth_leave(trip->berth, trip->haul.stream);
	if (!e && trip->berth)
		cuda_berth_hand_back(trip->berth);
	if (!e)
		trip->berth = NULL; /* should a later one of the group fail */
	return e;
}
