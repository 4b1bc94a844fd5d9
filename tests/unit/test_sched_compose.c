/* Schedules that know hosts are plain ones between hosts: what they put on the wire, how
 * long they are, what they are on one host and on hosts of one rank, what is refused. */
#include "sched/catalog.h"
#include "test.h"

static struct sched_hosts *shape(const char *text)
{
	struct sched_hosts *hosts;

	EQ(sched_hosts_read(text, &hosts), OK);
	return hosts;
}

/* What the ranks of host 0 send to other hosts. */
struct wire {
	uint32_t messages, chunks, chunk_count;
};

static void lane_add(
	struct wire *wire, const struct sched *sched, const struct prog *prog)
{
	for (uint32_t i = 0; i < prog->count; i++) {
		const struct insn *insn = &prog->insns[i];
		bool fan = insn->op & FAN_OUT;
		uint32_t sends = insn->op & FAN_IN && !fan ? 1 : insn->reps;

		for (uint32_t k = 0; k < sends && insn->op & OUT_SEND; k++) {
			int32_t step = fan ? 1 : insn->conn_step;
			uint32_t tx = (uint32_t)(insn->tx + (int32_t)k * step);

			if (sched->hosts->host[prog->tx_peers[tx]]) {
				wire->messages++;
				wire->chunks += insn->count;
			}
		}
	}
}

static struct wire wire_of(enum coll coll, const char *name, const char *text)
{
	const struct sched_kind *kind = catalog_find(coll, name);
	struct sched_hosts *hosts = shape(text);
	struct wire wire = {0};

	for (uint32_t i = 0; i < sched_hosts_size(hosts, 0); i++) {
		struct sched sched;
		uint32_t rank = sched_hosts_rank(hosts, 0, i);

		EQ(catalog_write_hosts(kind, hosts, rank, 0, &sched), OK);
		for (uint32_t lane = 0; lane < sched.lane_count; lane++)
			lane_add(&wire, &sched, &sched.lanes[lane]);
		wire.chunk_count = sched.chunk_count;
		sched_fini(&sched);
	}
	sched_hosts_destroy(hosts);
	return wire;
}

/* 2 (H - 1) / H of the vector, whoever drives; one message where that is the point. */
static void test_wire_all_reduce(void)
{
	static const char *const least[] = {
		"hosts-ring", "hosts-direct", "hosts-halving", "hosts-one-ring"};
	static const char *const shapes[] = {"2x1", "2x4", "4x2", "3+5", "0,1,0,1"};
	static const uint32_t hosts[] = {2, 2, 4, 2, 2};
	struct wire wire;

	for (size_t s = 0; s < 5; s++)
		for (size_t i = 0; i < 4; i++) {
			wire = wire_of(COLL_ALL_REDUCE, least[i], shapes[s]);
			EQ(wire.chunks * hosts[s], 2 * (hosts[s] - 1) * wire.chunk_count);
		}
	wire = wire_of(COLL_ALL_REDUCE, "hosts-one-oneshot", "2x4");
	EQ(wire.messages, 1);
	EQ(wire.chunks, wire.chunk_count);
	EQ(wire_of(COLL_ALL_REDUCE, "hosts-one-oneshot", "4x2").messages, 3);
	EQ(wire_of(COLL_ALL_REDUCE, "hosts-one-doubling", "4x2").messages, 2);
}

/* Blocks leave a host once for each other host, in as few messages as the kind promises,
 * however the ranks lie. */
static void test_wire_blocks(void)
{
	static const char *const shapes[] = {"3x4", "0,1,2,0,1,2,0,1,2,0,1,2"};

	for (size_t s = 0; s < 2; s++) {
		struct wire wire = wire_of(COLL_ALL_TO_ALL, "hosts-direct", shapes[s]);

		EQ(wire.messages, 4 * 2);
		EQ(wire.chunks, 4 * 8);
		wire = wire_of(COLL_ALL_TO_ALL, "hosts-one-direct", shapes[s]);
		EQ(wire.messages, 2);
		EQ(wire.chunks, 4 * 8);
		EQ(wire_of(COLL_ALL_TO_ALL, "direct", shapes[s]).messages, 4 * 8);
		wire = wire_of(COLL_ALL_GATHER, "hosts-one-direct", shapes[s]);
		EQ(wire.messages, 2);
		EQ(wire.chunks, 2 * 4);
		wire = wire_of(COLL_ALL_GATHER, "hosts-ring", shapes[s]);
		EQ(wire.messages, 4 * 2);
		EQ(wire.chunks, 2 * 4);
		wire = wire_of(COLL_REDUCE_SCATTER, "hosts-direct", shapes[s]);
		EQ(wire.messages, 4 * 2);
		EQ(wire.chunks, 2 * 4);
		EQ(wire_of(COLL_REDUCE_SCATTER, "hosts-one-halving", shapes[s]).messages,
			2);
		wire = wire_of(COLL_SCATTER, "hosts-one-direct", shapes[s]);
		EQ(wire.messages, 2);
		EQ(wire.chunks, 2 * 4);
		EQ(wire_of(COLL_BROADCAST, "hosts-one-direct", shapes[s]).messages, 2);
		EQ(wire_of(COLL_BROADCAST, "hosts-ring", shapes[s]).messages, 4);
	}
	EQ(wire_of(COLL_ALL_TO_ALL, "hosts-direct", "3+5").messages, 3);
	EQ(wire_of(COLL_ALL_TO_ALL, "hosts-direct", "3+5").chunks, 3 * 5);
	/* rank 0 is the root: the messages come from the others */
	EQ(wire_of(COLL_GATHER, "hosts-one-direct", "3x4").messages, 0);
}

