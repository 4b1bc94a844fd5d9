/* Lowering: how messages travel, which slots they take, what is waited for and announced,
 * that the programs of all ranks are those of each rank alone, and that one rank's is
 * made in one rank's memory. */
#include "sched/lower.h"

#include <malloc.h>
#include <sys/resource.h>

#include "sched/text.h"
#include "test.h"

static char *lowered(const char *name, enum coll coll, const struct lower_args *how)
{
	struct lower_args args = *how;
	struct program *program;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	args.kind = catalog_find(coll, name);
	EQ(program_lower(&args, &program), OK);
	text_print_program(file, program);
	fclose(file);
	program_destroy(program);
	return text;
}

static void expect(
	const char *name, enum coll coll, const struct lower_args *how, const char *want)
{
	char *text = lowered(name, coll, how);

	EQ_STR(text, want);
	free(text);
}

/* Staged: through the sender's slots, which are free again `depth` messages later. */
static void test_staged(void)
{
	struct lower_args args = {
		.rank_count = 3, .rank = 1, .mode = MODE_STAGED, .depth = 2};

	expect("ring", COLL_REDUCE_SCATTER, &args,
		"reduce_scatter, rank 1 of 3, lane 0\n"
		" 0  wait rank 2 at 2 1 tile back; in[0] -> stage[0.0:0]; publish 1\n"
		" 1  wait rank 0 at 1, rank 2 at 3 1 tile back; in[2] + stage[0.0:0] of "
		"rank "
		"0 -> stage[0.0:1]; publish 2\n"
		" 2  wait rank 0 at 2; in[1] + stage[0.0:1] of rank 0 -> out[0] post; "
		"publish 3\n");
}

/* Lent: the receiver reads the sender's buffer, and the sender waits for it at the end.
 */
static void test_lent(void)
{
	struct lower_args args = {
		.rank_count = 3, .rank = 0, .mode = MODE_DIRECT, .depth = 2};

	expect("direct", COLL_SCATTER, &args,
		"scatter, rank 0 of 3, lane 0\n"
		" 0  pass\n"
		" 1  pass\n"
		" 2  in[0] -> out[0]; publish 3\n"
		"drain  wait rank 2 at 1, rank 1 at 1\n");
	args.rank = 2;
	expect("direct", COLL_SCATTER, &args,
		"scatter, rank 2 of 3, lane 0\n"
		" 0  wait rank 0 at 2; in[2] of rank 0 -> out[0]; publish 1\n");
}

/* Landed: the sender writes the receiver's buffer. */
static void test_landed(void)
{
	struct lower_args args = {
		.rank_count = 3, .rank = 2, .mode = MODE_DIRECT, .depth = 2};

	expect("direct", COLL_GATHER, &args,
		"gather, rank 2 of 3, lane 0\n"
		" 0  in[0] -> out[2] of rank 0; publish 1\n");
	args.rank = 0;
	expect("direct", COLL_GATHER, &args,
		"gather, rank 0 of 3, lane 0\n"
		" 0  in[0] -> out[0]; publish 1\n"
		" 1  wait rank 1 at 1; publish 2\n"
		" 2  wait rank 2 at 1; publish 3\n");
	/* pushed but folded on arrival: staged, and so without a drain */
	args.rank = 0;
	expect("oneshot", COLL_ALL_REDUCE, &args,
		"all_reduce, rank 0 of 3, lane 0\n"
		" 0  wait rank 1 at 2 2 tiles back, rank 2 at 2 2 tiles back; in[0] -> "
		"stage[0.0:0]; publish 1\n"
		" 1  wait rank 1 at 1, rank 2 at 1; in[0] + stage[0.0:0] of rank 1 + "
		"stage[0.0:0] of rank 2 -> out[0] post; publish 2\n");
}

static void test_all(const struct sched_kind *kind, uint32_t n, enum lower_mode mode)
{
	struct lower_args args = {
		.kind = kind, .rank_count = n, .root = n / 2, .mode = mode, .depth = 3};
	struct sched *scheds = calloc(n, sizeof(*scheds));
	struct program **programs = calloc(n, sizeof(*programs)), *alone;

	for (uint32_t r = 0; r < n; r++)
		EQ(catalog_write(kind, n, r, args.root, &scheds[r]), OK);
	EQ(program_lower_all(scheds, &args, programs), OK);
	for (args.rank = 0; args.rank < n; args.rank++) {
		const struct program *p = programs[args.rank];

		EQ(program_lower(&args, &alone), OK);
		EQ(alone->wait_count, p->wait_count);
		EQ(alone->place_count, p->place_count);
		EQ(alone->send_count, p->send_count);
		EQ(alone->drain_count, p->drain_count);
		EQ(alone->slot_count, p->slot_count);
		EQ(alone->slot_count_max, p->slot_count_max);
		EQ(alone->slot_chunks, p->slot_chunks);
		EQ(memcmp(alone->waits, p->waits, p->wait_count * sizeof(*p->waits)), 0);
		EQ(memcmp(alone->places, p->places, p->place_count * sizeof(*p->places)),
			0);
		program_destroy(alone);
	}
	for (uint32_t r = 0; r < n; r++) {
		program_destroy(programs[r]);
		sched_fini(&scheds[r]);
	}
	free(programs);
	free(scheds);
}

