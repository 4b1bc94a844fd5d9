#include "boot/absent.h"

#include <stdio.h>

uint32_t absent_print(
	const unsigned char *came, uint32_t rank_count, char *text, size_t room)
{
	uint32_t missing = 0;
	size_t used = 0;

	for (uint32_t rank = 0; rank < rank_count; rank++) {
		uint32_t first = rank;
		const char *comma = missing ? ", " : "";

		if (came[rank])
			continue;
		while (rank + 1 < rank_count && !came[rank + 1])
			rank++;
		missing += rank - first + 1;
		if (used + 32 > room)
			continue;
		if (used + 64 > room)
			used += (size_t)snprintf(text + used, room - used, ", ..");
		else if (first == rank)
			used += (size_t)snprintf(
				text + used, room - used, "%s%u", comma, first);
		else
			used += (size_t)snprintf(
				text + used, room - used, "%s%u-%u", comma, first, rank);
		if (used + 64 > room)
			used = room;
	}
	return missing;
}
