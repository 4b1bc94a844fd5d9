/* Rows cover all sizes, runs say where the choice changes, bandwidths add up. */
#include "weft/tune_rows.h"

#include <math.h>

#include "base/dtype.h"
#include "model_machine.h"
#include "test.h"

static struct cluster cluster;
static struct model_rules rules;
static struct model model;
static struct tune_rows rows;

static void fill(enum model_func func)
{
	struct model_call call = {.func = func, .type = DTYPE_FLOAT32};

	EQ(model_make(&cluster, &rules, &model), OK);
	tune_rows_fill(&model, &call, NULL, &rows);
}

static void size_is(uint64_t bytes, const char *text)
{
	char got[TUNE_SIZE_TEXT];

	tune_size_text(bytes, got);
	EQ_STR(got, text);
}

int main(void)
{
	const struct tune_row *big = &rows.rows[TUNE_ROWS - 1];

	machine_fill(&cluster, 2);
	model_rules_default(&rules);
	fill(MODEL_ALL_REDUCE);
	EQ(rows.rows[0].bytes, 8);
	EQ(big->bytes, (uint64_t)8 << 30);
	EQ(rows.run_count, 3);
	EQ(rows.runs[0].algo, ALGO_TREE);
	EQ(rows.runs[0].proto, PROTO_LL);
	EQ(rows.runs[0].last, 128 << 10);
	EQ(rows.runs[1].last, 1 << 20);
	EQ(rows.runs[2].algo, ALGO_NVLS_TREE);
	EQ(rows.runs[2].last, (uint64_t)8 << 30);
	TRUE(fabs(big->busbw / big->algbw - 30.0 / 16) < 1e-9);
	TRUE(fabs(big->algbw * 1e3 * (double)big->choice.time_us - 8.0 * (1 << 30)) <
		1e3);
	/* 16 ranks cannot share 32 bytes of float */
	fill(MODEL_REDUCE_SCATTER);
	TRUE(!rows.rows[2].usable);
	TRUE(rows.rows[3].usable);
	EQ(model_algo_parse("tree", &rules), OK);
	fill(MODEL_BROADCAST);
	EQ(rows.run_count, 0);
	TRUE(!rows.rows[20].usable);
	size_is(8, "8 B");
	size_is(1000, "1000 B");
	size_is(1536, "1536 B");
	size_is(1 << 20, "1 MiB");
	size_is((uint64_t)4 << 40, "4096 GiB");
	return 0;
}
