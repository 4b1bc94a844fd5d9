#include "link/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHADOW_ALIGNMENT = 128 };

/* A shadow is no more than a status, cards and signals. */
static size_t shadow_bytes(const struct board *board)
{
	size_t bytes = BOARD_CARDS_AT + SHADOW_CARDS * sizeof(struct card) +
		       (SHADOW_WORDS + board->signal_count) * sizeof(struct signal);

	return (bytes + SHADOW_ALIGNMENT - 1) / SHADOW_ALIGNMENT * SHADOW_ALIGNMENT;
}

/* In one piece with the peers: the ranks of this host, then each rank's host. */
struct peers_memory {
	uint32_t *locals;
	uint16_t *hosts;
	char *shadows; /* of the ranks on other hosts */
	struct addr *places;
};

static bool is_on_board(const struct peers_args *args, uint32_t rank)
{
	return !args->hosts || args->hosts[rank] == args->hosts[args->rank];
}

static struct peers *peers_alloc(
	const struct peers_args *args, struct peers_memory *memory)
{
	size_t n = args->rank_count, remote = 0;
	struct peers *peers = calloc(1, sizeof(*peers) + n * sizeof(peers->peer[0]));

	for (uint32_t rank = 0; rank < n; rank++)
		remote += !is_on_board(args, rank);
	memory->locals = calloc(n - remote, sizeof(*memory->locals));
	memory->hosts = calloc(n, sizeof(*memory->hosts));
	memory->places = remote ? calloc(n, sizeof(*memory->places)) : NULL;
	memory->shadows = NULL;
	if (remote && posix_memalign((void **)&memory->shadows, SHADOW_ALIGNMENT,
			      remote * shadow_bytes(args->board)))
		memory->shadows = NULL;
	if (memory->shadows)
		memset(memory->shadows, 0, remote * shadow_bytes(args->board));
	if (peers && memory->locals && memory->hosts &&
		((memory->shadows && memory->places) || !remote))
		return peers;
	free(peers);
	free(memory->locals);
	free(memory->hosts);
	free(memory->shadows);
	free(memory->places);
	return NULL;
}

static enum peer_kind kind_of(
	const struct peers_args *args, uint32_t rank, uint32_t local)
{
	uint32_t pid = args->pids ? args->pids[rank]
				  : board_status(args->board, local)->pid;

	return pid == (uint32_t)getpid() ? PEER_HERE : PEER_HOST;
}

enum err peers_create(const struct peers_args *args, struct peers **peers)
{
	struct peers_memory memory;
	struct peers *p = peers_alloc(args, &memory);
	char *shadow = memory.shadows;

	if (!p)
		return err_set(ERR_SYSTEM, "no memory for a communicator of %u",
			args->rank_count);
	p->board = args->board;
	p->rank = args->rank;
	p->rank_count = args->rank_count;
	p->locals = memory.locals;
	p->hosts = memory.hosts;
	p->places = memory.places;
	for (uint32_t rank = 0; rank < p->rank_count; rank++) {
		struct peer *peer = &p->peer[rank];

		memory.hosts[rank] = args->hosts ? args->hosts[rank] : 0;
		if (memory.hosts[rank] >= p->host_count)
			p->host_count = memory.hosts[rank] + 1u;
		if (!is_on_board(args, rank)) {
			*peer = (struct peer){.part = shadow,
				.status = (struct rank_status *)(void *)shadow,
				.card_mask = SHADOW_CARDS - 1,
				.kind = PEER_NET};
			shadow += shadow_bytes(p->board);
			continue;
		}
		peer->local = p->local_count;
		peer->kind = kind_of(args, rank, peer->local);
		peer->part = board_part(p->board, peer->local);
		peer->status = board_status(p->board, peer->local);
		peer->card_mask = BOARD_CARDS - 1;
		memory.locals[p->local_count++] = rank;
	}
	p->local = p->peer[p->rank].local;
	*peers = p;
	return OK;
}

enum err peers_layer(const struct peers *peers, uint32_t layer, struct peers **made)
{
	struct peers_args args = {.board = peers->board,
		.rank = peers->rank,
		.rank_count = peers->rank_count,
		.hosts = peers->hosts};
	uint32_t *pids = malloc(peers->rank_count * sizeof(*pids));
	enum err e = pids ? OK
			  : err_set(ERR_SYSTEM, "no memory for a communicator of %u",
				    peers->rank_count);