static void same_lane(const struct prog *a, const struct prog *b)
{
	EQ(a->count, b->count);
	EQ(a->rx_count, b->rx_count);
	EQ(a->tx_count, b->tx_count);
	TRUE(!memcmp(a->insns, b->insns, a->count * sizeof(*a->insns)));
	for (uint32_t i = 0; i < a->rx_count; i++)
		EQ(a->rx_peers[i], b->rx_peers[i]);
	for (uint32_t i = 0; i < a->tx_count; i++)
		EQ(a->tx_peers[i], b->tx_peers[i]);
}

static const struct sched_kind *plain_of(const struct sched_kind *kind)
{
	const char *name = kind->name + strlen("hosts-");

	if (!strncmp(name, "one-", 4))
		name += 4;
	return catalog_find(kind->coll, name);
}

/* On one host it is the plain schedule its name ends with. */
static void test_one_host(const struct sched_kind *kind)
{
	struct sched_hosts *hosts = shape("1x5");
	const struct sched_kind *plain = plain_of(kind);

	TRUE(plain && plain->drivers == DRIVERS_NONE);
	for (uint32_t r = 0; r < 5; r++) {
		struct sched a, b;

		EQ(catalog_write_hosts(kind, hosts, r, 2, &a), OK);
		EQ(catalog_write(plain, 5, r, 2, &b), OK);
		EQ(a.chunk_count, b.chunk_count);
		EQ(a.lane_count, b.lane_count);
		for (uint32_t lane = 0; lane < a.lane_count; lane++)
			same_lane(&a.lanes[lane], &b.lanes[lane]);
		sched_fini(&a);
		sched_fini(&b);
	}
	sched_hosts_destroy(hosts);
}

/* Steps that wrap round the end of a slice are cut there, and nowhere else. */
static void test_short(void)
{
	struct sched_hosts *hosts = shape("64x4");
	struct sched sched;

	EQ(catalog_write_hosts(
		   catalog_find(COLL_ALL_REDUCE, "hosts-ring"), hosts, 130, 0, &sched),
		OK);
	EQ(sched.chunk_count, 4 * 64);
	TRUE(sched.lanes[0].count <= 14);
	sched_fini(&sched);
	sched_hosts_destroy(hosts);
}

static void test_refused(void)
{
	const struct sched_kind *direct = catalog_find(COLL_ALL_REDUCE, "hosts-direct");
	const struct sched_kind *ring = catalog_find(COLL_ALL_REDUCE, "hosts-ring");
	struct sched_hosts *many = shape("200x80"), *crowd = shape("2x300");
	struct sched_hosts *wide = shape("100x100");
	struct sched sched;

	EQ(catalog_write_hosts(direct, many, 0, 0, &sched), ERR_ARGUMENT);
	EQ(catalog_write_hosts(ring, many, 0, 0, &sched), OK);
	sched_fini(&sched);
	EQ(catalog_write_hosts(ring, crowd, 0, 0, &sched), ERR_ARGUMENT);
	EQ(catalog_write_hosts(ring, many, 16000, 0, &sched), ERR_ARGUMENT);
	/* 100 * 100 blocks for each of 99 hosts cannot be numbered */
	TRUE(!catalog_suits(
		catalog_find(COLL_ALL_TO_ALL, "hosts-one-direct"), wide, 10000));
	TRUE(catalog_suits(catalog_find(COLL_ALL_TO_ALL, "hosts-direct"), wide, 10000));
	EQ(catalog_write_hosts(
		   catalog_find(COLL_ALL_TO_ALL, "hosts-direct"), wide, 777, 0, &sched),
		OK);
	sched_fini(&sched);
	sched_hosts_destroy(many);
	sched_hosts_destroy(crowd);
	sched_hosts_destroy(wide);
}

int main(void)
{
	const struct sched_kind *kind;

	test_wire_all_reduce();
	test_wire_blocks();
	for (uint32_t i = 0; (kind = catalog_at(i)); i++)
		if (kind->drivers != DRIVERS_NONE)
			test_one_host(kind);
	test_short();
	test_refused();
	return 0;
}
