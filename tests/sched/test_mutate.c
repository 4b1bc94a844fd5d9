/*
 * The checker finds what is wrong: every single change to a field of an instruction, and
 * to a wait, an announcement or a message between hosts of the lowered moves, that an
 * independent run on numbers shows to break a schedule is refused by the checker, to 99 %
 * at least.
 */
#include <stddef.h>

#include "oracle.h"

enum { ORDERS = 6, CALM_ORDERS = 12, CAUGHT_PERCENT = 99, RANKS_MAX = 8 };

struct tally {
	uint32_t tried;	  /* mutants, each in every mode and placement */
	uint32_t refused; /* by matching: they cannot even be lowered */
	uint32_t broken;  /* the oracle saw a wrong result or a hang */
	uint32_t caught;  /* of which the checker found */
	uint32_t strict;  /* the checker refused, the oracle saw nothing */
};

static struct tally total;
/* of `broken` and `caught`, those where a WAIT_SENT was changed */
static uint32_t sent_broken, sent_caught;
static bool verbose;

static void judge(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args, const char *what)
{
	struct check_report report;
	bool right = oracle_is_right(scheds, programs, args, ORDERS);
	bool passed = check_programs(scheds, programs, args, &report) == OK;

	total.broken += !right;
	total.caught += !right && !passed;
	total.strict += right && !passed;
	if (verbose && !right && passed)
		printf("missed: %s %s n %u %s %s place%s: %s\n", args->kind->name,
			coll_name(args->kind->coll), args->rank_count,
			args->mode ? "direct" : "staged",
			args->in_place ? "in" : "out of",
			args->hosts ? " between hosts" : "", what);
}

static void programs_free(struct program **programs, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		program_destroy(programs[r]);
	free(programs);
}

static struct program **programs_lower(
	const struct sched *scheds, const struct check_args *args)
{
	struct lower_args lower = {.kind = args->kind,
		.rank_count = args->rank_count,
		.root = args->root,
		.mode = args->mode,
		.depth = args->depth,
		.hosts = args->hosts};
	struct program **programs = calloc(args->rank_count, sizeof(*programs));

	if (program_lower_all(scheds, &lower, programs)) {
		free(programs);
		return NULL;
	}
	return programs;
}

/* Judge one mutant of the schedules in both modes and placements. */
static void judge_scheds(
	const struct sched *scheds, const struct sched_kind *kind, const char *what)
{
	int places = kind->coll == COLL_ALL_TO_ALL ? 1 : 2;

	for (int mode = MODE_STAGED; mode < LOWER_MODES; mode++)
		for (int in_place = 0; in_place < places; in_place++) {
			struct check_args args = {.kind = kind,
				.rank_count = scheds[0].rank_count,
				.root = scheds[0].root,
				.mode = (enum lower_mode)mode,
				.depth = 2,
				.in_place = in_place};
			struct program **programs = programs_lower(scheds, &args);

			total.tried++;
			if (!programs) {
				total.refused++;
				continue;
			}
			judge(scheds, programs, &args, what);
			programs_free(programs, args.rank_count);
		}
}

/* Numbers that are made one more and one less. */
static const struct {
	uint8_t offset, size;
} numbers[] = {
	{offsetof(struct insn, src), 2},
	{offsetof(struct insn, dst), 2},
	{offsetof(struct insn, count), 2},
	{offsetof(struct insn, reps), 2},
	{offsetof(struct insn, rx), 1},
	{offsetof(struct insn, tx), 1},
	{offsetof(struct insn, stride), 1},
	{offsetof(struct insn, conn_step), 1},
	{offsetof(struct insn, wait_pc), 1},
};

enum {
	OP_BITS = 8,
	NUDGES = 2 * sizeof(numbers) / sizeof(numbers[0]),
	FIELD_COUNT = OP_BITS + NUDGES + 7
};

static void nudge(struct insn *insn, uint32_t which)
{
	uint8_t *byte = (uint8_t *)insn + numbers[which / 2].offset;
	uint16_t number = 0;

	memcpy(&number, byte, numbers[which / 2].size);
	number = (uint16_t)(which % 2 ? number - 1 : number + 1);
	memcpy(byte, &number, numbers[which / 2].size);
}

static enum space turned(enum space space, uint32_t by)
{
	return (enum space)((space + by) % SPACE_COUNT);
}

