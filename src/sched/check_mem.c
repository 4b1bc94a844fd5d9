#include "sched/check_mem.h"

#include <stdlib.h>
#include <string.h>

static enum err mem_lay_out(
	struct mem *mem, const struct sched *scheds, const struct check_args *args)
{
	size_t total = 0;

	for (uint32_t r = 0; r < mem->rank_count; r++) {
		struct rank_cells *cells = &mem->ranks[r];

		cells->chunks = sched_layout(&scheds[r], args->in_place);
		cells->user = (uint32_t)total;
		total += (size_t)cells->chunks.count * mem->tile_count;
		cells->tmp = (uint32_t)total;
		total += scheds[r].tmp_count;
		cells->stage = (uint32_t)total;
		total += (size_t)mem->programs[r]->slot_count *
			 mem->programs[r]->slot_chunks;
		cells->inbox = (uint32_t)total;
		total += (size_t)mem->programs[r]->net_rx_count *
			 mem->programs[r]->inbox_chunks;
	}
	if (total > UINT32_MAX / 2)
		return err_set(ERR_USAGE, "a schedule of %zu cells is too large to check",
			total);
	mem->cell_count = (uint32_t)total;
	mem->cells = calloc(total, sizeof(*mem->cells));
	mem->sets = calloc(total * mem->word_count, sizeof(*mem->sets));
	mem->reader_room = 1024;
	mem->reader_count = 1;
	mem->readers = calloc(mem->reader_room, sizeof(*mem->readers));
	mem->letter_room = mem->listed_room = 64;
	mem->listed_count = 1;
	mem->letters = calloc(mem->letter_room, sizeof(*mem->letters));
	mem->listed = calloc(mem->listed_room, sizeof(*mem->listed));
	if (!mem->cells || !mem->sets || !mem->readers || !mem->letters || !mem->listed)
		return err_set(ERR_SYSTEM, "no memory for %zu cells", total);
	return OK;
}

/* What chunk `chunk` of rank `rank` is called. */
static uint32_t symbol_of(enum coll coll, uint32_t rank, uint32_t chunk)
{
	return coll_reduces(coll) ? chunk : rank << 16 | chunk;
}

static void mem_fill(struct mem *mem, const struct sched *sched)
{
	const struct rank_cells *cells = &mem->ranks[sched->rank];

	for (uint32_t tile = 0; tile < mem->tile_count; tile++)
		for (uint32_t c = 0; c < cells->chunks.in_count; c++) {
			uint32_t at = cells->user + tile * cells->chunks.count +
				      cells->chunks.in_offset + c;
			struct mem_cell *cell = &mem->cells[at];

			cell->symbol = symbol_of(sched->coll, sched->rank, c);
			cell->tile = (uint16_t)tile;
			cell->flags = CELL_FULL | CELL_INPUT;
			mem->sets[(size_t)at * mem->word_count + sched->rank / 64] =
				1ull << sched->rank % 64;
		}
}

enum err mem_init(
	struct mem *mem, const struct sched *scheds, const struct check_args *args)
{
	struct mem m = {.programs = mem->programs,
		.rank_count = args->rank_count,
		.word_count = (args->rank_count + 63) / 64,
		.tile_count = mem->tile_count,
		.lane_max = mem->lane_max,
		.depth = args->depth};
	enum err e;

	m.ranks = calloc(m.rank_count, sizeof(*m.ranks));
	e = m.ranks ? mem_lay_out(&m, scheds, args)
		    : err_set(ERR_SYSTEM, "no memory for %u ranks", m.rank_count);
	if (e) {
		mem_fini(&m);
		return e;
	}
	for (uint32_t r = 0; r < m.rank_count; r++)
		mem_fill(&m, &scheds[r]);
	*mem = m;
	return OK;
}

void mem_fini(struct mem *mem)
{
	free(mem->ranks);
	free(mem->cells);
	free(mem->sets);
	free(mem->readers);
	free(mem->letters);
	free(mem->listed);
	*mem = (struct mem){0};
}

