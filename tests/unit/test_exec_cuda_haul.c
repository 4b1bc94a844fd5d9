/* Messages between hosts of a staged launch: both ends list the same ones, and what is
 * said to be free has been read. Schedules that know hosts are proved as they are lowered
 * here, as if all ranks shared memory. */
#include "exec/cuda/lists/haul.h"

#include <stdlib.h>

#include <string.h>

#include "exec/cuda/lists/steps.h"
#include "sched/check.h"
#include "test.h"

enum { RANKS = 8, DEPTH = 4, TILES = 5, SLOTS = 512 };

static const char *const spreads[] = {
	"2x1", "4x1", "2x2", "3+1", "0,1,0,1", "2x4", "3x2"};

struct lowered {
	const struct sched_kind *kind;
	struct sched_hosts *hosts;
	struct sched scheds[RANKS];
	struct program *programs[RANKS];
	struct haul_list *lists[RANKS];
};

static void lower(struct lowered *job, uint32_t root)
{
	struct lower_args args = {.kind = job->kind,
		.rank_count = job->hosts->rank_count,
		.root = root,
		.mode = MODE_STAGED,
		.depth = DEPTH};

	for (uint32_t r = 0; r < job->hosts->rank_count; r++)
		TRUE(!catalog_write_hosts(
			job->kind, job->hosts, r, root, &job->scheds[r]));
	TRUE(!program_lower_all(job->scheds, &args, job->programs));
	for (uint32_t r = 0; r < job->hosts->rank_count; r++)
		TRUE(!haul_list_make(job->programs, r, job->hosts->host, &job->lists[r]));
}

static void proof(const struct lowered *job, uint32_t root)
{
	struct check_report report;
	struct check_args args = {.kind = job->kind,
		.rank_count = job->hosts->rank_count,
		.root = root,
		.mode = MODE_STAGED,
		.depth = DEPTH};
	enum err e = check_programs(job->scheds, job->programs, &args, &report);

	if (e)
		fprintf(stderr, "%s %s: %s\n", coll_name(job->kind->coll),
			job->kind->name, report.text);
	TRUE(!e);
}

static void end(struct lowered *job)
{
	for (uint32_t r = 0; r < job->hosts->rank_count; r++) {
		haul_list_free(job->lists[r]);
		program_destroy(job->programs[r]);
		sched_fini(&job->scheds[r]);
	}
}

static const struct haul_line *line_find(
	const struct haul_list *list, uint32_t rank, uint32_t lane, bool is_out)
{
	for (uint32_t i = 0; i < list->line_count; i++)
		if (list->lines[i].rank == rank && list->lines[i].lane == lane &&
			list->lines[i].is_out == is_out)
			return &list->lines[i];
	return NULL;
}

/* What one end sends the other takes. */
static void lines_mirror(const struct lowered *job, uint32_t rank)
{
	const struct haul_list *list = job->lists[rank];

	for (uint32_t i = 0; i < list->line_count; i++) {
		const struct haul_line *line = &list->lines[i];
		const struct haul_list *other = job->lists[line->rank];
		const struct haul_line *mirror = line_find(
			other, rank, line->lane, !line->is_out);

		TRUE(mirror && mirror->count == line->count);
		TRUE(mirror->near_length == line->far_length);
		TRUE(job->hosts->host[rank] != job->hosts->host[line->rank]);
		TRUE(!memcmp(&list->messages[line->first],
			&other->messages[mirror->first],
			line->count * sizeof(*list->messages)));
	}
}

/* As many as the program says are told on other hosts. */
static void all_there(const struct lowered *job, uint32_t rank)
{
	const struct program *program = job->programs[rank];
	uint32_t told = 0, listed = 0;

	for (uint32_t lane = 0; lane < program->lane_count; lane++)
		for (uint32_t m = 0; m < program->lanes[lane].count; m++) {
			const struct move *move = &program->lanes[lane].moves[m];

			for (uint32_t i = 0; i < move->send_count; i++)
				told += job->hosts->host[program->sends[move->send_first +
									i]] !=
					job->hosts->host[rank];
		}
	for (uint32_t i = 0; i < job->lists[rank]->line_count; i++)
		if (job->lists[rank]->lines[i].is_out)
			listed += job->lists[rank]->lines[i].count;
	TRUE(told == listed);
}

