#include "sched/prog.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 8, PEERS_MIN = 4 };

static enum err prog_grow(struct prog *prog)
{
	uint32_t capacity = prog->capacity ? 2 * prog->capacity : CAPACITY_MIN;
	struct insn *insns;

	if (capacity > PROG_INSNS_MAX)
		return err_set(ERR_INTERNAL, "a schedule lane is longer than %d",
			PROG_INSNS_MAX);
	insns = realloc(prog->insns, capacity * sizeof(*insns));
	if (!insns)
		return err_set(ERR_SYSTEM, "no memory for a schedule of %u", capacity);
	prog->insns = insns;
	prog->capacity = capacity;
	return OK;
}

enum err prog_emit(struct prog *prog, const struct insn *insn)
{
	assert(insn->reps > 0 && insn->count > 0);
	if (prog->failed)
		return err_set(ERR_SYSTEM, "no memory for the peers of a schedule");
	if (prog->count == prog->capacity) {
		enum err e = prog_grow(prog);
		if (e)
			return e;
	}
	prog->insns[prog->count++] = *insn;
	return OK;
}

/* Room for one more. A list has as much as the power of two above what is in it. */
static bool peers_grow(uint16_t **peers, uint32_t count)
{
	uint32_t capacity = count ? 2 * count : PEERS_MIN;
	uint16_t *grown;

	if (count && (count < PEERS_MIN || count & (count - 1)))
		return true;
	grown = realloc(*peers, capacity * sizeof(*grown));
	if (grown)
		*peers = grown;
	return grown != NULL;
}

static uint8_t peer_append(
	struct prog *prog, uint16_t **peers, uint32_t *count, uint32_t peer)
{
	assert(*count < PROG_PEERS_MAX);
	if (!peers_grow(peers, *count)) {
		prog->failed = true;
		return 0;
	}
	(*peers)[*count] = (uint16_t)peer;
	return (uint8_t)(*count)++;
}

uint8_t prog_rx_new(struct prog *prog, uint32_t peer)
{
	return peer_append(prog, &prog->rx_peers, &prog->rx_count, peer);
}

uint8_t prog_tx_new(struct prog *prog, uint32_t peer)
{
	return peer_append(prog, &prog->tx_peers, &prog->tx_count, peer);
}

uint8_t prog_rx(struct prog *prog, uint32_t peer)
{
	for (uint32_t i = 0; i < prog->rx_count; i++)
		if (prog->rx_peers[i] == peer)
			return (uint8_t)i;
	return prog_rx_new(prog, peer);
}

uint8_t prog_tx(struct prog *prog, uint32_t peer)
{
	for (uint32_t i = 0; i < prog->tx_count; i++)
		if (prog->tx_peers[i] == peer)
			return (uint8_t)i;
	return prog_tx_new(prog, peer);
}

void prog_fini(struct prog *prog)
{
	free(prog->insns);
	free(prog->rx_peers);
	free(prog->tx_peers);
	*prog = (struct prog){0};
}