static uint32_t inbox_cell(
	const struct mem *mem, const struct place *place, uint32_t rank, uint32_t chunk)
{
	const struct program *program = mem->programs[rank];

	for (uint32_t i = 0; i < program->net_rx_count; i++)
		if (program->net_rx[i].rank == place->rank &&
			program->net_rx[i].lane == place->lane)
			return mem->ranks[rank].inbox + i * program->inbox_chunks + chunk;
	return MEM_NOWHERE;
}

uint32_t mem_cell(const struct mem *mem, const struct place *place, uint32_t rank,
	uint32_t tile, uint32_t chunk)
{
	const struct rank_cells *cells = &mem->ranks[place->rank];
	uint32_t user = cells->user + tile * cells->chunks.count + chunk;

	switch ((enum place_space)place->space) {
	case PLACE_IN:
		return user + cells->chunks.in_offset + place->chunk;
	case PLACE_OUT:
		return user + cells->chunks.out_offset + place->chunk;
	case PLACE_TMP:
		return cells->tmp + place->chunk + chunk;
	case PLACE_STAGE:
		break;
	case PLACE_INBOX:
	case PLACE_INBOX_IN:
		return inbox_cell(mem, place, rank, chunk);
	}
	return cells->stage + chunk +
	       (place->slot + (tile * place->period + place->chunk) % mem->depth) *
		       mem->programs[place->rank]->slot_chunks;
}

/* Room for one more in a list of things of `size` bytes. */
static bool list_grow(
	struct mem *mem, void **list, uint32_t count, uint32_t *room, size_t size)
{
	void *grown;

	if (count < *room)
		return true;
	grown = realloc(*list, 2 * (size_t)*room * size);
	if (!grown) {
		mem->out_of_memory = true;
		return false;
	}
	*list = grown;
	*room *= 2;
	return true;
}

/* A reader that is ordered before the new one needs no remembering: whoever waits for
 * the new one has waited for it too. */
static void note_reader(
	struct mem *mem, struct mem_cell *cell, const struct access *access)
{
	bool ordered = !cell->read_pos || clocks_know(access->clocks, access->lane,
						  cell->read_lane, cell->read_pos);

	if (!ordered) {
		if (!list_grow(mem, (void **)&mem->readers, mem->reader_count,
			    &mem->reader_room, sizeof(*mem->readers)))
			return;
		mem->readers[mem->reader_count] = (struct cell_reader){
			cell->read_lane, cell->read_pos, cell->readers};
		cell->readers = mem->reader_count++;
	}
	cell->read_lane = access->lane;
	cell->read_pos = access->pos;
}

static bool writer_is_before(
	const struct mem_cell *cell, const struct clocks *clocks, uint32_t lane)
{
	return !cell->write_pos ||
	       clocks_know(clocks, lane, cell->write_lane, cell->write_pos);
}

static bool readers_are_before(const struct mem *mem, const struct mem_cell *cell,
	const struct clocks *clocks, uint32_t lane)
{
	if (cell->read_pos && !clocks_know(clocks, lane, cell->read_lane, cell->read_pos))
		return false;
	for (uint32_t i = cell->readers; i; i = mem->readers[i].next)
		if (!clocks_know(clocks, lane, mem->readers[i].lane, mem->readers[i].pos))
			return false;
	return true;
}

/* Does the lane know of every message from here that it has left? It has learned so
 * itself, or knows the sender to be where it had. */
static bool letters_have_left(const struct mem *mem, const struct mem_cell *cell,
	const struct clocks *clocks, uint32_t lane)
{
	for (uint32_t i = cell->letters; i; i = mem->listed[i].next) {
		const struct mem_letter *letter = &mem->letters[mem->listed[i].letter];
		bool left = false;

		for (uint32_t k = 0; k < mem->lane_max; k++)
			left = left || (letter->learned[k] &&
					       clocks_know(clocks, lane, letter->lane + k,
						       letter->learned[k]));
		if (!left)
			return false;
	}
	return true;
}

