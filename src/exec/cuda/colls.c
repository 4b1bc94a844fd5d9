/*
 * colls.c - one collective call, the three ways of engine.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "exec/cuda/state.h"

enum {
	FUSED_BLOCKS = 16896,  /* of all ranks */
	BLOCK_WORK = 32 << 10, /* bytes a block should have to do */
	FEW_WORK = 2 << 10,    /* up to which a block of few threads is quicker */
	POOL_BYTES = 1 << 20,
	POOL_ALIGNMENT = 256
};

/* Room for a list in device memory, and in the list of lists. */
static enum err kept_reserve(struct cuda_engine *engine, size_t bytes)
{
	struct kept *kept = &engine->kept;
	void *list = realloc(kept->list, (kept->count + 1) * sizeof(*kept->list));
	enum err e;

	if (!list)
		return err_set(ERR_SYSTEM, "no memory for a list of moves");
	kept->list = list;
	if (kept->pool_count && kept->used + bytes <= POOL_BYTES)
		return OK;
	if (kept->pool_count == POOLS_MAX || bytes > POOL_BYTES)
		return err_set(ERR_USAGE,
			"a communicator on a GPU keeps no more collectives with so many "
			"different roots: use fewer roots");
	e = engine_alloc(engine, POOL_BYTES, "allocate device memory",
		&kept->pools[kept->pool_count]);
	kept->pool_count += !e;
	kept->used = 0;
	return e;
}

static enum err moves_get(struct cuda_engine *engine, enum coll coll, uint32_t root,
	const struct kept_moves **found)
{
	const struct cuda_driver *driver = engine->driver;
	struct kept *kept = &engine->kept;
	struct move_pages pages;
	cu_ptr address;
	int mode;
	enum err e;

	for (uint32_t i = 0; i < kept->count; i++)
		if (kept->list[i].coll == coll && kept->list[i].root == root) {
			*found = &kept->list[i];
			return OK;
		}
	e = moves_flatten(coll, engine->rank_count, root, &pages);
	if (e)
		return e;
	cuda_capture_relax(driver, &mode);
	e = kept_reserve(engine, pages.bytes);
	address = e ? 0 : kept->pools[kept->pool_count - 1] + kept->used;
	if (!e)
		e = engine_upload(engine, address, pages.data, pages.bytes);
	cuda_capture_restore(driver, mode);
	free(pages.data);
	if (e)
		return e;
	*found = &kept->list[kept->count];
	kept->list[kept->count++] = (struct kept_moves){
		coll, root, address, (uint32_t)pages.page_bytes};
	kept->used += (pages.bytes + POOL_ALIGNMENT - 1) / POOL_ALIGNMENT *
		      POOL_ALIGNMENT;
	return OK;
}

/* Everything ranks must agree on. */
static uint64_t call_sign(const struct cuda_call *call)
{
	uint64_t sign = HASH_START;
	const uint64_t parts[] = {call->key.coll, call->key.type, call->key.root,
		call->key.count, coll_reduces(call->key.coll) ? call->op : 0,
		call->kind ? 1 + call->codec : 0};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sign = hash_add(sign, parts[i]);
	return sign;
}

/* A schedule's name, short enough for a ledger's line. */
static uint32_t name_hash(const char *name)
{
	return (uint32_t)(hash_add_text(HASH_START, name) >> 32);
}

/* Written where the others see it, before anything else is done. */
static enum err call_write(struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct ledger_call line = {.coll = (uint8_t)call->key.coll,
		.type = (uint8_t)call->key.type,
		.op = (uint8_t)(coll_reduces(call->key.coll) ? call->op : 0),
		.slots = (uint8_t)(call->kind ? 1 + call->codec : 0),
		.root = call->key.root,
		.schedule = call->kind ? name_hash(call->kind->name) : 0,
		.count = call->key.count};

	if (engine->is_capturing || !ledger_call_begin(engine->ledger, &line))
		return OK;
	return engine_judge(engine);
}

static enum err moves_fill(
	struct cuda_engine *engine, const struct cuda_call *call, struct moves_args *args)
{
	const struct kept_moves *kept = NULL;
	enum err e = moves_get(engine, call->key.coll, call->key.root, &kept);

	if (e)
		return e;
	args->pages = (const char *)(uintptr_t)kept->address;
	args->page_bytes = kept->page_bytes;
	return OK;
}

