#include "plan/plan.h"

#include <stdlib.h>

#include "base/hash.h"
#include "plan/device.h"
#include "tune/choose.h"
#include "tune/squad.h"

enum {
	CACHE_PLANS = 64, /* direct mapped */
	CACHE_LINE = 64,
	TRIALS = 4,
	TERSE_BYTES = 128 << 10,     /* of a rank's buffers */
	POSITION_MAX = (1 << 23) - 1 /* moves of one call: half of a position's 24 bits */
};

/* One lowered program, kept for the life of the planner. */
struct kept_program {
	const struct sched_kind *kind;
	uint32_t root;
	enum lower_mode mode;
	uint32_t depth;
	struct program *program; /* owned */
	struct kept_program *next;
};

struct planner {
	struct plan_room room;
	struct sched_hosts *hosts;	/* owned: room.hosts by host; NULL: one */
	struct kept_program *programs;	/* owned */
	struct plan plans[CACHE_PLANS]; /* key.coll is COLL_COUNT where empty */
	struct device_plans *device;	/* owned; NULL: not asked yet */
};

enum err planner_create(const struct plan_room *room, struct planner **planner)
{
	struct planner *p = calloc(1, sizeof(*p));

	if (!p)
		return err_set(ERR_SYSTEM, "no memory for a planner");
	p->room = *room;
	if (room->hosts && sched_hosts_create(room->hosts, room->rank_count, &p->hosts)) {
		free(p);
		return ERR_SYSTEM;
	}
	if (!sched_hosts_several(p->hosts))
		p->room.hosts = NULL;
	for (uint32_t i = 0; i < CACHE_PLANS; i++)
		p->plans[i].key.coll = COLL_COUNT;
	*planner = p;
	return OK;
}

enum err planner_twin(const struct planner *planner, struct planner **twin)
{
	return planner_create(&planner->room, twin);
}

void planner_destroy(struct planner *planner)
{
	if (!planner)
		return;
	while (planner->programs) {
		struct kept_program *kept = planner->programs;

		planner->programs = kept->next;
		program_destroy(kept->program);
		free(kept);
	}
	device_plans_free(planner->device);
	sched_hosts_destroy(planner->hosts);
	free(planner);
}

static enum err program_get(struct planner *planner, const struct lower_args *args,
	const struct program **program)
{
	struct kept_program *kept;
	enum err e;

	for (kept = planner->programs; kept; kept = kept->next)
		if (kept->kind == args->kind && kept->root == args->root &&
			kept->mode == args->mode && kept->depth == args->depth) {
			*program = kept->program;
			return OK;
		}
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return err_set(ERR_SYSTEM, "no memory for a program");
	*kept = (struct kept_program){.kind = args->kind,
		.root = args->root,
		.mode = args->mode,
		.depth = args->depth};
	e = program_lower(args, &kept->program);
	if (e) {
		free(kept);
		return e;
	}
	kept->next = planner->programs;
	planner->programs = kept;
	*program = kept->program;
	return OK;
}

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* The largest tile of which `pieces` fit in a room; never more than asked. */
static size_t tile_that_fits(size_t pieces, size_t wanted, size_t bytes)
{
	size_t fits = pieces ? bytes / pieces / CACHE_LINE * CACHE_LINE : wanted;

	return wanted < fits ? wanted : fits;
}

static size_t staged_pieces(const struct program *program)
{
	return (size_t)program->slot_count_max * program->slot_chunks;
}

