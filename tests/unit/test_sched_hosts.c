/* Lowering for several hosts: what is sent between them and from where, what is waited
 * for, that every host is free to choose its mode, and that one host is what it was. */
#include "base/hash.h"
#include "sched/lower.h"
#include "sched/text.h"
#include "sched/write.h"
#include "test.h"

enum { DIGEST_RANKS_MAX = 12, DEPTH = 3 };

static uint64_t digest_waits(uint64_t hash, const struct program *program)
{
	for (uint32_t i = 0; i < program->wait_count; i++) {
		const struct wait *wait = &program->waits[i];

		hash = hash_add(hash, wait->rank);
		hash = hash_add(hash, wait->lane);
		hash = hash_add(hash, wait->kind);
		hash = hash_add(hash, wait->position);
		hash = hash_add(hash, wait->back);
	}
	return hash;
}

static uint64_t digest_places(uint64_t hash, const struct program *program)
{
	for (uint32_t i = 0; i < program->place_count; i++) {
		const struct place *place = &program->places[i];

		hash = hash_add(hash, place->rank);
		hash = hash_add(hash, place->space);
		hash = hash_add(hash, place->lane);
		hash = hash_add(hash, place->chunk);
		hash = hash_add(hash, place->group);
		hash = hash_add(hash, place->period);
		hash = hash_add(hash, place->slot);
	}
	return hash;
}

static uint64_t digest_move(uint64_t hash, const struct move *move)
{
	const uint32_t parts[] = {move->op, move->publish, move->count, move->wait_first,
		move->wait_count, move->input_first, move->input_count,
		move->output_first, move->output_count, move->send_first,
		move->send_count, move->insn, move->rep};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = hash_add(hash, parts[i]);
	return hash;
}

static uint64_t digest_program(uint64_t hash, const struct program *program)
{
	const uint32_t parts[] = {program->coll, program->mode, program->chunk_count,
		program->tmp_count, program->slot_count, program->slot_count_max,
		program->slot_chunks, program->lane_count, program->drain_first,
		program->drain_count};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = hash_add(hash, parts[i]);
	for (uint32_t lane = 0; lane < program->lane_count; lane++)
		for (uint32_t i = 0; i < program->lanes[lane].count; i++)
			hash = digest_move(hash, &program->lanes[lane].moves[i]);
	for (uint32_t i = 0; i < program->send_count; i++)
		hash = hash_add(hash, program->sends[i]);
	return digest_places(digest_waits(hash, program), program);
}

static uint64_t digest_kind(uint64_t hash, const struct sched_kind *kind,
	enum lower_mode mode, const uint16_t *hosts)
{
	struct lower_args args = {
		.kind = kind, .mode = mode, .depth = DEPTH, .hosts = hosts};

	for (uint32_t n = 1; n <= DIGEST_RANKS_MAX; n++) {
		struct program *programs[DIGEST_RANKS_MAX];

		args.rank_count = n;
		args.root = n / 2;
		EQ(program_lower_all(NULL, &args, programs), OK);
		for (uint32_t rank = 0; rank < n; rank++) {
			hash = digest_program(hash, programs[rank]);
			program_destroy(programs[rank]);
		}
	}
	return hash;
}

/* On one host, programs are to the last number what they were before there were others.
 * The kinds are named, so that a new one does not change the sum. */
static void test_one_host(const uint16_t *hosts)
{
	static const struct {
		enum coll coll;
		const char *name;
	} kinds[] = {{COLL_ALL_REDUCE, "ring"}, {COLL_ALL_REDUCE, "tree"},
		{COLL_ALL_REDUCE, "direct"}, {COLL_ALL_REDUCE, "oneshot"},
		{COLL_ALL_REDUCE, "halving"}, {COLL_ALL_REDUCE, "doubling"},
		{COLL_BROADCAST, "tree"}, {COLL_BROADCAST, "scatter_gather"},
		{COLL_REDUCE, "ring"}, {COLL_REDUCE, "scatter_gather"},
		{COLL_ALL_GATHER, "bruck"}, {COLL_ALL_GATHER, "direct"},
		{COLL_REDUCE_SCATTER, "halving"}, {COLL_REDUCE_SCATTER, "direct"},
		{COLL_ALL_TO_ALL, "direct"}, {COLL_GATHER, "direct"},
		{COLL_SCATTER, "direct"}};
	uint64_t hash = HASH_START;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (int mode = 0; mode < LOWER_MODES; mode++)
			hash = digest_kind(hash,
				catalog_find(kinds[i].coll, kinds[i].name),
				(enum lower_mode)mode, hosts);
	EQ(hash, 4895179809520376485);
}