/* All but the posts, which would be many bytes to clear. */
static enum err args_fill(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct dev_mail *mine)
{
	size_t bytes = call->key.count * dtype_size(call->key.type);
	bool is_vector = coll_is_vector(call->key.coll);
	uint32_t chunks = is_vector ? engine->rank_count : 1;
	struct fold_rule rule;

	fold_rule(&rule, &call->key, call->op, call->scalar, engine->rank_count);
	memset(args, 0, offsetof(struct moves_args, posts));
	args->abort = (void *)(uintptr_t)engine->words_device;
	args->trouble = (void *)(uintptr_t)(engine->words_device + 4);
	args->chunk_bytes = bytes;
	args->total_bytes = is_vector ? bytes : UINT64_MAX;
	args->scalar_bytes = (uint32_t)dtype_size(call->key.type);
	args->rank = engine->rank;
	args->rank_count = engine->rank_count;
	args->divisor = rule.divisor;
	args->is_scaled = rule.scaled;
	args->is_one_device = engine->is_one_device;
	if (chunks > 1)
		args->chunk_bytes = ((bytes + chunks - 1) / chunks + 127) / 128 * 128;
	*mine = (struct dev_mail){.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.scalar = rule.scalar.bits,
		.sign = call_sign(call)};
	return call->kind ? OK : moves_fill(engine, call, args);
}

/* Of a launch: blocks of each rank, ranks, threads of a block. */
struct grid {
	unsigned blocks, ranks, threads;
};

/* For `ranks` ranks, on this many blocks at most. Cut fine, so that no multiprocessor is
 * left alone with the end of it. */
static struct grid grid_for(const struct cuda_engine *engine,
	const struct cuda_call *call, unsigned ranks, unsigned most)
{
	bool is_vector = coll_is_vector(call->key.coll);
	size_t n = engine->rank_count ? engine->rank_count : 1;
	size_t share = call->key.count * dtype_size(call->key.type) / (is_vector ? n : 1);
	size_t blocks = share / BLOCK_WORK + 1, room = most / (ranks ? ranks : 1);
	bool is_small = share <= FEW_WORK / (is_vector ? 1 : n);

	return (struct grid){.blocks = (unsigned)(blocks < room ? blocks : room),
		.ranks = ranks,
		.threads = is_small ? MOVES_THREADS_FEW : MOVES_THREADS};
}

/* The arguments as far as there are any: a launch of few ranks takes 0.3 us less so, and
 * under MPS, where the launches of all ranks go one behind the other, more. A driver that
 * insists on all of them gets them. */
static cu_result launch_moves(struct cuda_engine *engine, cu_function function,
	const struct grid *grid, cu_stream stream, struct moves_args *args)
{
	uint32_t posts = args->is_posted || args->is_resident ? args->rank_count : 0;
	size_t bytes = engine->is_launched_whole ? sizeof(*args)
						 : offsetof(struct moves_args, posts) +
							   posts * sizeof(*args->posts);
	void *extra[] = {
		CU_LAUNCH_BLOCK, args, CU_LAUNCH_BLOCK_BYTES, &bytes, CU_LAUNCH_END};
	cu_result result = engine->driver->launch(function, grid->blocks, grid->ranks, 1,
		grid->threads, 1, 1, 0, stream, NULL, extra);

	if (result != CU_INVALID_VALUE || engine->is_launched_whole)
		return result;
	engine->is_launched_whole = true;
	return launch_moves(engine, function, grid, stream, args);
}

static enum err launch(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct grid grid)
{
	unsigned op = call->op == REDOP_AVG || call->op == REDOP_PREMUL
			      ? (unsigned)REDOP_SUM
			      : (unsigned)call->op;
	cu_function function = coll_reduces(call->key.coll)
				       ? engine->functions[call->key.type][op]
				       : engine->copy;

	if (call->kind)
		return staged_launch(engine, call, args);
	return cuda_check(launch_moves(engine, function, &grid, call->stream, args),
		"launch a kernel");
}

/* .. which does the work of all ranks. */
static struct grid grid_fused(
	const struct cuda_engine *engine, const struct cuda_call *call)
{
	return grid_for(engine, call, engine->rank_count, FUSED_BLOCKS);
}

