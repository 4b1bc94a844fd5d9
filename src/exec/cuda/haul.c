#include "exec/cuda/haul.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "exec/cuda/ferry.h"
#include "exec/cuda/order.h"
#include "exec/cuda/state.h"
#include "link/region.h"

enum {
	CHANNELS_MOST = 8,
	STAGE_MOST = 512 << 10, /* of one channel, of one rank */
	MEMORY_MOST = 64 << 20, /* of all stages a rank may have to do with */
	TILE_LEAST = 8 << 10,	/* smaller ones are not worth a message each */
	BLOCKS_TOGETHER = 2,	/* on a multiprocessor, of ours, in any case */
	HOST_FLAGS = 1 | 2,	/* of cuMemHostRegister and -Alloc: portable, mapped */
	NON_BLOCKING = 1,	/* of streams */
	END_MS = 20,		/* until a kernel is said to be stuck */
	NAP_US = 50,
	ABORT_BYTES = STEPS_LINE
};

/* What was made of a program, for the host. */
struct kept_haul {
	struct haul_list *list; /* owned; NULL: not yet */
	bool is_refused;	/* a call was, and the log says so */
};

/* Memory of the host that the GPU reaches. */
struct haul_memory {
	char *host;
	cu_ptr device;
};

struct cuda_haul {
	cu_context context;
	uint32_t rank, rank_count, channels;
	const uint16_t *hosts; /* borrowed */
	size_t stage_bytes;    /* of one channel */
	struct berth_owner owner;
	/* of this host's ranks: stages, then words. Owned; others' are mapped */
	struct haul_memory near[MOVES_RANKS_MAX];
	struct haul_memory copies[MOVES_RANKS_MAX]; /* owned: others' stages */
	/* owned: the abort word, then words and acks of ranks on other hosts */
	struct haul_memory words;
	cu_ptr scratch, ends; /* owned */
	cu_ptr slots;	      /* owned: its stage and copies; 0: they are the host's */
	cu_stream side;	      /* owned */
	struct stepper stepper;
	struct kept_haul *kept; /* owned: by number of the plan's program */
	uint32_t kept_count;
	struct stream_order order;
	bool was_captured;
	struct carry_end carry_ends[MOVES_RANKS_MAX];
	uint64_t bases[CHANNELS_MOST];
	struct carry_room room;
	_Atomic(uint32_t *) abort; /* NULL: no kernel has been launched */
	struct cuda_haul *next;	   /* of those that are left behind */
	atomic_bool is_stopped;
};

bool cuda_haul_may(const struct cuda_hello *const *hellos, uint32_t rank_count)
{
	if (rank_count > MOVES_RANKS_MAX)
		return false;
	for (uint32_t r = 0; r < rank_count; r++)
		if (!cuda_ferry_may(hellos, rank_count, r))
			return false;
	return true;
}

/* ---- sizes: the same on all ranks ---- */

/* As many as run together wherever ranks share a GPU. */
static uint32_t channels_agree(const struct haul_args *args)
{
	uint32_t most = CHANNELS_MOST;

	for (uint32_t r = 0; r < args->rank_count; r++) {
		const struct cuda_hello *hello = args->hellos[r];
		uint32_t sharing = 1, room;

		for (uint32_t s = 0; s < args->rank_count; s++)
			sharing += s != r && !memcmp(hello->uuid, args->hellos[s]->uuid,
						     sizeof(hello->uuid));
		room = hello->multiprocessors * BLOCKS_TOGETHER / (STEPS_LANES * sharing);
		most = room < most ? room : most;
	}
	return most ? most : 1;
}

static size_t stage_agree(uint32_t rank_count, uint32_t channels)
{
	size_t most = (size_t)MEMORY_MOST / (rank_count * channels);

	return most < STAGE_MOST ? most / STEPS_LINE * STEPS_LINE : (size_t)STAGE_MOST;
}

static size_t words_bytes(const struct cuda_haul *haul)
{
	return steps_words_bytes(haul->channels);
}

static size_t stages_bytes(const struct cuda_haul *haul)
{
	return haul->channels * haul->stage_bytes;
}

static bool is_near(const struct cuda_haul *haul, uint32_t rank)
{
	return haul->hosts[rank] == haul->hosts[haul->rank];
}

/* ---- memory: all of it when ranks meet, since the driver may wait for kernels that run,
 * and one of those may wait for a rank that is in the driver ---- */

