#include "exec/sim/wire.h"

#include <math.h>
#include <stdlib.h>

static const double ps_per_ns = 1000;

/* Longer than anyone waits, and sums of it still fit. */
static const double latency_max_ps = 1e15;

enum err wires_init(struct sim_wires *wires, const struct sim_args *args)
{
	size_t n = args->rank_count;

	/* most pairs of a large group never talk: those pages are never touched */
	*wires = (struct sim_wires){
		.args = args, .wires = calloc(n * n, sizeof(*wires->wires))};
	return wires->wires ? OK : err_set(ERR_SYSTEM, "no memory for links of %zu", n);
}

void wires_fini(struct sim_wires *wires)
{
	free(wires->wires);
	*wires = (struct sim_wires){0};
}

static bool is_network(const struct sim_args *args, uint32_t from, uint32_t to)
{
	return args->hosts && args->hosts[from] != args->hosts[to];
}

static struct wire *wire_get(struct sim_wires *wires, uint32_t from, uint32_t to)
{
	const struct sim_args *args = wires->args;
	struct wire *wire = &wires->wires[(size_t)from * args->rank_count + to];
	struct sim_link link = is_network(args, from, to) ? args->network : args->link;

	if (wire->known)
		return wire;
	if (args->link_of)
		args->link_of(args->cookie, from, to, &link);
	wire->known = true;
	wire->latency_ps = (uint64_t)fmin(
		latency_max_ps, fmax(1, rint(link.latency_ns * ps_per_ns)));
	wire->ps_per_byte = link.bytes_per_ns > 0 ? ps_per_ns / link.bytes_per_ns : 0;
	return wire;
}

uint64_t wire_latency(struct sim_wires *wires, uint32_t from, uint32_t to)
{
	return wire_get(wires, from, to)->latency_ps;
}

uint64_t wire_send(struct sim_wires *wires, uint32_t from, uint32_t to, uint64_t now_ps,
	size_t bytes)
{
	struct wire *wire = wire_get(wires, from, to);
	uint64_t leaves = wire->free_ps > now_ps ? wire->free_ps : now_ps;

	wire->free_ps = leaves + (uint64_t)ceil((double)bytes * wire->ps_per_byte);
	wires->used_count += !wire->message_count;
	wire->message_count++;
	wire->message_bytes += bytes;
	wires->message_count++;
	wires->message_bytes += bytes;
	wires->network_count += is_network(wires->args, from, to);
	wires->network_bytes += is_network(wires->args, from, to) ? bytes : 0;
	if (wire->message_count > wires->message_max)
		wires->message_max = wire->message_count;
	if (wire->message_bytes > wires->byte_max)
		wires->byte_max = wire->message_bytes;
	return wire->free_ps + wire->latency_ps;
}