/* Where ranks [first, end) see this call's buffers: posts[0] is the first's. */
static enum err buffers_post(struct cuda_engine *engine, const struct cuda_call *call,
	uint32_t first, uint32_t end, struct dev_post *posts)
{
	struct cuda_where in, out;
	enum err e = call->in ? engine_where(engine, call->in, &in) : OK;

	if (!e && call->out)
		e = engine_where(engine, call->out, &out);
	for (uint32_t r = first; r < end && !e; r++) {
		struct dev_post *post = &posts[r - first];

		post->in = post->out = 0;
		if (call->in)
			e = desk_show(engine->desk, r, &in, call->in, &post->in);
		if (!e && call->out)
			e = desk_show(engine->desk, r, &out, call->out, &post->out);
	}
	if (!e && engine->is_capturing && call->in)
		desk_pin(engine->desk, &in);
	if (!e && engine->is_capturing && call->out)
		desk_pin(engine->desk, &out);
	return e;
}

/* ---- leader ---- */

/* A scalar that is on the device is copied into the mail when the stream is there. */
static enum err scalar_copy(
	struct cuda_engine *engine, const struct cuda_call *call, bool is_constant)
{
	cu_ptr to = mail_at(engine->halls[0], is_constant, engine->rank,
		offsetof(struct dev_mail, scalar));

	if (!call->scalar_at)
		return OK;
	engine->sent_on = 0; /* nobody knows what is there */
	return cuda_check(
		engine->driver->memcpy_async(to, (cu_ptr)(uintptr_t)call->scalar_at,
			dtype_size(call->key.type), call->stream),
		"copy the operator's scalar");
}

/* The facts of a rank's mail, as far as they are not there already: on the same stream
 * what was written last still stands. */
static uint32_t mail_write(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine, bool is_constant, struct cu_memop *ops)
{
	static const size_t offsets[] = {offsetof(struct dev_mail, in),
		offsetof(struct dev_mail, out), offsetof(struct dev_mail, sign),
		offsetof(struct dev_mail, scalar)};
	uint64_t values[] = {mine->in, mine->out, mine->sign, mine->scalar};
	/* to ask for a stream's number ends its capture */
	uint64_t number = is_constant ? 0 : engine->stream_number + 1;
	const struct dev_mail *sent = !is_constant && engine->sent_on == number
					      ? &engine->sent
					      : NULL;
	uint32_t facts = call->scalar_at ? 3 : 4, count = 0;

	for (uint32_t i = 0; i < facts; i++)
		if (!sent || memcmp((const char *)sent + offsets[i],
				     (const char *)mine + offsets[i], sizeof(uint64_t)))
			ops[count++] = memop_write_64(
				mail_at(engine->halls[0], is_constant, engine->rank,
					offsets[i]),
				values[i]);
	if (is_constant)
		return count;
	engine->sent = *mine;
	engine->sent_on = call->scalar_at ? 0 : number;
	return count;
}

/* The mail holds one call. On another stream than the last one's, wait until that call
 * is done before it is overwritten. Who leads reads that in rank 1's hall the first time,
 * and in its own from then on: with one stream there is no word to write for it, and with
 * several, it must be able to set them free by itself. */
static uint32_t mail_wait(struct cuda_engine *engine, struct cu_memop *op)
{
	if (engine->call < 2 || engine->sent_on == engine->stream_number + 1)
		return 0;
	*op = memop_wait(mail_done_at(engine, false, engine->rank), engine->call - 1);
	atomic_store(&engine->tells_itself, !engine->rank);
	return 1;
}

static enum err follow(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine)
{
	cu_ptr hall = engine->halls[0];
	struct cu_memop ops[8];
	uint32_t count = mail_wait(engine, ops);
	enum err e = count ? memops_submit(engine, call->stream, ops, count) : OK;

	if (!e)
		e = scalar_copy(engine, call, false);
	if (e)
		return e;
	count = mail_write(engine, call, mine, false, ops);
	ops[count++] = memop_write(
		mail_at(hall, false, engine->rank, offsetof(struct dev_mail, ready)),
		engine->call);
	ops[count++] = memop_wait(
		mail_done_at(engine, false, engine->rank), engine->call);
	return memops_submit(engine, call->stream, ops, count);
}

/* The launch is done: a word in each other rank's hall, perhaps in its own. */
static enum err all_tell(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct cu_memop ops[MOVES_RANKS_MAX];
	uint32_t count = 0;

	for (uint32_t r = !atomic_load(&engine->tells_itself); r < engine->rank_count;
		r++)
		ops[count++] = memop_write(mail_done_at(engine, false, r), engine->call);
	return memops_submit(engine, call->stream, ops, count);
}

