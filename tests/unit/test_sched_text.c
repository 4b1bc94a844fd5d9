/* The text form says what SCHEDULES.md shows, comes back exactly, and bad text is refused
 * with its line. */
#include "sched/catalog.h"
#include "sched/text.h"
#include "sched/text_read.h"
#include "test.h"

static char *print_family(const char *name, const struct sched *scheds, uint32_t n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	for (uint32_t r = 0; r < n; r++)
		text_print_sched(file, name, &scheds[r]);
	fclose(file);
	return text;
}

static void test_golden(void)
{
	struct sched sched;
	char *text;

	EQ(catalog_write(catalog_find(COLL_ALL_REDUCE, "ring"), 8, 3, 0, &sched), OK);
	text = print_family("ring", &sched, 1);
	EQ_STR(text, "ring all_reduce, rank 3 of 8, chunks 8, lane 0, rx 2, tx 4\n"
		     " 0  in[2] -> send\n"
		     " 1  in[1] + recv -> send  x6 chunk-1\n"
		     " 2  in[3] + recv -> out[3], send  post\n"
		     " 3  recv -> out[2], send  x6 chunk-1\n"
		     " 4  recv -> out[4]\n");
	free(text);
	sched_fini(&sched);
}

static void same_lane(const struct prog *a, const struct prog *b)
{
	EQ(a->count, b->count);
	EQ(a->rx_count, b->rx_count);
	EQ(a->tx_count, b->tx_count);
	for (uint32_t i = 0; i < a->rx_count; i++)
		EQ(a->rx_peers[i], b->rx_peers[i]);
	for (uint32_t i = 0; i < a->tx_count; i++)
		EQ(a->tx_peers[i], b->tx_peers[i]);
	for (uint32_t i = 0; i < a->count; i++)
		EQ(memcmp(&a->insns[i], &b->insns[i], sizeof(a->insns[i])), 0);
}

static void same_sched(const struct sched *a, const struct sched *b)
{
	EQ(a->coll, b->coll);
	EQ(a->rank_count, b->rank_count);
	EQ(a->rank, b->rank);
	EQ(a->root, b->root);
	EQ(a->chunk_count, b->chunk_count);
	EQ(a->tmp_count, b->tmp_count);
	EQ(a->lane_count, b->lane_count);
	for (uint32_t lane = 0; lane < a->lane_count; lane++)
		same_lane(&a->lanes[lane], &b->lanes[lane]);
}

static void round_trip(const struct sched_kind *kind, uint32_t n)
{
	struct sched *scheds = calloc(n, sizeof(*scheds));
	struct text_family family;
	char *text, *again;

	for (uint32_t r = 0; r < n; r++)
		EQ(catalog_write(kind, n, r, n / 2, &scheds[r]), OK);
	text = print_family(kind->name, scheds, n);
	EQ(text_read(text, &family), OK);
	EQ_STR(family.name, kind->name);
	EQ(family.rank_count, n);
	for (uint32_t r = 0; r < n; r++)
		same_sched(&scheds[r], &family.scheds[r]);
	again = print_family(family.name, family.scheds, n);
	EQ_STR(again, text);
	free(again);
	free(text);
	text_family_fini(&family);
	for (uint32_t r = 0; r < n; r++)
		sched_fini(&scheds[r]);
	free(scheds);
}

#define HEAD "x all_gather, rank 0 of 1, chunks 1, lane 0, rx -, tx -\n"