static const char *value_add(struct value *value, const struct mem_cell *cell,
	const uint64_t *set, uint32_t words)
{
	bool posted = cell->flags & CELL_POSTED;

	if (!value->input_count++) {
		value->symbol = cell->symbol;
		value->posted = posted;
		memcpy(value->ranks, set, words * sizeof(*set));
		return NULL;
	}
	if (value->symbol != cell->symbol)
		return "folds two different chunks";
	if (value->posted || posted)
		return "folds a value the final operator was applied to";
	for (uint32_t i = 0; i < words; i++) {
		if (value->ranks[i] & set[i])
			return "counts a rank twice";
		value->ranks[i] |= set[i];
	}
	return NULL;
}

const char *mem_read(struct mem *mem, uint32_t index, uint32_t space,
	const struct access *access, struct value *value)
{
	struct mem_cell *cell = &mem->cells[index];
	bool as_input = space == PLACE_IN || space == PLACE_INBOX_IN;

	if (!(cell->flags & CELL_FULL))
		return "reads what was never written";
	if (!writer_is_before(cell, access->clocks, access->lane))
		return "reads while another lane may be writing";
	if (cell->tile != access->tile)
		return "reads the data of another tile";
	if (as_input && !(cell->flags & CELL_INPUT))
		return "reads the input after it was overwritten";
	if (!as_input && cell->flags & CELL_INPUT)
		return "reads the input past the first operator";
	note_reader(mem, cell, access);
	cell->flags &= (uint8_t)~CELL_UNREAD;
	return value_add(value, cell, &mem->sets[(size_t)index * mem->word_count],
		mem->word_count);
}

const char *mem_post(struct value *value)
{
	if (value->posted)
		return "applies the final operator twice";
	value->posted = true;
	return NULL;
}

const char *mem_write(struct mem *mem, uint32_t index, const struct access *access,
	const struct value *value)
{
	struct mem_cell *cell = &mem->cells[index];

	if (!writer_is_before(cell, access->clocks, access->lane))
		return "writes while another lane may be writing";
	if (!readers_are_before(mem, cell, access->clocks, access->lane))
		return "writes while another lane may be reading";
	if (!letters_have_left(mem, cell, access->clocks, access->lane))
		return "writes where a message may still be leaving from";
	if (cell->flags & CELL_UNREAD)
		return "overwrites what nobody has read";
	cell->symbol = value->symbol;
	cell->tile = (uint16_t)access->tile;
	cell->flags = CELL_FULL | CELL_UNREAD | (value->posted ? CELL_POSTED : 0);
	cell->write_lane = access->lane;
	cell->write_pos = access->pos;
	cell->read_pos = 0;
	cell->readers = 0;
	cell->letters = 0;
	memcpy(&mem->sets[(size_t)index * mem->word_count], value->ranks,
		mem->word_count * sizeof(*mem->sets));
	return NULL;
}

uint32_t mem_letter(struct mem *mem, uint32_t lane)
{
	if (!list_grow(mem, (void **)&mem->letters, mem->letter_count, &mem->letter_room,
		    sizeof(*mem->letters)))
		return 0;
	mem->letters[mem->letter_count] = (struct mem_letter){
		.lane = lane - lane % mem->lane_max};
	return mem->letter_count++;
}

const char *mem_send(
	struct mem *mem, uint32_t index, uint32_t letter, const struct access *access)
{
	struct mem_cell *cell = &mem->cells[index];