static size_t near_bytes(const struct cuda_haul *haul)
{
	return stages_bytes(haul) + words_bytes(haul);
}

static enum err near_pin(const struct cuda_haul *haul, struct haul_memory *memory)
{
	const struct cuda_driver *driver = cuda_driver();
	enum err e = cuda_check(
		driver->mem_host_register(memory->host, near_bytes(haul), HOST_FLAGS),
		"let the GPU use host memory");

	return e ? e
		 : cuda_check(driver->mem_host_device_pointer(
				      &memory->device, memory->host, 0),
			   "map pinned memory");
}

static enum err host_make(struct haul_memory *memory, size_t bytes)
{
	const struct cuda_driver *driver = cuda_driver();
	void *made = NULL;
	enum err e = cuda_check(driver->mem_host_alloc(&made, bytes, HOST_FLAGS),
		"allocate pinned memory");

	if (e)
		return e;
	memory->host = made;
	return cuda_check(driver->mem_host_device_pointer(&memory->device, made, 0),
		"map pinned memory");
}

/* Offset of a far rank's words; its acks are behind them. */
static size_t far_words_at(const struct cuda_haul *haul, uint32_t rank)
{
	return ABORT_BYTES + 2 * rank * words_bytes(haul);
}

/* What other ranks have no part in. */
static enum err own_make(struct cuda_haul *haul)
{
	const struct cuda_driver *driver = cuda_driver();
	size_t bytes = far_words_at(haul, haul->rank_count);
	enum err e = cuda_check(
		driver->stream_create(&haul->side, NON_BLOCKING), "make a stream");

	if (!e)
		e = cuda_check(
			driver->event_create(&haul->order.event, CU_EVENT_NO_TIMING),
			"make an event");
	if (!e)
		e = host_make(&haul->words, bytes);
	if (!e)
		memset(haul->words.host, 0, bytes);
	if (!e)
		e = cuda_check(driver->mem_alloc(&haul->ends,
				       haul->rank_count * sizeof(struct dev_end)),
			"allocate device memory");
	if (!e)
		e = cuda_check(driver->mem_alloc(&haul->scratch, stages_bytes(haul)),
			"allocate device memory");
	return e ? e : stepper_load(&haul->stepper, STEPS_SIMPLE);
}

/* Its own stage and words, which the others of its host map. */
static enum err near_make(struct cuda_haul *haul, struct haul_offer *offer)
{
	struct haul_memory *own = &haul->near[haul->rank];
	struct region region;
	void *memory = NULL;
	enum err e = region_alloc(near_bytes(haul), &memory);

	if (e)
		return e;
	own->host = memory;
	region_find(memory, 1, &region);
	offer->fd = (uint32_t)region.fd;
	return near_pin(haul, own);
}

/* What a rank brings to the others, or has of them. */
static enum err rank_bring(
	struct cuda_haul *haul, uint32_t rank, const struct haul_offer *offer)
{
	void *memory = NULL;
	enum err e;

	if (rank == haul->rank)
		return OK;
	if (is_near(haul, rank)) {
		e = region_map_peer(
			(int)offer->pid, (int)offer->fd, near_bytes(haul), &memory);
		haul->near[rank].host = memory;
		return e ? e : near_pin(haul, &haul->near[rank]);
	}
	return haul->slots ? OK : host_make(&haul->copies[rank], stages_bytes(haul));
}

enum err cuda_haul_slots(struct cuda_haul *haul, void **slots, size_t *bytes)
{
	enum err e;

	*bytes = haul->rank_count * stages_bytes(haul);
	e = cuda_check(
		cuda_driver()->mem_alloc(&haul->slots, *bytes), "allocate device memory");
	*slots = (void *)(uintptr_t)haul->slots;
	return e;
}

void cuda_haul_leave_slots(struct cuda_haul *haul)
{
	if (haul->slots)
		cuda_driver()->mem_free(haul->slots);
	haul->slots = 0;
}

/* Where a rank's stage is for the kernels. */
static cu_ptr stage_of(const struct cuda_haul *haul, uint32_t rank)
{
	if (haul->slots)
		return haul->slots + rank * stages_bytes(haul);
	return is_near(haul, rank) ? haul->near[rank].device : haul->copies[rank].device;
}

/* The table the kernels look into. */
static enum err ends_write(struct cuda_haul *haul)
{
	const struct cuda_driver *driver = cuda_driver();
	struct dev_end ends[MOVES_RANKS_MAX] = {0};
	enum err e;

