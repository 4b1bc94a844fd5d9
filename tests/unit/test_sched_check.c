/* The checker says in words what is wrong with a schedule, and where. */
#include "sched/check.h"
#include "sched/text_read.h"
#include "test.h"

/* Two ranks, one lane each; the bodies are what differs. */
static const char *verdict(const char *coll, const char *extra, const char *body0,
	const char *body1, const struct check_args *how)
{
	static struct check_report report;
	struct check_args args = *how;
	struct text_family family;
	char text[1024];
	enum err e;

	snprintf(text, sizeof(text),
		"t %s, rank 0 of 2, chunks 2%s, lane 0, rx 1, tx 1\n%s\n"
		"t %s, rank 1 of 2, chunks 2%s, lane 0, rx 0, tx 0\n%s\n",
		coll, extra, body0, coll, extra, body1);
	EQ(text_read(text, &family), OK);
	args.rank_count = 2;
	e = check_scheds(family.scheds, &args, &report);
	EQ(e, report.text[0] ? ERR_USAGE : OK);
	text_family_fini(&family);
	return report.text;
}

static void says(const char *text, const char *sentence)
{
	if (strstr(text, sentence) && (sentence[0] || !text[0]))
		return;
	fprintf(stderr, "\"%s\" does not say \"%s\"\n", text, sentence);
	exit(1);
}

static const struct check_args staged = {.mode = MODE_STAGED, .depth = 2};
static const struct check_args direct = {.mode = MODE_DIRECT, .depth = 2};
static const struct check_args in_place = {
	.mode = MODE_DIRECT, .depth = 2, .in_place = true};

#define SWAP                                                                             \
	"0 in[0] -> send count 2\n"                                                      \
	"1 in[0] + recv -> out[0] count 2"

static void test_sums(void)
{
	const char *coll = "all_reduce";

	says(verdict(coll, "", SWAP " post", SWAP " post", &staged), "");
	says(verdict(coll, "", SWAP " post", SWAP " post", &direct), "");
	/* the peer may still be reading what is overwritten here */
	says(verdict(coll, "", SWAP " post", SWAP " post", &in_place),
		"instruction 1 turn 0 tile 0 reads while another lane may be writing");
	says(verdict(coll, "", SWAP " post", SWAP, &staged),
		"rank 1 never applies the final operator");
	says(verdict(coll, "",
		     "0 in[0] -> send count 2\n1 in[0] + recv -> out[0] count 2 post\n"
		     "2 acc out[0] + in[0] -> out[0] count 2",
		     SWAP " post", &staged),
		"folds a value the final operator was applied to");
	says(verdict(coll, "", "0 in[0] -> send\n1 in[0] + recv -> out[0] post",
		     "0 in[1] -> send\n1 in[0] + recv -> out[0] post", &staged),
		"folds two different chunks");
	says(verdict(coll, "", "0 in[0] -> out[0] count 2 post",
		     "0 in[0] -> out[0] count 2 post", &staged),
		"misses ranks");
}

static void test_order(void)
{
	const char *coll = "all_reduce";
	const char *late = "0 recv -> tmp[0] count 2\n1 in[0] -> send count 2\n"
			   "2 acc tmp[0] + in[0] -> tmp[0] count 2\n"
			   "3 tmp[0] -> out[0] count 2 post";

	says(verdict(coll, ", tmp 2", late, late, &staged), "waits for ever");
	says(verdict(coll, ", tmp 2", SWAP " post", late, &staged), "");
	says(verdict(coll, ", tmp 2",
		     "0 in[0] -> tmp[0] count 2\n1 in[0] -> tmp[0] count 2", "", &staged),
		"overwrites what nobody has read");
	says(verdict(coll, ", tmp 2", "0 tmp[0] -> out[0] count 2", "", &staged),
		"reads what was never written");
	says(verdict(coll, "", "0 in[0] -> in[1]", "", &staged), "writes the input");
}

static void test_matching(void)
{
	const char *coll = "all_reduce";

	says(verdict(coll, "", "0 in[0] -> send", "", &staged), "never receives");
	says(verdict(coll, "", "0 in[0] -> send", "0 recv -> out[0] count 2", &staged),
		"another number");
	says(verdict(coll, "", "0 in[2] -> send", "0 recv -> out[0]", &staged),
		"out of range");
	says(verdict(coll, "", "0 in[0] -> send#1", "0 recv -> out[0]", &staged),
		"out of range");
}

static void test_min_depth(void)
{
	const struct sched_kind *ring = catalog_find(COLL_ALL_REDUCE, "ring");

	EQ(check_min_depth(ring, 8, 0, 1), 0);
	EQ(check_min_depth(ring, 8, 0, 4), 2);
	EQ(check_min_depth(catalog_find(COLL_ALL_REDUCE, "tree"), 8, 0, 4), 1);
}

int main(void)
{
	struct check_args all_to_all = {.kind = catalog_find(COLL_ALL_TO_ALL, "direct"),
		.rank_count = 4,
		.depth = 2,
		.in_place = true};
	struct check_report report;

	test_sums();
	test_order();
	test_matching();
	test_min_depth();
	EQ(check_schedule(&all_to_all, &report), ERR_ARGUMENT);
	return 0;
}
