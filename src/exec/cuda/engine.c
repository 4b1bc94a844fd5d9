#include "exec/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "exec/cuda/driver/mps.h"
#include "exec/cuda/kernels/kernels.h"
#include "exec/cuda/meet/table.h"
#include "exec/cuda/state.h"

enum {
	HOST_MAPPED = 2 | 1,	 /* of cuMemHostAlloc: mapped, portable */
	HOST_REGISTERED = 1 | 2, /* of cuMemHostRegister: portable, mapped */
	NON_BLOCKING = 1	 /* of streams */
};

_Static_assert(
	sizeof(struct dev_hall) + CUDA_SIGNALS_MAX * MOVES_RANKS_MAX * sizeof(uint32_t) <=
		CU_BLOCK_BYTES,
	"a hall fits in its block, with the signals behind it");

static enum err context_find(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	int multiprocessors = 0;
	cu_device device = 0;
	enum err e = cuda_check(driver->context_device(&device), "ask for the device");

	engine->reach.device = device;
	if (!e)
		e = cuda_check(driver->device_uuid(hello->uuid, device),
			"ask for the device's uuid");
	if (!e)
		cuda_device_busid(hello->busid);
	if (!e)
		e = cuda_check(driver->device_attribute(&multiprocessors,
				       CU_DEVICE_MULTIPROCESSORS, device),
			"ask for the number of multiprocessors");
	hello->multiprocessors = (uint32_t)multiprocessors;
	hello->is_mps = !e && mps_is_client(driver, device);
	hello->context = (uint64_t)(uintptr_t)engine->context;
	return e;
}

enum err engine_upload(
	struct cuda_engine *engine, cu_ptr to, const void *from, size_t bytes)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(driver->memcpy_async(to, (cu_ptr)(uintptr_t)from, bytes,
					engine->streams.side),
		"copy to the device");

	return e ? e
		 : cuda_check(driver->stream_synchronize(engine->streams.side),
			   "wait for a copy to the device");
}

enum err engine_alloc(
	struct cuda_engine *engine, size_t bytes, const char *what, cu_ptr *ptr)
{
	enum err e = cuda_check(engine->driver->mem_alloc(ptr, bytes), what);

	if (!e)
		atomic_fetch_add(&engine->held, bytes);
	return e;
}

uint64_t cuda_engine_held(const struct cuda_engine *engine)
{
	return atomic_load(&engine->held);
}

enum err engine_clear(struct cuda_engine *engine, cu_ptr to, size_t bytes)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(driver->memset_async(to, 0, bytes, engine->streams.side),
		"clear device memory");

	return e ? e
		 : cuda_check(driver->stream_synchronize(engine->streams.side),
			   "clear device memory");
}

static enum err hall_make(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	/* a whole block, which others open and close with the communicator */
	size_t bytes = CU_BLOCK_BYTES;
	cu_ptr made = 0;
	enum err e = engine_alloc(engine, bytes, "allocate device memory", &made);

	if (!e)
		e = lent_make(engine, made);
	if (e && made)
		driver->mem_free(made);
	engine->reach.hall = e ? 0 : made;
	if (!e)
		e = engine_clear(engine, engine->reach.hall, bytes);
	if (!e)
		e = cuda_check(driver->ipc_get(&hello->hall_handle, engine->reach.hall),
			"share device memory");
	hello->hall = engine->reach.hall;
	engine->reach.halls[engine->rank] = engine->reach.hall;
	return e;
}

/* The ledger's, so that others can stop our kernels; or, where the driver does not take
 * such memory, pinned memory of our own. */
static enum err words_make(struct cuda_engine *engine)
{
	const struct cuda_driver *driver = engine->driver;
	void *words = ledger_words(engine->ledger);
	enum err e = OK;

	engine->words.are_shared = !driver->mem_host_register(
		words, LEDGER_PAGE_BYTES, HOST_REGISTERED);
	if (!engine->words.are_shared)
		e = cuda_check(
			driver->mem_host_alloc(&words, LEDGER_PAGE_BYTES, HOST_MAPPED),
			"allocate pinned memory");
	if (e)
		return e;
	engine->words.here = words;
	memset(words, 0, LEDGER_PAGE_BYTES);
	return cuda_check(
		driver->mem_host_device_pointer(&engine->words.device, words, 0),
		"map pinned memory");
}

static enum err functions_load(struct cuda_engine *engine)
{
	static const char *const ops[] = {"sum", "prod", "max", "min"};
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(driver->module_load(&engine->code.module, cuda_kernels),
		"load the kernels; this GPU may be too old or the driver may be");