	for (uint32_t r = 0; r < haul->rank_count; r++) {
		size_t at = far_words_at(haul, r);

		if (is_near(haul, r))
			ends[r] = (struct dev_end){.stage = stage_of(haul, r),
				.words = haul->near[r].device + stages_bytes(haul),
				.acks = haul->near[r].device + stages_bytes(haul)};
		else
			ends[r] = (struct dev_end){.stage = stage_of(haul, r),
				.words = haul->words.device + at,
				.acks = haul->words.device + at + words_bytes(haul)};
	}
	ends[haul->rank].scratch = haul->scratch;
	e = cuda_check(driver->memcpy_async(haul->ends, (cu_ptr)(uintptr_t)ends,
			       haul->rank_count * sizeof(*ends), haul->side),
		"copy to the device");
	return e ? e
		 : cuda_check(driver->stream_synchronize(haul->side),
			   "wait for a copy to the device");
}

static void carry_ends_fill(struct cuda_haul *haul, const struct net_gpu *gpu)
{
	for (uint32_t r = 0; r < haul->rank_count; r++) {
		struct carry_end *end = &haul->carry_ends[r];
		char *words = haul->words.host + far_words_at(haul, r);

		if (is_near(haul, r)) {
			end->stage = haul->near[r].host;
			end->words = (void *)(haul->near[r].host + stages_bytes(haul));
		} else {
			end->stage = haul->copies[r].host;
			end->words = (void *)words;
			end->acks = (void *)(words + words_bytes(haul));
		}
		/* a plugin is given the device's address, and nobody looks there */
		if (haul->slots)
			end->stage = (char *)(uintptr_t)stage_of(haul, r);
	}
	haul->room = (struct carry_room){
		haul->carry_ends, haul->bases, haul->slots ? gpu : NULL};
}

void cuda_haul_tell(const struct cuda_haul *haul)
{
	size_t bytes = stages_bytes(haul);

	for (uint32_t r = 0; r < haul->rank_count; r++)
		if (r == haul->rank || !is_near(haul, r))
			haul->owner.made(
				haul->owner.owner, haul->carry_ends[r].stage, bytes);
}

/* ---- meeting ---- */

enum err cuda_haul_open(
	const struct haul_args *args, struct haul_offer *offer, struct cuda_haul **haul)
{
	struct cuda_haul *made = calloc(1, sizeof(*made));
	enum err e;

	*offer = (struct haul_offer){.pid = (uint32_t)getpid()};
	*haul = NULL;
	if (!made)
		return err_set(ERR_SYSTEM, "no memory for calls on GPUs");
	made->rank = args->rank;
	made->rank_count = args->rank_count;
	made->hosts = args->hosts;
	made->owner = args->owner;
	made->channels = channels_agree(args);
	made->stage_bytes = stage_agree(args->rank_count, made->channels);
	e = cuda_check(cuda_driver()->context_get(&made->context),
		"ask for the current context");
	if (!e)
		e = own_make(made);
	if (!e)
		e = near_make(made, offer);
	if (e) {
		cuda_haul_close(made, true);
		return e;
	}
	offer->works = 1;
	*haul = made;
	return OK;
}

enum err cuda_haul_meet(struct cuda_haul *haul, const struct haul_offer *offers,
	const struct net_gpu *gpu)
{
	enum err e = OK;

	for (uint32_t r = 0; r < haul->rank_count && !e; r++)
		e = rank_bring(haul, r, &offers[r]);
	if (!e)
		e = ends_write(haul);
	if (e)
		return e;
	carry_ends_fill(haul, gpu);
	atomic_store(&haul->abort, (uint32_t *)(void *)haul->words.host);
	if (atomic_load(&haul->is_stopped)) /* before there was a word */
		cuda_haul_stop(haul);
	return OK;
}

/* ---- a call ---- */

static enum err kept_get(struct cuda_haul *haul, const struct device_program *program,
	struct kept_haul **kept)
{
	void *grown = kept_grow(
		haul->kept, &haul->kept_count, program->number, sizeof(*haul->kept));

	if (!grown)
		return ERR_SYSTEM;
	haul->kept = grown;
	*kept = &haul->kept[program->number];
	return OK;
}

static enum err list_get(struct cuda_haul *haul, const struct device_program *program,
	const struct haul_list **list)
{
	struct kept_haul *kept;
	enum err e = kept_get(haul, program, &kept);

	if (!e && !kept->list)
		e = haul_list_make(program->ranks, haul->rank, haul->hosts, &kept->list);
	if (!e)
		*list = kept->list;
	return e;
}

