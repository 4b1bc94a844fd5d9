/*
 * sim.c - builds the world a simulation runs in, and reports what happened there.
 */
#include "exec/sim/sim.h"

#include <math.h>
#include <stdlib.h>

#include "exec/sim/world.h"

enum { LINE = 64 };

static enum err link_check(const struct sim_link *link)
{
	if (link->latency_ns >= 0 && link->bytes_per_ns >= 0 &&
		isfinite(link->latency_ns))
		return OK;
	return err_set(ERR_ARGUMENT, "a link of %g ns and %g GB/s cannot be simulated",
		link->latency_ns, link->bytes_per_ns);
}

static enum err args_check(const struct sim_args *args)
{
	const struct plan_key *key = &args->key;
	enum err e;

	if (!args->kind || key->coll != args->kind->coll || key->type >= DTYPE_COUNT ||
		args->op >= REDOP_COUNT)
		return err_set(ERR_ARGUMENT, "there is no such collective to simulate");
	e = link_check(&args->link);
	if (!e)
		e = link_check(&args->network);
	if (e)
		return e;
	if (!args->rank_count)
		return err_set(ERR_ARGUMENT, "there are no ranks to simulate");
	if (key->count > SIZE_MAX / 16 / dtype_size(key->type) / args->rank_count)
		return err_set(ERR_ARGUMENT, "%zu elements are too many to simulate",
			key->count);
	return OK;
}

static enum err lane_init(
	struct world *world, const struct program *program, uint32_t rank, uint32_t index)
{
	struct sim_lane *lane = &world->lanes[rank * SCHED_LANES_MAX + index];

	*lane = (struct sim_lane){.rank = rank, .index = index, .waiters = NOBODY};
	lane->done = index >= program->lane_count;
	if (lane->done)
		return OK;
	lane->length = program->lanes[index].count;
	lane->retire_times = calloc(
		(size_t)world->window * lane->length + 1, sizeof(*lane->retire_times));
	return lane->retire_times ? OK : err_set(ERR_SYSTEM, "no memory to simulate");
}

/* Scratch and stage slots, where bytes are moved. */
static enum err rank_memory(struct sim_rank *rank)
{
	size_t tmp = rank->program->tmp_count * rank->shape.tile_bytes;
	size_t stage = rank->program->slot_count * rank->shape.slot_bytes;

	rank->memory = aligned_alloc(LINE, tmp + stage + LINE);
	if (!rank->memory)
		return err_set(ERR_SYSTEM, "no memory for %zu bytes of slots", stage);
	rank->tmp = rank->memory;
	rank->stage = rank->memory + tmp;
	return OK;
}

static enum err rank_init(struct world *world, uint32_t index, struct program *program,
	const struct shape *shape)
{
	struct sim_rank *rank = &world->ranks[index];
	enum err e = OK;

	rank->shape = *shape;
	rank->shape.program = program;
	rank->message_count = program->send_count + program->sent_count;
	rank->arrivals = calloc(
		(size_t)world->window * rank->message_count + 1, sizeof(*rank->arrivals));
	rank->letters = calloc(
		(size_t)world->window * program->sent_count + 1, sizeof(*rank->letters));
	if (!rank->arrivals || !rank->letters)
		return err_set(ERR_SYSTEM, "no memory to simulate");
	for (uint32_t lane = 0; lane < SCHED_LANES_MAX && !e; lane++)
		e = lane_init(world, program, index, lane);
	return e || !world->with_data ? e : rank_memory(rank);
}

/* All ranks': programs[rank]. */
static enum err programs_make(const struct sim_args *args, struct program **programs)
{
	const struct lower_args lower = {.kind = args->kind,
		.rank_count = args->rank_count,
		.root = coll_has_root(args->key.coll) ? args->key.root : 0,
		.mode = MODE_STAGED,
		.depth = args->depth ? args->depth : plan_stage_depth(),
		.hosts = args->hosts};

	return program_lower_all(NULL, &lower, programs);
}

static enum err world_fill(struct world *world)
{
	const struct sim_args *args = world->args;
	size_t tile = args->tile_bytes ? args->tile_bytes : plan_stage_tile();
	struct program **programs = calloc(args->rank_count + 1u, sizeof(*programs));
	struct shape shape;
	enum err e;

	if (!programs)
		return err_set(ERR_SYSTEM, "no memory to simulate");
	e = programs_make(args, programs);
	/* from here on the ranks own them */
	for (uint32_t i = 0; i < args->rank_count && !e; i++)
		world->ranks[i].program = programs[i];
	if (!e)
		e = shape_make(programs[0], &args->key,
			&(struct shape_room){
				.tile = tile, .stage = SIZE_MAX, .inbox = SIZE_MAX},
			&shape);
	if (!e)
		world->window = args->hosts || shape.tile_count <= programs[0]->depth
					? shape.tile_count
					: programs[0]->depth + 1;
	for (uint32_t i = 0; i < args->rank_count && !e; i++)
		e = rank_init(world, i, programs[i], &shape);
	free(programs);
	return e;
}