enum err shape_make(const struct program *program, const struct plan_key *key,
	const struct shape_room *room, struct shape *shape)
{
	size_t bytes = key->count * dtype_size(key->type), chunks = program->chunk_count;
	size_t tile = room->tile;
	struct shape made = {
		.program = program, .chunk_bytes = bytes, .total_bytes = bytes};

	if (coll_is_vector(key->coll) && chunks > 1)
		made.chunk_bytes = round_up((bytes + chunks - 1) / chunks, CACHE_LINE);
	if (!tile || tile > made.chunk_bytes)
		tile = bytes ? made.chunk_bytes : 1; /* no tiles, but they have a size */
	made.tile_bytes = tile_that_fits(
		staged_pieces(program), round_up(tile, CACHE_LINE), room->stage);
	made.tile_bytes = tile_that_fits(
		program->inbox_chunks, made.tile_bytes, room->inbox);
	if (!made.tile_bytes)
		return err_set(ERR_INTERNAL,
			"a stage of %zu bytes and inboxes of %zu are too small for %s of "
			"%u ranks",
			room->stage, room->inbox, coll_name(key->coll),
			program->rank_count);
	made.uneven = coll_is_vector(key->coll) && made.chunk_bytes * chunks != bytes;
	made.tile_count =
		(uint32_t)((made.chunk_bytes + made.tile_bytes - 1) / made.tile_bytes);
	made.tile_stride = made.tile_bytes;
	made.is_whole = made.tile_count == 1 && !made.uneven;
	made.staged_bytes = made.tile_bytes;
	made.slot_bytes = made.staged_bytes * program->slot_chunks;
	made.inbox_bytes = made.staged_bytes * program->inbox_chunks;
	*shape = made;
	return OK;
}

size_t plan_stage_tile(void)
{
	return CHOOSE_STAGED_TILE;
}

uint32_t plan_stage_depth(void)
{
	return CHOOSE_STAGED_DEPTH;
}

/* A shape whose positions fit in the words of the board. */
static enum err shape_for_board(const struct program *program, const struct plan_key *key,
	const struct shape_room *room, struct shape *shape)
{
	enum err e = shape_make(program, key, room, shape);

	if (e)
		return e;
	if ((shape->chunk_bytes / shape->tile_bytes + 1) * program->length_max >
		POSITION_MAX)
		return err_set(ERR_ARGUMENT,
			"%s of %zu elements needs too many tiles of %zu bytes",
			coll_name(key->coll), key->count, shape->tile_bytes);
	return OK;
}

/* Small messages lie close, so that a rank writes few lines and its peers read them
 * together; the smallest ride beside the position itself. */
static void shape_pack(struct shape *shape, size_t room)
{
	size_t unit = sizeof(uint64_t);

	if (shape->tile_count != 1)
		return;
	while (unit < shape->chunk_bytes && unit < shape->staged_bytes)
		unit *= 2; /* no chunk lies in more lines than it must */
	if (unit < shape->staged_bytes)
		shape->staged_bytes = unit;
	shape->slot_bytes = shape->staged_bytes * shape->program->slot_chunks;
	shape->inbox_bytes = shape->staged_bytes * shape->program->inbox_chunks;
	shape->is_inline = shape->slot_bytes * shape->program->slot_count_max <= room;
}

/* Everything two ranks must agree on: the call, the schedules and the tiles. */
static uint64_t plan_sign(const struct plan_key *key, const struct choice *choice)
{
	const uint64_t parts[] = {key->coll, key->type, key->root, key->count,
		choice->direct_tile, choice->staged_tile};
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = hash_add(hash, parts[i]);
	hash = hash_add_text(hash, choice->staged->name);
	return hash_add_text(hash, choice->direct ? choice->direct->name : "");
}

/* What this rank reads and writes in the collective, whatever the schedule. */
static void plan_buffers(struct plan *plan, const struct plan_room *room)
{
	const struct plan_key *key = &plan->key;
	struct sched view = {.coll = key->coll,
		.rank_count = room->rank_count,
		.rank = room->rank,
		.root = coll_has_root(key->coll) ? key->root : 0,
		.chunk_count = 1};
	size_t block = key->count * dtype_size(key->type);

	plan->in_bytes = sched_chunks(&view, SPACE_IN) * block;
	plan->out_bytes = sched_chunks(&view, SPACE_OUT) * block;
}

/* Choose, and lower the staged program. A schedule the user forced, or one for very many
 * ranks, may need more slots than a card has: then the call is not eager. */