static enum err lead(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	cu_ptr hall = engine->halls[0];
	struct cu_memop ops[6 + MOVES_RANKS_MAX];
	uint32_t count = mail_wait(engine, ops);
	enum err e = OK;

	if (call->scalar_at) {
		e = memops_submit(engine, call->stream, ops, count);
		count = 0;
		if (!e)
			e = scalar_copy(engine, call, false);
	}
	count += mail_write(engine, call, mine, false, ops + count);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = memop_wait(
			mail_at(hall, false, r, offsetof(struct dev_mail, ready)),
			engine->call);
	args->mail = (const void *)(uintptr_t)mail_at(hall, false, 0, 0);
	args->call = engine->call;
	if (!e)
		e = memops_submit(engine, call->stream, ops, count);
	if (!e)
		e = launch(engine, call, args, grid_fused(engine, call));
	return e ? e : all_tell(engine, call);
}

/* The same for a graph, which repeats the same words: they are 1 while something is
 * there, and whoever has seen that puts them back. */
static enum err follow_constant(struct cuda_engine *engine, const struct cuda_call *call,
	const struct dev_mail *mine)
{
	cu_ptr hall = engine->halls[0];
	cu_ptr ready = mail_at(
		hall, true, engine->rank, offsetof(struct dev_mail, ready));
	cu_ptr done = mail_done_at(engine, true, engine->rank);
	struct cu_memop ops[8];
	uint32_t count;
	enum err e = scalar_copy(engine, call, true);

	count = mail_write(engine, call, mine, true, ops);
	ops[count++] = memop_write(ready, 1);
	ops[count++] = memop_wait(done, 1);
	ops[count++] = memop_write(done, 0);
	return e ? e : memops_submit(engine, call->stream, ops, count);
}

static enum err lead_constant(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	cu_ptr hall = engine->halls[0];
	struct cu_memop ops[4 + 2 * MOVES_RANKS_MAX];
	uint32_t count;
	enum err e = scalar_copy(engine, call, true);

	count = mail_write(engine, call, mine, true, ops);
	for (uint32_t r = 1; r < engine->rank_count; r++)
		ops[count++] = memop_wait(
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)), 1);
	args->mail = (const void *)(uintptr_t)mail_at(hall, true, 0, 0);
	args->call = 1;
	if (!e)
		e = memops_submit(engine, call->stream, ops, count);
	if (!e)
		e = launch(engine, call, args, grid_fused(engine, call));
	count = 0;
	for (uint32_t r = 1; r < engine->rank_count; r++) {
		ops[count++] = memop_write(
			mail_at(hall, true, r, offsetof(struct dev_mail, ready)), 0);
		ops[count++] = memop_write(mail_done_at(engine, true, r), 1);
	}
	return e ? e : memops_submit(engine, call->stream, ops, count);
}

static enum err leader_begin(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct dev_mail *mine)
{
	enum err e = engine->rank ? buffers_post(engine, call, 0, 1, args->posts) : OK;

	if (e)
		return e;
	if (engine->rank) {
		mine->in = args->posts[0].in;
		mine->out = args->posts[0].out;
	}
	if (engine->is_capturing)
		return engine->rank ? follow_constant(engine, call, mine)
				    : lead_constant(engine, call, args, mine);
	engine->call++;
	return engine->rank ? follow(engine, call, mine) : lead(engine, call, args, mine);
}

/* ---- resident ---- */

/* What the next call needs to know for that. */
static enum err resident_note(struct cuda_engine *engine, const struct cuda_call *call)
{
	if (engine->was_captured || call->kind || engine->order.is_recorded) {
		if (!engine->is_capturing)
			engine->last_numbered = 0; /* it is before this one */
		return order_end(engine, &engine->order, call->stream);
	}
	engine->last_numbered = engine->stream_number + 1;
	return OK;
}

static enum err resident_begin(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, const struct dev_mail *mine)
{
	enum err e = resident_order(engine, call->stream);

