#include "exec/cuda/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "exec/cuda/desk.h"
#include "exec/cuda/kernels.h"
#include "exec/cuda/moves.h"
#include "exec/cuda/table.h"

enum {
	KEPT_MAX = 64,	       /* lists of moves kept on the device */
	FUSED_BLOCKS = 4224,   /* of all ranks */
	BLOCK_WORK = 32 << 10, /* bytes a block should have to do */
	HOST_MAPPED = 2 | 1,   /* of cuMemHostAlloc: mapped, portable */
	POOL_BYTES = 1 << 20,  /* for lists of moves: nothing is allocated later */
	FREE_WAIT = 0x3fffffff /* so far ahead that every wait is over */
};

/* One collective's moves, on the device. */
struct kept_moves {
	enum coll coll;
	uint32_t root;
	cu_ptr address;
};

/* What the device reads and writes in host memory. */
struct words {
	uint32_t abort, trouble;
};

struct cuda_engine {
	const struct cuda_driver *driver;
	cu_context context;
	uint32_t rank, rank_count;
	bool is_threads; /* all ranks are threads of this process */
	cu_module module;
	cu_function functions[DTYPE_COUNT][4], copy;
	cu_ptr mail; /* as this process sees it */
	bool owns_mail;
	struct table *table;  /* counted; threads only */
	cu_event ready, done; /* threads only */
	struct desk *desk;    /* owned; leader's way only */
	struct words *words;  /* owned, pinned */
	cu_ptr words_device;
	struct kept_moves kept[KEPT_MAX];
	uint32_t kept_count;
	cu_ptr pool; /* the lists of moves */
	size_t pool_used;
	cu_stream side;	      /* of our own: copies that wait for nobody's kernels */
	struct dev_mail sent; /* what is in the mail, if `sent_on` is the stream again */
	cu_stream sent_on;
	uint32_t call;
};

static enum err context_find(struct cuda_engine *engine, struct cuda_hello *hello)
{
	cu_device device;
	enum err e = cuda_check(
		engine->driver->context_device(&device), "ask for the device");

	if (!e)
		e = cuda_check(engine->driver->device_uuid(hello->uuid, device),
			"ask for the device's uuid");
	return e;
}

/* What is needed wherever the others turn out to live. */
static enum err mail_make(struct cuda_engine *engine, struct cuda_hello *hello)
{
	const struct cuda_driver *driver = engine->driver;
	size_t bytes = MOVES_RANKS_MAX * sizeof(struct dev_mail);
	int fd = -1;
	enum err e = cuda_check(
		driver->mem_alloc(&engine->mail, bytes), "allocate device memory");

	if (e)
		return e;
	engine->owns_mail = true;
	e = cuda_check(driver->memset_d8(engine->mail, 0, bytes), "clear device memory");
	if (!e)
		e = cuda_check(driver->ipc_get(&hello->mail, engine->mail),
			"share device memory");
	if (!e)
		e = desk_open(driver, engine->rank_count, &engine->desk, &fd);
	hello->desk_fd = (uint32_t)fd;
	if (!e)
		e = table_create(engine->rank_count, &engine->table);
	hello->table = (uint64_t)(uintptr_t)engine->table;
	return e;
}

static enum err words_make(struct cuda_engine *engine)
{
	void *words = NULL;
	enum err e = cuda_check(engine->driver->mem_host_alloc(
					&words, sizeof(*engine->words), HOST_MAPPED),
		"allocate pinned memory");

