/*
 * check.c - runs the lowered programs of all ranks on symbols and watches.
 *
 * Lanes are stepped one after the other, each as far as it gets. A wait lets a lane pass
 * when the position is announced, and teaches it what the awaited lane knew at exactly
 * that position: late news, least knowledge, so whatever an engine does in between is
 * covered. check_mem.c judges each access, check_clock.c keeps who knows what, and
 * check_mail.c carries what is sent between hosts.
 *
 * One call is enough. Engines let a rank into the next call only when every rank has
 * entered it, that is, has left this one; so nothing of this call can meet the next, but
 * for the caller, who may use its buffers as soon as its own rank returns. That moment is
 * checked (mem_leave).
 */
#include "sched/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched/check_mail.h"

enum { TILES_MIN = 3 };

/* One lane of one rank, on its way. */
struct runner {
	uint32_t tile, move;
	uint32_t wait;		      /* waits of the move that are over */
	uint32_t position, announced; /* moves retired; of which peers know */
};

struct run {
	const struct sched *scheds;	 /* borrowed: one per rank */
	const struct check_args *args;	 /* borrowed */
	struct check_report *report;	 /* borrowed */
	struct program *const *programs; /* borrowed: one per rank */
	struct runner *runners;		 /* owned: [rank * lane_max + lane] */
	uint32_t lane_max, tile_count;
	struct clocks clocks;
	struct mem mem;
	struct mail mail;
};

__attribute__((format(printf, 2, 3))) static enum err wrong(
	struct check_report *report, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(report->text, sizeof(report->text), format, args);
	va_end(args);
	return ERR_USAGE;
}

static enum err wrong_move(
	struct run *run, uint32_t rank, uint32_t lane, const char *what)
{
	const struct runner *runner = &run->runners[rank * run->lane_max + lane];
	const struct move *move = &run->programs[rank]->lanes[lane].moves[runner->move];

	return wrong(run->report, "rank %u lane %u instruction %u turn %u tile %u %s",
		rank, lane, move->insn, move->rep, runner->tile, what);
}

static uint32_t lane_length(const struct run *run, uint32_t rank, uint32_t lane)
{
	return run->programs[rank]->lanes[lane].count;
}

/* The position of that lane a wait asks for in a tile; 0 when it asks for nothing yet. */
static uint32_t wait_position(const struct run *run, const struct program *program,
	const struct wait *wait, uint32_t tile)
{
	uint32_t rank = wait->kind == WAIT_SENT ? program->rank : wait->rank;

	if (wait->back > tile)
		return 0;
	return (tile - wait->back) * lane_length(run, rank, wait->lane) + wait->position;
}

static bool wait_is_over(const struct run *run, const struct program *program,
	const struct wait *wait, uint32_t tile)
{
	uint32_t position = wait_position(run, program, wait, tile);
	const struct runner *runners = run->runners;

	if (!position)
		return true;
	if (wait->kind == WAIT_SENT)
		return runners[program->rank * run->lane_max + wait->lane].position >=
			       position &&
		       mail_has_left(&run->mail, program, wait, position);
	if (mail_is_data(&run->mail, program, wait))
		return mail_has(&run->mail, program, wait, position);
	return runners[wait->rank * run->lane_max + wait->lane].announced >= position;
}

/* A move under way. */
struct step {
	struct run *run;
	const struct program *program;
	const struct move *move;
	struct access access;
};

/* A message is what its sender had when it sent: a cell written later is not it, however
 * well ordered. The received inputs come in the order of their data waits. */
static bool is_stale(const struct step *step, uint32_t cell_index, uint32_t received)
{
	const struct run *run = step->run;
	const struct mem_cell *cell = &run->mem.cells[cell_index];

	for (uint32_t i = 0; i < step->move->wait_count; i++) {
		const struct wait *wait =
			&step->program->waits[step->move->wait_first + i];
		uint32_t lane = wait->rank * run->lane_max + wait->lane;

		if (wait->kind != WAIT_DATA ||
			mail_is_data(&run->mail, step->program, wait) || received--)
			continue;
		return cell->write_pos &&
		       !clocks_knew(&run->clocks, lane,
			       wait_position(run, step->program, wait, step->access.tile),
			       cell->write_lane, cell->write_pos);
	}
	return false;
}