static void expect(
	const char *name, enum coll coll, const struct lower_args *how, const char *want)
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
	EQ_STR(text, want);
	free(text);
}

/* Sent from where it stands, or from a slot; taken from an inbox; waited for before it is
 * overwritten, as OUT is in place, and at the end. */
static void test_text(void)
{
	static const uint16_t hosts[] = {0, 0, 1};
	struct lower_args args = {.rank_count = 3,
		.rank = 1,
		.mode = MODE_STAGED,
		.depth = 2,
		.hosts = hosts};

	expect("ring", COLL_ALL_REDUCE, &args,
		"all_reduce, rank 1 of 3, lane 0\n"
		" 0  send in[0] to rank 2; publish 1\n"
		" 1  wait rank 0 at 1, sent to rank 2 at 2 2 tiles back; in[2] + "
		"stage[0.0:0] of rank 0 -> stage[0.0:0]; send stage[0.0:0] to rank 2; "
		"publish 2\n"
		" 2  wait rank 0 at 2; in[1] + stage[0.0:1] of rank 0 -> out[1] post; "
		"send out[1] to rank 2; publish 3\n"
		" 3  wait rank 0 at 3, sent to rank 2 at 1; stage[0.0:2] of rank 0 -> "
		"out[0]; send out[0] to rank 2; publish 4\n"
		" 4  wait rank 0 at 4; stage[0.0:3] of rank 0 -> out[2]; publish 5\n"
		"drain  wait sent to rank 2 at 4\n");
	args.rank = 2;
	expect("ring", COLL_ALL_REDUCE, &args,
		"all_reduce, rank 2 of 3, lane 0\n"
		" 0  send in[1] to rank 0; publish 1\n"
		" 1  wait rank 1 at 1, sent to rank 0 at 2 2 tiles back; in[0] + inbox[0 "
		"in] of rank 1 -> stage[0.0:0]; send stage[0.0:0] to rank 0; publish 2\n"
		" 2  wait rank 1 at 2; in[2] + inbox[0] of rank 1 -> out[2] post; send "
		"out[2] to rank 0; publish 3\n"
		" 3  wait rank 1 at 3, sent to rank 0 at 1; inbox[0] of rank 1 -> "
		"out[1]; "
		"send out[1] to rank 0; publish 4\n"
		" 4  wait rank 1 at 4; inbox[0] of rank 1 -> out[0]; publish 5\n"
		"drain  wait sent to rank 0 at 4\n");
	/* scratch is the same in every tile: a message of the last one may still leave */
	args.hosts = (const uint16_t[]){0, 1, 2, 3};
	args.rank_count = 4;
	args.rank = 0;
	expect("halving", COLL_REDUCE_SCATTER, &args,
		"reduce_scatter, rank 0 of 4, lane 0\n"
		" 0  send in[2..3] to rank 2; publish 1\n"
		" 1  wait rank 2 at 1, sent to rank 1 at 3 1 tile back; in[0..1] + "
		"inbox[0 in] of rank 2 -> tmp[0..1]\n"
		" 2  send tmp[1] to rank 1; publish 3\n"
		" 3  wait rank 3 at 4; tmp[0] + inbox[0] of rank 3 -> out[0] post; "
		"publish 4\n"
		"drain  wait sent to rank 1 at 3, sent to rank 2 at 1\n");
}

/* Every fan stays one move: to the ranks of the host as ever, to the others sent. What
 * comes from them is taken last, but for what must have left. */
static void test_fan(void)
{
	static const uint16_t hosts[] = {0, 0, 1, 1};
	struct lower_args args = {
		.rank_count = 4, .mode = MODE_DIRECT, .depth = 2, .hosts = hosts};

	expect("direct", COLL_ALL_REDUCE, &args,
		"all_reduce, rank 0 of 4, lane 0\n"
		" 0  pass\n"
		" 1  send in[2] to rank 2\n"
		" 2  send in[3] to rank 3; publish 3\n"
		" 3  wait rank 1 at 3, rank 2 at 2, rank 3 at 1; in[0] + in[0] of rank 1 "
		"+ "
		"inbox[0 in] of rank 2 + inbox[0 in] of rank 3 -> out[0], out[0] of rank "
		"1 post; send out[0] to rank 2, rank 3; publish 4\n"
		" 4  wait rank 1 at 4; publish 5\n"
		" 5  wait rank 2 at 4, sent to rank 2 at 2; inbox[0] of rank 2 -> "
		"out[2]; "
		"publish 6\n"
		" 6  wait rank 3 at 4, sent to rank 3 at 3; inbox[0] of rank 3 -> "
		"out[3]; "
		"publish 7\n"
		"drain  wait sent to rank 2 at 4, sent to rank 3 at 4\n");
}

