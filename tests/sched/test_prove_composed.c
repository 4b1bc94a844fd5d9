/*
 * Every schedule that knows hosts is right, for ranks on several hosts of any shape: all
 * ways to divide them for few ranks, more and more uneven ones for more, ranks that are
 * neighbours and ranks dealt to the hosts in turn. Arguments raise or lower the largest
 * rank count.
 */
#include <string.h>

#include "sched/check.h"
#include "test.h"

enum {
	RANKS = 16,
	RANKS_MAX = 64,
	ALL_SHAPES = 6,
	ALL_HOSTS = 16,
	ALL_ROOTS = 4,
	DEPTH_MAX = 2
};

static uint32_t proofs, shapes, cases;

struct shape_case {
	struct sched_hosts *hosts;
	struct sched scheds[RANKS_MAX];
};

static void fail(
	const struct check_args *args, const struct shape_case *c, const char *why)
{
	fprintf(stderr, "%s %s, hosts", args->kind->name, coll_name(args->kind->coll));
	for (uint32_t r = 0; r < args->rank_count; r++)
		fprintf(stderr, "%c%u", r ? ',' : ' ', c->hosts->host[r]);
	fprintf(stderr, ", root %u, %s, depth %u, %s place: %s\n", args->root,
		lower_mode_name(args->mode), args->depth,
		args->in_place ? "in" : "out of", why);
	exit(1);
}

static void prove(const struct shape_case *c, const struct check_args *args)
{
	struct check_report report;
	enum err e = check_scheds(c->scheds, args, &report);

	proofs++;
	if (e)
		fail(args, c, report.text[0] ? report.text : err_last());
}

/* Each host runs in a mode of its own. */
static void prove_mixed(const struct shape_case *c, const struct check_args *args)
{
	struct program *all[LOWER_MODES][RANKS_MAX], *mixed[RANKS_MAX];
	struct lower_args how = {.kind = args->kind,
		.rank_count = args->rank_count,
		.root = args->root,
		.depth = args->depth,
		.hosts = args->hosts};
	struct check_report report;

	for (how.mode = 0; how.mode < LOWER_MODES; how.mode++)
		EQ(program_lower_all(NULL, &how, all[how.mode]), OK);
	for (uint32_t r = 0; r < args->rank_count; r++)
		mixed[r] = all[args->hosts[r] % LOWER_MODES][r];
	proofs++;
	if (check_programs(c->scheds, mixed, args, &report))
		fail(args, c, report.text[0] ? report.text : err_last());
	for (uint32_t r = 0; r < args->rank_count; r++)
		for (int mode = 0; mode < LOWER_MODES; mode++)
			program_destroy(all[mode][r]);
}

/* As if all were on one host, where slots are few, and then between the hosts. Of many
 * ranks one case each, in place and out of place in turn. */
static void prove_modes(const struct shape_case *c, struct check_args *args)
{
	bool thorough = args->rank_count <= ALL_SHAPES;

	for (args->mode = 0; args->mode < LOWER_MODES; args->mode++) {
		args->hosts = NULL;
		if (thorough || args->mode == MODE_STAGED)
			prove(c, args);
		args->hosts = c->hosts->host;
		if (thorough || args->mode == (enum lower_mode)(shapes % LOWER_MODES))
			prove(c, args);
	}
	args->mode = MODE_STAGED;
	if (thorough)
		prove_mixed(c, args);
}

static void prove_root(struct shape_case *c, const struct sched_kind *kind, uint32_t root)
{
	struct check_args args = {.kind = kind,
		.rank_count = c->hosts->rank_count,
		.root = root,
		.depth = DEPTH_MAX};
	bool thorough = args.rank_count <= ALL_SHAPES;

	cases++;
	for (uint32_t r = 0; r < args.rank_count; r++)
		if (catalog_write_hosts(kind, c->hosts, r, root, &c->scheds[r]))
			fail(&args, c, err_last());
	for (uint32_t in_place = 0; in_place < 2; in_place++) {
		args.in_place = in_place;
		if (in_place && kind->coll == COLL_ALL_TO_ALL)
			continue;
		if (thorough || kind->coll == COLL_ALL_TO_ALL || cases % 2 == in_place)
			prove_modes(c, &args);
	}
	for (uint32_t r = 0; r < args.rank_count; r++)
		sched_fini(&c->scheds[r]);
}