/* Fold one chunk of a move's inputs. */
static const char *fold_inputs(
	const struct step *step, uint32_t chunk, struct value *value)
{
	const struct move *move = step->move;
	struct mem *mem = &step->run->mem;
	uint32_t received = 0;
	const char *what = NULL;

	for (uint32_t i = 0; i < move->input_count && !what; i++) {
		const struct place *place = &step->program->places[move->input_first + i];
		uint32_t cell = mem_cell(
			mem, place, step->program->rank, step->access.tile, chunk);

		if (cell == MEM_NOWHERE)
			return "reads an inbox it does not have";
		what = mem_read(mem, cell, place->space, &step->access, value);
		/* what is read at another rank was received; the rest is our own, and a
		 * message of another host was judged when it was taken */
		if (!what && place->rank != step->program->rank &&
			place->space < PLACE_INBOX && is_stale(step, cell, received++))
			what = "receives what was written after it was sent";
	}
	return what;
}

static const char *run_chunk(const struct step *step, uint32_t chunk)
{
	const struct move *move = step->move;
	struct mem *mem = &step->run->mem;
	struct value value = {0};
	const char *what = fold_inputs(step, chunk, &value);

	if (!what && move->op & OP_POST)
		what = mem_post(&value);
	for (uint32_t i = 0; i < move->output_count && !what; i++) {
		const struct place *place =
			&step->program->places[move->output_first + i];

		if (place->space == PLACE_IN)
			return "writes the input";
		what = mem_write(mem,
			mem_cell(mem, place, step->program->rank, step->access.tile,
				chunk),
			&step->access, &value);
	}
	return what;
}

/* The move that lane `lane` of a rank is at. */
static struct step step_at(struct run *run, uint32_t rank, uint32_t lane)
{
	const struct program *program = run->programs[rank];
	uint32_t me = rank * run->lane_max + lane;
	const struct runner *runner = &run->runners[me];

	return (struct step){.run = run,
		.program = program,
		.move = &program->lanes[lane].moves[runner->move],
		.access = {.clocks = &run->clocks,
			.lane = me,
			.pos = runner->position + 1,
			.tile = runner->tile}};
}

/* A wait is over: learn what that teaches, and take the message if there is one. */
static const char *learn(const struct step *step, const struct wait *wait)
{
	struct run *run = step->run;
	uint32_t position = wait_position(run, step->program, wait, step->access.tile);
	struct posting like = {.position = position, .move = step->move};

	if (!position)
		return NULL;
	if (wait->kind == WAIT_SENT) {
		mail_cover(&run->mail, step->program, wait, position, &step->access);
		return NULL;
	}
	clocks_join(&run->clocks, step->access.lane,
		wait->rank * run->lane_max + wait->lane, position);
	if (!mail_is_data(&run->mail, step->program, wait))
		return NULL;
	for (uint32_t i = 0; i < step->move->input_count; i++) {
		const struct place *place =
			&step->program->places[step->move->input_first + i];

		if (place->space >= PLACE_INBOX && place->rank == wait->rank)
			like.chunk = place->chunk;
	}
	return mail_take(&run->mail, step->program, wait, &like, &step->access);
}

static enum err run_move(struct run *run, uint32_t rank, uint32_t lane)
{
	const struct program *program = run->programs[rank];
	struct step step = step_at(run, rank, lane);
	struct runner *runner = &run->runners[step.access.lane];
	const struct move *move = step.move;
	const char *what = mail_judge(&run->mail, program, move);
	enum err e;

	if (move->output_count)
		for (uint32_t c = 0; c < move->count && !what; c++)
			what = run_chunk(&step, c);
	if (!what)
		what = mail_send(&run->mail, program, move, &step.access);
	if (what)
		return wrong_move(run, rank, lane, what);
	e = clocks_retire(&run->clocks, step.access.lane);
	runner->position++;
	runner->wait = 0;
	if (move->publish)
		runner->announced = runner->position;
	if (++runner->move == program->lanes[lane].count) {
		runner->move = 0;
		runner->tile++;
	}
	if (run->mem.out_of_memory)
		return err_set(ERR_SYSTEM, "no memory to check a schedule");
	return e;
}