/* Its sizes, by its steps. Where these take more scratch than there is, tiles are
 * smaller. */
static bool call_fits(const struct cuda_haul *haul, const struct dev_steps *steps,
	const struct plan_key *key, struct steps_args *args, uint32_t *channels)
{
	size_t bytes = key->count * dtype_size(key->type);
	struct steps_room room = {
		.codec = STEPS_SIMPLE, .stage_bytes = haul->stage_bytes};

	room.channels = *channels = steps_channels(
		steps, STEPS_SIMPLE, bytes, haul->channels);
	if (steps->tmp_count > 1)
		room.tile_bytes = haul->stage_bytes / steps->tmp_count / STEPS_LINE *
				  STEPS_LINE;
	return steps_fit(steps, &room, bytes, args) &&
	       args->scratch_bytes <= haul->stage_bytes &&
	       (args->tile_count <= 1 || args->tile_bytes >= TILE_LEAST);
}

enum err cuda_haul_fits(struct cuda_haul *haul, const struct plan_key *key,
	const struct device_plan *plan, bool *fits)
{
	const struct kept_steps *steps = NULL;
	struct kept_haul *kept;
	struct steps_args args = {0};
	uint32_t channels;
	enum err e = stepper_flat(&haul->stepper, plan->program, &steps);

	*fits = !e && call_fits(haul, steps->steps, key, &args, &channels);
	if (e || *fits)
		return e;
	e = kept_get(haul, plan->program, &kept);
	if (!e && !kept->is_refused)
		log_info(LOG_TUNING,
			"%s by %s between hosts: in tiles of %zu bytes, too short for "
			"kernels; through host memory",
			coll_name(key->coll), plan->program->kind->name,
			(size_t)args.tile_bytes);
	if (!e)
		kept->is_refused = true;
	return e;
}

/* The sizes of a call that fits, and its steps on the device. */
static enum err call_shape(struct cuda_haul *haul, const struct haul_call *call,
	struct steps_args *args, uint32_t *channels)
{
	const struct kept_steps *kept = NULL;
	enum err e = stepper_steps(&haul->stepper, call->plan.program, haul->side, &kept);

	if (e)
		return e;
	if (!call_fits(haul, kept->steps, &call->key, args, channels))
		return err_set(ERR_INTERNAL, "%s of %zu does not fit in slots",
			call->plan.program->kind->name, call->key.count);
	args->steps = (const char *)(uintptr_t)kept->address;
	return OK;
}

/* What ranks must have alike to carry the same messages. */
static uint64_t carry_sign(const struct haul_call *call, const struct haul_shape *shape)
{
	const uint64_t parts[] = {call->key.coll, call->key.type, call->key.root,
		call->key.count, shape->channels, shape->tile_bytes, shape->depth};
	uint64_t sign = hash_add_text(HASH_START, "carried");

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sign = hash_add(sign, parts[i]);
	return hash_add_text(sign, call->plan.program->kind->name);
}

static enum err prepare(
	struct cuda_haul *haul, const struct haul_call *call, struct host_carry *carry)
{
	struct steps_args args = {0};
	uint32_t channels = 0;
	cu_function function;
	enum err e = list_get(haul, call->plan.program, &carry->list);

	if (!e)
		e = call_shape(haul, call, &args, &channels);
	if (!e)
		e = stepper_fold(
			&haul->stepper, STEPS_SIMPLE, &call->key, call->op, &function);
	if (e)
		return e;
	haul_shape(&args, channels, &carry->shape);
	carry->room = &haul->room;
	carry->plan = (struct plan){.key = call->key,
		.eager = true,
		.squad = 1,
		.sign = carry_sign(call, &carry->shape)};
	return OK;
}

enum err cuda_haul_prepare(
	struct cuda_haul *haul, const struct haul_call *call, struct host_carry *carry)
{
	int mode = 0;
	enum err e;

	cuda_capture_relax(cuda_driver(), &mode);
	e = prepare(haul, call, carry);
	cuda_capture_restore(cuda_driver(), mode);
	return e;
}

static void args_fill(const struct cuda_haul *haul, const struct haul_call *call,
	struct steps_args *args)
{
	struct fold_rule rule;

