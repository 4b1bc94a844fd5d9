#include "comm/trip.h"

#include "comm/state.h"
#include "tune/device.h"

enum {
	LINE = 128,	  /* buffers in a berth begin at multiples of it */
	PIECE_UNIT = 4096 /* .. and pieces of messages at multiples of this */
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
static size_t buffers_place(struct trip *trip)
{
	const char *in = trip->call->in, *out = trip->call->out;
	bool are_both = trip->in.is_aboard && trip->out.is_aboard;
	bool is_in_out = in >= out && in + trip->in.bytes <= out + trip->out.bytes;
	bool is_out_in = out >= in && out + trip->out.bytes <= in + trip->in.bytes;
	size_t at = 0;

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

enum err trip_measure(struct trip *trip, struct straight *way)
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
	straight_decide(call->comm, way);
	trip->is_straight = straight_takes(way, call, &trip->trial);
	e = trip->in.is_aboard ? cuda_memory_check(call->in, trip->in.bytes, true) : OK;
	if (!e && trip->out.is_aboard)
		e = cuda_memory_check(call->out, trip->out.bytes, false);
	if (trip->is_straight)
		trip->in.is_aboard = trip->out.is_aboard = false;
	return e;
}

size_t trip_place(struct trip *trip)
{
	return room_for(&trip->scalar, buffers_place(trip));
}

void trip_board(struct trip *trip, struct cuda_berth *berth)
{
	char *memory = cuda_berth_memory(berth);

	trip->berth = berth;
	if (trip->in.is_aboard)
		trip->relayed.in = memory + trip->in.at;
	if (trip->out.is_aboard)
		trip->relayed.out = memory + trip->out.at;
	if (trip->scalar.is_aboard)
		trip->relayed.op.scalar_pointer = memory + trip->scalar.at;
}

/* May parts come while others go? Where IN and OUT share memory, a rank's OUT must
 * depend on what it has read of its IN. */
static bool can_be_cut(const struct trip *trip)
{
	const struct comm_call *call = trip->call;
	const char *in = call->in, *out = call->out;
	bool are_apart = in + trip->in.bytes <= out || out + trip->out.bytes <= in;

	if (call->kind != CALL_COLL || trip->is_hauled ||
		!(trip->in.is_aboard || trip->out.is_aboard) ||
		(call->comm->limits && limits_model(call->comm->limits)))
		return false;
	return are_apart || (call->coll != COLL_ALL_TO_ALL && call->coll != COLL_GATHER &&
				    call->coll != COLL_SCATTER);
}

/* Does it travel in pieces, so that the other end may have it in parts? */
static bool is_far_message(const struct trip *trip)
{
	const struct comm_call *call = trip->call;

	return (call->kind == CALL_SEND || call->kind == CALL_RECV) &&
	       !trip->is_straight && !comm_is_near(call->comm, call->root);
}

static struct trip_parts parts_of(const struct device_copy *copy)
{
	size_t part = copy->bytes ? device_part(copy) : 0;

	if (!part || part >= copy->chunk_bytes)
		return (struct trip_parts){.chunk_bytes = copy->bytes,
			.part_bytes = copy->bytes,
			.parts = 1};
	return (struct trip_parts){.chunk_bytes = copy->chunk_bytes,
		.part_bytes = part,
		.parts = (uint32_t)((copy->chunk_bytes + part - 1) / part)};
}

static void message_cut(struct trip *trip, size_t bytes)
{
	const struct device_copy copy = {.bytes = bytes,
		.chunk_bytes = bytes,
		.tile_bytes = PIECE_UNIT,
		.chunks = 1};
	struct trip_parts cut = parts_of(&copy);

	trip->piece_bytes = cut.parts > 1 ? cut.part_bytes : 0;
	if (trip->in.is_aboard || trip->out.is_aboard)
		trip->cut = cut;
}

void trip_cut(struct trip *trip, struct planner **planner)
{
	const struct comm_call *call = trip->call;
	const struct host_spec spec = call_spec(call);
	size_t bytes = trip->in.bytes > trip->out.bytes ? trip->in.bytes
							: trip->out.bytes;
	const struct shape *shape;
	const struct plan *plan;
	struct device_copy copy;
	enum err e = OK;

	trip->cut = (struct trip_parts){
		.chunk_bytes = bytes, .part_bytes = bytes, .parts = 1};
	if (is_far_message(trip))
		message_cut(trip, bytes);
	if (!can_be_cut(trip))
		return;
	if (!*planner)
		e = planner_twin(host_engine_planner(call->comm->engine), planner);
	if (!e)
		e = plan_get(*planner, &spec.key, &plan);
	if (e || plan->eager)
		return;
	shape = &plan->shapes[MODE_STAGED];
	copy = (struct device_copy){.bytes = bytes,
		.chunk_bytes = shape->chunk_bytes,
		.tile_bytes = shape->tile_bytes,
		.chunks = (uint32_t)((bytes + shape->chunk_bytes - 1) /
				     shape->chunk_bytes)};
	trip->cut = parts_of(&copy);
}

/* ---- what its stream does ---- */

/* What of a buffer is in one part of the chunk that begins at `chunk`. */
struct stretch {
	size_t from, bytes;
};

static struct stretch part_stretch(
	const struct trip_parts *cut, size_t chunk, uint32_t part, size_t buffer_bytes)
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
static enum err part_move(const struct trip *trip, uint32_t part, bool is_in)
{
	const struct trip_parts *cut = &trip->cut;
	const struct passenger *buffer = is_in ? &trip->in : &trip->out;
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	const char *in = trip->call->in;
	char *out = trip->call->out;
	enum err e = OK;