static enum err plan_choose(struct planner *planner, const struct plan_key *key,
	struct lower_args *lower, struct choice *choice, const struct program **program)
{
	const struct plan_room *room = &planner->room;
	struct choose_args ask = {.coll = key->coll,
		.rank_count = room->rank_count,
		.hosts = planner->hosts,
		.bytes = key->count * dtype_size(key->type),
		.type = key->type,
		.tile_bytes = room->tile_bytes,
		.eager_bytes = room->eager_bytes,
		.limits = room->limits,
		.asked = key->schedule};
	enum err e;

	for (;;) {
		e = choose(&ask, choice);
		if (e)
			return e;
		lower->kind = choice->staged;
		lower->mode = MODE_STAGED;
		lower->depth = choice->depth;
		e = program_get(planner, lower, program);
		if (e || !choice->eager ||
			tile_that_fits(
				staged_pieces(*program), CACHE_LINE, room->eager_bytes))
			return e;
		ask.eager_bytes = 0;
	}
}

/* A large call between hosts is cut so that several threads have a share of it, unless
 * somebody asks for another tile. Its chunks are known with the program. */
static enum err plan_man(const struct planner *planner, const struct program *program,
	struct choice *choice, struct plan *plan)
{
	const struct squad_room *room = &planner->room.squad;
	const struct shape_room any = {.stage = SIZE_MAX, .inbox = SIZE_MAX};
	struct shape whole;
	enum err e;

	plan->squad = 1;
	if (choice->eager || room->threads <= 1 || !planner->room.hosts)
		return OK;
	e = shape_make(program, &plan->key, &any, &whole);
	if (e)
		return e;
	plan->squad = squad_size(whole.chunk_bytes, room->threads, room->share_bytes);
	choice->staged_tile = squad_tile(
		whole.chunk_bytes, choice->staged_tile, plan->squad);
	choice->direct_tile = choice->staged_tile;
	return OK;
}

static uint32_t plan_lead(const struct plan *plan)
{
	uint32_t direct = program_lead(plan->shapes[MODE_DIRECT].program, 0);
	uint32_t pull = program_lead(plan->shapes[MODE_PULL].program, 0);

	return direct < pull ? direct : pull;
}

static enum err plan_build(
	struct planner *planner, const struct plan_key *key, struct plan *plan)
{
	const struct plan_room *room = &planner->room;
	struct lower_args lower = {.rank_count = room->rank_count,
		.rank = room->rank,
		.root = coll_has_root(key->coll) ? key->root : 0,
		.hosts = room->hosts};
	struct shape_room limits = {.inbox = room->inbox_bytes};
	const struct program *program;
	struct choice choice;
	enum err e = plan_choose(planner, key, &lower, &choice, &program);

	if (e)
		return e;
	plan->key = *key;
	plan->eager = choice.eager;
	plan_buffers(plan, room);
	plan->terse = choice.eager || plan->in_bytes + plan->out_bytes <= TERSE_BYTES;
	e = plan_man(planner, program, &choice, plan);
	if (e)
		return e;
	plan->sign = plan_sign(key, &choice);
	limits.tile = choice.staged_tile;
	limits.stage = choice.eager ? room->eager_bytes : room->bulk_bytes;
	e = shape_for_board(program, key, &limits, &plan->shapes[MODE_STAGED]);
	plan->shapes[MODE_STAGED].schedule = choice.staged->name;
	if (!e && plan->squad > plan->shapes[MODE_STAGED].tile_count)
		plan->squad = plan->shapes[MODE_STAGED].tile_count;
	if (!e && choice.eager)
		shape_pack(&plan->shapes[MODE_STAGED], room->inline_bytes);
	if (e || choice.eager)
		return e;
	lower.kind = choice.direct;
	/* no mode needs more slots than this one, so no other cuts its tiles again */
	limits.tile = room->hosts ? plan->shapes[MODE_STAGED].tile_bytes
				  : choice.direct_tile;
	for (lower.mode = MODE_DIRECT; lower.mode <= MODE_PULL && !e; lower.mode++) {
		struct shape *shape = &plan->shapes[lower.mode];

		e = program_get(planner, &lower, &program);
		if (!e)
			e = shape_for_board(program, key, &limits, shape);
		shape->schedule = choice.direct->name;
	}
	plan->lead = e ? 0 : plan_lead(plan);
	return e;
}

