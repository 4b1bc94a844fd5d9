/* Peers: who is where, on one host and on several, and what a stranger sees of a board.
 */
#include "link/peer.h"

#include <string.h>
#include <unistd.h>

#include "test.h"

static struct board *board_of(uint32_t local_count, uint32_t rank_count)
{
	struct board *board;

	EQ(board_create(&(struct board_size){local_count, 1, rank_count, 1}, "", &board),
		OK);
	return board;
}

/* Numbers of the communicator and of the board are the same. */
static void test_one_host(void)
{
	struct board *board = board_of(3, 3);
	struct peers *peers;
	struct pair_room *pair;

	board_status(board, 1)->pid = (uint32_t)getpid();
	EQ(peers_create(&(struct peers_args){.board = board, .rank = 1, .rank_count = 3},
		   &peers),
		OK);
	EQ(peers->local, 1);
	EQ(peers->local_count, 3);
	EQ(peers->host_count, 1);
	for (uint32_t rank = 0; rank < 3; rank++) {
		EQ(peers->locals[rank], rank);
		EQ(peers->peer[rank].kind, rank == 1 ? PEER_HERE : PEER_HOST);
		TRUE(peer_card(peers, rank, 7) == board_card(board, rank, 7));
		TRUE(peer_status(peers, rank) == board_status(board, rank));
		TRUE(peer_eager(peers, rank, 6) == board_eager(board, rank, 6));
		TRUE(peer_bulk(peers, rank) == board_bulk(board, rank));
		TRUE(!peer_pair_find(peers, rank, 2));
		EQ(peer_pair(peers, rank, 2, &pair), OK);
		TRUE(peer_pair_find(peers, rank, 2) == pair);
		TRUE(pair_find(board, rank, 2) == pair);
	}
	peers_destroy(peers);
	board_release(board);
}

/* Ranks 0 and 1 are in one container, rank 2 is in another. */
static void test_crowded(void)
{
	struct board *board = board_of(3, 3);
	struct peers *peers;

	for (uint32_t i = 0; i < 3; i++) {
		board_status(board, i)->pid = (uint32_t)getpid();
		board_status(board, i)->cpus[0] = 0x7;
	}
	EQ(peers_create(&(struct peers_args){.board = board, .rank = 0, .rank_count = 3},
		   &peers),
		OK);
	TRUE(!peers_are_crowded(peers));
	board_status(board, 0)->quota = (struct cores_quota){2, 7};
	board_status(board, 1)->quota = (struct cores_quota){2, 7};
	board_status(board, 2)->quota = (struct cores_quota){1, 8};
	TRUE(!peers_are_crowded(peers));
	board_status(board, 0)->quota.cores = 1.5;
	TRUE(peers_are_crowded(peers));
	board_status(board, 0)->quota = (struct cores_quota){0};
	TRUE(!peers_are_crowded(peers));
	for (uint32_t i = 0; i < 3; i++)
		board_status(board, i)->cpus[0] = 0x3;
	TRUE(peers_are_crowded(peers));
	/* each has cores of its own */
	board_status(board, 2)->cpus[1] = 1;
	TRUE(!peers_are_crowded(peers));
	peers_destroy(peers);
	board_release(board);
}

/* Where rank 2 of another host is, once that is known. */
static void places_are_told(struct peers *peers)
{
	struct addr v4 = {.family = ADDR_IPV4, .port = 7, .bytes = {10, 77, 0, 2}};
	struct addr v6 = {.family = ADDR_IPV6, .port = 7, .bytes = {0xfd, [15] = 2}};
	char text[PEER_PLACE_BYTES];

	peer_place(peers, 2, text);
	EQ_STR(text, "on another host");
	peers_place(peers, 2, &v4);
	peer_place(peers, 2, text);
	EQ_STR(text, "on host 10.77.0.2");
	peers_place(peers, 2, &v6);
	peer_place(peers, 2, text);
	EQ_STR(text, "on host [fd00::2]");
	peer_place(peers, 0, text);
	EQ_STR(text, "on another host");
}