static enum err world_create(const struct sim_args *args, struct world *world)
{
	uint32_t n = args->rank_count;
	enum err e;

	*world = (struct world){
		.args = args, .rank_count = n, .lane_count = n * SCHED_LANES_MAX};
	fold_rule(&world->rule, &args->key, args->op, args->scalar, n);
	e = agenda_init(&world->agenda, world->lane_count + 1);
	if (!e)
		e = wires_init(&world->wires, args);
	if (e)
		return e;
	world->ranks = calloc(n + 1u, sizeof(*world->ranks));
	world->lanes = calloc(world->lane_count + 1u, sizeof(*world->lanes));
	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++) {
		world->senders[i] = calloc(n + 1u, sizeof(*world->senders[i]));
		if (!world->senders[i])
			return err_set(ERR_SYSTEM, "no memory to simulate");
	}
	if (!world->ranks || !world->lanes)
		return err_set(ERR_SYSTEM, "no memory to simulate");
	return OK;
}

static void letters_free(const struct world *world, struct sim_rank *rank)
{
	size_t count = rank->letters ? (size_t)world->window * rank->program->sent_count
				     : 0;

	for (size_t i = 0; i < count; i++)
		free(rank->letters[i]);
	free(rank->letters);
}

static void world_fini(struct world *world)
{
	for (uint32_t i = 0; world->ranks && i < world->rank_count; i++) {
		letters_free(world, &world->ranks[i]);
		program_destroy(world->ranks[i].program);
		free(world->ranks[i].arrivals);
		free(world->ranks[i].memory);
	}
	for (uint32_t i = 0; world->lanes && i < world->lane_count; i++)
		free(world->lanes[i].retire_times);
	for (uint32_t i = 0; i < SCHED_LANES_MAX; i++)
		free(world->senders[i]);
	free(world->ranks);
	free(world->lanes);
	agenda_fini(&world->agenda);
	wires_fini(&world->wires);
}

static void report_fill(const struct world *world, struct sim_report *report)
{
	for (uint32_t i = 0; i < world->lane_count; i++) {
		const struct sim_lane *lane = &world->lanes[i];
		uint64_t *finish = &report->finish_ps[lane->rank];

		report->move_count += lane->retired;
		*finish = lane->finish_ps > *finish ? lane->finish_ps : *finish;
	}
	report->time_ps = world->now_ps;
	report->message_count = world->wires.message_count;
	report->message_bytes = world->wires.message_bytes;
	report->network_message_count = world->wires.network_count;
	report->network_bytes = world->wires.network_bytes;
	report->link_message_max = world->wires.message_max;
	report->link_byte_max = world->wires.byte_max;
	report->link_count = world->wires.used_count;
	report->tile_bytes = world->ranks[0].shape.tile_bytes;
	report->tile_count = world->ranks[0].shape.tile_count;
}

/* Simulate; `in` and `out` are NULL when only the time is wanted. */
static enum err simulate(const struct sim_args *args, const void *const *in,
	void *const *out, struct sim_report *report)
{
	struct sim_report filled = {0};
	struct world world;
	enum err e = args_check(args);

	if (e)
		return e;
	e = world_create(args, &world);
	filled.finish_ps = calloc(args->rank_count + 1u, sizeof(*filled.finish_ps));
	if (!e && !filled.finish_ps)
		e = err_set(ERR_SYSTEM, "no memory for a report");
	world.with_data = out;
	if (!e)
		e = world_fill(&world);
	for (uint32_t i = 0; i < args->rank_count && out && !e; i++) {
		world.ranks[i].in = (char *)(uintptr_t)in[i];
		world.ranks[i].out = out[i];
	}
	if (!e)
		e = world_go(&world);
	if (e) {
		sim_report_fini(&filled);
	} else {
		report_fill(&world, &filled);
		*report = filled;
	}
	world_fini(&world);
	return e;
}

enum err sim_time(const struct sim_args *args, struct sim_report *report)
{
	return simulate(args, NULL, NULL, report);
}

enum err sim_run(const struct sim_args *args, const void *const *in, void *const *out,
	struct sim_report *report)
{
	return simulate(args, in, out, report);
}

void sim_report_fini(struct sim_report *report)
{
	free(report->finish_ps);
	*report = (struct sim_report){0};
}
