/* Moves for a kernel: each chunk of an input is read once and each of an output written
 * once, and doing the moves in any order gives what the collective must. */
#include "exec/cuda/moves.h"

#include "sched/insn.h"
#include "sched/lower.h"
#include "test.h"

enum { RANKS = 8, CHUNKS = RANKS, UNWRITTEN = -1 };

/* Chunks are single numbers. */
struct world {
	enum coll coll;
	uint32_t n, root;
	long in[RANKS][CHUNKS], out[RANKS][CHUNKS];
	int reads[RANKS][CHUNKS], writes[RANKS][CHUNKS];
};

/* How many chunks a rank's IN and OUT have; those of a vector are what it is cut into. */
static uint32_t chunks_of(const struct world *world, uint32_t rank, bool is_out)
{
	bool is_root = rank == world->root;

	switch (world->coll) {
	case COLL_ALL_REDUCE:
		return world->n;
	case COLL_BROADCAST:
		return is_out || is_root ? world->n : 0;
	case COLL_REDUCE:
		return !is_out || is_root ? world->n : 0;
	case COLL_ALL_GATHER:
		return is_out ? world->n : 1;
	case COLL_REDUCE_SCATTER:
		return is_out ? 1 : world->n;
	case COLL_ALL_TO_ALL:
		return world->n;
	case COLL_GATHER:
		return !is_out ? 1 : is_root ? world->n : 0;
	default:
		return is_out ? 1 : is_root ? world->n : 0;
	}
}

static long input(uint32_t rank, uint32_t chunk)
{
	return (long)(1000 * (rank + 1) + chunk);
}

static long input_sum(const struct world *world, uint32_t chunk)
{
	long sum = 0;

	for (uint32_t r = 0; r < world->n; r++)
		sum += input(r, chunk);
	return sum;
}

static long wanted(const struct world *world, uint32_t rank, uint32_t chunk)
{
	switch (world->coll) {
	case COLL_ALL_REDUCE:
	case COLL_REDUCE:
		return input_sum(world, chunk);
	case COLL_REDUCE_SCATTER:
		return input_sum(world, rank);
	case COLL_BROADCAST:
		return input(world->root, chunk);
	case COLL_ALL_GATHER:
	case COLL_GATHER:
		return input(chunk, 0);
	case COLL_ALL_TO_ALL:
		return input(chunk, rank);
	default:
		return input(world->root, rank);
	}
}

static long place_read(struct world *world, const struct dev_place *place, uint32_t i)
{
	uint32_t chunk = place->chunk + i;

	EQ(place->space, PLACE_IN);
	TRUE(place->rank < world->n);
	TRUE(chunk < chunks_of(world, place->rank, false));
	world->reads[place->rank][chunk]++;
	return world->in[place->rank][chunk];
}

static void place_write(
	struct world *world, const struct dev_place *place, uint32_t i, long value)
{
	uint32_t chunk = place->chunk + i;

	EQ(place->space, PLACE_OUT);
	TRUE(place->rank < world->n);
	TRUE(chunk < chunks_of(world, place->rank, true));
	world->out[place->rank][chunk] = value;
	world->writes[place->rank][chunk]++;
}

static void move_do(
	struct world *world, const struct dev_move *move, const struct dev_place *places)
{
	TRUE(move->input_count > 0 && move->output_count > 0 && move->count > 0);
	EQ(!!(move->input_count > 1), coll_reduces(world->coll) && world->n > 1);
	for (uint32_t c = 0; c < move->count; c++) {
		long value = 0;

		for (uint32_t i = 0; i < move->input_count; i++)
			value += place_read(world, &places[move->first + i], c);
		for (uint32_t i = 0; i < move->output_count; i++)
			place_write(world, &places[move->first + move->input_count + i],
				c, value);
	}
}

/* The list is one block: all offsets are inside it, and every rank's share follows the
 * one before. */