	/* through slots a rank reaches only its own buffers */
	if (call->kind) {
		args->posts[0] = (struct dev_post){
			mine->in, mine->out, mine->scalar, NULL};
		args->is_posted = 1;
		args->scalars_at = call->scalar_at != NULL;
		if (call->scalar_at)
			args->posts[0].scalar = (uint64_t)(uintptr_t)call->scalar_at;
	} else if (!e) {
		e = buffers_post(engine, call, 0, engine->rank_count, args->posts);
	}
	for (uint32_t r = 0; r < engine->rank_count && !call->kind; r++) {
		args->posts[r].scalar = mine->scalar;
		args->posts[r].hall = (struct dev_hall *)(uintptr_t)engine->halls[r];
	}
	args->mail = (const void *)(uintptr_t)mail_at(engine->hall, false, 0, 0);
	args->sign = mine->sign;
	args->scalar_at = call->scalar_at;
	args->is_resident = 1;
	if (!e && !call->kind)
		args->call = engine->was_captured ? 0 : ++engine->call;
	if (!e)
		e = launch(engine, call, args,
			grid_for(engine, call, 1, engine->resident_blocks));
	return e ? e : resident_note(engine, call);
}

/* ---- all ways ---- */

/* A buffer that others cannot reach is replaced by a copy. */
static enum err buffers_reach(struct cuda_engine *engine, struct cuda_call *call)
{
	struct sched shape = {.coll = call->key.coll,
		.rank = engine->rank,
		.rank_count = engine->rank_count,
		.root = call->key.root,
		.chunk_count = 1};
	size_t bytes = call->key.count * dtype_size(call->key.type);
	size_t in_bytes = bytes * sched_chunks(&shape, SPACE_IN);
	size_t out_bytes = bytes * sched_chunks(&shape, SPACE_OUT);
	bool is_shown = engine->way == CUDA_WAY_LEADER ||
			(engine->way == CUDA_WAY_RESIDENT && !call->kind);
	const struct bounce_buffer in = {call->in, in_bytes, true, is_shown};
	const struct bounce_buffer out = {call->out, out_bytes, false, is_shown};
	bool is_in = false, is_out = false;
	void *here;
	enum err e = in_bytes ? bounce_look(engine, &in, &is_in) : OK;

	if (!e && out_bytes)
		e = bounce_look(engine, &out, &is_out);
	if (!e)
		e = bounce_begin(engine,
			(is_in ? bounce_size(in_bytes) : 0) +
				(is_out ? bounce_size(out_bytes) : 0),
			call->stream);
	if (!e && is_in) {
		e = bounce_in(engine, call->in, in_bytes, call->stream, &here);
		call->in = e ? NULL : here;
	}
	if (!e && is_out) {
		e = bounce_in(engine, NULL, out_bytes, call->stream, &here);
		if (!e)
			e = bounce_out(engine, here, call->out, out_bytes);
		call->out = here;
	}
	/* pointers that mean nothing on this rank */
	call->in = in_bytes ? call->in : NULL;
	call->out = out_bytes ? call->out : NULL;
	return e;
}

/* ---- threads ---- */

/* Is the launch on rank `r`'s stream anyway? */
static bool is_launched_on(const struct table_entry *entry, cu_stream stream)
{
	return entry->stream == stream && !entry->is_own;
}

/* What is before the call on every stream is before the launch. */
static enum err streams_join(struct cuda_engine *engine, cu_stream stream)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = OK;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->table, r);

		if (!entry->is_own && !is_launched_on(entry, stream))
			e = cuda_check(driver->event_record(entry->ready, entry->stream),
				"record an event");
	}
	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->table, r);

		if (!is_launched_on(entry, stream))
			e = cuda_check(driver->stream_wait_event(stream, entry->ready, 0),
				"wait for another rank's stream");
	}
	return e;
}

/* What comes after the call on every stream is after the launch. */
static enum err streams_part(struct cuda_engine *engine, cu_stream stream)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(
		driver->event_record(engine->done, stream), "record an event");

	for (uint32_t r = 0; r < engine->rank_count && !e; r++) {
		const struct table_entry *entry = table_entry(engine->table, r);

		if (entry->is_own &&
			r != engine->rank) /* its own event: we may be gone */
			e = cuda_check(driver->event_record(entry->ready, stream),
				"record an event");
		else if (!entry->is_own && !is_launched_on(entry, stream))
			e = cuda_check(
				driver->stream_wait_event(entry->stream, engine->done, 0),
				"wait for the launch");
	}
	return e;
}

/* Calls of a communicator run one after the other, whatever streams they are on: slots
 * hold one call. */
static enum err launch_follow(struct cuda_engine *engine, const struct cuda_call *call)
{
	const struct table_answer last = table_answer(engine->table);
	bool is_behind = last.stream == call->stream && !cuda_stream_is_own(call->stream);