	if (e)
		return e;
	engine->words = words;
	*engine->words = (struct words){0};
	return cuda_check(
		engine->driver->mem_host_device_pointer(&engine->words_device, words, 0),
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

enum err cuda_engine_prepare(uint32_t rank, uint32_t rank_count, struct cuda_hello *hello,
	struct cuda_engine **engine)
{
	const struct cuda_driver *driver = cuda_kernels_bytes ? cuda_driver() : NULL;
	cu_context context = NULL;
	struct cuda_engine *made;
	enum err e;

	*engine = NULL;
	memset(hello, 0, sizeof(*hello));
	if (!driver || rank_count > MOVES_RANKS_MAX || driver->context_get(&context) ||
		!context)
		return OK;
	made = calloc(1, sizeof(*made));
	if (!made)
		return err_set(ERR_SYSTEM, "no memory for a CUDA engine");
	made->driver = driver;
	made->context = context;
	made->rank = rank;
	made->rank_count = rank_count;
	hello->pid = (uint32_t)getpid();
	e = context_find(made, hello);
	if (!e)
		e = words_make(made);
	if (!e)
		e = functions_load(made);
	if (!e)
		e = cuda_check(driver->mem_alloc(&made->pool, POOL_BYTES),
			"allocate device memory");
	if (!e)
		e = cuda_check(driver->stream_create(&made->side, 1), "make a stream");
	if (!e && rank == 0)
		e = mail_make(made, hello);
	if (e) {
		cuda_engine_destroy(made);
		return e;
	}
	hello->has_gpu = 1;
	*engine = made;
	return OK;
}

/* Which way these ranks can go together. */
static enum err way_choose(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	uint32_t here = 0;

	for (uint32_t r = 0; r < engine->rank_count; r++) {
		if (!hellos[r]->has_gpu)
			return err_set(ERR_USAGE,
				"rank %u has no CUDA context and rank %u has one", r,
				engine->rank);
		if (memcmp(hellos[r]->uuid, hellos[0]->uuid, sizeof(hellos[r]->uuid)))
			return err_set(ERR_USAGE,
				"rank %u is on another GPU than rank 0: this version "
				"connects the ranks of one GPU",
				r);
		here += hellos[r]->pid == hellos[engine->rank]->pid;
	}
	engine->is_threads = here == engine->rank_count;
	if (!engine->is_threads && here > 1)
		return err_set(ERR_USAGE,
			"some ranks share a GPU as threads and some as processes: make "
			"them all the one or the other");
	return OK;
}

static enum err table_join(struct cuda_engine *engine, const struct cuda_hello *first)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(driver->event_create(&engine->ready, 2), "make an event");

	if (!e)
		e = cuda_check(driver->event_create(&engine->done, 2), "make an event");
	if (engine->rank == 0)
		return e;
	engine->table = (struct table *)(uintptr_t)first->table;
	table_hold(engine->table);
	return e;
}

enum err cuda_engine_connect(
	struct cuda_engine *engine, const struct cuda_hello *const *hellos)
{
	enum err e = way_choose(engine, hellos);

