#include "exec/cuda/lists/moves.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_ALIGNMENT = 16 };

/* Does this move carry bytes, or does it only tell somebody that they are there? */
static bool is_work(const struct move *move)
{
	return move->output_count > 0 && move->input_count > 0;
}

static void count_all(struct program *const *programs, uint32_t rank_count,
	uint32_t *move_count, uint32_t *place_count)
{
	*move_count = *place_count = 0;
	for (uint32_t r = 0; r < rank_count; r++)
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count; m++) {
				const struct move *move = &programs[r]->lanes[l].moves[m];

				if (!is_work(move))
					continue;
				++*move_count;
				*place_count += move->input_count + move->output_count;
			}
}

/* The move of `rank` that writes this place; NULL when there is none. */
static const struct move *writer_of(
	const struct program *program, const struct place *wanted)
{
	for (uint32_t l = 0; l < program->lane_count; l++)
		for (uint32_t m = 0; m < program->lanes[l].count; m++) {
			const struct move *move = &program->lanes[l].moves[m];

			for (uint32_t i = 0; i < move->output_count; i++) {
				const struct place *place =
					&program->places[move->output_first + i];

				if (place->rank == wanted->rank &&
					place->space == wanted->space &&
					place->chunk == wanted->chunk)
					return move;
			}
		}
	return NULL;
}

/* What is read from OUT was copied there from IN: read it where it comes from, so that
 * nobody waits for the copy. */
static enum err place_read(
	struct program *const *programs, const struct place *from, struct dev_place *to)
{
	const struct move *writer = NULL;

	if (from->space == PLACE_OUT)
		writer = writer_of(programs[from->rank], from);
	if (writer && writer->input_count == 1 && !(writer->op & OP_POST))
		from = &programs[from->rank]->places[writer->input_first];
	if (from->space != PLACE_IN)
		return err_set(ERR_INTERNAL,
			"a direct schedule that reads what another move makes");
	*to = (struct dev_place){
		.rank = from->rank, .space = from->space, .chunk = from->chunk};
	return OK;
}

static enum err place_write(const struct place *from, struct dev_place *to)
{
	if (from->space != PLACE_OUT)
		return err_set(ERR_INTERNAL, "a direct schedule that writes beside OUT");
	*to = (struct dev_place){
		.rank = from->rank, .space = from->space, .chunk = from->chunk};
	return OK;
}

/* The moves of all ranks: rank r does [first[r], first[r + 1]). Places are those of the
 * moves, in their order; `first` of a move is into all of them. */
struct list {
	uint32_t rank_count, move_count, place_count;
	uint32_t first[MOVES_RANKS_MAX + 1];
	struct dev_move *moves;	  /* owned */
	struct dev_place *places; /* owned */
};

static enum err list_create(
	uint32_t rank_count, uint32_t moves, uint32_t places, struct list *list)
{
	*list = (struct list){.rank_count = rank_count,
		.moves = calloc(moves + 1, sizeof(*list->moves)),
		.places = calloc(places + 1, sizeof(*list->places))};
	return list->moves && list->places
		       ? OK
		       : err_set(ERR_SYSTEM, "no memory for a list of moves");
}

static void list_free(struct list *list)
{
	free(list->moves);
	free(list->places);
}

static enum err move_write(struct list *to, struct program *const *programs,
	const struct program *program, const struct move *move)
{
	uint32_t *used = &to->place_count;
	enum err e = OK;

	to->moves[to->move_count++] = (struct dev_move){.first = (uint16_t)*used,
		.input_count = (uint16_t)move->input_count,
		.output_count = (uint16_t)move->output_count,
		.count = move->count,
		.op = move->op & OP_POST};
	for (uint32_t i = 0; i < move->input_count && !e; i++)
		e = place_read(programs, &program->places[move->input_first + i],
			&to->places[(*used)++]);
	for (uint32_t i = 0; i < move->output_count && !e; i++)
		e = place_write(
			&program->places[move->output_first + i], &to->places[(*used)++]);
	return e;
}

static enum err list_write(
	struct program *const *programs, uint32_t rank_count, struct list *list)
{
	uint32_t move_count, place_count;
	enum err e;

	count_all(programs, rank_count, &move_count, &place_count);
	e = list_create(rank_count, move_count, place_count, list);
	for (uint32_t r = 0; r < rank_count && !e; r++) {
		list->first[r] = list->move_count;
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count && !e; m++)
				if (is_work(&programs[r]->lanes[l].moves[m]))
					e = move_write(list, programs, programs[r],
						&programs[r]->lanes[l].moves[m]);
	}
	list->first[rank_count] = list->move_count;
	return e;
}

/* Do two moves only copy, and from the same place? */
static bool is_same_copy(const struct list *list, uint32_t a, uint32_t b)
{
	const struct dev_move *moves = list->moves;

	return moves[a].input_count == 1 && moves[b].input_count == 1 &&
	       moves[a].count == moves[b].count && !moves[a].op && !moves[b].op &&
	       !memcmp(&list->places[moves[a].first], &list->places[moves[b].first],
		       sizeof(*list->places));
}

