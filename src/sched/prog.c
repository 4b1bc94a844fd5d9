#include "sched/prog.h"

#include <assert.h>
#include <stdlib.h>

enum { CAPACITY_MIN = 8 };

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
	if (prog->count == prog->capacity) {
		enum err e = prog_grow(prog);
		if (e)
			return e;
	}
	prog->insns[prog->count++] = *insn;
	return OK;
}

static uint8_t peer_index(uint16_t *peers, uint32_t *count, uint32_t peer)
{
	for (uint32_t i = 0; i < *count; i++)
		if (peers[i] == peer)
			return (uint8_t)i;
	assert(*count < PROG_PEERS_MAX);
	peers[*count] = (uint16_t)peer;
	return (uint8_t)(*count)++;
}

uint8_t prog_rx(struct prog *prog, uint32_t peer)
{
	return peer_index(prog->rx_peers, &prog->rx_count, peer);
}

uint8_t prog_tx(struct prog *prog, uint32_t peer)
{
	return peer_index(prog->tx_peers, &prog->tx_count, peer);
}

void prog_fini(struct prog *prog)
{
	free(prog->insns);
	*prog = (struct prog){0};
}