	if (!(cell->flags & CELL_FULL))
		return "sends what was never written";
	if (!writer_is_before(cell, access->clocks, access->lane))
		return "sends what another lane may be writing";
	if (cell->tile != access->tile)
		return "sends the data of another tile";
	cell->flags &= (uint8_t)~CELL_UNREAD;
	if (!list_grow(mem, (void **)&mem->listed, mem->listed_count, &mem->listed_room,
		    sizeof(*mem->listed)))
		return NULL;
	mem->listed[mem->listed_count] = (struct cell_letter){letter, cell->letters};
	cell->letters = mem->listed_count++;
	return NULL;
}

const char *mem_carry(
	struct mem *mem, uint32_t from, uint32_t to, const struct access *access)
{
	const struct mem_cell *cell = &mem->cells[from];
	struct value value = {
		.symbol = cell->symbol, .posted = cell->flags & CELL_POSTED};
	const char *what;

	memcpy(value.ranks, &mem->sets[(size_t)from * mem->word_count],
		mem->word_count * sizeof(*mem->sets));
	what = mem_write(mem, to, access, &value);
	mem->cells[to].flags |= cell->flags & CELL_INPUT;
	return what;
}

/* What OUT[chunk] must hold by the definition of the collective. */
static struct value expected(const struct sched *sched, uint32_t chunk)
{
	struct value value = {0};
	uint32_t from = sched->root, at = chunk;

	if (coll_reduces(sched->coll)) {
		value.posted = true;
		value.symbol = sched->coll == COLL_REDUCE_SCATTER ? sched->rank : chunk;
		for (uint32_t r = 0; r < sched->rank_count; r++)
			value.ranks[r / 64] |= 1ull << r % 64;
		return value;
	}
	if (sched->coll == COLL_ALL_GATHER || sched->coll == COLL_GATHER) {
		from = chunk;
		at = 0;
	} else if (sched->coll == COLL_ALL_TO_ALL) {
		from = chunk;
		at = sched->rank;
	} else if (sched->coll == COLL_SCATTER) {
		at = sched->rank;
	}
	value.symbol = symbol_of(sched->coll, from, at);
	value.ranks[from / 64] = 1ull << from % 64;
	return value;
}

static const char *check_result(const struct mem *mem, const struct sched *sched,
	const struct mem_cell *cell, uint32_t tile, uint32_t chunk)
{
	struct value want = expected(sched, chunk);
	uint32_t index = (uint32_t)(cell - mem->cells);

	if (!(cell->flags & CELL_FULL) || cell->flags & CELL_INPUT)
		return "leaves a part of OUT unwritten";
	if (cell->tile != tile || cell->symbol != want.symbol)
		return "leaves the wrong chunk in OUT";
	if (memcmp(want.ranks, &mem->sets[(size_t)index * mem->word_count],
		    mem->word_count * sizeof(*mem->sets)))
		return "leaves a sum in OUT that misses ranks";
	if (want.posted != !!(cell->flags & CELL_POSTED))
		return want.posted ? "never applies the final operator"
				   : "applies a final operator where there is none";
	return NULL;
}

const char *mem_leave(struct mem *mem, const struct sched *sched,
	const struct clocks *clocks, uint32_t lane)
{
	const struct rank_cells *cells = &mem->ranks[sched->rank];
	const char *wrong = NULL;

	for (uint32_t i = 0; i < cells->chunks.count * mem->tile_count; i++) {
		const struct mem_cell *cell = &mem->cells[cells->user + i];

		if (!writer_is_before(cell, clocks, lane) ||
			!readers_are_before(mem, cell, clocks, lane))
			return "returns while a peer may still use its buffers";
	}
	for (uint32_t tile = 0; tile < mem->tile_count; tile++)
		for (uint32_t c = 0; c < cells->chunks.out_count && !wrong; c++)
			wrong = check_result(mem, sched,
				&mem->cells[cells->user + tile * cells->chunks.count +
					    cells->chunks.out_offset + c],
				tile, c);
	for (uint32_t c = 0; c < sched->tmp_count && !wrong; c++)
		if (mem->cells[cells->tmp + c].flags & CELL_UNREAD)
			wrong = "writes TMP for nobody";
	return wrong;
}
