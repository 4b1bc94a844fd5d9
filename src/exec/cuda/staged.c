/*
 * staged.c - collectives through slots: the memory for it, and the launch.
 *
 * For a schedule and a codec that the user asks for, and for ranks on GPUs that cannot
 * reach each other's memory: then the slots are in host memory. steps.h says what the
 * kernels want. A launch for all ranks uses slots of rank 0's; else every rank has its
 * own and maps those of the others.
 */
#include "exec/cuda/staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec/cuda/kernels/kernels.h"
#include "exec/cuda/state.h"
#include "link/region.h"

enum {
	CHANNELS_MAX = 32,
	STAGE_BYTES = 512 << 10, /* of one channel, of one rank */
	HOST_FLAGS = 1 | 2	 /* of cuMemHostRegister: portable, mapped */
};

/* A rank's memory: stage and words of each codec, then scratch. */
static size_t codec_bytes(const struct staged *staged)
{
	return (size_t)staged->channels * STAGE_BYTES +
	       (steps_words_bytes(staged->channels) + STEPS_LINE - 1) / STEPS_LINE *
		       STEPS_LINE;
}

static size_t rank_bytes(const struct staged *staged)
{
	size_t bytes = STEPS_CODECS * codec_bytes(staged) +
		       (size_t)staged->channels * STAGE_BYTES;

	return (bytes + CU_BLOCK_BYTES - 1) / CU_BLOCK_BYTES * CU_BLOCK_BYTES;
}

static enum err device_make(struct cuda_engine *engine, struct cuda_offer *offer)
{
	const struct cuda_driver *driver = engine->driver;
	struct staged *staged = &engine->staged;
	size_t bytes = rank_bytes(staged) *
		       (engine->way->is_fused ? engine->rank_count : 1);
	enum err e;

	if (engine->way->is_fused && engine->rank)
		return OK;
	e = engine_alloc(
		engine, bytes, "allocate device memory for slots", &staged->memory);
	if (!e) {
		e = lent_make(engine, staged->memory);
		if (e)
			driver->mem_free(staged->memory);
		else
			staged->lent[engine->rank] = staged->memory;
	}
	if (!e)
		e = engine_clear(engine, staged->memory, bytes);
	if (!e && !engine->way->is_fused)
		e = cuda_check(driver->ipc_get(&offer->handle, staged->memory),
			"share device memory");
	offer->address = staged->memory;
	return e;
}

static enum err host_map(struct cuda_engine *engine, void *host, cu_ptr *address)
{
	const struct cuda_driver *driver = engine->driver;
	enum err e = cuda_check(
		driver->mem_host_register(host, rank_bytes(&engine->staged), HOST_FLAGS),
		"let the GPU use host memory");

	return e ? e
		 : cuda_check(driver->mem_host_device_pointer(address, host, 0),
			   "map pinned memory");
}

static enum err host_make(struct cuda_engine *engine, struct cuda_offer *offer)
{
	struct staged *staged = &engine->staged;
	struct region region;
	enum err e = region_alloc(rank_bytes(staged), &staged->host[engine->rank]);

	if (e)
		return e;
	region_find(staged->host[engine->rank], 1, &region);
	offer->fd = (uint32_t)region.fd;
	return host_map(engine, staged->host[engine->rank], &staged->memory);
}

enum err cuda_engine_offer(
	struct cuda_engine *engine, bool is_apart, struct cuda_offer *offer)
{
	struct staged *staged = &engine->staged;
	uint32_t n = engine->way->is_fused || engine->reach.is_one_device
			     ? engine->rank_count
			     : 1;
	cu_context had;
	int mode = 0;
	enum err e;

