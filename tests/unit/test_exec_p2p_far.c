/* A message between hosts, over a network that is a list of sends and one of receives: it
 * travels in the sender's pieces, each as soon as its part of the buffer has come, and
 * the receiver's parts are told as they are there. */
#include "exec/host/p2p_far.h"

#include "exec/host/remote.h"
#include "exec/host/state.h"
#include "test.h"

enum { RANKS = 2, LENGTH = 10, ASKED_MAX = 64 };

/* ---- the network: the only connection of a case ---- */

struct asked {
	char *data;
	size_t bytes;
};

struct net_end {
	bool is_sender;
};

static struct net_end ends[2] = {{false}, {true}}, listener;
static struct asked asked[2][ASKED_MAX];
static uint64_t count[2], done;
static bool is_connected, is_accepted;

static enum err fake_connect(const struct net_connect_args *args, struct net_end **end)
{
	EQ(args->claim.to, 1);
	is_connected = true;
	*end = &ends[1];
	return OK;
}

static enum err fake_accept(
	struct net_end *at, struct net_claim *claim, struct net_end **end)
{
	TRUE(at == &listener);
	if (!is_connected || is_accepted)
		return ERR_AGAIN;
	is_accepted = true;
	*claim = (struct net_claim){.from = 0, .to = 1, .purpose = WIRE_P2P};
	*end = &ends[0];
	return OK;
}

static enum err ask(
	struct net_end *end, char *data, size_t bytes, struct net_request *request)
{
	uint64_t number = count[end->is_sender]++;

	TRUE(number < ASKED_MAX);
	asked[end->is_sender][number] = (struct asked){data, bytes};
	*request = (struct net_request){end, number + 1};
	return OK;
}

static enum err fake_send(
	struct net_end *end, const void *data, size_t bytes, struct net_request *request)
{
	return ask(end, (char *)(uintptr_t)data, bytes, request);
}

static enum err fake_recv(
	struct net_end *end, void *data, size_t bytes, struct net_request *request)
{
	return ask(end, data, bytes, request);
}

static enum err fake_test(const struct net_request *request, uint32_t wait_us)
{
	EQ(wait_us, 0);
	for (; done < count[0] && done < count[1]; done++) {
		EQ(asked[0][done].bytes, asked[1][done].bytes);
		memcpy(asked[0][done].data, asked[1][done].data, asked[0][done].bytes);
	}
	return done >= request->goal ? OK : ERR_AGAIN;
}

static void fake_close(struct net_end *end)
{
	(void)end;
}

static const struct net_ops fake_net = {.name = "Fake",
	.connect = fake_connect,
	.accept = fake_accept,
	.send = fake_send,
	.recv = fake_recv,
	.test = fake_test,
	.close = fake_close};

/* ---- two ranks with a buffer each ---- */

struct side {
	struct host_engine engine;
	struct wires *wires;
	uint64_t posted[RANKS], taken[RANKS];
	_Atomic uint32_t come, done;
	struct host_tide tide;
	char data[LENGTH + 1];
	struct p2p p2p;
};

static void side_open(struct side *side, uint32_t rank, size_t bytes)
{
	static const struct net_handle handles[RANKS];
	const struct wires_args args = {.net = &fake_net,
		.rank = rank,
		.rank_count = RANKS,
		.listener = &listener,
		.handles = handles};

	*side = (struct side){.engine = {.rank = rank, .rank_count = RANKS}};
	side->engine.letters.posted = side->posted;
	side->engine.letters.taken = side->taken;
	EQ(wires_create(&args, &side->wires), OK);
	EQ(host_remote_create(side->wires, RANKS, NULL, &side->engine.remote), OK);
	p2p_init(&side->p2p, &side->engine, rank == 0, 1 - rank);
	side->p2p.data = side->data;
	side->p2p.bytes = bytes;
}

/* Its buffer comes and goes in parts of so many bytes. */
static void side_cut(struct side *side, size_t part_bytes)
{
	enum { FIRST = 7 };

	atomic_store(&side->come, FIRST);
	atomic_store(&side->done, FIRST);
	side->tide = (struct host_tide){.part_bytes = part_bytes,
		.first = FIRST,
		.count = (uint32_t)((LENGTH + part_bytes - 1) / part_bytes),
		.come = &side->come,
		.done = &side->done};
	side->p2p.tide = &side->tide;
}

static uint32_t parts_done(const struct side *side)
{
	return atomic_load(&side->done) - side->tide.first;
}

static void sides_open(struct side *sender, struct side *receiver)
{
	memset(count, 0, sizeof(count));
	done = 0;
	is_connected = is_accepted = false;
	side_open(sender, 0, LENGTH);
	side_open(receiver, 1, LENGTH);
	memcpy(sender->data, "0123456789", LENGTH);
}