static void check_layout(const struct dev_moves *moves, size_t bytes, uint32_t n)
{
	EQ(moves->rank_count, n);
	EQ(sizeof(*moves) % 16, 0); /* the kernel reads so much at a time */
	EQ(moves->places_at,
		sizeof(*moves) + moves->move_count * sizeof(struct dev_move));
	EQ(bytes, moves->places_at + moves->place_count * sizeof(struct dev_place));
	EQ(moves->first[0], 0);
	for (uint32_t r = 0; r < n; r++)
		TRUE(moves->first[r] <= moves->first[r + 1]);
	EQ(moves->first[n], moves->move_count);
}

/* Places follow one another as the moves do, and all of a vector's are one chunk. */
static void check_places(const struct dev_moves *moves, const struct dev_move *before,
	const struct dev_move *move, bool is_vector)
{
	const struct dev_place *places =
		(const struct dev_place *)((const char *)moves + moves->places_at);
	uint32_t count = move->input_count + move->output_count;

	EQ(move->first,
		before ? before->first + before->input_count + before->output_count : 0);
	TRUE(move->first + count <= moves->place_count);
	for (uint32_t i = 1; i < count && is_vector; i++)
		EQ(places[move->first + i].chunk, places[move->first].chunk);
}

static void world_begin(struct world *world, enum coll coll, uint32_t n, uint32_t root)
{
	*world = (struct world){.coll = coll, .n = n, .root = root};
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t c = 0; c < CHUNKS; c++) {
			world->in[r][c] = input(r, c);
			world->out[r][c] = UNWRITTEN;
		}
}

static void world_check(const struct world *world)
{
	for (uint32_t r = 0; r < world->n; r++)
		for (uint32_t c = 0; c < CHUNKS; c++) {
			bool is_defined = c < chunks_of(world, r, true);

			EQ(world->reads[r][c], c < chunks_of(world, r, false));
			EQ(world->writes[r][c], is_defined);
			EQ(world->out[r][c],
				is_defined ? wanted(world, r, c) : UNWRITTEN);
		}
}

/* Backwards as well: the blocks of a kernel keep no order. */
static void test_one(enum coll coll, uint32_t n, uint32_t root, bool backwards)
{
	const struct dev_place *places;
	const struct dev_move *list;
	struct dev_moves *moves;
	struct world world;
	size_t bytes;

	EQ(moves_flatten(coll, n, root, &moves, &bytes), OK);
	check_layout(moves, bytes, n);
	list = (const struct dev_move *)(moves + 1);
	places = (const struct dev_place *)((const char *)moves + moves->places_at);
	world_begin(&world, coll, n, root);
	for (uint32_t i = 0; i < moves->move_count; i++) {
		const struct dev_move *move =
			&list[backwards ? moves->move_count - 1 - i : i];

		check_places(moves, i ? &list[i - 1] : NULL, &list[i],
			coll_is_vector(coll));
		move_do(&world, move, places);
	}
	world_check(&world);
	free(moves);
}

static void test_all(void)
{
	for (int coll = 0; coll < COLL_COUNT; coll++)
		for (uint32_t n = 1; n <= RANKS; n++)
			for (uint32_t root = 0; root < n; root++) {
				if (root && !coll_has_root((enum coll)coll))
					break;
				test_one((enum coll)coll, n, root, false);
				test_one((enum coll)coll, n, root, true);
			}
}

/* All that a launch can hold fits, one more is refused. */
static void test_limits(void)
{
	for (int coll = 0; coll < COLL_COUNT; coll++) {
		struct dev_moves *moves;
		size_t bytes;

		EQ(moves_flatten((enum coll)coll, MOVES_RANKS_MAX, 0, &moves, &bytes),
			OK);
		check_layout(moves, bytes, MOVES_RANKS_MAX);
		free(moves);
		EQ(moves_flatten((enum coll)coll, MOVES_RANKS_MAX + 1, 0, &moves, &bytes),
			ERR_USAGE);
	}
}

int main(void)
{
	test_all();
	test_limits();
	return 0;
}