	if (!last.done || (is_behind && !call->kind))
		return OK;
	return cuda_check(engine->driver->stream_wait_event(call->stream, last.done, 0),
		"wait for the launch before");
}

/* One launch for all, on this rank's stream. */
static enum err table_serve(
	struct cuda_engine *engine, const struct cuda_call *call, uint32_t *culprit)
{
	struct moves_args *args = &engine->table_args;
	uint64_t sign = table_entry(engine->table, engine->rank)->sign;
	enum err e;

	args->is_posted = 1;
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		const struct table_entry *entry = table_entry(engine->table, r);

		args->posts[r] = entry->post;
		if (entry->is_scalar_at)
			args->scalars_at |= (uint64_t)1 << r;
		if (entry->sign != sign) {
			*culprit = r;
			return ERR_USAGE;
		}
	}
	e = streams_join(engine, call->stream);
	if (!e)
		e = launch_follow(engine, call);
	if (!e)
		e = launch(engine, call, args, grid_fused(engine, call));
	return e ? e : streams_part(engine, call->stream);
}

static enum err table_begin(struct cuda_engine *engine, const struct cuda_call *call,
	const struct moves_args *args, const struct dev_mail *mine)
{
	struct table_entry entry = {.post = {mine->in, mine->out, mine->scalar, NULL},
		.is_scalar_at = call->scalar_at != NULL,
		.is_own = cuda_stream_is_own(call->stream),
		.sign = mine->sign,
		.stream = call->stream,
		.ready = engine->ready};
	enum err e = OK;

	if (entry.is_own)
		e = cuda_check(engine->driver->event_record(engine->ready, call->stream),
			"record an event");
	if (e)
		return e;
	if (call->scalar_at)
		entry.post.scalar = (uint64_t)(uintptr_t)call->scalar_at;
	memcpy(&engine->table_args, args, offsetof(struct moves_args, posts));
	table_put(engine->table, engine->rank, &entry);
	return OK;
}

/* The ledger has the words for it. */
static enum err mismatch_say(struct cuda_engine *engine, uint32_t culprit)
{
	enum err e;

	/* as a kernel does that sees it: then the ledger is searched for both calls */
	__atomic_store_n(&engine->words->trouble, culprit + 1, __ATOMIC_RELEASE);
	e = engine_judge(engine);
	return e ? e
		 : err_set(ERR_USAGE,
			   "rank %u called another collective, type, operator, root or "
			   "count than the others",
			   culprit);
}

static enum err table_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	struct table_answer answer = {
		.culprit = UINT32_MAX, .stream = call->stream, .done = engine->done};
	bool is_ours;
	enum err e = table_wait(
		engine->table, engine->rank, &engine->words->abort, &is_ours);

	if (e)
		return e;
	if (is_ours) {
		answer.error = table_serve(engine, call, &answer.culprit);
		table_served(engine->table, &answer);
	} else {
		answer = table_answer(engine->table);
	}
	if (answer.error && answer.culprit != UINT32_MAX)
		return mismatch_say(engine, answer.culprit);
	if (answer.error)
		return err_set(answer.error, "the rank that launches for all: %s",
			table_reason(engine->table));
	if (cuda_stream_is_own(call->stream) && !is_ours)
		e = cuda_check(
			engine->driver->stream_wait_event(call->stream, engine->ready, 0),
			"wait for the launch");
	return e;
}

enum err coll_begin(struct cuda_engine *engine, const struct cuda_call *asked)
{
	struct cuda_call call = *asked;
	struct moves_args args;
	struct dev_mail mine;
	enum err e = buffers_reach(engine, &call);

	if (!e)
		e = args_fill(engine, &call, &args, &mine);
	if (!e)
		e = call_write(engine, &call);
	if (e)
		return e;
	if (engine->way == CUDA_WAY_LEADER)
		e = leader_begin(engine, &call, &args, &mine);
	/* other ranks' streams cannot be waited for from within a graph */
	else if (engine->way == CUDA_WAY_RESIDENT || engine->is_capturing)
		e = resident_begin(engine, &call, &args, &mine);
	else
		e = table_begin(engine, &call, &args, &mine);
	if (!e && !engine->is_capturing)
		ledger_call_end(engine->ledger);
	return e;
}

enum err coll_finish(struct cuda_engine *engine, const struct cuda_call *call)
{
	return engine->way == CUDA_WAY_THREADS && !engine->is_capturing
		       ? table_finish(engine, call)
		       : OK;
}
