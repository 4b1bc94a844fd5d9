/*
 * Every shipped schedule is right between hosts, too: two halves, a rank each, uneven
 * ones and ranks dealt out in turn, with all hosts in one mode and with each in another,
 * in place and out of place. An argument raises or lowers the largest rank count.
 */
#include "sched/check.h"
#include "test.h"

enum { RANKS = 16, RANKS_MAX = 64, DEPTH_MIN_MAX = 2, ALL_MODES = LOWER_MODES };

static uint32_t proofs;

/* Ways to spread n ranks over hosts; false when there is no such way, or it is one that
 * another row has. */
struct spread {
	const char *name;
	bool (*fill)(uint16_t *hosts, uint32_t n);
};

static bool in_halves(uint16_t *hosts, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		hosts[r] = r >= n / 2;
	return n > 1;
}

static bool one_each(uint16_t *hosts, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		hosts[r] = (uint16_t)(n - 1 - r);
	return n > 2;
}

/* 1, 2, 3, .. ranks */
static bool unevenly(uint16_t *hosts, uint32_t n)
{
	uint32_t host = 0, left = 1;

	for (uint32_t r = 0; r < n; r++) {
		hosts[r] = (uint16_t)host;
		if (!--left)
			left = ++host + 1;
	}
	return n > 3;
}

static bool in_turn(uint16_t *hosts, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		hosts[r] = (uint16_t)(r % 3);
	return n > 4;
}

/* All but one rank on one host. */
static bool one_away(uint16_t *hosts, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		hosts[r] = r == n / 3;
	return n > 2;
}

static const struct spread spreads[] = {{"halves", in_halves}, {"one each", one_each},
	{"unevenly", unevenly}, {"in turn", in_turn}, {"one away", one_away}};

static void judge(enum err e, const struct check_args *args,
	const struct check_report *report, const char *spread, const char *mode)
{
	proofs++;
	if (!e)
		return;
	fprintf(stderr, "%s %s, %u ranks %s, root %u, %s, depth %u, %s place: %s\n",
		args->kind->name, coll_name(args->kind->coll), args->rank_count, spread,
		args->root, mode, args->depth, args->in_place ? "in" : "out of",
		report->text[0] ? report->text : err_last());
	exit(1);
}

static void lower(const struct check_args *args, struct program **programs)
{
	struct lower_args how = {.kind = args->kind,
		.rank_count = args->rank_count,
		.root = args->root,
		.mode = args->mode,
		.depth = args->depth,
		.hosts = args->hosts};

	EQ(program_lower_all(NULL, &how, programs), OK);
}

/* Each host runs in a mode of its own. */
static void prove_mixed(const struct check_args *args, const char *spread)
{
	uint32_t n = args->rank_count;
	struct sched *scheds = calloc(n, sizeof(*scheds));
	struct program *all[LOWER_MODES][RANKS_MAX], *mixed[RANKS_MAX];
	struct check_args each = *args;
	struct check_report report;

	for (uint32_t r = 0; r < n; r++)
		EQ(catalog_write(args->kind, n, r, args->root, &scheds[r]), OK);
	for (int mode = 0; mode < LOWER_MODES; mode++) {
		each.mode = (enum lower_mode)mode;
		lower(&each, all[mode]);
	}
	for (uint32_t r = 0; r < n; r++)
		mixed[r] = all[args->hosts[r] % LOWER_MODES][r];
	judge(check_programs(scheds, mixed, args, &report), args, &report, spread,
		"mixed");
	for (uint32_t r = 0; r < n; r++) {
		for (int mode = 0; mode < LOWER_MODES; mode++)
			program_destroy(all[mode][r]);
		sched_fini(&scheds[r]);
	}
	free(scheds);
}

static void prove_spread(const struct check_args *how, const struct spread *spread)
{
	int places = how->kind->coll == COLL_ALL_TO_ALL ? 1 : 2;
	struct check_args args = *how;
	uint16_t hosts[RANKS_MAX];
	struct check_report report;

	if (!spread->fill(hosts, args.rank_count))
		return;
	args.hosts = hosts;
	for (int in_place = 0; in_place < places; in_place++) {
		args.in_place = in_place;
		for (int mode = 0; mode < LOWER_MODES; mode++) {
			args.mode = (enum lower_mode)mode;
			judge(check_schedule(&args, &report), &args, &report,
				spread->name, lower_mode_name(args.mode));
		}
		prove_mixed(&args, spread->name);
	}
}

static void prove_kind(const struct sched_kind *kind, uint32_t n)
{
	uint32_t least = check_min_depth(kind, n, 0, DEPTH_MIN_MAX);

	TRUE(least);
	for (uint32_t depth = least; depth <= DEPTH_MIN_MAX; depth++)
		for (size_t i = 0; i < sizeof(spreads) / sizeof(*spreads); i++)
			prove_spread(
				&(struct check_args){.kind = kind,
					.rank_count = n,
					.root = coll_has_root(kind->coll) ? n / 2 : 0,
					.depth = depth},
				&spreads[i]);
}

int main(int argc, char **argv)
{
	uint32_t ranks = argc > 1 ? (uint32_t)atoi(argv[1]) : RANKS, kinds = 0;
	const struct sched_kind *kind;

	TRUE(ranks <= RANKS_MAX);
	for (; (kind = catalog_plain_at(kinds)); kinds++)
		for (uint32_t n = 2; n <= ranks && n <= kind->rank_max; n++)
			prove_kind(kind, n);
	printf("%u schedules between hosts, up to %u ranks: %u proofs\n", kinds, ranks,
		proofs);
	return 0;
}