bool plan_key_equal(const struct plan_key *a, const struct plan_key *b)
{
	return a->coll == b->coll && a->type == b->type && a->root == b->root &&
	       a->count == b->count && a->schedule == b->schedule;
}

uint32_t plan_key_hash(const struct plan_key *key)
{
	uint64_t mix = hash_spread(key->count);

	mix ^= (uint64_t)key->coll << 8 ^ (uint64_t)key->type << 4 ^
	       (uint64_t)key->root << 16 ^ (uintptr_t)key->schedule;
	return (uint32_t)(mix ^ mix >> 29 ^ mix >> 58);
}

static uint32_t key_slot(const struct plan_key *key)
{
	return plan_key_hash(key) % CACHE_PLANS;
}

/* Out of line, so that the common way through plan_get() stays short. */
static __attribute__((noinline)) enum err plan_replace(
	struct planner *planner, const struct plan_key *key, struct plan *slot)
{
	struct plan built = {0};
	enum err e = plan_build(planner, key, &built);

	if (!e)
		*slot = built;
	return e;
}

enum err plan_get(
	struct planner *planner, const struct plan_key *key, const struct plan **plan)
{
	struct plan *slot = &planner->plans[key_slot(key)];

	*plan = slot;
	return plan_key_equal(&slot->key, key) ? OK : plan_replace(planner, key, slot);
}

enum err plan_get_device(
	struct planner *planner, const struct device_ask *ask, struct device_plan *plan)
{
	const struct device_job job = {&planner->room, planner->hosts};

	return device_plans_get(&planner->device, &job, ask, plan);
}

enum lower_mode plan_next_mode(const struct plan *plan)
{
	const struct trial *trial = &plan->trial;

	if (trial->count[MODE_STAGED] < TRIALS)
		return MODE_STAGED;
	if (trial->count[MODE_PULL] < TRIALS)
		return MODE_PULL;
	return trial->best_ns[MODE_STAGED] < trial->best_ns[MODE_PULL] ? MODE_STAGED
								       : MODE_PULL;
}

void plan_note(struct planner *planner, const struct plan *plan, enum lower_mode mode,
	uint64_t ns)
{
	struct trial *trial = &planner->plans[key_slot(&plan->key)].trial;

	if (!trial->count[mode] || ns < trial->best_ns[mode])
		trial->best_ns[mode] = ns;
	trial->count[mode]++;
}

size_t shape_piece(const struct shape *shape, uint32_t chunk, uint32_t tile)
{
	size_t offset = shape_tile_offset(shape, tile), length = shape->chunk_bytes;

	if (shape->uneven) {
		size_t begin = chunk * shape->chunk_bytes;
		size_t left = begin < shape->total_bytes ? shape->total_bytes - begin : 0;

		length = left < length ? left : length;
	}
	length = length > offset ? length - offset : 0;
	return length < shape->tile_bytes ? length : shape->tile_bytes;
}

uint32_t share_tiles(uint32_t tiles, uint32_t index, uint32_t count)
{
	return tiles > index ? (tiles - index + count - 1) / count : 0;
}

struct shape shape_share(const struct shape *shape, uint32_t index, uint32_t count)
{
	struct shape share = *shape;

	share.tile_offset = index * shape->tile_bytes;
	share.tile_stride = count * shape->tile_bytes;
	share.tile_count = share_tiles(shape->tile_count, index, count);
	share.is_whole = shape->is_whole && count == 1;
	return share;
}
