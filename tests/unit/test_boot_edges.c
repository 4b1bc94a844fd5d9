/* The graph of the control channel is joined, and stays so when a host dies. */
#include "boot/edges.h"

#include <stdbool.h>
#include <stdlib.h>

#include "test.h"

enum { NODES_MAX = 300 };

static uint64_t hosts[NODES_MAX];
static bool is_joined[NODES_MAX][NODES_MAX];

static void graph_make(uint32_t count)
{
	memset(is_joined, 0, sizeof(is_joined));
	for (uint32_t node = 0; node < count; node++) {
		uint32_t nodes[EDGES_MAX], found = edges_list(node, count, hosts, nodes);

		TRUE(found <= EDGES_MAX);
		for (uint32_t i = 0; i < found; i++) {
			TRUE(nodes[i] < count && nodes[i] != node);
			is_joined[node][nodes[i]] = is_joined[nodes[i]][node] = true;
		}
	}
}

/* Every pair that is joined has somebody who calls, and only those are called. */
static void calls_make_it(uint32_t count)
{
	static bool is_called[NODES_MAX][NODES_MAX];

	memset(is_called, 0, sizeof(is_called));
	for (uint32_t node = 0; node < count; node++) {
		uint32_t nodes[EDGES_MAX],
			found = edges_to_call(node, count, hosts, nodes);

		for (uint32_t i = 0; i < found; i++) {
			TRUE(is_joined[node][nodes[i]]);
			TRUE(!is_called[node][nodes[i]]);
			is_called[node][nodes[i]] = true;
		}
	}
	for (uint32_t a = 0; a < count; a++)
		for (uint32_t b = a + 1; b < count; b++)
			EQ(is_joined[a][b], is_called[a][b] || is_called[b][a]);
}

/* How many are reached from the first that lives, and in how many steps. */
static uint32_t reach(uint32_t count, const bool *is_dead, uint32_t *steps)
{
	uint32_t queue[NODES_MAX], far[NODES_MAX] = {0}, begin = 0, end = 0;
	bool is_seen[NODES_MAX] = {false};

	for (uint32_t i = 0; i < count && !end; i++)
		if (!is_dead[i])
			queue[end++] = i;
	if (end)
		is_seen[queue[0]] = true;
	*steps = 0;
	while (begin < end) {
		uint32_t at = queue[begin++];

		*steps = far[at];
		for (uint32_t i = 0; i < count; i++)
			if (is_joined[at][i] && !is_seen[i] && !is_dead[i]) {
				is_seen[i] = true;
				far[i] = far[at] + 1;
				queue[end++] = i;
			}
	}
	return end;
}

static void host_dies(uint32_t count, uint64_t host)
{
	bool is_dead[NODES_MAX] = {false};
	uint32_t alive = 0, steps;

	for (uint32_t i = 0; i < count; i++) {
		is_dead[i] = hosts[i] == host;
		alive += !is_dead[i];
	}
	EQ(reach(count, is_dead, &steps), alive);
}

/* Whoever has other hosts at all has a neighbour there, who would notice its silence. */
static void silence_is_noticed(uint32_t count, uint32_t host_count)
{
	for (uint32_t node = 0; node < count && host_count > 1; node++) {
		bool is_noticed = false;

		for (uint32_t i = 0; i < count; i++)
			is_noticed = is_noticed ||
				     (is_joined[node][i] && hosts[i] != hosts[node]);
		TRUE(is_noticed);
	}
}

static void shape_holds(uint32_t count, uint32_t host_count)
{
	bool nobody[NODES_MAX] = {false};
	uint32_t steps;

	graph_make(count);
	calls_make_it(count);
	EQ(reach(count, nobody, &steps), count);
	TRUE(steps <= 6);
	silence_is_noticed(count, host_count);
	for (uint64_t host = 0; host < host_count; host++)
		host_dies(count, host);
}

int main(void)
{
	for (uint32_t count = 1; count <= NODES_MAX; count += count < 40 ? 1 : 37)
		for (uint32_t each = 1; each <= count; each *= 2) {
			uint32_t host_count = (count + each - 1) / each;

			for (uint32_t i = 0; i < count; i++)
				hosts[i] = i / each;
			shape_holds(count, host_count);
			for (uint32_t i = 0; i < count; i++)
				hosts[i] = i % host_count;
			shape_holds(count, host_count);
		}
	for (uint32_t i = 0; i < 8; i++) /* 1 + 7 */
		hosts[i] = i > 0;
	shape_holds(8, 2);
	return 0;
}
