/* Ranks with one address are one process. */
#include "boot/roster.h"

#include "test.h"

int main(void)
{
	static const unsigned char ports[8] = {5, 3, 5, 9, 3, 3, 7, 5};
	static const uint32_t nodes[8] = {0, 1, 0, 2, 1, 1, 3, 0};
	static const uint32_t firsts[4] = {0, 1, 3, 6};
	struct control_peer peers[8] = {0};
	struct roster roster;

	for (uint32_t i = 0; i < 8; i++) {
		peers[i].addr.family = ADDR_IPV4;
		peers[i].addr.port = ports[i];
		peers[i].host = ports[i] / 4;
	}
	EQ(roster_make(peers, 8, &roster), OK);
	EQ(roster.node_count, 4);
	for (uint32_t i = 0; i < 8; i++)
		EQ(roster.node_of[i], nodes[i]);
	for (uint32_t i = 0; i < 4; i++)
		EQ(roster.first_rank[i], firsts[i]);
	roster_fini(&roster);
	peers[7].host = 77;
	EQ(roster_make(peers, 8, &roster), ERR_ARGUMENT);
	return 0;
}
