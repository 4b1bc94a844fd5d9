/*
 * The simulation: times against closed forms, independence of the order of stepping,
 * and bytes against a plain reference for every shipped schedule.
 */
#include "exec/sim/sim.h"
#include "reference.h"
#include "sched/write.h"

enum { RANKS = 9, ONE_TILE = 1 << 30 };

static struct sim_args make_args(
	enum coll coll, const char *name, uint32_t rank_count, size_t bytes)
{
	struct sim_args args = {.kind = catalog_find(coll, name),
		.rank_count = rank_count,
		.key = {.coll = coll, .type = DTYPE_UINT8, .count = bytes},
		.tile_bytes = ONE_TILE,
		.link = {.latency_ns = 1000, .bytes_per_ns = 10}};

	TRUE(args.kind);
	return args;
}

static uint64_t time_of(const struct sim_args *args)
{
	struct sim_report report;
	uint64_t time;

	EQ(sim_time(args, &report), OK);
	time = report.time_ps;
	sim_report_fini(&report);
	return time;
}

static void test_closed_forms(void)
{
	for (uint32_t n = 2; n <= 33; n++) {
		size_t chunk = 64 << 10;
		struct sim_args args = make_args(COLL_ALL_REDUCE, "ring", n, n * chunk);
		uint64_t hop = 1000 * 1000 + chunk * 100;

		EQ(time_of(&args), 2 * (n - 1) * hop);
		args = make_args(COLL_ALL_GATHER, "ring", n, chunk);
		EQ(time_of(&args), (n - 1) * hop);
		args = make_args(COLL_BROADCAST, "direct", n, chunk);
		EQ(time_of(&args), hop);
		args = make_args(COLL_ALL_REDUCE, "oneshot", n, chunk);
		EQ(time_of(&args), hop);
	}
}

/* A pipeline of T tiles over two hops, deep enough: the last tile leaves after T. */
static void test_pipeline(void)
{
	struct sim_args args = make_args(COLL_BROADCAST, "ring", 3, 64 << 10);

	args.tile_bytes = 1 << 10;
	args.depth = 64;
	EQ(time_of(&args), 64 * 102400 + 102400 + 2 * 1000 * 1000);
	/* with few slots every message waits for the slot's acknowledgement */
	args.depth = 1;
	TRUE(time_of(&args) > 64 * (102400 + 2 * 1000 * 1000));
}

/* Between hosts a message costs what the network costs, and nobody waits for slots. */
static void test_network(void)
{
	static const uint16_t hosts[] = {0, 0, 1};
	struct sim_args args = make_args(COLL_BROADCAST, "ring", 3, 64 << 10);
	uint64_t hop = 1000 * 1000 + (64 << 10) * 100,
		 far = 20000ull * 1000 + (64 << 10) * 500;
	struct sim_report report;

	args.hosts = hosts;
	args.network = (struct sim_link){.latency_ns = 20000, .bytes_per_ns = 2};
	EQ(sim_time(&args, &report), OK);
	EQ(report.time_ps, hop + far);
	EQ(report.message_count, 2);
	EQ(report.network_message_count, 1);
	EQ(report.network_bytes, 64 << 10);
	sim_report_fini(&report);
	/* 64 tiles: the first comes over the first hop, the network carries them all */
	args.tile_bytes = 1 << 10;
	args.depth = 1;
	args.link = (struct sim_link){.latency_ns = 0};
	EQ(time_of(&args) / 1000, (20000ull * 1000 + (64 << 10) * 500) / 1000);
	/* what stands nowhere is sent from a slot, which is free when it has left */
	args = make_args(COLL_REDUCE, "ring", 3, 64 << 10);
	args.hosts = (const uint16_t[]){0, 1, 2};
	args.network = (struct sim_link){.latency_ns = 20000, .bytes_per_ns = 2};
	args.tile_bytes = 1 << 10;
	args.depth = 1;
	EQ(time_of(&args), 2 * 20000ull * 1000 + 65 * 512000ull);
	args.network.latency_ns = -1;
	EQ(sim_time(&args, &report), ERR_ARGUMENT);
}

static void test_monotone(void)
{
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++) {
		struct sim_args args = make_args(kind->coll, kind->name, 8, 1000);
		uint64_t before = 0;

		for (args.key.count = 0; args.key.count < 1 << 20;
			args.key.count = args.key.count * 4 + 512) {
			uint64_t now = time_of(&args);

			TRUE(now >= before);
			before = now;
		}
		for (args.link.latency_ns = 0; args.link.latency_ns < 1e6;
			args.link.latency_ns = args.link.latency_ns * 3 + 1) {
			uint64_t now = time_of(&args);

			TRUE(args.link.latency_ns <= 0 || now > before);
			before = now;
		}
	}
}

