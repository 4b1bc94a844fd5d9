/*
 * colls.c - one collective call, up to where the ways part (way.h).
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

void *kept_grow(void *list, uint32_t *count, uint32_t number, size_t size)
{
	char *grown = number < *count ? list : realloc(list, (number + 1) * size);

	if (!grown) {
		err_set(ERR_SYSTEM, "no memory for lists of the device");
		return NULL;
	}
	if (number >= *count) {
		memset(grown + *count * size, 0, (number + 1 - *count) * size);
		*count = number + 1;
	}
	return grown;
}

/* Room for a list in device memory. */
static enum err kept_reserve(struct cuda_engine *engine, size_t bytes)
{
	struct kept *kept = &engine->kept;
	enum err e;

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

static enum err moves_keep(struct cuda_engine *engine,
	const struct device_program *program, struct kept_moves *to)
{
	const struct cuda_driver *driver = engine->driver;
	struct kept *kept = &engine->kept;
	struct move_pages pages;
	cu_ptr address;
	int mode;
	enum err e = moves_flatten(program->ranks, &pages);

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
	*to = (struct kept_moves){address, (uint32_t)pages.page_bytes};
	kept->used += (pages.bytes + POOL_ALIGNMENT - 1) / POOL_ALIGNMENT *
		      POOL_ALIGNMENT;
	return OK;
}

/* What was made of a plan's program; when it comes first it is written and copied. */
static enum err moves_get(struct cuda_engine *engine,
	const struct device_program *program, const struct kept_moves **found)
{
	struct kept *kept = &engine->kept;
	void *list = kept_grow(
		kept->list, &kept->count, program->number, sizeof(*kept->list));
	enum err e = OK;

	if (!list)
		return ERR_SYSTEM;
	kept->list = list;
	if (!kept->list[program->number].address)
		e = moves_keep(engine, program, &kept->list[program->number]);
	if (!e)
		*found = &kept->list[program->number];
	return e;
}

/* How its slots are laid out, counted from 1; 0: it has none. */
static uint32_t call_slots(const struct cuda_call *call)
{
	return call->plan.is_staged ? 1 + staged_codec(&call->plan) : 0;
}

/* Everything ranks must agree on. */
static uint64_t call_sign(const struct cuda_call *call)
{
	uint64_t sign = HASH_START;
	const uint64_t parts[] = {call->key.coll, call->key.type, call->key.root,
		call->key.count, coll_reduces(call->key.coll) ? call->op : 0,
		call_slots(call)};

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
		.slots = (uint8_t)call_slots(call),
		.root = call->key.root,
		.schedule = call->plan.is_staged
				    ? name_hash(call->plan.program->kind->name)
				    : 0,
		.count = call->key.count};

	if (engine->now.is_capturing || !ledger_call_begin(engine->ledger, &line))
		return OK;
	return engine_judge(engine);
}

static enum err moves_fill(
	struct cuda_engine *engine, const struct cuda_call *call, struct moves_args *args)
{
	const struct kept_moves *kept = NULL;
	enum err e = moves_get(engine, call->plan.program, &kept);

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
	args->abort = (void *)(uintptr_t)engine->words.device;
	args->trouble = (void *)(uintptr_t)(engine->words.device + 4);
	args->chunk_bytes = bytes;
	args->total_bytes = is_vector ? bytes : UINT64_MAX;
	args->scalar_bytes = (uint32_t)dtype_size(call->key.type);
	args->rank = engine->rank;
	args->rank_count = engine->rank_count;
	args->divisor = rule.divisor;
	args->is_scaled = rule.scaled;
	args->is_one_device = engine->reach.is_one_device;
	if (chunks > 1)
		args->chunk_bytes = ((bytes + chunks - 1) / chunks + 127) / 128 * 128;
	*mine = (struct dev_mail){.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.scalar = rule.scalar.bits,
		.sign = call_sign(call)};
	return call->plan.is_staged ? OK : moves_fill(engine, call, args);
}

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
	size_t bytes = engine->code.is_launched_whole
			       ? sizeof(*args)
			       : offsetof(struct moves_args, posts) +
					 posts * sizeof(*args->posts);
	void *extra[] = {
		CU_LAUNCH_BLOCK, args, CU_LAUNCH_BLOCK_BYTES, &bytes, CU_LAUNCH_END};
	cu_result result = engine->driver->launch(function, grid->blocks, grid->ranks, 1,
		grid->threads, 1, 1, 0, stream, NULL, extra);

	if (result != CU_INVALID_VALUE || engine->code.is_launched_whole)
		return result;
	engine->code.is_launched_whole = true;
	return launch_moves(engine, function, grid, stream, args);
}

enum err coll_launch(struct cuda_engine *engine, const struct cuda_call *call,
	struct moves_args *args, struct grid grid)
{
	unsigned op = call->op == REDOP_AVG || call->op == REDOP_PREMUL
			      ? (unsigned)REDOP_SUM
			      : (unsigned)call->op;
	cu_function function = coll_reduces(call->key.coll)
				       ? engine->code.functions[call->key.type][op]
				       : engine->code.copy;

	if (call->plan.is_staged)
		return staged_launch(engine, call, args);
	return cuda_check(launch_moves(engine, function, &grid, call->stream, args),
		"launch a kernel");
}

struct grid grid_fused(const struct cuda_engine *engine, const struct cuda_call *call)
{
	return grid_for(engine, call, engine->rank_count, FUSED_BLOCKS);
}

struct grid grid_single(const struct cuda_engine *engine, const struct cuda_call *call)
{
	return grid_for(engine, call, 1, engine->reach.blocks);
}

enum err buffers_post(struct cuda_engine *engine, const struct cuda_call *call,
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
			e = desk_show(engine->reach.desk, r, &in, call->in, &post->in);
		if (!e && call->out)
			e = desk_show(engine->reach.desk, r, &out, call->out, &post->out);
	}
	if (!e && engine->now.is_capturing && call->in)
		desk_pin(engine->reach.desk, &in);
	if (!e && engine->now.is_capturing && call->out)
		desk_pin(engine->reach.desk, &out);
	return e;
}

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
	/* through slots a rank that launches for itself reaches only its own */
	bool is_shown = !engine->way->is_one_process &&
			(engine->way->is_fused || !call->plan.is_staged);
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

enum err coll_begin(struct cuda_engine *engine, const struct cuda_call *asked)
{
	struct cuda_call call = *asked;
	struct moves_args args;
	struct dev_mail mine;
	const struct coll_work work = {&call, &args, &mine};
	enum err e = buffers_reach(engine, &call);

	if (!e)
		e = args_fill(engine, &call, &args, &mine);
	if (!e)
		e = call_write(engine, &call);
	if (!e)
		e = engine->way->coll(engine, &work);
	if (!e && !engine->now.is_capturing)
		ledger_call_end(engine->ledger);
	return e;
}
