#include "exec/cuda/moves.h"

#include <stdlib.h>
#include <string.h>

#include "sched/lower.h"

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

/* Where moves and places go. */
struct writing {
	struct program *const *programs;
	struct dev_move *moves;
	struct dev_place *places;
	uint32_t move_count, place_count;
};

static enum err move_write(
	struct writing *at, const struct program *program, const struct move *move)
{
	uint32_t *used = &at->place_count;
	enum err e = OK;

	at->moves[at->move_count++] = (struct dev_move){.first = *used,
		.input_count = (uint16_t)move->input_count,
		.output_count = (uint16_t)move->output_count,
		.count = move->count,
		.op = move->op & OP_POST};
	for (uint32_t i = 0; i < move->input_count && !e; i++)
		e = place_read(at->programs, &program->places[move->input_first + i],
			&at->places[(*used)++]);
	for (uint32_t i = 0; i < move->output_count && !e; i++)
		e = place_write(
			&program->places[move->output_first + i], &at->places[(*used)++]);
	return e;
}

static struct dev_move *moves_of(const struct dev_moves *all)
{
	return (struct dev_move *)(uintptr_t)(all + 1);
}

static struct dev_place *places_of(const struct dev_moves *all)
{
	return (struct dev_place *)((char *)(uintptr_t)all + all->places_at);
}

static struct dev_moves *moves_alloc(
	uint32_t rank_count, uint32_t move_count, uint32_t place_count, size_t *bytes)
{
	struct dev_moves *head;

	*bytes = sizeof(*head) + move_count * sizeof(struct dev_move) +
		 place_count * sizeof(struct dev_place);
	head = calloc(1, *bytes);
	if (head)
		*head = (struct dev_moves){.rank_count = rank_count,
			.move_count = move_count,
			.place_count = place_count,
			.places_at = (uint32_t)(sizeof(*head) +
						move_count * sizeof(struct dev_move))};
	return head;
}

static enum err moves_write(struct program *const *programs, uint32_t rank_count,
	struct dev_moves **moves, size_t *bytes)
{
	struct writing at = {.programs = programs};
	uint32_t move_count, place_count;
	struct dev_moves *head;
	enum err e = OK;

	count_all(programs, rank_count, &move_count, &place_count);
	head = moves_alloc(rank_count, move_count, place_count, bytes);
	if (!head)
		return err_set(ERR_SYSTEM, "no memory for a list of moves");
	at.moves = moves_of(head);
	at.places = places_of(head);
	for (uint32_t r = 0; r < rank_count; r++) {
		head->first[r] = at.move_count;
		for (uint32_t l = 0; l < programs[r]->lane_count; l++)
			for (uint32_t m = 0; m < programs[r]->lanes[l].count && !e; m++)
				if (is_work(&programs[r]->lanes[l].moves[m]))
					e = move_write(&at, programs[r],
						&programs[r]->lanes[l].moves[m]);
	}
	head->first[rank_count] = at.move_count;
	*moves = head;
	if (e)
		free(head);
	return e;
}

/* Do two moves only copy, and from the same place? */
static bool is_same_copy(const struct dev_moves *all, uint32_t a, uint32_t b)
{
	const struct dev_move *moves = moves_of(all);
	const struct dev_place *places = places_of(all);

	return moves[a].input_count == 1 && moves[b].input_count == 1 &&
	       moves[a].count == moves[b].count && !moves[a].op && !moves[b].op &&
	       !memcmp(&places[moves[a].first], &places[moves[b].first], sizeof(*places));
}

/* The first move that copies from the same place: the one that this is joined with. */
static uint32_t joined_with(const struct dev_moves *all, uint32_t move)
{
	for (uint32_t i = 0; i < move; i++)
		if (is_same_copy(all, i, move))
			return i;
	return move;
}

static void places_copy(
	struct writing *at, const struct dev_place *from, uint32_t count, uint32_t chunk)
{
	for (uint32_t i = 0; i < count; i++) {
		at->places[at->place_count] = from[i];
		at->places[at->place_count++].chunk = chunk;
	}
}

/* Rank `chunk`'s share: what every move does, on that chunk. */
static void share_write(struct writing *at, const struct dev_moves *all, uint32_t chunk)
{
	const struct dev_move *moves = moves_of(all);
	const struct dev_place *places = places_of(all);

	for (uint32_t m = 0; m < all->move_count; m++) {
		struct dev_move *to = &at->moves[at->move_count];

		if (joined_with(all, m) != m)
			continue;
		at->move_count++;
		*to = moves[m];
		to->first = at->place_count;
		places_copy(at, &places[moves[m].first], moves[m].input_count, chunk);
		for (uint32_t other = m; other < all->move_count; other++)
			if (joined_with(all, other) == m)
				places_copy(at,
					&places[moves[other].first +
						moves[other].input_count],
					moves[other].output_count, chunk);
		to->output_count = (uint16_t)(at->place_count - to->first -
					      to->input_count);
	}
}

/* A vector that is not cut is moved by one rank, or read by many. Cut it, a chunk for
 * each rank, and let copies of the same bytes be one: everybody has as much to do, and
 * nothing is read twice. */
static enum err moves_spread(struct dev_moves **moves, size_t *bytes)
{
	struct dev_moves *all = *moves, *head;
	uint32_t n = all->rank_count, joined = 0;
	struct writing at;

	for (uint32_t m = 0; m < all->move_count; m++)
		joined += joined_with(all, m) != m; /* which have one input */
	head = moves_alloc(n, (all->move_count - joined) * n,
		(all->place_count - joined) * n, bytes);
	if (!head)
		return err_set(ERR_SYSTEM, "no memory for a list of moves");
	at = (struct writing){.moves = moves_of(head), .places = places_of(head)};
	for (uint32_t r = 0; r < n; r++) {
		head->first[r] = at.move_count;
		share_write(&at, all, r);
	}
	head->first[n] = at.move_count;
	free(all);
	*moves = head;
	return OK;
}

enum err moves_flatten(enum coll coll, uint32_t rank_count, uint32_t root,
	struct dev_moves **moves, size_t *bytes)
{
	struct program *programs[MOVES_RANKS_MAX] = {NULL};
	struct lower_args args = {.kind = catalog_find(coll, "direct"),
		.rank_count = rank_count,
		.root = root,
		.mode = MODE_DIRECT,
		.depth = 1};
	enum err e = OK;

	if (!args.kind || !rank_count || rank_count > MOVES_RANKS_MAX)
		return err_set(ERR_USAGE,
			"%s of %u ranks on one GPU; at most %d can share it",
			coll_name(coll), rank_count, MOVES_RANKS_MAX);
	for (args.rank = 0; args.rank < rank_count && !e; args.rank++)
		e = program_lower(&args, &programs[args.rank]);
	if (!e)
		e = moves_write(programs, rank_count, moves, bytes);
	if (!e && coll_is_vector(coll) && programs[0]->chunk_count == 1) {
		e = moves_spread(moves, bytes);
		if (e)
			free(*moves);
	}
	for (uint32_t r = 0; r < rank_count; r++)
		program_destroy(programs[r]);
	return e;
}