enum { SPREADS = 4 };

static void spread(uint32_t how, uint16_t *hosts, uint32_t n)
{
	for (uint32_t r = 0; r < n; r++)
		hosts[r] = (uint16_t)(how == 0	 ? r
				      : how == 1 ? r >= n / 2
				      : how == 2 ? r % 2
						 : r > 0);
}

static bool is_listed(
	const struct remote *list, uint32_t count, uint32_t rank, uint32_t lane)
{
	for (uint32_t i = 0; i < count; i++)
		if (list[i].rank == rank && list[i].lane == lane)
			return true;
	return false;
}

static void check_list(const struct program *program, const struct remote *list,
	uint32_t count, const uint16_t *hosts)
{
	for (uint32_t i = 0; i < count; i++) {
		TRUE(hosts[list[i].rank] != hosts[program->rank]);
		TRUE(list[i].lane < program->lane_count);
		TRUE(!i || list[i - 1].rank < list[i].rank ||
			(list[i - 1].rank == list[i].rank &&
				list[i - 1].lane < list[i].lane));
	}
}

/* Who sends is received from, and nothing else passes between hosts. */
static void check_remotes(
	struct program *const *programs, uint32_t n, const uint16_t *hosts)
{
	for (uint32_t r = 0; r < n; r++) {
		const struct program *p = programs[r];

		check_list(p, p->net_rx, p->net_rx_count, hosts);
		check_list(p, p->net_tx, p->net_tx_count, hosts);
		for (uint32_t i = 0; i < p->net_tx_count; i++) {
			const struct program *q = programs[p->net_tx[i].rank];

			TRUE(is_listed(q->net_rx, q->net_rx_count, r, p->net_tx[i].lane));
		}
		for (uint32_t i = 0; i < p->send_count; i++)
			EQ(hosts[p->sends[i]], hosts[r]);
		for (uint32_t i = 0; i < p->wait_count; i++)
			if (p->waits[i].kind == WAIT_ACK)
				EQ(hosts[p->waits[i].rank], hosts[r]);
		for (uint32_t i = 0; i < p->place_count; i++)
			EQ(p->places[i].space >= PLACE_INBOX,
				hosts[p->places[i].rank] != hosts[r]);
	}
}

/* One event is one move, whoever is where and however its messages travel. */
static void check_same_moves(const struct program *a, const struct program *b)
{
	EQ(a->lane_count, b->lane_count);
	EQ(memcmp(a->lengths, b->lengths,
		   a->rank_count * SCHED_LANES_MAX * sizeof(*a->lengths)),
		0);
	for (uint32_t lane = 0; lane < a->lane_count; lane++) {
		EQ(a->lanes[lane].count, b->lanes[lane].count);
		for (uint32_t i = 0; i < a->lanes[lane].count; i++) {
			const struct move *x = &a->lanes[lane].moves[i];
			const struct move *y = &b->lanes[lane].moves[i];

			EQ(x->insn, y->insn);
			EQ(x->rep, y->rep);
			EQ(x->count, y->count);
			EQ(x->send_count + x->sent_count, y->send_count + y->sent_count);
		}
	}
}

static void test_moves(const struct sched_kind *kind, uint32_t n, uint32_t how)
{
	struct program *alone[DIGEST_RANKS_MAX], *spread_out[DIGEST_RANKS_MAX];
	uint16_t hosts[DIGEST_RANKS_MAX];
	struct lower_args args = {
		.kind = kind, .rank_count = n, .root = n / 2, .depth = DEPTH};
	uint32_t inbox = 0;

	spread(how, hosts, n);
	EQ(program_lower_all(NULL, &args, alone), OK);
	args.hosts = hosts;
	for (int mode = 0; mode < LOWER_MODES; mode++) {
		args.mode = (enum lower_mode)mode;
		EQ(program_lower_all(NULL, &args, spread_out), OK);
		check_remotes(spread_out, n, hosts);
		inbox = mode ? inbox : spread_out[0]->inbox_chunks;
		for (uint32_t r = 0; r < n; r++) {
			check_same_moves(alone[r], spread_out[r]);
			EQ(spread_out[r]->inbox_chunks, inbox);
			program_destroy(spread_out[r]);
		}
	}
	for (uint32_t r = 0; r < n; r++)
		program_destroy(alone[r]);
}