/* Links of which no two are alike. */
static void odd_links(
	const void *cookie, uint32_t from, uint32_t to, struct sim_link *link)
{
	uint32_t mixed = (from * 31 + to * 17 + *(const uint32_t *)cookie) % 13;

	link->latency_ns = 100 + 50 * mixed;
	link->bytes_per_ns = 1 + mixed % 5;
}

static void test_any_order(void)
{
	static const uint16_t spread[13] = {0, 0, 1, 2, 1, 2, 2};
	const struct sched_kind *kind;
	uint32_t salt = 5;

	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 2; n <= 13; n++) {
			struct sim_args args = make_args(
				kind->coll, kind->name, n, 20000);
			struct sim_report first, again;

			args.tile_bytes = 1024;
			args.link_of = n % 2 ? odd_links : NULL;
			args.hosts = n % 3 ? NULL : spread;
			args.cookie = &salt;
			EQ(sim_time(&args, &first), OK);
			for (uint64_t seed = 1; seed <= 8; seed++) {
				args.order_seed = seed * 0x2545f4914f6cdd1du;
				EQ(sim_time(&args, &again), OK);
				EQ(again.time_ps, first.time_ps);
				EQ(memcmp(again.finish_ps, first.finish_ps,
					   n * sizeof(*first.finish_ps)),
					0);
				EQ(again.link_byte_max, first.link_byte_max);
				sim_report_fini(&again);
			}
			sim_report_fini(&first);
		}
}

/* Both lanes of rank 0 send to rank 1 at once: one chunk, which goes on to rank 2, and
 * two. */
static enum err write_contest(struct sched *sched)
{
	struct writer w = write_begin(sched, 3, 2);
	bool first = sched->rank == 0, last = sched->rank == 2;

	for (uint32_t lane = 0; lane < (last ? 1u : 2u); lane++) {
		struct sched_line line = {.op = first ? IN_SRC : IN_RECV | OUT_DST,
			.to = SPACE_OUT,
			.src = lane,
			.dst = lane,
			.count = lane + 1};

		if (first || (!lane && !last)) {
			line.op |= OUT_SEND;
			write_tx_peers(&w, lane, sched->rank + 1, 1, 1);
		}
		if (!first)
			write_rx_peers(&w, lane, sched->rank - 1, 1, 1);
		write_line(&w, lane, &line);
	}
	return w.error;
}

/* The lanes of a rank share its links, the lower lane first, in whatever order they are
 * stepped. */
static void test_contest(void)
{
	static const struct sched_kind contest = {.coll = COLL_BROADCAST,
		.name = "contest",
		.summary = "two lanes, one link",
		.rank_max = 3,
		.write = write_contest};
	struct sim_args args = make_args(COLL_BROADCAST, "ring", 3, 3 * 6400);

	args.kind = &contest;
	args.link.latency_ns = 640;
	for (args.order_seed = 0; args.order_seed < 20; args.order_seed++)
		EQ(time_of(&args), 4 * 640 * 1000);
}

static void test_report(void)
{
	struct sim_args args = make_args(COLL_ALL_REDUCE, "ring", 4, 4 << 10);
	struct sim_report report;

	EQ(sim_time(&args, &report), OK);
	EQ(report.link_count, 4);
	EQ(report.link_message_max, 6);
	EQ(report.link_byte_max, 6 << 10);
	EQ(report.message_count, 24);
	EQ(report.message_bytes, 24 << 10);
	EQ(report.move_count, 4 * 7);
	EQ(report.tile_count, 1);
	sim_report_fini(&report);
}

static void test_trouble(void)
{
	struct sim_args args = make_args(COLL_ALL_REDUCE, "ring", 4, 4 << 10);
	struct sim_report report;

	args.depth = 1; /* everyone sends before anyone receives */
	args.tile_bytes = 64;
	EQ(sim_time(&args, &report), ERR_USAGE);
	args = make_args(COLL_BROADCAST, "ring", 4, 100);
	args.key.root = 4;
	EQ(sim_time(&args, &report), ERR_ARGUMENT);
	args.rank_count = 0;
	EQ(sim_time(&args, &report), ERR_ARGUMENT);
	args = make_args(COLL_BROADCAST, "ring", 4, 100);
	args.link.latency_ns = -1;
	EQ(sim_time(&args, &report), ERR_ARGUMENT);
}