static void prove_kinds(const uint16_t *host, uint32_t n)
{
	static struct shape_case c;
	const struct sched_kind *kind;

	EQ(sched_hosts_create(host, n, &c.hosts), OK);
	shapes++;
	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		if (kind->drivers == DRIVERS_NONE)
			continue;
		prove_root(&c, kind, 0);
		for (uint32_t root = 1; root < n && coll_has_root(kind->coll); root++)
			if (n <= ALL_ROOTS || root == (n <= ALL_SHAPES ? n - 1 : n / 2))
				prove_root(&c, kind, root);
	}
	sched_hosts_destroy(c.hosts);
}

/* Ranks next to each other, and dealt to the hosts in turn as long as each has room. */
static void prove_sizes(const uint32_t *sizes, uint32_t host_count, uint32_t n)
{
	uint16_t host[RANKS_MAX] = {0};
	uint32_t left[RANKS_MAX], at = 0;

	for (uint16_t g = 0; g < host_count; g++)
		for (uint32_t i = 0; i < sizes[g]; i++)
			host[at++] = g;
	EQ(at, n);
	prove_kinds(host, n);
	if (host_count == n)
		return;
	memcpy(left, sizes, host_count * sizeof(*left));
	for (uint32_t r = 0, g = 0; r < n; g = (g + 1) % host_count)
		if (left[g]) {
			left[g]--;
			host[r++] = (uint16_t)g;
		}
	prove_kinds(host, n);
}

/* All ways to divide n ranks among two or more hosts, in order. */
static void prove_all_shapes(uint32_t n)
{
	for (uint32_t cuts = 1; cuts < 1u << (n - 1); cuts++) {
		uint32_t sizes[RANKS_MAX] = {0}, host_count = 0;

		for (uint32_t r = 0; r < n; r++) {
			sizes[host_count]++;
			if (r + 1 < n && cuts & 1u << r)
				host_count++;
		}
		prove_sizes(sizes, host_count + 1, n);
	}
}

/* `hosts` hosts as even as can be, the last ones smaller; then one that takes all but one
 * of each other. */
static void prove_some_shapes(uint32_t n, uint32_t hosts)
{
	uint32_t sizes[RANKS_MAX];

	for (uint32_t g = 0; g < hosts; g++)
		sizes[g] = n / hosts + (g < n % hosts);
	prove_sizes(sizes, hosts, n);
	for (uint32_t g = 0; g < hosts; g++)
		sizes[g] = g == hosts / 2 ? n - hosts + 1 : 1;
	if (hosts < n)
		prove_sizes(sizes, hosts, n);
}

static void prove_count(uint32_t n)
{
	if (n <= ALL_SHAPES) {
		prove_all_shapes(n);
		return;
	}
	for (uint32_t hosts = 2; hosts <= n; hosts++)
		if (n <= ALL_HOSTS || hosts == 2 + n % 7 || hosts == n / 8 ||
			hosts == n / 2 + n % 3 || hosts == n)
			prove_some_shapes(n, hosts);
}

/* Rank counts up to the first number, or from it up to the second. */
int main(int argc, char **argv)
{
	uint32_t last = argc > 1 ? (uint32_t)atoi(argv[argc - 1]) : RANKS;

	TRUE(last <= RANKS_MAX);
	for (uint32_t n = argc > 2 ? (uint32_t)atoi(argv[1]) : 2; n <= last; n++)
		prove_count(n);
	printf("%u shapes, up to %u ranks: %u proofs\n", shapes, last, proofs);
	return 0;
}