/* The sanitizers keep what is freed, and count on their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool is_sanitized = true;
#else
static const bool is_sanitized = false;
#endif

static size_t in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* A program of many ranks is what the rank does, and not what all of them do: it grows
 * with the messages it has. What it takes of all ranks is there once. */
static void test_kept(const struct sched_kind *kind, enum lower_mode mode)
{
	uint32_t n = kind->rank_max;
	struct lower_args args = {
		.kind = kind, .rank_count = n, .rank = n / 3, .mode = mode, .depth = 2};
	struct program *first, *second;
	size_t before;

	EQ(program_lower(&args, &first), OK);
	args.rank++;
	before = in_use();
	EQ(program_lower(&args, &second), OK);
	TRUE(in_use() - before < (size_t)n * 256);
	TRUE(first->lengths == second->lengths);
	program_destroy(first);
	EQ(second->lengths[0] > 0, 1);
	program_destroy(second);
}

static size_t peak_kb(void)
{
	struct rusage usage;

	EQ(getrusage(RUSAGE_SELF, &usage), 0);
	return (size_t)usage.ru_maxrss;
}

/* Nor is it lowered in the memory of all: 1024 ranks of a ring have two million messages,
 * of which each has two thousand. */
static void test_peak(void)
{
	const struct sched_kind *kind;
	size_t before = peak_kb();

	if (is_sanitized)
		return;
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		test_kept(kind, MODE_STAGED);
		test_kept(kind, MODE_DIRECT);
	}
	TRUE(peak_kb() - before < 16 << 10);
}

/* The ring of 1024 ranks in a megabyte: neither their schedules nor their stages are made
 * for it. */
static void test_one_of_many(void)
{
	struct lower_args args = {.kind = catalog_find(COLL_ALL_REDUCE, "ring"),
		.rank_count = 1024,
		.rank = 341,
		.depth = 2};
	size_t before = peak_kb(), written = 0;
	struct program *program;

	for (int mode = 0; mode < LOWER_MODES; mode++) {
		args.mode = (enum lower_mode)mode;
		EQ(program_lower(&args, &program), OK);
		for (uint32_t rank = 0; rank < args.rank_count; rank++)
			written += program->lengths[rank * SCHED_LANES_MAX] > 0;
		EQ(program->length_max, 2 * 1024 - 1);
		EQ(program->lengths[args.rank * SCHED_LANES_MAX], program->length_max);
		program_destroy(program);
	}
	TRUE(written < 3 * 64);
	if (!is_sanitized)
		TRUE(peak_kb() - before <= 1 << 10);
}

static uint32_t lead_of(enum coll coll, enum lower_mode mode)
{
	struct lower_args args = {.kind = catalog_find(coll, "direct"),
		.rank_count = 4,
		.rank = 2,
		.mode = mode,
		.depth = 1};
	struct program *program;
	uint32_t lead;

	EQ(program_lower(&args, &program), OK);
	lead = program_lead(program, 0);
	program_destroy(program);
	return lead;
}

/* What is lent at once is known without waiting for anybody or touching anything. */
static void test_lead(void)
{
	struct move moves[3] = {{.op = OUT_SEND}, {.wait_count = 1, .output_count = 1},
		{.wait_count = 1, .output_count = 1}};
	struct program program = {.lanes = {{0}, {moves, 3}}};

	EQ(program_lead(&program, 0), 0); /* an empty lane */
	EQ(program_lead(&program, 1), 1);
	moves[1].wait_count = 0; /* it still touches memory */
	EQ(program_lead(&program, 1), 1);
	moves[1].output_count = 0;
	EQ(program_lead(&program, 1), 2);
	moves[2].output_count = 0; /* it still waits */
	EQ(program_lead(&program, 1), 2);
	moves[2].wait_count = 0;
	EQ(program_lead(&program, 1), 3);

	EQ(lead_of(COLL_ALL_TO_ALL, MODE_STAGED), 0);
	EQ(lead_of(COLL_ALL_TO_ALL, MODE_DIRECT), 3);
	EQ(lead_of(COLL_ALL_TO_ALL, MODE_PULL), 3);
	EQ(lead_of(COLL_REDUCE_SCATTER, MODE_DIRECT), 3);
}

int main(void)
{
	const struct sched_kind *kind;

	test_one_of_many(); /* before there was another peak */
	test_peak();

	test_staged();
	test_lent();
	test_landed();
	test_lead();
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		for (uint32_t n = 1; n <= 9; n += 2) {
			test_all(kind, n, MODE_STAGED);
			test_all(kind, n, MODE_DIRECT);
			test_all(kind, n, MODE_PULL);
		}
	return 0;
}