/* Run a lane as far as it gets; `progress` is set when it got anywhere. */
static enum err run_lane(struct run *run, uint32_t rank, uint32_t lane, bool *progress)
{
	const struct program *program = run->programs[rank];
	struct runner *runner = &run->runners[rank * run->lane_max + lane];
	enum err e = OK;

	if (lane >= program->lane_count || !program->lanes[lane].count)
		return OK;
	while (!e && runner->tile < run->tile_count) {
		struct step step = step_at(run, rank, lane);

		for (; runner->wait < step.move->wait_count; runner->wait++) {
			const struct wait *wait =
				&program->waits[step.move->wait_first + runner->wait];
			const char *what;

			if (!wait_is_over(run, program, wait, runner->tile))
				return OK;
			*progress = true; /* a message taken is one that has left */
			what = learn(&step, wait);
			if (what)
				return wrong_move(run, rank, lane, what);
		}
		e = run_move(run, rank, lane);
		*progress = true;
	}
	return e;
}

static bool lane_is_done(const struct run *run, uint32_t rank, uint32_t lane)
{
	return lane >= run->programs[rank]->lane_count || !lane_length(run, rank, lane) ||
	       run->runners[rank * run->lane_max + lane].tile == run->tile_count;
}

/* All moves are made: each rank waits for its drain and hands the buffers back. */
static enum err leave(struct run *run, uint32_t rank)
{
	const struct program *program = run->programs[rank];
	uint32_t me = rank * run->lane_max;
	const struct step step = {.run = run,
		.program = program,
		.access = {.clocks = &run->clocks,
			.lane = me,
			.pos = run->runners[me].position,
			.tile = run->tile_count - 1}};
	const char *what;

	for (uint32_t lane = 1; lane < run->lane_max; lane++)
		clocks_join(
			&run->clocks, me, me + lane, run->runners[me + lane].position);
	for (uint32_t i = 0; i < program->drain_count; i++) {
		const struct wait *wait = &program->waits[program->drain_first + i];

		if (!wait_is_over(run, program, wait, run->tile_count - 1))
			return wrong(run->report, "rank %u never returns", rank);
		learn(&step, wait);
	}
	what = mail_leave(&run->mail, program);
	if (!what)
		what = mem_leave(&run->mem, &run->scheds[rank], &run->clocks, me);
	return what ? wrong(run->report, "rank %u %s", rank, what) : OK;
}

static enum err run_all(struct run *run)
{
	bool progress = true;
	enum err e = OK;

	while (progress && !e) {
		progress = false;
		for (uint32_t r = 0; r < run->args->rank_count && !e; r++)
			for (uint32_t lane = 0; lane < run->lane_max && !e; lane++)
				e = run_lane(run, r, lane, &progress);
	}
	for (uint32_t r = 0; r < run->args->rank_count && !e; r++)
		for (uint32_t lane = 0; lane < run->lane_max && !e; lane++)
			if (!lane_is_done(run, r, lane))
				e = wrong_move(run, r, lane, "waits for ever");
	for (uint32_t r = 0; r < run->args->rank_count && !e; r++)
		e = leave(run, r);
	return e;
}

static enum err run_init(struct run *run)
{
	uint32_t n = run->args->rank_count, lane_count = n * run->lane_max;
	uint32_t *lengths = calloc(lane_count, sizeof(*lengths));
	enum err e;

	run->runners = calloc(lane_count, sizeof(*run->runners));
	if (!lengths || !run->runners) {
		free(lengths);
		return err_set(ERR_SYSTEM, "no memory to check %u ranks", n);
	}
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t lane = 0; lane < run->programs[r]->lane_count; lane++)
			lengths[r * run->lane_max + lane] = lane_length(run, r, lane) *
							    run->tile_count;
	e = clocks_init(&run->clocks, lane_count, lengths);
	free(lengths);
	if (e)
		return e;
	run->mem.programs = run->programs;
	run->mem.tile_count = run->tile_count;
	run->mem.lane_max = run->lane_max;
	e = mem_init(&run->mem, run->scheds, run->args);
	return e ? e : mail_init(&run->mail, run->programs, run->args, &run->mem);
}

static void run_fini(struct run *run)
{
	free(run->runners);
	clocks_fini(&run->clocks);
	mail_fini(&run->mail);
	mem_fini(&run->mem);
}

