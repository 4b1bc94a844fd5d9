/* Sets of wires: threads that each use one move messages side by side, over one listener,
 * and what is sent by a set comes by the same set of the other rank. */
#include "link/wires.h"

#include <pthread.h>

#include "base/err.h"
#include "net_pair.h"

enum { RANKS = 2, SETS = 6, TURNS = 40, WORDS = 20000 };

static struct wires *ranks[RANKS];

static void ranks_make(const struct net_manner *how)
{
	struct net_handle handles[RANKS];
	struct pair pairs[RANKS];

	manner = *how;
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		pair_listen(&pairs[rank]);
		handles[rank] = pairs[rank].handle;
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct wires_args args = {.net = &net_socket,
			.rank = rank,
			.rank_count = RANKS,
			.listener = pairs[rank].listener,
			.handles = handles,
			.key = "right",
			.manner = *how};

		EQ(wires_create(&args, &ranks[rank]), OK);
	}
}

static void ranks_end(void)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		wires_destroy(ranks[rank]);
}

static uint32_t word_of(uint32_t rank, uint32_t number, uint32_t turn, uint32_t i)
{
	return rank << 31 | number << 24 | turn << 16 | (i & 0xffff);
}

struct mover {
	pthread_t thread;
	uint32_t rank, number;
};

/* One rank's thread of one set: sends and receives at the same time. */
static void *move(void *arg)
{
	const struct mover *mover = arg;
	uint32_t *out = malloc(WORDS * sizeof(*out)), *in = malloc(WORDS * sizeof(*in));
	uint32_t other = 1 - mover->rank;
	struct net_request sent, taken;
	struct net_end *to, *from = NULL;
	struct wires *set;

	EQ(wires_set(ranks[mover->rank], mover->number, &set), OK);
	EQ(wires_to(set, other, WIRE_LANE_1, &to), OK);
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		enum err e = ERR_AGAIN, f = ERR_AGAIN;

		for (uint32_t i = 0; i < WORDS; i++)
			out[i] = word_of(mover->rank, mover->number, turn, i);
		EQ(net->send(to, out, WORDS * sizeof(*out), &sent), OK);
		while (!from && (f = wires_from(set, other, WIRE_LANE_1, &from)) != OK) {
			EQ(f, ERR_AGAIN);
			e = net->test(&sent, 0);
			TRUE(e == OK || e == ERR_AGAIN);
		}
		EQ(net->recv(from, in, WORDS * sizeof(*in), &taken), OK);
		do {
			e = net->test(&sent, 0);
			f = net->test(&taken, 0);
		} while (e == ERR_AGAIN || f == ERR_AGAIN);
		EQ(e, OK);
		EQ(f, OK);
		for (uint32_t i = 0; i < WORDS; i++)
			EQ(in[i], word_of(other, mover->number, turn, i));
	}
	free(out);
	free(in);
	return NULL;
}

static void test_side_by_side(enum net_guard guard)
{
	struct mover movers[RANKS * SETS];

	ranks_make(&(struct net_manner){.guard = guard, .cables = 1});
	TRUE(wires_has_sets(ranks[0]));
	for (uint32_t i = 0; i < RANKS * SETS; i++) {
		movers[i] = (struct mover){.rank = i % RANKS, .number = i / RANKS};
		EQ(pthread_create(&movers[i].thread, NULL, move, &movers[i]), 0);
	}
	for (uint32_t i = 0; i < RANKS * SETS; i++)
		EQ(pthread_join(movers[i].thread, NULL), 0);
	ranks_end();
}

/* Whoever knows the key may claim a set that there cannot be. */
static void test_no_such_set(void)
{
	struct wires *set = NULL, *same;
	struct net_end *end;

	ranks_make(&(struct net_manner){.cables = 1});
	EQ(wires_set(ranks[0], 3, &set), OK);
	EQ(wires_set(set, 3, &same), OK);
	TRUE(set == same);
	EQ(wires_set(set, 0, &same), OK);
	TRUE(same == ranks[0]);
	EQ(wires_set(ranks[0], WIRE_SETS_MAX, &set), ERR_USAGE);
	EQ(wires_from(ranks[0], 1, WIRE_LANE_0, &end), ERR_AGAIN);
	ranks_end();
	ranks_make(&(struct net_manner){.cables = 2});
	TRUE(!wires_has_sets(ranks[0]));
	EQ(wires_set(ranks[0], 1, &set), ERR_USAGE);
	EQ(wires_set(ranks[0], 0, &same), OK);
	ranks_end();
}

/* A connection that claims a set out of bounds is closed, and another still gets in. */
static void test_wrong_claim(void)
{
	struct net_connect_args args = {.claim = {.from = 1}, .key = "right"};
	struct net_handle handles[RANKS];
	struct net_request lost, sent, taken;
	struct net_end *to, *from, *wild;
	struct wires *wires, *set;
	struct pair pair;
	char text[3];
	enum err e;

	manner = (struct net_manner){.cables = 1};
	pair_listen(&pair);
	handles[0] = handles[1] = pair.handle;
	EQ(wires_create(&(struct wires_args){.net = &net_socket,
				.rank = 0,
				.rank_count = RANKS,
				.listener = pair.listener,
				.handles = handles,
				.key = "right",
				.manner = manner},
		   &wires),
		OK);
	args.handle = &pair.handle;
	args.claim.purpose = WIRE_SETS_MAX * WIRE_PURPOSES;
	EQ(net->connect(&args, &wild), OK);
	args.claim.purpose = 5 * WIRE_PURPOSES;
	EQ(net->connect(&args, &to), OK);
	EQ(net->send(wild, "no", 3, &lost), OK);
	EQ(net->send(to, "hi", 3, &sent), OK);
	EQ(wires_set(wires, 5, &set), OK);
	while ((e = wires_from(set, 1, WIRE_LANE_0, &from)) == ERR_AGAIN) {
		net->test(&lost, 0);
		EQ(net->test(&sent, 0), ERR_AGAIN);
	}
	EQ(e, OK);
	EQ(net->recv(from, text, 3, &taken), OK);
	run_both(&sent, &taken);
	EQ_STR(text, "hi");
	net->close(wild);
	net->close(to);
	wires_destroy(wires);
}

int main(void)
{
	test_no_such_set();
	test_wrong_claim();
	test_side_by_side(NET_BARE);
	test_side_by_side(NET_SUMMED);
	return 0;
}