	for (size_t chunk = 0; chunk < buffer->bytes && !e; chunk += cut->chunk_bytes) {
		struct stretch of = part_stretch(cut, chunk, part, buffer->bytes);
		size_t at = buffer->at + of.from;

		if (!of.bytes)
			continue;
		e = is_in ? cuda_berth_load(
				    trip->berth, at, in + of.from, of.bytes, stream)
			  : cuda_berth_unload(
				    trip->berth, at, out + of.from, of.bytes, stream);
	}
	return e;
}

/* The part that the stream waits for first. */
static uint32_t trip_awaits_first(const struct trip *trip)
{
	return trip->out.is_aboard ? 1 : trip->cut.parts;
}

/* A call by itself waits in the same breath in which it hands over its last part: one
 * call of the driver less. */
static enum err trip_hand_over(const struct trip *trip, uint32_t part, cu_stream stream)
{
	return trip->is_alone && part == trip->cut.parts
		       ? cuda_berth_swap(
				 trip->berth, part, trip_awaits_first(trip), stream)
		       : cuda_berth_hand_over(trip->berth, part, stream);
}

enum err trip_begin(struct trip *trip)
{
	const struct comm_call *call = trip->call;
	cu_stream stream = (cu_stream)call->gpu_stream;
	enum err e = OK;

	if (call->launched)
		e = cuda_check(
			cuda_driver()->event_record((cu_event)call->launched, stream),
			"record launchCompletionEvent");
	if (!e && trip->scalar.is_aboard)
		e = cuda_berth_load(trip->berth, trip->scalar.at, call->op.scalar_pointer,
			trip->scalar.bytes, stream);
	if (e || trip->in.is_aboard)
		return e;
	trip->loaded = trip->cut.parts;
	return trip_hand_over(trip, trip->cut.parts, stream);
}

bool trip_is_loaded(const struct trip *trip)
{
	return trip->loaded == trip->cut.parts;
}

/* Is there another to come in the same breath? */
static bool is_in_one_go(const struct trip *trip, uint32_t done)
{
	return trip->call->kind == CALL_COLL && done < trip->cut.parts;
}

enum err trip_load(struct trip *trip)
{
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	enum err e = OK;

	if (trip_is_loaded(trip))
		return OK;
	do {
		e = part_move(trip, ++trip->loaded, true);
		if (!e)
			e = trip_hand_over(trip, trip->loaded, stream);
	} while (!e && is_in_one_go(trip, trip->loaded));
	return e;
}

bool trip_is_unloaded(const struct trip *trip)
{
	return !trip->out.is_aboard || trip->unloaded == trip->cut.parts;
}

/* What is awaited first has been awaited already by a call by itself. */
static enum err trip_await(const struct trip *trip, uint32_t part, cu_stream stream)
{
	return trip->is_alone && part == trip_awaits_first(trip)
		       ? OK
		       : cuda_berth_await(trip->berth, part, stream);
}

enum err trip_unload(struct trip *trip)
{
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	enum err e = OK;

	if (trip_is_unloaded(trip))
		return OK;
	do {
		e = trip_await(trip, ++trip->unloaded, stream);
		if (!e)
			e = part_move(trip, trip->unloaded, false);
	} while (!e && is_in_one_go(trip, trip->unloaded));
	return e;
}

enum err trip_end(struct trip *trip)
{
	cu_stream stream = (cu_stream)trip->call->gpu_stream;
	enum err e = trip->out.is_aboard ? OK : trip_await(trip, trip->cut.parts, stream);

	return e ? e : cuda_berth_leave(trip->berth, stream);
}

bool trip_load_ferry(const struct trip *trip, struct ferry_args *args)
{
	const struct comm_call *call = trip->call;
	const struct ferry_cargo in = {
		call->in, trip->in.at, trip->in.is_aboard ? trip->in.bytes : 0};
	const struct ferry_cargo out = {
		call->out, trip->out.at, trip->out.is_aboard ? trip->out.bytes : 0};

	return !call->launched && !trip->is_kept && !trip->is_straight &&
	       !trip->is_hauled && !trip->scalar.is_aboard && trip->cut.parts == 1 &&
	       cuda_ferry_load(args, trip->berth, in, out);
}