/* Mutation `field` of an instruction; false when it changes nothing. */
static bool mutate(struct insn *insn, uint32_t field)
{
	struct insn was = *insn;
	enum space src = insn_src_space(insn), dst = insn_dst_space(insn);
	int push = insn->spaces & SPACES_PUSH;
	uint32_t other = field - OP_BITS - NUDGES;

	if (field < OP_BITS)
		insn->op ^= (uint8_t)(1u << field);
	else if (field < OP_BITS + NUDGES)
		nudge(insn, field - OP_BITS);
	else if (other < 2)
		insn->spaces = (uint8_t)(push | insn_spaces(turned(src, other + 1), dst));
	else if (other < 4)
		insn->spaces = (uint8_t)(push | insn_spaces(src, turned(dst, other - 1)));
	else if (other == 4)
		insn->spaces ^= SPACES_PUSH;
	else if (other == 5)
		insn->wait_lane = WAIT_NONE;
	else
		insn->stride = (int8_t)-insn->stride;
	return memcmp(&was, insn, sizeof(was)) != 0;
}

static void mutate_sched(
	struct sched *scheds, const struct sched_kind *kind, uint32_t rank, uint32_t lane)
{
	struct prog *prog = &scheds[rank].lanes[lane];
	char what[64];

	for (uint32_t pc = 0; pc < prog->count; pc++) {
		struct insn was = prog->insns[pc];

		for (uint32_t field = 0; field < FIELD_COUNT; field++) {
			snprintf(what, sizeof(what), "rank %u lane %u insn %u field %u",
				rank, lane, pc, field);
			if (mutate(&prog->insns[pc], field))
				judge_scheds(scheds, kind, what);
			prog->insns[pc] = was;
		}
		if (pc + 1 < prog->count) {
			prog->insns[pc] = prog->insns[pc + 1];
			prog->insns[pc + 1] = was;
			snprintf(what, sizeof(what), "rank %u lane %u insn %u swapped",
				rank, lane, pc);
			judge_scheds(scheds, kind, what);
			prog->insns[pc + 1] = prog->insns[pc];
			prog->insns[pc] = was;
		}
	}
}

/* Messages between hosts: forgotten, to or from somewhere else. */
static void mutate_sents(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args, uint32_t rank)
{
	struct program *p = programs[rank];
	char what[64];

	for (uint32_t lane = 0; lane < p->lane_count; lane++)
		for (uint32_t i = 0; i < p->lanes[lane].count; i++) {
			struct move *move = &p->lanes[lane].moves[i], was = *move;

			if (!move->sent_count)
				continue;
			move->sent_count--;
			snprintf(what, sizeof(what), "rank %u move %u forgets to send",
				rank, i);
			total.tried++;
			judge(scheds, programs, args, what);
			*move = was;
		}
	for (uint32_t i = 0; i < p->sent_count; i++) {
		struct place *place = &p->places[p->sents[i].place], was = *place;

		if (place->space == PLACE_STAGE)
			place->chunk++;
		else
			place->space = place->space == PLACE_IN ? PLACE_OUT : PLACE_IN;
		if (place->space != PLACE_STAGE &&
			was.chunk + 1u >
				sched_chunks(&scheds[rank], (enum space)place->space)) {
			*place = was; /* there is no such place to send from */
			continue;
		}
		snprintf(
			what, sizeof(what), "rank %u message %u from elsewhere", rank, i);
		total.tried++;
		judge(scheds, programs, args, what);
		*place = was;
	}
}

/* Waits forgotten, too early, or a tile too lax; positions not announced; a drain left
 * out. */
static void mutate_program(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args, uint32_t rank)
{
	struct program *p = programs[rank];
	char what[64];

	for (uint32_t i = 0; i < p->wait_count; i++) {
		struct wait was = p->waits[i];
		struct tally before = total;

		for (uint32_t kind = 0; kind < 3; kind++) {
			p->waits[i].back += kind == 0 ? 1000 : kind == 1;
			p->waits[i].position -= kind == 2;
			snprintf(what, sizeof(what), "rank %u wait %u change %u", rank, i,
				kind);
			total.tried++;
			judge(scheds, programs, args, what);
			p->waits[i] = was;
		}
		if (was.kind == WAIT_SENT) {
			sent_broken += total.broken - before.broken;
			sent_caught += total.caught - before.caught;
		}
	}
	for (uint32_t lane = 0; lane < p->lane_count; lane++)
		for (uint32_t i = 0; i < p->lanes[lane].count; i++) {
			if (!p->lanes[lane].moves[i].publish)
				continue;
			p->lanes[lane].moves[i].publish = false;
			snprintf(what, sizeof(what), "rank %u move %u unannounced", rank,
				i);
			total.tried++;
			judge(scheds, programs, args, what);
			p->lanes[lane].moves[i].publish = true;
		}
}

