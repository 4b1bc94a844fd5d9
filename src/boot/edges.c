#include "boot/edges.h"

#include <stdbool.h>

static bool is_listed(const uint32_t *nodes, uint32_t count, uint32_t node)
{
	for (uint32_t i = 0; i < count; i++)
		if (nodes[i] == node)
			return true;
	return false;
}

/* The places 1, 2, 4 .. away. */
static uint32_t circle_list(uint32_t node, uint32_t count, uint32_t *nodes)
{
	uint32_t found = 0;

	for (uint64_t step = 1; step < count; step *= 2) {
		uint32_t ahead = (uint32_t)((node + step) % count);
		uint32_t behind = (uint32_t)((node + count - step) % count);

		if (!is_listed(nodes, found, ahead))
			nodes[found++] = ahead;
		if (!is_listed(nodes, found, behind))
			nodes[found++] = behind;
	}
	return found;
}

/* The next process of another host, unless one is among `nodes`; `node`: there is none.
 */
static uint32_t stranger_find(uint32_t node, uint32_t count, const uint64_t *hosts,
	const uint32_t *nodes, uint32_t found)
{
	for (uint32_t i = 0; i < found; i++)
		if (hosts[nodes[i]] != hosts[node])
			return node;
	for (uint32_t i = 1; i < count; i++)
		if (hosts[(node + i) % count] != hosts[node])
			return (node + i) % count;
	return node;
}

uint32_t edges_list(
	uint32_t node, uint32_t count, const uint64_t *hosts, uint32_t nodes[EDGES_MAX])
{
	uint32_t found = circle_list(node, count, nodes);
	uint32_t stranger = stranger_find(node, count, hosts, nodes, found);

	if (stranger != node)
		nodes[found++] = stranger;
	return found;
}

/* Of two next to each other on the circle the first calls; who needs somebody of another
 * host calls itself. */
uint32_t edges_to_call(
	uint32_t node, uint32_t count, const uint64_t *hosts, uint32_t nodes[EDGES_MAX])
{
	uint32_t circle = circle_list(node, count, nodes);
	uint32_t stranger = stranger_find(node, count, hosts, nodes, circle);
	uint32_t found = 0;

	for (uint32_t i = 0; i < circle; i++)
		if (nodes[i] > node)
			nodes[found++] = nodes[i];
	if (stranger != node)
		nodes[found++] = stranger;
	return found;
}
