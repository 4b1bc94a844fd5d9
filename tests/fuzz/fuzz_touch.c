/*
 * What ranks of other hosts tell of themselves, as it comes to a communicator: kinds,
 * sizes and contents at will, and then whoever asks how they are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "comm/state.h"
#include "comm/touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* States, letters, votes and notes, and who is lost; a put needs a channel to answer. */
enum { RANKS = 6, LOCALS = 2, BYTES_MAX = 700, KINDS = 5 };

static struct board *board_once(void)
{
	static struct board *board;
	const struct board_size size = {.rank_count = LOCALS, .signal_count = 1};

	if (!board && board_create(&size, NULL, &board))
		abort();
	return board;
}

static void comm_make(struct comm *comm)
{
	static const uint16_t hosts[RANKS] = {0, 0, 1, 1, 2, 3};
	const struct peers_args args = {
		.board = board_once(), .rank = 1, .rank_count = RANKS, .hosts = hosts};

	memset(comm, 0, sizeof(*comm));
	comm->rank = args.rank;
	comm->rank_count = RANKS;
	if (peers_create(&args, &comm->peers) ||
		health_create(comm->peers, &comm->health))
		abort();
	/* not ready: there is no engine in which somebody sleeps */
}

/* As the engine and as a child that is made ask. */
static void ask(const struct comm *comm)
{
	uint32_t culprit = 0;

	(void)health_look(comm->health, &culprit);
	(void)health_failed(comm->health, 1, &culprit);
	if (culprit >= RANKS)
		abort();
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		const struct rank_status *status = peer_status(comm->peers, rank);

		if (health_is_dead(comm->health, rank) &&
			!health_dead(comm->health, rank))
			abort();
		if (strnlen(status->sentence, sizeof(status->sentence)) ==
			sizeof(status->sentence))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct comm comm;

	setenv("NCCL_CONF_FILE", "/nonexistent", 1);
	comm_make(&comm);
	while (size >= 4) {
		uint32_t from = data[0] % RANKS, kind = data[1] % KINDS;
		size_t bytes = ((size_t)data[2] | (size_t)data[3] << 8) % BYTES_MAX;
		unsigned char *copy;
		char why[40] = "";

		data += 4;
		size -= 4;
		bytes = bytes < size ? bytes : size;
		copy = malloc(bytes ? bytes : 1); /* exactly, for who looks beyond */
		if (!copy)
			abort();
		if (bytes)
			memcpy(copy, data, bytes);
		memcpy(why, copy, bytes < sizeof(why) ? bytes : sizeof(why) - 1);
		if (kind)
			touch_heard(&comm, from, kind, copy, bytes);
		else
			touch_lost(&comm, from, why);
		free(copy);
		data += bytes;
		size -= bytes;
		ask(&comm);
	}
	health_destroy(comm.health);
	peers_destroy(comm.peers);
	return 0;
}
