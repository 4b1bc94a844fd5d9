/*
 * peer.h - how this rank sees the others of its communicator.
 *
 * A peer is in this process, in another one of this host, or on another host. The first
 * two have a part of the host's board, which is read and slept on directly. A peer on
 * another host has a shadow here: a status, cards and signals with the board's layout, in
 * memory of this rank alone, filled from what arrives over the network. It has fewer
 * cards, since only this rank writes them, as it comes to a call. So a look at a position
 * is one load, whoever's it is, and only who waits for long needs to know the kind.
 *
 * Ranks are numbered as in the communicator; `local` ones as on the board, which are the
 * ranks of this host in order.
 */
#ifndef LINK_PEER_H
#define LINK_PEER_H

#include "link/board.h"
#include "link/pair.h"
#include "net/addr.h"

enum { SHADOW_CARDS = 4 };

enum peer_kind { PEER_HERE, PEER_HOST, PEER_NET };

struct peer {
	char *part; /* on the board; of a PEER_NET its shadow */
	struct rank_status *status;
	uint32_t local;	    /* of a layer: counted on, see board_part() */
	uint32_t card_mask; /* how many cards it has, less one: a power of two */
	enum peer_kind kind;
};

struct peers {
	struct board *board; /* borrowed: of this host */
	uint32_t rank, rank_count;
	uint32_t local, local_count; /* of this rank; how many there are on this host */
	const uint32_t *locals;	     /* their ranks, in order */
	uint32_t host_count;
	const uint16_t *hosts; /* per rank; NULL where all are on one */
	struct addr *places;   /* owned: per rank, see peers_place(); NULL: all here */
	struct peer peer[];
};

struct peers_args {
	struct board *board;
	uint32_t rank, rank_count;
	const uint16_t *hosts; /* per rank, copied; NULL: all on one */
	const uint32_t *pids;  /* per rank, borrowed; NULL: the board shows them by now */
};

enum err peers_create(const struct peers_args *args, struct peers **peers);

/* The same ranks as another thread of this rank sees them, which has a layer of the board
 * and shadows of its own. Their statuses are those of `peers`, which stay longer. */
enum err peers_layer(const struct peers *peers, uint32_t layer, struct peers **made);

void peers_destroy(struct peers *peers); /* NULL is fine */

/* Are there more ranks on this host than processors for them, or in this one's container
 * than its quota is for? As their statuses say. */
bool peers_are_crowded(const struct peers *peers);

/* Where a rank of another host is; and that for a sentence: "on host 10.77.0.2", or "on
 * another host" while it is not known. */
enum { PEER_PLACE_BYTES = ADDR_TEXT_BYTES + 16 };
void peers_place(struct peers *peers, uint32_t rank, const struct addr *addr);
void peer_place(const struct peers *peers, uint32_t rank, char text[PEER_PLACE_BYTES]);

/* Of a board that is looked at from outside; none of its ranks is this one's. */
enum err peers_view(struct board *board, struct peers **peers);

static inline bool peer_is_local(const struct peers *peers, uint32_t rank)
{
	return peers->peer[rank].kind != PEER_NET;
}

static inline struct card *peer_card(
	const struct peers *peers, uint32_t rank, uint64_t call)
{
	const struct peer *peer = &peers->peer[rank];

	return (struct card *)(void *)(peer->part + BOARD_CARDS_AT) +
	       (call & peer->card_mask);
}

static inline struct rank_status *peer_status(const struct peers *peers, uint32_t rank)
{
	return peers->peer[rank].status;
}

/* Of a rank on another host: its signals to this one, and two words that only grow, of
 * what was put (exec/host/onesided.h). */
enum shadow_word { SHADOW_RECEIPT, SHADOW_LANDED, SHADOW_WORDS };

static inline struct signal *peer_shadow_word(
	const struct peers *peers, uint32_t rank, enum shadow_word word)
{
	return (struct signal *)(void *)(peer_card(peers, rank, 0) + SHADOW_CARDS) + word;
}

/* From a rank on another host: to this one only. */
static inline struct signal *peer_shadow_signal(
	const struct peers *peers, uint32_t from, uint32_t index)
{
	return peer_shadow_word(peers, from, SHADOW_WORDS) + index;
}

/* The others are of local ranks only: they are shared memory. */
static inline struct region_entry *peer_region(
	const struct peers *peers, uint32_t rank, uint32_t slot)
{
	return board_region(peers->board, peers->peer[rank].local, slot);
}

/* What one has for the other: made now, or NULL when neither has wanted it yet. */
static inline enum err peer_pair(
	const struct peers *peers, uint32_t from, uint32_t to, struct pair_room **pair)
{
	return pair_get(
		peers->board, peers->peer[from].local, peers->peer[to].local, pair);
}

static inline struct pair_room *peer_pair_find(
	const struct peers *peers, uint32_t from, uint32_t to)
{
	return pair_find(peers->board, peers->peer[from].local, peers->peer[to].local);
}

static inline char *peer_eager(const struct peers *peers, uint32_t rank, uint64_t call)
{
	return peers->peer[rank].part + peers->board->eager_offset +
	       call % BOARD_CARDS * peers->board->eager_bytes;
}

static inline char *peer_bulk(const struct peers *peers, uint32_t rank)
{
	return peers->peer[rank].part + peers->board->bulk_offset;
}

#endif
