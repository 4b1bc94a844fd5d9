/* Moves for a kernel: each chunk of an input is read once and each of an output written
 * once, and doing the moves in any order gives what the collective must. */
#include "device_lists.h"
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

static const struct dev_page *page_of(const struct move_pages *pages, uint32_t rank)
{
	return (const struct dev_page *)((const char *)pages->data +
					 rank * pages->page_bytes);
}

static const struct dev_move *moves_of(const struct dev_page *page)
{
	return (const struct dev_move *)(page + 1);
}

static const struct dev_place *places_of(const struct dev_page *page)
{
	return (const struct dev_place *)(moves_of(page) + page->move_count);
}

/* All of it is inside its page; places follow one another as the moves do, and all of a
 * vector's move are the chunk that it says. */
static void check_page(const struct move_pages *pages, uint32_t rank, bool is_vector)
{
	const struct dev_page *page = page_of(pages, rank);
	const struct dev_place *places = places_of(page);
	uint32_t used = 0;

	TRUE((const char *)(places + page->place_count) <=
		(const char *)page + pages->page_bytes);
	for (uint32_t m = 0; m < page->move_count; m++) {
		const struct dev_move *move = &moves_of(page)[m];
		uint32_t count = move->input_count + move->output_count;

		EQ(move->first, used);
		for (uint32_t i = 0; i < count && is_vector; i++)
			EQ(places[used + i].chunk, move->chunk);
		TRUE(is_vector || !move->chunk);
		used += count;
	}
	EQ(used, page->place_count);
	TRUE(used <= PAGE_PLACES_MAX);
}

static void check_layout(const struct move_pages *pages, enum coll coll, uint32_t n)
{
	EQ(pages->page_bytes % 16, 0); /* the kernel reads so much at a time */
	TRUE(pages->page_bytes <= PAGE_BYTES_MAX);
	EQ(pages->bytes, n * pages->page_bytes);
	for (uint32_t r = 0; r < n; r++)
		check_page(pages, r, coll_is_vector(coll));
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
	struct move_pages pages;
	struct world world;

	EQ(lists_moves(coll, n, root, &pages), OK);
	check_layout(&pages, coll, n);
	world_begin(&world, coll, n, root);
	for (uint32_t i = 0; i < n; i++) {
		const struct dev_page *page = page_of(&pages, backwards ? n - 1 - i : i);

		for (uint32_t m = 0; m < page->move_count; m++)
			move_do(&world,
				&moves_of(page)[backwards ? page->move_count - 1 - m : m],
				places_of(page));
	}
	world_check(&world);
	free(pages.data);
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
		struct move_pages pages;

		EQ(lists_moves((enum coll)coll, MOVES_RANKS_MAX, 0, &pages), OK);
		check_layout(&pages, (enum coll)coll, MOVES_RANKS_MAX);
		free(pages.data);
		EQ(lists_moves((enum coll)coll, MOVES_RANKS_MAX + 1, 0, &pages),
			ERR_USAGE);
	}
}

int main(void)
{
	test_all();
	test_limits();
	return 0;
}