/* The first move that copies from the same place: the one that this is joined with. */
static uint32_t joined_with(const struct list *list, uint32_t move)
{
	for (uint32_t i = 0; i < move; i++)
		if (is_same_copy(list, i, move))
			return i;
	return move;
}

static void places_copy(
	struct list *to, const struct dev_place *from, uint32_t count, uint32_t chunk)
{
	for (uint32_t i = 0; i < count; i++) {
		to->places[to->place_count] = from[i];
		to->places[to->place_count++].chunk = chunk;
	}
}

/* Rank `chunk`'s share: what every move does, on that chunk. */
static void share_write(const struct list *list, uint32_t chunk, struct list *to)
{
	for (uint32_t m = 0; m < list->move_count; m++) {
		struct dev_move *move = &to->moves[to->move_count];
		const struct dev_place *places = &list->places[list->moves[m].first];

		if (joined_with(list, m) != m)
			continue;
		to->move_count++;
		*move = list->moves[m];
		move->first = (uint16_t)to->place_count;
		places_copy(to, places, move->input_count, chunk);
		for (uint32_t i = m; i < list->move_count; i++)
			if (joined_with(list, i) == m)
				places_copy(to,
					&list->places[list->moves[i].first +
						      list->moves[i].input_count],
					list->moves[i].output_count, chunk);
		move->output_count =
			(uint16_t)(to->place_count - move->first - move->input_count);
	}
}

/* A vector that is not cut is moved by one rank, or read by many. Cut it, a chunk for
 * each rank, and let copies of the same bytes be one: everybody has as much to do, and
 * nothing is read twice. */
static enum err list_spread(struct list *list)
{
	uint32_t n = list->rank_count;
	struct list spread;
	enum err e = list_create(n, list->move_count * n, list->place_count * n, &spread);

	for (uint32_t r = 0; r < n && !e; r++) {
		spread.first[r] = spread.move_count;
		share_write(list, r, &spread);
	}
	spread.first[n] = spread.move_count;
	list_free(list);
	*list = spread;
	return e;
}

static uint32_t rank_places(const struct list *list, uint32_t rank)
{
	uint32_t count = 0;

	for (uint32_t m = list->first[rank]; m < list->first[rank + 1]; m++)
		count += list->moves[m].input_count + list->moves[m].output_count;
	return count;
}

static size_t page_bytes(const struct list *list, uint32_t rank)
{
	size_t moves = list->first[rank + 1] - list->first[rank];
	size_t bytes = sizeof(struct dev_page) + moves * sizeof(struct dev_move) +
		       rank_places(list, rank) * sizeof(struct dev_place);

	return (bytes + PAGE_ALIGNMENT - 1) / PAGE_ALIGNMENT * PAGE_ALIGNMENT;
}

static void page_write(
	const struct list *list, uint32_t rank, bool is_vector, struct dev_page *page)
{
	uint32_t begin = list->first[rank], count = list->first[rank + 1] - begin;
	struct dev_move *moves = (struct dev_move *)(page + 1);
	struct dev_place *places = (struct dev_place *)(moves + count);
	uint32_t used = 0;

	*page = (struct dev_page){count, rank_places(list, rank), {0}};
	for (uint32_t m = 0; m < count; m++) {
		const struct dev_move *from = &list->moves[begin + m];
		uint32_t all = from->input_count + from->output_count;

		moves[m] = *from;
		moves[m].first = (uint16_t)used;
		if (is_vector)
			moves[m].chunk = list->places[from->first].chunk;
		memcpy(&places[used], &list->places[from->first], all * sizeof(*places));
		used += all;
	}
}

static enum err pages_write(
	const struct list *list, bool is_vector, struct move_pages *pages)
{
	size_t longest = 0;
	bool fits = true;

	for (uint32_t r = 0; r < list->rank_count; r++) {
		size_t bytes = page_bytes(list, r);

		longest = bytes > longest ? bytes : longest;
		fits = fits && rank_places(list, r) <= PAGE_PLACES_MAX;
	}
	if (longest > PAGE_BYTES_MAX || !fits)
		return err_set(ERR_INTERNAL, "a list of moves longer than a page");
	pages->page_bytes = longest;
	pages->bytes = longest * list->rank_count;
	pages->data = calloc(list->rank_count, longest);
	if (!pages->data)
		return err_set(ERR_SYSTEM, "no memory for a list of moves");
	for (uint32_t r = 0; r < list->rank_count; r++)
		page_write(list, r, is_vector,
			(struct dev_page *)((char *)pages->data + r * longest));
	return OK;
}

enum err moves_flatten(struct program *const *programs, struct move_pages *pages)
{
	enum coll coll = programs[0]->coll;
	uint32_t rank_count = programs[0]->rank_count;
	struct list list = {0};
	enum err e;

	if (rank_count > MOVES_RANKS_MAX)
		return err_set(ERR_USAGE,
			"%s of %u ranks on one GPU; at most %d can share it",
			coll_name(coll), rank_count, MOVES_RANKS_MAX);
	e = list_write(programs, rank_count, &list);
	if (!e && coll_is_vector(coll) && programs[0]->chunk_count == 1)
		e = list_spread(&list);
	if (!e)
		e = pages_write(&list, coll_is_vector(coll), pages);
	list_free(&list);
	return e;
}