/* Every rank's buffers, out of place or in place, against the reference. */
static void check_bytes(const struct sched_kind *kind, const struct reference *r,
	bool in_place, const uint16_t *hosts)
{
	struct sim_args args = make_args(kind->coll, kind->name, r->rank_count, 0);
	size_t room = r->rank_count * r->count * dtype_size(r->type) + 1;
	char *memory[RANKS], *second[RANKS], *in[RANKS], *out[RANKS];
	char *want = calloc(1, room);
	struct sim_report report;

	args.key = (struct plan_key){
		.coll = r->coll, .type = r->type, .root = r->root, .count = r->count};
	args.tile_bytes = 192;
	args.hosts = hosts;
	for (uint32_t rank = 0; rank < r->rank_count; rank++) {
		memory[rank] = in[rank] = calloc(1, room);
		second[rank] = out[rank] = calloc(1, room);
		if (in_place)
			reference_in_place(r, rank, memory[rank], &in[rank], &out[rank]);
		reference_fill(r, rank, in[rank]);
	}
	EQ(sim_run(&args, (const void *const *)in, (void *const *)out, &report), OK);
	sim_report_fini(&report);
	for (uint32_t rank = 0; rank < r->rank_count; rank++) {
		reference_result(r, rank, want);
		if (memcmp(out[rank], want, reference_bytes(r, rank, SPACE_OUT))) {
			fprintf(stderr, "%s %s, %u ranks, root %u, %zu %s, %s place\n",
				coll_name(kind->coll), kind->name, r->rank_count, r->root,
				r->count, dtype_name(r->type),
				in_place ? "in" : "out of");
			exit(1);
		}
		free(memory[rank]);
		free(second[rank]);
	}
	free(want);
}

static void test_bytes(void)
{
	static const enum dtype types[] = {
		DTYPE_INT8, DTYPE_INT32, DTYPE_FLOAT32, DTYPE_FLOAT64};
	static const size_t counts[] = {1, 77, 1000};
	static const uint16_t each[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
	static const uint16_t turns[RANKS] = {0, 1, 0, 1, 0, 1, 0, 1, 2};
	const struct sched_kind *kind;

	for (uint32_t i = 0; (kind = catalog_plain_at(i)); i++)
		for (uint32_t n = 1; n <= RANKS; n++)
			for (uint32_t c = 0; c < 12; c++) {
				struct reference r = {.coll = kind->coll,
					.type = types[c % 4],
					.rank_count = n,
					.root = coll_has_root(kind->coll) ? c % n : 0,
					.count = counts[c / 4]};

				check_bytes(kind, &r, false, NULL);
				check_bytes(kind, &r, false, c % 2 ? turns : each);
				if (kind->coll == COLL_ALL_TO_ALL)
					continue;
				check_bytes(kind, &r, true, NULL);
				check_bytes(kind, &r, true, c % 2 ? each : turns);
			}
}

static void test_operators(void)
{
	struct sim_args args = make_args(COLL_ALL_REDUCE, "ring", 4, 5);
	float in[4][5], out[4][5], third = 1.5f;
	const void *ins[4] = {in[0], in[1], in[2], in[3]};
	void *outs[4] = {out[0], out[1], out[2], out[3]};
	struct sim_report report;

	args.key.type = DTYPE_FLOAT32;
	for (int rank = 0; rank < 4; rank++)
		for (int i = 0; i < 5; i++)
			in[rank][i] = (float)(rank * i + 1);
	args.op = REDOP_AVG;
	EQ(sim_run(&args, ins, outs, &report), OK);
	sim_report_fini(&report);
	TRUE(out[3][2] == 4);
	args.op = REDOP_PREMUL;
	memcpy(args.scalar.bytes, &third, sizeof(third));
	EQ(sim_run(&args, ins, outs, &report), OK);
	sim_report_fini(&report);
	TRUE(out[1][2] == 24);
	/* the input of another host is scaled when it is read, once */
	args.hosts = (const uint16_t[]){0, 1, 2, 3};
	EQ(sim_run(&args, ins, outs, &report), OK);
	sim_report_fini(&report);
	TRUE(out[1][2] == 24);
}

static void test_large(void)
{
	struct sim_args args = make_args(COLL_ALL_REDUCE, "ring", 512, 32 << 20);

	EQ(time_of(&args), 1022 * (uint64_t)(1000 * 1000 + 65536 * 100));
}

int main(void)
{
	test_closed_forms();
	test_pipeline();
	test_network();
	test_monotone();
	test_any_order();
	test_contest();
	test_report();
	test_trouble();
	test_bytes();
	test_operators();
	test_large();
	return 0;
}