static void test_refused(void)
{
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"", "line 1: the text ends"},
		{" 0  in[0] -> out[0]\n", "line 1: an instruction before"},
		{"x nothing, rank 0 of 1\n", "line 1: no such collective"},
		{"x all_gather, rank 1 of 1, chunks 1\n", "line 1: expected rank"},
		{"x all_gather, rank 0 of 2, chunks 1, lane 0, rx -, tx 2\n",
			"line 1: peers"},
		{"x all_gather, rank 0 of 2, chunks 1, lane 0, rx 1 1, tx 1\n",
			"line 1: the same peer"},
		{"x all_gather, rank 0 of 2, chunks 1, lane 0, rx -, tx -\n",
			"line 2: the text ends"},
		{"x all_gather, rank 0 of 1, chunks 1, lane 1, rx -, tx -\n",
			"line 1: lanes"},
		{HEAD "\n 1  in[0] -> out[0]\n", "line 3: instructions must be numbered"},
		{HEAD "# said\n 0  in[0] out[0]\n", "line 3: expected ->"},
		{HEAD " 0  in[0] -> out[0], out[0]\n",
			"line 2: expected a place or send"},
		{HEAD " 0  recv + in[0] -> out[0]\n", "line 2: expected acc"},
		{HEAD " 0  in[65536] -> out[0]\n", "line 2: a space needs"},
		{HEAD " 0  acc out[1] + in[0] -> out[0]\n", "line 2: acc and the dest"},
		{HEAD " 0  in[0] -> out[0]  x0\n", "line 2: x needs"},
		{HEAD " 0  in[0] -> out[0]  x2 x2\n", "line 2: x needs"},
		{HEAD " 0  in[0] -> out[0]  post post\n", "line 2: a word"},
		{HEAD " 0  in[0] -> out[0]  chunk-129\n", "line 2: chunk needs"},
		{HEAD " 0  in[0] -> out[0]  after 2.0\n", "line 2: after needs"},
		{HEAD HEAD, "line 2: lanes"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct text_family family;

		EQ(text_read(cases[i].text, &family), ERR_ARGUMENT);
		if (!strstr(err_last(), cases[i].sentence)) {
			fprintf(stderr, "case %zu: %s\n", i, err_last());
			exit(1);
		}
	}
}

/* Any text ends in an answer: cut off anywhere, and with any byte changed. */
static void test_mangled(void)
{
	struct sched scheds[2];
	struct text_family family;
	uint32_t seed = 1;
	char *text;

	for (uint32_t r = 0; r < 2; r++)
		EQ(catalog_write(
			   catalog_find(COLL_ALL_REDUCE, "tree"), 2, r, 0, &scheds[r]),
			OK);
	text = print_family("tree", scheds, 2);
	for (size_t i = 0, length = strlen(text); i < length; i++) {
		char was = text[i];

		text[i] = '\0';
		if (!text_read(text, &family))
			text_family_fini(&family);
		for (int turn = 0; turn < 40; turn++) {
			seed = seed * 1664525u + 1013904223u;
			text[i] = (char)(seed >> 24);
			if (!text_read(text, &family))
				text_family_fini(&family);
		}
		text[i] = was;
	}
	free(text);
	sched_fini(&scheds[0]);
	sched_fini(&scheds[1]);
}

static void test_program(void)
{
	struct lower_args args = {.kind = catalog_find(COLL_ALL_REDUCE, "direct"),
		.rank_count = 3,
		.rank = 1,
		.mode = MODE_DIRECT,
		.depth = 2};
	struct program *program;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);

	EQ(program_lower(&args, &program), OK);
	text_print_program(file, program);
	fclose(file);
	EQ_STR(text, "all_reduce, rank 1 of 3, lane 0\n"
		     " 0  pass\n"
		     " 1  publish 2\n"
		     " 2  wait rank 0 at 1, rank 2 at 2; in[1] of rank 0 + in[1] + in[1] "
		     "of rank 2 -> out[1], out[1] of rank 2, out[1] of rank 0 post; "
		     "publish 3\n"
		     " 3  wait rank 0 at 3; publish 4\n"
		     " 4  wait rank 2 at 3; publish 5\n");
	free(text);
	program_destroy(program);
}

int main(void)
{
	const struct sched_kind *kind;

	test_golden();
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		for (uint32_t n = 1; n <= 17; n++)
			round_trip(kind, n);
	test_refused();
	test_mangled();
	test_program();
	return 0;
}