	if (e)
		return e;
	if (engine->is_threads)
		return table_join(engine, hellos[0]);
	if (engine->rank > 0) {
		e = cuda_check(
			engine->driver->ipc_open(&engine->mail, hellos[0]->mail, 1),
			"map rank 0's device memory");
		if (!e)
			e = desk_join(engine->driver, (int)hellos[0]->pid,
				(int)hellos[0]->desk_fd, engine->rank, &engine->desk);
	}
	return e;
}

const char *cuda_engine_way(const struct cuda_engine *engine)
{
	return engine->is_threads ? "threads" : "processes";
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

enum err cuda_memory_alloc(size_t bytes, void **ptr)
{
	const struct cuda_driver *driver = cuda_kernels_bytes ? cuda_driver() : NULL;
	cu_context context = NULL;
	cu_ptr address = 0;
	enum err e;

	*ptr = NULL;
	if (!driver || driver->context_get(&context) || !context)
		return OK;
	e = cuda_check(driver->mem_alloc(&address, bytes), "allocate device memory");
	*ptr = (void *)(uintptr_t)address;
	return e;
}

enum err cuda_memory_free(void *ptr)
{
	return cuda_check(
		cuda_driver()->mem_free((cu_ptr)(uintptr_t)ptr), "free device memory");
}

static enum err moves_get(
	struct cuda_engine *engine, enum coll coll, uint32_t root, cu_ptr *address)
{
	const struct cuda_driver *driver = engine->driver;
	struct dev_moves *moves;
	struct kept_moves *kept;
	size_t bytes;
	enum err e;

	for (uint32_t i = 0; i < engine->kept_count; i++)
		if (engine->kept[i].coll == coll && engine->kept[i].root == root) {
			*address = engine->kept[i].address;
			return OK;
		}
	e = moves_flatten(coll, engine->rank_count, root, &moves, &bytes);
	if (e)
		return e;
	if (engine->kept_count == KEPT_MAX || engine->pool_used + bytes > POOL_BYTES)
		e = err_set(ERR_USAGE,
			"collectives with more different roots on one GPU than are kept; "
			"use fewer roots on a communicator");
	kept = &engine->kept[engine->kept_count];
	*kept = (struct kept_moves){
		.coll = coll, .root = root, .address = engine->pool + engine->pool_used};
	if (!e)
		e = cuda_check(driver->memcpy_async(kept->address,
				       (cu_ptr)(uintptr_t)moves, bytes, engine->side),
			"copy to the device");
	if (!e)
		e = cuda_check(driver->stream_synchronize(engine->side),
			"wait for a copy to the device");
	free(moves);
	if (e)
		return e;
	*address = kept->address;
	engine->kept_count++;
	engine->pool_used += (bytes + 255) / 256 * 256;
	return OK;
}

/* Everything ranks must agree on. */
static uint64_t call_sign(const struct cuda_call *call)
{
	uint64_t sign = 0xcbf29ce484222325u;
	const uint64_t parts[] = {call->key.coll, call->key.type, call->key.root,
		call->key.count, coll_reduces(call->key.coll) ? call->op : 0};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sign = (sign ^ parts[i]) * 0x100000001b3u;
	return sign;
}

static enum err args_fill(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct dev_mail *mine)
{
	size_t bytes = call->key.count * dtype_size(call->key.type);
	bool is_vector = coll_is_vector(call->key.coll);
	uint32_t chunks = call->key.coll == COLL_ALL_REDUCE ? engine->rank_count : 1;
	struct fold_rule rule;
	cu_ptr moves = 0;
	enum err e = moves_get(engine, call->key.coll, call->key.root, &moves);

	fold_rule(&rule, &call->key, call->op, call->scalar, engine->rank_count);
	*args = (struct moves_args){.moves = (const void *)(uintptr_t)moves,
		.mail = (void *)(uintptr_t)engine->mail,
		.abort = (void *)(uintptr_t)engine->words_device,
		.trouble = (void *)(uintptr_t)(engine->words_device + 4),
		.chunk_bytes = bytes,
		.total_bytes = bytes,
		.in_bytes = is_vector ? bytes : UINT64_MAX,
		.out_bytes = is_vector ? bytes : UINT64_MAX,
		.rank = engine->rank,
		.rank_count = engine->rank_count,
		.divisor = rule.divisor,
		.is_scaled = rule.scaled,
		.is_posted = engine->is_threads};
	if (is_vector && chunks > 1)
		args->chunk_bytes = ((bytes + chunks - 1) / chunks + 127) / 128 * 128;
	*mine = (struct dev_mail){.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.scalar = rule.scalar.bits,
		.sign = call_sign(call)};
	return e;
}

/* Cut fine, so that no multiprocessor is left alone with the end of it. */
static unsigned blocks_for(const struct cuda_engine *engine, const struct cuda_call *call)
{
	size_t bytes = call->key.count * dtype_size(call->key.type);
	size_t ranks = engine->rank_count ? engine->rank_count : 1;
	size_t share = call->key.coll == COLL_ALL_REDUCE ? bytes / ranks : bytes;
	size_t blocks = share / BLOCK_WORK + 1;
	size_t most = FUSED_BLOCKS / ranks;

	return (unsigned)(blocks < most ? blocks : most);
}

static enum err launch(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, unsigned ranks)
{
	unsigned op = call->op == REDOP_AVG || call->op == REDOP_PREMUL
			      ? (unsigned)REDOP_SUM
			      : (unsigned)call->op;
	cu_function function = coll_reduces(call->key.coll)
				       ? engine->functions[call->key.type][op]
				       : engine->copy;
	void *params[] = {args};

	return cuda_check(
		engine->driver->launch(function, blocks_for(engine, call), ranks, 1,
			MOVES_THREADS, 1, 1, 0, call->stream, params, NULL),
		"launch a kernel");
}

static struct cu_memop write_64(cu_ptr address, uint64_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_64, .address = address, .value = value};
}

static struct cu_memop write_32(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){
		.operation = CU_MEMOP_WRITE_32, .address = address, .value = value};
}

static struct cu_memop wait_32(cu_ptr address, uint32_t value)
{
	return (struct cu_memop){.operation = CU_MEMOP_WAIT_32,
		.address = address,
		.value = value,
		.flags = CU_WAIT_GEQ};
}

static cu_ptr mail_of(const struct cuda_engine *engine, uint32_t rank, size_t offset)
{
	return engine->mail + rank * sizeof(struct dev_mail) + offset;
}

/* The facts of a rank's mail, as far as they are not there already: on the same stream
 * what was written last still stands. */