	memset(offer, 0, sizeof(*offer));
	offer->pid = (uint32_t)getpid();
	staged->is_host = is_apart;
	staged->channels = engine->reach.blocks_all / (STEPS_LANES * n);
	if (staged->channels > CHANNELS_MAX)
		staged->channels = CHANNELS_MAX;
	if (!staged->channels)
		staged->channels = 1;
	had = context_enter(engine);
	cuda_capture_relax(engine->driver, &mode);
	e = is_apart ? host_make(engine, offer) : device_make(engine, offer);
	cuda_capture_restore(engine->driver, mode);
	context_leave(engine->driver, engine->context, had);
	return e;
}

/* Where this process sees rank `r`'s memory. */
static enum err rank_map(struct cuda_engine *engine, uint32_t r,
	const struct cuda_offer *offer, cu_ptr *address)
{
	struct staged *staged = &engine->staged;
	enum err e;

	*address = staged->memory;
	if (r == engine->rank)
		return OK;
	if (staged->is_host) {
		e = region_map_peer((int)offer->pid, (int)offer->fd, rank_bytes(staged),
			&staged->host[r]);
		return e ? e : host_map(engine, staged->host[r], address);
	}
	*address = offer->address;
	if (offer->pid == (uint32_t)getpid()) {
		if (!lent_take(offer->address))
			return err_set(ERR_REMOTE, "rank %u has gone", r);
		staged->lent[r] = offer->address;
		return OK;
	}
	e = cuda_check(engine->driver->ipc_open(
			       &staged->mapped[r], offer->handle, CU_IPC_LAZY_PEER),
		"map another rank's slots");
	*address = staged->mapped[r];
	return e;
}

/* The table the kernels look into: for each codec, where every rank's things are. */
static enum err ends_make(struct cuda_engine *engine, const cu_ptr *ranks)
{
	struct staged *staged = &engine->staged;
	uint32_t n = engine->rank_count;
	size_t bytes = STEPS_CODECS * n * sizeof(struct dev_end);
	struct dev_end *ends = calloc(1, bytes);
	enum err e = ends ? OK : err_set(ERR_SYSTEM, "no memory for %u ranks", n);

	for (uint32_t c = 0; c < STEPS_CODECS && !e; c++)
		for (uint32_t r = 0; r < n; r++) {
			cu_ptr stage = ranks[r] + c * codec_bytes(staged);

			ends[c * n + r] = (struct dev_end){.stage = stage,
				.words = stage + (size_t)staged->channels * STAGE_BYTES,
				.acks = stage + (size_t)staged->channels * STAGE_BYTES,
				.scratch = ranks[r] + STEPS_CODECS * codec_bytes(staged)};
		}
	if (!e)
		e = engine_alloc(engine, bytes, "allocate device memory", &staged->ends);
	if (!e)
		e = engine_upload(engine, staged->ends, ends, bytes);
	free(ends);
	return e;
}

static enum err offers_map(struct cuda_engine *engine, const struct cuda_offer *offers)
{
	struct staged *staged = &engine->staged;
	cu_ptr ranks[MOVES_RANKS_MAX];
	enum err e = OK;

	for (uint32_t r = 0; r < engine->rank_count && !e; r++)
		if (engine->way->is_fused)
			ranks[r] = offers[0].address + r * rank_bytes(staged);
		else
			e = rank_map(engine, r, &offers[r], &ranks[r]);
	return e ? e : ends_make(engine, ranks);
}

/* ---- kernels ---- */

/* Where ranks are threads, everybody has all before anybody runs one. */
static enum err functions_load(struct cuda_engine *engine)
{
	enum err e = OK;

	for (int c = 0; c < STEPS_CODECS && !e; c++)
		e = stepper_load(&engine->staged.stepper, (enum steps_codec)c);
	return e;
}

enum err cuda_engine_accept(struct cuda_engine *engine, const struct cuda_offer *offers)
{
	cu_context had;
	int mode = 0;
	enum err e;