/* With a rank on each host nothing is staged for others: only what stands nowhere. */
static void test_alone(void)
{
	static const uint16_t hosts[] = {0, 1, 2, 3, 4};
	struct lower_args args = {.kind = catalog_find(COLL_ALL_GATHER, "ring"),
		.rank_count = 5,
		.mode = MODE_STAGED,
		.depth = 2,
		.hosts = hosts};
	struct program *program;

	EQ(program_lower(&args, &program), OK);
	EQ(program->slot_count_max, 0);
	EQ(program->inbox_chunks, 1);
	EQ(program_lead(program, 0), 0); /* a send is no lead */
	program_destroy(program);
	args.kind = catalog_find(COLL_REDUCE_SCATTER, "ring");
	EQ(program_lower(&args, &program), OK);
	EQ(program->slot_count_max, 2);
	EQ(program_lead(program, 0), 0);
	program_destroy(program);
}

/* Rank 0 sends its vector through scratch, rank 1 passes it on, and rank 2 folds it. */
static enum err write_scratch(struct sched *sched)
{
	struct writer w = write_begin(sched, 2, 1);
	uint32_t rank = sched->rank;
	struct sched_line in = {
		.op = IN_SRC | OUT_DST, .to = SPACE_TMP, .src = 1, .count = 1};

	sched->tmp_count = 1;
	if (!rank)
		write_line(&w, 0, &in);
	if (rank)
		prog_rx(&sched->lanes[0], rank - 1);
	if (rank < 2)
		prog_tx(&sched->lanes[0], rank + 1);
	write_line(&w, 0,
		&(struct sched_line){.op = rank == 0   ? IN_SRC | OUT_SEND
					   : rank == 1 ? IN_RECV | OUT_SEND
						       : IN_SRC | IN_RECV | OUT_DST,
			.from = rank ? SPACE_IN : SPACE_TMP,
			.to = SPACE_OUT,
			.src = !!rank,
			.dst = 1});
	return w.error;
}

/* Both ends know how long a message is: the one that has a buffer for it says so. */
static void test_chunks(void)
{
	static const struct sched_kind scratch = {.coll = COLL_ALL_REDUCE,
		.name = "scratch",
		.summary = "",
		.rank_max = 3,
		.write = write_scratch};
	static const uint16_t hosts[] = {0, 1, 2};
	struct lower_args args = {
		.kind = &scratch, .rank_count = 3, .depth = 1, .hosts = hosts};
	struct program *p[3];

	EQ(program_lower_all(NULL, &args, p), OK);
	EQ(p[0]->sents[0].chunk, CHUNK_ANY);
	EQ(p[1]->places[p[1]->lanes[0].moves[0].input_first].chunk, CHUNK_ANY);
	EQ(p[1]->sents[0].chunk, 1);
	EQ(p[2]->places[p[2]->lanes[0].moves[0].input_first + 1].chunk, 1);
	EQ(p[2]->places[p[2]->lanes[0].moves[0].input_first + 1].space, PLACE_INBOX);
	for (uint32_t r = 0; r < 3; r++)
		program_destroy(p[r]);
}

/* What is shared between the ranks of a process is told apart by the hosts, not by where
 * their list lies, and keeps them. */
static void test_family(void)
{
	uint16_t one[] = {0, 0, 1}, same[] = {0, 0, 1}, other[] = {0, 1, 1};
	struct lower_args args = {.kind = catalog_find(COLL_ALL_REDUCE, "ring"),
		.rank_count = 3,
		.depth = 1,
		.hosts = one};
	struct program *a, *b, *c, *d;

	EQ(program_lower(&args, &a), OK);
	one[1] = 7;
	args.hosts = same;
	EQ(program_lower(&args, &b), OK);
	TRUE(a->family == b->family);
	args.hosts = other;
	EQ(program_lower(&args, &c), OK);
	TRUE(a->family != c->family);
	args.hosts = NULL;
	EQ(program_lower(&args, &d), OK);
	TRUE(a->family != d->family);
	program_destroy(a);
	program_destroy(b);
	program_destroy(c);
	program_destroy(d);
}

int main(void)
{
	static const uint16_t together[DIGEST_RANKS_MAX];
	const struct sched_kind *kind;

	test_one_host(NULL);
	test_one_host(together);
	test_text();
	test_fan();
	test_alone();
	test_family();
	test_chunks();
	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 2; n <= 8; n += 3)
			for (uint32_t how = 0; how < SPREADS; how++)
				test_moves(kind, n, how);
	return 0;
}