	if (!e)
		e = cuda_check(driver->module_function(&engine->code.copy,
				       engine->code.module, "moves_copy"),
			"find a kernel");
	if (!e)
		e = cuda_check(driver->module_function(&engine->code.pairs,
				       engine->code.module, "pairs_copy"),
			"find a kernel");
	for (int t = 0; t < DTYPE_COUNT; t++)
		for (int o = 0; o < 4 && !e; o++) {
			char name[64];

			snprintf(name, sizeof(name), "moves_%s_%s",
				dtype_name((enum dtype)t), ops[o]);
			e = cuda_check(
				driver->module_function(&engine->code.functions[t][o],
					engine->code.module, name),
				name);
		}
	return e;
}

/* Of the highest priority there is. */
static enum err stream_make(const struct cuda_driver *driver, cu_stream *stream)
{
	int least = 0, greatest = 0;

	if (!driver->stream_create_priority || !driver->priority_range ||
		driver->priority_range(&least, &greatest))
		return cuda_check(
			driver->stream_create(stream, NON_BLOCKING), "make a stream");
	return cuda_check(driver->stream_create_priority(stream, NON_BLOCKING, greatest),
		"make a stream");
}

static enum err streams_make(struct cuda_engine *engine)
{
	cu_event *const events[] = {&engine->past.order.event, &engine->past.puts.event};
	cu_stream *const streams[] = {
		&engine->streams.side, &engine->streams.watcher, &engine->streams.rescue};
	const struct cuda_driver *driver = engine->driver;
	enum err e = OK;

	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams) && !e; i++)
		e = stream_make(driver, streams[i]);
	for (size_t i = 0; i < sizeof(events) / sizeof(*events) && !e; i++)
		e = cuda_check(driver->event_create(events[i], CU_EVENT_NO_TIMING),
			"make an event");
	return e;
}

static enum err parts_make(struct cuda_engine *engine, struct cuda_hello *hello)
{
	struct desk_args desk = {.driver = engine->driver,
		.rank = engine->rank,
		.rank_count = engine->rank_count,
		.look = engine_look,
		.arg = engine};
	enum err e = context_find(engine, hello);

	if (!e)
		e = ledger_open(engine->rank, engine->rank_count, &engine->ledger,
			&hello->ledger);
	if (!e)
		e = words_make(engine);
	/* of the kind of memory that the driver has just taken */
	if (!e && engine->words.are_shared)
		e = trays_open(engine->rank, engine->rank_count, &engine->reach.trays,
			&hello->trays);
	if (!e)
		e = functions_load(engine);
	if (!e)
		e = streams_make(engine);
	if (!e)
		e = hall_make(engine, hello);
	desk.abort = engine->words.here ? &engine->words.here->abort : NULL;
	if (!e)
		e = desk_open(&desk, &engine->reach.desk, &hello->desk);
	if (!e && engine->rank == 0)
		e = table_create(engine->rank_count, &engine->reach.table);
	hello->table = (uint64_t)(uintptr_t)engine->reach.table;
	return e;
}

/* An engine that has nothing yet, for ranks that are not too many. */
static enum err engine_make(uint32_t rank, uint32_t rank_count, cu_context context,
	struct cuda_engine **engine)
{
	struct cuda_engine *made;

	if (rank_count > MOVES_RANKS_MAX)
		return err_set(ERR_USAGE,
			"%u ranks: at most %d can work together on device memory",
			rank_count, MOVES_RANKS_MAX);
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	made->driver = cuda_driver();
	made->context = context;
	made->rank = rank;
	made->rank_count = rank_count;
	pthread_mutex_init(&made->fate.lock, NULL);
	pthread_mutex_init(&made->fate.freeing, NULL);
	*engine = made;
	return OK;
}

static enum err engine_fill(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	int mode;
	enum err e;

	hello->pid = (uint32_t)getpid();
	cuda_capture_relax(driver, &mode);
	e = parts_make(engine, hello);
	cuda_capture_restore(driver, mode);
	return e;
}

enum err cuda_engine_prepare(uint32_t rank, uint32_t rank_count, struct cuda_hello *hello,
	struct cuda_engine **engine)
{
	cu_context context;
	struct cuda_engine *made = NULL;
	enum err e = cuda_context(&context);

	*engine = NULL;
	memset(hello, 0, sizeof(*hello));
	if (!e && !context)
		return OK;
	if (!e)
		e = engine_make(rank, rank_count, context, &made);
	if (!e)
		e = engine_fill(made, hello);
	hello->has_gpu = !e;
	hello->has_failed = e != OK;
	if (e)
		cuda_engine_destroy(made);
	else
		*engine = made;
	return e;
}

enum err cuda_engine_start(struct cuda_engine *engine, struct health *health)
{
	uint32_t n = engine->rank_count;
	struct desk_address *desks = calloc(n, sizeof(*desks));
	enum err e;