/* Ranks 1 and 4 of 5 are here; the others have shadows of their own, empty at first. */
static void test_hosts(void)
{
	static const uint16_t hosts[] = {0, 2, 0, 1, 2};
	struct board *board = board_of(2, 5);
	struct peers *peers;
	struct pair_room *pair;

	EQ(peers_create(
		   &(struct peers_args){
			   .board = board, .rank = 4, .rank_count = 5, .hosts = hosts},
		   &peers),
		OK);
	places_are_told(peers);
	EQ(peers->host_count, 3);
	EQ(peers->local, 1);
	EQ(peers->local_count, 2);
	EQ(peers->locals[0], 1);
	EQ(peers->locals[1], 4);
	for (uint64_t call = 0; call < 2 * BOARD_CARDS; call++) {
		TRUE(peer_card(peers, 4, call) == board_card(board, 1, call));
		TRUE(peer_card(peers, 0, call) ==
			peer_card(peers, 0, call % SHADOW_CARDS));
		TRUE((char *)(peer_card(peers, 0, call) + 1) <=
			(char *)peer_shadow_word(peers, 0, SHADOW_RECEIPT));
	}
	TRUE((char *)peer_shadow_signal(peers, 0, board->signal_count) <=
		(char *)peer_status(peers, 2));
	EQ(peer_pair(peers, 1, 4, &pair), OK);
	TRUE(pair_find(board, 0, 1) == pair);
	for (uint32_t rank = 0; rank < 5; rank++) {
		EQ(peer_is_local(peers, rank), hosts[rank] == 2);
		EQ(atomic_load(&peer_status(peers, rank)->state), RANK_ABSENT);
		EQ((uintptr_t)peer_card(peers, rank, 0) % 64, 0);
		memset(peer_card(peers, rank, BOARD_CARDS - 1), (int)rank + 1,
			sizeof(struct card));
		memset(peer_status(peers, rank), (int)rank + 1,
			sizeof(struct rank_status));
	}
	for (uint32_t rank = 0; rank < 5; rank++)
		EQ(peer_status(peers, rank)->rank, (rank + 1) * 0x01010101u);
	peers_destroy(peers);
	peers_destroy(NULL);
	board_release(board);
}

/* From outside: also of a board whose ranks have not said who they are, or lie. */
static void test_view(void)
{
	struct board *board = board_of(2, 4), view;
	struct peers *peers;

	for (uint32_t said = 0; said < 3; said++) {
		static const uint32_t ranks[3][2] = {{0, 0}, {1, 3}, {9, 1}};

		board_status(board, 0)->rank = ranks[said][0];
		board_status(board, 1)->rank = ranks[said][1];
		EQ(board_view(board->base, board->bytes, &view), OK);
		EQ(peers_view(&view, &peers), OK);
		EQ(peers->rank_count, 4);
		if (said == 1) {
			EQ(peers->local_count, 2);
			EQ(peers->locals[1], 3);
		}
		TRUE(peers->local_count <= 2);
		peers_destroy(peers);
	}
	((struct board_header *)(void *)board->base)->job_ranks = 1;
	EQ(peers_view(&view, &peers), ERR_ARGUMENT);
	board_release(board);
}

/* Another thread's cards, stages and shadows are its own; who is alive is known to all.
 */
static void test_layer(void)
{
	static const uint16_t hosts[] = {0, 2, 0, 1, 2};
	struct peers *peers, *layer;
	struct board *board;

	EQ(board_create(&(struct board_size){2, 1, 5, 3}, "", &board), OK);
	EQ(peers_create(
		   &(struct peers_args){
			   .board = board, .rank = 4, .rank_count = 5, .hosts = hosts},
		   &peers),
		OK);
	EQ(peers_layer(peers, 2, &layer), OK);
	EQ(layer->local, 1);
	EQ(layer->local_count, 2);
	for (uint32_t rank = 0; rank < 5; rank++) {
		EQ(peer_is_local(layer, rank), peer_is_local(peers, rank));
		TRUE(peer_status(layer, rank) == peer_status(peers, rank));
		TRUE(peer_card(layer, rank, 3) != peer_card(peers, rank, 3));
	}
	TRUE(peer_card(layer, 4, 3) == board_card(board, 5, 3));
	TRUE(peer_bulk(layer, 1) == board_bulk(board, 4));
	TRUE(peer_region(layer, 4, 0) == board_region(board, 5, 0));
	TRUE(peer_bulk(layer, 4) + board->bulk_bytes <= board->base + board->bytes);
	peers_destroy(layer);
	peers_destroy(peers);
	board_release(board);
}

int main(void)
{
	test_one_host();
	test_crowded();
	test_hosts();
	test_layer();
	test_view();
	return 0;
}