static uint32_t mail_write(struct cuda_engine *engine, const struct dev_mail *mine,
	cu_stream stream, struct cu_memop *ops)
{
	const struct dev_mail *sent = engine->sent_on == stream ? &engine->sent : NULL;
	uint32_t count = 0, r = engine->rank;

	if (!sent || sent->in != mine->in)
		ops[count++] = write_64(
			mail_of(engine, r, offsetof(struct dev_mail, in)), mine->in);
	if (!sent || sent->out != mine->out)
		ops[count++] = write_64(
			mail_of(engine, r, offsetof(struct dev_mail, out)), mine->out);
	if (!sent || sent->scalar != mine->scalar)
		ops[count++] = write_64(
			mail_of(engine, r, offsetof(struct dev_mail, scalar)),
			mine->scalar);
	if (!sent || sent->sign != mine->sign)
		ops[count++] = write_64(
			mail_of(engine, r, offsetof(struct dev_mail, sign)), mine->sign);
	engine->sent = *mine;
	engine->sent_on = stream;
	return count;
}

/* The mail holds one call. On another stream than the last one's, wait until that call
 * is done before it is overwritten. */
static uint32_t mail_wait(
	const struct cuda_engine *engine, cu_stream stream, struct cu_memop *ops)
{
	if (engine->call < 2 || engine->sent_on == stream)
		return 0;
	ops[0] = wait_32(
		mail_of(engine, 0, offsetof(struct dev_mail, done)), engine->call - 1);
	return 1;
}

static enum err batch(struct cuda_engine *engine, cu_stream stream, struct cu_memop *ops,
	uint32_t count)
{
	return cuda_check(engine->driver->stream_batch_memop(stream, count, ops, 0),
		"order a stream by memory words");
}

static enum err follow(
	struct cuda_engine *engine, const struct cuda_call *call, struct dev_mail *mine)
{
	struct cu_memop ops[8];
	uint32_t count;
	enum err e = OK;

	if (call->in)
		e = desk_address(engine->desk, call->in, &mine->in);
	if (!e && call->out)
		e = desk_address(engine->desk, call->out, &mine->out);
	if (e)
		return e;
	count = mail_wait(engine, call->stream, ops);
	count += mail_write(engine, mine, call->stream, ops + count);
	ops[count++] = write_32(
		mail_of(engine, engine->rank, offsetof(struct dev_mail, ready)),
		engine->call);
	ops[count++] = wait_32(
		mail_of(engine, 0, offsetof(struct dev_mail, done)), engine->call);
	return batch(engine, call->stream, ops, count);
}

static enum err lead(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	struct cu_memop ops[5 + MOVES_RANKS_MAX];
	uint32_t count = mail_wait(engine, call->stream, ops);
	enum err e;

	count += mail_write(engine, mine, call->stream, ops + count);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = wait_32(
			mail_of(engine, r, offsetof(struct dev_mail, ready)),
			engine->call);
	e = batch(engine, call->stream, ops, count);
	if (!e)
		e = launch(engine, call, args, engine->rank_count);
	ops[0] = write_32(
		mail_of(engine, 0, offsetof(struct dev_mail, done)), engine->call);
	return e ? e : batch(engine, call->stream, ops, 1);
}

/* The last thread of a round does the work of all, on its own stream. */
static enum err table_serve(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct table_answer *answer)
{
	const struct table_entry *entries = table_entries(engine->table);
	const struct cuda_driver *driver = engine->driver;
	enum err e = OK;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		args->posts[r] = entries[r].post;
		if (entries[r].sign != entries[engine->rank].sign) {
			answer->culprit = r;
			return ERR_USAGE;
		}
		if (entries[r].stream != call->stream)
			e = cuda_check(driver->stream_wait_event(
					       call->stream, entries[r].ready, 0),
				"wait for another rank's stream");
	}
	if (!e)
		e = launch(engine, call, args, engine->rank_count);
	if (!e)
		e = cuda_check(driver->event_record(engine->done, call->stream),
			"record an event");
	return e;
}

static enum err table_begin(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	struct table_entry entry = {.post = {mine->in, mine->out, mine->scalar},
		.sign = mine->sign,
		.stream = call->stream,
		.ready = engine->ready};
	enum err e = cuda_check(engine->driver->event_record(engine->ready, call->stream),
		"record an event");

	if (e)
		return e;
	if (table_put(engine->table, engine->rank, &entry)) {
		struct table_answer answer = {
			.stream = call->stream, .done = engine->done};

		answer.error = table_serve(engine, call, args, &answer);
		table_served(engine->table, &answer);
	}
	return OK;
}