	fold_rule(&rule, &call->key, call->op, call->scalar, haul->rank_count);
	args->ends = (const struct dev_end *)(uintptr_t)haul->ends;
	args->abort = (const uint32_t *)(uintptr_t)haul->words.device;
	args->divisor = rule.divisor;
	args->is_scaled = rule.scaled;
	args->is_posted = 1;
	args->is_followed = 1;
	args->scalar_bytes = (uint32_t)dtype_size(call->key.type);
	args->scalars_at = call->scalar_at != NULL;
	args->rank_count = 1;
	args->ranks[0] = (uint8_t)haul->rank;
	args->posts[0] = (struct dev_post){.in = (uint64_t)(uintptr_t)call->in,
		.out = (uint64_t)(uintptr_t)call->out,
		.scalar = call->scalar_at ? (uint64_t)(uintptr_t)call->scalar_at
					  : rule.scalar.bits};
}

enum err cuda_haul_launch(struct cuda_haul *haul, const struct haul_call *call)
{
	struct stepper_launch launch = {.codec = STEPS_SIMPLE, .stream = call->stream};
	struct order_call at = {
		.stream = call->stream, .is_capturing = call->is_capturing};
	struct steps_args args = {0};
	enum err e = call_shape(haul, call, &args, &launch.channels);

	haul->was_captured |= call->is_capturing;
	if (!e)
		e = stepper_fold(&haul->stepper, STEPS_SIMPLE, &call->key, call->op,
			&launch.function);
	if (e)
		return e;
	args_fill(haul, call, &args);
	if (!at.is_capturing)
		at.number = cuda_stream_number(cuda_driver(), call->stream);
	e = stream_order_begin(&haul->order, &at);
	if (!e)
		e = stepper_run(&launch, &args);
	return e ? e : stream_order_end(&haul->order, &at);
}

/* ---- the end ---- */

void cuda_haul_stop(struct cuda_haul *haul)
{
	uint32_t *word;

	if (!haul)
		return;
	atomic_store(&haul->is_stopped, true);
	word = atomic_load(&haul->abort);
	if (word)
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

/* Is no kernel left that uses its memory? */
static bool is_over(struct cuda_haul *haul)
{
	uint64_t end = clock_ns() + END_MS * CLOCK_MS;

	if (!haul->order.is_recorded)
		return true;
	while (cuda_driver()->event_query(haul->order.event)) {
		if (clock_ns() > end)
			return false;
		usleep(NAP_US);
	}
	return true;
}

static void near_free(struct cuda_haul *haul, uint32_t rank)
{
	struct haul_memory *memory = &haul->near[rank];

	if (memory->device)
		cuda_driver()->mem_host_unregister(memory->host);
	if (memory->host && rank == haul->rank)
		region_free(memory->host);
	else if (memory->host)
		region_unmap(memory->host, near_bytes(haul));
}

static void haul_free(struct cuda_haul *haul)
{
	const struct cuda_driver *driver = cuda_driver();

	for (uint32_t r = 0; r < haul->rank_count; r++) {
		near_free(haul, r);
		if (haul->copies[r].host)
			driver->mem_host_free(haul->copies[r].host);
	}
	if (haul->words.host)
		driver->mem_host_free(haul->words.host);
	if (haul->scratch)
		driver->mem_free(haul->scratch);
	if (haul->ends)
		driver->mem_free(haul->ends);
	cuda_haul_leave_slots(haul);
	stepper_free(&haul->stepper);
	if (haul->order.event)
		driver->event_destroy(haul->order.event);
	if (haul->side)
		driver->stream_destroy(haul->side);
	for (uint32_t i = 0; i < haul->kept_count; i++)
		haul_list_free(haul->kept[i].list);
	free(haul->kept);
	free(haul);
}

/* Kernels may still use these, or graphs have some: they stay as long as the process. */
static _Atomic(struct cuda_haul *) left_behind;

static void haul_leave(struct cuda_haul *haul)
{
	cuda_haul_stop(haul);
	haul->next = atomic_exchange(&left_behind, haul);
}

void cuda_haul_close(struct cuda_haul *haul, bool is_settled)
{
	const struct cuda_driver *driver = cuda_driver();
	cu_context had = NULL;
	int mode = 0;

	if (!haul)
		return;
	driver->context_get(&had);
	driver->context_set(haul->context);
	cuda_capture_relax(driver, &mode);
	if ((is_settled || !haul->was_captured) && is_over(haul))
		haul_free(haul);
	else
		haul_leave(haul);
	cuda_capture_restore(driver, mode);
	driver->context_set(had);
}