	for (uint32_t rank = 0; !e && rank < peers->rank_count; rank++)
		pids[rank] = peer_status(peers, rank)->pid;
	args.pids = pids;
	if (!e)
		e = peers_create(&args, made);
	free(pids);
	for (uint32_t rank = 0; !e && rank < peers->rank_count; rank++) {
		struct peer *peer = &(*made)->peer[rank];

		peer->status = peers->peer[rank].status;
		if (peer->kind == PEER_NET)
			continue;
		peer->local += layer * peers->board->rank_count;
		peer->part = board_part(peers->board, peer->local);
	}
	return e;
}

void peers_destroy(struct peers *peers)
{
	if (!peers)
		return;
	for (uint32_t rank = 0; rank < peers->rank_count; rank++)
		if (!peer_is_local(peers, rank)) { /* the first shadow holds all */
			free(peers->peer[rank].part);
			break;
		}
	free((void *)(uintptr_t)peers->locals);
	free((void *)(uintptr_t)peers->hosts);
	free(peers->places);
	free(peers);
}

void peers_place(struct peers *peers, uint32_t rank, const struct addr *addr)
{
	if (peers->places)
		peers->places[rank] = *addr;
}

void peer_place(const struct peers *peers, uint32_t rank, char text[PEER_PLACE_BYTES])
{
	char where[ADDR_TEXT_BYTES];
	char *port;

	if (!peers->places || !peers->places[rank].family) {
		snprintf(text, PEER_PLACE_BYTES, "on another host");
		return;
	}
	addr_print(&peers->places[rank], where);
	port = strrchr(where, ':');
	if (port)
		*port = '\0';
	snprintf(text, PEER_PLACE_BYTES, "on host %s", where);
}

/* Processors the ranks of this host may use between them: a launcher may have given each
 * its own. */
static uint32_t cpus_of_all(const struct peers *peers)
{
	uint32_t count = 0;

	for (uint32_t word = 0; word < BOARD_CPU_WORDS; word++) {
		uint64_t any = 0;

		for (uint32_t i = 0; i < peers->local_count; i++)
			any |= peer_status(peers, peers->locals[i])->cpus[word];
		count += (uint32_t)__builtin_popcountll(any);
	}
	return count;
}

bool peers_are_crowded(const struct peers *peers)
{
	const struct cores_quota *mine = &peer_status(peers, peers->rank)->quota;
	uint32_t sharing = 0;

	for (uint32_t i = 0; i < peers->local_count; i++)
		sharing += peer_status(peers, peers->locals[i])->quota.group ==
			   mine->group;
	return peers->local_count > cpus_of_all(peers) ||
	       (mine->cores > 0 && sharing > mine->cores);
}

enum err peers_view(struct board *board, struct peers **peers)
{
	const struct board_header *header = (const void *)board->base;
	uint32_t rank_count = header->job_ranks;
	struct peers_args args = {
		.board = board, .rank = rank_count, .rank_count = rank_count};
	uint16_t *hosts;
	enum err e;

	if (rank_count < board->rank_count || rank_count > BOARD_RANKS_MAX)
		return err_set(ERR_ARGUMENT, "a board of %u ranks in a job of %u",
			board->rank_count, rank_count);
	hosts = malloc(rank_count * sizeof(*hosts));
	if (!hosts)
		return err_set(
			ERR_SYSTEM, "no memory for a communicator of %u", rank_count);
	/* all but those on the board are somewhere else: one other host will do */
	for (uint32_t rank = 0; rank < rank_count; rank++)
		hosts[rank] = 1;
	for (uint32_t i = 0; i < board->rank_count; i++)
		if (board_status(board, i)->rank < rank_count) {
			args.rank = board_status(board, i)->rank;
			hosts[args.rank] = 0;
		}
	args.hosts = hosts;
	e = args.rank < rank_count
		    ? peers_create(&args, peers)
		    : err_set(ERR_ARGUMENT, "no rank of this board has a number");
	free(hosts);
	return e;
}
