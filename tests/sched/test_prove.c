/*
 * Every shipped schedule is right: for every rank count up to 64, staged at several
 * depths from the smallest that works, and direct, in place and out of place, for all
 * roots (a choice of them in larger groups). An argument raises or lowers the largest
 * rank count. Those that small calls of many ranks take are proved for as many.
 */
#include "sched/check.h"
#include "test.h"

enum { RANKS = 64, ALL_ROOTS = 8, DEPTH_MIN_MAX = 2, DEEP = 5, DEEP_RANKS = 24 };

static uint32_t proofs;

static void prove(const struct check_args *args)
{
	struct check_report report;
	enum err e = check_schedule(args, &report);

	proofs++;
	if (!e)
		return;
	fprintf(stderr, "%s %s, %u ranks, root %u, %s, depth %u, %s place: %s\n",
		args->kind->name, coll_name(args->kind->coll), args->rank_count,
		args->root, lower_mode_name(args->mode), args->depth,
		args->in_place ? "in" : "out of",
		report.text[0] ? report.text : err_last());
	exit(1);
}

static void prove_modes(const struct sched_kind *kind, uint32_t n, uint32_t root)
{
	uint32_t least = check_min_depth(kind, n, root, DEPTH_MIN_MAX);
	const uint32_t depths[] = {least, 2, DEEP};
	int places = kind->coll == COLL_ALL_TO_ALL ? 1 : 2;

	TRUE(least);
	for (int in_place = 0; in_place < places; in_place++) {
		struct check_args args = {.kind = kind,
			.rank_count = n,
			.root = root,
			.in_place = in_place};

		for (uint32_t i = least == 2; i < (n <= DEEP_RANKS ? 3 : 2); i++) {
			args.depth = depths[i];
			args.mode = MODE_STAGED;
			prove(&args);
			args.mode = MODE_DIRECT;
			prove(&args);
			args.mode = MODE_PULL;
			prove(&args);
		}
	}
}

static bool is_chosen_root(uint32_t root, uint32_t n)
{
	return n <= ALL_ROOTS || root < 2 || root == n - 1 || root == n / 2;
}

static void prove_many(enum coll coll, const char *name)
{
	static const uint32_t counts[] = {257, 512, 1000};
	const struct sched_kind *kind = catalog_find(coll, name);

	for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		for (int mode = MODE_STAGED; mode <= MODE_DIRECT; mode++)
			prove(&(struct check_args){.kind = kind,
				.rank_count = counts[i],
				.root = coll_has_root(coll) ? counts[i] / 3 : 0,
				.mode = (enum lower_mode)mode,
				.depth = 2,
				.in_place = i % 2});
}

int main(int argc, char **argv)
{
	uint32_t ranks = argc > 1 ? (uint32_t)atoi(argv[1]) : RANKS, kinds = 0;
	const struct sched_kind *kind;

	for (; (kind = catalog_plain_at(kinds)); kinds++)
		for (uint32_t n = 1; n <= ranks && n <= kind->rank_max; n++)
			for (uint32_t root = 0; root < n; root++)
				if (!root || (coll_has_root(kind->coll) &&
						     is_chosen_root(root, n)))
					prove_modes(kind, n, root);
	prove_many(COLL_ALL_REDUCE, "doubling");
	prove_many(COLL_BROADCAST, "tree");
	prove_many(COLL_REDUCE, "tree");
	prove_many(COLL_ALL_GATHER, "bruck");
	prove_many(COLL_REDUCE_SCATTER, "halving");
	printf("%u schedules, up to %u ranks: %u proofs\n", kinds, ranks, proofs);
	return 0;
}