	if (!desks)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	for (uint32_t r = 0; r < n; r++)
		desks[r] = engine->reach.hellos[r].desk;
	/* somebody may be asking already how the engine is */
	pthread_mutex_lock(&engine->fate.lock);
	engine->fate.health = health;
	pthread_mutex_unlock(&engine->fate.lock);
	e = desk_start(engine->reach.desk, desks);
	free(desks);
	return e;
}

/* ---- calls ---- */

cu_context context_enter(const struct cuda_engine *engine)
{
	cu_context had = NULL;

	engine->driver->context_get(&had);
	if (had != engine->context)
		engine->driver->context_set(engine->context);
	return had;
}

void context_leave(const struct cuda_driver *driver, cu_context mine, cu_context had)
{
	if (had != mine)
		driver->context_set(had);
}

static bool is_capturing(const struct cuda_engine *engine, cu_stream stream)
{
	int status = 0;

	return !engine->driver->stream_is_capturing(stream, &status) && status;
}

cu_context cuda_engine_context(const struct cuda_engine *engine)
{
	return engine->context;
}

const char *cuda_engine_way(const struct cuda_engine *engine)
{
	return engine->way->says(engine);
}

enum err cuda_engine_takes(const struct cuda_engine *engine, cu_stream stream)
{
	if (!engine->way->takes_capture || !is_capturing(engine, stream))
		return OK;
	return engine->way->takes_capture(engine);
}

/* Whatever the call has enqueued can be looked at. */
static void is_enqueued(struct cuda_engine *engine)
{
	atomic_store_explicit(&engine->now.is_enqueuing, false, memory_order_release);
}

enum err cuda_engine_begin(struct cuda_engine *engine, const struct cuda_call *call)
{
	int mode = 0;
	bool is_quiet;
	cu_context had;
	enum err e = engine_is_well(engine);

	if (e)
		return e;
	atomic_store(&engine->now.is_enqueuing, true);
	engine->now.moment++;
	engine->now.is_capturing = is_capturing(engine, call->stream);
	if (engine->now.is_capturing)
		engine->past.was_captured = true;
	had = context_enter(engine);
	/* a collective like most: what others' captures forbid is said where it is done
	 */
	is_quiet = !engine->now.is_capturing && !call->pairs && !call->plan.is_staged;
	if (!engine->now.is_capturing && !(is_quiet && engine->way->is_one_process))
		engine->now.stream_number = cuda_stream_number(
			engine->driver, call->stream);
	if (!is_quiet)
		cuda_capture_relax(engine->driver, &mode);
	if (call->launched)
		e = cuda_check(engine->driver->event_record(call->launched, call->stream),
			"record launchCompletionEvent");
	if (!e)
		e = call->pairs ? pairs_begin(engine, call) : coll_begin(engine, call);
	if (e)
		bounce_drop(engine);
	if (!is_quiet)
		cuda_capture_restore(engine->driver, mode);
	context_leave(engine->driver, engine->context, had);
	if (e)
		is_enqueued(engine);
	return e ? engine_blame(engine, e) : OK;
}

enum err cuda_engine_move(struct cuda_engine *engine, const struct cuda_call *call)
{
	cu_context had;
	enum err e;

	if (!call->pairs || !engine->way->move)
		return OK;
	had = context_enter(engine);
	e = engine->way->move(engine, call);
	context_leave(engine->driver, engine->context, had);
	return e ? engine_blame(engine, e) : OK;
}

enum err cuda_engine_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	cu_context had;
	enum err e = OK;

	if (!engine->way->finish && !engine->bounce.used) {
		is_enqueued(engine);
		return OK;
	}
	had = context_enter(engine);
	if (engine->way->finish)
		e = engine->way->finish(engine, call);
	if (!e)
		e = bounce_end(engine, call->stream);
	context_leave(engine->driver, engine->context, had);
	is_enqueued(engine);
	return e ? engine_blame(engine, e) : OK;
}

enum err cuda_engine_join(struct cuda_engine *engine, cu_stream first, cu_stream other)
{
	cu_context had = context_enter(engine); /* an event is of its streams' context */
	cu_event event = NULL;
	enum err e = cuda_check(engine->driver->event_create(&event, CU_EVENT_NO_TIMING),
		"make an event");

	if (!e)
		e = cuda_check(
			engine->driver->event_record(event, other), "record an event");
	if (!e)
		e = cuda_check(engine->driver->stream_wait_event(first, event, 0),
			"wait for another stream");
	if (event)
		engine->driver->event_destroy(event);
	context_leave(engine->driver, engine->context, had);
	return e;
}