/* The schedules must be of one collective before it means anything to run them. */
static enum err check_family(
	const struct sched *scheds, uint32_t rank_count, struct check_report *report)
{
	const struct sched *first = &scheds[0];

	for (uint32_t r = 0; r < rank_count; r++) {
		const struct sched *s = &scheds[r];

		if (s->coll != first->coll || s->root != first->root || s->rank != r ||
			s->chunk_count != first->chunk_count || !s->chunk_count ||
			s->rank_count != rank_count || s->lane_count < 1 ||
			s->lane_count > SCHED_LANES_MAX || s->root >= rank_count)
			return wrong(report, "rank %u is of another family", r);
	}
	return OK;
}

enum err check_programs(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args, struct check_report *report)
{
	struct run run = {
		.scheds = scheds, .args = args, .report = report, .programs = programs};
	enum err e;

	*report = (struct check_report){""};
	/* slots come round after `depth` tiles at the latest */
	run.tile_count = args->depth < TILES_MIN ? TILES_MIN : args->depth + 1;
	for (uint32_t r = 0; r < args->rank_count; r++)
		if (scheds[r].lane_count > run.lane_max)
			run.lane_max = scheds[r].lane_count;
	e = run_init(&run);
	if (!e)
		e = run_all(&run);
	run_fini(&run);
	return e;
}

enum err check_scheds(const struct sched *scheds, const struct check_args *args,
	struct check_report *report)
{
	struct lower_args lower = {.kind = args->kind,
		.rank_count = args->rank_count,
		.root = args->root,
		.mode = args->mode,
		.depth = args->depth,
		.hosts = args->hosts};
	struct program **programs;
	enum err e;

	*report = (struct check_report){""};
	if (!args->rank_count || args->rank_count > CHECK_RANKS_MAX)
		return err_set(ERR_ARGUMENT, "cannot check %u ranks", args->rank_count);
	if (args->in_place && scheds[0].coll == COLL_ALL_TO_ALL)
		return err_set(ERR_ARGUMENT, "alltoall has no in-place form");
	e = check_family(scheds, args->rank_count, report);
	if (e)
		return e;
	programs = calloc(args->rank_count, sizeof(struct program *));
	e = programs ? program_lower_all(scheds, &lower, programs)
		     : err_set(ERR_SYSTEM, "no memory to check a schedule");
	if (e == ERR_USAGE)
		wrong(report, "%s", err_last());
	if (!e)
		e = check_programs(scheds, programs, args, report);
	for (uint32_t r = 0; programs && r < args->rank_count; r++)
		program_destroy(programs[r]);
	free(programs);
	return e;
}

enum err check_schedule(const struct check_args *args, struct check_report *report)
{
	uint32_t n = args->rank_count, written = 0;
	struct sched *scheds = calloc(n ? n : 1, sizeof(*scheds));
	struct sched_hosts *hosts = NULL;
	enum err e = OK;

	*report = (struct check_report){""};
	if (!scheds)
		return err_set(ERR_SYSTEM, "no memory for %u schedules", n);
	if (!n)
		e = err_set(ERR_ARGUMENT, "cannot check a schedule of no ranks");
	else if (args->hosts)
		e = sched_hosts_create(args->hosts, n, &hosts);
	while (!e && written < n) {
		e = hosts ? catalog_write_hosts(args->kind, hosts, written, args->root,
				    &scheds[written])
			  : catalog_write(
				    args->kind, n, written, args->root, &scheds[written]);
		written += !e;
	}
	if (!e)
		e = check_scheds(scheds, args, report);
	for (uint32_t r = 0; r < written; r++)
		sched_fini(&scheds[r]);
	free(scheds);
	sched_hosts_destroy(hosts);
	return e;
}

uint32_t check_min_depth(const struct sched_kind *kind, uint32_t rank_count,
	uint32_t root, uint32_t depth_max)
{
	struct check_args args = {.kind = kind,
		.rank_count = rank_count,
		.root = root,
		.mode = MODE_STAGED};
	struct check_report report;

	for (args.depth = 1; args.depth <= depth_max; args.depth++)
		if (check_schedule(&args, &report) == OK)
			return args.depth;
	return 0;
}
