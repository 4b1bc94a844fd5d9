/* A ring keeps its order while it turns and grows. */
#include "base/ring.h"

#include <stdlib.h>

#include "test.h"

int main(void)
{
	struct ring ring = {0};
	uint32_t next_in = 0, next_out = 0;

	for (uint32_t turn = 0; turn < 1000; turn++) {
		for (uint32_t i = 0; i < turn % 7 + 1; i++) {
			uint32_t *thing = ring_add(&ring, sizeof(*thing));

			TRUE(thing);
			*thing = next_in++;
		}
		for (uint32_t i = 0; i < turn % 5 && ring.count; i++) {
			EQ(*(uint32_t *)ring_at(&ring, sizeof(uint32_t), 0), next_out);
			next_out++;
			ring_drop(&ring);
		}
		EQ(ring.count, next_in - next_out);
		EQ(*(uint32_t *)ring_at(&ring, sizeof(uint32_t), ring.count - 1),
			next_in - 1);
	}
	free(ring.things);
	return 0;
}
