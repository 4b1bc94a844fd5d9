#include "exec/host/seat.h"

enum { BEFORE_MAX = 64 }; /* a host with more ranks has them on all its cores */

static uint32_t ranks_at(const uint32_t *cores, uint32_t count, uint32_t core)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += cores[i] == core + 1;
	return found;
}

uint32_t seat_choose(
	const uint32_t *cores, uint32_t count, const cpu_set_t *allowed, uint32_t here)
{
	uint32_t best = here, least = ranks_at(cores, count, here);

	for (uint32_t core = 0; core < CPU_SETSIZE && least; core++) {
		uint32_t there;

		if (!CPU_ISSET(core, allowed))
			continue;
		there = ranks_at(cores, count, core);
		if (there < least) {
			least = there;
			best = core;
		}
	}
	return best;
}

void seat_move(uint32_t core, const cpu_set_t *allowed)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	CPU_SET(core, &only);
	if (!sched_setaffinity(0, sizeof(only), &only))
		sched_setaffinity(0, sizeof(*allowed), allowed);
}

void seat_look(const struct peers *peers)
{
	uint32_t cores[BEFORE_MAX], here = (uint32_t)sched_getcpu(), core = here;
	_Atomic uint32_t *mine = &peer_status(peers, peers->locals[peers->local])->cpu;
	cpu_set_t allowed;

	for (uint32_t i = 0; i < peers->local && i < BEFORE_MAX; i++)
		cores[i] = atomic_load_explicit(
			&peer_status(peers, peers->locals[i])->cpu, memory_order_relaxed);
	if (peers->local <= BEFORE_MAX && ranks_at(cores, peers->local, here) &&
		!sched_getaffinity(0, sizeof(allowed), &allowed))
		core = seat_choose(cores, peers->local, &allowed, here);
	if (core != here)
		seat_move(core, &allowed);
	atomic_store_explicit(mine, core + 1, memory_order_relaxed);
}
