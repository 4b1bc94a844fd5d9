#include "exec/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "exec/cuda/context.h"
#include "exec/cuda/kernels.h"
#include "exec/cuda/mps.h"
#include "exec/cuda/share.h"
#include "exec/cuda/state.h"

enum {
	HOST_MAPPED = 2 | 1,	 /* of cuMemHostAlloc: mapped, portable */
	HOST_REGISTERED = 1 | 2, /* of cuMemHostRegister: portable, mapped */
	NON_BLOCKING = 1,	 /* of streams */
	BLOCK_BYTES = 2 << 20,	 /* what the driver maps at a time */
	BLOCKS_TOGETHER = 2	 /* on a multiprocessor, of ours, in any case */
};

_Static_assert(
	sizeof(struct dev_hall) + CUDA_SIGNALS_MAX * MOVES_RANKS_MAX * sizeof(uint32_t) <=
		BLOCK_BYTES,
	"a hall fits in its block, with the signals behind it");

static enum err context_find(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	int multiprocessors = 0;
	cu_device device;
	enum err e = cuda_check(driver->context_device(&device), "ask for the device");

	if (!e)
		e = cuda_check(driver->device_uuid(hello->uuid, device),
			"ask for the device's uuid");
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
	enum err e = cuda_check(
		driver->memcpy_async(to, (cu_ptr)(uintptr_t)from, bytes, engine->side),
		"copy to the device");

	return e ? e
		 : cuda_check(driver->stream_synchronize(engine->side),
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
	enum err e = cuda_check(
		driver->memset_async(to, 0, bytes, engine->side), "clear device memory");

	return e ? e
		 : cuda_check(driver->stream_synchronize(engine->side),
			   "clear device memory");
}

static enum err hall_make(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	/* a whole block, which others open and close with the communicator */
	size_t bytes = BLOCK_BYTES;
	enum err e = engine_alloc(engine, bytes, "allocate device memory", &engine->hall);

	if (!e)
		e = engine_clear(engine, engine->hall, bytes);
	if (!e)
		e = cuda_check(driver->ipc_get(&hello->hall_handle, engine->hall),
			"share device memory");
	hello->hall = engine->hall;
	engine->halls[engine->rank] = engine->hall;
	return e;
}

/* The ledger's, so that others can stop our kernels; or, where the driver does not take
 * such memory, pinned memory of our own. */
static enum err words_make(struct cuda_engine *engine)
{
	const struct cuda_driver *driver = engine->driver;
	void *words = ledger_words(engine->ledger);
	enum err e = OK;

	engine->are_words_shared = !driver->mem_host_register(
		words, LEDGER_PAGE_BYTES, HOST_REGISTERED);
	if (!engine->are_words_shared)
		e = cuda_check(
			driver->mem_host_alloc(&words, LEDGER_PAGE_BYTES, HOST_MAPPED),
			"allocate pinned memory");
	if (e)
		return e;
	engine->words = words;
	memset(words, 0, LEDGER_PAGE_BYTES);
	return cuda_check(
		driver->mem_host_device_pointer(&engine->words_device, words, 0),
		"map pinned memory");
}

static enum err functions_load(struct cuda_engine *engine)
{
	static const char *const ops[] = {"sum", "prod", "max", "min"};
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(driver->module_load(&engine->module, cuda_kernels),
		"load the kernels; this GPU may be too old or the driver may be");

	if (!e)
		e = cuda_check(driver->module_function(
				       &engine->copy, engine->module, "moves_copy"),
			"find a kernel");
	if (!e)
		e = cuda_check(driver->module_function(
				       &engine->pairs, engine->module, "pairs_copy"),
			"find a kernel");
	for (int t = 0; t < DTYPE_COUNT; t++)
		for (int o = 0; o < 4 && !e; o++) {
			char name[64];

			snprintf(name, sizeof(name), "moves_%s_%s",
				dtype_name((enum dtype)t), ops[o]);
			e = cuda_check(driver->module_function(&engine->functions[t][o],
					       engine->module, name),
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
	cu_event *const events[] = {&engine->ready, &engine->done, &engine->copied,
		&engine->order.event, &engine->puts.event};
	cu_stream *const streams[] = {&engine->side, &engine->watcher, &engine->rescue};
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
	if (!e)
		e = functions_load(engine);
	if (!e)
		e = streams_make(engine);
	if (!e)
		e = hall_make(engine, hello);
	desk.abort = engine->words ? &engine->words->abort : NULL;
	if (!e)
		e = desk_open(&desk, &engine->desk, &hello->desk);
	if (!e && engine->rank == 0)
		e = table_create(engine->rank_count, &engine->table);
	hello->table = (uint64_t)(uintptr_t)engine->table;
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

static bool is_same_gpu(const struct cuda_hello *a, const struct cuda_hello *b)
{
	return !memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

/* Which way these ranks can go together. */
static enum err way_choose(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	const struct cuda_hello *mine = hellos[engine->rank];
	uint32_t n = engine->rank_count, beside = 0, here = 0;
	bool is_mps = true, is_one_context = true;

	engine->is_one_device = true;
	for (uint32_t r = 0; r < n; r++) {
		engine->is_one_device &= is_same_gpu(hellos[r], mine);
		beside += is_same_gpu(hellos[r], mine);
		here += is_same_gpu(hellos[r], mine) && hellos[r]->pid == mine->pid;
		is_one_context &= hellos[r]->context == mine->context;
		is_mps &= hellos[r]->is_mps;
	}
	if (engine->is_one_device && here == n && !is_one_context)
		return err_set(ERR_USAGE,
			"%u threads of process %u share a GPU with a context each: use "
			"the device's primary context (cudaSetDevice) in all of them",
			n, mine->pid);
	if (engine->is_one_device && here == n)
		engine->way = CUDA_WAY_THREADS;
	else if (here > 1)
		return err_set(ERR_USAGE,
			"%u ranks of process %u share a GPU and others live elsewhere: "
			"make them all threads of one process, or a process each",
			here, mine->pid);
	else if (is_mps || beside == 1)
		engine->way = CUDA_WAY_RESIDENT;
	else if (engine->is_one_device)
		engine->way = CUDA_WAY_LEADER;
	else
		return err_set(ERR_USAGE,
			"%u ranks share a GPU, others are on another one, and there is "
			"no MPS server that lets kernels of several processes run "
			"together: start nvidia-cuda-mps-control, or use a GPU per rank",
			beside);
	return OK;
}

/* How many blocks run together, of one rank and of all on a GPU: as the fewest anywhere,
 * because the ranks' grids must be equal. */
static void blocks_agree(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	engine->resident_blocks = RESIDENT_BLOCKS_MAX;
	engine->resident_blocks_all = UINT32_MAX;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		unsigned all = hellos[r]->multiprocessors * BLOCKS_TOGETHER;
		uint32_t others = 0;

		for (uint32_t s = 0; s < engine->rank_count; s++)
			others += s != r && is_same_gpu(hellos[r], hellos[s]);
		if (all < engine->resident_blocks_all)
			engine->resident_blocks_all = all;
		if (all / (others + 1) < engine->resident_blocks)
			engine->resident_blocks = all / (others + 1);
	}
	if (!engine->resident_blocks)
		engine->resident_blocks = 1;
}

enum err engine_hall(struct cuda_engine *engine, uint32_t rank, cu_ptr *hall)
{
	const struct cuda_hello *hello = &engine->hellos[rank];
	bool is_here = hello->pid == engine->hellos[engine->rank].pid;
	cu_context there = (cu_context)(uintptr_t)hello->context;
	cu_result result = CU_OK;

	if (!engine->halls[rank] && is_here) {
		if (there != engine->context)
			result = engine->driver->peer_access(there, 0);
		if (!result || result == CU_PEER_ACCESS_ALREADY ||
			is_same_gpu(hello, &engine->hellos[engine->rank])) {
			result = CU_OK;
			engine->halls[rank] = hello->hall;
		}
	} else if (!engine->halls[rank]) {
		result = engine->driver->ipc_open(
			&engine->halls[rank], hello->hall_handle, CU_IPC_LAZY_PEER);
		engine->is_mapped[rank] = !result;
	}
	*hall = engine->halls[rank];
	if (!result)
		return OK;
	return err_set(ERR_CUDA,
		"rank %u cannot reach the device memory of rank %u (the driver says %d): "
		"are both GPUs visible to both, with peer access between them?",
		engine->rank, rank, result);
}

static enum err halls_connect(struct cuda_engine *engine)
{
	enum err e = OK;
	cu_ptr hall;

	if (engine->way == CUDA_WAY_LEADER && engine->rank)
		return engine_hall(engine, 0, &hall);
	for (uint32_t r = 0; r < engine->rank_count && !e; r++)
		e = engine_hall(engine, r, &hall);
	return e;
}

static enum err ledgers_connect(struct cuda_engine *engine)
{
	struct ledger_address addresses[MOVES_RANKS_MAX];

	for (uint32_t r = 0; r < engine->rank_count; r++)
		addresses[r] = engine->hellos[r].ledger;
	return ledger_connect(engine->ledger, addresses);
}

enum err cuda_engine_connect(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	enum err e = way_choose(engine, hellos);

	if (e)
		return e;
	blocks_agree(engine, hellos);
	engine->hellos = calloc(engine->rank_count, sizeof(*engine->hellos));
	if (!engine->hellos)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	engine->can_pass_fds = engine->driver->physical_import != NULL;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		engine->hellos[r] = *hellos[r];
		if (hellos[r]->pid != hellos[engine->rank]->pid && engine->can_pass_fds)
			engine->can_pass_fds = cuda_share_can_pass(
				hellos[r]->pid, (int)hellos[r]->desk.fd);
	}
	if (engine->way == CUDA_WAY_THREADS && engine->rank) {
		engine->table = (struct table *)(uintptr_t)hellos[0]->table;
		table_hold(engine->table);
	}
	e = ledgers_connect(engine);
	if (!e)
		e = halls_connect(engine);
	else
		return e;
	/* no peer access is no failure: there is another way */
	if (e && engine->way == CUDA_WAY_RESIDENT && !engine->is_one_device) {
		engine->is_apart = true;
		e = OK;
	}
	return e;
}

bool cuda_engine_passes_fds(const struct cuda_engine *engine)
{
	return engine->can_pass_fds;
}

void cuda_engine_pass_fds(struct cuda_engine *engine, bool is_allowed)
{
	engine->can_pass_fds = is_allowed;
}

bool cuda_engine_is_apart(const struct cuda_engine *engine)
{
	return engine->is_apart;
}

enum err cuda_engine_start(struct cuda_engine *engine, struct health *health)
{
	uint32_t n = engine->rank_count;
	struct desk_address *desks = calloc(n, sizeof(*desks));
	enum err e;

	if (!desks)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	for (uint32_t r = 0; r < n; r++)
		desks[r] = engine->hellos[r].desk;
	/* somebody may be asking already how the engine is */
	pthread_mutex_lock(&engine->fate.lock);
	engine->health = health;
	pthread_mutex_unlock(&engine->fate.lock);
	e = desk_start(engine->desk, desks);
	free(desks);
	return e;
}

const char *cuda_engine_way(const struct cuda_engine *engine)
{
	if (engine->way == CUDA_WAY_THREADS)
		return "threads of one process share a GPU: one launch for all";
	if (engine->way == CUDA_WAY_LEADER)
		return "processes share a GPU without MPS: rank 0 launches for all; an "
		       "MPS server (nvidia-cuda-mps-control -d) would save about 145 us "
		       "a rank whenever ranks run kernels of their own in between";
	if (engine->staged.is_host)
		return "a GPU each, without peer access: a kernel each, through slots in "
		       "host memory";
	return engine->is_one_device ? "processes share a GPU under MPS: a kernel each"
				     : "a GPU each, with peer access: a kernel each";
}

enum err cuda_context(cu_context *context)
{
	const struct cuda_driver *driver = cuda_kernels_bytes ? cuda_driver() : NULL;

	*context = NULL;
	return driver ? context_of_thread(driver, context) : OK;
}

enum err cuda_memory_context(const void *ptr, cu_context *context)
{
	return context_of_memory(cuda_driver(), ptr, context);
}

bool cuda_memory_is(const void *ptr)
{
	static const int wanted[] = {CU_POINTER_MEMORY_TYPE};
	const struct cuda_driver *driver = ptr ? cuda_driver() : NULL;
	unsigned type = 0;
	void *values[] = {&type};

	return driver &&
	       !driver->pointer_attributes(1, wanted, values, (cu_ptr)(uintptr_t)ptr) &&
	       type == CU_MEMORY_DEVICE;
}

/* Whole blocks: a window begins at a multiple of 4096, and others map a whole one. */
enum err cuda_memory_alloc(size_t bytes, void **ptr)
{
	cu_context context;
	cu_ptr address = 0;
	enum err e = cuda_context(&context);

	*ptr = NULL;
	if (e || !context)
		return e;
	if (bytes > SIZE_MAX - BLOCK_BYTES)
		return err_set(ERR_ARGUMENT, "%zu bytes are more than a GPU has", bytes);
	bytes = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	e = cuda_check(
		cuda_driver()->mem_alloc(&address, bytes), "allocate device memory");
	*ptr = (void *)(uintptr_t)address;
	return e;
}

enum err cuda_memory_free(void *ptr)
{
	return cuda_check(
		cuda_driver()->mem_free((cu_ptr)(uintptr_t)ptr), "free device memory");
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

/* What an address was found to be before; or a place for that, with another address. */
static struct seen_pointer *seen_find(struct cuda_engine *engine, const void *ptr)
{
	struct seen_pointer *seen = engine->seen;

	while (seen < engine->seen + SEEN_MAX && seen->ptr != ptr)
		seen++;
	return seen < engine->seen + SEEN_MAX
		       ? seen
		       : &engine->seen[engine->seen_next++ % SEEN_MAX];
}

static enum err seen_look(
	struct cuda_engine *engine, const void *ptr, struct seen_pointer *seen)
{
	enum err e = cuda_where(engine->driver, ptr, &seen->where);

	seen->ptr = e ? NULL : ptr;
	return e;
}

/* To ask the driver takes many threads at once a microsecond and more each. They do not
 * map each other's memory, so that it does not matter when an address is another
 * allocation of the GPU's by now; that it has become the host's is not thought of. */
static bool is_trusted(const struct cuda_engine *engine, const struct seen_pointer *seen)
{
	return engine->way == CUDA_WAY_THREADS && seen->where.is_device &&
	       seen->where.is_shareable;
}

enum err engine_where(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where)
{
	struct seen_pointer *seen = seen_find(engine, ptr);
	enum err e = OK;

	if (seen->ptr != ptr ||
		(seen->moment != engine->moment && !is_trusted(engine, seen) &&
			!cuda_where_is_same(engine->driver, ptr, &seen->where)))
		e = seen_look(engine, ptr, seen);
	seen->moment = engine->moment;
	*where = seen->where;
	return e;
}

enum err engine_where_now(
	struct cuda_engine *engine, const void *ptr, struct cuda_where *where)
{
	struct seen_pointer *seen = seen_find(engine, ptr);
	enum err e = seen_look(engine, ptr, seen);

	*where = seen->where;
	return e;
}

enum err order_begin(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	if (!order->is_recorded || engine->is_capturing ||
		order->stream == engine->stream_number)
		return OK;
	return cuda_check(engine->driver->stream_wait_event(stream, order->event, 0),
		"wait for the call before");
}

enum err resident_order(struct cuda_engine *engine, cu_stream stream)
{
	struct cu_memop op = memop_wait(
		engine->hall + offsetof(struct dev_hall, call), engine->call);
	enum err e = OK;

	if (engine->last_numbered && !engine->is_capturing &&
		engine->last_numbered != engine->stream_number + 1)
		e = memops_submit(engine, stream, &op, 1);
	return e ? e : order_begin(engine, &engine->order, stream);
}

enum err order_end(
	struct cuda_engine *engine, struct stream_order *order, cu_stream stream)
{
	enum err e;

	if (engine->is_capturing)
		return OK;
	e = cuda_check(
		engine->driver->event_record(order->event, stream), "record an event");
	order->is_recorded = !e;
	order->stream = engine->stream_number;
	return e;
}

enum err cuda_engine_takes(const struct cuda_engine *engine, cu_stream stream)
{
	int64_t channels = param_int(PARAM_CUDA_CONNECTIONS);

	if (engine->way != CUDA_WAY_THREADS || engine->rank_count <= channels ||
		!is_capturing(engine, stream))
		return OK;
	return err_set(ERR_USAGE,
		"graphs of %u threads that share a GPU need as many of its channels, and "
		"there are %lld: set CUDA_DEVICE_MAX_CONNECTIONS=32 before CUDA starts",
		engine->rank_count, (long long)channels);
}

/* Whatever the call has enqueued can be looked at. */
static void is_enqueued(struct cuda_engine *engine)
{
	atomic_store_explicit(&engine->is_enqueuing, false, memory_order_release);
}

enum err cuda_engine_begin(struct cuda_engine *engine, const struct cuda_call *call)
{
	int mode = 0;
	bool is_quiet;
	cu_context had;
	enum err e = engine_is_well(engine);

	if (e)
		return e;
	atomic_store(&engine->is_enqueuing, true);
	engine->moment++;
	engine->is_capturing = is_capturing(engine, call->stream);
	engine->was_captured |= engine->is_capturing;
	had = context_enter(engine);
	/* a collective like most: what others' captures forbid is said where it is done
	 */
	is_quiet = !engine->is_capturing && !call->pairs && !call->kind;
	if (!engine->is_capturing && !(is_quiet && engine->way == CUDA_WAY_THREADS))
		engine->stream_number = cuda_stream_number(engine->driver, call->stream);
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

	if (!call->pairs)
		return OK;
	had = context_enter(engine);
	e = pairs_move(engine, call);
	context_leave(engine->driver, engine->context, had);
	return e ? engine_blame(engine, e) : OK;
}

enum err cuda_engine_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	cu_context had;
	enum err e;

	if (engine->way != CUDA_WAY_THREADS && !engine->bounce.used) {
		is_enqueued(engine);
		return OK;
	}
	had = context_enter(engine);
	e = call->pairs ? pairs_finish(engine) : coll_finish(engine, call);

	if (!e)
		e = bounce_end(engine, call->stream);
	context_leave(engine->driver, engine->context, had);
	is_enqueued(engine);
	return e ? engine_blame(engine, e) : OK;
}

enum err cuda_engine_join(struct cuda_engine *engine, cu_stream first, cu_stream other)
{
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
	return e;
}