/* A slot is free when the last message that was in it has been taken. */
static void slots_free(const struct haul_list *list, const struct haul_line *line)
{
	static uint64_t taken[SLOTS];
	uint32_t length = line->is_out ? line->far_length : line->near_length;

	memset(taken, 0, sizeof(taken));
	for (uint32_t tile = 0; tile < TILES; tile++)
		for (uint32_t i = 0; i < line->count; i++) {
			const struct haul_message *message =
				&list->messages[line->first + i];
			uint32_t number = tile * message->period + message->chunk;
			uint32_t slot = message->slot + number % DEPTH;
			uint64_t want = tile < message->back
						? 0
						: (uint64_t)(tile - message->back) *
								  length +
							  message->free;

			TRUE(slot < SLOTS);
			TRUE(taken[slot] == want);
			taken[slot] = (uint64_t)tile * length + message->taken;
		}
}

static void job_check(struct lowered *job, uint32_t root)
{
	lower(job, root);
	if (job->kind->drivers != DRIVERS_NONE)
		proof(job, root);
	for (uint32_t r = 0; r < job->hosts->rank_count; r++) {
		lines_mirror(job, r);
		all_there(job, r);
		for (uint32_t i = 0; i < job->lists[r]->line_count; i++)
			slots_free(job->lists[r], &job->lists[r]->lines[i]);
	}
	end(job);
}

static void all_jobs(void)
{
	uint32_t count = 0;

	for (size_t s = 0; s < sizeof(spreads) / sizeof(*spreads); s++) {
		struct lowered job = {0};

		TRUE(!sched_hosts_read(spreads[s], &job.hosts));
		for (uint32_t k = 0; (job.kind = catalog_at(k)); k++) {
			if (!catalog_suits(job.kind, job.hosts, job.hosts->rank_count))
				continue;
			job_check(&job, 0);
			if (coll_has_root(job.kind->coll))
				job_check(&job, job.hosts->rank_count - 1);
			count++;
		}
		sched_hosts_destroy(job.hosts);
	}
	TRUE(count > 100);
}

/* Tiles of eight channels whose stages are of 512 KiB, which docs/design/14 tells. */
static size_t tile_of(const char *spread, const char *name)
{
	const struct steps_room room = {
		.codec = STEPS_SIMPLE, .channels = 8, .stage_bytes = 512 << 10};
	struct lowered job = {.kind = catalog_find(COLL_ALL_REDUCE, name)};
	struct dev_steps *steps = NULL;
	struct steps_args args = {0};
	size_t bytes = 0;

	TRUE(!sched_hosts_read(spread, &job.hosts));
	lower(&job, 0);
	TRUE(!steps_flatten(job.programs, &steps, &bytes));
	TRUE(steps_fit(steps, &room, 16 << 20, &args));
	end(&job);
	free(steps);
	sched_hosts_destroy(job.hosts);
	return args.tile_bytes;
}

static void tiles(void)
{
	EQ(tile_of("4x2", "hosts-tree"), 12800);
	EQ(tile_of("4x2", "hosts-direct"), 6400);
}

/* A vector is cut as steps_shape() cuts it, and every byte is somebody's. */
static void bytes_whole(void)
{
	const struct haul_shape shape = {.chunk_bytes = 1024,
		.total_bytes = 3000,
		.part_bytes = 384,
		.tile_bytes = 256,
		.tile_count = 2,
		.channels = 3,
		.depth = DEPTH,
		.is_vector = true};
	size_t sum = 0;

	for (uint16_t chunk = 0; chunk < 3; chunk++)
		for (uint32_t channel = 0; channel < 3; channel++)
			for (uint32_t tile = 0; tile < 2; tile++) {
				const struct haul_message message = {
					.bound = chunk, .count = 1};

				sum += haul_bytes(&shape, &message, channel, tile, 0);
			}
	TRUE(sum == 3000);
	TRUE(haul_bytes(&shape, &(struct haul_message){.bound = 2}, 2, 1, 0) == 0);
	TRUE(haul_bytes(&shape, &(struct haul_message){.bound = 2}, 2, 0, 0) == 184);
}

int main(void)
{
	all_jobs();
	bytes_whole();
	tiles();
	return 0;
}