static enum err differs(uint32_t rank)
{
	return err_set(ERR_USAGE,
		"rank %u called another collective, type, operator, root or count than "
		"the others",
		rank);
}

enum err cuda_engine_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct table_answer answer;
	enum err e;

	if (!engine->is_threads)
		return OK;
	e = table_wait(engine->table, engine->rank, &engine->words->abort, &answer);
	if (!e && answer.error == ERR_USAGE)
		return differs(answer.culprit);
	if (!e && answer.error)
		return err_set(answer.error, "the rank that launches for all could not");
	if (!e && answer.stream != call->stream)
		e = cuda_check(
			engine->driver->stream_wait_event(call->stream, answer.done, 0),
			"wait for the launch");
	return e;
}

enum err cuda_engine_takes(const struct cuda_engine *engine, cu_stream stream)
{
	int status = 0;

	if (engine->driver->stream_is_capturing(stream, &status) || !status)
		return OK;
	return err_set(ERR_USAGE,
		"this version does not run under CUDA graph capture: call outside it");
}

enum err cuda_engine_begin(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct moves_args args;
	struct dev_mail mine;
	enum err e = args_fill(engine, call, &args, &mine);

	if (e)
		return e;
	args.call = ++engine->call;
	if (engine->is_threads)
		return table_begin(engine, call, &args, &mine);
	return engine->rank ? follow(engine, call, &mine)
			    : lead(engine, call, &args, &mine);
}

enum err cuda_engine_check(struct cuda_engine *engine)
{
	uint32_t trouble = __atomic_exchange_n(
		&engine->words->trouble, 0, __ATOMIC_ACQ_REL);

	return trouble ? differs(trouble - 1) : OK;
}

/* This thread, perhaps one without, has the engine's context; returns what it had. */
static cu_context context_enter(const struct cuda_engine *engine)
{
	cu_context had = NULL;

	engine->driver->context_get(&had);
	if (had != engine->context)
		engine->driver->context_set(engine->context);
	return had;
}

static void context_leave(
	const struct cuda_driver *driver, cu_context mine, cu_context had)
{
	if (had != mine)
		driver->context_set(had);
}

/* Let everything that waits on the device go on; the kernels see the abort word. */
static void waits_free(struct cuda_engine *engine)
{
	struct cu_memop ops[1 + MOVES_RANKS_MAX];
	cu_stream stream;
	uint32_t count = 0;

	if (engine->driver->stream_create(&stream, 1))
		return;
	ops[count++] = write_32(mail_of(engine, 0, offsetof(struct dev_mail, done)),
		engine->call + FREE_WAIT);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = write_32(
			mail_of(engine, r, offsetof(struct dev_mail, ready)),
			engine->call + FREE_WAIT);
	engine->driver->stream_batch_memop(stream, count, ops, 0);
	engine->driver->stream_synchronize(stream);
	engine->driver->stream_destroy(stream);
}

void cuda_engine_abort(struct cuda_engine *engine)
{
	cu_context had;

	if (!engine || !engine->words)
		return;
	__atomic_store_n(&engine->words->abort, 1, __ATOMIC_RELEASE);
	if (engine->is_threads || !engine->mail)
		return;
	had = context_enter(engine);
	waits_free(engine);
	context_leave(engine->driver, engine->context, had);
}

void cuda_engine_destroy(struct cuda_engine *engine)
{
	const struct cuda_driver *driver;
	cu_context mine, had;

	if (!engine)
		return;
	driver = engine->driver;
	mine = engine->context;
	had = context_enter(engine);
	driver->context_synchronize(); /* kernels may still use what is freed below */
	desk_close(engine->desk);
	if (engine->side)
		driver->stream_destroy(engine->side);
	if (engine->pool)
		driver->mem_free(engine->pool);
	table_release(engine->table);
	if (engine->ready)
		driver->event_destroy(engine->ready);
	if (engine->done)
		driver->event_destroy(engine->done);
	if (engine->owns_mail)
		driver->mem_free(engine->mail);
	else if (engine->mail)
		driver->ipc_close(engine->mail);
	if (engine->module)
		driver->module_unload(engine->module);
	if (engine->words)
		driver->mem_host_free(engine->words);
	free(engine);
	context_leave(driver, mine, had);
}