static void side_close(struct side *side)
{
	host_remote_destroy(side->engine.remote);
	wires_destroy(side->wires);
}

static void sides_close(struct side *sender, struct side *receiver)
{
	side_close(sender);
	side_close(receiver);
}

/* Until nothing moves any more. */
static void sides_step(struct side *sender, struct side *receiver, enum err *ends_as)
{
	ends_as[0] = ends_as[1] = ERR_AGAIN;
	for (int turn = 0; turn < 4 * LENGTH; turn++) {
		if (ends_as[0] == ERR_AGAIN)
			ends_as[0] = far_step(&sender->p2p);
		if (ends_as[1] == ERR_AGAIN)
			ends_as[1] = far_step(&receiver->p2p);
	}
}

/* ---- the cases ---- */

/* What has come is told at the other end before the rest has come. */
static void test_parts(size_t part_bytes, size_t their_part_bytes)
{
	struct side sender, receiver;
	enum err e[2];

	sides_open(&sender, &receiver);
	side_cut(&sender, part_bytes);
	side_cut(&receiver, their_part_bytes);
	atomic_fetch_add(&receiver.come, receiver.tide.count);
	sender.p2p.piece_bytes = part_bytes;
	for (uint32_t part = 0; part < sender.tide.count; part++) {
		size_t come = part * part_bytes;

		sides_step(&sender, &receiver, e);
		EQ(e[0], ERR_AGAIN);
		EQ(e[1], ERR_AGAIN);
		TRUE(p2p_awaits_tide(&sender.p2p));
		TRUE(!p2p_awaits_tide(&receiver.p2p));
		EQ(receiver.p2p.done, come);
		TRUE(!memcmp(receiver.data, sender.data, come) && !receiver.data[come]);
		EQ(parts_done(&receiver), come / their_part_bytes);
		atomic_fetch_add(&sender.come, 1);
	}
	sides_step(&sender, &receiver, e);
	EQ(e[0], OK);
	EQ(e[1], OK);
	EQ_STR(receiver.data, sender.data);
	EQ(parts_done(&receiver), receiver.tide.count - 1); /* the last is for others */
	EQ(parts_done(&sender), 0);
	EQ(count[1], 1 + sender.tide.count);
	EQ(sender.posted[1], 1);
	EQ(receiver.taken[0], 1);
	sides_close(&sender, &receiver);
}

/* What does not come in parts travels in pieces all the same, if it is told to. */
static void test_pieces(size_t piece_bytes, uint64_t messages)
{
	struct side sender, receiver;
	enum err e[2];

	sides_open(&sender, &receiver);
	sender.p2p.piece_bytes = piece_bytes;
	EQ(far_step(&sender.p2p), ERR_AGAIN);
	TRUE(count[1] <= P2P_UNDER_WAY);
	sides_step(&sender, &receiver, e);
	EQ(e[0], OK);
	EQ(e[1], OK);
	EQ(count[0], messages);
	EQ(count[1], messages);
	EQ_STR(receiver.data, sender.data);
	sides_close(&sender, &receiver);
}

static void test_lengths(size_t sent, size_t expected)
{
	struct side sender, receiver;
	char sentence[128];
	enum err e[2];

	sides_open(&sender, &receiver);
	sender.p2p.piece_bytes = 3;
	sender.p2p.bytes = sent;
	receiver.p2p.bytes = expected;
	sides_step(&sender, &receiver, e);
	EQ(e[1], sent == expected ? OK : ERR_USAGE);
	snprintf(sentence, sizeof(sentence),
		"rank 1 receives %zu bytes from rank 0, which sends %zu: a send and its "
		"receive must have the same size",
		expected, sent);
	if (e[1])
		EQ_STR(err_last(), sentence);
	else
		EQ(e[0], OK);
	EQ(receiver.data[0], sent == expected && sent ? '0' : 0);
	sides_close(&sender, &receiver);
}

int main(void)
{
	test_parts(4, 4);
	test_parts(4, 3);
	test_parts(3, 4);
	test_parts(5, 5);
	test_parts(1, 6);
	test_pieces(0, 2);
	test_pieces(LENGTH, 2);
	test_pieces(LENGTH - 1, 3);
	test_pieces(5, 3);
	test_pieces(1, 1 + LENGTH);
	test_lengths(0, 0);
	test_lengths(3, 3);
	test_lengths(9, 3);
	test_lengths(3, 9);
	test_lengths(0, 9);
	test_lengths(9, 0);
	return 0;
}