	engine->staged.is_on = true;
	if (engine->way->is_fused && !engine->way->is_one_process && engine->rank)
		return OK; /* rank 0 launches, in its process */
	had = context_enter(engine);
	cuda_capture_relax(engine->driver, &mode);
	e = offers_map(engine, offers);
	if (!e && engine->way->is_one_process)
		e = functions_load(engine);
	cuda_capture_restore(engine->driver, mode);
	context_leave(engine->driver, engine->context, had);
	return e;
}

/* ---- steps ---- */

enum steps_codec staged_codec(const struct device_plan *plan)
{
	static const enum steps_codec codecs[] = {[PROTO_SIMPLE] = STEPS_SIMPLE,
		[PROTO_LL] = STEPS_LL,
		[PROTO_LL128] = STEPS_LL128};

	return codecs[plan->proto];
}

static void args_fill(struct cuda_engine *engine, const struct moves_args *from,
	const struct kept_steps *kept, struct steps_args *args)
{
	args->steps = (const char *)(uintptr_t)kept->address;
	args->mail = (struct dev_mail *)(uintptr_t)from->mail;
	args->abort = from->abort;
	args->trouble = from->trouble;
	args->call = from->call;
	args->divisor = from->divisor;
	args->is_scaled = from->is_scaled;
	args->is_one_device = engine->reach.is_one_device && !engine->staged.is_host;
	args->is_posted = from->is_posted;
	args->scalar_bytes = from->scalar_bytes;
	args->scalars_at = from->scalars_at;
	args->rank_count = engine->way->is_fused && !from->is_resident
				   ? engine->rank_count
				   : 1;
	for (uint32_t i = 0; i < args->rank_count; i++) {
		args->ranks[i] = (uint8_t)(from->is_resident ? engine->rank : i);
		args->posts[i] = from->posts[i];
	}
}

enum err staged_launch(struct cuda_engine *engine, const struct cuda_call *call,
	const struct moves_args *from)
{
	struct staged *staged = &engine->staged;
	enum steps_codec codec = staged_codec(&call->plan);
	size_t bytes = call->key.count * dtype_size(call->key.type);
	struct steps_room room = {.codec = codec, .stage_bytes = STAGE_BYTES};
	const struct kept_steps *kept = NULL;
	struct steps_args args = {0};
	struct stepper_launch launch = {.codec = codec, .stream = call->stream};
	enum err e = stepper_steps(
		&staged->stepper, call->plan.program, engine->streams.side, &kept);

	if (!e)
		e = stepper_fold(
			&staged->stepper, codec, &call->key, call->op, &launch.function);
	if (e)
		return e;
	room.channels = steps_channels(kept->steps, codec, bytes, staged->channels);
	e = steps_shape(kept->steps, &room, bytes, &args);
	if (!e && args.scratch_bytes > STAGE_BYTES)
		e = err_set(ERR_USAGE,
			"%s needs more scratch than there is: use another algorithm",
			call->plan.program->kind->name);
	if (e)
		return e;
	args_fill(engine, from, kept, &args);
	args.ends = (const struct dev_end *)(uintptr_t)(staged->ends +
							codec * engine->rank_count *
								sizeof(struct dev_end));
	launch.channels = room.channels;
	return stepper_run(&launch, &args);
}

void staged_free(struct cuda_engine *engine)
{
	const struct cuda_driver *driver = engine->driver;
	struct staged *staged = &engine->staged;

	stepper_free(&staged->stepper);
	for (uint32_t r = 0; r < engine->rank_count; r++) {
		if (staged->lent[r])
			lent_drop(staged->lent[r]);
		if (staged->mapped[r])
			driver->ipc_close(staged->mapped[r]);
		if (staged->host[r])
			driver->mem_host_unregister(staged->host[r]);
		if (staged->host[r] && r == engine->rank)
			region_free(staged->host[r]);
		else if (staged->host[r])
			region_unmap(staged->host[r], rank_bytes(staged));
	}
	if (staged->ends)
		driver->mem_free(staged->ends);
}