/* An inbox one chunk too small is always found: what does not fit is lost. */
static void shrink_inbox(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args)
{
	struct check_report report;

	for (uint32_t r = 0; r < args->rank_count; r++)
		programs[r]->inbox_chunks--;
	EQ(check_programs(scheds, programs, args, &report), ERR_USAGE);
	TRUE(strstr(report.text, "more than its inbox holds"));
	for (uint32_t r = 0; r < args->rank_count; r++)
		programs[r]->inbox_chunks++;
}

/* So is a message that its ends take to be of another chunk, and so of another length. */
static void confuse_chunk(const struct sched *scheds, struct program *const *programs,
	const struct check_args *args)
{
	struct check_report report;
	uint32_t r = 0;

	while (!programs[r]->sent_count)
		r++;
	programs[r]->sents[0].chunk ^= 1;
	EQ(check_programs(scheds, programs, args, &report), ERR_USAGE);
	TRUE(strstr(report.text, "a message of another length"));
	programs[r]->sents[0].chunk ^= 1;
}

static void mutate_programs(
	const struct sched *scheds, const struct sched_kind *kind, const uint16_t *hosts)
{
	int places = kind->coll == COLL_ALL_TO_ALL ? 1 : 2;

	for (int mode = MODE_STAGED; mode < LOWER_MODES; mode++)
		for (int in_place = 0; in_place < places; in_place++) {
			struct check_args args = {.kind = kind,
				.rank_count = scheds[0].rank_count,
				.root = scheds[0].root,
				.mode = (enum lower_mode)mode,
				.depth = 2,
				.in_place = in_place,
				.hosts = hosts};
			struct program **programs = programs_lower(scheds, &args);

			TRUE(programs);
			/* untouched it is right, on numbers too */
			TRUE(oracle_is_right(scheds, programs, &args, CALM_ORDERS));
			for (uint32_t r = 0; r < args.rank_count; r += 1 + r / 2) {
				mutate_program(scheds, programs, &args, r);
				mutate_sents(scheds, programs, &args, r);
			}
			if (hosts) {
				shrink_inbox(scheds, programs, &args);
				confuse_chunk(scheds, programs, &args);
			}
			programs_free(programs, args.rank_count);
		}
}

static void mutate_kind(const struct sched_kind *kind, uint32_t n)
{
	struct sched *scheds = calloc(n, sizeof(*scheds));
	uint16_t one_each[RANKS_MAX], in_turn[RANKS_MAX];

	for (uint32_t r = 0; r < n; r++) {
		EQ(catalog_write(kind, n, r, 1, &scheds[r]), OK);
		one_each[r] = (uint16_t)r;
		in_turn[r] = r % 2;
	}
	mutate_programs(scheds, kind, NULL);
	if (n < 5)
		mutate_programs(scheds, kind, one_each);
	if (n == 5)
		mutate_programs(scheds, kind, in_turn);
	for (uint32_t r = 0; r < n; r += 1 + r / 2) /* 0 1 2 4 7 */
		for (uint32_t lane = 0; lane < scheds[r].lane_count; lane++)
			mutate_sched(scheds, kind, r, lane);
	for (uint32_t r = 0; r < n; r++)
		sched_fini(&scheds[r]);
	free(scheds);
}

int main(int argc, char **argv)
{
	static const uint32_t ranks[] = {3, 4, 5, 8};
	const struct sched_kind *kind;

	verbose = argc > 1;
	(void)argv;
	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t j = 0; j < 4; j++)
			mutate_kind(kind, ranks[j]);
	printf("%u mutants: %u refused by matching; %u of the others change the result, "
	       "%u of these caught; %u refused though no run went wrong\n",
		total.tried, total.refused, total.broken, total.caught, total.strict);
	printf("%u where something is not known to have left, %u caught\n", sent_broken,
		sent_caught);
	TRUE(total.broken > 1000);
	TRUE(sent_broken > 100);
	EQ(sent_caught, sent_broken);
	TRUE(100ull * total.caught >= (unsigned)CAUGHT_PERCENT * 1ull * total.broken);
	return 0;
}
