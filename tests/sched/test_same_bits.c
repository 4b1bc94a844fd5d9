/*
 * Sums come out the same to the last bit: on every rank, in every order of events, staged
 * and direct, in place and out of place, and between hosts. The operator rounds, so the
 * order of folding would show.
 */
#include "oracle.h"

enum { ORDERS = 4, RANKS = 17 };

static uint32_t runs;

static void run_mode(const struct sched *scheds, const struct check_args *args,
	uint64_t *reference, uint32_t symbol_count)
{
	uint32_t n = args->rank_count;
	struct program **programs = calloc(n, sizeof(*programs));
	struct lower_args lower = {.kind = args->kind,
		.rank_count = n,
		.root = args->root,
		.mode = args->mode,
		.depth = args->depth,
		.hosts = args->hosts};

	EQ(program_lower_all(scheds, &lower, programs), OK);
	for (uint32_t order = 0; order < ORDERS; order++, runs++) {
		struct oracle o = {.scheds = scheds,
			.programs = programs,
			.args = args,
			.seed = order,
			.by_priority = order % 2,
			.reference = reference,
			.symbol_count = symbol_count};

		if (oracle_run(&o))
			continue;
		fprintf(stderr, "%s %s, %u ranks, %s, %s place: other bits\n",
			args->kind->name, coll_name(args->kind->coll), n,
			args->mode ? "direct" : "staged",
			args->in_place ? "in" : "out of");
		exit(1);
	}
	for (uint32_t r = 0; r < n; r++)
		program_destroy(programs[r]);
	free(programs);
}

/* `hosts` NULL: one. */
static void same_bits(
	const struct sched_kind *kind, uint32_t n, const struct sched_hosts *hosts)
{
	struct sched *scheds = calloc(n, sizeof(*scheds));
	struct check_args args = {.kind = kind,
		.rank_count = n,
		.root = n / 2,
		.depth = 2,
		.hosts = hosts ? hosts->host : NULL};
	uint64_t *reference;

	for (uint32_t r = 0; r < n; r++)
		EQ(hosts ? catalog_write_hosts(kind, hosts, r, args.root, &scheds[r])
			 : catalog_write(kind, n, r, args.root, &scheds[r]),
			OK);
	reference = calloc(
		(size_t)scheds[0].chunk_count * ORACLE_TILES, sizeof(*reference));
	for (int in_place = 0; in_place < 2; in_place++)
		for (int mode = MODE_STAGED; mode < LOWER_MODES; mode++) {
			args.in_place = in_place;
			args.mode = (enum lower_mode)mode;
			run_mode(scheds, &args, reference, scheds[0].chunk_count);
		}
	free(reference);
	for (uint32_t r = 0; r < n; r++)
		sched_fini(&scheds[r]);
	free(scheds);
}

static void same_bits_between(const char *shape)
{
	const struct sched_kind *kind;
	struct sched_hosts *hosts;

	EQ(sched_hosts_read(shape, &hosts), OK);
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (kind->drivers != DRIVERS_NONE && coll_reduces(kind->coll))
			same_bits(kind, hosts->rank_count, hosts);
	sched_hosts_destroy(hosts);
}

int main(void)
{
	static const char *const shapes[] = {"2x1", "2x2", "5x1", "3x3", "4x2", "3+5",
		"1+7", "2+1+4", "0,1,0,1,0,1", "0,1,2,0,1,1,1"};
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 1; n <= RANKS && coll_reduces(kind->coll); n++)
			same_bits(kind, n, NULL);
	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		same_bits_between(shapes[i]);
	printf("%u runs gave the same bits\n", runs);
	return 0;
}
