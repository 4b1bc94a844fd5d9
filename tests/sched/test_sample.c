/*
 * What all ranks agree on is the same from a sample of them as from all: for every
 * shipped schedule, every rank count up to 66 and some up to 1024, all modes, a choice of
 * roots. Between hosts the sample never says less than any rank needs. An argument adds
 * larger counts.
 */
#include "sched/family.h"
#include "test.h"

/* Whole clusters of composed schedules take minutes to write. */
enum { EVERY = 66, DEPTH = 3, COMPOSED_MAX = 1024 };

static uint32_t comparisons;

static bool is_refused(const struct lower_args *args)
{
	struct sched_hosts *hosts = NULL;
	bool suits;

	if (args->hosts)
		EQ(sched_hosts_create(args->hosts, args->rank_count, &hosts), OK);
	suits = catalog_suits(args->kind, hosts, args->rank_count);
	sched_hosts_destroy(hosts);
	return !suits;
}

static void compare(const struct lower_args *args)
{
	struct family_size all, some;
	bool same;

	if (is_refused(args))
		return;
	EQ(family_measure(args, false, &all), OK);
	EQ(family_measure(args, true, &some), OK);
	same = args->hosts ? some.slot_count_max >= all.slot_count_max &&
				     some.slot_chunks >= all.slot_chunks &&
				     some.inbox_chunks >= all.inbox_chunks &&
				     some.length_max == all.length_max
			   : !memcmp(&all, &some, sizeof(all));
	comparisons++;
	if (same)
		return;
	fprintf(stderr,
		"%s %s, %u ranks, root %u, %s%s: slots %u of %u chunks, inbox %u, length "
		"%u; the sample says %u of %u, %u, %u\n",
		args->kind->name, coll_name(args->kind->coll), args->rank_count,
		args->root, lower_mode_name(args->mode), args->hosts ? " on hosts" : "",
		all.slot_count_max, all.slot_chunks, all.inbox_chunks, all.length_max,
		some.slot_count_max, some.slot_chunks, some.inbox_chunks,
		some.length_max);
	exit(1);
}

static void compare_modes(const struct sched_kind *kind, uint32_t n, uint32_t root)
{
	struct lower_args args = {
		.kind = kind, .rank_count = n, .root = root, .depth = DEPTH};
	uint16_t *hosts = calloc(n, sizeof(*hosts));

	for (int mode = 0; mode < LOWER_MODES; mode++) {
		args.mode = (enum lower_mode)mode;
		args.hosts = NULL;
		if (kind->drivers == DRIVERS_NONE) /* else it is one of these */
			compare(&args);
		for (uint32_t r = 0; r < n; r++)
			hosts[r] = (uint16_t)(r / (1 + (uint32_t)mode * 3));
		args.hosts = hosts;
		compare(&args);
		for (uint32_t r = 0; r < n; r++) /* dealt in turn */
			hosts[r] = (uint16_t)(r % (2 + (uint32_t)mode));
		if (kind->drivers != DRIVERS_NONE)
			compare(&args);
	}
	free(hosts);
}

static void compare_kind(const struct sched_kind *kind, uint32_t n)
{
	const uint32_t roots[] = {0, 1, n / 3, n / 2, n - 1};

	if (n > kind->rank_max)
		return;
	/* which of uneven hosts are looked at is no question: all */
	if (kind->drivers != DRIVERS_NONE && n > 24 && (n % 8 || n > COMPOSED_MAX))
		return;
	if (!coll_has_root(kind->coll))
		compare_modes(kind, n, 0);
	for (uint32_t i = 0; coll_has_root(kind->coll) && i < 5; i++)
		compare_modes(kind, n, roots[i]);
}

int main(int argc, char **argv)
{
	static const uint32_t more[] = {127, 128, 129, 257, 500, 1024};
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_at(i)); i++) {
		for (uint32_t n = 2; n <= EVERY; n++)
			compare_kind(kind, n);
		/* where every pair talks, a sample in direct mode is all there are */
		for (size_t k = 0; k < sizeof(more) / sizeof(*more); k++)
			if (kind->rank_max > 256)
				compare_kind(kind, more[k]);
		for (int arg = 1; arg < argc; arg++)
			compare_kind(kind, (uint32_t)atoi(argv[arg]));
	}
	printf("%u comparisons\n", comparisons);
	return 0;
}
