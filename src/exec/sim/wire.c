#include "exec/sim/wire.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double ps_per_ns = 1000;

/* Longer than anyone waits, and sums of it still fit. */
static const double latency_max_ps = 1e15;

enum err wires_init(struct sim_wires *wires, const struct sim_args *args)
{
	size_t n = args->rank_count;

	/* most pairs of a large group never talk: those pages are never touched */
	*wires = (struct sim_wires){.args = args,
		.wires = calloc(n * n, sizeof(*wires->wires)),
		.shared = calloc(args->shared.count + 1, sizeof(*wires->shared))};
	return wires->wires && wires->shared
		       ? OK
		       : err_set(ERR_SYSTEM, "no memory for links of %zu", n);
}

void wires_fini(struct sim_wires *wires)
{
	free(wires->wires);
	for (uint32_t i = 0; wires->shared && i < wires->args->shared.count; i++)
		free(wires->shared[i].spans);
	free(wires->shared);
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
	if (args->shared.path)
		wire->hop_count = args->shared.path(args->cookie, from, to, wire->hops);
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

static void spans_drop(struct shared_link *link, uint64_t now_ps)
{
	uint32_t over = 0;

	while (over < link->count && link->spans[over].to_ps <= now_ps)
		over++;
	link->count -= over;
	if (over && link->count)
		memmove(link->spans, link->spans + over,
			link->count * sizeof(*link->spans));
}

/* A span of its own at `at`. Without memory the link is as if it were free, and the
 * caller goes on. */
static void span_put(struct shared_link *link, uint32_t at, struct busy_span span)
{
	if (link->count == link->room) {
		uint32_t room = 2 * link->room + 8;
		struct busy_span *moved = realloc(link->spans, room * sizeof(*moved));

		if (!moved)
			return;
		link->spans = moved;
		link->room = room;
	}
	memmove(&link->spans[at + 1], &link->spans[at],
		(link->count - at) * sizeof(*link->spans));
	link->spans[at] = span;
	link->count++;
}

/* Take `length` of the link's time from *start_ps on, in as many pieces as it is free in:
 * between the first, which becomes *start_ps, and the end of the last it then is free no
 * more. The end. */
static uint64_t shared_take(struct shared_link *link, uint64_t *start_ps, uint64_t length)
{
	struct busy_span taken = {*start_ps, *start_ps};
	uint64_t end_ps = 0, left = length;
	uint32_t first = 0, last;

	while (first < link->count && link->spans[first].to_ps < taken.from_ps)
		first++;
	for (last = first; left && last < link->count; last++) {
		const struct busy_span *span = &link->spans[last];

		if (span->from_ps > taken.to_ps) {
			if (span->from_ps - taken.to_ps > left)
				break;
			left -= span->from_ps - taken.to_ps;
			end_ps = span->from_ps;
		} else {
			*start_ps = span->to_ps;
			if (span->from_ps < taken.from_ps)
				taken.from_ps = span->from_ps;
		}
		taken.to_ps = span->to_ps;
	}
	if (left)
		end_ps = taken.to_ps += left;
	if (last == first) {
		span_put(link, first, taken);
		return end_ps;
	}
	link->spans[first] = taken;
	memmove(&link->spans[first + 1], &link->spans[last],
		(link->count - last) * sizeof(*link->spans));
	link->count -= last - first - 1;
	return end_ps;
}

/* The way through the shared links, begun at `start_ps`: when the slowest is through. */
static uint64_t shared_carry(struct sim_wires *wires, const struct wire *wire,
	uint64_t now_ps, uint64_t start_ps, size_t bytes)
{
	uint64_t end_ps = wire->free_ps;

	for (uint32_t i = 0; i < wire->hop_count; i++) {
		struct shared_link *link = &wires->shared[wire->hops[i]];
		double rate = wires->args->shared.bytes_per_ns[wire->hops[i]];
		uint64_t length = (uint64_t)ceil((double)bytes * ps_per_ns / rate);
		uint64_t through_ps;

		if (!length)
			continue;
		spans_drop(link, now_ps);
		through_ps = shared_take(link, &start_ps, length);
		if (through_ps > end_ps)
			end_ps = through_ps;
	}
	return end_ps;
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
	return shared_carry(wires, wire, now_ps, leaves, bytes) + wire->latency_ps;
}
